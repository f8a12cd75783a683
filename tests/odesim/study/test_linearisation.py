"""Linearisations against closed forms, Hessians of the loss in weight space, and each other."""

import dataclasses
import itertools

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError
from derivations.liao.overlaps import assemble_gram
from odesim.request.case import Case
from odesim.study import linearisation

ROUTER, EXPERT = 0.26901745, 5.28082265
BLOCK = np.array([[1.88312214, 0.56156836], [0.56156836, 6.40395936]])
"""The Hessian of the loss at the optimum with unit norms: c1 - c3, 18 S00(1), and the block of a router and its expert
towards each other (specification of the system, section 3.10; checked there by differences in weight space)."""
SPURIOUS = {
    "gamma1": [[0.8775], [0.811]],
    "gamma2": [[0.9246], [-0.7053]],
    "zeta1": [[0.1792], [0.5703]],
    "zeta2": [[-0.2418], [0.4536]],
    "I1": [[1, 0.8719], [0.8719, 1]],
    "I2": [[1, -0.9222], [-0.9222, 1]],
    "I3": [[0.0844, 0.0293], [0.3696, -0.1055]],
}
"""The spurious minimum of m = 2, m* = 1 to four digits (specification, section 3.9)."""


def pair_sums(rates):
    """Sums of two rates, with repetition: how fast a Gram matrix gains rank along directions of these rates."""
    return [a + b for a, b in itertools.combinations_with_replacement(rates, 2)]


@pytest.mark.parametrize("norms", [((1.0, 1.0), (1.0, 1.0)), ((1.3, 0.8), (0.9, 1.2))])
def test_the_spectrum_at_liaos_optimum_is_that_of_the_hessian(norms):
    a, b = np.array(norms)
    rows = np.eye(6)
    weights = {"V": a[:, None] * rows[:2], "W": b[:, None] * rows[2:4], "V_star": rows[:2], "W_star": rows[2:4]}
    found = odesim.linearise(Case.build("liao", {}, initial=weights))
    blocks = [np.linalg.eigvals(BLOCK / np.array([[a[i] ** 2], [b[i] ** 2]])) for i in range(2)]
    transverse = [*(ROUTER / a**2), *(EXPERT / b**2)]
    inside = [*np.repeat(ROUTER / a**2, 2), *np.repeat(EXPERT / b**2, 2), *np.concatenate(blocks)]
    expected = -np.sort([*inside, *pair_sums(transverse)])
    assert found.residual < 1e-14
    # The constants have eight decimals; the eigenvectors of the Gram flow are nearly parallel where norms differ.
    np.testing.assert_allclose(np.sort(found.eigenvalues.real)[::-1], expected, atol=2e-7)
    assert np.abs(found.eigenvalues.imag).max() < 1e-6
    assert found.error < 1e-9


def test_newton_finds_liaos_spurious_minimum_and_its_spectrum_is_that_of_the_hessian_in_weight_space():
    case = Case.build("liao", {"m": 2, "m_star": 1, "d": 100, "init": "orthogonal"})  # unit norms
    point = odesim.linearise(case, state=SPURIOUS).stationary()
    assert point.converged and point.distance < 1e-3 and point.null == 0
    assert point.residuals[-1] < 1e-13 < 1e-6 < point.residuals[0]
    problem, y = point.point.problem, point.point.y
    gram = assemble_gram(point.point.state, np.eye(2))
    assert abs(float(problem.functions["loss"](y, *problem.arguments)) - 0.46777049779) < 1e-10
    assert np.linalg.eigvalsh(gram)[0] > -1e-12  # vectors in three dimensions have it
    inside, outside = weight_space_rates(problem, gram)
    assert np.abs(outside[0]) < 1e-6  # the rotation of the complement, which no Gram matrix sees
    assert abs(outside[1] - 0.0479449) < 1e-6
    expected = -np.sort([*inside, *pair_sums(outside[1:])])
    # Second differences of the loss are good to about 1e-7.
    np.testing.assert_allclose(np.sort(point.point.eigenvalues.real)[::-1], expected, atol=3e-6)


def weight_space_rates(problem, gram):
    """Eigenvalues of the Hessian of the loss on the spheres of explicit unit vectors: in their span, and across it.

    Made of values of the loss alone, by second differences; the derivation of the flow does not enter.
    """
    values, vectors = np.linalg.eigh(gram)
    rows = np.hstack([(vectors * np.sqrt(np.maximum(values, 0)))[:, -3:], np.zeros((6, 1))])  # one dimension across
    bases = [np.vstack([np.linalg.svd(row[None, :3])[2][1:] @ np.eye(3, 4), np.eye(4)[3:]]) for row in rows[:4]]

    def loss(x):
        moved = rows.copy()
        for k in range(4):
            moved[k] += x[3 * k : 3 * k + 3] @ bases[k]
        moved /= np.linalg.norm(moved, axis=1, keepdims=True)
        g = moved @ moved.T
        state = {
            "gamma1": g[:2, 4:5], "gamma2": g[2:4, 5:6], "zeta1": g[:2, 5:6], "zeta2": g[2:4, 4:5],
            "I1": g[:2, :2], "I2": g[2:4, 2:4], "I3": g[:2, 2:4],
        }  # fmt: skip
        flat = problem.equations.start(dataclasses.replace(problem.initial, state=state))
        return float(problem.functions["loss"](flat, *problem.arguments))

    hessian, h = np.zeros((12, 12)), 4e-3
    weights = {1: 8 / 12, 2: -1 / 12}
    shifts = [(k * s, s * w) for k, w in weights.items() for s in (1, -1)]
    for i, j in itertools.combinations_with_replacement(range(12), 2):
        for (p, wp), (q, wq) in itertools.product(shifts, shifts):
            x = np.zeros(12)
            x[i] += p * h
            x[j] += q * h
            hessian[i, j] += wp * wq * loss(x) / h**2
        hessian[j, i] = hessian[i, j]
    across = np.arange(12) % 3 == 2
    assert np.abs(hessian[np.ix_(across, ~across)]).max() < 1e-6
    return (np.linalg.eigvalsh(hessian[np.ix_(part, part)]) for part in (~across, across))


@pytest.mark.slow
def test_a_perturbation_of_a_run_grows_as_the_linearisation_says():
    # exp(J t) of two neighbouring runs over a short time, at a state where the flow is not stationary.
    run = odesim.integrate("chen", M=2, J=2, K=2, seed=3, until=0.2, rtol=1e-11)
    found = odesim.linearise(run, 0.1003)  # between two saved times
    again = odesim.linearise(odesim.integrate("chen", M=2, J=2, K=2, seed=3, until=0.1003, rtol=1e-11))
    np.testing.assert_allclose(found.y, again.y, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found.jacobian, again.jacobian, rtol=0, atol=1e-4 * np.abs(again.jacobian).max())
    start = odesim.linearise(Case.build("chen", {"M": 2, "J": 2, "K": 2}, seed=3))
    assert start.y.size == 24
    first = odesim.linearise(run, 0.0)
    np.testing.assert_allclose(first.y, start.y, rtol=1e-12)


@pytest.mark.parametrize(
    ("system", "request_"),
    [
        ("kawata", {"neurons": 2, "d": 100, "C": 2, "until": 0.5}),
        ("chen", {"M": 2, "J": 2, "K": 2, "until": 0.1}),
        ("chen", {"tier": "explore", "M": 2, "J": 2, "K": 2, "until": 0.1}),
        ("pruning", {"tier": "homogeneous", "until": 5.0}),
        ("liao", {"tier": "riccati", "m": 3, "m_star": 2, "d": 100, "until": 0.2}),
    ],
)
def test_forward_mode_and_differences_of_the_compiled_flow_agree(system, request_):
    run = odesim.integrate(system, **request_)
    first, second = odesim.linearise(run, method="forward mode"), odesim.linearise(run, method="differences")
    size = np.abs(first.jacobian).max()
    assert (first.method, second.method) == ("forward mode", "differences")
    assert max(first.error, second.error) < 1e-6 * max(size, 1.0)
    np.testing.assert_allclose(first.jacobian, second.jacobian, rtol=0, atol=1e-6 * size)


@pytest.mark.parametrize("tier", ["exact", "riccati"])
def test_by_default_differences_are_taken_which_are_as_accurate_as_they_say(tier, monkeypatch):
    """The exact Jacobian is that of forward mode, whose own error is the rounding of sums over units."""
    run = odesim.integrate("liao", tier=tier, m=3, m_star=2, d=100, until=0.2)
    exact, found = odesim.linearise(run, method="forward mode").jacobian, odesim.linearise(run)
    assert found.method == "differences"
    size = np.abs(exact).max()
    assert found.error <= linearisation.ACCURATE * size
    assert np.abs(found.jacobian - exact).max() <= 2 * found.error + 1e-13 * size
    monkeypatch.setattr(linearisation, "ACCURATE", 0.0)
    assert odesim.linearise(run).method == "forward mode"


def test_a_run_from_weights_in_few_dimensions_is_linearised():
    """d = 9 is below the 2 m + 2 m* = 10 that random weights are drawn in."""
    rng = np.random.default_rng(0)
    teacher = np.linalg.qr(rng.normal(size=(9, 4)))[0].T
    weights = {"V": rng.normal(size=(3, 9)), "W": rng.normal(size=(3, 9)), "V_star": teacher[:2]}
    weights["W_star"] = teacher[2:]
    run = odesim.integrate("liao", initial=weights, until=0.01, save_points=3)
    found = odesim.linearise(run)
    u = rng.normal(size=found.y.size)
    slope, h = linearisation.compiled(found.problem), 1e-5
    quotient = (slope(0.0, found.y + h * u) - slope(0.0, found.y - h * u)) / (2 * h)
    np.testing.assert_allclose(found.jacobian @ u, quotient, rtol=0, atol=1e-7 * np.abs(quotient).max())


def test_a_mode_is_an_eigenvector_by_components():
    run = odesim.integrate("liao", tier="riccati", m=3, m_star=2, d=100, until=0.2)
    found = odesim.linearise(run, method="differences")
    mode, v = found.mode(0), found.vectors[:, 0]
    # LAPACK balances a graded matrix first: its rounding, 1e-15, comes back multiplied by the ratio of the scales.
    np.testing.assert_allclose(found.jacobian @ v, found.eigenvalues[0] * v, atol=1e-8)
    assert mode["gamma2"].shape == (3, 2)
    np.testing.assert_allclose(mode["gamma2"].reshape(-1), v[6:12])
    assert (np.diag(mode["I2"]) == 0).all()


def test_a_run_from_a_file_is_rebuilt_with_its_norms(tmp_path):
    rng = np.random.default_rng(0)
    teacher = np.linalg.qr(rng.normal(size=(6, 2)))[0].T
    weights = {"V": 1.5 * rng.normal(size=(2, 6)), "W": rng.normal(size=(2, 6)), "V_star": teacher[:1]}
    weights["W_star"] = teacher[1:]
    run = odesim.integrate("liao", initial=weights, until=0.01, rtol=1e-10)
    whole = odesim.linearise(Case.build("liao", {}, initial=weights), method="differences")
    np.testing.assert_allclose(odesim.linearise(run, 0.0, method="differences").jacobian, whole.jacobian, atol=1e-9)


@pytest.mark.parametrize(
    ("system", "request_", "sentence"),
    [
        ("pruning", {"until": 2.0}, "tier recursion is a recursion"),
        ("pruning", {"tier": "flow", "until": 2.0}, "tier flow is a flow that jumps"),
        ("kawata", {"neurons": 1000, "until": 1e-3}, "the state has 5000 entries"),
    ],
)
def test_what_is_no_smooth_flow_is_refused(system, request_, sentence):
    run = odesim.integrate(system, **request_)
    with pytest.raises(UsageError, match=sentence):
        odesim.linearise(run)


def test_mistakes_are_named():
    case = Case.build("liao", {"m": 2, "m_star": 1, "d": 100})
    with pytest.raises(UsageError, match="at least 0"):
        odesim.linearise(case, -1.0)
    with pytest.raises(UsageError, match="no component 'gamma'"):
        odesim.linearise(case, state={"gamma": [1.0]})
    with pytest.raises(UsageError, match=r"must have shape \(2, 2\)"):
        odesim.linearise(case, state={"I2": np.eye(3)})
    with pytest.raises(UsageError, match="constant entry"):
        odesim.linearise(case, state={"I2": 2 * np.eye(2)})
    with pytest.raises(UsageError, match="a trajectory or a stored run"):
        odesim.linearise({"m": 2})
    sgd = odesim.simulate("liao", method="explicit", step_size=0.01, batch=10, m=2, m_star=1, d=10, until=0.02)
    with pytest.raises(UsageError, match="a run of explicit SGD"):
        odesim.linearise(sgd)
