"""Declarations of many kinds, small, which the tests of their models share."""

import functools

import numpy as np

from derivations.declare import initial, parameter_class, reading, system
from derivations.declare.model import model

BIAS = {"b": {"default": 0.2, "per": "unit"}}
TABLES = {
    "relu, trained readout": {
        "student": {"unit": "relu(w)", "units": 3, "output": "trained"}, "teacher": {"units": 2, "unit": "relu(w)"},
        "training": {"trained": ["w", "a"]}, "start": {"a": 0.7},
    },
    "erf, trained readout": {
        "student": {"unit": "erf(w/sqrt(2))", "units": 3, "output": "trained"},
        "teacher": {"units": 2, "unit": "erf(w/sqrt(2))", "gram": 0.3},
    },
    "logistic times He_3": {
        "student": {"unit": "logistic(beta*v)*He(3, w)", "units": 2}, "parameters": {"beta": 1.5},
    },
    "probit times tanh": {"student": {"unit": "probit(v)*tanh(w)", "units": 3, "output": "mean"}},
    "He_2, noise and decay": {
        "student": {"unit": "He(2, w)", "units": 2}, "teacher": {"noise": 0.4}, "training": {"decay": 0.3},
    },
    "erf with biases": {
        "student": {"unit": "erf(w + b)", "units": 3, "output": "trained"}, "teacher": {"unit": "erf(w)", "units": 2},
        "parameters": BIAS,
    },
    "frozen slot": {"student": {"unit": "logistic(v)*w", "units": 2}, "training": {"trained": ["w"], "decay": 0.2}},
    "correlation": {"student": {"unit": "tanh(w)", "units": 2, "output": "root"}, "training": {"loss": "correlation"}},
    "logistic loss": {"student": {"unit": "tanh(w)", "units": 2}, "training": {"loss": "logistic"}},
    "hinge": {"student": {"unit": "silu(w)", "units": 2}, "training": {"loss": "hinge"}, "teacher": {"unit": "w"}},
    "own loss": {
        "student": {"unit": "gelu(w)", "units": 2, "output": "1/j"},
        "training": {"loss": "log(1 + (f - y)^2/scale) + erf(f*y)"}, "parameters": {"scale": 2.0},
    },
    "softmax of four": {
        "student": {"unit": "softmax(2*v + b)*He(2, w)", "units": 4, "output": "trained"},
        "teacher": {"unit": "softmax(v)*He(2, w)", "units": 2}, "parameters": BIAS,
    },
    "top1 of four": {"student": {"unit": "top1(v)*softplus(w)", "units": 4}, "teacher": {"units": 2}},
    "two groups": {
        "student": {
            "fast": {"unit": "erf(w + b)", "units": 2, "output": "trained"},
            "slow": {"unit": "relu(w)*cos(v)", "units": 3, "output": "mean"},
        },
        "teacher": {"one": {"unit": "tanh(w)", "units": 2}, "two": {"unit": "abs(w)", "units": 1}},
        "parameters": BIAS,
    },
    "functions of numbers": {
        "student": {"unit": "erf(0.5)*w + probit(beta)*0.1*w^2 + gelu(-1.5)*tanh(w) + softplus(2)^beta", "units": 2},
        "parameters": {"beta": 1.5},
    },
    "wick": {
        "student": {"unit": "wick(2, w)", "units": 2}, "teacher": {"unit": "wick(2, w)", "units": 2, "noise": 0.1},
    },
    "wick in a share": {"student": {"unit": "softmax(wick(2, v))*wick(3, w)", "units": 3}, "start": {"norm": 0.6}},
    "normalised": {
        "student": {"unit": "logistic(v)*He(3, w)", "units": 2}, "training": {"weights": "normalised"},
        "start": {"norm": 1.7},
    },
    "normalised top1": {  # the field of the router moves nothing but the share
        "student": {"unit": "top1(v)*He(3, w)", "units": 3}, "teacher": {"unit": "He(3, w)", "units": 2},
        "training": {"weights": "normalised", "limit": "online"}, "start": {"norm": 1.2},
    },
    "normalised wick": {"student": {"unit": "wick(3, w) + softplus(w)"}, "training": {"weights": "normalised"}},
    "sphere": {
        "student": {"unit": "He(3, w)", "units": 2, "output": "trained"}, "teacher": {"units": 1},
        "training": {"weights": "sphere", "loss": "correlation"}, "start": {"norm": 1.3},
    },
}  # fmt: skip
"""Every kind of unit, output, loss and constraint at least once."""


@functools.cache
def made(name, d=50, **changes):
    """A model, its parameters and its initial condition, with readouts and biases that differ between units."""
    kind = system.system(reading.declaration(TABLES[name])).parameters
    parameters = kind(**{"d": d, **changes})
    start = initial.enter(parameters, None, np.random.default_rng(5))
    rng = np.random.default_rng(6)
    for number, word, count in parameter_class.rows(parameters).scalars:
        start.state[parameters.declaration.students[number].named(word)] += 0.3 * rng.normal(size=count)
    return model(parameters), parameters, start
