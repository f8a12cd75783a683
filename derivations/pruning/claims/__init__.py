"""Claims of the paper (theorems, lemmas, equations) and findings of our own on them."""

import importlib

from derivations.claim import Claim

MODULES = ("theorems", "lemmas", "gradients", "identities", "timing", "missigned", "noise", "findings")


def _collect() -> tuple[Claim, ...]:
    found: list[Claim] = []
    for name in MODULES:
        found += importlib.import_module(f"{__name__}.{name}").CLAIMS
    return tuple(found)


CLAIMS = _collect()
