"""Finite-sample SGD, alone or beside the flow that it is held against."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import derivations
from derivations.contract import Recursion, load
from odesim.flow import solve
from odesim.flow.driver import Progress
from odesim.flow.recursion import plan
from odesim.request.case import Case
from odesim.sgd.simulation import Simulation, simulate
from odesim.study.comparison import Comparison, Request, compare

if TYPE_CHECKING:
    from derivations.contract import System

FLOW = ("rtol", "atol", "solver", "step")
"""Options of a comparison that are the flow's alone."""
REPLICAS = 5
"""Replicas of SGD in a comparison that names no number of seeds: fewer leave intervals too wide to say anything."""


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
    """A simulation; `options` are those of `Case.build`, and numbers may be words.  Raises `UsageError`."""
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


@dataclasses.dataclass(frozen=True)
class Pair:
    """A simulation, and the case of the flow that it is held against."""

    simulation: Simulation
    flow: Case
    wanted: Request

    def run(self, progress: Progress | None = None, threads: int | None = None) -> Comparison:
        """Both runs, on the times of the simulation, and their distances."""
        second = simulate(self.simulation, progress, None, threads)
        return compare(solve.solve(self.flow, times=second.time), second)


def pair(system: "str | System", parameters: Mapping[str, Any], **options: Any) -> Pair:
    """A simulation (`request`) with its flow, to which the options `FLOW` belong.

    Raises `UsageError`, before anything is computed, for steps that do not meet the times at which SGD is saved.
    """
    flow = {name: options.pop(name) for name in FLOW if options.get(name) is not None}
    options["seeds"] = REPLICAS if options.get("seeds") is None else options["seeds"]
    simulation = request(system, parameters, **{k: v for k, v in options.items() if k not in FLOW})
    parts = {"simulation": simulation.request(), "flow": flow}
    return Pair(
        simulation,
        _beside(simulation, flow),
        Request(derivations.reference(simulation.system), simulation.name, simulation.seed, parts),
    )


def _beside(simulation: Simulation, flow: Mapping[str, Any]) -> Case:
    """The case of the flow that a simulation is held against, with the options of a flow that were given."""
    case = simulation.case
    parameters = {f.name: getattr(case.parameters, f.name) for f in dataclasses.fields(case.parameters)}
    if case.initial is not None:
        parameters = {name: value for name, value in parameters.items() if name in case.explicit}
    advance = load(case.system.stage(case.stage).equations)(case.parameters, case.tier).advance
    if isinstance(advance, Recursion):  # it takes the steps of the training it is held against
        parameters[advance.step] = simulation.tick
    again = Case.build(
        case.system, parameters, initial=case.initial, stage=case.stage, seed=case.seed, until=case.until,
        save_points=case.save_points if "save_points" in case.options else None, **flow,
    )  # fmt: skip
    if again.step is not None:
        plan(again, again.step, "--step", simulation.schedule * simulation.tick)
    return again
