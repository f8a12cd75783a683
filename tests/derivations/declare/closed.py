"""Declarations that many tests share, one for each thing that a declaration can say."""

from collections.abc import Iterable
from typing import Any

import pytest

from derivations.contract import System
from derivations.declare import reading, system

ERF = "erf(w/sqrt(2))"
BETA = {"beta": {"default": 0.8, "above": 0.0}}
EXACT: dict[str, dict[str, Any]] = {
    "erf": {"student": {"unit": ERF, "units": 3}, "teacher": {"units": 2, "noise": 0.3}},
    "erf slopes": {
        "student": {"unit": "2*erf(w)", "units": 2, "output": "trained"},
        "teacher": {"unit": "erf(-w/2) + w", "units": 2},
    },
    "relu": {"student": {"unit": "relu(w)", "units": 3, "output": "trained"}, "teacher": {"units": 2}},
    "relu of a polynomial teacher": {
        "student": {"unit": "relu(w) - abs(w)/3", "units": 2, "output": "root"},
        "teacher": {"unit": "He(2, w)", "units": 2, "gram": 0.2},
    },
    "gelu": {"student": {"unit": "gelu(w)", "units": 2}, "teacher": {"unit": "relu(w)", "units": 2}},
    "polynomial": {
        "student": {"unit": "He(3, w) + w^2", "units": 2, "output": "mean"},
        "teacher": {"units": 2, "output": "1/j"},
        "training": {"decay": 0.1},
    },
    "wick": {"student": {"unit": "wick(2, w)", "units": 3}, "teacher": {"units": 2}},
    "wick 3 online": {
        "student": {"unit": "wick(3, w)", "units": 2},
        "teacher": {"units": 1, "noise": 0.2},
        "training": {"limit": "online", "step": 0.1},
    },
    "liao": {
        "student": {"unit": "logistic(beta*v)*He(3, w)", "units": 2},
        "teacher": {"units": 1},
        "training": {"weights": "normalised"},
        "parameters": BETA,
    },
    "tanh sphere": {
        "student": {"unit": "tanh(w)", "units": 2},
        "teacher": {"unit": "logistic(2*w)", "units": 2},
        "training": {"weights": "sphere"},
    },
    "erf with biases": {
        "student": {"unit": "erf(w/sqrt(2) + b)", "units": 3, "output": "trained"},
        "teacher": {"unit": "erf(-w + 0.4)", "units": 2, "gram": 0.3},
        "parameters": {"b": {"default": 0.3, "per": "unit"}},
    },
    "relu with biases": {
        "student": {"unit": "relu(w + b) - relu(-w - 0.4)/3", "units": 2, "output": "trained"},
        "teacher": {"unit": "relu(2*w - 0.5) + step(w)", "units": 2},
        "parameters": {"b": {"default": 0.3, "per": "unit"}},
    },
    "biased polynomial": {
        "student": {"unit": "He(2, w) + b*w + b^2", "units": 2, "output": "trained"},
        "teacher": {"unit": "He(2, w)", "units": 1},
        "parameters": {"b": {"default": 0.3, "per": "unit"}},
    },
    "cosine": {"student": {"unit": "cos(w + 1) + sin(2*w)", "units": 2}, "teacher": {"unit": "cos(w)", "units": 1}},
    "exponential": {"student": {"unit": "exp(w/2)", "units": 2, "output": "mean"}, "teacher": {"units": 1}},
    "correlation": {
        "student": {"unit": "He(3, w)", "units": 2},
        "teacher": {"units": 2},
        "training": {"loss": "correlation", "weights": "sphere"},
    },
    "erf online": {
        "student": {"unit": ERF, "units": 3},
        "teacher": {"units": 2, "noise": 0.3},
        "training": {"limit": "online", "step": 0.7, "batch": 2},
    },
    "erf sphere online": {
        "student": {"unit": ERF, "units": 2},
        "teacher": {"units": 2},
        "training": {"limit": "online", "step": 0.7, "weights": "sphere"},
    },
    "phase retrieval": {
        "student": {"unit": "w^2", "units": 1},
        "teacher": {"units": 1, "noise": 0.4},
        "training": {"limit": "online", "step": 0.1, "weights": "sphere"},
    },
    "two slots online": {
        "student": {"unit": "v*He(2, w)", "units": 2},
        "teacher": {"units": 1, "noise": 0.2},
        "training": {"limit": "online", "step": 0.1},
    },
    "two groups": {
        "student": {
            "fast": {"unit": "He(2, w)", "units": 2},
            "slow": {"unit": "relu(w)", "units": 2, "output": "trained"},
        },
        "teacher": {"unit": "relu(w)", "units": 2},
    },
    "frozen router": {
        "student": {"unit": "v*He(2, w)", "units": 2, "output": "trained"},
        "teacher": {"units": 1},
        "training": {"trained": ["w"]},
    },
    "erf on blocks, online": {
        "student": {"unit": ERF, "units": 2},
        "teacher": {"units": 2, "noise": 0.3, "gram": 0.2},
        "inputs": {"blocks": [[1.6, 0.2], [0.7, 0.3], [0.1, "rest"]]},
        "training": {"limit": "online", "step": 0.7, "decay": 0.1},
    },
    "square on blocks, sphere online": {
        "student": {"unit": "w^2", "units": 2},
        "teacher": {"noise": 0.4, "spread": [0.3, 0.7]},
        "inputs": {"blocks": [[1.6, 0.5], [0.4, 0.5]]},
        "training": {"limit": "online", "step": 0.1, "weights": "sphere"},
    },
    "erf on blocks, normalised": {
        "student": {"unit": "erf(w)", "units": 2, "output": "trained"},
        "teacher": {"unit": "w", "spread": "random"},
        "inputs": {"blocks": [[1.6, 0.5], [0.4, 0.5]]},
        "training": {"weights": "normalised"},
    },
    "two slots on a spectrum": {
        "student": {"unit": "w*erf(v)", "units": 2},
        "teacher": {"units": 1, "spread": "j^(-0.3)"},
        "inputs": {"spectrum": "j^(-alpha)", "bins": 5, "trace": 1.0},
        "parameters": {"alpha": 1.2},
    },
    "one block": {
        "student": {"unit": "w^2", "units": 2},
        "teacher": {"units": 1},
        "inputs": {"blocks": [["scale", "rest"]]},
        "training": {"limit": "online", "step": 0.1, "weights": "sphere"},
        "parameters": {"scale": 0.7},
    },
}
"""Declarations whose means are all closed."""
ISOTROPIC = [name for name, tables in EXACT.items() if "inputs" not in tables]
"""Those whose inputs are N(0, I)."""
ON_BLOCKS = [name for name in EXACT if name not in ISOTROPIC]
LONG = {"relu with biases"}
"""Those whose kernels take several seconds to compile: what all go through, they go through in `make slow`."""


def each(names: Iterable[str]) -> list[Any]:
    """Parameters of a test over declarations, the `LONG` ones among them marked slow."""
    return [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in names]


def made(tables: dict[str, Any]) -> System:
    """The system of some tables."""
    return system.system(reading.declaration(tables))
