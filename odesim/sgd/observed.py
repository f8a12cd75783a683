"""Quantities that SGD shares with its flow: hitting times, population losses and errors along the paths of SGD."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from derivations.contract import (
    Component,
    Dynamics,
    Equations,
    Initial,
    ScalarModel,
    Smooth,
    Stage,
    Stepped,
    UsageError,
    load,
)
from odesim.flow.losses import zero_within_error
from odesim.request.trajectory import NOT_SAVED, Variable

ROUNDING = 1e-12
"""Rounding error of a loss that is computed from weights, relative to its largest value."""


def flow_of(stage: Stage, parameters: Any) -> Equations | None:
    """The first tier of a stage's population dynamics; None where training has no flow.

    Some training has no equations (pruning: routing=token_choice, whose experts are coupled). Such a run has no hitting
    times.
    """
    try:
        tier = stage.tier(parameters) if isinstance(stage, Dynamics) else stage.tiers[0]
        return load(stage.equations)(parameters, tier)
    except UsageError:
        return None


def hitting_times(equations: Equations, state: dict[str, np.ndarray], times: np.ndarray) -> dict[str, Variable]:
    """Return the hitting times of the flow, for every replica, at the resolution of the saved points.

    The hitting time is the first saved time past the threshold, because root-finding cannot locate a crossing of a
    noisy path between saved points.
    """
    dims = {component.name: component.dims for component in equations.state}
    found = {}
    for crossing in equations.crossings:
        if crossing.component not in state:
            continue
        hits = first_times(crossing.margin(crossing.entries(state[crossing.component])) >= 0, times)
        meaning = f"{crossing.meaning}: {NOT_SAVED}"
        found[crossing.name] = Variable(("seed", *crossing.dims(dims[crossing.component])), hits, meaning)
    return found


def events(
    equations: Equations, initial: Initial, state: Mapping[str, np.ndarray], times: np.ndarray
) -> dict[str, Variable]:
    """Return the hitting times that a flow with its own steps (`Stepped`) finds in its loops, at the saved points."""
    march = equations.advance
    if not isinstance(march, Stepped) or march.reached is None:
        return {}
    reached = march.reached(initial, state)
    return {
        name: Variable(("seed", dimension), first_times(reached[name], times), f"{meaning}: {NOT_SAVED}")
        for name, (dimension, meaning) in march.names.items()
    }


def first_times(reached: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the first of `times` (T,) at which `reached` (seed, T, ..) is true, (seed, ..); infinite if there is
    none.
    """
    return np.where(reached.any(axis=1), times[reached.argmax(axis=1)], np.inf)


def constants(model: Any, initials: Sequence[Initial], last: np.ndarray) -> dict[str, Variable]:
    """Return the saved constants of a run; they have an axis (seed, ..) if replicas differ, like copies of students.

    They include velocities of the `last` saved states (R, ..) that are not order parameters.
    """
    found = {name: Variable(*constant) for name, constant in model.fixed(initials[0]).items()}
    if isinstance(model, ScalarModel) and model.kept is not None:
        kept = model.kept(initials[0].parameters, last)
        found |= {name: Variable(("seed", *dims), values, text) for name, (dims, values, text) in kept.items()}
    every = [model.fixed(initial) for initial in _distinct(initials)]
    for name in every[0]:
        values = np.array([each[name][1] for each in every])
        if not all(_same(one, values[0]) for one in values):
            found[name] = Variable(("seed", *found[name].dims), values, found[name].meaning)
    return found


def _distinct(initials: Sequence[Initial]) -> list[Initial]:
    """Return the initial conditions of the replicas; one for all if their constants are the same."""
    first = initials[0]
    alike = all(
        one is first or all(_same(values, first.constants[name]) for name, values in one.constants.items())
        for one in initials
    )
    return [first] if alike else list(initials)


def _same(one: np.ndarray, two: np.ndarray) -> bool:
    """Return True if two arrays are equal; NaN equals NaN."""
    return np.array_equal(one, two, equal_nan=np.asarray(one).dtype.kind == "f")


def population_values(
    equations: Equations, initials: Sequence[Initial], state: dict[str, np.ndarray],
    watched: tuple[Component, ...] = (), times: np.ndarray | None = None,
) -> dict[str, Variable]:  # fmt: skip
    """Return the population loss and the `watched` observables along a simulation, (seed, time), by the flow's first
    tier.

    `initials` are those of the replicas, or one for all. `times` (time,) are those on its clock, because equations may
    depend on time.

    The result is empty if the tier has no loss, or if a part of the flow's state was not saved (pruning: keep_u=no).
    Observables that are not scalars are left out, because only the model knows their sizes.
    """
    from odesim.flow.problem import clocked, compile_functions

    clock = equations.advance.clock if isinstance(equations.advance, Smooth) else ""
    if not all(name in state or name == clock for name in equations.unpack(equations.start(initials[0]))):
        return {}
    functions = compile_functions(equations, "numba")
    if "loss" not in functions:
        return {}
    shape = next(iter(state.values())).shape[:2]
    initials = _distinct(initials)
    moments = [[initial] * (shape[1] if clock else 1) for initial in initials]
    if clock and times is not None:
        moments = [[clocked(equations, initial, float(t)) for t in times] for initial in initials]
    given = [[equations.arguments(one) for one in each] for each in moments]
    watched = () if "watch" not in functions or any(c.dims for c in watched) else watched
    losses, others = np.empty(shape), np.empty((*shape, len(watched)))
    for index in np.ndindex(shape):
        at = index[0] if len(initials) > 1 else 0, index[1] if clock else 0
        initial = moments[at[0]][at[1]]
        here = {**initial.state, **{name: values[index] for name, values in state.items()}}
        y, arguments = equations.start(dataclasses.replace(initial, state=here)), given[at[0]][at[1]]
        losses[index] = functions["loss"](y, *arguments)
        if watched:
            others[index] = functions["watch"](y, *arguments)
    found = {"loss": Variable(("seed", "time"), _without_rounding(losses), "population loss of the current weights")}
    for k, c in enumerate(watched):
        values = _without_rounding(others[..., k]) if c.bounds[0] == 0 else others[..., k]
        found[c.name] = Variable(("seed", "time"), values, f"{c.meaning}, of the current weights")
    return found


def _without_rounding(values: np.ndarray) -> np.ndarray:
    """Return values (seed, time) that cannot be negative; values that are negative by rounding become 0."""
    return np.stack([zero_within_error(each, ROUNDING) for each in values])
