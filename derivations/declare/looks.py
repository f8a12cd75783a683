"""Several looks at a sample: [training] look, and `gnorm` in rules. Both depend on the length of a sample.

    z^(0) = z,   z^(k+1)_a = z^(k)_a - rho_a r c_a(z^(k)),   rho_a = size rate_a,   r = |x|^2/d

for the field z_a = u_a . x of every trained vector; teachers, labels, readouts and numbers are unchanged. The actual
motion is c(z^(times)) with use = "last", and the sum of all c(z^(k)) with use = "sum". In d dimensions each is a
virtual step of rho_a/d along the motion by this sample, which is undone before the actual step. In flow and online
limit r is 1. `gnorm` = sqrt(r sum_b grad_b^2) over the trained vectors b is the norm of their gradient, over sqrt(d).
Source: Arnaboldi, Dandi, Krzakala, Pesce & Stephan 2024, https://arxiv.org/abs/2405.15459 (data repetition).
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.declare import fields

KEYS = ("size", "use", "times")
USES = ("last", "sum")
MOST_TIMES = 20
GNORM = "gnorm"
"""Name of the norm of a sample's gradient in rules."""


@dataclasses.dataclass(frozen=True)
class Look:
    """Declared look: the size rho of a virtual step, the use of the looks, and the number of virtual steps."""

    size: float
    use: str = "last"
    times: int = 1


def look(training: Mapping[str, Any]) -> Look | None:
    """Return the look in [training]; None without the key. Raises `fields.Mistake` for an invalid look.

    >>> look({"look": {"size": 0.5}})
    Look(size=0.5, use='last', times=1)
    """
    if "look" not in training:
        return None
    table, place = training["look"], "training.look"
    if not isinstance(table, Mapping):
        message = f"look is a table such as {{size = 0.5, use = 'last'}}, but {fields.shown(table)} was given"
        raise fields.Mistake(message, "training", "look")
    fields.require_known(table, KEYS, place)
    if "size" not in table:
        raise fields.Mistake("look needs the size of its virtual step: look = {size = 0.5}", "training",
                             "look")  # fmt: skip
    if isinstance(table["size"], str | list):
        raise fields.Mistake("the size of a look must be a constant number such as 0.5", place, "size")
    size, use = fields.real(table, "size", place), fields.choice(table, "use", USES, "last", place)
    return Look(size, use, fields.whole(table, "times", place, 1, MOST_TIMES))


def measured(declared: Any) -> bool:
    """Return True if coefficients depend on the length of a sample: by looks, or by the norm of a gradient."""
    return declared.look is not None or normed(declared)


def normed(declared: Any) -> bool:
    """Return True if a rule contains `gnorm`."""
    return any(GNORM in rule.tree.names() for rule in declared.rules)


def require(declared: Any) -> None:
    """Raise `fields.Mistake` for a look, or `gnorm`, together with incompatible features."""
    word, key = ("look", "look") if declared.look is not None else (GNORM, "rule")
    if not measured(declared):
        return

    def refuse(feature: str, cause: str) -> None:
        raise fields.Mistake(f"{word} and {feature} cannot be combined: {cause}", "training", key)

    if declared.inputs is not None:
        refuse("[inputs]", "looks are derived only for x ~ N(0, I)")
    if declared.weights == "normalised":
        refuse("weights = 'normalised'", "the virtual step changes the norm by which the network divides; use sphere")
    for group in declared.students:
        if group.unit.calls("wick"):
            refuse(f"the unit {group.text!r}", "it depends on the norm of its vector, which the virtual step changes")
    if declared.several:
        refuse("several heads", "looks support only one output so far")
    if declared.predicted:
        refuse("prediction", "looks support only outputs that are sums so far")
    if declared.momentum is not None:
        refuse("momentum", "virtual steps do not support velocities so far")
    if declared.look is not None:
        _require_look(declared, refuse)


def _require_look(declared: Any, refuse: Callable[[str, str], None]) -> None:
    """Raise an error for looks that have no effect, no mean, or a size that is not known in time."""
    if not any(declared.moves(group, slot) for group in declared.students for slot in group.slots):
        message = (
            "look has no effect, because no vector is trained and a virtual step does not move readouts and numbers"
        )
        raise fields.Mistake(message, "training", "look")
    trees = [(group.unit, group.text) for group in declared.groups] + [
        (rule.tree, rule.text) for rule in declared.rules
    ]
    trees += [] if declared.own_loss is None else [(declared.own_loss, "a user's loss")]
    for tree, text in trees:
        if tree.calls("exp"):
            refuse(f"{text!r}", "exp of a field has no mean after a virtual step")
    state_dependent = declared.memories or any(schedule.seen for schedule in declared.schedules)
    rates = [schedule.name for schedule in declared.schedules if schedule.name.startswith("rate_")]
    if state_dependent and rates:
        refuse(
            f"{rates[0]}, which changes,",
            "with memories or values of the state it is known only after the virtual steps",
        )


def add_number(declared: Any, add_parameter: Callable[..., None]) -> None:
    """Add the size of the declared look to the parameters."""
    if declared.look is not None:
        text = "size rho of the virtual step of a look at a sample (rho / d in d dimensions)"
        add_parameter("look_size", float, declared.look.size, text)


def constants(parameters: Any) -> tuple[np.ndarray, ...]:
    """Return the run-time argument of SGD's functions: the size of the virtual step; empty without looks."""
    return () if parameters.declaration.look is None else (np.array([parameters.look_size]),)


def convention(parameters: Any) -> dict[str, str]:
    """Return the convention of looks that a run states."""
    declared_look: Look | None = parameters.declaration.look
    if declared_look is None:
        return {}
    steps = "a virtual step" if declared_look.times == 1 else f"{declared_look.times} virtual steps"
    coefficient_text = "c after" if declared_look.use == "last" else "the sum of c before and after"
    size = f"rho = {parameters.look_size:g}, r = |x|^2/d"
    return {"look": f"{coefficient_text} {steps} z - rho rate r c on the same sample, {size}"}


def reason(declared: Any) -> str:
    """Return the reason why looks exclude closed forms, or ""."""
    if declared.look is not None:
        return "the coefficient after a look at a sample is not a sum of products over pairs of units"
    return "gnorm is not a sum of products over pairs of units" if normed(declared) else ""
