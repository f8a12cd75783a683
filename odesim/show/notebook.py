"""Results in a notebook: a few lines with tables and a picture, one variable in axes, and tables of pandas."""

import base64
import html
import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from odesim.errors import MissingError, UsageError
from odesim.evidence.check import Check
from odesim.request.answer import Answer
from odesim.request.parse import nearest
from odesim.request.shown import said, table_html
from odesim.request.trajectory import Trajectory
from odesim.show import plot as drawing
from odesim.study.comparison import Comparison
from odesim.study.panels import choose

DPI = 140
"""Density at which a picture of one column is as wide as half of a notebook."""


def trajectory_of(result: Any) -> Trajectory:
    """The trajectory of a run, a stored run or a comparison."""
    if isinstance(result, Comparison):
        return result.trajectory()
    return getattr(result, "trajectory", result)


def pictures(result: Any) -> Mapping[str, Any]:
    """The figures of a result by name."""
    return drawing.figures(trajectory_of(result))


def picture(result: Any) -> str:
    """Return a result as HTML: its lines, its variables with their meanings, its summary, and its first picture."""
    run = trajectory_of(result)
    variables = [[n, ", ".join(v.dims), "x".join(map(str, v.shape)), v.meaning] for n, v in run.state.items()]
    extras = [[n, ", ".join(v.dims), "x".join(map(str, v.shape)), v.meaning] for n, v in run.extras.items()]
    parts = [
        f"<pre>{html.escape(repr(result))}</pre>",
        _folded("variables", table_html(("name", "dimensions", "shape", "meaning"), variables + extras)),
        _folded("summary", table_html(("key", "value"), [[k, said(v)] for k, v in run.summary.items()])),
        *[_image(name, figure) for name, figure in list(pictures(result).items())[:1]],
    ]
    return "".join(parts)


def answer(result: Answer) -> str:
    """An answer as HTML: its sentences, its tables, its headline numbers and its first picture."""
    parts = [
        f"<pre>{html.escape(repr(result))}</pre>",
        *[table_html(header, rows) for header, rows in result.tables().values()],
        _folded("summary", table_html(("key", "value"), [[k, said(v)] for k, v in result.summary().items()])),
        *[_image(name, figure) for name, figure in list(result.pictures().items())[:1]],
    ]
    return "".join(parts)


def check(result: Check) -> str:
    """A check as HTML: answer and grade with their reasons, and the table of its claims."""
    summary = result.summary()
    rows = [
        ("verdict", summary["answer"], summary["reason"]),
        ("grade", summary["grade"], f"because {summary['because']}"),
        ("SGD beside the flow", "", summary["comparison"]),
    ]
    title = f"<p><b>Check of {html.escape(str(result.record['system']['name']))}</b></p>"
    return title + table_html(("what", "answer", "reason"), rows) + result.verdicts._repr_html_()


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>{content}</details>"


def _image(name: str, figure: Any) -> str:
    """A figure as an image inside the page."""
    from odesim.show.alt import describe

    memory = io.BytesIO()
    figure.savefig(memory, format="png", dpi=DPI)
    data = base64.b64encode(memory.getvalue()).decode()
    return f'<img alt="{html.escape(f"{name}: {describe(figure)}")}" src="data:image/png;base64,{data}">'


def plot(result: Any, name: str | None, ax: Any) -> Any:
    """Draw a variable of a result against time, for a comparison that of both runs. Return the axes."""
    shared: list[str] = []
    if isinstance(result, Comparison):
        shared = [key for key in result.first.state if key in result.second.state]
        if name is None:
            name = choose(result.reference, {key: result.second.state[key].dims for key in result.reference}).name
        if name in shared:
            return drawing.plot_both(result, name, ax)
    run = trajectory_of(result)
    moving = {key: v for key, v in run.state.items() if "time" in v.dims and v.dtype.kind in "biuf"}
    if name is None:
        name = max(moving, key=lambda key: float(np.ptp(np.nan_to_num(moving[key].values))))
    if name not in moving:
        raise UsageError(f"this run has no variable {name!r} against time; {nearest(str(name), [*shared, *moving])}")
    return drawing.plot_variable(run, name, ax)


def table(result: Any) -> Any:
    """Return a run as a data frame: times (and seeds) are rows, entries of variables columns, counted from 1."""
    pandas = _pandas()
    run = trajectory_of(result)
    moving = {name: v for name, v in run.state.items() if "time" in v.dims}
    seeds = next((v.shape[v.dims.index("seed")] for v in moving.values() if "seed" in v.dims), None)
    index: Any = pandas.Index(run.time, name="time")
    if seeds is not None:
        index = pandas.MultiIndex.from_product([range(1, seeds + 1), run.time], names=["replica", "time"])
    columns: dict[str, np.ndarray] = {}
    for name, v in moving.items():
        rows = [dim for dim in ("seed", "time") if dim in v.dims]
        values = np.moveaxis(v.values, [v.dims.index(dim) for dim in rows], range(len(rows)))
        if seeds is not None and "seed" not in v.dims:
            values = np.broadcast_to(values, (seeds, *values.shape))
        for place in np.ndindex(values.shape[1 + (seeds is not None) :]):
            label = f"{name}[{','.join(str(k + 1) for k in place)}]" if place else name
            columns[label] = values[(..., *place)].reshape(-1)
    return pandas.DataFrame(columns, index=index)


def frame(rows: list[Mapping[str, Any]]) -> Any:
    """Rows as a data frame."""
    return _pandas().DataFrame(rows)


def _pandas() -> Any:
    """Return the package pandas. Raises `MissingError` if it is not installed."""
    try:
        import pandas
    except ImportError:
        raise MissingError("to_pandas needs the package pandas, which is not installed: pip install pandas") from None
    return pandas
