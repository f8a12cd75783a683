"""The same questions to the claims of every system: ids, forms, controls, errata."""

import importlib
from pathlib import Path

import pytest

import derivations
from derivations.broken import twin_of
from derivations.claim import HOLDS
from odesim.evidence import verification
from odesim.request.case import find_system
from tests.controls.conftest import holding

every_system = pytest.mark.parametrize("system", derivations.names())


@every_system
def test_ids_are_unique_and_controls_name_a_variant(system: str):
    claims = verification.claims_of(find_system(system))
    assert len({claim.id for claim in claims}) == len(claims)
    for claim in claims:
        names = [variant.name for variant in claim.variants]
        assert len(set(names)) == len(names), claim.id
        assert not claim.control_variant or claim.control_variant in names, claim.id


@every_system
def test_every_form_that_holds_has_a_control_that_is_run(system: str):
    folder = Path(__file__).parent
    assert "verification.control(lab, claim, held)" in (folder / f"test_{system}_controls.py").read_text("utf-8")
    run = {(claim.id, form.name) for _, claim, form in holding(system)}
    for claim in verification.claims_of(find_system(system)):
        for form in claim.variants:
            if form.expected not in HOLDS:
                continue
            assert (claim.id, form.name) in run
            twin = twin_of(claim, form)
            assert [other.name for other in twin.variants] == [form.name], claim.id


@every_system
def test_every_erratum_has_a_heading(system: str):
    module = importlib.import_module(f"derivations.{system}")
    assert module.__file__ is not None
    readme = (Path(module.__file__).parent / "README.md").read_text(encoding="utf-8")
    for claim in verification.claims_of(find_system(system)):
        if claim.erratum:
            assert f"### {claim.erratum}:" in readme, claim.id
