"""Picture of a sweep: hitting times and other measures over the first swept name, coloured by the second."""

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from derivations.contract import System
from derivations.drawing import BLACK, colours, in_rows, is_still, spread
from odesim.show import limit as limit_picture
from odesim.show.column import LETTERS, finish, head
from odesim.show.plot import save_figure, style
from odesim.show.symbols import as_mathematics, in_lines, symbol_of
from odesim.show.title import equal, number, sweep_title
from odesim.study import limit
from odesim.sweeps.swept import headlines, hitting_times, read

PANELS = 6
"""Largest number of measures that are drawn."""
RUNS = ("seed", "replica")
"""Names along which a sweep repeats a run."""
ZERO = 1e-8
"""Size below which numbers are rounding of the integrator."""
TICKS = 4
"""Largest number of swept values that are written at an axis; from `DECADES` decades on powers of ten are written."""
DECADES = 2
COUNTED = ("evaluations", "outcome_time")
"""Numbers of every run that are not measures of the model."""
STYLES = ("-", "--")


@dataclasses.dataclass(frozen=True)
class Measure:
    """Content of one panel: a label, and by the name of a line the values (runs, first axis, second axis, others)."""

    name: str
    label: str
    lines: Mapping[str, np.ndarray]
    is_time: bool = False

    @property
    def all(self) -> np.ndarray:
        """All finite values."""
        values = np.concatenate([line.ravel() for line in self.lines.values()])
        return values[np.isfinite(values)]

    @property
    def varies(self) -> bool:
        """True if there is something to draw: reached hitting times, or numbers that differ over the grid."""
        values = self.all
        if self.is_time:
            return bool(values.size)
        return bool(values.size and np.abs(values).max() > ZERO) and not is_still(values)


def draw(data: Any, manifest: Mapping[str, Any], system: System | None = None) -> dict[str, Any]:
    """Return the figure `sweep` of the data set of a sweep with its manifest; none if no measure varies over the grid.

    A point is the median of the runs that differ only in seed or replica, and a bar is their range. Of many hitting
    times the first is drawn, and the last if it is reached. Comparisons of SGD with its flow have another picture
    (`odesim.show.limit`).
    """
    from matplotlib.figure import Figure

    axes = swept_axes(data)
    if limit.is_comparison(data):
        heading = sweep_title(data, manifest, system, [name_of(name, system) for name in axes], LETTERS)
        return {"sweep": limit_picture.draw(data, heading)}
    found = [m for m in measures(data, axes, system) if m.varies][:PANELS]
    if not axes or not found:
        return {}
    with style():
        figure = Figure(layout="constrained")
        for axis, measure in zip(in_rows(figure, len(found)), found, strict=True):
            axis.set_label(measure.name)
            _panel(axis, data, axes, measure, system)
        head(figure, sweep_title(data, manifest, system, [name_of(name, system) for name in axes], LETTERS))
        finish(figure)
    return {"sweep": figure}


def redraw(folder: Path, svg: bool = False, system: System | None = None) -> list[Path]:
    """Draw the picture of a stored sweep into its folder. Return the files, none if nothing differs over the grid.

    `system` is that of the sweep, if it is outside of odesim.
    """
    from odesim.request.stored_system import system_of
    from odesim.store import replace_pictures

    manifest, data = read(folder)
    made = draw(data, manifest, system if system is not None else system_of(data))
    endings = ("png", "svg") if svg else ("png",)

    def write(place: Path) -> list[Path]:
        for name, figure in made.items():
            save_figure(figure, name, place, endings)
        return [place / f"{name}.{ending}" for name in made for ending in endings]

    return replace_pictures(folder, manifest, write) if made else []


def swept_axes(data: Any) -> list[str]:
    """Return the swept names that have several values, without those that repeat runs unless there are no others."""
    several = [str(name) for name in data["outcome"].dims if data.sizes[name] > 1]
    return [name for name in several if name not in RUNS] or several[:1]


def measures(data: Any, axes: list[str], system: System | None) -> list[Measure]:
    """Hitting times, then the headline numbers of the runs, each once."""
    grid = [str(name) for name in data["outcome"].dims]
    found = []
    for name, values in hitting_times(data).items():
        lines = {said: _arranged(array, axes) for said, array in _hits(values, grid).items()}
        found.append(Measure(name, f"hitting time {as_mathematics(name)}", lines, is_time=True))
    drawn = {shown for measure in found for shown in (measure.name, f"first_{measure.name}")}
    numbers = headlines(data)
    for name in sorted(numbers, key=lambda name: name.startswith("final_")):
        if not (name in drawn or name in COUNTED or name.endswith("_initial")):
            found.append(Measure(name, _words(name, data, system), {"": _arranged(numbers[name], axes)}))
    return found


def _hits(values: Any, grid: list[str]) -> dict[str, Any]:
    """Return the first hitting time of any entry, and the last over the last index, for the first hit of each."""
    inner = [dim for dim in values.dims if dim not in grid and dim not in RUNS]
    if not inner:
        return {"": values}
    each = values.min(inner[:-1]) if len(inner) > 1 else values
    if values.sizes[inner[-1]] == 1:
        return {"": each.min(inner[-1])}
    return {"first to be reached": each.min(inner[-1]), "last to be reached": each.max(inner[-1])}


def _arranged(values: Any, axes: list[str]) -> np.ndarray:
    """Return values (runs, first axis, second axis, others); missing names have one entry."""
    runs = [dim for dim in values.dims if dim in RUNS and dim not in axes[:2]]
    shown = [dim for dim in axes[:2] if dim in values.dims]
    others = [dim for dim in values.dims if dim not in (*runs, *shown)]
    array = values.transpose(*runs, *shown, *others).values.astype(float)
    sizes = [values.sizes[dim] for dim in shown] + [1] * (2 - len(shown))
    return array.reshape(int(np.prod([values.sizes[dim] for dim in runs], dtype=int)), *sizes, -1)


def _words(name: str, data: Any, system: System | None) -> str:
    """Return the label of a headline number: its meaning in the system, or its name in words."""
    from derivations.contract import load
    from derivations.headlines import COMMON

    known = {**COMMON, **(load(system.headlines) if system is not None and system.headlines else {})}
    summary = f"{name.removeprefix('final_')}_final" if name.startswith("final_") else name
    said = re.split(r"[:;(]", known.get(name, known.get(summary, "")))[0].strip()
    return in_lines(said if 0 < len(said) <= 70 else name.replace("_", " "))


def name_of(name: str, system: System | None) -> str:
    """Return a swept name as mathematics, or the meaning of the parameter if it has no symbol."""
    sizes = system.sizes if system is not None else {}
    symbol = symbol_of(name, sizes)
    fields = getattr(system.parameters, "__dataclass_fields__", {}) if system is not None else {}
    meaning = fields[name].metadata.get("meaning", "") if name in fields else ""
    said = re.split(r"[:;(,]", meaning)[0].strip()
    return symbol if symbol.startswith("$") or not 0 < len(said) <= 50 else said


def _panel(axis: Any, data: Any, axes: list[str], measure: Measure, system: System | None) -> None:
    """One measure over the first axis, a colour for every value of the second."""
    first = data[axes[0]].values
    numeric = first.dtype.kind in "iuf"
    x = first.astype(float) if numeric else np.arange(len(first), dtype=float)
    if not numeric:
        axis.set_xticks(x, [str(value) for value in first])
    second = data[axes[1]].values if len(axes) > 1 else [None]
    shades = colours(len(second)) if len(axes) > 1 else (BLACK,)
    runs = 1
    for dashes, (said, values) in zip(STYLES, measure.lines.items(), strict=False):
        runs = len(values)
        for k, value in enumerate(second):
            for other in range(values.shape[-1]):
                _line(axis, x, values[:, :, k, other], shades[k], dashes)
            if value is not None:
                axis.plot([], [], "-", color=shades[k], label=_valued(axes[1], value, system))
        if said:
            axis.plot([], [], dashes, color="0.3", label=said)
    if runs > 1:
        axis.plot([], [], "o", color="0.3", markersize=3, label=f"median of {runs} runs, bars from least to largest")
    _scales(axis, x if numeric else None, measure)
    axis.set(xlabel=in_lines(name_of(axes[0], system)), ylabel=measure.label)


def _line(axis: Any, x: np.ndarray, values: np.ndarray, shade: str, dashes: str) -> None:
    """Draw medians of runs (runs, points) with their ranges; a point that half of the runs do not reach is left out."""
    order = np.argsort(x)
    middle = np.median(values, axis=0)
    reached = np.where(np.isfinite(values), values, np.nan)
    shown = [k for k in order if np.isfinite(middle[k])]
    if not shown:
        return
    low, high = (f(reached[:, shown], axis=0) for f in (np.nanmin, np.nanmax))
    bars = np.abs([middle[shown] - low, high - middle[shown]]) if len(values) > 1 else None
    axis.errorbar(
        x[shown], middle[shown], yerr=bars, fmt=f"o{dashes}", color=shade, markersize=3, elinewidth=0.7, linewidth=1.0
    )


def _scales(axis: Any, x: np.ndarray | None, measure: Measure) -> None:
    """Set logarithmic axes for values that span a decade, and note the number of runs without the measured event."""
    drawn = any(len(line.get_xdata()) for line in axis.lines)  # a logarithmic axis without data cannot be drawn
    for set_scale, values in ((axis.set_xscale, x), (axis.set_yscale, measure.all)):
        if drawn and values is not None and values.min() > 0 and values.max() >= 10 * values.min():
            set_scale("log")
    powers = axis.get_xscale() == "log" and x is not None and x.max() >= 10**DECADES * x.min()
    if x is not None and not powers and len(np.unique(x)) <= 2 * TICKS:
        chosen = np.unique(x)[spread(np.unique(x), TICKS)]
        axis.set_xticks(chosen, [number(value) for value in chosen.tolist()])
        axis.minorticks_off()
    if (measure.all == np.round(measure.all)).all() and axis.get_yscale() == "linear":
        axis.yaxis.get_major_locator().set_params(integer=True)
    last = list(measure.lines.values())[-1]
    missing = int((~np.isfinite(last)).sum())
    if missing:
        words = f"{missing} of {last.size} not reached"
        axis.text(1.0, 1.02, words, transform=axis.transAxes, fontsize=6.5, ha="right")


def _valued(name: str, value: Any, system: System | None) -> str:
    """A swept name and its value in a legend."""
    words = name_of(name, system)
    plain = value.item() if hasattr(value, "item") else value
    return equal(words, plain) if words.startswith("$") else f"{words}: {number(plain)}"
