"""Giant steps, limit = "batch": steps of order 1 on fresh batches of the order of d samples, a map as d grows.

    u' = u - eta (g + decay u),   g = the mean of c x over B samples,   B/d = alpha

A mean gradient is its part in the span of all vectors, sum_r C_ar u_r by Stein's lemma, and a part outside with the
Gram matrix E[c c^T]/alpha. The clock counts steps. Overlaps of the mean gradients among themselves do not vanish, so
that the map is not an Euler step of the flow of the order parameters. Sources: Ba et al. 2022; Dandi, Krzakala,
Loureiro, Pesce & Stephan 2023; Dandi et al. 2024.
"""

from typing import TYPE_CHECKING, Any

from derivations.contract import Recursion
from derivations.declare import fields, schedules
from derivations.declare.schedules import TIME

if TYPE_CHECKING:
    from derivations.declare.declaration import Declaration

MOST_LOOKS = 3
"""Largest number of looks at a sample in a giant step."""


def require(declared: "Declaration") -> None:
    """Raise `fields.Mistake` for giant steps together with incompatible features."""
    if declared.limit != "batch":
        return

    def refuse(feature: str, cause: str, key: str = "limit") -> None:
        raise fields.Mistake(f"limit 'batch' and {feature} cannot be combined: {cause}", "training", key)

    if declared.inputs is not None:
        refuse("[inputs]", "a batch of the order of d is a limit for x ~ N(0, I) here")
    if declared.episode is not None:
        refuse("episodes", "the reward depends on several samples; use limit = 'online'", "episode")
    if declared.look is not None and declared.look.times > MOST_LOOKS:
        refuse(f"look with times = {declared.look.times}", f"at most {MOST_LOOKS} looks at every sample of a batch")


def mixes(declared: "Declaration") -> bool:
    """Return True if the noise of a batch adds to the change of the overlaps, so that this noise can be sampled
    separately.
    """
    return declared.weights != "sphere" and not declared.memories


def advance(parameters: Any) -> Recursion:
    """Return the method of the map: one step per unit of time; time-dependent values change at whole steps."""
    if not parameters.declaration.clocked:
        return Recursion()
    return Recursion(clock=TIME, breaks=schedules.breaks(parameters), ended=schedules.ended)


def validity(declared: "Declaration") -> str:
    """Return the range of validity of the map."""
    if declared.noisy:
        return "exact for Gaussian inputs in the limit of large d, at a batch of the order of d and a step of order 1"
    return "exact for Gaussian inputs at every d, for descent of the weights on the mean over all samples"


def clock(declared: "Declaration") -> str:
    """Return the description of the clock."""
    if declared.noisy:
        return "steps of SGD of step eta, each on a fresh batch of the order of d"
    return "steps of gradient descent of the weights on the mean over all samples, with step eta"
