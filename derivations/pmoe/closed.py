"""Level L3: two samples (a deterministic composition), routers frozen, infinite width; and its closed form.

With one sample of each class the drive c_s is a combination of the two samples, so that two numbers X_a = int v(u_a) dt
carry everything:

    phi_s(t) = phi_s(0) + (1/(2 k l)) K (n_s^+ G^+ X_+ - n_s^- G^- X_-),     u_a = u_a(0) + sum_b C_ab X_b,
    C_ab = y_a y_b (1/(2 k l^2)) sum_s (n_s^a G_s^a)' K (n_s^b G_s^b)

and, where both classes have the same margin (C_++ = C_--, equal starts), u + e^u grows linearly, at the rate R = C_++
+ C_+-:

    u(t) = A - W(e^A),  A = u(0) + e^(u(0)) + R t            (W: Lambert's function)

Ours; R = (1/2 - delta_d kappa0(delta_d))/(2 n^2) for the CNN, R = 1/(4 l^2) for perfect separate routers and p = 1.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import (
    Initial,
    Labelled,
    UsageError,
)
from derivations.pmoe import arrays
from derivations.pmoe.signal import kernel

OVERFLOW = 700.0
"""Beyond this e^A overflows, and u + e^u = A is solved by Newton's method."""
SAME = 1e-12


def lambert(start: Any, rate: Any, t: Any) -> Any:
    """u(t) of du/dt = rate/(1 + e^u): u = A - W(e^A), A = start + e^start + rate t."""
    from scipy.special import lambertw

    a = np.asarray(start + np.exp(start) + rate * np.asarray(t, float))
    small = np.minimum(a, OVERFLOW)
    u = small - np.real(lambertw(np.exp(small)))
    large = np.log(np.maximum(a, 2.0))
    for _ in range(50):  # Newton on u + e^u = A from log A converges from above, quadratically
        large = large - (large + np.exp(large) - a) / (1 + np.exp(large))
    return np.where(a < OVERFLOW, u, large)


def time_to(v: float, start: float, rate: float) -> float:
    """The flow after which v = 1/(1 + e^u) has fallen to `v`: (u + e^u - u(0) - e^u(0))/rate at u = log(1/v - 1)."""
    u = math.log(1 / v - 1)
    return (u + math.exp(u) - start - math.exp(start)) / rate


def shares(initial: Initial) -> np.ndarray:
    """n_s G_s of both samples, (2, k, P), class + first."""
    p, c = initial.parameters, initial.constants
    if p.lam > 0:
        raise UsageError("tier L3 is for frozen routers: give -p lam=0, or gate=uniform, sharp or frozen")
    if len(c["label"]) != 2 or set(c["label"]) != {1.0, -1.0} or abs(c["weight"][0] - 0.5) > SAME:
        raise UsageError(
            "tier L3 needs two samples, one of each class: composition=deterministic, or a training set of two"
        )
    gate = {"one": 0, "softmax": 1, "frozen": 1, "uniform": 2, "sharp": 3}[p.gate]
    found = arrays.shares(np, initial.state["route"], c["counts"], p.l, gate, 0.0)[1]
    return np.moveaxis(found, 1, 0)[np.argsort(-c["label"])]


def two_samples(initial: Initial) -> tuple[np.ndarray, np.ndarray]:
    """(u(0) (2,), C (2, 2)): the margins at the start, and what they gain per unit of X."""
    p, share = initial.parameters, shares(initial)
    sign = np.array([1.0, -1.0])
    metric = kernel(initial.constants["gram"])
    found = np.einsum("asz,zw,bsw->ab", share, metric, share) / (2 * p.k * p.l**2)
    margins = sign * np.einsum("asz,sz->a", share, initial.state["response"]) / p.l
    return margins, found * np.outer(sign, sign)


def rate(start: np.ndarray, coupling: np.ndarray) -> float:
    """R of the closed form, or NaN where the two margins differ."""
    size = float(np.abs(coupling).max())
    equal = abs(coupling[0, 0] - coupling[1, 1]) <= SAME * size and abs(start[0] - start[1]) <= SAME * (
        1 + abs(start[0])
    )
    return float(coupling[0, 0] + coupling[0, 1]) if equal else math.nan


def observe(initial: Initial, state: Mapping[str, np.ndarray]) -> Labelled:
    """Margins, responses, route values and error from X; the margin itself is exact, no series."""
    p, push = initial.parameters, np.asarray(state["push"])
    start, coupling = two_samples(initial)
    margin = start + push @ coupling.T
    share = shares(initial) * np.array([1.0, -1.0])[:, None, None]
    gain = np.einsum("ta,asw,wz->tsz", push, share, kernel(initial.constants["gram"])) / (2 * p.k * p.l)
    pair = ("time", "expert", "pattern")
    v = 1 / (1 + np.exp(np.minimum(margin, OVERFLOW)))
    speed = rate(start, coupling)
    closed = {}
    if not math.isnan(speed):
        exact = lambert(start[0], speed, np.asarray(state["time"]))
        closed["margin_closed"] = (("time",), exact, "the margin of both classes by Lambert's function, A - W(e^A)")
    return {
        **closed,
        "margin": (("time", "class"), margin, "margin y f of the samples of class +1 and -1 (u)"),
        "response": (pair, initial.state["response"] + gain, "response of an expert to a pattern (phi_s(z))"),
        "route": (pair, np.broadcast_to(initial.state["route"], gain.shape).copy(), "route value (frozen)"),
        "error": (("time",), (margin <= 0).mean(axis=1), "probability of a wrong or zero output (P(y f <= 0))"),
        "v1": (("time",), v[:, 0], "v in class +1"),
        "v2": (("time",), v[:, 1], "v in class -1"),
    }
