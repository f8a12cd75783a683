"""`odesim derive --explain`: a sensible answer for every system, and one sentence where there is none."""

import pytest

import derivations
import odesim
from derivations.contract import UsageError
from odesim.cli import main

ERF = {"unit": "erf(w/sqrt(2))", "units": 2}


def answer(*words):
    """The exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    return ended.value.code or 0


@pytest.mark.parametrize("name", derivations.names())
def test_every_system_says_why_it_closes(name):
    page = odesim.derive(name, "explanation")
    assert "Why it closes" in page and "neglects" in page and "Other tiers" in page
    assert all(len(line) <= 112 for line in page.splitlines()[1:])


def test_methods_and_bounds_of_a_declared_model():
    online = odesim.declare(student=ERF, teacher={}, training={"limit": "online"})
    page = odesim.derive(online, "explanation")
    assert "arcsines of a tilted covariance" in page and "closed forms, exact to rounding" in page
    assert "leading: none here" in page
    gated = odesim.declare(student={"unit": "logistic(v)*He(3, w)"}, training={"weights": "normalised"}, teacher={})
    page = odesim.derive(gated, "explanation")
    assert "logistic times a polynomial of degree 3" in page
    bound = float(page.split("worst bound of the truncation ")[1].split()[0])
    assert 0 < bound <= 1e-13


def test_why_a_model_does_not_close_and_the_error_of_its_sampling():
    relu = odesim.declare(student={"unit": "relu(w)", "units": 2}, teacher={}, training={"limit": "online"})
    page = odesim.derive(relu, "explanation", points=1024)
    assert "a mean of four functions that are not polynomials" in page and "tier mixed" in page
    coarse = float(page.split("randomisations: ")[1].split()[0])
    fine = odesim.derive(relu, "explanation", points=2**14)
    assert float(fine.split("randomisations: ")[1].split()[0]) < coarse
    logistic = odesim.declare(student=ERF, teacher={}, training={"loss": "logistic"})
    page = odesim.derive(logistic, "explanation", points=1024)
    assert "not a polynomial in the units" in page and "exact: none here" in page


def test_leading_names_its_law():
    index = odesim.declare(
        student={"unit": "He(2, w)"}, teacher={}, training={"loss": "correlation", "weights": "sphere"}
    )
    page = odesim.derive(index, "explanation", tier="leading")
    assert "grows like log d" in page and "of degree 2" in page


def test_an_explanation_is_text(capsys):
    assert answer("derive", "--system", "liao", "--explain", "--format", "latex") == 2
    assert "--explain prints text" in capsys.readouterr().err
    assert answer("derive", "--system", "liao", "--explain", "--json") == 0
    assert '"explanation"' in capsys.readouterr().out
    with pytest.raises(UsageError, match="format= must be one of"):
        odesim.derive("liao", "because")
