"""The theorems, lemmas and figures of the paper, and our own findings, as claims: statement, law, control."""

import importlib

from derivations.claim import Claim

MODULES = (
    "theorem1",
    "algebra",
    "expansions",
    "symbolic",
    "gradient",
    "leading",
    "concentration",
    "lemmas",
    "pruning",
    "findings",
    "quadrature",
)


def _collect() -> tuple[Claim, ...]:
    found: list[Claim] = []
    for name in MODULES:
        found += importlib.import_module(f"{__name__}.{name}").CLAIMS
    return tuple(found)


CLAIMS = _collect()
