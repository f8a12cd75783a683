"""Values near a bound are as accurate as values near zero: losses that fall to zero, and numerical starts."""

import numpy as np
import pytest

import odesim
from derivations.liao import initial
from odesim.errors import UsageError
from odesim.flow import pipeline
from odesim.flow.assemble import _confirmed
from odesim.flow.problem import prepare
from odesim.request.case import Case
from odesim.request.trajectory import Outcome

COMPONENTS = ("gamma1", "gamma2", "zeta1", "zeta2", "I1", "I2", "I3")
SMALL = {"m": 5, "m_star": 2, "d": 10**5, "init": "orthogonal"}


def stages(rtol, backend=None, **sizes):
    request = {**SMALL, **sizes}
    ends = {"train": 250, "tune": 300}
    return pipeline.run(pipeline.build("liao", request, "all", until=ends, save_points=9, rtol=rtol, backend=backend))


@pytest.mark.parametrize("backend", ["numba", pytest.param("jax", marks=pytest.mark.slow)])
def test_the_loss_falls_to_its_rounding_after_recovery_and_is_never_negative(backend):
    _, pruned, tuned = stages(1e-8, backend)
    assert (tuned["loss"] >= 0).all() and (pruned["pruning_loss"] >= 0).all()
    assert tuned["loss"][4:].max() < 1e-12  # relative to overlaps near 1, it stayed at 1e-8


@pytest.mark.slow
def test_the_default_solver_keeps_its_tolerance_in_fine_tuning():
    sizes = {"m": 12, "m_star": 3, "d": 1000, "init": "random"}
    reference, found = (stages(rtol, **sizes) for rtol in (1e-13, 1e-10))
    for exact, run in zip(reference, found, strict=True):
        assert max(np.abs(run[name] - exact[name]).max() for name in COMPONENTS) < 10 * 1e-10


def test_a_negative_loss_beyond_rounding_is_left_to_be_seen():
    from derivations.equations.rounding import mean_square

    assert mean_square(-1e-15, 3.0, np.where) == 0.0
    assert mean_square(-1e-12, 3.0, np.where) == -1e-12
    assert mean_square(2e-16, 3.0, np.where) == 2e-16


def test_a_start_that_overflows_is_refused():
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=(3, 8)) for name in ("V", "W")}
    frame = np.linalg.qr(rng.normal(size=(8, 4)))[0].T
    arrays |= {"V_star": frame[:2], "W_star": frame[2:]}
    arrays["V"] = arrays["V"] * 1e200
    with pytest.raises(UsageError, match="row 0 of V is too large"):
        odesim.integrate("liao", initial=arrays, until=1.0)


def test_a_run_with_a_number_that_is_none_is_never_completed():
    problem = prepare(Case.build("liao", {"m": 2, "m_star": 1}))
    times, states = np.array([0.0, 1.0, 2.0]), np.zeros((3, 4))
    states[2, 1] = np.inf
    outcome = _confirmed(problem, Outcome("completed", 2.0, ""), times, states)
    assert outcome.kind == "failed" and outcome.time == 1.0


def test_teachers_without_an_expert_left_have_none():
    assert initial.greedy_matching(np.array([[0.1, 0.5, 0.2]])).tolist() == [-1, 0, -1]
    assert initial.greedy_matching(np.zeros((0, 2))).tolist() == [-1, -1]
