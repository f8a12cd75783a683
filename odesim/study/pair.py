"""A simulation by SGD and the flow that it is compared with, as one request."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import derivations
from derivations.contract import Recursion, load
from odesim.flow import solve
from odesim.flow.driver import Progress
from odesim.flow.recursion import plan
from odesim.request.case import Case
from odesim.sgd.simulation import Simulation, simulate
from odesim.study import flow_band
from odesim.study.comparison import Comparison, Request, compare

FLOW = ("rtol", "atol", "solver", "step")
"""Options of a comparison that belong to the flow only."""


@dataclasses.dataclass(frozen=True)
class Pair:
    """A simulation, and the case of the flow that it is compared with."""

    simulation: Simulation
    flow: Case
    wanted: Request
    gaussian: Simulation | None = None
    band: bool | None = None

    @classmethod
    def build(
        cls, simulation: Simulation, options: Mapping[str, Any], gaussian: Simulation | None = None,
        band: bool | None = None,
    ) -> "Pair":  # fmt: skip
        """Return a simulation with its flow. `options` has the given options of `FLOW`.

        `gaussian` is the same training on Gaussian inputs, if the simulation uses a user's samples. `band` requests the
        band of the flow (`odesim.study.flow_band.behind`). Raises `UsageError`, before anything is computed, if the
        steps of the flow miss the times at which SGD is saved.
        """
        flow = {name: value for name, value in options.items() if value is not None}
        parts = {"simulation": simulation.request(), "flow": flow}
        parts |= {"gaussian": gaussian.request()} if gaussian is not None else {}
        parts |= {"band": band} if band is not None else {}
        request = Request(derivations.reference(simulation.system), simulation.name, simulation.seed, parts)
        return cls(simulation, _beside(simulation, flow), request, gaussian, band)

    @property
    def case(self) -> Case:
        """The case that the simulation runs."""
        return self.simulation.case

    @property
    def digest(self) -> str:
        """Identifier of the comparison: twelve hexadecimal characters."""
        return self.wanted.digest

    @property
    def step_size(self) -> float:
        """The step size of the simulation."""
        return self.simulation.step_size

    @property
    def batch(self) -> int:
        """The samples of a step of the simulation."""
        return self.simulation.batch

    def request(self) -> dict[str, Any]:
        """Everything that determines the answer, as plain data."""
        return self.wanted.request()

    def run(self, progress: Progress | None = None, threads: int | None = None) -> Comparison:
        """Return both runs, on the times of the simulation, with their distances and the band of the flow."""
        comparison = self.run_without_band(progress, threads)
        if self.gaussian is not None:
            flow_band_or_reason: Any = (
                "no band: bands exist only for Gaussian inputs, but these inputs come from a file"
            )
        else:
            flow_band_or_reason = flow_band.behind(self.simulation, comparison, self.band)
        return dataclasses.replace(comparison, band=flow_band_or_reason)

    def run_without_band(self, progress: Progress | None = None, threads: int | None = None) -> Comparison:
        """Return both runs, on the times of the simulation, and their distances."""
        second = simulate(self.simulation, progress, None, threads)
        first = solve.solve(self.flow, times=second.time)
        if self.gaussian is None:
            return compare(first, second)
        third = simulate(self.gaussian, progress, None, threads)
        return dataclasses.replace(compare(first, second), gaussian=compare(first, third))


def _beside(simulation: Simulation, flow: Mapping[str, Any]) -> Case:
    """Return the case of the flow that a simulation is compared with, with the given options of the flow."""
    case = simulation.case
    parameters = case.by_name
    if case.initial is not None:
        parameters = {name: value for name, value in parameters.items() if name in case.explicit}
    advance = load(case.system.stage(case.stage).equations)(case.parameters, case.tier).advance
    if isinstance(advance, Recursion) and advance.step:  # its steps are those of the training that it is compared with
        parameters[advance.step] = simulation.tick
    flow_case = Case.build(
        case.system, parameters, initial=case.initial, stage=case.stage, seed=case.seed, until=case.until,
        save_points=case.save_points if "save_points" in case.options else None, save_at=case.save_at, **flow,
    )  # fmt: skip
    if flow_case.step is not None:
        plan(flow_case, flow_case.step, "--step", simulation.schedule * simulation.tick)
    return flow_case
