"""The loss and the mean squared error of a declared model as sums over pairs of units."""

from collections.abc import Sequence
from typing import Any

from derivations.declare.motion import NOISE, Motion
from derivations.statement import HALF, Watched, sp


def error(motion: Motion, heads: Sequence[str] | None = None) -> Any:
    """Return E[(f - f*)^2], summed over heads (None: those in use)."""
    total = sp.Integer(0)
    for g in motion.algebra.groups:
        for h in motion.algebra.groups[g:]:
            if motion.algebra.meet(g, h, heads):
                total += (1 if g == h else 2) * products(motion, g, h, heads)
    if motion.algebra.labels is not None:
        total += motion.algebra.labels**2 - 2 * motion.algebra.labels * _mean_output(motion)
    return motion.algebra.over_clusters(total)


def _mean_output(motion: Motion) -> Any:
    """Return E[f] in a cluster, if clusters have labels."""
    total = sp.Integer(0)
    for g in motion.algebra.students:
        i = motion.algebra.index("i", g)
        total += sp.Sum(motion.algebra.weight(g, i) * motion.entry(f"Klabel_{motion.named('K', g, g, '')}", i), i)
    return total


def products(motion: Motion, g: int, h: int, heads: Sequence[str] | None = None) -> Any:
    """The sum over the units of two groups of the mean products of their outputs, weighted."""
    i, j = motion.algebra.index("i", g), motion.algebra.index("j", h)
    weights = motion.algebra.weights(g, i, h, j, heads)
    return sp.Sum(weights * motion.mean("K", g, h, "", i, j), i, j)


def loss(motion: Motion) -> Any:
    """E[(f - y)^2]/2 with the label noise, or -E[f y]."""
    if motion.squared:
        return HALF * (error(motion) + len(motion.declared.force) * NOISE**2)
    teachers = motion.algebra.answering[len(motion.algebra.students) :]
    pairs = [(g, h) for g in motion.algebra.students for h in teachers if motion.algebra.meet(g, h)]
    total = sp.Add(*(products(motion, g, h) for g, h in pairs))
    if motion.algebra.labels is not None:
        total -= motion.algebra.labels * _mean_output(motion)
    return motion.algebra.over_clusters(total)


def watched(motion: Motion, component: Any, heads: Sequence[str] | None = None) -> Watched:
    """Return the mean squared error over some heads (None: those in use), which is saved with the state."""
    return Watched(sp.Symbol(component.name), error(motion, heads), component.meaning, bounds=component.bounds,
                   symbol=component.symbol)  # fmt: skip
