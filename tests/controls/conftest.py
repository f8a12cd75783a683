"""Every claim of a test file's `SYSTEM` and its forms, as parameters; what its `slow` says is marked so."""

import importlib
from collections.abc import Iterator

import pytest

from derivations.broken import form_of_control
from derivations.claim import HOLDS, Claim, Variant
from odesim.evidence.laboratory import Laboratory


@pytest.fixture(scope="module")
def lab(request: pytest.FixtureRequest) -> Laboratory:
    """One laboratory for a file, so that functions are compiled and runs are made once."""
    return Laboratory(request.module.SYSTEM, "quick")


@pytest.fixture
def fast_controls(request: pytest.FixtureRequest) -> int:
    """Number of controls of a file that run by default."""
    file = request.module
    return sum(not is_slow(file, name, claim, form, True) for name, claim, form in holding(file.SYSTEM.name))


def owned(system: str) -> Iterator[tuple[str, Claim]]:
    """(the module that it stands in, claim), for all claims of a system."""
    for name in importlib.import_module(f"derivations.{system}.claims").MODULES:
        for claim in importlib.import_module(f"derivations.{system}.claims.{name}").CLAIMS:
            yield name, claim


def holding(system: str) -> Iterator[tuple[str, Claim, Variant]]:
    """(module, claim, form), for all forms of a system that are expected to hold: each has a control."""
    for name, claim in owned(system):
        for form in claim.variants:
            if form.expected in HOLDS:
                yield name, claim, form


def is_slow(file: object, name: str, claim: Claim, form: Variant, control: bool) -> bool:
    """Return True if a form, or the control of a form, belongs to the slow tests.

    The control of another form than the one that a claim's control is written for measures what this form measures.
    """
    slow = file.slow  # type: ignore[attr-defined]
    if control and form is form_of_control(claim):
        return bool(slow(name, claim, False))
    return bool(slow(name, claim, True) or (control and slow(name, claim, False)))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize `claim` and `variant`, or `claim` and `held`, its forms that are expected to hold.

    A file's `OMITTED` claims are left to its own tests.
    """
    asked = [name for name in ("claim", "variant", "held") if name in metafunc.fixturenames]
    if not asked:
        return
    file, control = metafunc.module, "held" in asked
    found = []
    for name, claim in owned(file.SYSTEM.name):
        if claim.id in getattr(file, "OMITTED", ()):
            continue
        for form in claim.variants:
            if control and form.expected not in HOLDS:
                continue
            marks = [pytest.mark.slow] if is_slow(file, name, claim, form, control) else []
            found.append(pytest.param(claim, form, id=f"{claim.id} {form.name}", marks=marks))
    metafunc.parametrize(asked, found)
