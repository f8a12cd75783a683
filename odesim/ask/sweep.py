"""Grids of flows or of SGD: the request, and the resulting data set."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odesim.ask.sgd import REPLICAS
from odesim.errors import UsageError
from odesim.request.parse import choice
from odesim.sgd.simulation import METHODS
from odesim.sweeps import sweep as sweeps
from odesim.sweeps.sweep import Sweep

if TYPE_CHECKING:
    import xarray

    from derivations.contract import System

SGD = ("step_size", "batch", "seeds", "device", "precision", "fresh_initial")
"""Options of sweeps of SGD."""


def request(
    system: "str | System",
    over: Mapping[str, Sequence[Any]],
    parameters: Mapping[str, Any],
    *,
    method: str = "flow",
    until: Any = None,
    save_points: Any = None,
    save_at: Any = None,
    **options: Any,
) -> Sweep:
    """Return the request for a sweep of flows or, with `method`, of SGD. By default every run has two saved times.

    Raises `UsageError`.
    """
    given = {name: options.pop(name, None) for name in SGD}
    learning = _learning(method, given)
    points = "2" if save_points is None and save_at is None else save_points
    return Sweep.build(
        system, over, parameters, until=until, sgd=learning, save_points=points, save_at=save_at, **options
    )  # fmt: skip


def compared(
    system: "str | System",
    over: Mapping[str, Sequence[Any]],
    parameters: Mapping[str, Any],
    *,
    method: str = "compressed",
    until: Any = None,
    seeds: Any = None,
    **options: Any,
) -> Sweep:
    """Return the request for comparisons of SGD with its flow over one size, with `seeds` replicas each (5 by default).

    Raises `UsageError`.
    """
    choice(method, METHODS, "--method")
    if len(over) != 1:
        raise UsageError(
            f"compare takes one --over, the parameter over which the distance is measured, but got {len(over)}"
        )
    given = {name: options.pop(name, None) for name in SGD if name != "seeds"}
    learning = _learning(method, {**given, "seeds": REPLICAS if seeds is None else seeds})
    return Sweep.build(system, over, parameters, until=until, sgd=learning, compared=True, **options)


def _learning(method: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of SGD that all cells share. For the flow it is empty; options of SGD raise `UsageError`."""
    choice(method, ("flow", *METHODS), "--method")
    words = {name: f"--{name.replace('_', '-')}" for name in SGD}
    if method == "flow":
        for name in ("step_size", "batch", "seeds"):
            if given[name] is not None:
                raise UsageError(f"{words[name]} has no meaning for the flow; give --method compressed or explicit")
        shared = (given["device"] or "auto", given["precision"] or "float64", bool(given["fresh_initial"]))
        if shared != ("auto", "float64", False):
            raise UsageError("--device, --precision and --fresh-initial are only for --method compressed or explicit")
        return {}
    numbers = {name: given[name] for name in ("step_size", "batch", "seeds") if given[name] is not None}
    return {
        "method": method,
        **numbers,
        "device": given["device"] or "auto",
        "precision": given["precision"] or "float64",
        "fresh_initial": bool(given["fresh_initial"]),
    }


def run(
    wanted: Sweep,
    folder: Path | None = None,
    *,
    scheduler: str = "local",
    workers: int = 1,
    report: Callable[[int, int], None] | None = None,
) -> "xarray.Dataset":
    """Return all cells as one data set. Cells in `folder` are not computed again; without a folder, nothing is
    stored.
    """
    with _kept(folder) as place:
        return sweeps.run(wanted, place, scheduler=scheduler, workers=workers, report=report)


@contextlib.contextmanager
def _kept(folder: Path | None) -> Iterator[Path]:
    """Yield the folder, or a temporary one."""
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="odesim-sweep-") as name:
        yield Path(name)
