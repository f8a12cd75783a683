"""The paper's theorems and lemmas, its tables' comparisons, and our own findings, as claims."""

import importlib

from derivations.claim import Claim

MODULES = ("routing", "ceiling", "data", "gradient", "exploration", "races", "router", "training")


def _collect() -> tuple[Claim, ...]:
    found: list[Claim] = []
    for name in MODULES:
        found += importlib.import_module(f"{__name__}.{name}").CLAIMS
    return tuple(found)


CLAIMS = _collect()
