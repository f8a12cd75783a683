"""The preconditioner is the inverse of what it says, and the coupling of `liao` holds all that is stiff."""

import dataclasses

import numpy as np
import pytest

from odesim.flow import solve
from odesim.flow.problem import Problem, prepare
from odesim.flow.solvers import cvode
from odesim.flow.solvers.coupled import CoupledBlocks
from odesim.flow.solvers.cvode import cvode_steps
from odesim.flow.solvers.step import Span, Statistics
from odesim.request.case import Case

LABELS = np.array([7, 0, 2, 7, 2, 2, 5])


def coupled_flow(t: float, y: np.ndarray) -> np.ndarray:
    """A cubic flow whose entries feel those of the same label only."""
    matrix = np.where(LABELS[:, None] == LABELS, np.random.default_rng(1).normal(size=(7, 7)), 0.0)
    return matrix @ (y - y**3 / 3)


def jacobian(flow, y: np.ndarray) -> np.ndarray:
    """Central differences."""
    moves = np.eye(y.size) * 1e-5
    return np.array([(flow(0.0, y + move) - flow(0.0, y - move)) / 2e-5 for move in moves]).T


def test_the_preconditioner_inverts_a_jacobian_of_blocks():
    y, statistics = np.random.default_rng(0).normal(size=7), Statistics("")
    blocks, renewed = CoupledBlocks(coupled_flow, lambda y: LABELS, statistics), [0]
    blocks.setup(0.0, y, coupled_flow(0.0, y), False, renewed, 0.7)
    assert renewed == [1] and statistics.evaluations == 3  # as many as the largest block has entries
    right, solution = np.arange(1.0, 8.0), np.empty(7)
    blocks.solve(0.0, y, right, right, solution, 0.7, 0.0, 1)
    # One-sided differences of 1e-8 leave errors of some 1e-8 in the Jacobian.
    assert np.allclose((np.eye(7) - 0.7 * jacobian(coupled_flow, y)) @ solution, right, atol=1e-6)


def test_blocks_are_kept_for_another_step_size_and_renewed_when_asked():
    y, statistics = np.full(7, 0.3), Statistics("")
    blocks, renewed = CoupledBlocks(coupled_flow, lambda y: LABELS, statistics), [1]
    slope, solution = coupled_flow(0.0, y), np.empty(7)
    blocks.setup(0.0, y, slope, False, renewed, 0.7)
    blocks.setup(0.0, y, slope, True, renewed, 0.1)
    assert renewed == [0] and statistics.evaluations == 3
    blocks.solve(0.0, y, slope, np.ones(7), solution, 0.1, 0.0, 1)
    assert np.allclose((np.eye(7) - 0.1 * jacobian(coupled_flow, y)) @ solution, 1.0, atol=1e-6)
    blocks.setup(0.0, y, slope, False, renewed, 0.1)
    assert renewed == [1] and statistics.evaluations == 6


def plateau(init: str, teacher: dict) -> tuple[Problem, np.ndarray]:
    """A state of liao after the first pairs have recovered and before all have."""
    case = Case.build("liao", {"m": 6, "m_star": 3, "d": 10**6, "init": init, **teacher}, until=400.0, save_points=2)
    problem = prepare(case)
    run = solve.solve(case)
    final = {c.name: run.state[c.name].values[-1] for c in problem.equations.state}
    return problem, problem.equations.start(dataclasses.replace(problem.initial, state=final))


@pytest.mark.parametrize("init", ["orthogonal", "random"])
def test_outside_the_blocks_of_liao_nothing_is_stiff(init: str):
    problem, y = plateau(init, {})
    flow, arguments = problem.functions["flow"], problem.arguments
    J = jacobian(lambda t, y: flow(t, y, *arguments), y)
    labels = problem.equations.advance.coupled(problem.initial)(y)
    same = labels[:, None] == labels
    assert np.abs(np.where(same, J, 0.0)).max() > 1.0  # pairs have recovered
    # Entries of different clusters couple through overlaps of about 1 / sqrt(d), times rates up to 22.
    assert np.abs(np.where(same, 0.0, J)).max() < 100 / np.sqrt(problem.case.parameters.d)


def test_the_preconditioner_spares_evaluations_and_changes_no_hitting_time():
    case = Case.build("liao", {"m": 6, "m_star": 3, "d": 10**6, "init": "orthogonal"}, until=2e3, save_points=2,
                      rtol=1e-7, solver="CVODE")  # fmt: skip
    with_blocks = solve.solve(case)
    problem = prepare(case)
    statistics, end = Statistics("CVODE"), problem.start
    span = Span(0.0, problem.start, 2e3, *problem.tolerances(*cvode.TOLERANCE), statistics)
    for segment in cvode_steps(problem.slope(), span):
        end = segment.y1
    assert with_blocks.statistics["evaluations"] < 0.75 * statistics.evaluations  # 0.62; at d = 1e12 it is a sixth
    components = problem.equations.unpack(end)
    for c in problem.equations.state:
        assert np.allclose(with_blocks.state[c.name].values[-1], components[c.name], atol=1e-6)
