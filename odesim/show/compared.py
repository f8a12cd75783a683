"""Picture of a comparison: order parameters of both runs, the loss, and the agreement of the runs."""

import textwrap
from typing import Any

import numpy as np

from derivations.drawing import BLACK, COLUMN, GREY, colour
from odesim.show.column import LETTERS, LINE, STYLE, TITLE, head
from odesim.show.entries import chosen_entries
from odesim.show.legend import ROW, SMALL, columns, lines
from odesim.show.symbols import in_lines, label_of
from odesim.study import panels
from odesim.study.comparison import Comparison
from odesim.study.replicas import on_times, with_replicas

FEW = 10
"""Number of replicas from which their median and 10 to 90 % range are drawn; fewer replicas are drawn one by one."""
BAND = (0.1, 0.5, 0.9)
NOTES = 8
"""Number of lines below the panels; the summary has all of them."""
ROWS = (1.85, 1.75)
"""Heights in inches: of the order parameters, and of loss and agreement below them."""
ROUNDING = 1e-12
"""Relative size below which differences are rounding."""
THIN, THICK = 0.5, 1.4
SCALAR = "0.1"
"""Colour of the loss and of other scalars, and of the run itself in legends."""
DOTS = (0, (1.2, 1.2))
REPLICA = {"linewidth": THIN, "alpha": 0.6}
EXPECTED = {"linewidth": 0.7, "linestyle": (0, (3, 1.5))}
"""Ends of the band of SGD around the flow."""


def draw(run: Any, heading: str = "") -> Any:
    """Draw a comparison under a heading; `run` is the data set of `Comparison.trajectory()`.

    Above: the matched entries of the order parameter with the largest change, one colour for each, and the others as a
    grey band. Below on the left: the loss, if both runs have one. On the right: the half-way times of entries, second
    run against first, or, if none is known, the largest difference over time with its 95 % bound. Comparisons stored by
    earlier versions have differences only.
    """
    import matplotlib as mpl

    with mpl.rc_context(rc=STYLE):
        return _drawn(run, heading)


def _drawn(run: Any, heading: str) -> Any:
    """The figure, in the style of the picture."""
    from matplotlib.figure import Figure

    curves, loss = "shown_first" in run, "loss_first" in run
    notes = _notes(run)
    rows = [ROWS[0]] * curves + [ROWS[1]]
    figure = Figure(figsize=(COLUMN, sum(rows) + LINE * len(notes)), layout="constrained")
    grid = figure.add_gridspec(len(rows), 1, height_ratios=rows)
    axes = [figure.add_subplot(grid[0, 0])] if curves else []
    axes += [figure.add_subplot(cell) for cell in grid[-1, 0].subgridspec(1, 1 + loss)]
    handles: list[Any] = []
    if curves:
        handles += _curves(axes.pop(0), run)
    if loss:
        _loss(axes.pop(0), run)
    handles += _agreement(axes.pop(0), run)
    for axis, letter in zip(figure.axes, "abc", strict=False):
        axis.set_title(letter, loc="left", fontweight="bold", fontsize=8)
    if heading:
        head(figure, heading)
    labels = [handle.get_label() for handle in handles]
    across = columns(labels, COLUMN)
    figure.legend(
        handles=handles, loc="outside lower center", ncols=across, fontsize=SMALL, columnspacing=1.2, handlelength=1.6,
        title="\n".join(notes), title_fontsize=TITLE, alignment="left", frameon=False,
    )  # fmt: skip
    figure.set_figheight(figure.get_figheight() + ROW * lines(labels, across))
    return figure


def band(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
    """Return the ends of a band of replicas (replica, time), and its name in words."""
    if len(values) < FEW:
        return values.min(axis=0), values.max(axis=0), f"min to max of {len(values)}"
    low, high = np.quantile(values, (BAND[0], BAND[2]), axis=0)
    return low, high, f"10 to 90 % of {len(values)}"


def _methods(run: Any) -> tuple[str, str]:
    """Return the methods of both runs from the data set of a comparison."""
    return str(run.attrs.get("first", "first run")), str(run.attrs.get("second", "second run"))


def _names(run: Any) -> tuple[str, str]:
    """Return the names of both runs for a legend. For a user's samples they mention the samples, unlike the third
    run.
    """
    first, second = _named(*_methods(run))
    return first, f"{second} on the samples" if "shown_gaussian" in run else second


def _gaussian(axis: Any, time: np.ndarray, values: np.ndarray, shade: Any) -> None:
    """The median of the replicas (replica, time) of SGD on Gaussian inputs."""
    axis.plot(time, np.median(values, axis=0), linestyle=DOTS, color=shade, linewidth=1.1)


def _named(first: str, second: str) -> tuple[str, str]:
    """Names of two runs in a legend, from their methods."""
    names = {"flow": "ODE", "explicit": "SGD", "compressed": "SGD", "observed": "observed weights"}
    pair = names.get(first, first), names.get(second, second)
    return pair if pair[0] != pair[1] else (f"first {pair[0]}", f"second {pair[1]}")


def _both(axis: Any, time: np.ndarray, first: np.ndarray, second: np.ndarray, shade: Any) -> None:
    """One curve of the first run above the replicas (replica, time) of the second."""
    if len(second) == 1:
        axis.plot(time, second[0], "--", color=shade, linewidth=1.0)
    elif len(second) < FEW:
        axis.plot(time, second.T, color=shade, **REPLICA)
    else:
        low, high, _ = band(second)
        axis.fill_between(time, low, high, color=shade, alpha=0.25, linewidth=0)
        axis.plot(time, np.median(second, axis=0), color=shade, **REPLICA)
    axis.plot(time, first, color=shade, linewidth=THICK)


def _expected(axis: Any, time: np.ndarray, low: np.ndarray, high: np.ndarray, shade: Any) -> None:
    """Draw the expected band of SGD around the flow: faint behind the replicas, with dashed ends."""
    axis.fill_between(time, low, high, color=shade, alpha=0.1, linewidth=0, zorder=0.5)
    for end in (low, high):
        axis.plot(time, end, color=shade, **EXPECTED)


def _curves(axis: Any, run: Any) -> list[Any]:
    """Draw the most important order parameters. Return the entries of the legend."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    time, first, second = (run[name].values for name in ("time", "shown_first", "shown_second"))
    handles: list[Any] = []
    if "others_low" in run:
        axis.fill_between(time, run["others_low"], run["others_high"], color="0.87", linewidth=0)
    numbers = run["shown_colour"].values
    noun = str(run["shown_colour"].attrs.get("meaning", "entry")).removeprefix("number of the ")
    for k, number in enumerate(numbers):
        if "shown_low" in run:
            _expected(axis, time, run["shown_low"].values[k], run["shown_high"].values[k], colour(k))
        _both(axis, time, first[k], second[:, k], colour(k))
        handles.append(Line2D([], [], color=colour(k), linewidth=THICK, label=f"{noun} {int(number) + 1}"))
    first_name, second_name = _names(run)
    handles += _of_both(first_name, second_name, second[:, 0])
    if "shown_low" in run:
        handles.append(_band_handle())
    if "shown_gaussian" in run:
        for k in range(len(numbers)):
            _gaussian(axis, time, run["shown_gaussian"].values[:, k], colour(k))
        handles.append(Line2D([], [], color="0.1", linewidth=1.1, linestyle=DOTS, label="SGD, Gaussian inputs, median"))
    if "others_low" in run:
        handles.append(Patch(color="0.87", linewidth=0, label=f"other entries, {second_name}, 5 to 95 %"))
    meaning = str(run["shown_first"].attrs.get("meaning", ""))
    axis.set(xlabel="time $t$", ylabel=in_lines(label_of(meaning, "order parameter")), xlim=(time[0], time[-1]))
    axis.set_label("order parameters")
    return handles


def _of_both(first: str, label: str, second: np.ndarray) -> list[Any]:
    """Return legend entries of the two runs; `second` (replica, time) is a curve of the second."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    line = Line2D([], [], color=SCALAR, linewidth=THICK, label=first)
    if len(second) >= FEW:
        return [line, Patch(color="0.35", alpha=0.35, linewidth=0, label=f"{label}, {band(second)[2]}")]
    words, style = (f"{label}, {len(second)} replicas", "-") if len(second) > 1 else (label, "--")
    return [line, Line2D([], [], color="0.35", linewidth=1.0, linestyle=style, label=words)]


def draw_component(axis: Any, comparison: Comparison, name: str) -> list[Any]:
    """Draw the matched entries of one component of both runs into `axis`, and return the entries of a legend.

    The first run is a line on top of the replicas of the second or, for ten or more, on top of their 10 to 90 % range.
    If the comparison has a theoretical band of SGD, the band of these entries is behind both. A scalar that is positive
    and spans a decade has a logarithmic axis.
    """
    from matplotlib.lines import Line2D

    variable = comparison.second.state[name]
    first, second = np.median(on_times(comparison.first, name, comparison.times)[0], axis=0), with_replicas(variable)
    dims = [dim for dim in variable.dims if dim not in ("seed", "time")]
    handles: list[Any] = []
    bands = _bands(comparison, name)
    for place, shade, words in chosen_entries(first, dims):
        shade = shade if dims else SCALAR
        if place in bands:
            _expected(axis, comparison.times, *bands[place], shade)
        _both(axis, comparison.times, first[(slice(None), *place)], second[(slice(None), slice(None), *place)], shade)
        handles += [Line2D([], [], color=shade, linewidth=THICK, label=words)] if words else []
    handles += _of_both(
        *_named(comparison.first.origin.method, comparison.second.origin.method),
        second.reshape(*second.shape[:2], -1)[..., 0],
    )
    handles += [_band_handle()] if bands else []
    if not dims:
        _logarithmic(axis, first, second)
    axis.set(xlabel="time $t$", ylabel=in_lines(label_of(variable.meaning, name)))
    return handles


def _bands(comparison: Comparison, name: str) -> dict[tuple[int, ...], tuple[np.ndarray, np.ndarray]]:
    """Return the lower and upper ends (time,) of the theoretical band of the entries of a component that have one."""
    arrays = getattr(comparison.band, "arrays", {})
    if f"{name}_low" in arrays:
        return {(): (arrays[f"{name}_low"].values, arrays[f"{name}_high"].values)}
    chosen = panels.chosen_of(comparison.first, comparison.reference)
    if name != chosen.name or "shown_low" not in arrays or panels.PARTS in comparison.second.state[name].dims:
        return {}
    ends = zip(arrays["shown_low"].values, arrays["shown_high"].values, strict=True)
    return dict(zip(chosen.indices, ends, strict=True))


def _band_handle() -> Any:
    """Return the legend entry of the theoretical band."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=SCALAR, label="90 % band of SGD, theory", **EXPECTED)


def _logarithmic(axis: Any, *curves: np.ndarray) -> None:
    """Use a logarithmic axis if all curves are positive and together span a decade."""
    smallest, largest = min(map(np.nanmin, curves)), max(map(np.nanmax, curves))
    if smallest > 0 and largest > 10 * smallest:
        axis.set_yscale("log")


def _loss(axis: Any, run: Any) -> None:
    """Draw the loss of both runs, on a logarithmic axis if it spans a decade and is positive."""
    time, first, second = (run[name].values for name in ("time", "loss_first", "loss_second"))
    if "loss_low" in run:
        _expected(axis, time, run["loss_low"].values, run["loss_high"].values, SCALAR)
    _both(axis, time, first, second, SCALAR)
    if "loss_gaussian" in run:
        _gaussian(axis, time, run["loss_gaussian"].values, SCALAR)
    _logarithmic(axis, first, second)
    meaning = str(run["loss_first"].attrs.get("meaning", "loss"))
    axis.set(xlabel="time $t$", ylabel=in_lines(label_of(meaning, "loss")), xlim=(time[0], time[-1]))
    axis.set_label("loss")


def _agreement(axis: Any, run: Any) -> list[Any]:
    """Draw times of both runs against each other, if some are known, otherwise differences. Return more entries of the
    legend.
    """
    if "half_first" in run:
        first, second = run["half_first"].values, run["half_second"].values
        finite = np.isfinite(first) & np.isfinite(second).any(axis=0)
        if finite.any():
            return _times(axis, run, first, second, np.flatnonzero(finite))
    return _differences(axis, run)


def _times(axis: Any, run: Any, first: np.ndarray, second: np.ndarray, entries: np.ndarray) -> list[Any]:
    """Draw the half-way times, second run against first, and the diagonal."""
    from matplotlib.lines import Line2D

    top, incomplete = 0.0, False
    for k in entries:
        times = second[np.isfinite(second[:, k]), k]
        low, middle, high = np.quantile(times, BAND)
        complete = len(times) == len(second)
        incomplete |= not complete
        axis.errorbar(
            first[k], middle, [[middle - low], [high - middle]], fmt="o", markersize=4, linewidth=0.9, capsize=1.5,
            color=colour(int(k)), markerfacecolor=colour(int(k)) if complete else "white",
        )  # fmt: skip
        top = max(top, first[k], high)
    axis.plot([0, 1.08 * top], [0, 1.08 * top], color="0.6", linewidth=0.7, zorder=0)
    first_name, second_name = _named(*_methods(run))
    axis.set(
        xlabel=f"half-way time, {first_name}" if len(first_name) < 6 else f"half way, {first_name}",
        ylabel=f"half-way time, {second_name}" if len(second_name) < 6 else f"half way, {second_name}",
        xlim=(0, 1.08 * top),
        ylim=(0, 1.08 * top),
    )
    axis.set_aspect("equal", adjustable="datalim" if top == 0 else "box")
    axis.set_label("half-way times")
    dot = {"color": "0.3", "marker": "o", "linestyle": "", "markersize": 4}
    handles = [Line2D([], [], **dot, label="time, median and 10 to 90 %" if len(second) > 1 else "time")]
    if incomplete:
        handles.append(Line2D([], [], **dot, markerfacecolor="white", label="not reached by every replica"))
    return handles


def _differences(axis: Any, run: Any) -> list[Any]:
    """Draw the largest difference of any entry of any component over its margin, with the bound of its interval."""
    from matplotlib.lines import Line2D

    time = run["time"].values
    names = [str(name).removeprefix("distance_") for name in run if str(name).startswith("distance_")]
    margins = {name: judged(run, name)[1] for name in names}
    shares, bounds = [], []
    for name in names:
        unit = margins[name] if np.isfinite(margins[name]) and margins[name] > 0 else 1.0
        shares.append(np.median(run[f"distance_{name}"].values, axis=0) / unit)
        if f"bound_{name}" in run and np.isfinite(run[f"bound_{name}"].values).all():
            bounds.append(run[f"bound_{name}"].values / unit)
    largest = np.max(shares, axis=0)
    axis.set(xlabel="time $t$", xlim=(time[0], time[-1]))
    axis.set_label("differences")
    if largest.max(initial=0.0) <= ROUNDING:
        axis.text(0.5, 0.5, "equal up to rounding", transform=axis.transAxes, ha="center", color="0.4", fontsize=6.5)
        axis.set_ylabel("largest difference")
        return []
    axis.plot(time, _positive(largest), color=BLACK, linewidth=THICK)
    handles = [Line2D([], [], color=BLACK, linewidth=THICK, label="largest difference, median replica")]
    if bounds:
        axis.plot(time, _positive(np.max(bounds, axis=0)), "--", color=GREY, linewidth=1.0)
        handles.append(Line2D([], [], color=GREY, linestyle="--", label="bound of the mean difference (95 %)"))
    axis.set_yscale("log")
    axis.set_ylim(max(float(largest[largest > 0].min()), float(largest.max()) * 1e-4) / 1.5, None)
    if all(np.isfinite(margin) for margin in margins.values()):
        axis.axhline(1.0, color="0.6", linewidth=0.7)
        axis.set_ylabel("difference / margin")
    else:
        axis.set_ylabel("largest difference")
    return handles


def _notes(run: Any) -> list[str]:
    """Return the judgement of the whole comparison, the sentence of the shown component, and the explanations."""
    if "notes" not in run:
        return []
    notes = [str(note) for note in run["notes"].values]
    lines = [line for note in notes for line in textwrap.wrap(note, LETTERS)]
    return [*lines[:NOTES], *(["(more in summary.json)"] if len(lines) > NOTES else [])]


def judged(run: Any, name: str) -> tuple[str, float]:
    """Return the sentence on a component and its margin; "" and nan for a run of an earlier version."""
    if "judged" not in run:
        return "", float("nan")
    place = list(map(str, run["judged"].values)).index(name)
    return str(run["judgement"].values[place]), float(run["margin"].values[place])


def _positive(values: np.ndarray) -> np.ndarray:
    """Return differences; those of rounding are placed far below the axis, so that lines enter from there."""
    return np.maximum(values, 1e-14 * max(float(values.max(initial=0.0)), 1e-300))
