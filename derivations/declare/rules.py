"""Rules of training: the coefficient c of a sample in the step of a weight vector or a number, as an expression.

    u <- u - h (c x + decay u),  s <- s - h c

A rule may contain the fields of its unit, the answers f and y (with the label's noise), the readout a and the numbers
of the unit, numbers that all units share, the loss l of the sample, and

    dl = dl/df,   df = df/dz of this field (df/ds of a number),   dphi = dphi/dz without the readout,   grad = dl df,
    gnorm = the norm of the gradient of all trained vectors, over sqrt(d) (`looks`)
    R = the reward of the episode of the sample (`episodes`)

c need not be a derivative. The dynamics closes on E[c z] and E[c c] like that of a gradient.
"""

from collections.abc import Mapping
from typing import Any

from derivations.declare import fields
from derivations.declare.declaration import Group, Number, Rule, moves
from derivations.declare.episodes import REWARD
from derivations.declare.grammar import OF_SAMPLES, Tree

SAMPLE = ("f", "y", "a", "l", "dl", "df", "dphi", "grad", "gnorm")
"""Names that a rule may contain besides fields and numbers."""


def rules(
    training: Mapping[str, Any], students: tuple[Group, ...], trained: tuple[str, ...], numbers: tuple[Number, ...],
    weights: str,
) -> tuple[Rule, ...]:  # fmt: skip
    """Return the rules of [training]. Raises `fields.Mistake` for unknown names and for invalid rules."""
    entry = training.get("rule")
    if entry is None:
        return ()
    sample = (*SAMPLE, REWARD) if "episode" in training else SAMPLE
    all_pairs = [(group, word) for group in students for word in (*group.slots, *group.own)]
    moving = [(group, word) for group, word in all_pairs if moves(trained, group, word)]
    if not isinstance(entry, Mapping):
        entry = {_only(moving): entry}
    declared_rules = []
    for name, text in entry.items():
        owners = [(group, word) for group, word in moving if name in (word, group.named(word))]
        if not owners:
            raise fields.Mistake(_missing(name, all_pairs, moving), "training", "rule")
        if not isinstance(text, str):
            message = f"a rule is an expression such as 'clip(dl, 1)*df', but {fields.shown(text)} was given"
            raise fields.Mistake(message, "training", "rule")
        tree = fields.expression(text, "training", "rule")
        for group, word in owners:
            _require(text, tree, group, word, numbers, weights, sample)
        declared_rules.append(Rule(name, text.strip(), tree))
    return tuple(declared_rules)


def _only(moving: list[tuple[Group, str]]) -> str:
    """Return the slot of a rule without a name."""
    slots = dict.fromkeys(group.named(word) for group, word in moving if word in group.slots)
    if len(slots) == 1:
        return next(iter(slots))
    if not slots:
        raise fields.Mistake(
            "rule must name the number that it applies to, because no vector is trained: rule = {a = '..'}",
            "training",
            "rule",
        )
    hint = ", ".join(f"{name} = '..'" for name in slots)
    raise fields.Mistake(
        f"rule must name the vector that it applies to, because there are {len(slots)} of them: rule = {{{hint}}}",
        "training",
        "rule",
    )


def _missing(name: str, all_pairs: list[tuple[Group, str]], moving: list[tuple[Group, str]]) -> str:
    """Return the reason why there is no rule of this name."""
    if any(name in (word, group.named(word)) for group, word in all_pairs):
        return f"rule of {name} has no effect: {name} is not trained"
    words = dict.fromkeys(word for group, word in moving)
    return f"rule names {fields.shown(name)}, which is not trained or does not exist; {fields.near(name, words)}"


def _require(
    text: str, tree: Tree, group: Group, word: str, numbers: tuple[Number, ...], weights: str, sample: tuple[str, ...]
) -> None:  # fmt: skip
    """Raise an error for a rule of a slot or a number with unknown names, or without any motion."""
    number_names = [number.name for number in numbers]
    used_names = [name for name in (*group.slots, *number_names) if name in sample and name in tree.names()]
    if used_names:
        message = (
            f"the rule {text!r} names {used_names[0]}, which is both your own name and a reserved name of samples: "
            "rename your parameter"
        )
        raise fields.Mistake(message, "training", "rule")
    names = (*group.slots, *number_names, *sample)
    for name in tree.names():
        if name == REWARD and name not in names:
            message = "rule names R, the reward of an episode, but [training] has no episode"
            raise fields.Mistake(message, "training", "rule")
        if name not in names:
            message = (
                f"rule names {name!r}, which is neither a field of this unit nor a number nor one of "
                f"{', '.join(sample)}"
            )
            hint = fields.near(name, names)
            raise fields.Mistake(f"{message}; {hint}" if hint.startswith("did") else message, "training", "rule")
    wrong = [call.word for call in tree.walk() if call.kind == "call" and call.word not in OF_SAMPLES]
    if wrong:
        message = f"{wrong[0]} has no meaning in a rule; its functions are {', '.join(OF_SAMPLES)}"
        raise fields.Mistake(message, "training", "rule")
    if "dphi" in tree.names() and (word == "a" or group.share is not None):
        message = (
            "the unit itself is not a function of its readout"
            if word == "a"
            else "the share of a unit depends on all units"
        )
        raise fields.Mistake(f"dphi has no meaning in the rule of {word}: {message}; write df", "training", "rule")
    if word in group.slots:
        _require_along(group, word, weights)


def _require_along(group: Group, word: str, weights: str) -> None:
    """Raise an error for rules of vectors whose gradient has a part along the vector itself."""
    if weights == "normalised":
        message = (
            "a rule moves a vector only along x, but normalised weights also move along themselves: use sphere or free"
        )
        raise fields.Mistake(message, "training", "rule")
    if any(call.parts[1].word == word for call in group.unit.calls("wick")):
        message = (
            f"a rule moves {word} only along x, but the unit {group.text!r} depends on its norm: write the polynomial"
        )
        raise fields.Mistake(message, "training", "rule")
