"""Every claim of a test file's `SYSTEM`, and every form of it, as parameters; what its `slow` says is marked so."""

import importlib
from collections.abc import Iterator

import pytest

from derivations.claim import Claim
from odesim.evidence.laboratory import Laboratory


@pytest.fixture(scope="module")
def lab(request: pytest.FixtureRequest) -> Laboratory:
    """One laboratory for a file, so that functions are compiled and runs are made once."""
    return Laboratory(request.module.SYSTEM, "quick")


@pytest.fixture
def fast_controls(request: pytest.FixtureRequest) -> int:
    """How many controls of a file are run by default."""
    file = request.module
    return sum(not file.slow(name, claim, False) for name, claim in owned(file.SYSTEM.name))


def owned(system: str) -> Iterator[tuple[str, Claim]]:
    """(the module that it stands in, claim), for all claims of a system."""
    for name in importlib.import_module(f"derivations.{system}.claims").MODULES:
        for claim in importlib.import_module(f"derivations.{system}.claims.{name}").CLAIMS:
            yield name, claim


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize `claim`, or `claim` and `variant`; a file's `OMITTED` claims are left to its own tests."""
    asked = [name for name in ("claim", "variant") if name in metafunc.fixturenames]
    if not asked:
        return
    file = metafunc.module
    found = []
    for name, claim in owned(file.SYSTEM.name):
        if claim.id in getattr(file, "OMITTED", ()):
            continue
        marks = [pytest.mark.slow] if file.slow(name, claim, "variant" in asked) else []
        if "variant" in asked:
            found += [pytest.param(claim, v, id=f"{claim.id} {v.name}", marks=marks) for v in claim.variants]
        else:
            found.append(pytest.param(claim, id=claim.id, marks=marks))
    metafunc.parametrize(asked, found)
