"""Neurons of kawata as a declaration: one cluster at the origin, a local and a global task, the correlation loss."""

import math

import numpy as np
import pytest

import odesim
from derivations import kawata
from derivations.contract import load
from odesim.flow.problem import compile_functions

LOCAL = (0.0, 0.0, 0.0, 0.8, 0.6)
GLOBAL = (0.0, 0.0, 0.0, 0.6, -0.8)
"""Orthonormal Hermite coefficients of the two links."""
WEIGHT = 0.7
READOUT = np.array([1.0, -1.0, 1.0])
KAPPA, XI = np.array([[0.3], [-0.4], [0.6]]), np.array([0.2, 0.5, -0.1])
UNITS = {
    "relu": ("relu(w)", 0.0),
    "erf": ("erf(w/sqrt(2))", 0.0),
    "probit": ("probit(w)", 0.0),
    "exp": ("exp(w + shift)", -0.4),
    "cos": ("cos(w + shift)", 0.9),
    "polynomial": ("0.5*He(3, w + shift)/sqrt(6) + He(4, w + shift)/sqrt(24)", 0.3),
}
"""Activation of kawata -> (unit of the declaration, bias of the neurons)."""


def link(coefficients, factor=1.0):
    """A link as an expression: `factor` sum_i c_i He_i / sqrt(i!)."""
    terms = [f"({c})*He({i}, w)/sqrt({math.factorial(i)})" for i, c in enumerate(coefficients) if c]
    return f"{factor}*({' + '.join(terms)})"


def declared(unit, shift):
    """kawata without routing: C = M = J = 1 and rho = 0."""
    return odesim.declare(
        student={"unit": unit, "units": 3},
        teacher={"local": {"unit": link(LOCAL)}, "global": {"unit": link(GLOBAL, WEIGHT)}},
        training={"loss": "correlation", "weights": "sphere"},
        parameters={"shift": shift} if "shift" in unit else {},
    )


def start(shift):
    """(arrays for the declaration, arrays for kawata) of one state; kawata's neurons need not know each other."""
    m = np.hstack([KAPPA, XI[:, None]])
    mutual = m @ m.T + np.diag(1 - (m**2).sum(1))
    ours = {"Q_ww": mutual, "local_M_ww": KAPPA, "global_M_ww": XI[:, None], "a": READOUT}
    theirs = {"kappa": KAPPA, "xi": XI, "nu": np.zeros((3, 1)), "a": READOUT, "b": np.full(3, shift)}
    return ours, theirs


def kawatas(activation):
    """The parameters of kawata for the same neurons."""
    sigma = {"sigma": (0.0, 0.0, 0.0, 0.5, 1.0)} if activation == "polynomial" else {}
    return {"C": 1, "rho": 0.0, "s": (WEIGHT,), "link": (LOCAL, GLOBAL), "activation": activation, **sigma}


def derivative(system, arrays, stage, **parameters):
    """The derivative of every component at given arrays, by array operations."""
    p = system.parameters(**parameters)
    p = load(system.read_initial)(arrays, p) if system.name == "kawata" else p
    initial = load(system.stage(stage).enter)(p, arrays, np.random.default_rng(0))
    equations = load(system.stage(stage).equations)(initial.parameters, "exact")
    flow = compile_functions(equations, "numpy")["flow"]
    return equations.unpack(flow(0.0, equations.start(initial), *equations.arguments(initial)))


@pytest.mark.parametrize("activation", UNITS)
def test_a_neuron_of_kawata_moves_as_its_declaration(activation):
    unit, shift = UNITS[activation]
    ours, theirs = start(shift)
    one = derivative(declared(unit, shift), ours, "train")
    two = derivative(kawata.SYSTEM, theirs, "phase1", **kawatas(activation))
    assert np.abs(two["kappa"]).max() > 0.01
    assert one["local_M_ww"] == pytest.approx(two["kappa"], rel=1e-12, abs=1e-13)
    assert one["global_M_ww"][:, 0] == pytest.approx(two["xi"], rel=1e-12, abs=1e-13)
    assert np.diag(one["Q_ww"]) == pytest.approx(np.zeros(3), abs=1e-14)


@pytest.mark.slow  # numba compiles both
def test_a_trajectory_of_kawata_is_that_of_its_declaration():
    unit, shift = UNITS["exp"]
    ours, theirs = start(shift)
    fine = {"rtol": 1e-13, "atol": 1e-15, "until": 3.0, "save_points": 5}
    one = odesim.integrate(declared(unit, shift), initial=ours, **fine)
    two = odesim.integrate("kawata", initial=theirs, **kawatas("exp"), **fine)
    assert np.abs(two["kappa"][-1] - two["kappa"][0]).max() > 0.1
    assert one["local_M_ww"] == pytest.approx(two["kappa"], abs=1e-11)
    assert one["global_M_ww"][:, :, 0] == pytest.approx(two["xi"], abs=1e-11)
    assert one["loss"] == pytest.approx(two["loss"], abs=1e-11)
