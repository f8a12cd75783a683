"""Comparisons of runs, and weights that were trained elsewhere.  Nothing is written."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odesim.public.make import SGD, split_request
from odesim.public.speak import chosen, known, speaking, trajectory_of
from odesim.public.watch import watched

if TYPE_CHECKING:
    import xarray

    from derivations.contract import System
    from odesim.request.trajectory import Trajectory
    from odesim.store import Run
    from odesim.study.comparison import Comparison


@speaking
def compare(
    first: "Trajectory | Run | str | System",
    second: "Trajectory | Run | None" = None,
    *,
    method: str | None = None,
    over: "Mapping[str, Sequence[Any]] | None" = None,
    band: bool | None = None,
    **request: Any,
) -> "Comparison | xarray.Dataset":
    """Compare two runs of one system, or the flow of a system with SGD, on the times of the second run.

    Arguments:
        first: A run, or a system. For a system, odesim makes both runs.
        second: The second run, if `first` is a run.
        method: For a system: "compressed" (default) or "explicit". If the inputs come from a file, the default is both.
        over: For a system: one name and its values, such as `{"d": [100, 400, 1600]}`. Flow and SGD are compared at
            each value.
        band: For a system: compute the 90 % band of SGD around the flow. By default declared models with at most 20
            order parameters have a band, which ends at the first saddle. True continues the band behind the saddle, as
            a mixture of flows, and computes it for larger models too. False leaves it out.
        request: For a system: parameters, the arguments of `simulate` (`seeds` is 5), and `rtol`, `atol`, `solver` and
            `step` of the flow.

    Returns:
        A `Comparison`. It has the distance of each replica, and for every component a judgement whether the runs agree
        within a margin over the whole run. `summary()["inside_90"]` is the share of replicas and times inside the band
        of the error (or the loss), which is expected to be .90; `summary()["band"]` gives the reason if there is no
        band. With `over` the result is a data set: `distance` (value, replica) is the largest difference of SGD and
        flow over components and times. Its attributes are `exponent` (estimate, and both ends of the 95 % interval) and
        `exponent_of_noise`.

    Raises:
        UsageError: Clocks, components or sizes of the runs differ, or the request is invalid.

    Example:
        >>> import odesim
        >>> found = odesim.compare("liao", m=2, m_star=1, d=100, step_size=1e-3, batch=64, seeds=3, until=1.0, seed=0)
        >>> found.summary()["replicas"]
        3
    """
    from odesim.ask import begin, sgd
    from odesim.errors import UsageError
    from odesim.request.trajectory import Trajectory
    from odesim.store import Run

    if isinstance(first, Trajectory | Run) != (second is not None) or (second is not None and (request or over)):
        raise UsageError("compare takes two runs, or a system with the options of a simulation")
    if band is not None and (second is not None or over is not None):
        raise UsageError("band is an option for a single comparison of a system with its SGD; leave it out")
    if second is not None:
        from odesim.study import comparison

        both = [trajectory_of(run, "compare") for run in (first, second)]
        digests = [begin.digest_of_run(run) for run in (first, second)]
        return dataclasses.replace(comparison.compare_stored(*both), asked=begin.compared(both[1], digests))
    system = chosen(first)
    options, parameters = split_request(request, ("step_size", "batch", "seeds", "device", "precision", *sgd.FLOW))
    known(system, parameters, (*SGD, *sgd.FLOW), "compare")
    if over is not None:
        from odesim.ask import sweep
        from odesim.public.grids import lists_of

        grid = sweep.compared(system, lists_of(over), parameters, method=method or "compressed", **options)
        with watched(f"comparing flow and SGD of {system.name}") as progress:
            return sweep.run(grid, report=progress)
    made: Any = {"step_size": None, "batch": None, **options}
    pair = sgd.pair(system, parameters, method=method, band=band, **made)
    with watched(f"comparing flow and SGD of {system.name}") as progress:
        return dataclasses.replace(pair.run(progress), asked=pair.wanted)


@speaking
def observe(
    system: "str | System",
    weights: "str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Mapping[str, Any]",
    *,
    names: "Mapping[str, str] | None" = None,
    times: "Sequence[float] | None" = None,
    stage: str | None = None,
    **parameters: Any,
) -> "Trajectory":
    """Measure the order parameters of weights that were trained elsewhere.

    Arguments:
        system: The system that defines the order parameters.
        weights: Arrays by name, an .npz file, or a list of files (checkpoints of PyTorch, .pt or .pth; .npz; .npy).
            Files with the same arrays are snapshots, in their order. The array `w` has one snapshot (unit, d),
            several snapshots (time, unit, d), or those of several runs (replica, time, unit, d). Other weight vectors
            have their own names. `w_star` (teacher, d) is the teacher of all runs, and `time` (time,) the times.
        names: Names in odesim for the arrays of files, such as `{"layer.weight": "w", "teacher.kernel": "w_star.T"}`;
            `.T` transposes.
        times: Times of the snapshots, if the files have no `time`.
        stage: The stage; by default the first with a clock.
        parameters: Parameters of the system.

    Returns:
        A `Trajectory` with the dimensions (time, ...), or (seed, time, ...) for several runs, which `compare` takes.
        For a declared model `summary["clock"]` compares the speed of the log with that of the flow, and names a
        convention that explains a difference (`odesim.conventions`).

    Raises:
        UsageError: An array is missing, has a wrong shape, or is not finite.

    Example:
        >>> import numpy as np, odesim
        >>> system = odesim.declare(student={"unit": "erf(w)", "units": 2}, teacher={})
        >>> odesim.observe(system, {"w": np.ones((3, 2, 10)), "w_star": np.eye(10)[:1]})["M_ww"].shape
        (3, 2, 1)
    """
    from odesim.study import observation

    system = chosen(system)
    known(system, parameters, ("stage", "names", "times"), "observe")
    return observation.observe(system, weights, parameters, stage=stage, names=names, times=times)
