"""A system and its tiers in one file, without another edit: every command of a flow takes them."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import odesim
from derivations.contract.system import System
from odesim.evidence.laboratory import Laboratory

PATH = str(Path(__file__).with_name("chain.py"))


@pytest.fixture(scope="module")
def chain() -> System:
    spec = importlib.util.spec_from_file_location("chain", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["chain"] = module
    spec.loader.exec_module(module)
    return module.SYSTEM


def gradient_flow(weights, s, until, steps=20000):
    """Classical Runge-Kutta steps on the gradient of the loss, written down by hand."""

    def slope(x):
        u, v, w = x
        gap = s - u * v * w
        return np.array([v * w * gap, u * w * gap, u * v * gap])

    x, h = np.array(weights), until / steps
    for _ in range(steps):
        a = slope(x)
        b = slope(x + h / 2 * a)
        c = slope(x + h / 2 * b)
        x = x + h / 6 * (a + 2 * b + 2 * c + slope(x + h * c))
    return x


@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_its_flow_is_the_gradient_flow(chain, backend):
    run = odesim.integrate(chain, backend=backend, n=3, scale=0.5, seed=1, until=4.0, rtol=1e-10)
    start = [run[name][0] for name in "uvw"]
    expected = gradient_flow(start, 1.0 + np.arange(3), 4.0)
    assert np.abs(np.array([run[name][-1] for name in "uvw"]) - expected).max() < 1e-8
    assert np.allclose(run["loss"][-1], ((1.0 + np.arange(3) - np.prod(expected, axis=0)) ** 2 / 2).sum(), atol=1e-8)


def test_its_second_tier_is_the_beginning_of_the_first(chain):
    asked = {"n": 2, "scale": 0.01, "seed": 3, "until": 5.0}
    exact, early = (odesim.integrate(chain, tier=tier, **asked) for tier in ("exact", "early"))
    assert np.abs(exact["u"] / early["u"] - 1).max() < 1e-4


@pytest.mark.parametrize("format", ["text", "latex", "latex-fragment", "python", "kernels", "program", "explanation"])
@pytest.mark.parametrize("tier", ["exact", "early"])
def test_its_equations_are_printed(chain, tier, format):
    assert "gap" in odesim.derive(chain, tier=tier, format=format) or format in ("kernels", "explanation")


def test_its_symbols_are_those_of_the_flow(chain):
    system = odesim.derive(chain, format="sympy", n=2)
    rates = system.lambdify()({"u": np.array([0.1, 0.2]), "v": np.array([0.3, 0.4]), "w": np.array([0.5, 0.6])})
    assert np.allclose(rates["u"], [0.15 * (1 - 0.015), 0.24 * (2 - 0.048)], rtol=1e-13)


def test_its_linearisation_has_the_rates_of_the_minimum(chain):
    run = odesim.integrate(chain, n=1, scale=1.0, seed=2, until=40.0, rtol=1e-10)
    u, v, w = (float(run[name][-1][0]) for name in "uvw")
    found = odesim.linearise(run)
    rate = (v * w) ** 2 + (u * w) ** 2 + (u * v) ** 2  # the Hessian of (1 - u v w)^2/2 at its minimum has rank one
    assert np.sort(np.asarray(found.eigenvalues).real)[0] == pytest.approx(-rate, rel=1e-6)


def test_the_command_takes_the_file(tmp_path):
    words = ("integrate", "--system", PATH, "-p", "n=2", "--out", tmp_path / "run", "--no-figures", "--quiet")
    done = subprocess.run(
        [sys.executable, "-m", "odesim", *map(str, words)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "trajectory.nc").is_file()


@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_one_set_of_functions_serves_runs_of_several_sizes(chain, backend):
    # A laboratory and JAX keep the functions of a tier; the sizes of its state belong to the arguments.
    laboratory = Laboratory(chain, backend=backend)
    for n in (2, 3, 1, 2):
        initial = laboratory.initial(n=n, seed=n)
        rates = laboratory.functions(initial).flow(initial.state)
        u, v, w = (initial.state[name] for name in "uvw")
        assert np.allclose(rates["u"], v * w * (1.0 + np.arange(n) - u * v * w), rtol=1e-13)
        run = odesim.integrate(chain, backend=backend, n=n, until=1.0)
        assert run["u"].shape[1] == n
