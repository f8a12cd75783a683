"""The examples of docs/extend.md do what the page says."""

import re
from pathlib import Path

import numpy as np
import pytest

import odesim
from derivations.claim import Law
from derivations.laws.sensitivity import judged
from odesim.flow import solvers
from odesim.flow.solvers.catalogue import catalogue, choose

PAGE = (Path(__file__).parents[1] / "docs" / "extend.md").read_text(encoding="utf-8")


def example(heading: str) -> str:
    """The code below a heading of the page."""
    found = re.search(rf"^## {heading}\n.*?```python\n(.*?)```", PAGE, flags=re.S | re.M)
    assert found is not None
    return found.group(1)


@pytest.fixture
def offered(tmp_path, monkeypatch):
    """The catalogue with the integrator of the page."""
    (tmp_path / "rk4.py").write_text(example("An integrator"))
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
    with pytest.raises(odesim.UsageError, match="no error control"):
        odesim.integrate("liao", m=4, m_star=2, d=100, until=1.0, solver="RK4")


def test_without_the_file_it_is_unknown():
    with pytest.raises(odesim.UsageError, match="no solver 'RK4'"):
        odesim.integrate("liao", m=2, m_star=1, d=100, until=1.0, solver="RK4")


def test_a_class_with_two_methods_is_a_law():
    made: dict = {}
    exec(example("A law"), made)
    law = made["Increases"](0.5)
    assert isinstance(law, Law)
    samples = [({"d": d}, seed, float(d) + 0.1 * seed) for d in (1, 2, 3) for seed in range(3)]
    found = judged(law, samples)
    assert found.answer == "confirmed"
    (seen,) = found.sensitivity
    assert seen.size == 1.0  # from a growth of .5, which is asked for, to one of -.5, which refutes
    assert law.judge([(point, seed, -value) for point, seed, value in samples]).answer == "refuted"
    assert law.judge([*samples, ({"d": 4}, 0, float("nan"))]).answer == "inconclusive"
