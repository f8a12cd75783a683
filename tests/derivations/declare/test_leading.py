"""Tier leading: its laws and warnings, and the claims that hold the hitting time of the flow against them."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import odesim
from derivations.declare import initial, leading
from derivations.declare.claims import claims
from odesim.evidence.laboratory import Laboratory
from odesim.evidence.verification import verify
from tests.derivations.declare.judged import answer, control

INDEX = {"loss": "correlation", "weights": "sphere"}


def index(k, **more):
    return odesim.declare(student={"unit": f"He({k}, w)"}, teacher={}, training=INDEX, **more)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("name", [pytest.param("leading-law", marks=pytest.mark.slow), "leading-rate"])
def test_the_time_of_the_flow_obeys_the_leading_law(k, name):
    assert answer(index(k), name) == "confirmed"
    assert answer(index(k), name, control) == "refuted"


def test_a_law_of_another_exponent_would_be_refuted():
    # The claim is that of information exponent 3, the flow that of 2.
    (claim,) = (one for one in claims(index(3)) if one.id == "leading-law")
    (variant,) = claim.variants
    assert verify(Laboratory(index(2)), claim, variant).answer == "refuted"


@pytest.mark.slow
def test_the_laws_of_a_squared_loss_and_of_a_sum_of_degrees():
    system = odesim.declare(student={"unit": "He(2, w) + He(3, w)"}, teacher={}, training={"weights": "sphere"})
    for name in ("leading-law", "leading-rate"):
        assert answer(system, name) == "confirmed"


@pytest.mark.parametrize(("k", "start"), [(1, 0.01), (2, 0.01), (3, 0.05), (5, 0.2)])
def test_the_predicted_time_is_that_of_its_own_equation(k, start):
    # m' = r m^(k-1), by a solver that knows nothing of its solution.
    rate, level = 3.0, 0.5
    found = solve_ivp(lambda t, m: rate * m ** (k - 1), (0, 1e6), [start], rtol=1e-10, atol=1e-12,
                      events=[crossing(level)]).t_events[0][0]  # fmt: skip
    assert leading.time_of(k, rate, start, level) == pytest.approx(found, rel=1e-7)


def crossing(level):
    def event(t, m):
        return m[0] - level

    event.terminal = True
    return event


def test_claims_are_made_where_the_law_is_derived():
    assert not [c for c in claims(odesim.declare(student={"unit": "erf(w)"}, teacher={})) if "leading" in c.id]
    two = odesim.declare(student={"unit": "He(3, w)", "units": 2}, teacher={}, training={"weights": "sphere"})
    assert not [c for c in claims(two) if "leading" in c.id]
    assert [c.id for c in claims(index(2)) if "leading" in c.id] == ["leading-law", "leading-rate"]


def test_the_summary_has_law_formula_and_times():
    run = odesim.integrate(index(2, start={"overlap": 0.01}), until=0.5, tier="leading")
    assert run.summary["information_exponent"] == 2
    assert "O(log d)" in run.summary["law"] and "log(m/m0)" in run.summary["time"]
    assert run.summary["predicted_times"][0] == pytest.approx(math.log(50) / 4, rel=1e-12)
    assert run["M_ww"][-1, 0, 0] == pytest.approx(0.01 * math.exp(4 * 0.5), rel=1e-6)
    with pytest.raises(odesim.UsageError, match="free norms change"):
        odesim.integrate(odesim.declare(student={"unit": "He(2, w)"}, teacher={}), tier="leading")


@pytest.mark.parametrize(("unit", "c"), [
    ("wick(2, w)", [0, 0, 2, 0]), ("He(3, w) + w", [0, 1, 0, 6]),
    ("relu(w)", [0.3989422804014327, 0.5, 0.3989422804014327, 0]),
    ("erf(w/sqrt(2))", [0, 2 / math.sqrt(math.pi * 2) * math.sqrt(2) / 2, 0, -0.28209479177387814]),
    ("step(w)", [0.5, 0.3989422804014327, 0, -0.3989422804014327]),
])  # fmt: skip
def test_derivative_means(unit, c):
    (group,) = odesim.declare(student={"unit": unit}, teacher={}).parameters.declaration.students
    assert leading.derivative_means(group, {}, 3) == pytest.approx(np.array(c), abs=1e-12)


@pytest.mark.parametrize(
    ("k", "overlap", "warned"), [(3, None, True), (4, None, True), (2, None, False), (3, 0.5, False)]
)
def test_a_run_says_where_sgd_is_not_known_to_follow_it(k, overlap, warned):
    given = {} if overlap is None else {"overlap": overlap}
    for tier in ("leading", "exact"):
        run = odesim.integrate(index(k), until=1e-3, tier=tier, **given)
        said = run.summary.get("sgd", "")
        assert bool(said) is warned
        assert not warned or ("compressed SGD" in said and f"exponent {k}" in said)


def test_no_warning_where_nothing_is_known_against_sgd():
    # Free norms: the degree that is shared moves with them.  On the sphere: of the first degree.
    for unit, training in (("He(3, w)", {}), ("He(3, w) + w", INDEX)):
        system = odesim.declare(student={"unit": unit}, teacher={}, training=training)
        start = initial.enter(system.parameters(), None, np.random.default_rng(0))
        assert leading.warning(start) == ""
