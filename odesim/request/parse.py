"""Conversion of strings from the command line or a file to values of the declared type."""

import contextlib
import dataclasses
import difflib
import json
import math
import numbers
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from derivations.contract import UsageError, synonyms

LONGEST = 400
"""Largest number of characters of a number. Nobody writes longer ones, and Python does not convert them."""
LARGEST = 10**300
"""Upper bound of whole numbers, the largest float, because almost all of them become floats."""
MOST_VALUES = 100_000
"""Largest number of values of a logarithmic grid of a sweep."""
TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def shortened(value: Any) -> str:
    """Return a given value as text for a message; long values are truncated."""
    try:
        text = repr(value)
    except ValueError:  # Python does not print whole numbers of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"


NEAR = 0.6
"""Smallest similarity (at most 1) at which an unknown word is treated as a misspelt known one."""
SHOWN = 16
"""Largest number of names that a message lists; of a longer list it gives the number."""


def near(word: str, known: Iterable[str]) -> str:
    """Return the known name most similar to an unknown `word`, or "" if none is similar.

    >>> near("untill", ["seed", "until"]), near("lemma-1", ["thm-2"])
    ('until', '')
    """
    known = list(known)
    meant = synonyms.meant(word, known)
    if meant:
        return meant
    names = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), list(names), n=1, cutoff=NEAR)
    return names[close[0]] if close else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown `word`: the most similar known word, or all known words."""
    known = list(known)
    close = near(word, known)
    if close:
        return f"did you mean {close!r}?"
    more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
    return f"known: {', '.join(known[:SHOWN])}{more}." if known else "there is none."


def whole_number(value: Any, name: str) -> int:
    """Return `value` as an integer. `25`, `25.0` and `1e6` are accepted, `2.5` raises `UsageError`."""
    if isinstance(value, str) and len(value) <= LONGEST:
        try:
            number = Decimal(value.strip().replace("_", ""))
        except InvalidOperation:
            number = Decimal("NaN")
    elif isinstance(value, numbers.Real) and not isinstance(value, bool):
        number = Decimal(int(value)) if isinstance(value, numbers.Integral) else Decimal(float(value))
    else:
        number = Decimal("NaN")
    if not number.is_finite() or number != number.to_integral_value():
        near = f" The nearest is {number.to_integral_value()}." if number.is_finite() and abs(number) < LARGEST else ""
        raise UsageError(f"{name} must be a whole number such as 25 or 1e6, but {shortened(value)} was given.{near}")
    if abs(number) >= LARGEST:
        raise UsageError(f"{name} must be below 1e300 in size, but {shortened(value)} was given.")
    return int(number)


MOST_SEED = 2**63 - 1


def seed_number(value: Any, name: str = "--seed") -> int:
    """Return `value` as a seed, a whole number from 0 to 2^63 - 1, which every file format can store."""
    seed = whole_number(value, name)
    if seed < 0:
        raise UsageError(f"{name} must not be negative, but {seed} was given.")
    if seed > MOST_SEED:
        raise UsageError(f"{name} must be below 2^63 = 9.2e18, but {shortened(value)} was given.")
    return seed


def real_number(value: Any, name: str) -> float:
    """Return `value` as a finite float. `0.5`, `1e-8` and `1/3` are accepted."""
    number = math.nan
    if isinstance(value, str) and len(value) <= LONGEST:
        try:
            number = float(Fraction(value.strip()) if "/" in value else float(value))
        except (ValueError, ZeroDivisionError, OverflowError):
            pass
    elif isinstance(value, numbers.Real) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            number = float(value)
    if not math.isfinite(number):
        raise UsageError(f"{name} must be a finite number such as 0.5 or 1e-8, but {shortened(value)} was given.")
    return number


def truth(value: Any, name: str) -> bool:
    """Return `value` as a boolean, from true, false, yes, no, on or off."""
    word = value.strip().lower() if isinstance(value, str) else ""
    if isinstance(value, int) and value in (0, 1):
        word = str(int(value))
    if word in TRUE + FALSE:
        return word in TRUE
    raise UsageError(f"{name} must be true or false, but {shortened(value)} was given.")


def _items(value: Any, name: str) -> Sequence[Any]:
    """Return the items of a list written as `1,-1`, as `1,0;0,1` for a list of lists, or as JSON."""
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("["):
            try:
                return json.loads(text)
            except (ValueError, RecursionError):
                raise UsageError(f"{name} must be a list such as 1,-1, but {shortened(value)} was given.") from None
        separator = ";" if ";" in text else ","
        return [item for item in text.strip("()").split(separator) if item.strip()]
    if isinstance(value, Iterable):
        return list(value)
    return [value]


def _sequence(value: Any, kind: Any, name: str) -> tuple[Any, ...]:
    """Return `value` as a tuple of the item types that `kind` declares, `tuple[int, ...]` or `tuple[int, float]`."""
    inner = typing.get_args(kind) or (str, ...)
    items = _items(value, name)
    if len(inner) == 2 and inner[1] is Ellipsis:
        if isinstance(value, str) and typing.get_origin(inner[0]) is tuple and ";" not in value and items:
            items = items if value.strip().startswith("[") else [value]
        return tuple(parse(item, inner[0], name) for item in items)
    if len(items) != len(inner):
        raise UsageError(f"{name} must be a list of {len(inner)} values, but {shortened(value)} was given.")
    return tuple(parse(item, one, name) for item, one in zip(items, inner, strict=True))


def _unboxed(value: Any) -> Any:
    """Convert arrays of NumPy, JAX, xarray or pandas to numbers of Python; other values are unchanged."""
    if not hasattr(value, "__array__"):
        return value
    import numpy as np

    return np.asarray(value).tolist()


def parse(value: Any, kind: Any, name: str) -> Any:
    """Return `value` converted to the type `kind`: int, float, bool, str, `Literal`, a tuple of these, or a union.

    Raises `UsageError` if this is impossible.
    """
    value = _unboxed(value)
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _alternative(value, typing.get_args(kind), name)
    if origin is typing.Literal:
        said = value.strip() if isinstance(value, str) else shortened(value)
        return _word(said, [str(word) for word in typing.get_args(kind)], name)
    if origin in (tuple, list) or kind in (tuple, list):
        return _sequence(value, kind, name)
    readers = {int: whole_number, float: real_number, bool: truth}
    if kind in readers:
        return readers[kind](value, name)
    if kind is str:
        if not isinstance(value, str):
            raise UsageError(f"{name} must be a word, but {shortened(value)} was given.")
        return value.strip()
    return value


def _alternative(value: Any, kinds: Sequence[Any], name: str) -> Any:
    """Return `value` converted to the first type of a union that fits."""
    if type(None) in kinds and (value is None or (isinstance(value, str) and value.strip().lower() == "none")):
        return None
    readable = [kind for kind in kinds if kind is not type(None) and typing.get_origin(kind) is not typing.Literal]
    failures = {}
    for kind in kinds:
        if kind is type(None):
            continue
        try:
            return parse(value, kind, name)
        except UsageError as error:
            failures[kind] = error
    said = str(failures[(readable or list(failures))[0]]).rstrip(".")
    words = [str(word) for kind in failures if readable and kind not in readable for word in typing.get_args(kind)]
    words += ["none"] if type(None) in kinds else []
    raise UsageError(f"{said}; it can also be {' or '.join(words)}." if words else f"{said}.")


def _word(word: str, choices: Sequence[str], name: str) -> str:
    """Return `word` if it is one of `choices`. Raises `UsageError` otherwise."""
    if word not in choices:
        meant = near(word, choices) if isinstance(word, str) else ""
        tried = f"; did you mean {meant!r}?" if meant else "."
        raise UsageError(f"{name} must be one of {', '.join(choices)}, but {shortened(word)} was given{tried}")
    return word


choice = _word


def check_domain(value: Any, field: dataclasses.Field) -> None:
    """Raise `UsageError` unless `value` (each entry of a tuple) lies in the declared domain of its field."""
    if isinstance(value, tuple):
        for item in value:
            check_domain(item, field)
        return
    domain, name = field.metadata, f"parameter {field.name}"
    if domain.get("choices") and isinstance(value, str):
        _word(value, domain["choices"], name)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return
    limits = {
        "minimum": ("at least", lambda bound: value >= bound),
        "maximum": ("at most", lambda bound: value <= bound),
        "above": ("above", lambda bound: value > bound),
    }
    for key, (words, holds) in limits.items():
        bound = domain.get(key)
        if bound is not None and not holds(bound):
            raise UsageError(f"{name} must be {words} {bound:g}, but {shortened(value)} was given.")


def parse_parameters(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of `given` converted to the fields of the parameter class `kind`; names and domains are
    checked.
    """
    fields = {field.name: field for field in dataclasses.fields(kind)}
    types_of = typing.get_type_hints(kind)
    values = {}
    for name, value in given.items():
        if name not in fields:
            raise UsageError(f"unknown parameter {name!r}; {nearest(name, fields)}")
        values[name] = parse(value, types_of[name], f"parameter {name}")
        check_domain(values[name], fields[name])
    return values


def parse_assignments(
    pairs: Iterable[str], option: str = "-p", form: str = "NAME=VALUE such as m=25"
) -> dict[str, str]:
    """Return `["m=25", "d=1e6"]` as a dictionary. Raises `UsageError` without `=` and for a name given twice."""
    values: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageError(f"{option} expects {form}, but {pair!r} was given.")
        if name in values:
            raise UsageError(f"parameter {name!r} was given twice ({values[name]} and {value}); give it once.")
        values[name] = value
    return values


def expression(text: str | float, parameters: Mapping[str, Any], name: str) -> float:
    """Return the value of an arithmetic expression in parameters, with `sqrt`, `log` and `exp`, such as `2*sqrt(d)`.

    Raises `UsageError` for anything else, and for a value that is not a positive finite number.
    """
    import ast
    import operator

    functions = {"sqrt": math.sqrt, "log": math.log, "exp": math.exp}
    binary = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
    binary |= {ast.Pow: operator.pow}

    def value(node: Any) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return float(number)
            case ast.Name(id=word) if isinstance(parameters.get(word), int | float):
                return float(parameters[word])
            case ast.BinOp(left=left, op=op, right=right) if type(op) in binary:
                return binary[type(op)](value(left), value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.Call(func=ast.Name(id=word), args=[argument], keywords=[]) if word in functions:
                return functions[word](value(argument))
        raise ValueError(f"expected numbers, parameters, sqrt, log or exp, got {ast.unparse(node)!r}")

    try:
        if len(str(text)) > LONGEST:
            raise ValueError(f"it has more than {LONGEST} characters")
        found = value(ast.parse(str(text), mode="eval").body)
        if not (math.isfinite(found) and found > 0):
            raise ValueError(f"its value is {found:g}")
    except (ValueError, SyntaxError, ArithmeticError, TypeError, RecursionError, MemoryError) as error:
        raise UsageError(
            f"{name} {str(text)[:LONGEST]} is not a positive number in terms of the parameters: {error}."
        ) from None
    return found


def parse_ranges(
    pairs: Iterable[str], lists: Iterable[str] = (), fractional: Iterable[str] | None = None
) -> dict[str, list[str]]:
    """Return `["d=1e3,1e4", "seed=0..9"]` as lists of strings.

    `a..b` gives all whole numbers from a to b. `a..b:n` gives n values on a logarithmic grid, rounded to whole numbers
    except for the names in `fractional`. Values that contain commas are separated by `;`. The values of the names in
    `lists` are lists, so that only `;` separates them.
    """
    found: dict[str, list[str]] = {}
    lists, broken = set(lists), set(fractional or ())
    for name, text in parse_assignments(pairs, "--over", "NAME=v1,v2,.. such as d=1e3,1e4").items():
        if name.strip() in lists and ";" not in text:
            raise UsageError(
                f"--over {name} takes lists, separated by ; as in {name}={text};{text.split(',')[0]}, but {text} "
                f"was given; for one value, use -p {name}={text}"
            )
        words = [word.strip() for word in text.split(";" if ";" in text else ",") if word.strip()]
        found[name] = [
            item
            for word in words
            for item in ([word] if name in lists else _counted(word, name, name.strip() in broken))
        ]
    return found


def _counted(word: str, name: str, fractional: bool) -> list[str]:
    """Return the values of `a..b` and `a..b:n`, or the word itself."""
    first, dots, last = word.partition("..")
    if not dots:
        return [word]
    last, colon, count = last.partition(":")
    if colon:
        return _logarithmic(word, name, (first, last, count), fractional)
    start, end = whole_number(first, f"--over {name}"), whole_number(last, f"--over {name}")
    if end < start or end - start >= 10**6:
        raise UsageError(f"--over {name}={word} must count upwards, by less than a million.")
    return [str(k) for k in range(start, end + 1)]


def _logarithmic(word: str, name: str, parts: tuple[str, str, str], fractional: bool) -> list[str]:
    """Return the n distinct values of the logarithmic grid `a..b:n`, ends included, rounded unless `fractional`."""
    option = f"--over {name}"
    start, end, count = real_number(parts[0], option), real_number(parts[1], option), whole_number(parts[2], option)
    if not 0 < start < end or not 2 <= count <= MOST_VALUES:
        raise UsageError(
            f"{option}={word} is a logarithmic grid a..b:n with 0 < a < b and 2 to {MOST_VALUES} values, such as "
            "1e3..1e5:9"
        )
    ratio = math.log(end / start) / (count - 1)
    inner = [start * math.exp(k * ratio) for k in range(1, count - 1)]
    values = [start, *inner, end]
    return list(dict.fromkeys(repr(v) if fractional else str(round(v)) for v in values))
