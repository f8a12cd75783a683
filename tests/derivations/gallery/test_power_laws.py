"""The entries with power-law spectra: the numbers of their claims are solved here for vectors and coordinates."""

import math
import tomllib
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.special import gamma, zeta

import odesim
from derivations import outside


def stated(entry, claim):
    """The value that a claim of the entry states, and the parameters of its runs."""
    tables = tomllib.loads(Path(outside.gallery()[entry]).read_text(encoding="utf-8"))
    (found,) = (table for table in tables["claim"] if table["id"] == claim)
    return found["law"]["equals"], found.get("parameters", {})


def levels_of(count, alpha):
    """Eigenvalues 1, 2^-alpha, .. of `count` levels, with mean 1."""
    eigenvalue = np.arange(1.0, count + 1) ** -alpha
    return eigenvalue / eigenvalue.mean()


def committee(eigenvalue, norm, overlap):
    """(start, right-hand side, error) of the gradient flow of two erf units for their vectors.

    Vectors have four coordinates in every level, along two teachers and two directions of the start.  The error is
    (2/pi) sum s_a s_b asin(S_ab/sqrt((1 + S_aa)(1 + S_bb))), s = 1 for students and -1 for teachers (Saad & Solla
    1995), S the covariance of the fields.  The loss is half of it.
    """
    part = 1 / math.sqrt(len(eigenvalue))
    teachers = np.zeros((2, len(eigenvalue), 4))
    start = np.zeros_like(teachers)
    for k in range(2):
        teachers[k, :, k] = part
        start[k, :, k], start[k, :, 2 + k] = norm * overlap * part, norm * math.sqrt(1 - overlap**2) * part
    sign = np.outer([1, 1, -1, -1], [1, 1, -1, -1]) / math.pi

    def fields(y):
        vectors = np.concatenate([y.reshape(start.shape), teachers])
        S = np.einsum("alx,l,blx->ab", vectors, eigenvalue, vectors)
        return vectors, S, 1 + np.diag(S)

    def velocity(_, y):
        vectors, S, one = fields(y)
        slope = sign / np.sqrt(np.outer(one, one) - S**2)  # of asin by S_ab
        moves = 2 * slope - np.diag(2 * (slope * S).sum(1) / one)
        return -(eigenvalue[:, None] * np.einsum("ab,blx->alx", moves[:2], vectors)).ravel()

    def error(y):
        _, S, one = fields(y)
        return 2 * float((sign * np.arcsin(S / np.sqrt(np.outer(one, one)))).sum())

    return start.ravel(), velocity, error


def test_the_gradient_of_the_vectors_is_that_of_their_loss():
    start, velocity, error = committee(levels_of(3, 2.0), 0.5, 0.3)
    vectors, h = start + 0.1 * np.random.default_rng(0).standard_normal(start.size), 1e-5
    numbers = [(error(vectors + h * e) - error(vectors - h * e)) / (4 * h) for e in np.eye(start.size)]
    # Central differences: h^2 and rounding/h are below 1e-9.
    assert -velocity(0, vectors) == pytest.approx(np.array(numbers), abs=1e-9)


@pytest.mark.parametrize(("claim", "count"), [("one", 1), ("four", 4), ("sixteen", 16)])
def test_the_times_of_the_committee_are_those_of_its_vectors(claim, count):
    value, parameters = stated("worschech_rosenow_2024", claim)
    assert parameters.get("levels", 4) == count
    start, velocity, error = committee(levels_of(count, 2.0), 0.5, 1e-4)

    def left(_, y):
        return error(y) - 0.02

    left.terminal = True  # type: ignore[attr-defined]
    found = solve_ivp(velocity, (0, 200), start, method="LSODA", rtol=1e-10, atol=1e-13, events=left)
    # An error of the integrator grows on the plateau as the asymmetry does, which is 1e-4 at first.
    assert found.t_events[0][0] == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize(("levels", "alpha"), [(1, 2.0), (4, 2.0), (16, 2.0), (16, 0.5)])
def test_the_plateau_is_left_at_the_rate_of_the_mean_squared_eigenvalue(levels, alpha):
    # On the plateau Q = 1/3, R = 1/sqrt(6) in every block.  Differences between the students' fields grow like
    # exp(rate t), rate = (2/pi) R/D^(3/2) <eigenvalue^2>, D = 2 (1 + Q) - R^2 = 5/2.
    rate = 4 / (math.sqrt(3) * 5**1.5 * math.pi) * np.mean(levels_of(levels, alpha) ** 2)
    small = 1e-7 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    start = {"Q_ww": np.full((16, 2, 2), 1 / 48), "M_ww": np.full((16, 2, 2), 1 / math.sqrt(6) / 16) + small / 16}
    options = {"until": 5 / rate, "save_points": 11, "rtol": 1e-11, "atol": 1e-15}
    run = odesim.integrate("worschech_rosenow_2024", initial=start, levels=levels, alpha=alpha, **options)
    fields = np.einsum("l,tlij->tij", run["eigenvalue"], run["M_ww"])
    difference = fields[:, 0, 0] - fields[:, 0, 1]
    # Second order is 1e-5 of it at the end; tolerances are 1e-8 of it at first.
    assert np.log(difference / difference[0]) == pytest.approx(rate * run.time, abs=1e-4)


def coordinates(count, alpha, beta, start):
    """(eigenvalues, squared teacher, p, right-hand side) of phase retrieval at infinite d, coordinates u_j = A_j w_j.

    q, m and p are the variances and the covariance of the fields of student and teacher; E[c x] = lambda ((6q - 2p) u
    - 4 m w) for c = 2 z (z^2 - z*^2), by Stein.  The coordinates after the first `count` stay at A_j = `start`.
    """
    index = np.arange(1.0, count + 1)
    eigenvalue, teacher = index**-alpha, index ** (-2 * beta) / zeta(2 * beta)
    p = zeta(alpha + 2 * beta) / zeta(2 * beta)
    rest = p - eigenvalue @ teacher

    def velocity(_, A):
        m, q = eigenvalue @ (teacher * A) + rest * start, eigenvalue @ (teacher * A**2) + rest * start**2
        return -eigenvalue * ((6 * q - 2 * p) * A - 4 * m)

    return eigenvalue, teacher, p, velocity


def test_the_escape_of_phase_retrieval_is_that_of_its_coordinates():
    found = []
    for claim in ("escape", "rate"):
        value, parameters = stated("braun_2025", claim)
        first = parameters["norm"] * parameters["overlap"]
        eigenvalue, teacher, p, velocity = coordinates(1000, 1.5, 0.75, first)

        def reached(_, A, teacher=teacher, first=first):
            return teacher @ A + (1 - teacher.sum()) * first - 0.5

        reached.terminal = True  # type: ignore[attr-defined]
        run = solve_ivp(
            velocity, (0, 20), np.full(1000, first), rtol=1e-10, atol=1e-16, method="DOP853", events=reached
        )
        found.append(float(run.t_events[0][0]))
        # The coordinates from 1,000 on, with eigenvalues below 3e-5, would move the time by 2e-6.
        assert found[-1] == pytest.approx(value, rel=2e-6)
    rate = brentq(lambda g: 4 * np.sum(eigenvalue**2 * teacher / (g - 2 * p * eigenvalue)) - 1, 2 * p + 1e-9, 50)
    assert rate == pytest.approx(2.51156, abs=5e-6)
    # Slower modes of the earlier start are still there when its growth ends: a few 1e-4.
    assert found[1] - found[0] == pytest.approx(math.log(1000) / rate, rel=1e-3)


@pytest.mark.parametrize(("alpha", "beta"), [(1.5, 0.75), (2.0, 1.0)])
def test_the_three_laws_of_phase_retrieval_after_its_escape(alpha, beta):
    # With X(s) = Gamma(p)/alpha (s t)^-p/zeta(2 beta) the linear flow around the teacher has the error 4 S X(8 S).
    # Its covariance obeys x + 8 K*x + 6 K*y = -X(4 S), y = X(8 S), and the kernel K has the integral 1/4.
    S, p, r = zeta(alpha + 2 * beta) / zeta(2 * beta), (alpha + 2 * beta - 1) / alpha, (2 * beta - 1) / alpha
    run = odesim.integrate(
        "braun_2025", alpha=alpha, beta=beta, d=10**12, norm=1e-4, overlap=0.1, until=3000, save_points=31, rtol=1e-10
    )
    t = run.time[10:]
    X = gamma(p) / alpha * (4 * S * t) ** -p / zeta(2 * beta)
    assert np.asarray(run["error"])[10:] == pytest.approx(
        4 * S * X * 2**-p, rel=1e-2
    )  # next order: t^(p-1), t^-p, escape/t
    overlap = np.asarray(run["M_ww"])[10:, :, 0, 0]
    assert 1 - overlap.sum(1) == pytest.approx(gamma(r) / alpha * (4 * S * t) ** -r / zeta(2 * beta), rel=1e-2)
    teacher = run["eigenvalue"] @ np.asarray(run["P_ww"])[:, 0, 0]
    assert teacher == pytest.approx(S, rel=1e-5)
    assert teacher - overlap @ run["eigenvalue"] == pytest.approx((1 + 1.5 * 2**-p) / 3 * X, rel=2e-2)


@pytest.mark.parametrize("beta", [0.0, 0.75])
def test_the_floor_and_the_distortion_of_random_features_by_coordinates(beta):
    # Squared distances m_j from the target obey m_j' = l_j (-2 eta m_j + eta^2 (E + noise^2)/d), E = sum l_j m_j.
    d, eta, noise, times = 20, 0.5, math.sqrt(0.1), [0.0, 0.5, 5.0, 50.0]
    eigenvalue, target = levels_of(d, 2.0), np.arange(1.0, d + 1) ** -beta

    def velocity(_, m):
        return eigenvalue * (-2 * eta * m + eta**2 * (eigenvalue @ m + noise**2) / d)

    start = target**2 / (target @ target)
    own = solve_ivp(velocity, (0, times[-1]), start, rtol=1e-11, atol=1e-14, t_eval=times)
    run = odesim.integrate("paquette_2024", d=d, beta=beta, noise=noise, save_at=times, rtol=1e-10)
    assert np.asarray(run["error"]) == pytest.approx(eigenvalue @ own.y, rel=1e-6)
    assert stated("paquette_2024", "floor")[0] == pytest.approx(eta * noise**2 / (2 - eta), rel=1e-10)


def test_what_is_spread_evenly_over_power_law_features_is_learned_slowly():
    # Without the noise of SGD the error is the mean of l_j e^(-2 eta l_j t) over the features, a gamma integral.
    eigenvalue = levels_of(10**6, 2.0)
    times = np.array([0.01, 0.03, 0.1])
    errors = [eigenvalue @ np.exp(-eigenvalue * t) / eigenvalue.size for t in times]
    assert np.diff(np.log(errors)) / np.diff(np.log(times)) == pytest.approx(-0.5, abs=1e-3)
