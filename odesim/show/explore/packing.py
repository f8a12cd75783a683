"""Data of an interactive page: arrays as base64, thinned to a size that browsers handle."""

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.contract import load
from derivations.drawing import spread
from odesim.request.stored_system import system_of
from odesim.show.alt import plain
from odesim.show.explore.page_content import Content, Shown

if TYPE_CHECKING:
    import xarray

MOST = 700_000
"""Largest number of values in all curves of a page. Each takes 6 to 11 bytes, in addition to 5 MB of the plotting
library.
"""
KEPT = (
    *((times, 10**9) for times in (2001, 1001, 501, 251)),
    *((251, entries) for entries in (1000, 500, 250)),
    *((126, entries) for entries in (250, 120, 60, 30, 15, 8, 4, 2, 1)),
    *((times, 1) for times in (60, 30, 15, 5)),
)
"""Numbers of saved times of a run and entries of a variable: the first of these pairs that fits is used."""
REPLICA = "replica"


def packed(content: Content) -> tuple[dict[str, Any], list[str]]:
    """Return the data of a page as plain data, and sentences on omitted data."""
    times, entries, omissions = _limits(content.runs)
    runs = [_run(run, times, entries) for run in content.runs]
    variables: dict[str, Any] = {}
    dims: dict[str, list[str]] = {}
    for run in content.runs:
        for name in moving(run.curves):
            array = run.curves[name]
            variables.setdefault(name, {"meaning": str(array.attrs.get("meaning", ""))})
            for dim in (str(d) for d in array.dims if d != "time"):
                labels = [str(label) for label in _labels(run.curves, dim)]
                dims[_named(dim)] = max(dims.get(_named(dim), []), labels, key=len)
    return {
        "system": content.system, "over": list(content.over), "runs": runs, "variables": variables, "dims": dims,
        "meanings": _meanings(content),
    }, omissions  # fmt: skip


def moving(curves: "xarray.Dataset") -> list[str]:
    """Return the variables of a run that are numbers against time."""
    return [str(name) for name in curves if "time" in curves[name].dims and curves[name].dtype.kind in "biuf"]


def encoded(values: Any) -> dict[str, str]:
    """Return an array as base64, in single precision if that loses no more than seven digits."""
    exact = np.ascontiguousarray(values, "<f8")
    with np.errstate(over="ignore", under="ignore"):
        single = exact.astype("<f4")
    is_close = np.allclose(single, exact, rtol=1e-6, atol=0.0, equal_nan=True)
    array, kind = (single, "f4") if is_close else (exact, "f8")
    return {"kind": kind, "data": base64.b64encode(array.tobytes()).decode()}


def liveliest(values: np.ndarray, limit: int) -> np.ndarray:
    """Return at most `limit` rows of an array, in order: those with the largest changes.

    >>> liveliest(np.array([[0.0, 1.0], [2.0, 2.0], [1.0, 3.0]]), 2).tolist()
    [0, 2]
    """
    if len(values) <= limit:
        return np.arange(len(values))
    finite = np.nan_to_num(values.astype(float), posinf=0.0, neginf=0.0)
    return np.sort(np.argsort(-np.ptp(finite, axis=1), kind="stable")[:limit])


def _run(run: Shown, times: int, entries: int) -> dict[str, Any]:
    """One run as plain data."""
    curves = run.curves
    moments = spread(np.arange(curves.sizes.get("time", 0)), times)
    told: dict[str, Any] = {
        "name": run.name, "said": run.said, "outcome": run.outcome, "place": dict(run.place),
        "numbers": dict(run.numbers), "variables": {}, "theory": [_theory(reference) for reference in run.theory],
    }  # fmt: skip
    for name in ("time", "step"):
        if name in curves.coords and moments.size:
            told[name] = encoded(curves[name].values[moments])
    told["clock"] = str(curves["time"].attrs.get("meaning", "")) if "time" in curves.coords else ""
    for name in moving(curves):
        values = curves[name].transpose(..., "time").values[..., moments]
        flat = values.reshape(-1, moments.size)
        chosen = liveliest(flat, entries)
        places = np.stack(np.unravel_index(chosen, values.shape[:-1]), axis=-1) if values.ndim > 1 else [[]]
        dims = [_named(dim) for dim in map(str, curves[name].dims) if dim != "time"]
        told["variables"][name] = {
            "dims": dims,
            "places": np.asarray(places, int).tolist(),
            "values": encoded(flat[chosen]),
        }
    return told


def _theory(reference: Any) -> dict[str, Any]:
    """Return the theoretical predictions of some panels as plain data."""
    told = {"variables": list(reference.of or (reference.panel,)), "label": plain(reference.label.replace("\n", " "))}
    for name in ("level", "at", "x", "y", "colour"):
        value = getattr(reference, name)
        if value is not None:
            told[name] = value
    return told


def _limits(runs: Sequence[Shown]) -> tuple[int, int, list[str]]:
    """Return the numbers of times and entries that keep the page small, and sentences on omitted data."""
    sizes = [
        (run.curves.sizes["time"], run.curves[name].size // run.curves.sizes["time"])
        for run in runs
        for name in (moving(run.curves) if run.curves.sizes.get("time", 0) else ())
    ]

    def count(times: int, entries: int) -> int:
        return sum(min(times, t) * min(entries, e) for t, e in sizes)

    most_times, most_entries = max((t for t, _ in sizes), default=0), max((e for _, e in sizes), default=0)
    times, entries = next((pair for pair in KEPT if count(*pair) <= MOST), KEPT[-1])
    omissions = []
    if most_times > times:
        omissions.append(f"this page has {times} of {most_times} saved times, evenly spaced")
    if most_entries > entries:
        omissions.append(
            f"of variables with up to {most_entries} entries, this page has the {entries} entries that change most"
        )
    return times, entries, omissions


def _named(dim: str) -> str:
    """Return the name of a dimension on the page; replicas have their own name, because a sweep may be over seeds."""
    return REPLICA if dim == "seed" else dim


def _labels(curves: "xarray.Dataset", dim: str) -> list[Any]:
    """Return the labels of the entries of a dimension; without names they are numbered from 1."""
    numbers = list(range(1, curves.sizes[dim] + 1))
    return curves[dim].values.tolist() if dim in curves.coords and dim != "seed" else numbers


def _meanings(content: Content) -> dict[str, str]:
    """Return the meanings of the numbers in the summaries, as the system defines them."""
    from derivations.headlines import COMMON

    system = system_of(content.runs[0].curves)
    system_meanings = load(system.headlines) if system is not None and system.headlines else {}
    meanings = {**content.meanings, **system_meanings, **COMMON}
    return {name: meanings[name] for run in content.runs for name in run.numbers if name in meanings}
