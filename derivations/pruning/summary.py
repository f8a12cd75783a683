"""Quantities of a run of system `pruning`: observables beside the state, invariants, headline numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, Labelled
from derivations.pruning.criteria import assumptions
from derivations.pruning.norms import growth

SWITCHED_OFF = -np.finfo(float).tiny
"""Value in the flow for a neuron that has reached zero: negative, so that it never moves again."""


def neurons(u0: np.ndarray, D: np.ndarray, low: np.ndarray) -> np.ndarray:
    """u (..., k, m, d) from initial alignments (k, m, d), displacements and their running minima (..., k, d)."""
    bound = np.maximum(0.0, -np.minimum(low, D))[..., None, :]
    moved = np.where(u0 >= bound, u0 + D[..., None, :], SWITCHED_OFF)
    return np.where(u0 < 0, u0, moved)


def observe(initial: Initial, state: Mapping[str, np.ndarray]) -> Labelled:
    """sigma, the change of the router's norm and the norm of its change, and u if the state is displacements."""
    c, found = initial.constants, {}
    if "u" in state:
        u = state["u"]
    else:
        u = neurons(np.asarray(initial.state["u"]), state["D"], state["D_min"])
        if initial.parameters.keep_u:
            meaning = "alignment of a neuron with a pattern"
            found["u"] = (("time", "expert", "neuron", "pattern"), u, meaning)
    sigma = np.maximum(u, 0.0).sum(-2)
    h, start = state["h"], c["h_start"]
    found["sigma"] = (("time", "expert", "pattern"), sigma, "activation of an expert on a pattern")
    found["Delta"] = (("time", "expert"), growth(start, h, c["router_rest"]), "growth of the router's norm")
    found["dw"] = (("time", "expert"), np.sqrt(((h - start) ** 2).sum(-1)), "norm of the router's change")
    return found


CONSTANTS = {
    "a": (("expert",), "head sign of an expert"),
    "pi": (("irrelevant",), "chance of an irrelevant pattern"),
    "router_rest": (("expert",), "squared norm of a router outside the patterns"),
    "neuron_rest": (("expert", "neuron"), "squared norm of a neuron outside the patterns"),
    "h_start": (("expert", "pattern"), "router alignments at the start of fine-tuning"),
    "u_start": (("expert", "neuron", "pattern"), "neuron alignments at the start of fine-tuning"),
    "tokens": (("input", "position"), "table of inputs, as pattern numbers"),
    "labels": (("input",), "labels of the table"),
    "expert_number": (("expert",), "number of the expert before pruning"),
}


def constants(initial: Initial) -> Labelled:
    """Return the constants of a run, and the initial values that a later stage needs."""
    found = {
        name: (dims, np.asarray(initial.constants[name]), meaning)
        for name, (dims, meaning) in CONSTANTS.items()
        if name in initial.constants and np.size(initial.constants[name])
    }
    for name, value in initial.constants.items():
        if name.startswith("score_"):
            found[name] = (("expert",), np.asarray(value), f"score of an expert by {name.removeprefix('score_')}")
    return found


def invariants(initial: Initial, state: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return the measured invariants: sum_p h_p of every router, and alignments of neurons that start below zero."""
    h = state["h"]
    found = {"router_sum": float(np.abs(h.sum(-1) - h[0].sum(-1)).max())}
    if "u" in state:
        frozen = initial.state["u"] < 0
        found["inactive"] = float(np.abs(np.where(frozen, state["u"] - initial.state["u"], 0.0)).max())
    if "D" in state:
        found["balance"] = float(np.abs(state["D"].sum(-1)).max())
    return found


def summarise(initial: Initial, run: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Error, margin, growth of router norms and proficiencies at the end, against the threshold 1.5 log l."""
    p, a = initial.parameters, initial.constants["a"]
    own = np.where(a[None] > 0, run["p1"], run["p2"]) if "p1" in run else None
    found: dict[str, Any] = {
        "experts": int(p.k),
        "eta_r": float(p.router_rate),
        "Delta": [float(v) for v in run["Delta"][-1]],
        "threshold_1.5_log_l": float(1.5 * np.log(p.l)),
    }
    if own is not None:
        found |= {
            "f_error_initial": float(run["f_error"][0]),
            "f_error_final": float(run["f_error"][-1]),
            "margin_final": float(run["margin"][-1]),
            "own_proficiency_initial": [float(v) for v in own[0]],
            "own_proficiency_final": [float(v) for v in own[-1]],
        }
    if np.array_equal(initial.state["h"], initial.constants["h_start"]):
        found["broken_assumptions"] = assumptions(initial)
    if "loss" in run:
        found["loss_final"] = float(run["loss"][-1])
    return found
