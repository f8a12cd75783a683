"""What a simulation shares with its flow: hitting times and population losses of the paths that SGD took."""

import dataclasses

import numpy as np

from derivations.contract import Equations, Initial
from odesim.request.trajectory import Variable


def hitting_times(equations: Equations, state: dict[str, np.ndarray], times: np.ndarray) -> dict[str, Variable]:
    """The hitting times of the flow, for every replica, at the resolution of the saved points.

    A noisy path has no crossing to locate by root-finding between its saved points: the first saved time counts.
    """
    dims = {component.name: component.dims for component in equations.state}
    found = {}
    for crossing in equations.crossings:
        if crossing.component not in state:
            continue
        reached = crossing.margin(state[crossing.component]) >= 0
        hits = np.where(reached.any(axis=1), times[reached.argmax(axis=1)], np.inf)
        meaning = f"{crossing.meaning}: the first saved time at or past it; inf: at none of them"
        found[crossing.name] = Variable(("seed", *dims[crossing.component]), hits, meaning)
    return found


def population_losses(equations: Equations, initial: Initial, state: dict[str, np.ndarray]) -> np.ndarray | None:
    """The population loss along a simulation (seed, time), by the flow's first tier, where it has a loss."""
    from odesim.flow.problem import compile_functions

    if not all(component.name in state for component in equations.state):
        return None
    functions = compile_functions(equations, "numba")
    if "loss" not in functions:
        return None
    arguments = equations.arguments(initial)
    shape = next(iter(state.values())).shape[:2]
    losses = np.empty(shape)
    for index in np.ndindex(shape):
        here = {component.name: np.asarray(state[component.name][index]) for component in equations.state}
        losses[index] = functions["loss"](equations.start(dataclasses.replace(initial, state=here)), *arguments)
    return losses
