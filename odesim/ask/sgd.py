"""Requests for finite-sample SGD, alone or in comparison with the flow."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from odesim.errors import UsageError
from odesim.flow.driver import Progress
from odesim.request.case import Case, find_system
from odesim.sgd import course, families
from odesim.sgd.course import Course
from odesim.sgd.simulation import Simulation, simulate
from odesim.study.pair import FLOW, Pair

if TYPE_CHECKING:
    from derivations.contract import System
    from odesim.request.trajectory import Trajectory
    from odesim.store import Checkpoint

SGD = ("method", "step_size", "batch", "seeds", "device", "precision", "fresh_initial", "population_loss")
"""Options of a simulation."""
REPLICAS = 5
"""Default number of replicas of SGD in a comparison. With fewer replicas the intervals are too wide."""


def stages(
    system: "str | System | None",
    parameters: Mapping[str, Any],
    *,
    stage: Any = None,
    start: Any = None,
    **options: Any,
) -> Simulation | Course:
    """Return the request for SGD of one stage, or of several: "NAME,NAME", "all", or stages that continue the run
    `start`.

    `options` are those of `request`. Raises `UsageError` for an invalid request.
    """
    several = isinstance(stage, str) and ("," in stage or stage == "all")
    if start is None and several:
        if system is None:
            raise UsageError("Missing option '--system'; `odesim systems` lists them")
        several = stage != "all" or len((find_system(system) if isinstance(system, str) else system).stages) > 1
    if start is None and not several:
        if system is None:
            raise UsageError(
                "Missing option '--system' (or --from RUN_DIR, which implies it); `odesim systems` lists them"
            )
        return request(system, parameters, stage=stage, **options)
    if start is not None and options.get("initial") is not None:
        raise UsageError("--from continues a stored run, but --initial starts a new one; give only one of the two")
    if isinstance(start, str | os.PathLike):
        from odesim import store

        start = store.load(start)
    sgd = {name: options.pop(name) for name in SGD if name in options}
    given = {name: value for name, value in options.items() if value is not None}
    return course.build(system, parameters, stage, start, sgd, **given)


def run(
    asked: Simulation | Course, progress: Progress | None = None, checkpoint: "Checkpoint | None" = None,
    threads: int | None = None,
) -> "list[Trajectory]":  # fmt: skip
    """Return the trajectory of every stage. Raises `Unfinished` and `Interrupted` as `odesim.sgd.course.run` does."""
    if isinstance(asked, Course):
        return course.run(asked, progress, checkpoint, threads)
    return [simulate(asked, progress, checkpoint, threads)]


def request(
    system: "str | System",
    parameters: Mapping[str, Any],
    *,
    method: str,
    step_size: Any,
    batch: Any,
    seeds: Any = 1,
    device: str = "auto",
    precision: str = "float64",
    fresh_initial: bool = False,
    population_loss: bool = False,
    **options: Any,
) -> Simulation:
    """Return the request for a simulation. `options` are those of `Case.build`, and numbers may be strings. Raises
    `UsageError`.
    """
    return Simulation.build(
        Case.build(system, parameters, **options),
        method=method,
        step_size=step_size,
        batch=batch,
        seeds=seeds,
        device=device,
        precision=precision,
        fresh_initial=fresh_initial,
        population_loss=population_loss,
    )


def pair(
    system: "str | System", parameters: Mapping[str, Any], *, method: str | None = None, band: bool | None = None,
    **options: Any,
) -> Pair:  # fmt: skip
    """Return the request for a simulation (`request`) and its flow. The options `FLOW` belong to the flow.

    The default `method` is compressed SGD. On a user's samples it is explicit SGD, with compressed SGD as a third run.
    The third run separates the effect of the distribution of the samples from the effect of SGD. `band` is that of
    `Pair.build`. Raises `UsageError`, before anything is computed, if the steps of the flow miss the times at which SGD
    is saved.
    """
    flow = {name: options.pop(name) for name in FLOW if name in options}
    options["seeds"] = REPLICAS if options.get("seeds") is None else options["seeds"]
    first = request(system, parameters, method=method or "compressed", **options)
    if method is not None or not families.has_samples(first.case):
        return Pair.build(first, flow, band=band)
    return Pair.build(request(system, parameters, method="explicit", **options), flow, first, band)
