"""Pictures of a run of a declared model: overlaps, norms and readouts that change, and its error."""

import tomllib
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.declare import power_law, spectrum_picture
from derivations.declare.declaration import MEAN
from derivations.declare.rows import SPACE
from derivations.drawing import (
    BLACK,
    GREY,
    at_plateau,
    colours,
    gap,
    in_rows,
    is_still,
    log_time,
    moved,
    name_of,
    spans_decade,
    until_rounding,
)

MOST = 8
"""Largest number of panels; overlaps with the teachers come first, and the rest is left out."""
THIN = {"color": GREY, "linewidth": 0.5, "alpha": 0.6, "zorder": 1.5}
GAP = "gap "
"""Prefix of the name of the panel of 1 - M."""
CLOCKS = {"flow": "time $t$", "online": "time $t$ = steps$/d$", "batch": "steps"}
"""Label of the axis of time by limit."""
LOSSES = {"correlation": "correlation loss", "logistic": "logistic loss", "hinge": "hinge loss", "own": "loss"}


def draw(run: Any) -> dict[str, Any]:
    """Return the figure `order_parameters` of an `xarray.Dataset` with more than one time, and `blocks` of its
    inputs.
    """
    if run.sizes.get("time", 0) < 2:
        return {}
    _, limit, decades = _stated(run)
    decades = decades or bool(power_law.references(run))  # of the parts by block, which whole vectors do not have
    figures = {"order_parameters": order_parameters(whole(run), decades)}
    if spectrum_picture.is_drawn(run):
        figures["blocks"] = spectrum_picture.by_eigenvalue(run, decades, limit == "online")
    return figures


def whole(run: Any) -> Any:
    """Return the run with overlaps of whole vectors instead of those of their parts in the blocks of the inputs."""
    parts = [name for name in run.data_vars if SPACE in run[name].dims and "time" in run[name].dims]
    return run.assign({name: run[name].sum(SPACE, keep_attrs=True) for name in parts})


def order_parameters(run: Any, decades: bool) -> Any:
    """One panel for each overlap with the teachers, readout, and squared norms; then error and loss.

    With `decades` time is logarithmic.

    A coloured line is the entry of a teacher and the unit that ends nearest to it, with the same colour in every panel;
    all others are grey. Overlaps that end at a plateau at 1 have another panel with their distance from 1. Constant
    variables have no panel.
    """
    from matplotlib.figure import Figure

    kind, limit, _ = _stated(run)
    panels = _panels(run, kind)
    figure = Figure(layout="constrained")
    shades = _shades(run)
    for axis, name in zip(in_rows(figure, len(panels)), panels, strict=True):
        axis.set_label(name)
        if name.startswith(GAP):
            _gap(axis, run, name.removeprefix(GAP), shades)
        elif name in ("error", "loss", "classification_error"):
            _scalar(axis, run, name, kind)
        elif _is_overlap(name):
            _overlaps(axis, run, name, shades)
        else:
            _units(axis, run, name, shades)
        axis.set_xlabel(CLOCKS[limit])
        if decades:
            log_time(axis, run["time"].values, [run[name.removeprefix(GAP)].values for name in panels])
        else:
            axis.set_xlim(float(run["time"][0]), float(run["time"][-1]))
    return figure


def _stated(run: Any) -> tuple[str, str, bool]:
    """Return loss and limit of the model, and True if it has `decades`, as far as the run has these data."""
    tables = tomllib.loads(run.attrs.get("declaration", ""))
    training = tables.get("training", {})
    stage_training = (stage for stage in tables.get("stage", []) if stage["name"] == run.attrs.get("stage"))
    training = training | next(stage_training, {})
    return str(training.get("loss", "squared")), str(training.get("limit", "flow")), bool(training.get("decades"))


def _is_overlap(name: str) -> bool:
    """Return True for an array of overlaps of students with teachers."""
    return name.split("_")[-2:-1] == ["M"]


def _panels(run: Any, loss: str) -> list[str]:
    """Return the names of the panels: variables that change, then error and loss."""
    overlaps = [n for n in run.data_vars if _is_overlap(n)]
    units = [n for n in run.data_vars if _is_norm(run, n) or _is_number(run, n)]
    ways = {n: moved(_lines(run, n)) for n in (*overlaps, *units)}
    largest = max(ways.values(), default=0.0)
    panels: list[str] = []
    for name in (*overlaps, *units):
        if not is_still(_lines(run, name), largest / 2):
            panels.append(name)
        if name in overlaps and at_plateau(_matched(run, name)):
            panels.append(GAP + name)
    # With a loss of labels f need not be near f*: f grows as long as training continues.
    signed = loss in ("logistic", "hinge", "softmax")
    scalars = [n for n in ("error", "classification_error") if n in run and not (signed and n == "error")]
    if "loss" in run and (loss in ("logistic", "hinge", "softmax", "own") or "error" not in run):
        scalars.append("loss")
    scalars = [n for n in scalars if not all(is_still(run[variable].values) for variable in [n, *_of_parts(run, n)])]
    panels = [*panels[: MOST - len(scalars)], *scalars]
    return panels or [max(ways, key=lambda name: ways[name])] if ways else panels or ["loss"]


def _is_norm(run: Any, name: str) -> bool:
    """Return True for overlaps of one slot of one group with itself, whose diagonal has the squared norms."""
    words, dims = name.split("_"), run[name].dims
    is_self_overlap = len(dims) > 1 and dims[-1] == f"{dims[-2]}_" and words[-2:-1] == ["Q"]
    return is_self_overlap and "time" in dims and words[-1][: len(words[-1]) // 2] * 2 == words[-1]


def _is_number(run: Any, name: str) -> bool:
    """Return True for a scalar of each unit that moves: a readout, a bias."""
    dims = run[name].dims
    return len(dims) == 2 and dims[0] == "time" and dims[1].endswith("unit")


def _lines(run: Any, name: str) -> np.ndarray:
    """Return the values of a panel (time, ...); for norms the diagonal."""
    values = run[name].values
    return np.diagonal(values, axis1=-2, axis2=-1) if _is_norm(run, name) else values


def _best(run: Any, name: str) -> np.ndarray:
    """For every teacher the unit that ends nearest to it."""
    return np.abs(run[name].values[-1]).argmax(axis=0)


def _matched(run: Any, name: str) -> list[np.ndarray]:
    """The curve of every teacher and its unit."""
    values = run[name].values
    return [values[:, i, j] for j, i in enumerate(_best(run, name))] if values.shape[1] else []


def _shades(run: Any) -> Mapping[str, tuple[str, ...]]:
    """The colours of the teachers by the name of their dimension."""
    dims = list(dict.fromkeys(run[n].dims[-1] for n in run.data_vars if _is_overlap(n)))
    palette, shades = colours(sum(run.sizes[dim] for dim in dims)), {}
    for dim in dims:
        shades[dim], palette = palette[: run.sizes[dim]], palette[run.sizes[dim] :]
    return shades


def _overlaps(axis: Any, run: Any, name: str, shades: Mapping[str, tuple[str, ...]]) -> None:
    """All overlaps of one slot with the teachers."""
    values, time, best = run[name].values, run["time"].values, _best(run, name)
    dim = run[name].dims[-1]
    for i, j in np.ndindex(values.shape[1:]):
        if i != best[j]:
            axis.plot(time, values[:, i, j], **THIN)
    for j, curve in enumerate(_matched(run, name)):
        several = sum(map(len, shades.values())) > 1 or values.shape[1] > 1
        label = name_of(dim.replace("_", " "), j, len(best)) if several else None
        axis.plot(time, curve, color=shades[dim][j], label=label)
    if values.shape[1] > 1:
        axis.plot([], [], **THIN, label="other pairs")
    axis.set_ylabel(f"${_product(run, name)}$")


def _product(run: Any, name: str) -> str:
    """The product that an array of overlaps with teachers holds, in mathematics."""
    letters, group = name.split("_")[-1], "_".join(name.split("_")[:-2])
    if run[name].dims[-1] == MEAN:
        return rf"{letters[0]}_i\cdot {letters[-1]}_j"
    subscript = rf",\mathrm{{{group.replace('_', ' ')}}}" if group else ""
    return rf"{letters[0]}_{{i}}\cdot {letters[-1]}^*_{{j{subscript}}}"


def _gap(axis: Any, run: Any, name: str, shades: Mapping[str, tuple[str, ...]]) -> None:
    """The distance of every teacher's overlap from 1."""
    gap(axis, run["time"].values, _matched(run, name), shades[run[name].dims[-1]])
    axis.set_ylabel(f"$1 - |{_product(run, name)}|$")


def _units(axis: Any, run: Any, name: str, shades: Mapping[str, tuple[str, ...]]) -> None:
    """Norms or numbers of units, in the colour of the teacher that a unit ends nearest to."""
    lines, time, dim = _lines(run, name), run["time"].values, run[name].dims[1]
    owner: dict[int, str] = {}
    for variable in run.data_vars:
        if _is_overlap(variable) and run[variable].dims[1] == dim:
            for j, i in enumerate(_best(run, variable)):
                owner.setdefault(int(i), shades[run[variable].dims[-1]][j])
    for i in range(lines.shape[-1]):
        style = {"color": owner[i]} if i in owner else THIN
        axis.plot(time, lines[:, i], **style)
    if len(owner) < lines.shape[-1]:
        axis.plot([], [], **THIN, label="other units")
    axis.set_ylabel(f"${_of_unit(name, _is_norm(run, name))}$")


def _of_parts(run: Any, name: str) -> list[str]:
    """Return the errors of heads, or of the labels of stages, which share one panel."""
    return [variable for variable in run.data_vars if variable.startswith("error_")] if name == "error" else []


def _of_unit(name: str, norm: bool) -> str:
    """A squared norm, or a number of a unit, in mathematics."""
    words = name.split("_")
    if words[-1] != "a" and "a" in words and not norm:  # the readout of a head: a_one, fast_a_one
        subscript = [rf"\mathrm{{{word}}}" for word in words if word != "a"]
        return rf"a_{{{','.join(['i', *subscript])}}}"
    letter, group = words[-1], " ".join(words[: -2 if norm else -1])
    subscript = rf",\mathrm{{{group}}}" if group else ""
    if norm:
        return rf"\|{letter[0]}_{{i{subscript}}}\|^2"
    letter = letter if len(letter) == 1 else rf"\mathrm{{{letter}}}"
    return rf"{letter}_{{i{subscript}}}"


def _scalar(axis: Any, run: Any, name: str, loss: str) -> None:
    """Draw error, share of wrong labels or loss; on a logarithmic axis if positive over a decade."""
    words = {"error": r"error $E(f-f^*)^2$", "classification_error": "share of wrong labels"}
    parts = _of_parts(run, name)
    curves = [run[variable].values for variable in parts] or [run[name].values]
    if any(map(spans_decade, curves)):
        axis.set_yscale("log")
        curves = [until_rounding(values) for values in curves]
    shades = colours(len(curves)) if parts else (BLACK,)
    for values, shade, part in zip(curves, shades, parts or [None], strict=True):
        axis.plot(run["time"], values, color=shade, label=part and f"error {part.removeprefix('error_')}")
    axis.set_ylabel(words.get(name, f"{LOSSES.get(loss, 'loss')} $L$"))
