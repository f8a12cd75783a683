"""Grids of flows or of SGD: the request, and the one data set that it leaves."""

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
"""Options of cells that are SGD."""


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
    """A sweep of flows or, by `method`, of SGD; two save points unless saved times are asked for.

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
    """A sweep of comparisons of SGD with its flow over one size; `seeds` replicas each, 5 unless more are asked for.

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
    """The options of SGD that all cells share; none for the flow, which refuses them."""
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
    """All cells as one data set; those that `folder` holds are not computed again, without one nothing is kept."""
    with _kept(folder) as place:
        return sweeps.run(wanted, place, scheduler=scheduler, workers=workers, report=report)


@contextlib.contextmanager
def _kept(folder: Path | None) -> Iterator[Path]:
    """The folder, or one that goes when all is done."""
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="odesim-sweep-") as name:
        yield Path(name)
