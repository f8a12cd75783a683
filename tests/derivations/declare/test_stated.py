"""Claims stated as data: what they measure, and what is refused when they are read."""

import numpy as np
import pytest

import odesim
from derivations.claim import Claim
from derivations.declare.claims import measurements, stated
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


def in_time(times, **changed):
    """Hebb's rule, under which the overlap with the teacher is sqrt(2/pi) times the time."""
    claim = {"id": "time", "measure": "final M_ww[1,1]", "over": {"until": times}, "law": {"power": 1.0}}
    return odesim.declare(
        student={"unit": "sign(w)"},
        training={"limit": "online", "step": 1.0, "rule": "-y"},
        start={"norm": 1e-6, "overlap": 0.0},
        claim=[{**claim, "parameters": {"points": 64}, **changed}],
    )


def test_a_claim_ranges_over_the_end_time():
    times = [1, 10, 100, 1000, 10000]
    system = in_time(times)
    lab = Laboratory(system, "quick", "numba", 0)
    found = [only(system).measure(lab, {"until": time}, 0) for time in times]
    assert found == pytest.approx(np.sqrt(2 / np.pi) * np.array(times), rel=1e-6)
    (right,) = odesim.verify(system, ["time"])
    (wrong,) = odesim.verify(in_time(times, law={"power": 0.5}), ["time"])
    assert (right.answer, wrong.answer) == ("confirmed", "refuted")


def test_seeds_of_a_claim_draw_their_own_points():
    system = odesim.system("hebb_rule")
    lab = Laboratory(system, "quick", "numba", 0)
    entry = {"id": "x", "measure": "final error", "until": 10, "law": {"equals": 0.48}, "parameters": {"points": 4096}}
    measure = stated.claim(system, entry, 1).measure
    found = np.array([measure(lab, {}, seed) for seed in range(6)])
    # The error at time 10 in closed form; the scatter between seeds is the error of means over so many points.
    exact = 4 * np.arccos(1 / np.sqrt(1 + np.pi / 20)) / np.pi
    assert found.std(ddof=1) > 1e-4 and abs(found.mean() - exact) < 5 * found.std(ddof=1) / np.sqrt(6)
    assert measure(lab, {"sample_seed": 3}, 0) == found[3]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"measure": "first time error <= 0.1"}, "a first time does not depend on the end"),
        ({"until": 10}, "until is given twice"),
        ({"over": {"until": [1, 10, 100, 0, 1000]}}, "until.*above 0"),
        ({"over": {"until": []}, "law": {"equals": 1.0}}, "until takes numbers"),
        ({"over": {"until": ["x", 1, 10, 100, 1000]}}, "until.*finite number"),
        ({"measure": "final classification_error"}, "share of wrong labels belongs to a hinge or logistic loss"),
    ],
)
def test_end_times_that_decide_nothing_are_refused(changed, words):
    with pytest.raises(odesim.UsageError, match=words):
        stated.claims(in_time([1, 10, 100, 1000, 10000], **changed))


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
    first, sixth, *_ = stated.claims(system)
    assert [c.measure.keywords["asked"]["entry"] for c in (first, sixth)] == [(0, 0), (5, 5)]
    values = np.arange(12.0).reshape(2, 2, 3)
    asked = {"absolute": False, "reduction": "max", "entry": (1, 2)}
    assert measurements.followed(values, asked).tolist() == [5.0, 11.0]
    assert np.isnan(measurements.followed(values, {**asked, "entry": (2, 0)})).all()  # a run of fewer units has none


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
