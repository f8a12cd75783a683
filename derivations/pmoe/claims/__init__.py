"""Claims of the paper (lemmas, theorems, experiments) and findings of our own."""

import importlib

from derivations.claim import Claim

MODULES = ("router", "gating", "neurons", "descent", "complexity", "accounts", "coupling", "images")


def _collect() -> tuple[Claim, ...]:
    found: list[Claim] = []
    for name in MODULES:
        found += importlib.import_module(f"{__name__}.{name}").CLAIMS
    return tuple(found)


CLAIMS = _collect()
