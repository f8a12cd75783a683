"""Title of every picture of a run: model, method, sizes, seed and step in one small line."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from derivations import outside
from odesim.show.alt import plain
from odesim.show.symbols import as_mathematics

WIDTH = 118
"""Characters of a line of a title in a picture of the width of a page."""
METHODS = {"flow": "ODE", "explicit": "SGD", "compressed": "compressed SGD", "observed": "observed weights"}


def title(run: Any, system: Any = None, width: int = WIDTH) -> str:
    """Return model and method, then the sizes with their symbols, seed or replicas, step and batch.

    It is one line; words beyond `width` characters go into a second. `run` is a data set of a run; missing values are
    left out. Of the parameters the title names those that the system calls `sizes`.
    """
    given = json.loads(run.attrs.get("parameters", "{}"))
    options = json.loads(run.attrs.get("options", "{}"))
    head = _origin(run, system)
    return "\n".join(_folded(head, [*_sizes(given, system), *_draws(run, options, system)], width))


def sweep_title(data: Any, manifest: Mapping[str, Any], system: Any, over: Sequence[str], width: int = WIDTH) -> str:
    """The title of a sweep: model and method, the swept names, then sizes that are equal in all runs."""
    cell = manifest.get("first_cell", {})
    name = system.name if system is not None else outside.last_name(str(data.attrs.get("system", "")))
    how = METHODS.get(str(cell.get("method", "")), "run")
    alike = {name: value for name, value in cell.get("parameters", {}).items() if name not in data["outcome"].dims}
    runs = data.sizes["seed"] if "seed" in data["outcome"].dims else 0
    words = [*_sizes(alike, system), *([f"{runs} seeds"] if runs else [f"seed {manifest.get('seed', 0)}"])]
    return "\n".join(_folded(f"{name}: {how} over {' and '.join(over)}", words, width))


def _origin(run: Any, system: Any) -> str:
    """Return the model, its stage if it is not the first, and the tier or method."""
    name = system.name if system is not None else outside.last_name(str(run.attrs.get("system", "")))
    stage, method = (str(run.attrs.get(key, "")) for key in ("stage", "method"))
    known = _stage(system, stage)
    if method == "compare":
        sides = (METHODS.get(side, side) for side in (str(run.attrs.get(key, "")) for key in ("first", "second")))
        how = " and ".join(side or "run" for side in sides)
    else:
        sgd = method.removesuffix(" SGD")
        how = METHODS.get(sgd, sgd)
    if known is not None and known.kind == "map":
        how = "one step"
    tier = str(run.attrs.get("tier", ""))
    if method == "flow" and how == METHODS["flow"] and known is not None and tier not in ("", known.tiers[0]):
        how += f" ({_words(tier)})"  # another tier gives other numbers
    first = next((known.name for known in system.stages), stage) if system is not None else stage
    return f"{name}{f', {_words(stage)}' if stage and stage != first else ''}" + (f": {how}" if how else "")


def _stage(system: Any, name: str) -> Any:
    """Return the stage of a system with this name; None if there is none."""
    return next((known for known in system.stages if known.name == name), None) if system is not None else None


def _words(stage: str) -> str:
    """Return the name of a stage or tier for readers.

    >>> _words("phase3"), _words("post-tune"), _words("R3")
    ('phase 3', 'post tune', 'R3')
    """
    letters = stage.rstrip("0123456789")
    space = " " if len(letters) > 1 else ""
    return f"{letters}{space}{stage[len(letters) :]}".strip().replace("-", " ").replace("_", " ")


def _sizes(given: Mapping[str, Any], system: Any) -> list[str]:
    """Return the sizes with their symbols."""
    sizes = dict(system.sizes) if system is not None else {}
    return [equal(symbol, given[name]) for name, symbol in sizes.items() if given.get(name) is not None]


def _draws(run: Any, options: Mapping[str, Any], system: Any) -> list[str]:
    """Return seed, or the number of replicas with their first seed; step and batch of training."""
    replicas = run.sizes.get("seed", 0) if "seed" in run.dims else run.attrs.get("replicas", 0)
    stage = _stage(system, str(run.attrs.get("stage", "")))
    symbol = getattr(stage, "step_symbol", "eta")
    said = []
    if "seed" in run.attrs:
        said.append(f"seed {run.attrs['seed']}")
    if replicas:
        said.append(f"{replicas} replica{'s' if replicas > 1 else ''}")
    step = next((options[name] for name in ("step_size", "step") if options.get(name) is not None), None)
    if step is not None and symbol:
        said.append(equal(symbol, step))
    if options.get("batch") is not None and not options.get("batches"):
        said.append(equal("B", options["batch"]))
    return said


def equal(symbol: str, value: Any) -> str:
    r"""Return a symbol, as declared or as mathematics, and its value.

    >>> equal("m*", 5), equal("d", 10**6), equal("eta/d", 0.25)
    ('$m^{*} = 5$', '$d = 10^6$', '$\\eta/d = 0.25$')
    """
    words = number(value).strip("$")
    left = symbol.strip("$") if symbol.startswith("$") else as_mathematics(symbol).strip("$")
    return f"${left} = {words}$"


def number(value: Any) -> str:
    """Return a number for readers: 1000, a power of ten from 1e4 on, six digits of any other.

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


def _folded(head: str, words: list[str], width: int) -> list[str]:
    """Return the head and words separated by commas, in lines of at most `width` characters, as drawn."""
    lines = [head]
    for k, word in enumerate(words):
        mark = " · " if k == 0 else ", "
        if len(plain(lines[-1] + mark + word)) <= width:
            lines[-1] += mark + word
        else:
            lines[-1] += "," if k else ""
            lines.append(word)
    return lines
