"""Pictures of runs, drawn from stored or new trajectories without computing anything."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from derivations.contract import System, load
from derivations.drawing import COLUMN, in_rows, is_still
from odesim.request.stored_system import system_of
from odesim.request.trajectory import Trajectory
from odesim.show import beside
from odesim.show.alt import describe
from odesim.show.column import LETTERS, finish, head
from odesim.show.column import STYLE as COLUMN_STYLE
from odesim.show.entries import THIN, draw_entries
from odesim.show.symbols import in_lines, label_of, short_label
from odesim.show.title import title
from odesim.study.comparison import Comparison

STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.3,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "savefig.dpi": 150,
    "svg.fonttype": "path",
}
NARROW = 3.0
"""Width in inches of axes below which the legend is inside."""
WIDE = 4.0
"""Width in inches of axes below which the label of an axis is its symbol."""


def draw(
    run: Any,
    folder: str | Path,
    svg: bool = False,
    system: System | None = None,
) -> list[Path]:
    """Draw a `Trajectory` or its data set into PNG files in `folder`, and SVG files if requested. Return their paths.

    Every file has an alternative text. `system` is as in `figures`.
    """
    endings, made = ("png", "svg") if svg else ("png",), figures(run, system)
    for name, figure in made.items():
        save_figure(figure, name, Path(folder), endings)
    return [Path(folder) / f"{name}.{ending}" for name in made for ending in endings]


def save_figure(figure: Any, name: str, folder: Path, endings: Sequence[str]) -> None:
    """Write the files of one figure."""
    noted = {"Description": describe(figure)}
    for ending in endings:
        with style(), mpl_salt(name):
            more = {"Date": None} if ending == "svg" else {}
            figure.savefig(folder / f"{name}.{ending}", metadata={**noted, **more})


def mpl_salt(name: str) -> Any:
    """Context manager that fixes the names inside an SVG, which are random by default."""
    import matplotlib as mpl

    return mpl.rc_context({"svg.hashsalt": name})


def figures(run: Any, system: System | None = None) -> Mapping[str, Any]:
    """Return the figures of a run by name: those of its system, otherwise every component against time.

    Every figure has the title of its run, the theory that its system declares, and one legend below its panels. A
    stored run of a system outside of odesim is drawn without the code of this system, unless `system` names it.
    """
    if isinstance(run, Trajectory):
        dataset, known = run.dataset(), run.origin.known
    else:
        dataset, known = run, system_of(run)
    system = known if known is not None else system
    with style():
        made = _drawn(dataset, system)
        first = _replica(dataset, 0) if "seed" in dataset.dims and dataset.attrs["method"] != "compare" else dataset
        theory = load(system.references)(first) if system is not None and system.references else []
        beside.add(made, theory)
        for figure in made.values():
            _finish(figure, dataset, system)
    return made


def _finish(figure: Any, dataset: Any, system: Any) -> None:
    """Title, legend and ticks."""
    if not figure.get_suptitle():
        _head(figure, dataset, system)
    finish(figure)


def _head(figure: Any, dataset: Any, system: Any) -> None:
    """Return the title of a picture, broken at its width."""
    head(figure, title(dataset, system, LETTERS))


def plot_variable(run: Trajectory, name: str, axis: Any = None) -> Any:
    """Draw one variable against time into `axis`, or into a new figure with the title of the run.

    The legend is below a new figure, next to wide axes, or inside narrow ones. Returns the axes.
    """
    own = axis is None
    variable = run.dataset()[name]
    rows = [dim for dim in ("seed", "time") if dim in variable.dims]
    variable = variable.transpose(*rows, ...)
    values = variable.values if "seed" in rows else variable.values[None]
    with style():
        axis = axis if axis is not None else _one_panel(run)
        draw_entries(axis, variable["time"].values, values, [str(dim) for dim in variable.dims[len(rows) :]], REPLICAS)
        axis.set(xlabel="time $t$", ylabel=in_lines(label_of(str(variable.attrs.get("meaning", "")), name)))
        if own:
            finish(axis.figure)
        else:
            _label(axis, name)
            _legend(axis, axis.get_legend_handles_labels()[0])
    return axis


def plot_both(found: Comparison, name: str, axis: Any = None) -> Any:
    """Draw one component of both runs of a comparison into `axis`, or into a new figure. Return the axes."""
    from odesim.show import compared

    with style():
        own = axis is None
        axis = axis if axis is not None else _one_panel(found.trajectory())
        handles = compared.draw_component(axis, found, name)
        if own:
            finish(axis.figure, handles)
        else:
            _label(axis, name)
            _legend(axis, handles)
    return axis


def _label(axis: Any, name: str) -> None:
    """Reduce the label of narrow axes to the symbol: a label in three lines would take a fifth of their width."""
    if _width(axis) < WIDE:
        axis.set_ylabel(short_label(axis.get_ylabel(), name))


def _width(axis: Any) -> float:
    """Return the width of axes in inches."""
    return axis.get_window_extent().width / axis.figure.get_dpi()


def _one_panel(run: Trajectory) -> Any:
    """Axes in a new figure with the title of a run."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(COLUMN, 2.1), dpi=COLUMN_STYLE["savefig.dpi"], layout="constrained")
    axis = figure.subplots()
    _head(figure, run.dataset(), run.origin.known)
    return axis


def _legend(axis: Any, handles: Sequence[Any]) -> None:
    """Add a legend next to the axes, or inside axes narrower than `NARROW`, where it would take half of the width."""
    if not handles:
        return
    if _width(axis) < NARROW:
        axis.legend(handles=handles, loc="best", fontsize=6)
    else:
        axis.legend(handles=handles, loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=7)


def _drawn(dataset: Any, system: Any) -> Mapping[str, Any]:
    """The figures without title and theory."""
    if dataset.attrs["method"] == "compare":
        from odesim.show import compared

        return {"comparison": compared.draw(dataset, title(dataset, system, LETTERS))}
    draw = load(system.plot) if system is not None and system.plot else lambda run: {"components": components(run)}
    return draw(dataset) if "seed" not in dataset.dims else of_replicas(dataset, draw)


REPLICAS = 8
"""Number of replicas of a simulation that are drawn. More thin lines would hide each other."""


def of_replicas(dataset: Any, draw: Any) -> Mapping[str, Any]:
    """Return the pictures of the first replica of a simulation, with some other replicas as thin lines behind it.

    Every line belongs to an actual run. An entry-wise median over replicas of signed overlaps would belong to no run,
    and shrinks as their number grows.
    """
    replicas = dataset.sizes["seed"]
    shown = min(replicas, REPLICAS)
    made = draw(_replica(dataset, 0))
    for k in range(1, shown):
        for name, figure in draw(_replica(dataset, k)).items():
            panels = _panels(figure)
            for label, axis in _panels(made[name]).items() if name in made else ():
                if label in panels:
                    _thinly(axis, panels[label])
    for figure in (figure for figure in made.values() if figure.axes and replicas > 1):
        if any(axis.images for axis in figure.axes):
            figure.supxlabel(f"replica 1 of {replicas}", fontsize=6.5, color="0.35", x=0.99, ha="right")
            continue
        figure.axes[0].plot([], [], color="0.35", label=f"thick: replica 1 of {replicas}")
        if shown > 1:
            figure.axes[0].plot([], [], **THIN, color="0.35", label=f"thin: replicas 2 to {shown}")
    return made


def _panels(figure: Any) -> dict[tuple[str, int], Any]:
    """Return the panels of a figure by their label; equal labels are numbered, because replicas may have different
    panels.
    """
    labels = [axis.get_label() for axis in figure.axes]
    return {
        (label, labels[:k].count(label)): axis for k, (label, axis) in enumerate(zip(labels, figure.axes, strict=True))
    }


def _replica(dataset: Any, k: int) -> Any:
    """Return one replica of a simulation as a separate run."""
    return dataset.isel(seed=k).assign_attrs(dataset.attrs, method=f"{dataset.attrs['method']} SGD")


def _thinly(axis: Any, other: Any) -> None:
    """Draw the lines of one axis into another, thin and in the background; lines of its legend have no points."""
    for line in other.lines:
        if np.size(line.get_xdata()) > 2:
            axis.plot(
                line.get_xdata(), line.get_ydata(), color=line.get_color(), linestyle=line.get_linestyle(),
                drawstyle=line.get_drawstyle(), **THIN,
            )  # fmt: skip


def components(dataset: Any) -> Any:
    """Draw every time-dependent variable that changes, one panel each."""
    from matplotlib.figure import Figure

    names = [str(name) for name in dataset if "time" in dataset[name].dims]
    names = [name for name in names if not is_still(dataset[name].transpose("time", ...).values)] or names[:1]
    figure = Figure(layout="constrained")
    for axis, name in zip(in_rows(figure, len(names)) if names else (), names, strict=True):
        variable = dataset[name].transpose("time", ...)
        axis.set_label(name)
        draw_entries(axis, dataset["time"].values, variable.values[None], [str(dim) for dim in variable.dims[1:]])
        axis.set(xlabel="time $t$", ylabel=in_lines(label_of(str(variable.attrs.get("meaning", "")), name)))
    return figure


def style() -> Any:
    """Context in which pictures of runs are drawn: the style of one column (`odesim.show.column`)."""
    import matplotlib as mpl

    return mpl.rc_context(rc={**STYLE, **COLUMN_STYLE})
