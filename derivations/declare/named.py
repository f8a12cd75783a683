"""The user's own numbers, and the names that are taken."""

import keyword
import re
from collections.abc import Mapping
from typing import Any

from derivations.declare import fields
from derivations.declare.declaration import Number
from derivations.declare.grammar import FUNCTIONS, Tree, foreign, number

NUMBER = ("default", "meaning", "minimum", "maximum", "above", "per")
RESERVED = (
    "d", "step", "batch", "decay", "noise", "gram", "norm", "overlap", "tier", "units", "teachers", "points", "f", "y",
    "p", "pi", "x", "a", "j", "time", "loss", "error", "numbers", "scalars", "sample_seed", "np", "nan", "inf",
    "classification_error",
)  # fmt: skip
"""Words that mean something else in a declaration, and so cannot be a slot or a number of the user's."""
OPTIONS = (
    "stage", "seed", "until", "save_points", "rtol", "atol", "backend", "solver", "preset", "config", "initial",
    "after", "system", "method", "step_size", "seeds", "device", "precision", "fresh_initial", "population_loss",
    "parameters", "declaration", "self",
)  # fmt: skip
"""What the functions of odesim call their options: a parameter of this name could not be given there."""
WRITTEN = re.compile(
    "[CEGKRSabceijmnrstuvwxy]|aa|ai|angle|bias|both|counts|empty|factor|fields|first|gg|labels|learning|look_up|means|"
    "mov(ed|ing)|normal|ones|out|range|ratio|root|second|series|shape|sizes?|slope|square|starts|tilt(ed|s)|total|uniform|"
    r"v[gv]|wj|ww|xp|absolute|[ABbcdehlnrstu]\d*_.*|[stx]\d+|\w*_\d+\w*"
)
"""Names within written functions, which a number that all units share must not have."""

MADE = re.compile(
    r"(norm|weight)_\w+|(kernel|mean|series|[AESVcv])_\d\w*|(bend|along|[BCDEKSVW](own)?)_(\w+_)?[QMP]_\w+"
)
"""Names within the statement of a model (`algebra`), which no number must have."""


def numbers(table: Mapping[str, Any]) -> tuple[Number, ...]:
    """The user's own numbers: a value, or a table with default, meaning, domain, and per = "unit"."""
    found = []
    for name, given in table.items():
        entry = given if isinstance(given, Mapping) else {"default": given}
        word = re.fullmatch(r"[A-Za-z]\w{0,39}", name, re.ASCII) and not keyword.iskeyword(name)
        ours = name in (*RESERVED, *FUNCTIONS, *OPTIONS) or MADE.fullmatch(name)
        ours = ours or ("per" not in entry and WRITTEN.fullmatch(name))
        if not name.isascii() and name.isidentifier():
            raise fields.Mistake(foreign(name), "parameters", name)
        if keyword.iskeyword(name):
            said = (
                f"{name!r} cannot be the name of a parameter, because it is a word of Python; choose another such "
                f"as {name[:3]}"
            )
            raise fields.Mistake(said, "parameters", name)
        if not word or ours or re.match("[qxz]_", name):
            raise fields.Mistake(
                f"{fields.shown(name)} cannot be the name of a parameter: it "
                + (
                    "is the name of something else in odesim; choose a longer one"
                    if word
                    else "is no name of at most 40 letters"
                ),
                "parameters",
                name,
            )
        place = f"parameters.{name}"
        fields.require_known(entry, NUMBER, place)
        limits = {key: fields.real(entry, key, place) for key in ("minimum", "maximum", "above") if key in entry}
        if entry.get("per", "unit") != "unit":
            raise fields.Mistake(f'per is "unit" or left out, but {entry["per"]!r} was given', "parameters", name)
        if "default" not in entry:
            raise fields.Mistake(f"parameter {name} has no default", "parameters", name)
        bounds: Any = {"minimum": limits.get("minimum"), "maximum": limits.get("maximum"), "above": limits.get("above")}
        formula = _formula(entry, place) if isinstance(entry["default"], str) else None
        given = entry["default"] if formula is None else number(formula, {"j": 1.0})
        default = fields.real({name: given}, name, "parameters", **bounds)
        meaning = fields.text(entry, "meaning", place, "")
        found.append(Number(name, default, meaning, per_unit="per" in entry, formula=formula, **limits))
    return tuple(found)


def _formula(entry: Mapping[str, Any], place: str) -> Tree:
    """The default of every unit as an expression in its number j = 1, 2, .."""
    if "per" not in entry:
        said = 'a default that is an expression is for numbers of units: write per = "unit" beside it'
        raise fields.Mistake(said, place, "default")
    return fields.formula(entry["default"], place, "default", ("j",))
