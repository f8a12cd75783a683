"""Claims of the paper (theorems, lemmas, remarks) and findings of our own: statement, law, control."""

import importlib

from derivations.claim import Claim

MODULES = (
    "algebra",
    "sequences",
    "flow",
    "coefficients",
    "vanilla",
    "proof",
    "initialisation",
    "sgd",
    "gates",
    "phase3",
    "second_layer",
    "online",
)


def _collect() -> tuple[Claim, ...]:
    found: list[Claim] = []
    for name in MODULES:
        found += importlib.import_module(f"{__name__}.{name}").CLAIMS
    return tuple(found)


CLAIMS = _collect()
