"""Theoretical predictions in the figures of a run of `pruning`: 1.5 log l, and t* of an important expert."""

import math
from typing import Any

from derivations.drawing import BLACK, Reference, parameters
from derivations.pruning.parameters import Parameters


def references(run: Any) -> list[Reference]:
    """The growth 1.5 log l that distinguishes important experts (Lemma 4.1), and the time of a gap of log l.

    t* = sqrt(2 pi) (l - 1)^(3/2) l^(-1/2)/sqrt(eta_r eta_e m_+ (1 + 1/N)), for the largest number m_+ of neurons of an
    expert of each sign that are active on the task pattern of this sign: the limit of large l, from equal logits.
    """
    given = parameters(run)
    if not given or not {"Delta", "x"} & set(run) or run.sizes.get("time", 0) < 2:
        return []
    p = Parameters(**given)
    if "x" in run:
        return _gaps(run, p)
    level = 1.5 * math.log(p.l)
    found = [Reference(f"Delta{sign:+d}", r"$1.5\,\log l$", level=level, of=("Delta",)) for sign in (1, -1) if p.l > 1]
    rates = p.router_rate * p.eta_e * (1 + 1 / p.N) if p.N else 0.0
    if run.attrs.get("stage") != "tune" or rates <= 0 or "u_start" not in run or p.l < 2:
        return found
    active = (run["u_start"].values[..., :2] >= 0).sum(axis=1)
    for sign, own in ((1, 0), (-1, 1)):
        most = active[run["a"].values * sign > 0, own].max(initial=0)
        if most:
            star = reached(p, rates, float(most))
            found.append(Reference(f"Delta{sign:+d}", r"$t^*$: gap $\log l$", at=star, colour=BLACK, of=("Delta",)))
    return found


def reached(p: Parameters, rates: float, active: float) -> float:
    """t*: the time of a gap of log l, for rates = eta_r eta_e (1 + 1/N) and `active` active neurons."""
    return math.sqrt(2 * math.pi) * (p.l - 1) ** 1.5 / math.sqrt(p.l * rates * active)


def _gaps(run: Any, p: Parameters) -> list[Reference]:
    """The references of the homogeneous tier, whose state is the gap: the level log l, and t* of the most active
    expert.
    """
    rates = p.router_rate * p.eta_e * (1 + 1 / p.N) if p.N else 0.0
    if p.l < 2:
        return []
    found = [Reference("x", r"$\log l$", level=math.log(p.l))]
    most = float(run["m_eff"].values.max(initial=0.0)) if "m_eff" in run else 0.0
    if rates > 0 and most > 0:
        found.append(Reference("x", r"$t^*$: gap $\log l$", at=reached(p, rates, most), colour=BLACK))
    return found
