"""The compiled differentiation formulas: their parts against SciPy and NumPy, their runs against other integrators."""

import dataclasses

import numpy as np
import pytest

import derivations
from derivations.contract import Dynamics, load
from odesim.errors import UsageError
from odesim.flow import solve
from odesim.flow.problem import compile_functions, prepare
from odesim.flow.solvers import ndf, ndf_loops
from odesim.request.case import Case
from odesim.request.trajectory import Trajectory

LIAO = {"m": 6, "m_star": 3, "d": 10**6, "init": "orthogonal"}


@pytest.fixture(scope="module")
def loops():
    return ndf_loops


def liao(until: float = 2e3, save_points: int = 5, **options) -> Trajectory:
    return solve.solve(Case.build("liao", LIAO, until=until, save_points=save_points, **options))


def test_coefficients_are_those_of_scipy():
    import scipy.integrate

    scipy_bdf = scipy.integrate.BDF(lambda t, y: -y, 0.0, np.ones(1), 1.0)
    for ours, name in zip(ndf.formulas(), ("alpha", "gamma", "error_const"), strict=True):
        assert np.allclose(ours, getattr(scipy_bdf, name), atol=1e-15), name


def test_rescaled_differences_are_those_of_the_same_polynomial(loops):
    from scipy.integrate._ivp.bdf import change_D

    for order in range(1, 6):
        D = np.random.default_rng(order).normal(size=(8, 4))
        ours, theirs = D.copy(), D.copy()
        loops.rescale(ours, order, 0.37)
        change_D(theirs, order, 0.37)
        assert np.allclose(ours, theirs, atol=1e-13)


def test_blocks_are_inverted_and_applied(loops):
    labels = np.array([3, 1, 3, 0, 1, 3, 2, 3])
    blocks = ndf.Blocks(labels)
    J = np.where(labels[:, None] == labels, np.random.default_rng(0).normal(size=(8, 8)), 0.0)
    for b in range(4):
        entries = blocks.members[blocks.first[b] : blocks.first[b + 1]]
        blocks.J[blocks.place[b] : blocks.place[b + 1]] = J[np.ix_(entries, entries)].ravel()
    loops.invert(0.8, blocks.first, blocks.place, blocks.J, blocks.inverse)
    r, x = np.arange(1.0, 9.0), np.empty(8)
    loops.apply(blocks.pattern, blocks.inverse, r[blocks.members], x)
    assert np.allclose((np.eye(8) - 0.8 * J) @ x, r, atol=1e-12)


def test_derivatives_inside_the_blocks_are_those_of_the_flow(loops):
    problem = prepare(Case.build("liao", LIAO))
    run, coupled = liao(until=400.0, save_points=2), problem.equations.advance.coupled
    state = {c.name: run[c.name][-1] for c in problem.equations.state}
    y = problem.equations.start(dataclasses.replace(problem.initial, state=state))
    flow, blocks = problem.derivative, ndf.Blocks(coupled(problem.initial)(y))
    f = flow(0.0, y)
    used = loops.derivatives(y, f, 1e-7, blocks.pattern, blocks.J, *flow.program(y.size))
    sizes = np.diff(blocks.first)
    assert used == sizes.max() > 1
    b = int(np.argmax(sizes))
    entries = blocks.members[blocks.first[b] : blocks.first[b + 1]]
    for k, column in enumerate(entries):
        move = np.zeros(y.size)
        move[column] = 1e-6
        exact = (flow(0.0, y + move) - flow(0.0, y - move))[entries] / 2e-6
        found = blocks.J[blocks.place[b] :][: sizes[b] ** 2].reshape(sizes[b], sizes[b])[:, k]
        # Other blocks are displaced at the same time and felt through overlaps of 1e-3, at rates of about ten.
        assert np.abs(found - exact).max() < 0.05


@pytest.mark.parametrize("rtol", [1e-5, 1e-7])
def test_states_and_hitting_times_are_those_of_cvode_and_dop853(rtol: float):
    ours, cvode = liao(solver="NDF", rtol=rtol), liao(solver="CVODE", rtol=1e-9)
    for name in ("gamma1", "gamma2", "I2", "loss"):
        # An overlap that is 1e-6 beside its escape moves by the error of the escape's time, some rtol, times its rate.
        assert np.abs(ours[name] - cvode[name]).max() < 100 * rtol, name
    reached = np.isfinite(cvode["T_gamma2"])
    assert reached.sum() >= 3 and (np.isfinite(ours["T_gamma2"]) == reached).all()
    np.testing.assert_allclose(ours["T_gamma2"][reached], cvode["T_gamma2"][reached], rtol=2 * rtol)
    explicit = liao(until=60.0, solver="DOP853", rtol=1e-9)
    early = liao(until=60.0, solver="NDF", rtol=rtol)
    assert np.abs(early["gamma2"] - explicit["gamma2"]).max() < rtol


def test_evaluations_grow_with_the_logarithm_of_the_dimension():
    runs = [
        solve.solve(Case.build("liao", {**LIAO, "d": d}, until=2 * d**0.5, rtol=1e-6, save_points=2))
        for d in (10**6, 10**12)
    ]
    assert all("then NDF" in run.statistics["solver"] for run in runs)
    assert runs[1].statistics["evaluations"] < 3 * runs[0].statistics["evaluations"]  # the horizon grows a thousandfold


def test_saved_states_do_not_depend_on_how_many_are_saved():
    few, many = (liao(solver="NDF", rtol=1e-7, save_points=n) for n in (3, 41))
    assert np.array_equal(few["gamma2"][1], many["gamma2"][20])
    assert np.array_equal(few["T_gamma2"], many["T_gamma2"])


def tiers():
    """Every system, stage and tier with a clock of its own."""
    for name in derivations.names():
        for stage in derivations.system(name).stages:
            if isinstance(stage, Dynamics):
                yield from ((name, stage.name, tier) for tier in stage.tiers)


@pytest.mark.parametrize(("name", "stage", "tier"), list(tiers()))
def test_what_is_integrated_implicitly_is_the_flow_of_the_tier(name: str, stage: str, tier: str):
    """A tier derived from another took over its right-hand side: liao's linear tier was integrated as the exact one."""
    parameters = {"tier": tier} | ({"m": 3, "m_star": 3} if name == "liao" else {})
    try:
        case = Case.build(name, parameters, stage=stage)
    except UsageError:
        pytest.skip("the tier needs parameters of its own")
    equations = load(case.system.stage(stage).equations)(case.parameters, tier)
    if getattr(equations.advance, "coupled", None) is None:
        return
    problem = prepare(case)
    state = problem.start + 0.01 * np.random.default_rng(0).normal(size=problem.start.size)
    (implicit,) = ndf.right_hand_sides(problem.derivative, state[None])
    arrays = compile_functions(equations, "numpy")["flow"](0.0, state, *problem.arguments)
    np.testing.assert_allclose(implicit, arrays, rtol=1e-12, atol=1e-13)


def test_it_is_refused_where_nothing_says_what_is_coupled():
    with pytest.raises(UsageError, match="needs equations that say which entries are strongly coupled"):
        solve.solve(Case.build("kawata", {}, solver="NDF"))
    with pytest.raises(UsageError, match="backend numba"):
        liao(solver="NDF", backend="jax")


@pytest.mark.parametrize("workers", [1, 3])
def test_many_right_hand_sides_are_those_of_the_flow(workers: int):
    problem = prepare(Case.build("liao", LIAO))
    states = problem.start * np.linspace(0.5, 1.0, 7)[:, None]
    found = ndf.right_hand_sides(problem.derivative, states, workers)
    assert np.array_equal(found, [problem.functions["flow"](0.0, y, *problem.arguments) for y in states])


@pytest.mark.parametrize("ratio", [0.8, 1.0, 1.25])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_newton_converges_with_the_matrix_of_another_step_as_fast_as_it_says(monkeypatch, ratio, size):
    A = -size * np.array([1.0, 2.0, 5.0])
    monkeypatch.setattr(ndf_loops, "flow", lambda y, f, tables, kernels: np.multiply(A, y, out=f))
    blocks, c = ndf.Blocks(np.arange(3)), 0.7
    ndf_loops.invert(c / ratio, blocks.first, blocks.place, A.copy(), blocks.inverse)
    start, psi, scale = np.array([1.0, -2.0, 0.5]), np.array([0.1, 0.2, -0.3]), np.full(3, 1e3)
    work = (start, psi, scale, *np.empty((5, 3)))
    _, converged, rate = ndf_loops.newton.py_func(work, c, 1.0, 0.3, ratio, blocks.pattern, blocks.inverse, None, None)
    exact = (c * A * start - psi) / (1 - c * A)
    assert converged and rate <= max(abs(1 - ratio) / (1 + ratio), 0.2 * 0.3) + 1e-9
    assert np.abs(work[4] - exact).max() < 2 / scale[0]


def test_a_step_that_what_is_left_out_forbids_is_not_tried_again_at_once():
    # After learning the couplings between blocks, which Newton's matrix lacks, hold the steps down; each failure used
    # to renew the derivatives, dozens of evaluations, without avail: 6.9 a step; 3.06 if they are and the step is
    # remembered, 2.55 as it is.
    run, other = (
        solve.solve(Case.build("liao", {"m": 15, "m_star": 3}, until=1500.0, save_points=5, rtol=rtol, solver=name))
        for name, rtol in (("NDF", 1e-6), ("CVODE", 1e-8))
    )
    assert run.statistics["evaluations"] < 2.9 * run.statistics["steps"]
    assert np.allclose(run["loss"], other["loss"], rtol=1e-5, atol=0.0)
