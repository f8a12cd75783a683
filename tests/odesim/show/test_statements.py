"""Every numbered statement of a paper has a claim or a reason, and the documentation shows all of them."""

import pathlib

import pytest

import derivations
from derivations.contract import load
from odesim.evidence import verification
from odesim.request.case import find_system
from odesim.show import statements

DOCS = pathlib.Path(__file__).parents[3] / "docs" / "verdicts"
every_system = pytest.mark.parametrize("name", derivations.names())


@every_system
def test_every_numbered_statement_has_a_claim_or_a_reason_and_not_both(name):
    system = find_system(name)
    reasons = load(system.numbered)
    for statement, claims in statements.coverage(system).items():
        assert statement in reasons, f"{claims} name {statement}, which the paper does not number"
        assert bool(claims) != bool(reasons[statement]), f"{statement}: {claims or reasons[statement] or 'nothing'}"


@every_system
def test_the_page_of_the_documentation_holds_every_form_with_the_answer_that_is_expected(name):
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    for claim in verification.claims_of(find_system(name)):
        for variant in claim.variants:
            form = f"`{claim.id}`" + ("" if variant.name == "main" else f", {variant.name}")
            rows = [line for line in page.splitlines() if f"| {form} |" in line]
            assert rows, f"{form} is missing"
            decided = verification.grid_of(claim, variant, "quick") is not None
            holds = "identity" if variant.identity else variant.expected
            answer = holds if decided else "inconclusive"  # what needs more effort than the page had
            assert all(f"| {answer} |" in row for row in rows), f"{form}: not {answer}"


def test_a_statement_without_claim_shows_its_reason():
    system = find_system("liao")
    page = statements.table(system, [])
    assert "| Assumption 1 | | | | | orthonormal teachers" in page
