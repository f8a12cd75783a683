"""Grids of runs.  Nothing is written unless a folder is named."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odesim.public.make import FLOW, SGD, split_request
from odesim.public.speak import chosen, known, speaking
from odesim.public.watch import stop, watched

if TYPE_CHECKING:
    import xarray

    from derivations.contract import System


@speaking
def sweep(
    system: "str | System",
    over: "Mapping[str, Any]",
    *,
    folder: "str | os.PathLike[str] | None" = None,
    workers: int = 1,
    scheduler: str = "local",
    pictures: bool = True,
    **request: Any,
) -> "xarray.Dataset":
    """Run a system at every point of a grid, and return one data set.

    Arguments:
        system: Name of a system, path of a file that declares one, or a `System`.
        over: Names and their values (lists, ranges or arrays): parameters, "seed", or options of SGD.
        folder: Folder for finished runs and the picture `sweep.png`. After an interruption the same call computes only
            the missing runs. `load` reads the folder.
        workers: Number of processes.
        scheduler: "local", or the address of a dask scheduler.
        pictures: False leaves the picture out.
        request: Other parameters, and options of `integrate`. With `method="compressed"` or `"explicit"` the runs are
            runs of SGD, with the options of `simulate`. `until` may be an expression in the parameters. With
            `save_points` or `save_at` the data set also has the curves of every run.

    Returns:
        An `xarray.Dataset` whose first dimensions are the swept names. It has the last states `final_*`, hitting times,
        the numbers of the summaries, and `outcome`, which also marks failed runs.

    Raises:
        UsageError: The request is invalid at some point of the grid.
        InterruptedRun: Ctrl-C was pressed.

    Example:
        >>> import odesim
        >>> data = odesim.sweep("liao", {"d": [100, 1000], "seed": [0, 1]}, m=2, m_star=1, tier="riccati", until=5.0)
        >>> dict(data["outcome"].sizes)
        {'d': 2, 'seed': 2}
    """
    from pathlib import Path

    from odesim.ask import sweep as ask
    from odesim.request.parse import whole_number
    from odesim.store.claim import claimed
    from odesim.sweeps import swept

    system = chosen(system)
    over = lists_of(over)
    options, parameters = split_request(request, ("method", "step", *ask.SGD))
    known(system, parameters, (*FLOW[:-1], *SGD, "folder", "workers", "scheduler", "pictures"), "sweep")
    wanted = ask.request(system, over, parameters, **options)
    place = Path(folder) if folder is not None else None
    crew = whole_number(workers, "--workers")
    with claimed(place) if place is not None else contextlib.nullcontext():
        try:
            with watched(f"sweeping {system.name}") as progress:
                data = ask.run(wanted, place, scheduler=scheduler, workers=crew, report=progress)
        except KeyboardInterrupt:
            kept = (
                f"the finished runs are kept in {place}; repeat the call to continue"
                if place
                else "no results are stored; with folder= finished runs are stored"
            )
            stop(f"interrupted; {kept}", None)
        if place is not None:
            swept.save(wanted, data, place, keep=True)
    if place is not None and pictures:
        from odesim.show.sweep_pictures import redraw

        redraw(place, system=wanted.system)
    return data


def lists_of(over: Any) -> dict[str, list[Any]]:
    """Return the values of every swept name as a list: lists, tuples, ranges, and arrays of one dimension.

    Raises `UsageError` for anything else.
    """
    import numpy as np

    from odesim.errors import UsageError

    refused = UsageError('over= maps names to lists or arrays of values, such as {"d": [100, 1000]}')
    if not isinstance(over, Mapping):
        raise refused
    lists = {}
    for name, values in over.items():
        if getattr(values, "ndim", 0) == 1:  # of NumPy, xarray or pandas
            values = np.asarray(values).tolist()
        if not isinstance(values, Sequence) or isinstance(values, str | bytes):
            raise refused
        lists[str(name)] = list(values)
    return lists
