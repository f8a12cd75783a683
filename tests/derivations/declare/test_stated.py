"""Claims stated as data: what they measure, and what is refused when they are read."""

import numpy as np
import pytest

import odesim
from derivations.claim import Claim
from derivations.declare.claims import stated
from odesim.evidence.laboratory import Laboratory


def index(**changed):
    """A single index on the sphere with one claim, changed."""
    claim = {
        "id": "escape", "measure": "first time max(M_ww) >= 0.5", "until": 250,
        "over": {"overlap": [0.01, 0.003, 0.001, 0.0003]}, "law": {"power": -1.0},
    }  # fmt: skip
    return odesim.declare(
        student={"unit": "He(3, w)"},
        training={"loss": "correlation", "weights": "sphere"},
        claim=[{**claim, **changed}],
    )


def only(system) -> Claim:
    (found,) = stated.claims(system)
    return found


def test_a_law_over_falling_values_is_one_of_small_values():
    assert only(index()).law.toward == "small"
    assert only(index(over={"d": [1e3, 1e4, 1e5, 1e6]})).law.toward == "large"


def test_a_hitting_time_early_in_a_long_run_is_resolved():
    system = index()
    found = only(system).measure(Laboratory(system, "quick", "numba", 0), {"overlap": 0.01}, 0)
    assert 18 * found == pytest.approx(98.5393058109807, rel=2e-5)  # 22 saved times of 2001 before it


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"over": {"overlap": [0.01, 0.001]}}, "4 values of overlap or more"),
        ({"over": {"d": [1e3, 1e4, 1e5, 1e6], "seeds": 5}}, "at least 6"),
        ({"margin": 0.1}, "unknown key 'margin'"),
        ({"measure": "first time max(M_vv) >= 0.5"}, "what a run holds is Q_ww, M_ww"),
        ({"published": " "}, 'published says where the source prints the number, as in published = "eq. .23."'),
        ({"published": True}, "published"),
    ],
)
def test_what_can_decide_nothing_is_refused(changed, words):
    with pytest.raises(odesim.UsageError, match=words):
        stated.claims(index(**changed))


def test_a_claim_says_whether_its_source_prints_it():
    own, printed = only(index()), only(index(published="eq. (23)"))
    assert own.derived and own.source.place == "stated"
    assert not printed.derived and printed.source.place == "eq. (23)"


def test_a_declared_source_has_no_year_of_its_own():
    system = odesim.declare(student={"unit": "w"}, source="Saad & Solla 1995")
    assert str(system.source.at("generated")) == "Saad & Solla 1995, generated"


@pytest.mark.slow
def test_sampled_means_with_kinks_cost_few_evaluations():
    system = odesim.declare(
        student={"unit": "relu(w)", "units": 3}, teacher={"units": 3}, training={"limit": "online", "step": 0.5}
    )
    run = odesim.integrate(system, until=3.0, points=1024)
    # One tenth of what saved times cost when each took a step of its own, and no implicit method.
    assert run.statistics["solver"] == "DOP853" and run.statistics["evaluations"] < 1000
    fine = odesim.integrate(system, until=3.0, points=1024, rtol=1e-5, atol=1e-6, solver="DOP853")
    assert np.abs(run["Q_ww"] - fine["Q_ww"]).max() < 2e-3


def test_a_measure_may_name_an_entry():
    system = odesim.system("ren_2025")
    first, sixth = stated.claims(system)
    assert [c.measure.keywords["asked"]["entry"] for c in (first, sixth)] == [(0, 0), (5, 5)]
    values = np.arange(12.0).reshape(2, 2, 3)
    asked = {"absolute": False, "reduction": "max", "entry": (1, 2)}
    assert stated.followed(values, asked).tolist() == [5.0, 11.0]
    assert np.isnan(stated.followed(values, {**asked, "entry": (2, 0)})).all()  # a run of fewer units has none


@pytest.mark.parametrize("place", ["0,1", "1", "1,1,1", "7,1", ",1"])
def test_an_entry_that_is_not_there_is_refused(place):
    system = odesim.system("ren_2025")
    entry = {"id": "x", "measure": f"final M_ww[{place}]", "law": {"at_most": 1.0}}
    with pytest.raises(odesim.UsageError, match=r"M_ww has \[1,1\] to \[6,6\]"):
        stated.claim(system, entry, 1)


BANDED = """
[student]
unit = "w"

[teacher]
noise = 0.5

[training]
limit = "online"
step  = 0.5

[[claim]]
id      = "inside"
measure = "share inside 90 % of error"
until   = 4
parameters = {d = 400}
over    = {seeds = 6}
engine  = "bands"
law     = {equals = 0.9, margin = 0.05}

[[claim]]
id      = "mean"
measure = "final error"
until   = 30
parameters = {d = 100}
engine  = "bands"
law     = {equals = 0.083893, margin = 0.0015}

[[claim]]
id      = "half"
measure = "final error"
until   = 30
parameters = {d = 100}
engine  = "bands"
law     = {equals = 0.083333, margin = 0.0015}
expected = "refuted"
"""


def test_a_claim_about_sgd_is_judged_by_bands(tmp_path):
    import odesim

    (tmp_path / "line.toml").write_text(BANDED, encoding="utf-8")
    verdicts = odesim.verify(str(tmp_path / "line.toml"), ["inside", "mean", "half"])
    # The chain rests at eta s^2/(2 - eta (1 + 2/d)) = .083893, the flow at eta s^2/(2 - eta) = .083333.
    assert [verdict.answer for verdict in verdicts] == ["confirmed", "confirmed", "refuted"]
