"""The loss and the mean squared error of a declared model as sums over pairs of units."""

from typing import Any

from derivations.declare import labels
from derivations.declare.motion import NOISE, Motion
from derivations.statement import HALF, Watched, sp


def error(motion: Motion, answering: tuple[int, ...] = ()) -> Any:
    """E[(f - f*)^2], of the groups that take part in it: those in force, unless others are named."""
    found, answering = sp.Integer(0), answering or motion.algebra.answering
    for n, g in enumerate(answering):
        for h in answering[n:]:
            found += (1 if g == h else 2) * products(motion, g, h)
    if motion.algebra.labels is not None:
        found += motion.algebra.labels**2 - 2 * motion.algebra.labels * _mean_output(motion)
    return motion.algebra.over_clusters(found)


def _mean_output(motion: Motion) -> Any:
    """E[f] in a cluster, where clusters have labels."""
    found = sp.Integer(0)
    for g in motion.algebra.students:
        i = motion.algebra.index("i", g)
        found += sp.Sum(motion.algebra.weight(g, i) * motion.entry(f"Klabel_{motion.named('K', g, g, '')}", i), i)
    return found


def products(motion: Motion, g: int, h: int) -> Any:
    """The sum over the units of two groups of the mean products of their outputs, weighted."""
    i, j = motion.algebra.index("i", g), motion.algebra.index("j", h)
    weights = motion.algebra.weight(g, i) * motion.algebra.weight(h, j)
    return sp.Sum(weights * motion.mean("K", g, h, "", i, j), i, j)


def loss(motion: Motion) -> Any:
    """E[(f - y)^2]/2 with the label noise, or -E[f y]."""
    if motion.squared:
        return HALF * (error(motion) + NOISE**2)
    teachers = motion.algebra.answering[len(motion.algebra.students) :]
    found = sp.Add(*(products(motion, g, h) for g in motion.algebra.students for h in teachers))
    if motion.algebra.labels is not None:
        found -= motion.algebra.labels * _mean_output(motion)
    return motion.algebra.over_clusters(found)


def watched(motion: Motion, component: Any) -> tuple[Watched, ...]:
    """The mean squared error, which is saved beside the state, and those of the labels of all stages."""
    every = ((component, motion.algebra.answering), *labels.errors(motion.declared))
    return tuple(
        Watched(sp.Symbol(one.name), error(motion, groups), one.meaning, bounds=one.bounds, symbol=one.symbol)
        for one, groups in every
    )
