"""Content of an interactive page: runs with their theory, the runs of a comparison, or the cells of a sweep."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derivations.contract import load
from odesim.errors import UsageError
from odesim.request.answer import Answer
from odesim.request.stored_system import name_of, system_of
from odesim.request.trajectory import Trajectory
from odesim.show.alt import plain
from odesim.show.explore.grid import of_sweep
from odesim.show.explore.page_content import Content, Shown
from odesim.show.title import title
from odesim.store import Run
from odesim.store.folder import require
from odesim.study.comparison import Comparison

if TYPE_CHECKING:
    import xarray

TAKEN = "a run, a list of runs, a comparison, a sweep, bands, or the folder of one of them"
CURVES = {"_centre": "mean of SGD", "_low": "band of SGD, lower end", "_high": "band of SGD, upper end"}
"""Endings of the arrays of an answer that are further curves, and their names on the page."""


def content(what: Any) -> Content:
    """Return the content of the page for runs, a comparison or a sweep; a folder stands for its content.

    Raises `UsageError` for anything else, and for runs of different systems.
    """
    found = [opened(one) for one in (what if isinstance(what, list | tuple) else [what])]
    grids = [one for one in found if _is_sweep(one)]
    if grids and len(found) > 1:
        raise UsageError("explore takes either one sweep or several runs; make separate pages")
    if grids:
        return of_sweep(grids[0])
    runs = [run for one in found for run in _runs(one)]
    if not runs:
        raise UsageError(f"explore needs {TAKEN}, but got an empty list")
    systems = sorted({name_of(run.curves) for run in runs})
    if len(systems) > 1:
        raise UsageError(f"the runs belong to different systems ({', '.join(systems)}): give runs of one system")
    if not any("time" in run.curves.dims and run.curves.sizes["time"] > 1 for run in runs):
        raise UsageError(
            "this run has only one saved time, so there are no curves to draw; `odesim show` prints its numbers"
        )
    return Content(systems[0], tuple(_distinct(runs)))


def opened(what: Any) -> Any:
    """Return the result that is stored in a folder; other objects are returned unchanged."""
    if not isinstance(what, str | os.PathLike):
        return what
    from odesim import store
    from odesim.store import answers
    from odesim.sweeps import swept

    kind = require(what, "run", "sweep", "answer", instead="`odesim report` makes a page of it")
    if kind == "answer":
        return answers.load(Path(what))
    return swept.load(Path(what)) if kind == "sweep" else store.load(what)


def _is_sweep(what: Any) -> bool:
    """Return True if this is the data set of a sweep."""
    return hasattr(what, "data_vars") and "outcome" in what.data_vars and "digest" in what.attrs


def _runs(what: Any) -> list[Shown]:
    """Return the runs of one result: itself, its stages, or the two runs of a comparison with their differences."""
    if isinstance(what, Run):
        return [run for stage in what.stages or (what,) for run in _of_trajectory(stage.trajectory)]
    if isinstance(what, Comparison):
        whole = [run for one in (what.first, what.second) for run in _of_trajectory(one)]
        return [*whole, _differences(what.trajectory())]
    if isinstance(what, Trajectory):
        return _of_trajectory(what)
    if isinstance(what, Answer):
        return _of_answer(what)
    raise UsageError(f"explore needs {TAKEN}, but got {type(what).__name__}")


def _of_answer(answer: Answer) -> list[Shown]:
    """Return the flow, the mean of SGD and both ends of its band from an answer with bands."""
    dataset = answer.dataset()
    followed = [str(name).removesuffix("_centre") for name in dataset if str(name).endswith("_centre")]
    if not followed:
        raise UsageError(
            f"explore draws curves in time, but an answer of {answer.asked.verb} has none: use `odesim report`"
        )
    dataset.attrs["declaration"] = answer.asked.declaration
    found = [Shown("flow", answer.asked.system_name, dataset[followed], numbers=answer.summary())]
    for suffix, name in CURVES.items():
        kept = {one + suffix: one for one in followed if one + suffix in dataset}
        if kept:
            found.append(Shown(name, answer.asked.system_name, dataset[list(kept)].rename(kept)))
    return found


def _of_trajectory(run: Trajectory) -> list[Shown]:
    if run.origin.method == "compare":
        return [*_halves(run), _differences(run)]
    dataset = run.dataset()
    method = run.origin.method if run.origin.method in ("flow", "observed") else f"{run.origin.method} SGD"
    return [_shown(f"{method}, {run.origin.stage}", dataset, run.summary, run.outcome.kind)]


def _shown(name: str, dataset: "xarray.Dataset", numbers: Mapping[str, Any], outcome: str) -> Shown:
    system, theory = system_of(dataset), ()
    if system is not None and system.references:
        theory = load(system.references)(dataset.isel(seed=0) if "seed" in dataset.dims else dataset)
    return Shown(name, _said(dataset), dataset, theory, numbers, outcome=outcome)


def _halves(run: Trajectory) -> list[Shown]:
    """Return the two runs of a stored comparison. Of every component only the entry with the largest change is
    stored.
    """
    dataset = run.dataset()
    halves = []
    for which in ("first", "second"):
        names = {str(n): str(n).removeprefix(f"panel_{which}_") for n in dataset if f"panel_{which}_" in str(n)}
        if f"loss_{which}" in dataset:
            names |= {f"loss_{which}": "loss"}
        half = dataset[list(names)].rename(names)
        method = str(dataset.attrs.get(which, f"{which} run"))
        halves.append(Shown(f"{which}: {method}", _said(dataset), half))
    for end in ("_low", "_high"):
        if f"loss{end}" in dataset:
            halves.append(Shown(CURVES[end], _said(dataset), dataset[[f"loss{end}"]].rename({f"loss{end}": "loss"})))
    return halves


def _differences(run: Trajectory) -> Shown:
    """Return the distance of the two runs of a comparison, by component."""
    dataset = run.dataset()
    names = [str(n) for n in dataset if str(n).startswith(("distance_", "off_", "chance_"))]
    return Shown("their difference", _said(dataset), dataset[names], numbers=run.summary, outcome=run.outcome.kind)


def _said(dataset: "xarray.Dataset") -> str:
    return plain(title(dataset, system_of(dataset)).replace("\n", " · "))


def _distinct(runs: Sequence[Shown]) -> list[Shown]:
    """Return the runs; runs with equal names are numbered."""
    names = [run.name for run in runs]
    return [
        dataclasses.replace(run, name=f"{run.name} ({names[: k + 1].count(run.name)})") if names.count(run.name) > 1
        else run
        for k, run in enumerate(runs)
    ]  # fmt: skip
