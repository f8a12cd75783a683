"""Exact line search on two eigenvalues: where its step and its ratio of residuals end.

By right-hand sides at constant steps: the step at a state is the minimiser of d(loss)/dt, a parabola in the step, and
the ratio v_2/v_1 of the squared residuals in the two blocks rests where both shrink at one rate.  And by a run whose
step is declared as a function of the order parameters in the two blocks.
"""

import dataclasses

import numpy as np
import pytest
from scipy import optimize

import odesim
from derivations.declare import exact, initial
from odesim.flow.problem import compile_functions
from tests.derivations.declare import judged
from tests.derivations.declare.test_inputs import parameters_of

LIMITS = {
    1 / 2: (1.16775006101, 2.35078105936),
    1 / 4: (0.869834217070, 10.1443097271),
    1 / 8: (0.483676752743, 50.0348884349),
    1 / 16: (0.247993967245, 226.008293862),
    1 / 32: (0.124752290686, 962.002013964),
}
"""Step and v_2/v_1 at late times by the second eigenvalue; their last digit is good.

From the program to a paper on high-dimensional line search, github.com/amackenzie1/highline2024, run to rest.
"""


class Residuals:
    """Motion of v_l = |w - w*|^2 in two blocks of eigenvalues 1 and `low`, halves of the coordinates."""

    def __init__(self, low):
        self.eigenvalue = np.array([1.0, low])
        self.parameters = parameters_of(
            {"student": {"unit": "w"}, "teacher": {"unit": "w"}, "inputs": {"blocks": [[1.0, 0.5], [low, 0.5]]},
             "training": {"limit": "online"}}
        )  # fmt: skip
        self.functions = compile_functions(exact.equations(self.parameters), "numpy")

    def motion(self, v, step):
        """dv/dt (2,) of a student that is a multiple of the teacher in each block."""
        share = np.array([0.5, 0.5])  # of the teacher's squared norm
        multiple = 1 + np.sqrt(v / share)
        state = {"Q_ww": (multiple**2 * share)[:, None, None], "M_ww": (multiple * share)[:, None, None]}
        parameters = dataclasses.replace(self.parameters, step=step)
        start = initial.enter(parameters, state, np.random.default_rng(0))
        equations = exact.equations(parameters)
        y = equations.start(start)
        rates = equations.unpack(self.functions["flow"](0.0, y, *equations.arguments(start)))
        return rates["Q_ww"][:, 0, 0] - 2 * rates["M_ww"][:, 0, 0]

    def best_step(self, v):
        """The step at which the loss, a parabola in it, falls fastest."""
        one, two = (self.eigenvalue @ self.motion(v, step) for step in (1.0, 2.0))
        return (2 * one - two / 2) / (2 * one - two)

    def drift(self, ratio):
        """d log(v_2/v_1)/dt at a ratio, with the best step."""
        v = np.array([1.0, ratio])
        rates = self.motion(v, self.best_step(v)) / v
        return rates[1] - rates[0]


@pytest.mark.parametrize("low", LIMITS)
def test_line_search_ends_where_the_equations_of_a_model_have_a_zero(low):
    step, ratio = LIMITS[low]
    residuals = Residuals(low)
    found = optimize.brentq(residuals.drift, ratio / 2, 2 * ratio, xtol=1e-12 * ratio, rtol=1e-14)
    # The reference is good to its last digit, the twelfth.
    assert found == pytest.approx(ratio, rel=2e-11)
    assert residuals.best_step(np.array([1.0, found])) == pytest.approx(step, rel=2e-11)
    assert residuals.drift(0.9 * found) > 0 > residuals.drift(1.1 * found)  # it attracts
    fixed = residuals.motion(np.array([1.0, found]), step)
    assert (fixed < 0).all()  # and both residuals fall there


@pytest.mark.parametrize("low", [1 / 2, 1 / 8])
def test_another_step_has_another_ratio(low):
    """The control: with nine tenths of the best step the ratio at rest is not that of line search."""
    residuals, ratio = Residuals(low), LIMITS[low][1]

    def drift(at):
        v = np.array([1.0, at])
        rates = residuals.motion(v, 0.9 * residuals.best_step(v)) / v
        return rates[1] - rates[0]

    assert abs(optimize.brentq(drift, ratio / 10, 10 * ratio) / ratio - 1) > 1e-2


def searching(low):
    """The model with the step of line search, written in the residuals of the two blocks."""
    one, two = (f"(Q_ww[{block},1,1] - 2*M_ww[{block},1,1] + 0.5)" for block in (1, 2))
    return odesim.declare(
        name="searching", student={"unit": "w"}, teacher={}, inputs={"blocks": [[1.0, 0.5], ["low", 0.5]]},
        training={"limit": "online", "step": f"2*({one} + low^2*{two})/(({one} + low*{two})*(1 + low^2))"},
        parameters={"low": low}, start={"norm": 1e-6, "overlap": 0.0},
    )  # fmt: skip


@pytest.mark.parametrize(("low", "until"), [(1 / 2, 18), (1 / 4, 40), (1 / 8, 90)])
def test_a_declared_line_search_runs_there(low, until):
    step, ratio = LIMITS[low]
    for backend in ("numba", "jax"):
        run = odesim.integrate(searching(low), d=10**9, until=until, save_points=3, rtol=1e-11, backend=backend)
        v = (np.asarray(run["Q_ww"]) - 2 * np.asarray(run["M_ww"]))[-1, :, 0, 0] + 0.5
        # The residuals have fallen to 1e-8, of which rounding leaves eight digits.
        assert v[1] / v[0] == pytest.approx(ratio, rel=5e-6)
        assert 2 * (v[0] + low**2 * v[1]) / ((v[0] + low * v[1]) * (1 + low**2)) == pytest.approx(step, rel=1e-6)


@pytest.mark.parametrize("method", ["compressed", "explicit"])
def test_sgd_searches_by_block(method):
    model, times, count = searching(1 / 2), [0, 0.5, 1, 2], 48
    flow = odesim.integrate(model, d=10**9, save_at=times)
    run = odesim.simulate(model, method=method, d=1000, seeds=count, save_at=times)
    z = judged.z_of_runs(run, flow, ("Q_ww", "M_ww"))
    assert np.sqrt((z**2).mean()) < 1.8 and np.abs(z).max() < 4.5


def test_blocks_that_are_not_there():
    with pytest.raises(odesim.UsageError, match="Q_ww is 2 x 1 x 1"):
        odesim.declare(
            student={"unit": "w"}, teacher={}, inputs={"blocks": [[1.0, 0.5], [0.5, 0.5]]},
            training={"limit": "online", "step": "Q_ww[3,1,1]"},
        )  # fmt: skip
    with pytest.raises(odesim.UsageError, match="Q_ww is 1 x 1"):
        odesim.declare(student={"unit": "w"}, teacher={}, training={"limit": "online", "step": "Q_ww[1,1,1]"})
