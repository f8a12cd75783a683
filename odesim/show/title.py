"""The one title of every picture of a run: whose dynamics this is, of what size, from which seed and by which steps."""

import json
import math
from collections.abc import Mapping
from typing import Any

from derivations import outside

WIDTH = 84
"""Characters of a line of a title."""
DERIVED = ("auto", None, -1)
"""Defaults that stand for a value made from the others: what came of them is no choice of the user's."""


def title(run: Any, system: Any = None, width: int = WIDTH) -> str:
    """System, stage and tier or method in a first line; sizes, seed or replicas, batch and step in those below.

    Lines have at most `width` characters.

    `run` is a data set of a run.  Of the parameters the title names those that the system calls sizes, and those that
    are not at their defaults; what the data set does not say is left out.
    """
    given = json.loads(run.attrs.get("parameters", "{}"))
    options = json.loads(run.attrs.get("options", "{}"))
    lines = [" · ".join(_origin(run, system))]
    return "\n".join(lines + _folded([*_sizes(given, system), *_draws(run, options)], width))


def _origin(run: Any, system: Any) -> list[str]:
    """System, stage, and how it was followed."""
    name = system.name if system is not None else outside.last_name(str(run.attrs.get("system", "")))
    stage, tier, method = (str(run.attrs.get(key, "")) for key in ("stage", "tier", "method"))
    once = system is not None and any(known.name == stage and known.kind == "map" for known in system.stages)
    how = {
        "flow": f"one step, tier {tier}" if once else f"flow, tier {tier}",
        "compare": f"{run.attrs.get('first', 'first run')} against {run.attrs.get('second', 'second run')}",
        "observed": "observed weights",
        "": f"tier {tier}" if tier else "",
    }.get(method, f"{method.removesuffix(' SGD')} SGD")
    return [part for part in (name, f"stage {stage}" if stage else "", how) if part]


def _sizes(given: Mapping[str, Any], system: Any) -> list[str]:
    """The sizes under their symbols, then what is not at its default under its name."""
    sizes = dict(system.sizes) if system is not None else {}
    said = [f"{symbol} = {number(given[name])}" for name, symbol in sizes.items() if given.get(name) is not None]
    fields = getattr(system.parameters, "__dataclass_fields__", {}) if system is not None else {}
    for name, value in given.items():
        if name in sizes or name == "tier" or name not in fields:
            continue
        if fields[name].default not in DERIVED and not _same(value, fields[name].default):
            said.append(f"{name} = {_short(value)}")
    return said


def _draws(run: Any, options: Mapping[str, Any]) -> list[str]:
    """Seed, or the number of replicas with the seed they start from; step size and batch of training."""
    replicas = run.sizes.get("seed", 0) if "seed" in run.dims else run.attrs.get("replicas", 0)
    said = []
    if "seed" in run.attrs:
        said.append(f"seed {run.attrs['seed']}")
    if replicas:
        said.append(f"{replicas} replica{'s' if replicas > 1 else ''}")
    if options.get("step_size") is not None:
        said.append(f"SGD step {number(options['step_size'])}")
    if options.get("batch") is not None:
        said.append(f"batch {number(options['batch'])}")
    return said


def number(value: Any) -> str:
    """A number as it is read: 1000, a power of ten from 1e4 on, six digits of any other.

    >>> number(1000), number(1000000), number(2.5e7), number(0.001), number(0.25)
    ('1000', '$10^6$', '$2.5 \\\\times 10^7$', '0.001', '0.25')
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return str(value)
    if value != 0 and not 1e-3 <= abs(value) < 1e4:
        digits, exponent = f"{value:.3e}".split("e")
        digits = digits.rstrip("0").rstrip(".")
        power = f"10^{{{int(exponent)}}}" if len(str(int(exponent))) > 1 else f"10^{int(exponent)}"
        return f"${power}$" if digits == "1" else rf"${digits} \times {power}$"
    return f"{value:.6g}"


def _same(value: Any, default: Any) -> bool:
    """Whether a value as JSON gives it back is the default."""
    return json.dumps(value) == json.dumps(default, default=str)


def _short(value: Any) -> str:
    """A value in a few characters: a list by its entries where they are few, otherwise by its length."""
    if isinstance(value, list):
        flat = all(not isinstance(entry, list) for entry in value)
        return ", ".join(map(number, value)).join("()") if flat and len(value) <= 4 else f"({len(value)} entries)"
    text = number(value)
    return text if len(text) <= 40 or text.startswith("$") else f"{text[:37]}..."


def _folded(words: list[str], width: int) -> list[str]:
    """Words parted by commas, in lines of at most `width` characters."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(word) + 2 <= width:
            lines[-1] += f", {word}"
        else:
            lines.append(word)
    return lines
