"""Routing of samples as definitions: the copies routed to an expert, their gates, and observables of both.

Routing by rank is a sum of indicators: the number of routed copies of a pattern is limited by the places left after
patterns ranked above it, n = min(N(z), max(0, l - copies ranked above)). The compiled code orders the patterns instead.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from derivations.pmoe.parameters import Parameters
from derivations.pmoe.rules import soft_top
from derivations.pmoe.tiers.parts import PAIR, SAMPLES, TOKENS, K, P, S, W, Z
from derivations.statement import Base, Definition, Indicator, Named, Rule, Shortcut, Statement, Watched, sp

SOFT, COPIES = sp.Symbol("width", real=True), sp.Symbol("n_j", integer=True)
X, J = sp.Idx("x", SAMPLES), sp.Idx("j", COPIES)
ROUTE, COUNT, WEIGHT, JITTER, SHIFTED = map(Base, ("route", "count", "weight", "jitter", "g_j"))
LOOPS = "derivations.pmoe.routing_loops:"
NOTE = {
    "one": "every routed patch counts as it is",
    "softmax": "softmax of the route values over the routed patches",
    "frozen": "softmax of the route values over the routed patches",
    "uniform": "every routed patch has the same weight",
    "sharp": "all weight on the largest route value",
}
PLAIN = {"taken_0": ("n^{0}", "n⁰"), "share_0": ("\\sigma^{0}", "σ⁰"), "above_0": ("above^{0}", "above⁰"),
         "lead_0": ("\\iota^{0}", "ι⁰"), "f_0": ("f^{0}", "f⁰")}  # fmt: skip
"""Symbols of the arrays without the shifts of tie_rule=jitter."""


def jittered(p: Parameters) -> bool:
    """Return True if drives are means over shifted route values."""
    return p.tie_rule == "jitter" and p.mode == "joint"


def fractional(p: Parameters) -> bool:
    """Return True if the top l is soft."""
    return p.tie_rule == "fractional" and p.mode == "joint"


class Look(NamedTuple):
    """The route values for the routing of samples: shifted ones, with an additional index, or the plain ones."""

    p: Parameters
    shifted: bool

    @property
    def shifts(self) -> tuple[Any, ...]:
        """The index of the shifts, if there are any."""
        return (J,) if self.shifted else ()

    @property
    def axes(self) -> tuple[Any, ...]:
        """The indices of an expert and a sample, after that of the shifts."""
        return (*self.shifts, S, X)

    @property
    def values(self) -> Any:
        """The array of the route values."""
        return SHIFTED if self.shifted else ROUTE

    def value(self, z: Any) -> Any:
        """The route value for the rank of a pattern."""
        return self.values[(*self.shifts, S, z)]

    def array(self, name: str) -> Any:
        """An array of this kind of route values; a suffix marks arrays of plain values if the drives use shifted
        ones.
        """
        return Base(name if self.shifted == jittered(self.p) else f"{name}_0")

    def at(self, name: str, z: Any) -> Any:
        """The entry of such an array for a pattern."""
        return self.array(name)[(*self.axes, z)]

    @property
    def output(self) -> Any:
        """The output of the network for a sample; for several classes see `outputs`."""
        return self.array("f")[(*self.shifts, X)]


def look_of(p: Parameters) -> Look:
    """The kind of route values in the drives."""
    return Look(p, jittered(p))


def routing(look: Look) -> list[Any]:
    """The copies taken n_s(z; x) and the share n_s G_s of every pattern in a sample."""
    p = look.p
    higher = sp.Gt(look.value(W), look.value(Z))
    ahead = sp.Or(higher, sp.And(sp.Eq(look.value(W), look.value(Z)), sp.Lt(W, Z)))
    found: list[Any] = []
    if look.shifted:
        found.append(Definition((look.value(Z),), ROUTE[S, Z] + JITTER[J, S, Z], "route values, jittered"))
    if fractional(p):
        rule = Rule("soft top l", soft_top, compiled=LOOPS + "soft_top")
        means = COUNT[X, Z] / (1 + sp.exp((sp.Symbol("theta") - ROUTE[S, Z]) / SOFT))
        given, said = (ROUTE, COUNT, TOKENS, SOFT), "with theta such that they sum to l"
        found.append(Definition((look.at("taken", Z),), given, said, rule=rule, means=means))
    else:
        above = sp.Sum(COUNT[X, W] * Indicator(ahead), W)
        said = "copies ranked above, ties in the order of the patterns"
        found.append(Definition((look.at("above", Z),), above, said))
        taken = sp.Min(COUNT[X, Z], sp.Max(0, TOKENS - look.at("above", Z)))
        loops = Shortcut(LOOPS + "top_copies", (look.values, COUNT, TOKENS))
        found.append(Definition((look.at("taken", Z),), taken, "copies routed: the top l patches", shortcut=loops))
    return [*found, *shares(look, ahead)]


def shares(look: Look, ahead: Any) -> list[Any]:
    """The share n_s G_s by the gate of the parameters; `ahead` is 1 if pattern w is ranked before z."""
    gate, taken, share = look.p.gate, look.at("taken", Z), look.at("share", Z)
    if gate in ("softmax", "frozen"):
        total = sp.Sum(look.at("taken", W) * sp.exp(look.value(W)), W)
        return [Definition((share,), taken * sp.exp(look.value(Z)) / total, NOTE[gate])]
    if gate == "sharp":
        before = sp.Sum(look.at("taken", W) * Indicator(ahead), W)
        first = Indicator(sp.And(sp.Gt(taken, 0), sp.Eq(before, 0)))
        loops = Shortcut(LOOPS + "leading", (look.values, COUNT, look.array("taken")))
        return [Definition((share,), first, NOTE[gate], shortcut=loops)]
    return [Definition((share,), taken if gate == "one" else taken / TOKENS, NOTE[gate])]


def missed(look: Look, pattern: Any) -> Any:
    """1 if an expert gives a pattern of the sample no copy or not the largest gate, else 0."""
    taken, gate = look.at("taken", pattern), look.p.gate
    lost = sp.Le(taken, 0)
    if gate in ("softmax", "frozen"):
        larger = sp.And(sp.Gt(look.at("taken", W), 0), sp.Gt(look.value(W), look.value(pattern)))
        lost = sp.Or(lost, sp.And(sp.Gt(sp.Sum(Indicator(larger), W), 0), sp.Gt(WEIGHT[X], 0)))
    if gate == "sharp":
        lost = sp.Or(lost, sp.And(sp.Le(look.at("share", pattern), 0), sp.Gt(WEIGHT[X], 0)))
    return Indicator(sp.Gt(COUNT[X, pattern], 0)) * Indicator(lost)


def routed(look: Look) -> Watched:
    """The mean number of routed copies."""
    mean = sp.Sum(WEIGHT[X] * look.at("taken", Z), X)
    about = "mean number of routed copies of a pattern"
    return Watched(Base("routed")[S, Z], mean, about, dims=PAIR, bounds=(0.0, np.inf), symbol="E n_s(z)")


def per(value: Any, mass: Any) -> Any:
    """A sum over a class divided by its mass, 0 without samples of the class."""
    return sp.Piecewise((value / mass, sp.Gt(mass, 0)), (0, True))


def shares_of(p: Parameters, route: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The shares n_s G_s (k, n_x, P) of some samples at given route values (k, P), by the hard top l."""
    from derivations.equations.interpreter import Evaluator

    plain = dataclasses.replace(p, tie_rule="hard")
    sizes = tuple(Named(size, "") for size in (K, P, TOKENS, SAMPLES))
    stated = Statement(
        name="routing of given samples", title="", source="", clock="", validity="", neglects="",
        indices=[((S,), "experts"), ((Z, W), "patterns"), ((X,), "samples")],
        state=(), constants=(*sizes, Named(COUNT[X, Z], ""), Named(ROUTE[S, Z], "")), equations=(),
        bind=lambda initial: {}, definitions=tuple(routing(Look(plain, False))),
    )  # fmt: skip
    given = {"k": len(route), "P": route.shape[1], "l": p.l, "n_x": len(counts), "count": counts, "route": route}
    return Evaluator(stated, given).values["share"]
