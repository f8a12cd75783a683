"""Claims of the paper (theorems, lemmas, comparisons in tables) and findings of our own."""

import importlib

from derivations.claim import Claim

MODULES = ("routing", "ceiling", "data", "gradient", "exploration", "races", "router", "training")


def _collect() -> tuple[Claim, ...]:
    found: list[Claim] = []
    for name in MODULES:
        found += importlib.import_module(f"{__name__}.{name}").CLAIMS
    return tuple(found)


CLAIMS = _collect()
