"""Theoretical predictions in the figures of a run of `chen`: the upper bound of the accuracy of a single expert."""

from typing import Any

from derivations.chen.parameters import Parameters
from derivations.drawing import Reference, parameters


def references(run: Any) -> list[Reference]:
    """The upper bound for one patchwise additive expert (Theorem 4.1, for general distributions), in the accuracy
    panel.
    """
    given = parameters(run)
    shown = ("accuracy", "accuracy_noisy")
    if not given or not set(shown) & set(run):
        return []
    top = ceiling(Parameters(**given))
    return [Reference("accuracy", f"no single expert above {top:.3g}", level=top, of=shown)]


def ceiling(p: Parameters) -> float:
    """1 - E/8, where E is the common mass of the distributions of (alpha, gamma) and of (gamma, alpha).

    Among four examples that only differ by the label's sign and by which of two signals is the noise, an additive
    function errs on at least one; the four are equally likely on the common mass.

    >>> ceiling(Parameters()), ceiling(Parameters(gamma=(0.5, 3.0)))
    (0.875, 0.925)
    """
    a, g = tuple(p.alpha), tuple(p.gamma)
    if p.laws == "points" or len(set(a)) == 1 or len(set(g)) == 1:
        both = [(x, y) for x in set(a) & set(g) for y in set(a) & set(g)]
        mass = sum(min(a.count(x) * g.count(y), a.count(y) * g.count(x)) for x, y in both)
        return 1 - mass / (8 * len(a) * len(g))
    overlap = max(0.0, min(a[-1], g[-1]) - max(a[0], g[0]))
    return 1 - overlap**2 / (8 * (a[-1] - a[0]) * (g[-1] - g[0]))
