"""Atlases over one and two parameters against closed forms and independent derivations; the answer, and its folder."""

import json
import math
import subprocess
import sys

import mpmath
import numpy as np
import pytest

import odesim
from derivations.contract import UsageError
from odesim.study.answers.atlas import read_range
from tests.odesim.study import erf_committee


def special(found, kind):
    return [s["parameter"] for s in found.numbers["special"] if s["kind"] == kind]


@pytest.fixture(scope="module")
def phase():
    """Noisy phase retrieval on the sphere: its step to 0.3 and its noise to 2.5."""
    return odesim.atlas("arnaboldi_2023", over={"step": (0, 0.3)}, map={"noise": (0, 2.5)}, starts=80)


def test_phase_retrieval_has_a_pitchfork_at_two_over_twelve_plus_noise_squared(phase):
    (place,) = special(phase, "pitchfork")
    assert abs(place - 2 / (12 + 0.3**2)) < 1e-10
    # m^2 = 1 - eta s^2 / (2 (1 - 6 eta)) along the branch of the mirror images.
    k = int(np.nanargmax(np.nanmax(np.abs(phase["branch_M_ww"][..., 0, 0]), axis=1)))
    eta, m = phase["parameter"][k], phase["branch_M_ww"][k][:, 0, 0]
    known = np.isfinite(eta)
    expected = 1 - eta[known] * 0.09 / (2 * (1 - 6 * eta[known]))
    np.testing.assert_allclose(m[known] ** 2, expected, atol=1e-10)
    assert (phase["branch_index"][k][known] == 0).all() and known.sum() > 20


def test_a_branch_begins_just_above_a_step_of_zero_where_all_of_f_vanishes(phase):
    assert np.nanmin(phase["parameter"]) == pytest.approx(3e-4, rel=1e-12)
    assert phase.numbers["range"] == [pytest.approx(3e-4), 0.3]
    assert {end for pair in phase.numbers["ends"] for end in pair} <= {"range", "pitchfork"}
    assert np.nanmax(np.abs(phase["branch_M_ww"])) <= 1 + 1e-9


def test_the_critical_step_over_the_noise_is_that_of_the_closed_form(phase):
    curve = phase["curve"][0]
    curve = curve[np.isfinite(curve[:, 0])]
    assert np.abs(curve[:, 0] - 2 / (12 + curve[:, 1] ** 2)).max() < 1e-10
    assert curve[:, 1].min() == pytest.approx(0, abs=1e-9) and curve[:, 1].max() == pytest.approx(2.5, abs=1e-9)


def test_the_perfect_state_of_one_online_unit_loses_stability_in_a_transcritical_point():
    # The variance s of the error out of the teacher obeys ds/dt = eta s (2/pi) (-2/sqrt(3) + eta (2/pi)/sqrt(5)).
    found = odesim.atlas("saad_solla_1995_step", over={"step": (0.5, 8)}, noise=0, starts=60)
    (place,) = special(found, "transcritical")
    assert abs(place - math.pi * math.sqrt(5 / 3)) < 1e-10
    assert abs(place - 4.055778675974) < 1e-11
    # The branch beyond is stable and imperfect; below it would leave the Gram matrices.
    k = next(k for k, ends in enumerate(found.numbers["ends"]) if ends[0] == "transcritical")
    p, q = found["parameter"][k], found["branch_Q_ww"][k][:, 0, 0]
    known = np.isfinite(p)
    assert p[known].min() >= place - 1e-12 and (found["branch_index"][k][known] == 0).all()
    assert q[known][np.searchsorted(p[known], 7.4) - 1] == pytest.approx(20, abs=3)


def committee(k, **training):
    return odesim.declare(
        student={"unit": "erf(w/sqrt(2))", "units": k}, teacher={"units": k},
        training={"limit": "online", "step": 0.5, **training},
    )  # fmt: skip


def critical_step(k):
    """The largest step at which the perfect state of K = M erf units is stable out of the span of the teachers.

    dS/dt = -eta (H S + S H) + eta^2 T S for the covariance S of the errors, to first order: H_ab = E[g_a g_b],
    T_ab,jl = E[g_a g_b g_j g_l], g_a = sqrt(2/pi) exp(-z_a^2/2), E exp(-n z^2/2) = (1 + n)^-1/2.
    """
    pairs = [(a, b) for a in range(k) for b in range(k)]

    def mean(*units):
        counts = [units.count(a) for a in range(k)]
        return (2 / math.pi) ** (len(units) / 2) * math.prod((1 + n) ** -0.5 for n in counts)

    h = np.array([[mean(a, b) for b in range(k)] for a in range(k)])
    drift = np.kron(h, np.eye(k)) + np.kron(np.eye(k), h)
    noise = np.array([[mean(*ab, *jl) for jl in pairs] for ab in pairs])
    values = np.linalg.eigvals(np.linalg.solve(drift, noise)).real
    return 1 / values.max()


def test_the_perfect_committee_of_two_loses_stability_and_the_plateau_is_followed():
    found = odesim.atlas(committee(2), over={"step": (0.02, 6)}, starts=100)
    (place,) = special(found, "transcritical")
    assert critical_step(1) == pytest.approx(math.pi * math.sqrt(5 / 3), rel=1e-12)
    assert abs(place - critical_step(2)) < 1e-9
    assert abs(place - 2.306827696083) < 1e-10
    # At small steps the symmetric plateau is that of the flow, (Q, M) = (1/3, 1/sqrt(6)).
    plateaus = [
        k for k in range(found.numbers["branches"])
        if abs(found["parameter"][k][0] - 0.02) < 1e-9 and np.abs(found["branch_M_ww"][k][0] - 6**-0.5).max() < 5e-3
    ]  # fmt: skip
    assert len(plateaus) >= 1
    k = max(plateaus, key=lambda k: np.nanmax(found["branch_index"][k]))
    assert np.abs(found["branch_Q_ww"][k][0] - 1 / 3).max() < 5e-3
    assert np.nanmax(found["parameter"][k]) > 4.17


def test_the_average_direction_attracts_above_a_sixth():
    # Simsek et al. 2025: beta_c = (p - 2)/(k + p - 2) = 1/6 at p = 3, k = 5, where four eigenvalues cross.
    found = odesim.atlas("simsek_2025", over={"gram": (0, 0.5)}, starts=80)
    places = [s for s in found.numbers["special"] if s["kind"] == "transcritical"]
    assert all(abs(s["parameter"] - 1 / 6) < 1e-10 and s["multiplicity"] == 4 for s in places)
    assert len(places) == 2  # at the average direction and at its opposite
    # Branches of 1, 2, 3 or 4 preferred teachers leave it, and at orthonormal teachers they are u = sum of k of them.
    starts = [k for k, ends in enumerate(found.numbers["ends"]) if ends[0] == "transcritical"]
    ends = sorted({round(float(np.abs(_last(found["branch_M_ww"][k]))[0].max()), 9) for k in starts})
    assert ends == [pytest.approx(k**-0.5, abs=1e-8) for k in (4, 3, 2, 1)]


def _last(values):
    return values[np.isfinite(values[:, 0, 0])][-1]


def test_a_flow_over_its_decay_has_a_pitchfork_where_the_origin_takes_over():
    # One unit w^2 with one teacher: L = E(w^2 - t^2)^2/2, so that -dL/du = -(6 q u - 4 m t - 2 u) - decay u, and at
    # u = 0 the rate along t is 6 - decay, out of it 2 - decay.
    model = odesim.declare(student={"unit": "w^2"}, teacher={"units": 1})
    found = odesim.atlas(model, over={"decay": (0.5, 8)}, starts=60)
    assert special(found, "pitchfork") == [pytest.approx(6.0, abs=1e-9)]
    assert special(found, "branch point out of the span") == [pytest.approx(2.0, abs=1e-9)]


def test_weight_decay_keeps_two_students_on_their_plateau():
    # On the plateau u_1 = u_2 = m (1, 1); the direction (1, -1; -1, 1) loses its growth at the decay where the
    # curvature of the loss there, by the arcsine law alone, is minus the decay.
    from scipy.optimize import brentq

    def rest(decay):
        return brentq(lambda m: erf_committee.gradient(np.full((2, 2), m), 2)[0, 0] + decay * m, 0.1, 0.6, xtol=1e-14)

    def rate(decay):
        v = np.array([1.0, -1.0, -1.0, 1.0]) / 2
        return v @ erf_committee.hessian(np.full((2, 2), rest(decay)), 2) @ v + decay

    model = odesim.declare(student={"unit": "erf(w/sqrt(2))", "units": 2}, teacher={"units": 2})
    found = odesim.atlas(model, over={"decay": (0, 0.3)}, starts=60)
    assert special(found, "pitchfork") == [pytest.approx(brentq(rate, 0.01, 0.2, xtol=1e-13), abs=1e-9)]
    # The plateau has a null direction at every decay, and is followed to the end among points of its symmetry.
    assert all(set(ends) <= {"range", "pitchfork"} for ends in found.numbers["ends"])
    assert np.nanmax(found["parameter"]) == 0.3


def fold_of_preferred_teacher(kappa):
    """The teachers' overlap at which the branch of one preferred teacher of three folds, for He_3 + kappa He_1.

    u = cos t e_1 + sin t e_2 in the plane of t_1 and t_2 + t_3; g(t) = sum_j (6 m_j^3 + kappa^2 m_j), g' = g'' = 0.
    """

    def g(t, beta):
        width = mpmath.sqrt(2 + 2 * beta - 4 * beta**2)
        first, other = mpmath.cos(t), (2 * beta * mpmath.cos(t) + width * mpmath.sin(t)) / 2
        return 6 * (first**3 + 2 * other**3) + kappa**2 * (first + 2 * other)

    def equations(t, beta):
        return [mpmath.diff(lambda s: g(s, beta), t, n) for n in (1, 2)]

    mpmath.mp.dps = 30
    return float(mpmath.findroot(equations, (0.6, 0.25), tol=1e-20)[1])


@pytest.mark.slow
def test_branch_points_and_folds_are_followed_over_a_second_parameter():
    # With f = He_3 + kappa He_1 and three teachers the average attracts from (6 - kappa^2)/24 on.
    model = odesim.declare(
        student={"unit": "He(3, w) + kap*w"}, teacher={"unit": "He(3, w) + kap*w", "units": 3, "gram": 0.1},
        training={"loss": "correlation", "weights": "sphere"}, parameters={"kap": 0.0},
    )  # fmt: skip
    found = odesim.atlas(model, over={"gram": (0, 0.6)}, map={"kap": (-0.5, 1.0)}, starts=40)
    assert special(found, "fold")[0] == pytest.approx(fold_of_preferred_teacher(0), abs=1e-10)
    curves = [curve[np.isfinite(curve[:, 0])] for curve in found["curve"]]
    assert len(curves) == 2
    branch, fold = sorted(curves, key=lambda curve: curve[:, 0].max())
    assert np.abs(branch[:, 0] - (6 - branch[:, 1] ** 2) / 24).max() < 1e-10
    for beta, kappa in fold[:: len(fold) // 4]:
        assert abs(beta - fold_of_preferred_teacher(kappa)) < 1e-8
    for curve in (branch, fold):
        assert curve[:, 1].min() == pytest.approx(-0.5, abs=1e-9) and curve[:, 1].max() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(
    ("ranges", "words"),
    [
        ({"over": {"size": (0, 1)}}, "has no parameter size"),
        ({"over": {"units": (1, 4)}}, "vary a real parameter"),
        ({"over": {"step": (2, 1)}}, "low < high"),
        ({"over": {"step": (-1, 1)}}, "step"),
        ({"over": {"step": (1, 2), "noise": (0, 1)}}, "takes one parameter"),
        ({"over": {"step": 3}}, "range of two numbers"),
        ({"map": {"noise": (0, 1)}}, "the first is missing"),
        ({"over": {"noise": (0, 1)}, "map": {"noise": (0, 1)}}, "give two parameters"),
        ({"starts": 0}, "starts= must be a number from 1"),
        ({"over": {"overlap": (0, 1)}}, "do not depend on overlap|vary a real parameter"),
    ],
)
def test_ranges_that_are_none_are_refused(ranges, words):
    with pytest.raises(UsageError, match=words):
        odesim.atlas("arnaboldi_2023", **ranges)


def test_a_flow_has_no_step():
    with pytest.raises(UsageError, match="do not depend on step"):
        odesim.atlas("saad_solla_1995", over={"step": (0.1, 1)})


def test_ranges_on_the_command_line():
    assert read_range(None, "over") is None
    for text in ("step", "step=1", "=0..1", "step=a..b"):
        with pytest.raises(UsageError, match="--over takes a parameter and its range"):
            read_range(text, "over")


def test_the_answer_is_stored_and_drawn(phase, tmp_path):
    folder = phase.save(tmp_path / "atlas")
    again = odesim.load(folder)
    assert again.tables() == phase.tables() and again.summary() == json.loads(json.dumps(phase.summary()))
    np.testing.assert_array_equal(again["branch_M_ww"], phase["branch_M_ww"])
    assert {p.name for p in folder.glob("*.png")} == {"branches.png", "classes.png", "map.png"}
    assert phase.dataset()["branch_loss"].dims == ("branch", "point")
    figure = again.plot()
    styles = {line.get_linestyle() for line in figure.axes[0].lines}
    assert {"-", "--"} <= styles


def test_the_command_prints_classes_and_special_points(tmp_path):
    out = tmp_path / "run"
    words = ["atlas", "--system", "arnaboldi_2023", "--over", "step=0..0.3", "--starts", "40", "--out", str(out)]
    done = subprocess.run([sys.executable, "-m", "odesim", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "2 classes of stationary points" in done.stdout and "pitchfork at step = 0.165425971878" in done.stdout
    assert (out / "branches.png").exists() and (out / "tables" / "classes.csv").exists()
    shown = subprocess.run(
        [sys.executable, "-m", "odesim", "show", str(out)], capture_output=True, text=True, check=False
    )
    assert "pitchfork" in shown.stdout
    refused = subprocess.run(
        [sys.executable, "-m", "odesim", "atlas", "--system", "liao"], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2 and "atlas takes only declared models" in refused.stderr
