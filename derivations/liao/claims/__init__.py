"""Claims of the paper (theorems, lemmas, figures) and findings of our own: statement, law, control."""

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
