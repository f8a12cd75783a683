"""A new integrator is one file: written in a test, it is offered, checked and followed like the others."""

import numpy as np
import pytest

import odesim
from odesim.flow import solvers
from odesim.flow.solvers.catalogue import catalogue, choose

RK4 = """
from odesim.flow.solvers.step import Segment, Solver, cubic_interior


def one(f, t, y, h):
    a = f(t, y)
    b = f(t + h / 2, y + h / 2 * a)
    c = f(t + h / 2, y + h / 2 * b)
    d = f(t + h, y + h * c)
    return y + h / 6 * (a + 2 * b + 2 * c + d)


def steps(leg):
    f, t, y = leg.problem.slope(), leg.t, leg.y
    while t < leg.until:
        end = min(t + 0.01, leg.until)
        after = one(f, t, y, end - t)
        leg.statistics.steps += 1
        leg.statistics.evaluations += 4
        dense = lambda s, t=t, y=y: one(f, t, y, s - t)
        yield Segment(t, y, end, after, dense, cubic_interior(t, y, f(t, y), end, after, f(end, after)))
        t, y = end, after


def objection(problem):
    return "RK4 of this test takes small flows alone" if problem.start.size > 20 else ""


SOLVERS = (Solver("RK4", steps, objection=objection),)
"""


@pytest.fixture
def offered(tmp_path, monkeypatch):
    """The catalogue with the integrator of this test."""
    (tmp_path / "rk4.py").write_text(RK4)
    monkeypatch.setattr(solvers, "__path__", [*solvers.__path__, str(tmp_path)])
    catalogue.cache_clear()
    yield
    catalogue.cache_clear()


def test_one_solver_of_each_kind_is_the_default():
    assert choose("numba", None).name == "automatic" and choose("jax", None).name == "Dopri8"
    assert [solver.name for solver in catalogue().values() if solver.default and solver.traced] == ["Dopri8"]


def test_a_file_in_the_folder_is_an_integrator(offered):
    request = {"m": 2, "m_star": 1, "d": 100, "until": 12.0, "seed": 3, "save_points": 4}
    run, reference = (odesim.integrate("liao", **request, solver=solver) for solver in ("RK4", "DOP853"))
    assert run.outcome.kind == "completed" and run.statistics["solver"] == "RK4"
    # A step of .01 has an error of 1e-10 times the fifth derivative.
    assert np.abs(run["gamma2"] - reference["gamma2"]).max() < 1e-7
    reached = np.isfinite(reference["T_gamma2"])
    assert reached.any() and np.abs(run["T_gamma2"][reached] - reference["T_gamma2"][reached]).max() < 1e-6


def test_what_it_cannot_take_is_refused_in_its_words(offered):
    with pytest.raises(odesim.UsageError, match="takes small flows alone"):
        odesim.integrate("liao", m=4, m_star=2, d=100, until=1.0, solver="RK4")


def test_without_the_file_it_is_unknown():
    with pytest.raises(odesim.UsageError, match="no solver 'RK4'"):
        odesim.integrate("liao", m=2, m_star=1, d=100, until=1.0, solver="RK4")
