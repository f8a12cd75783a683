"""The cells of a sweep as the runs of an interactive page, each with its place in the grid and its headline numbers."""

from typing import TYPE_CHECKING

import numpy as np

from odesim.request.stored_system import name_of
from odesim.show.explore.page_content import Content, Shown
from odesim.sweeps import swept

if TYPE_CHECKING:
    import xarray


def of_sweep(data: "xarray.Dataset") -> Content:
    """Return the page of a sweep: a run for every cell, with its curves if the sweep stored them."""
    axes = tuple(map(str, data["outcome"].dims))
    names = swept.headlines(data)
    runs = []
    for record, place in zip(swept.records(data), np.ndindex(*data["outcome"].shape), strict=True):
        coordinates = {name: record[name] for name in axes}
        label = ", ".join(f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}"
                          for name, value in coordinates.items())  # fmt: skip
        cell = data.isel(dict(zip(axes, place, strict=True)))
        curves = swept.curves(cell)
        numbers = {name: record[name] for name in names}
        runs.append(Shown(label, label, curves, numbers=numbers, place=coordinates, outcome=str(record["outcome"])))
    note = "" if any(run.curves.sizes.get("time", 0) for run in runs) else (
        "This sweep has no curves. Run it with --save-points 101 to keep the curves of every run."
    )  # fmt: skip
    meanings = {name: str(values.attrs.get("meaning", "")) for name, values in names.items()}
    return Content(name_of(data), tuple(runs), axes, note, meanings)
