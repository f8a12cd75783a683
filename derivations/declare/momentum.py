"""Momentum: [training] momentum and nesterov, their numbers in a run, and incompatible features.

    v <- beta v + g,  u <- u - h v                   momentum = beta, as in PyTorch (g includes decay)
    v <- beta v + g,  u <- u - h (g + beta v)        with nesterov
    v <- beta v + (1 - beta) g,  u <- u - h v        momentum = {time = tau}, beta = 1 - tick/tau

All velocities start at 0. With a fixed beta, velocities forget within 1/(1 - beta) steps, which take no time on the
clock of a limit. Flow and online limit are then those of the step h/(1 - beta). With a time tau velocities are order
parameters. Sources: Polyak 1964; Nesterov 1983; Sutskever, Martens, Dahl & Hinton 2013.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.contract import UsageError
from derivations.declare import fields

KEYS = ("time",)


@dataclasses.dataclass(frozen=True)
class Momentum:
    """Declared momentum: beta, or the time tau if `timed`; and True for Nesterov's form."""

    value: float
    timed: bool = False
    nesterov: bool = False

    @property
    def parameter(self) -> str:
        """Return the name of its number among the parameters.

        >>> Momentum(2.0, timed=True).parameter
        'momentum_time'
        """
        return "momentum_time" if self.timed else "momentum"


def momentum(training: Mapping[str, Any], weights: str, inputs: Any) -> Momentum | None:
    """Return the momentum in [training]; None without the key.

    Raises `fields.Mistake` for a value out of its domain, for `nesterov` alone, and for incompatible features: weights
    that are not free, and a time together with [inputs].
    """
    nesterov = fields.flag(training, "nesterov", "training")
    if "momentum" not in training:
        if "nesterov" in training:
            raise fields.Mistake("nesterov is a form of momentum: write momentum = 0.9 too", "training", "nesterov")
        return None
    entry, timed = training["momentum"], isinstance(training["momentum"], Mapping)
    if timed:
        fields.require_known(entry, KEYS, "training.momentum")
        if "time" not in entry:
            raise fields.Mistake("momentum needs its time: momentum = {time = 2.0}", "training", "momentum")
        value = fields.real(entry, "time", "training.momentum", above=0.0)
    elif isinstance(entry, str | list):
        message = "momentum must be a constant number such as 0.9, or {time = 2.0}"
        raise fields.Mistake(message, "training", "momentum")
    else:
        value = fields.real(training, "momentum", "training")
        _require(value)
    if weights != "free":
        setting = "momentum on the sphere" if weights == "sphere" else "momentum of normalised weights"
        raise fields.Mistake(
            f"{setting} would need a transport of velocities, which odesim does not have: use free",
            "training",
            "momentum",
        )
    if timed and inputs is not None:
        message = (
            "momentum = {time = ..} is only for inputs x ~ N(0, I), but [inputs] declares others: use momentum = 0.9"
        )
        raise fields.Mistake(message, "training", "momentum")
    return Momentum(value, timed, nesterov)


def _require(value: float) -> None:
    """Raise `fields.Mistake` for an invalid beta."""
    if not 0 <= value < 1:
        raise fields.Mistake(f"momentum is at least 0 and below 1, but {value:g} was given", "training", "momentum")


def add_number(declared: Any, add_parameter: Callable[..., None]) -> None:
    """Add the number of the declared momentum to the parameters."""
    declared_momentum: Momentum | None = declared.momentum
    if declared_momentum is None:
        return
    if declared_momentum.timed:
        add_parameter(
            "momentum_time", float, declared_momentum.value, "time tau over which velocities forget", above=0.0
        )
    else:
        add_parameter(
            "momentum", float, declared_momentum.value, "part beta of the velocity that a step keeps", minimum=0.0
        )


def check_number(parameters: Any) -> None:
    """Raise `UsageError` for a momentum out of its domain, and a time shorter than a step of an online limit."""
    declared = parameters.declaration
    if declared.momentum is None:
        return
    if not declared.timed:
        _require(parameters.momentum)
    elif declared.limit == "online":
        _require_time(parameters.momentum_time, 1.0 / parameters.d)
    elif declared.limit == "batch":
        _require_time(parameters.momentum_time, 1.0)


def require_step(parameters: Any, step_size: float) -> None:
    """Raise `UsageError` for a step of SGD in a flow that is longer than the time of the momentum."""
    declared = parameters.declaration
    if declared.timed and declared.limit == "flow":
        _require_time(parameters.momentum_time, step_size)


def _require_time(time: float, tick: float) -> None:
    if time < tick:
        raise UsageError(
            f"the time of momentum, {time:g}, is shorter than the time of one step of SGD, {tick:g}: give a longer "
            "time, or shorten the steps (in the online limit a step takes the time 1/d)"
        )


def acceleration(parameters: Any) -> float:
    """Return the factor 1/(1 - beta) of all speeds in flow and online limit; 1 without a fixed momentum."""
    declared_momentum: Momentum | None = parameters.declaration.momentum
    fixed = declared_momentum is not None and not parameters.declaration.inertial
    return 1.0 / (1.0 - parameters.momentum) if fixed else 1.0


def constants(parameters: Any) -> tuple[np.ndarray, ...]:
    """The run-time argument of SGD's `accelerate`: beta or tau, and the time of a step of an online limit."""
    declared_momentum: Momentum | None = parameters.declaration.momentum
    tick = 1.0 if parameters.declaration.limit == "batch" else 1.0 / parameters.d
    return () if declared_momentum is None else (np.array([getattr(parameters, declared_momentum.parameter), tick]),)


def convention(parameters: Any) -> dict[str, str]:
    """Return the convention of momentum that a run states."""
    declared_momentum: Momentum | None = parameters.declaration.momentum
    if declared_momentum is None:
        return {}
    value = f"{getattr(parameters, declared_momentum.parameter):g}"
    if declared_momentum.timed:
        step = "((1 - beta) g + beta v)" if declared_momentum.nesterov else "v"
        rule_text = f"v <- beta v + (1 - beta) g, u <- u - h {step}, beta = 1 - (time of a step)/{value}"
    else:
        rule_text = f"v <- {value} v + g, u <- u - h {f'(g + {value} v)' if declared_momentum.nesterov else 'v'}"
    return {"momentum": rule_text}


def resting(declared: Any) -> list[str]:
    """Return lines that keep the velocities of untrained parameters for a later stage; empty if all are trained."""
    vectors = [(k, group, word) for k, group in enumerate(declared.students) for word in group.slots]
    numbers = [(k, group, word) for k, group in enumerate(declared.students) for word in group.own]

    def masks(words: list[tuple[int, Any, str]], extra: str = "") -> str:
        parts = [f"np.{'ones' if declared.moves(group, word) else 'zeros'}(K_{k})" for k, group, word in words]
        return f"np.concatenate(({', '.join([*parts, *([extra] if extra else [])])},))"

    lines = []
    if not all(declared.moves(group, word) for _, group, word in vectors):
        lines.append(f"train = {masks(vectors)}")
        lines.append("vectors = (1.0 + train * (keep - 1.0), train * pull, train * damp)")
    if not all(declared.moves(group, word) for _, group, word in numbers):
        lines.append(f"learn = {masks(numbers, f'np.zeros({len(declared.memories)})' if declared.memories else '')}")
        lines.append("pushed = pushes + learn * (pushed - pushes)")
    return lines


def accelerate(declared: Any, parameter_text: str, norms: bool) -> str:
    """Return the text of `accelerate`, which replaces `update` in SGD with momentum.

    It returns, for all vectors (S,), the parts of v, u and the gradient in the new v and in the new u, then the new
    numbers and their velocities. With `norms` the first of the means are the parts of gradients along their vectors.
    """
    declared_momentum: Momentum = declared.momentum
    tick = "step_size" if declared.limit == "flow" else "push[1]"
    if declared_momentum.timed:
        lines = [f"damp = {tick} / push[0]", "keep = 1.0 - damp"]
    else:
        lines = ["damp = 1.0", "keep = push[0]"]
    lines += [
        f"pull = damp * (decay + {'means[: moving.size]' if norms else '0.0 * moving'})",
        "h = step_size * moving",
        "slope = damp * means[means.size - scalars.size :]",
        "pushed = keep * pushes + slope",
        "vectors = (keep + 0.0 * moving, pull, damp + 0.0 * moving)",
        *resting(declared),
    ]
    if declared_momentum.nesterov:
        lines.append("weights = (-h * keep * keep, 1.0 - h * (1.0 + keep) * pull, -h * (1.0 + keep) * damp)")
        lines.append("by = slope + keep * pushed")
    else:
        lines.append("weights = (-h * keep, 1.0 - h * pull, -h * damp)")
        lines.append("by = pushed")
    lines.append("return vectors, weights, scalars - step_size * learning * by, pushed")
    head = f"def accelerate(means, scalars, pushes, step_size, {parameter_text}):\n"
    return head + "".join(f"    {line}\n" for line in lines)
