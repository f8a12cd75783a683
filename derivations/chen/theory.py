"""Theoretical predictions in the pictures of a run of `chen`: the accuracy that no single expert passes."""

from typing import Any

from derivations.chen.parameters import Parameters
from derivations.drawing import Reference, parameters


def references(run: Any) -> list[Reference]:
    """The ceiling of one patchwise additive expert (Theorem 4.1, for general laws), in the panel of the accuracy."""
    given = parameters(run)
    shown = ("accuracy", "accuracy_noisy")
    if not given or not set(shown) & set(run):
        return []
    top = ceiling(Parameters(**given))
    return [Reference("accuracy", f"no single expert above {top:.3g}", level=top, of=shown)]


def ceiling(p: Parameters) -> float:
    """1 - E/8, where E is the mass that the laws of (alpha, gamma) and of (gamma, alpha) have in common.

    Among four examples that only differ by the label's sign and by which of two signals is the noise, an additive
    function errs on one at least; they are equally likely as far as alpha and gamma can be exchanged.

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
