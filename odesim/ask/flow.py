"""Flows and stages: the request for one run or for several stages, and its trajectories."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from odesim.errors import UsageError
from odesim.flow import pipeline, solve
from odesim.flow.driver import Progress
from odesim.flow.pipeline import Pipeline
from odesim.machine.device import in_double
from odesim.request.case import Case, find_system

if TYPE_CHECKING:
    from derivations.contract import System
    from odesim.request.trajectory import Trajectory
    from odesim.store import Checkpoint, Run


NAMED = ("preset", "initial", "parameters", "config")
"""Options that determine parameters."""


def bare(system: "str | System | None", parameters: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the default options of a system for a run without parameters, preset or file; otherwise an empty mapping.

    Options that the user gives take precedence. If the user gives the solver or the step, the defaults of the
    tolerances are left out too.
    """
    if system is None or parameters or any(options.get(name) is not None for name in NAMED):
        return {}
    chosen = find_system(system) if isinstance(system, str) else system
    solved = ("rtol", "atol") if options.get("solver") is not None or options.get("step") is not None else ()
    return {n: value for n, value in chosen.bare.items() if options.get(n) is None and n not in solved}


def request(
    system: "str | System | None",
    parameters: Mapping[str, Any],
    *,
    stage: str | None = None,
    start: "Run | str | os.PathLike[str] | None" = None,
    **options: Any,
) -> Case | Pipeline:
    """Return the request for one flow, or for several stages: "NAME,NAME", "all", or stages that continue the run
    `start`.

    `options` are those of `Case.build`; None means that the option is not given. A run without parameters has the
    default options of its system (`bare`). Raises `UsageError` for an invalid request.
    """
    if start is None:
        options |= bare(system, parameters, options)
    if start is None and (stage is None or ("," not in stage and stage != "all")):
        if system is None:
            raise UsageError(
                "Missing option '--system' (or --from RUN_DIR, which implies it); `odesim systems` lists them"
            )
        case = Case.build(system, parameters, stage=stage, **options)
        case.require_clock()
        return case
    if start is not None and options.get("initial") is not None:
        raise UsageError("--from continues a stored run, but --initial starts a new one; give only one of the two")
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(start, str | os.PathLike):
        from odesim import store

        start = store.load(start)
    return pipeline.build(system, parameters, stage, start, **given)


@in_double
def run(
    asked: Case | Pipeline,
    progress: Progress | None = None,
    checkpoint: "Checkpoint | None" = None,
    threads: int | None = None,
) -> "list[Trajectory]":
    """Return the trajectory of every stage. Raises `Unfinished` and `Interrupted` as `pipeline.run` does."""
    cases = asked.cases if isinstance(asked, Pipeline) else (asked,)
    if any(case.backend == "jax" for case in cases):
        from odesim.machine import device

        device.configure("auto", threads)
    if isinstance(asked, Pipeline):
        return pipeline.run(asked, progress, checkpoint)
    return [solve.solve(asked, progress=progress, checkpoint=checkpoint)]
