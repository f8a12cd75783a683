"""Tier explore: the race of the filters at a uniform router.

    h = 0 and q = 1/2:  dfeat/dt = psi(feat)/|psi(feat)|,  psi(x) = E[alpha (sigma'(alpha x) + sigma'(-alpha x))/2]

Lemmas E.5 to E.8 of Chen et al. 2022; every constant cancels in the normalisation, and psi ~ x^2 for cubic experts.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.chen.parameters import Parameters
from derivations.chen.summary import constants, summarise
from derivations.chen.tiers.parts import NA, STRENGTHS, WA, XA, I
from derivations.chen.tiers.vocabulary import (
    ANY,
    FEAT,
    J_SIZE,
    K_SIZE,
    M_SIZE,
    NOTATION,
    PAPER,
    UNITARY,
    J,
    K,
    M,
    act,
    law,
    nodes_of,
    power_constant,
)
from derivations.contract import Crossing, Initial, Observables
from derivations.indexed import nested
from derivations.statement import Base, Definition, Equation, Example, Named, Statement, function, sp

NODES = 2 * STRENGTHS
PSI, SPEED = map(Base, ("psi", "V"))
BELOW_TWO = (
    "; for 1 < q < 2 an alignment that reaches 0 could stay there for any time: this flow leaves at once, with "
    "an error above the tolerance (900-fold at 1e-8 for q = 1.7)"
)


def statement(p: Parameters) -> Statement:
    """The tensor-power race, with the constants of the limit."""
    slope = function("slope")
    drive = sp.Sum(WA[I] * XA[I] * (slope(XA[I] * FEAT[M, J, K]) + slope(-XA[I] * FEAT[M, J, K])) / 2, I)
    return Statement(
        tier="explore",
        name="chen, explore",
        title="the race of the filters at a uniform router",
        source=f"{PAPER}, Lemmas E.5 to E.8, with the constants of the limit",
        clock="time is arc length: every expert moves with its gradient divided by its Frobenius norm",
        validity="while the router is uniform and all margins are small, up to a time of about sqrt(sigma_0)"
        + (BELOW_TWO if p.activation == "power" and 1.0 < p.power < 2.0 else ""),
        neglects="the router (h = 0), the margins (q = 1/2), centres and noise patches, whose mean drift vanishes",
        indices=[((M,), "experts"), ((J,), "filters"), ((K,), "features"), ((I,), "strengths of the feature")],
        sizes={"M": p.M, "J": p.J, "K": p.K},
        state=(
            Named(
                FEAT[M, J, K],
                "alignment of a filter with a feature signal",
                dims=("expert", "filter", "feature"),
                bounds=ANY,
                symbol="<w, v_k>",
            ),
        ),
        constants=(
            Named(M_SIZE, "experts", 2),
            Named(J_SIZE, "filters of an expert", 3),
            Named(K_SIZE, "features", 2),
            *power_constant(p),
            *nodes_of(p, "alpha", "a", NA, I, NODES),
        ),
        bind=bind,
        definitions=(
            *act(p)[1:],
            UNITARY,
            Definition((PSI[M, J, K],), drive, "mean drift, up to a factor common to all"),
            Definition((SPEED[M],), UNITARY["per"](sp.sqrt(nested(PSI[M, J, K] ** 2, J, K))), "of unit speed"),
        ),
        equations=(Equation(FEAT[M, J, K], PSI[M, J, K] * SPEED[M], "Lemmas E.5 to E.8"),),
        crossings=standstill(p),
        observables=Observables(
            constants=constants,
            invariants=race_invariant if p.activation == "cubic" else lambda initial, state: {},
            summary=summarise,
        ),
        notation=NOTATION,
        example=Example(
            'start = {"feat": 0.01 * np.random.default_rng(0).standard_normal((M, J, K))}', "feat", 0.9, 4.0
        ),
    )


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    p = initial.parameters
    x, w = law(p, "alpha", NODES)
    return {"M": p.M, "J": p.J, "K": p.K, "power": p.power, "n_a": len(x), "x_a": x, "w_a": w}


def standstill(p: Parameters) -> tuple[Crossing, ...]:
    """The end of the race of an expert with only negative alignments: they reach 0 together.

    For psi ~ |x|^(q - 1), q > 2, x^(2 - q) keeps its distances within an expert, so that all of them are 0 at one time;
    the later direction psi/|psi| is determined by rounding errors. With a positive alignment no negative one ever
    reaches 0.
    """
    if p.activation != "cubic" and not (p.activation == "power" and p.power > 2.0):
        return ()
    reason = (
        "all alignments of an expert, negative until now, reach zero together: the direction of its race is not "
        "determined from here on"
    )
    meaning = "first time an alignment reaches zero from below, where the race ends"
    return (Crossing("T_zero", "feat", 0.0, terminal=True, reason=reason, meaning=meaning),)


def race_invariant(initial: Initial, state: Mapping[str, np.ndarray]) -> dict[str, float]:
    """The largest relative change of 1/feat - 1/feat' within an expert (all of them are conserved)."""
    feat = state["feat"].reshape(len(state["feat"]), state["feat"].shape[1], -1)
    if (feat == 0).any():
        return {}
    inverse = 1 / feat
    gaps = inverse - inverse[..., :1]
    return {"inverse_gaps": float(np.abs(gaps - gaps[0]).max() / max(np.abs(inverse[0]).max(), 1e-300))}


NODES_16, WEIGHTS_16 = np.polynomial.legendre.leggauss(16)
WIDEST = 0.5
"""The widest panel of `closed_form` in log x: half of it changes only the last two digits of double precision."""


def closed_form(feat: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The race of one cubic expert at given times (T, ...), by its invariants and one integral.

    With the largest entry x: feat_i = 1/(1/x + 1/feat_i(0) - 1/x(0)) and time = int sqrt(sum (feat_i(x)/x)^4) dx.
    Entries that start at zero stay there.
    """
    start = np.asarray(feat, float)
    top = float(start.max())
    if top <= 0:
        raise ValueError("the closed form needs a positive entry to win the race")
    moving = start != 0
    gap = 1 / start[moving] - 1 / top

    def entries(x: float) -> np.ndarray:
        found = np.zeros_like(start)
        found[moving] = 1 / (1 / x + gap)
        return found

    # An entry far below zero is a pole of the integrand at x = 1/(1/top - 1/feat_i(0)), just below the start: panels
    # begin as narrow as its distance, and double.
    first = min(WIDEST, math.log1p(-top / float(start.min()))) if start.min() < 0 else WIDEST
    found = []
    for time in np.atleast_1d(times):
        x = top + float(time)  # above the root, to which Newton's iteration of this convex function descends
        for _ in range(50 if time > 0 else 0):
            time_of_x, speed = _clock(x, top, gap, first)
            before, x = x, max(x - (time_of_x - float(time)) / speed, (x + top) / 2)
            if abs(x - before) <= 1e-13 * x:
                break
        found.append(entries(x))
    return np.array(found)


def _clock(x: float, top: float, gap: np.ndarray, first: float) -> tuple[float, float]:
    """The time at which the largest entry has grown from `top` to x, and its derivative.

    Gauss-Legendre panels in u = log x of sqrt(sum (feat_i/x)^4) - 1, which decays; `first` is the width of the first
    panel.
    """
    end, edges, width = math.log(x / top), [0.0], first
    while edges[-1] < end:
        edges.append(min(edges[-1] + width, end))
        width = min(2 * width, WIDEST)
    half = np.diff(edges) / 2
    z = top * np.exp((np.array(edges[:-1]) + half)[:, None] + half[:, None] * NODES_16).ravel()
    squares = (1 / (1 + np.append(z, x)[:, None] * gap)) ** 2
    rate = np.sqrt(np.einsum("ij,ij->i", squares, squares))
    excess = float((half[:, None] * WEIGHTS_16).ravel() @ (z * (rate[:-1] - 1)))
    return x - top + excess, float(rate[-1])
