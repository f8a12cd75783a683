"""From the recorded data of a run to its trajectory: state, observables, hitting times, invariants and summary."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from derivations.contract import Stepped
from odesim.code.traced import jax_along, split
from odesim.flow.losses import divergence, zero_within_error
from odesim.flow.problem import Problem
from odesim.request.case import EULER, plain, values_of
from odesim.request.trajectory import NOT_REACHED, Origin, Outcome, Trajectory, Variable


@runtime_checkable
class Recorded(Protocol):
    """Recorded data of a run: times, states, and hitting times by name."""

    hits: dict[str, np.ndarray]

    def result(self) -> tuple[np.ndarray, np.ndarray]: ...


def _along(problem: Problem, role: str, states: np.ndarray) -> np.ndarray:
    """Evaluate a compiled function of the state, such as the loss, at every saved state (see `Code` for `along`)."""
    parts = problem.pieces(states)
    if len(parts) > 1:
        found = [(numbers, _along_piece(piece, role, states[numbers])) for piece, numbers in parts]
        order = np.argsort(np.concatenate([numbers for numbers, _ in found]))
        return np.concatenate([values for _, values in found])[order]
    return _along_piece(parts[0][0], role, states)


def _along_piece(problem: Problem, role: str, states: np.ndarray) -> np.ndarray:
    """Evaluate `_along` for states with the same arguments."""
    function, arguments = problem.functions[role], problem.arguments
    along = getattr(function, "along", None)
    if along is not None:
        return along(states, *arguments)
    if problem.case.backend != "jax":
        return np.array([function(y, *arguments) for y in states])
    sizes, arrays = split(arguments)
    return np.asarray(jax_along(function, sizes)(states, arrays))


def _watched(
    problem: Problem, states: np.ndarray, components: dict[str, np.ndarray], extras: Mapping[str, Variable]
) -> dict[str, Variable]:
    """Add the compiled observables along the run to `components`, and return them as variables."""
    if "watch" not in problem.functions or not problem.equations.watched:
        return {}
    flat, at, found = _along(problem, "watch", states), 0, {}
    known = [(v.dims, v.values.shape) for v in extras.values()]
    known += [(c.dims, components[c.name].shape[1:]) for c in problem.equations.state]
    shapes = {dim: size for dims, shape in known for dim, size in zip(dims, shape, strict=True)}
    for c in problem.equations.watched:
        shape = tuple(shapes[dim] for dim in c.dims)
        count = int(np.prod(shape))
        values = flat[:, at : at + count].reshape(len(states), *shape)
        components[c.name] = zero_within_error(values, problem.rtol) if c.bounds[0] == 0 else values
        found[c.name] = Variable(("time", *c.dims), components[c.name], c.meaning)
        at += count
    return found


def assemble(problem: Problem, recorder: Recorded, outcome: Outcome, statistics: Mapping[str, Any]) -> Trajectory:
    """Return the trajectory for recorded data: state, observables, hitting times, invariants and summary."""
    case, equations, initial = problem.case, problem.equations, problem.initial
    times, states = recorder.result()
    outcome = _confirmed(problem, outcome, times, states)
    components = {**equations.unpack(states), "time": times}
    state = {
        c.name: Variable(("time", *c.dims), components[c.name], f"{c.meaning} ({c.symbol})") for c in equations.state
    }
    if "loss" in problem.functions:
        # An overlap may exceed 1 by its error, and a loss that is a mean square would then be negative.
        losses = _along(problem, "loss", np.clip(states, *problem.bounds))
        components["loss"] = zero_within_error(losses, problem.rtol)
        state["loss"] = Variable(("time",), components["loss"], "population loss L")
    told = equations.observables
    extras = {n: Variable(dims, v, meaning) for n, (dims, v, meaning) in told.constants(initial).items()}
    state |= _watched(problem, states, components, extras)
    observed = {n: Variable(dims, v, meaning) for n, (dims, v, meaning) in told.observe(initial, components).items()}
    dims = {c.name: c.dims for c in equations.state}
    hits = {name: problem.past.of(name, values) for name, values in recorder.hits.items()}
    for crossing in equations.crossings:
        values = hits[crossing.name]
        extras[crossing.name] = Variable(
            crossing.dims(dims[crossing.component]), values, f"{crossing.meaning}; {NOT_REACHED}"
        )
    if isinstance(equations.advance, Stepped):
        for name, (dimension, meaning) in equations.advance.names.items():
            if name not in hits:  # a stage without a clock
                continue
            extras[name] = Variable((dimension,), hits[name], f"{meaning}; {NOT_REACHED}")
    known = {**components, **{n: v.values for n, v in observed.items()}, **hits}
    summary = dict(told.summary(initial, known))
    if "loss" in components:
        critical = summary.get("critical_step")
        how = f"the critical step is {critical:.4g}" if critical is not None else "the state grows without bound"
        said = divergence(components["loss"], [components[c.name] for c in equations.state], how)
        summary |= {"diverged": said} if said else {}
    return Trajectory(
        time=times + problem.past.time,
        state={**state, **observed},
        extras=extras,
        clock=case.system.stage(case.stage).clock,
        origin=_origin(problem),
        outcome=outcome,
        statistics=statistics,
        summary=summary,
        invariants=told.invariants(initial, components),
    )


def _confirmed(problem: Problem, outcome: Outcome, times: np.ndarray, states: np.ndarray) -> Outcome:
    """Return the outcome of a run. A saved state that is not finite always is a failure."""
    good = np.isfinite(states).all(axis=1)
    if outcome.kind == "failed" or good.all():
        return outcome
    last = problem.clock(times[max(0, int(np.argmin(good)) - 1)])
    return Outcome("failed", last, f"the state is no longer finite; the last good state is at time {last:.6g}")


def _origin(problem: Problem) -> Origin:
    case = problem.case
    until = problem.clock(case.until)
    options = {"until": until, "rtol": problem.rtol, "atol": problem.atol, "backend": case.backend}
    if case.step is not None:
        options = {"until": until, "backend": case.backend, "solver": EULER, "step": case.step}
    device = "cpu"
    if case.backend == "jax":
        from odesim.machine.device import default

        device = default().platform
    return Origin.of(
        case.system,
        stage=case.stage,
        tier=case.tier,
        method="flow",
        parameters={name: plain(value) for name, value in _parameters(problem).items()},
        options=options,
        precision="float64",
        device=device,
        seed=case.seed,
    )


def _parameters(problem: Problem) -> dict[str, Any]:
    """Return the parameters of the start by name. Sizes may come from a file."""
    return values_of(problem.case.system.stage(problem.case.stage), problem.initial.parameters)
