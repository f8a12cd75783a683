"""Tiers `sampled` and `mixed`: means over fixed randomised points, without closed forms.

The points are the same along a run, so that the right-hand side is one smooth function. Its error is a bias, which
independent randomisations measure. `mixed` has the exact drift and samples only E[c c^T]. Polynomial rules have their
tier `exact` here, over the nodes of `quadrature`.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from derivations.contract import Code, Equations, Initial, Observables, Smooth, Tier, UsageError, Written
from derivations.declare import (
    arrays,
    classification,
    exact,
    giant,
    giant_arrays,
    labels,
    population,
    quadrature,
    remembered,
    schedules,
    velocity_arrays,
)
from derivations.declare.declaration import Declaration
from derivations.declare.gates import Open
from derivations.declare.kinks import kinked
from derivations.declare.noise import in_force
from derivations.declare.parameter_class import rows
from derivations.declare.points import degree, grid, points
from derivations.declare.remembered import identity
from derivations.declare.samples import Place, Sampler
from derivations.declare.schedules import Schedule
from derivations.declare.summary import observe, summarise
from derivations.declare.values_in_time import ValuesInTime
from derivations.equations.functions import array_functions
from derivations.special import special
from derivations.statement import Statement

RANDOMISATIONS = 4
FEWER = 4
"""Ratio of the numbers of points that estimates the common bias of all randomisations, of order 1/points."""
WIDER = 1.5
"""Factor of the scatter of a few randomisations, which is 20 to 30 per cent too small at ten fields."""
NOT_ON_A_GRID = ("exp", "sqrt", "log")
"""Functions that grow too fast for a grid, or have a branch point."""
FEWEST = 256
"""Smallest number of points of a grid in two variables; with fewer, random points are more accurate."""
KINKED, SMOOTH = 1e-4, 1e-6
"""Relative tolerances. A kink makes the right-hand side jump by 1/N as the state changes; both are below the error."""


def equations(parameters: Any, tier: str) -> Equations:
    """Return the equations with sampled means. Raises `UsageError` for `mixed` if the model has no such terms."""
    declared: Declaration = in_force(parameters)
    statement = _drift(parameters) if tier == "mixed" else None
    rough = kinked(declared)
    tolerance = KINKED if rough else SMOOTH
    return Equations(
        about=Tier(
            name=tier,
            validity=population.validity(declared),
            neglects=neglected(parameters, tier),
        ),
        advance=giant.advance(parameters)
        if declared.limit == "batch"
        else Smooth(
            between="interpolant",
            rough=0.0 if tier == "exact" or _on_grid(parameters) else tolerance,
            kinks=rough or schedules.kinked(parameters),
            **population.clock(parameters),
        ),
        code=Code(
            structure=f"declared_{tier}_{_identity(parameters, statement)}",
            kernels=functools.partial(texts, declared),
            loops=(),
            roles={"flow": "flow", "loss": "loss", "watch": "watch"},
            arrays=functools.partial(build, declared, statement, schedules.active(parameters)),
        ),
        state=population.state(parameters),
        layout=rows(parameters).layout,
        arguments=functools.partial(arguments, statement, tier=tier),
        admits=functools.partial(_require_signal, statement, tier),
        crossings=population.crossings(declared, rows(parameters)),
        watched=(
            *(error for error, _ in labels.errors(declared)),
            *([classification.CLASSIFICATION] if declared.classifies() else []),
        ),
        observables=Observables(
            observe=observe,
            constants=population.constants,
            invariants=population.invariants,
            summary=functools.partial(told, tier, statement),
        ),
    )


def neglected(parameters: Any, tier: str) -> str:
    """Return the terms that a tier neglects."""
    if tier != "exact":
        return f"the error of means over {parameters.points} points, which the summary measures"
    return population.neglected(parameters.declaration)


def _on_grid(parameters: Any) -> bool:
    """Return True for means over one or two variables of analytic functions without exponential growth.

    The error of a grid is then rounding, for two fields of standard deviations up to about 3 at 16384 points.
    """
    declared: Declaration = in_force(parameters)
    variables = rows(parameters).fields + _noisy(parameters) * len(declared.force)
    signed = declared.labelled() and (bool(declared.teachers) or _noisy(parameters))
    trees = [*(group.unit for group in declared.groups), *([declared.own_loss] if declared.own_loss else [])]
    trees += [rule.tree for rule in declared.rules] + [prediction.tree for prediction in declared.predicted]
    trees += [declared.law.tree] if declared.law is not None else []
    plain = not signed and not kinked(declared) and not any(tree.calls(*NOT_ON_A_GRID) for tree in trees)
    return plain and variables <= 2 and parameters.points >= FEWEST


def _noisy(parameters: Any) -> bool:
    """Return True if labels have noise at some time."""
    return parameters.noise is None or parameters.noise > 0


def nodes(parameters: Any, seed: int | None = None, fewer: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return normal points (fields + heads in use, N), the last rows for label noise, and weights (N,).

    The number of points is divided by `fewer`, and the same moments are exact.
    """
    p, fields, heads = parameters, rows(parameters).fields, len(parameters.declaration.force)
    seed, count = p.sample_seed if seed is None else seed, p.points // fewer
    if not _on_grid(p):
        return points(fields + heads, count, seed, degree(fields + heads, p.points))
    if _noisy(p):
        return grid(fields + heads, count, seed)
    x, weights = grid(fields, count, seed)
    return np.vstack([x, np.zeros((heads, x.shape[1]))]), weights


def _drift(parameters: Any) -> Statement:
    """Return the drift of an online limit whose second-order term is sampled. Raises `UsageError` if there is none."""
    try:
        if message := population.open_here(parameters):
            raise Open(message)
        statement = exact.statement(parameters, second=False)
    except Open as reason:
        raise UsageError(f"tier mixed: {reason}; use -p tier=sampled") from None
    declared = parameters.declaration
    if not declared.noisy:
        limit_text = "a flow" if declared.limit == "flow" else "descent on the mean over all samples"
        raise UsageError(f"tier mixed: {limit_text} has no second-order term to sample; use -p tier=exact")
    if declared.limit == "batch" and not giant.mixes(declared):
        message = "a giant step on the sphere, or with memories, would mix closed and sampled terms"
        raise UsageError(f"tier mixed: {message}; use -p tier=sampled")
    return statement


def texts(declared: Declaration) -> dict[str, Written]:
    """The per-sample functions."""
    return {"samples": Written(remembered.per_sample(declared), "arrays")}


def _identity(parameters: Any, statement: Statement | None) -> str:
    """Return declaration, drift and the active schedules, for the key of compiled code."""
    declared = in_force(parameters)
    key = identity(declared) if statement is None else f"{identity(declared)}_{statement.fingerprint}"
    key += f"_{declared.labels}" if declared.labels else ""
    changing = [(schedule.name, schedule.text) for schedule in schedules.active(parameters)]
    key += f"_velocities_{declared.trained}" if declared.inertial else ""
    if not declared.rates and not declared.clocked:
        return key
    names = [group.name for group in declared.groups]
    return f"{key}_{declared.rates}_{names}_{changing}_{bool(declared.schedules)}_{declared.memories or ''}"


def build(
    declared: Declaration, statement: Statement | None, changing: tuple[Schedule, ...], xp: Any,
    functions: Mapping[str, Any],
) -> dict[str, Callable[..., Any]]:  # fmt: skip
    """`flow`, `loss` and `watch` of (y, .., points, weights, sizes), with the drift of a statement if one is given.

    For `changing` values the arguments have the switches.
    """
    sampler, in_time = Sampler(declared, xp, functions), ValuesInTime(xp, declared, changing)
    backend = "jax" if "jax" in xp.__name__ else "numpy"
    drift = None if statement is None else array_functions(statement, backend)["flow"]

    def seen(y: Any, args: tuple[Any, ...]) -> tuple[arrays.Arguments, arrays.View, list[Place], tuple[Any, Any]]:
        a, sample, _ = split(declared, args)
        view = arrays.seen(xp, y, a)
        a = in_time.arguments(y, a, view)
        taught = a.label if declared.by_cluster else [None] * len(view.covariance)
        steps = None if declared.look is None else a.rates[-1] * a.moves
        common = (view.square, view.w, view.bias, a.numbers, a.rates[3], a.sizes, steps)
        places = [Place(*law, *common) for law in zip(view.covariance, view.centre, taught, strict=True)]
        return a, view, places, sample

    def flow(t: Any, y: Any, *args: Any) -> Any:
        a, view, places, sample = seen(y, args)
        odds = None if declared.episode is None else _over_clusters(a, [sampler.odds(site, *sample) for site in places])
        averages = [sampler.means(site._replace(odds=odds), *sample) for site in places]
        isotropic = declared.inputs is None
        pull = averages[0].drift if isotropic else arrays.by_spaces(view, averages, a)
        second = averages[0].second if isotropic else arrays.squares(averages, a)
        scalars = [_over_clusters(a, values) for values in zip(*(means.scalars for means in averages), strict=True)]
        remembered = in_time.rates_of_memories(y, split(declared, args)[0], view, averages, pull)
        if declared.limit == "batch":
            closed = 0.0 if drift is None else drift(t, y, *split(declared, args)[2])
            means = averages[0]._replace(scalars=scalars)
            a = giant_arrays.settled(in_time, y, (a, split(declared, args)[0]), view, remembered)
            return closed + giant_arrays.change(xp, declared, y, a, view, means, remembered, drift is not None)
        if declared.timed:
            closed = 0.0 if drift is None else drift(t, y, *split(declared, args)[2])
            return closed + velocity_arrays.packed(xp, declared, y, a, view, averages[0], remembered, drift is not None)
        D, E = arrays.moved(xp, declared.weights, view, pull, second, a)
        if drift is None:
            return arrays.packed(
                xp, declared, arrays.widened(xp, declared.weights, view, D, E, a), E, scalars, a, remembered
            )
        # The drift has closed forms, and only E[c c] is sampled.
        D = arrays.widened(xp, declared.weights, view, xp.zeros_like(D), E, a)
        gain = arrays.packed(xp, declared, D, E, [0.0 * value for value in scalars], a, remembered, clock=0.0)
        return drift(t, y, *split(declared, args)[2]) + gain

    def losses(y: Any, *args: Any) -> tuple[Any, ...]:
        a, view, places, sample = seen(y, args)
        by_place = zip(*(sampler.losses(site, *sample) for site in places), strict=True)
        loss, wrong, *errors = (_over_clusters(a, values) for values in by_place)
        if declared.classifies() and classification.has_closed_form(declared, a.sizes):
            wrong = classification.closed_form(declared, xp, view, a)
        return loss, *errors, *([wrong] if declared.classifies() else [])

    cached_losses = _once(losses) if xp is np else losses

    def loss(y: Any, *args: Any) -> Any:
        return cached_losses(y, *args)[0]

    def watch(y: Any, *args: Any) -> Any:
        return xp.stack(cached_losses(y, *args)[1:])

    return {"flow": flow, "watch": watch, "loss": loss}


def _over_clusters(a: arrays.Arguments, values: Sequence[Any]) -> Any:
    """The mean over the clusters of the inputs of a value in each of them."""
    return values[0] if len(values) == 1 else sum(a.probability[c] * value for c, value in enumerate(values))


def _once(losses: Callable[..., Any]) -> Callable[..., Any]:
    """Cache the losses of the saved states of a run, because they are requested one after the other."""
    losses_by_state: dict[bytes, Any] = {}
    last: list[Any] = []

    def asked(y: np.ndarray, *args: Any) -> Any:
        if len(last) != len(args) or any(old is not new for old, new in zip(last, args, strict=True)):
            losses_by_state.clear()
            last[:] = args
        key = y.tobytes()
        if key in losses_by_state:
            return losses_by_state.pop(key)
        losses_by_state[key] = losses(y, *args)
        return losses_by_state[key]

    return asked


def split(declared: Declaration, args: tuple[Any, ...]) -> tuple[arrays.Arguments, tuple[Any, Any], tuple[Any, ...]]:
    """The state's arguments, the points with their weights, and the constants of the statement of the drift."""
    n, end = arrays.OWN, arrays.OWN + 2 + len(declared.groups)
    return arrays.Arguments._make((*args[:n], tuple(args[n + 2 : end]))), (args[n], args[n + 1]), args[end:]


def arguments(
    statement: Statement | None, initial: Initial, seed: int | None = None, fewer: int = 1, tier: str = "sampled"
) -> tuple[Any, ...]:  # fmt: skip
    """Return layout, points and weights, sizes of the groups, and the arguments of a statement.

    The number of points is divided by `fewer`, and the same moments are exact; tier exact has a grid.
    """
    p = initial.parameters
    flow_arguments = population.arguments(initial)
    exactly = quadrature.nodes(p) if tier == "exact" else None
    x, weights = nodes(p, seed, fewer) if exactly is None else exactly
    drift = () if statement is None else statement.arguments(initial)
    return (*flow_arguments[: arrays.OWN], x, weights, *flow_arguments[arrays.OWN :], *drift)


@functools.lru_cache(maxsize=8)
def per_sample(declared: Declaration) -> dict[str, Callable[..., Any]]:
    """The functions of every sample (units, logits, loss) in NumPy."""
    space: dict[str, Any] = {"np": np, "sqrt": np.sqrt, "exp": np.exp, "cos": np.cos, "sin": np.sin}
    space |= {"erf": lambda x: special(np).erf(x), "erfc": lambda x: special(np).erfc(x)}
    for written in texts(declared).values():
        exec(written.text, space)
    return {name: value for name, value in space.items() if callable(value)}


def in_numpy(parameters: Any, statement: Statement | None) -> dict[str, Callable[..., Any]]:
    """Return the functions of the sampled flow in NumPy, for the estimate of its error."""
    declared, changing = in_force(parameters), schedules.active(parameters)
    key = (declared, changing, None if statement is None else statement.fingerprint)
    if key not in _built:
        _built[key] = build(declared, statement, changing, np, per_sample(declared))
    return _built[key]


_built: dict[tuple[Any, ...], dict[str, Callable[..., Any]]] = {}


def seen(initial: Initial, args: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Gram matrix, readouts (teachers' negative) and the numbers of units, by the arguments of the flow."""
    p = initial.parameters
    view = arrays.seen(np, rows(p).layout.pack(initial.state), split(p.declaration, args)[0])
    return view.G, view.w, view.bias


def scatter(
    statement: Statement | None, initial: Initial, state: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivative at a state by independent randomisations: its mean and the error of one of them.

    The error is the sum of their spread and of their common bias, which a comparison with fewer points shows.
    """
    p, start = initial.parameters, dataclasses.replace(initial, state=state)
    y = rows(p).layout.pack(state)
    flow = in_numpy(p, statement)["flow"]
    return _scatter(lambda seed, fewer: flow(0.0, y, *arguments(statement, start, seed, fewer)), initial)


def relative_error(statement: Statement | None, initial: Initial, state: Mapping[str, np.ndarray]) -> float | None:
    """Return the root mean square error of the derivative over its size, without the clock; None for 0."""
    mean, error = (without_clock(initial, values) for values in scatter(statement, initial, state))
    size = float(np.sqrt((mean**2).mean()))
    return float(np.sqrt((error**2).mean())) / size if size > 0 else None


def without_clock(initial: Initial, values: np.ndarray) -> np.ndarray:
    """Return a flat state or its derivative without the time, its last entry, which has the rate 1."""
    return values[:-1] if initial.parameters.declaration.clocked else values


def _scatter(of_points: Callable[[int, int], np.ndarray], initial: Initial) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and error of a function of the points of a seed, for two numbers of points."""
    p = initial.parameters
    seeds = [1 + p.sample_seed + k for k in range(RANDOMISATIONS)]
    values = np.array([of_points(seed, 1) for seed in seeds])
    mean, error = values.mean(0), values.std(0, ddof=1)
    variables = rows(p).fields + len(p.declaration.force)
    moments = math.comb(variables + degree(variables, p.points), variables)
    if p.points >= 2 * FEWER * moments:  # otherwise fewer points do not have as many exact moments
        bias = (np.mean([of_points(seed, FEWER) for seed in seeds], axis=0) - mean) / (FEWER - 1)
        error = np.hypot(error, bias)
    return mean, WIDER * error


def _require_signal(statement: Statement | None, tier: str, initial: Initial) -> None:
    """Raise an error for a start at which the points cannot determine the direction of the students."""
    if tier == "exact":
        return
    layout = rows(initial.parameters)
    mean, error = scatter(statement, initial, initial.state)
    drift, noise = layout.layout.unpack(mean), layout.layout.unpack(error)
    blocks = [block.name for block in (layout.velocities or layout.moving) if block.columns.start >= layout.students]
    if not blocks:  # labels of clusters without means change only norms and readouts
        return
    size = np.sqrt(np.mean([np.mean(drift[name] ** 2) for name in blocks]))
    unsure = np.sqrt(np.mean([np.mean(noise[name] ** 2) for name in blocks]))
    if unsure > 1e-12 and size <= unsure:
        raise UsageError(
            f"tier sampled: at the start the drift of the overlaps with the teacher ({size:.2g}) does not exceed the "
            f"error of means over {initial.parameters.points} points ({unsure:.2g}), so a run would follow noise: use "
            "tier exact or leading if the model has it, compressed SGD, more points, or a start closer to the teacher"
        )


def told(tier: str, statement: Statement | None, initial: Initial, run: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the summary, with the error of the sampled derivative at the start, half-way and at the end."""
    summary = summarise(tier, initial, run)
    if tier == "exact":
        return summary
    names = [part.name for part in rows(initial.parameters).layout.parts]
    states = [{name: run[name][k] for name in names} for k in (0, len(run["time"]) // 2, -1)]
    summary["points"] = initial.parameters.points
    summary["sampling_error"] = [relative_error(statement, initial, state) for state in states]
    if "classification_error" in run:
        summary["classification_sampling_error"] = classification_scatter(statement, initial, states[-1])
    return summary


def classification_scatter(statement: Statement | None, initial: Initial, state: Mapping[str, np.ndarray]) -> float:
    """Return the sampling error of `classification_error` at a state; 0 for a closed form."""
    p, start = initial.parameters, dataclasses.replace(initial, state=state)
    y = rows(p).layout.pack(state)
    watch = in_numpy(p, statement)["watch"]
    return float(_scatter(lambda seed, fewer: watch(y, *arguments(statement, start, seed, fewer))[-1:], initial)[1][0])
