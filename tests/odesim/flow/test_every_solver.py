"""No integrator is offered that no test has run: each takes a small flow to the end, within what it was asked for."""

import numpy as np
import pytest

import odesim
from odesim.flow.solvers.catalogue import catalogue
from odesim.request.case import EULER

EXACT = {"m": 2, "m_star": 1, "d": 100, "until": 2.0, "seed": 3, "save_points": 3}
DEFAULT = "Dopri8"
"""The solver of JAX that takes the exact tier: XLA takes half a minute to compile it for each, minutes for some."""


@pytest.fixture(scope="module")
def reference():
    """The run by tier, at the tightest tolerance."""
    return {
        tier: odesim.integrate("liao", **EXACT, tier=tier, solver="DOP853", rtol=1e-12) for tier in ("exact", "riccati")
    }


# Kvaerno's methods are two of one family, each twenty seconds of tracing.
@pytest.mark.parametrize(
    "solver",
    [pytest.param(name, marks=pytest.mark.slow) if name == "Kvaerno3" else name for name in catalogue()],
)
def test_every_solver_that_is_offered_reaches_the_end(solver, reference):
    traced = catalogue()[solver].traced
    tier = "riccati" if traced and solver != DEFAULT else "exact"
    backend = "jax" if traced else "numba"
    run = odesim.integrate("liao", **EXACT, tier=tier, solver=solver, backend=backend, rtol=1e-7)
    assert run.outcome.kind == "completed" and run.statistics["steps"] > 0
    assert np.abs(run["gamma2"][-1] - reference[tier]["gamma2"][-1]).max() < 1e-6


def test_gradient_descent_at_a_given_step_is_one_of_them(reference):
    run = odesim.integrate("liao", **EXACT, solver=EULER, step=1e-3)
    assert np.abs(run["gamma2"][-1] - reference["exact"]["gamma2"][-1]).max() < 1e-2
