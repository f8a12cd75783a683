"""Several stages of finite-sample SGD in one run. Every replica continues from its end of the stage before."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.contract import Dynamics, System
from odesim.errors import Interrupted, Unfinished, UsageError
from odesim.flow import pipeline
from odesim.flow.continuation import Started
from odesim.request.several_stages import SeveralStages
from odesim.request.trajectory import Trajectory, Variable
from odesim.sgd import families
from odesim.sgd.beginning import Beginning
from odesim.sgd.simulation import Simulation, simulate


class Course(SeveralStages[Simulation]):
    """Simulations of some stages in order. All but the first still need the state at which they begin."""

    @property
    def method(self) -> str:
        """Method of SGD, the same in all stages."""
        return self.cases[0].method


def build(
    system: str | System | None, parameters: Mapping[str, Any], stages: str | None, start: Any,
    sgd: Mapping[str, Any], **options: Any,
) -> Course:  # fmt: skip
    """Return the simulations of the stages "NAME,NAME,..", "all" or one NAME, from the beginning or from a stored run
    `start`.

    `sgd` are the options of `Simulation.build`, the others those of `odesim.flow.pipeline.build`: end times are those
    of several stages of a flow, on the shared clock. Raises `UsageError` as these do, and if the number of replicas of
    `start` differs from the requested one.
    """
    replicas: tuple[Trajectory, ...] = () if start is None else each(start.trajectory)
    sgd = dict(sgd)
    if len(replicas) > 1:
        if sgd.get("seeds") not in (None, len(replicas), str(len(replicas))):
            raise UsageError(f"--seeds is {sgd['seeds']}, but the continued run has {len(replicas)} replicas")
        if sgd.get("fresh_initial"):
            raise UsageError("--fresh-initial draws new weights, but --from continues with the weights of the run")
        sgd["seeds"] = len(replicas)
    first = None if start is None else Started(next(iter(replicas)), start.digest)
    found = pipeline.build(system, parameters, stages, first, **options)
    made, time, clock, going = [], found.time, found.clock, start is not None
    for case in found.cases:
        stage = case.system.stage(case.stage)
        if not isinstance(stage, Dynamics):
            raise UsageError(
                f"stage {stage.name} is a single step, which SGD of several stages does not support: choose "
                "other stages"
            )
        begin = time if stage.clock == clock else 0.0
        if begin and "until" in case.options:
            case = dataclasses.replace(case, until=case.until - begin)
        if going and sgd["method"] == "explicit" and families.has_samples(case):
            raise UsageError(
                f"explicit SGD of stage {stage.name} cannot continue, because a run stores only overlaps but "
                "samples from a file need the weights; use --method compressed"
            )
        arrays = () if made else tuple({**(found.previous or {}), **_own(run, start)} for run in replicas)
        made.append(Simulation.build(case, **sgd, begin=Beginning(begin, arrays, "" if made else found.stage)))
        time, clock, going = begin + made[-1].case.until, stage.clock, True
    return Course(tuple(made), found.origin)


def _own(run: Trajectory, start: Any) -> dict[str, np.ndarray]:
    """Return the moving arrays of one replica at the end of a run, and its individual constants.

    Other constants may have been replaced by parameters.
    """
    constants = {name for name, v in start.trajectory.extras.items() if v.dims[:1] == ("seed",)}
    return {name: values for name, values in run.arrays(-1).items() if name in run.state or name in constants}


def each(run: Trajectory) -> tuple[Trajectory, ...]:
    """Return the run of every replica. A flow has one."""
    if "seed" not in next(iter(run.state.values())).dims:
        return (run,)
    count = next(iter(run.state.values())).shape[0]
    return tuple(_replica(run, k) for k in range(count))


def _replica(run: Trajectory, k: int) -> Trajectory:
    """Return one replica of a run."""

    def own(variables: Mapping[str, Variable]) -> dict[str, Variable]:
        return {
            name: Variable(v.dims[1:], v.values[k], v.meaning) if v.dims[:1] == ("seed",) else v
            for name, v in variables.items()
        }

    return dataclasses.replace(run, state=own(run.state), extras=own(run.extras))


def run(
    course: Course,
    progress: Callable[[float, float], None] | None = None,
    checkpoint: Any = None,
    threads: int | None = None,
) -> list[Trajectory]:
    """Run all stages in order. A stage that fails is the last.

    Raises `Unfinished` if a later stage cannot begin, and `Interrupted` if the user stops a stage. Both exceptions have
    the stages before.
    """
    made: list[Trajectory] = []
    for simulation in course.cases:
        if made:
            arrays = tuple(one.arrays(-1) for one in each(made[-1]))
            begin = dataclasses.replace(simulation.begin, arrays=arrays)
            simulation = dataclasses.replace(simulation, begin=begin)
        own = checkpoint if checkpoint is None or checkpoint.ends or len(course.cases) == 1 else None
        try:
            made.append(simulate(simulation, progress, own, threads))
        except UsageError as error:
            if not made:
                raise
            raise Unfinished(f"stage {simulation.case.stage} could not start: {error}", made) from error
        except KeyboardInterrupt:
            if not made:
                raise
            raise Interrupted(f"interrupted in stage {simulation.case.stage}", made) from None
        if made[-1].outcome.kind in ("failed", "interrupted"):
            break
    return made
