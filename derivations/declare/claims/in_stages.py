"""Claims on a model of several stages: the generated ones of every stage, and paths over all stages.

Claims that are generated for a model of one stage are measured in a stage by a laboratory for this stage only. Its
system has the parameters of the stage. Its runs begin at the start of the model, at the time at which the stage begins.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from derivations.claim import Claim, Evaluator
from derivations.contract import Initial, System
from derivations.declare import schedules
from derivations.declare.declaration import Declaration
from derivations.declare.parameter_class import between
from derivations.declare.stage_parameters import Between


def claims(system: System, of_one: Callable[[System], tuple[Claim, ...]]) -> Iterator[Claim]:
    """The claims that `of_one` gives for a model of one stage, in every stage."""
    declared: Declaration = system.parameters.declaration  # type: ignore[attr-defined]
    for stage in declared.stages:
        stage_system = dataclasses.replace(system, parameters=between(declared, stage).own)
        for claim in of_one(stage_system):
            yield _in_stage(claim, stage.stage)


def _in_stage(claim: Claim, stage: str) -> Claim:
    """Return a claim of a model of one stage as a claim of a stage, with its control."""

    def control(original: Claim) -> Claim:
        twin = claim.control(original)
        return twin if twin.measure is original.measure else dataclasses.replace(twin, measure=_within(twin, stage))

    return dataclasses.replace(
        claim,
        id=f"{claim.id}-{stage}",
        statement=f"In stage {stage}: {claim.statement[:1].lower()}{claim.statement[1:]}",
        measure=_within(claim, stage),
        control=control,
    )


def _within(claim: Claim, stage: str) -> Any:
    return functools.partial(measured, measure=claim.measure, stage=stage)


def measured(lab: Any, point: Mapping[str, Any], seed: int, measure: Callable[..., Any], stage: str) -> Any:
    """Return the measurement of a claim of a model of one stage, made in a stage."""
    declared: Declaration = lab.system.parameters.declaration
    declared_stage = next(candidate for candidate in declared.stages if candidate.stage == stage)
    return measure(Room(lab, between(declared, declared_stage)), point, seed)


class Room:
    """Laboratory for a single stage (`derivations.claim.Lab`)."""

    def __init__(self, lab: Any, ways: Between) -> None:
        self.lab, self.ways, self.name = lab, ways, ways.stage.stage
        self.system = dataclasses.replace(lab.system, parameters=ways.own)
        self.backend, self.effort = lab.backend, lab.effort

    def _asked(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return a request with the parameter names of the model."""
        names = {stage_name: name for name, stage_name in self.ways.names.items()}
        begin = {"begin": self.ways.stage.begin, **request}
        return {**{names.get(name, name): value for name, value in begin.items()}, "stage": self.name}

    def integrate(self, **request: Any) -> Any:
        """The trajectory of the flow of the stage."""
        return self.lab.integrate(**self._asked(request))

    def simulate(self, **request: Any) -> Any:
        """Return the trajectory of SGD in the stage; its first step is the first one that is not before the stage."""
        sizes = {"d": request["d"]} if "d" in request else {}
        parameters, stage = self.ways.own(**sizes), self.lab.system.dynamics(self.name)
        size = request.get("step_size")
        tick = stage.tick(parameters, stage.usual(parameters)[0] if size is None else size)
        begin = math.ceil(self.ways.stage.begin / tick - schedules.BEFORE) * tick
        return self.lab.simulate(**self._asked({"begin": begin, **request}))

    def functions(self, initial: Initial, tier: str | None = None) -> Evaluator:
        """The compiled right-hand side and loss of the stage."""
        return self.lab.functions(initial, tier, self.name)

    def exhibit(self, seed: int) -> int:
        """Return the seed of the draw that `seed` has in the laboratory of seed 0."""
        return self.lab.exhibit(seed)


def path(lab: Any, variable: str, method: str, until: float | None, **request: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return times and values of an order parameter over all stages of a model, up to a time on its clock.

    `method` is "flow" or a method of SGD, for which the first replica is used. A stage begins at the end of the one
    before.
    """
    runs = lab.course(method=method, until=until, **request)
    values = [np.asarray(run[variable]) if method == "flow" else np.asarray(run[variable])[0] for run in runs]
    parts = [slice(0 if k == 0 else 1, None) for k in range(len(runs))]
    times = np.concatenate([np.asarray(run.time)[part] for run, part in zip(runs, parts, strict=True)])
    return times, np.concatenate([series[part] for series, part in zip(values, parts, strict=True)])
