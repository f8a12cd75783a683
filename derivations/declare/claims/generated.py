"""Claims that are generated for every declared model: its derivation against what contains none of it.

Every measurement takes a `twist`, a relative error put into what is judged: with it the same code is the control, and
must refute.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_measure, grid, once
from derivations.claim import Claim, Grid
from derivations.contract import Initial, System
from derivations.declare import sampled
from derivations.declare.declaration import Declaration
from derivations.declare.initial import enter
from derivations.declare.kernels import Kernels
from derivations.declare.rows import Rows
from derivations.declare.samples import Means, Place, Sampler
from derivations.declare.system import numbers, rows
from derivations.declare.tiers import settled
from derivations.laws import Agrees, Power, Vanishes
from derivations.vectors import root

SMALL = 40
"""The dimension of the random states at which right-hand sides are compared: overlaps of a tenth and more."""
SAMPLES, BLOCKS = 100_000, 40
STEP = 1e-5
STEPS, BATCHES = 8, (2, 8, 32, 128)
"""Steps of the two kinds of SGD whose laws are compared, and batches: the first at which no replica runs away."""
FINE, TIMES = 2**17, 4
"""Points, and randomisations of them, of the sampled flow that SGD is held against."""


def claims(system: System) -> tuple[Claim, ...]:
    """The generated claims that have a meaning for a declaration."""
    parameters = system.parameters()
    declared: Declaration = parameters.declaration
    tier, flow = settled(parameters), declared.limit == "flow"
    found = [_numba_jax(system), _integrators(system), _microscope(system)]
    if tier == "exact" and flow:
        found.append(_gradient(system))
    found.append(_drift(system))
    if not flow:
        found.append(_second(system))
    if tier in ("exact", "mixed"):
        found.append(_tiers(system))
    if parameters.d >= 2 and flow:
        found.append(_small_step(system) if tier == "exact" else _extrapolated(system))
    return tuple(found)


def _claim(
    system: System, id: str, statement: str, measure: Any, law: Any, sweep: Mapping[str, Grid | None], twist: float,
    rungs: tuple[int, ...],
) -> Claim:  # fmt: skip
    return Claim(
        id=id, statement=statement, source=system.source.at("generated"), measure=measure, law=law, sweep=sweep,
        control=break_measure(functools.partial(measure, twist=twist)), rungs=rungs,
    )  # fmt: skip


def start(kind: type, seed: int, **changed: Any) -> Initial:
    """A random state of the declared sizes with overlaps that can be seen."""
    parameters: Any = kind()
    at = rows(parameters)
    parameters = dataclasses.replace(parameters, d=max(SMALL, 2 * at.total), overlap=None, **changed)
    return enter(parameters, None, np.random.default_rng([seed, 11]))


def flat(found: Initial, state: Mapping[str, np.ndarray]) -> np.ndarray:
    """Components as one vector."""
    return rows(found.parameters).layout.pack(state)


# -- the right-hand side


def gradient(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> float:
    """Largest difference of the flow from minus the gradient of the loss by central differences, over its size."""
    found = start(lab.system.parameters, seed)
    functions, at = lab.functions(found, "exact"), rows(found.parameters)
    declared, S = at.declaration, at.students
    weights = root(at.gram({**found.constants, **found.state}))

    def loss(moved: np.ndarray) -> float:
        if declared.weights == "sphere":  # series are those of unit vectors
            moved = moved * (np.linalg.norm(weights, axis=1) / np.linalg.norm(moved, axis=1))[:, None]
        parts = at.components(moved @ moved.T)
        return functions.loss({**found.state, **{block.name: parts[block.name] for block in at.moving}})

    slope = np.zeros((S, weights.shape[1]))
    for index in np.ndindex(slope.shape):
        ends = []
        for sign in (1, -1):
            moved = weights.copy()
            moved[index] += sign * STEP
            ends.append(loss(moved))
        slope[index] = (ends[0] - ends[1]) / (2 * STEP)
    slope += found.parameters.decay * weights[:S] * (declared.weights != "sphere")
    motion = np.zeros_like(weights)
    motion[:S] = -moving(at)[:, None] * slope
    expected = at.components(motion @ weights.T + weights @ motion.T)
    derivative = functions.flow(found.state)
    size = max(float(np.abs(expected[block.name]).max()) for block in at.moving)
    return max(
        float(np.abs((1 + twist) * derivative[block.name] - expected[block.name]).max()) for block in at.moving
    ) / max(size, 1e-300)


def moving(at: Rows) -> np.ndarray:
    """1 for the student rows that are trained."""
    found = np.zeros(at.students)
    for number, group in enumerate(at.declaration.students):
        for slot in group.slots:
            found[at.of(number, slot)] = at.declaration.moves(group, slot)
    return found


def _gradient(system: System) -> Claim:
    text = "The flow is minus the gradient of its own loss, by central differences in weight space"
    return _claim(
        system, "gradient", text, gradient, Vanishes(1e-6, meaning="relative difference"), once({}, seeds=2), 1e-3, (2,)
    )


@functools.lru_cache(maxsize=4)
def blocks(kind: type, seed: int) -> list[Means]:
    """The means over blocks of independent samples at the state of a seed, by the derivative of every sample's loss."""
    initial = state(kind, seed)
    p = initial.parameters
    declared, at = p.declaration, rows(p)
    sampler = Sampler(declared, np, sampled.per_sample(declared))
    arguments = sampled.arguments(Kernels(), initial, 0)
    place = Place(*sampled.seen(initial, arguments), np.array(numbers(p)), p.noise, at.sizes)
    rng, size = np.random.default_rng([seed, 5]), SAMPLES // BLOCKS
    weights, made = np.full(size, 1.0 / size), []
    for _ in range(BLOCKS):
        points = rng.standard_normal((at.total + 1, size))
        made.append(sampler.means(place, points, weights))
    return made


@functools.lru_cache(maxsize=8)
def state(kind: type, seed: int) -> Initial:
    """The random state of a seed, of the model whose parameters are of this class."""
    return start(kind, seed)


def scores(values: np.ndarray, expected: np.ndarray) -> float:
    """The largest z-score of the means of blocks (blocks, ..)."""
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    seen = error > 1e-12 * max(float(np.abs(expected).max()), 1e-300)
    if not seen.any():
        return 0.0
    return float(np.abs((values.mean(axis=0) - expected)[seen] / error[seen]).max())


def pushed(made: list[Means], initial: Initial, second: bool) -> dict[str, np.ndarray]:
    """The motion of all overlaps in every block: by the drift, or (`second`) by the term of second order alone."""
    p = initial.parameters
    at, S = rows(p), rows(p).students
    gram, moves = at.gram({**initial.constants, **initial.state}), moving(rows(p))
    online, sphere = p.declaration.limit == "online", p.declaration.weights == "sphere"
    rate = p.step if online else 1.0
    found = []
    for means in made:
        if second:
            E = p.step**2 / p.batch * means.second * moves[:, None] * moves
            D = (
                -(0.5 * np.diagonal(E) / np.diagonal(gram)[:S])[:, None] * gram[:S]
                if sphere
                else np.zeros((S, len(gram)))
            )
        else:
            E = np.zeros((S, S))
            drift = means.drift + (0.0 if sphere else p.decay) * gram[:S]
            own = np.diagonal(drift) / np.diagonal(gram)[:S]
            D = -rate * moves[:, None] * (drift - own[:, None] * gram[:S] if sphere else drift)
        whole = np.zeros_like(gram)
        whole[:S] = D
        whole = whole + whole.T
        whole[:S, :S] += E
        found.append(at.components(whole))
    return {block.name: np.array([each[block.name] for each in found]) for block in at.moving}


def drift(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> float:
    """Largest z-score of the drift of the flow against the mean of one step over independent samples."""
    initial = state(lab.system.parameters, seed)
    quiet = quieted(initial)
    derivative = lab.functions(quiet).flow(quiet.state)
    made = pushed(blocks(lab.system.parameters, seed), initial, second=False)
    return max(scores(values, (1 + twist) * derivative[name]) for name, values in made.items())


def quieted(initial: Initial) -> Initial:
    """The same state with batches so large that the term of second order is gone."""
    return dataclasses.replace(initial, parameters=dataclasses.replace(initial.parameters, batch=10**12))


def second(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> float:
    """Largest z-score of the second-order term, eta^2 E[c c^T]/B and what keeps norms, against independent samples."""
    initial = state(lab.system.parameters, seed)
    with_, without = initial, quieted(initial)
    one, two = lab.functions(with_).flow(with_.state), lab.functions(without).flow(without.state)
    made = pushed(blocks(lab.system.parameters, seed), with_, second=True)
    return max(scores(values, (1 + twist) * (one[name] - two[name])) for name, values in made.items())


def _drift(system: System) -> Claim:
    text = "The drift is the mean of one step of SGD, by independent samples of the derivative of the loss"
    return _claim(system, "drift", text, drift, Agrees(), once({}, seeds=2), 0.5, (2, 6))


def _second(system: System) -> Claim:
    text = "The second-order term of the online limit is eta^2 E[c c^T]/B, by independent samples"
    return _claim(system, "second-order", text, second, Agrees(), once({}, seeds=2), 0.5, (2, 6))


def tiers(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> float:
    """Largest difference of the derivatives by tier exact (or mixed) and tier sampled, over the error of the latter."""
    initial = state(lab.system.parameters, seed)
    exact = flat(initial, lab.functions(initial, settled(initial.parameters)).flow(initial.state))
    mean, error = sampled.scatter(Kernels(), initial, initial.state)
    size = np.abs(exact).max()
    error = np.sqrt((error**2).mean()) / np.sqrt(sampled.RANDOMISATIONS)
    return float(np.sqrt((((1 + twist) * exact - mean) ** 2).mean()) / max(error, 1e-10 * size))


def _tiers(system: System) -> Claim:
    text = "Closed forms and means over random points give the same derivative within the error of the points"
    return _claim(system, "tiers", text, tiers, Agrees(meaning="difference over error"), once({}, seeds=2), 1.0, (2,))


# -- trajectories


def horizon(system: System) -> float:
    """A time in which the state moves by about a part of itself."""
    initial = state(system.parameters, 0)
    mean, _ = sampled.scatter(Kernels(), initial, initial.state)
    y = flat(initial, initial.state)
    return float(np.clip(0.3 * np.abs(y).max() / max(np.abs(mean).max(), 1e-12), 1e-3, 1e3))


def far(lab: Any, seed: int, twist: float, one: Mapping[str, Any], two: Mapping[str, Any]) -> float:
    """Largest difference of two flows from the same start, over the size of the state."""
    initial = state(lab.system.parameters, seed)
    until = horizon(lab.system)
    first = lab.integrate(seed=seed, until=until, start=initial, save_points=5, **one)
    other = lab.integrate(seed=seed, until=until * (1 + twist), start=initial, save_points=5, **two)
    names = [block.name for block in rows(initial.parameters).moving]
    size = max(float(np.abs(first[name]).max()) for name in names)
    return max(float(np.abs(first[name][-1] - other[name][-1]).max()) for name in names) / size


def numba_jax(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> float:
    """The loops of one back end against the array operations of the other."""
    return far(lab, seed, twist, {"backend": "numba", "rtol": 1e-8}, {"backend": "jax", "rtol": 1e-8})


def integrators(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> float:
    """DOP853 against an implicit method of other order."""
    return far(lab, seed, twist, {"solver": "DOP853", "rtol": 1e-9}, {"solver": "Radau", "rtol": 1e-9})


def _numba_jax(system: System) -> Claim:
    text = "Compiled loops and array operations follow the same trajectory"
    return _claim(system, "back-ends", text, numba_jax, Vanishes(rough(system, 1e-6)), once({}), 0.3, (3,))


def _integrators(system: System) -> Claim:
    text = "An explicit and an implicit integrator follow the same trajectory"
    return _claim(system, "integrators", text, integrators, Vanishes(rough(system, 1e-6)), once({}), 0.3, (4,))


def rough(system: System, tolerance: float) -> float:
    """The tolerance, or ten times that below which a sampled right-hand side is not known."""
    if settled(system.parameters()) == "exact":
        return tolerance
    return 10 * sampled.equations(system.parameters(), "sampled").advance.rough


def microscope(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> float:
    """Largest z-score between the overlaps of explicit and compressed SGD after a few steps: of means, and of ranks.

    A mean of heavy tails is that of its largest sample, and tells two laws apart no more; ranks do (Mann-Whitney).
    """
    runs = beside(lab, point, seed, twist)
    names = [block.name for block in rows(lab.system.parameters()).moving]
    worst = 0.0
    for name in names:
        one, two = (runs[method][name][:, -1] for method in ("explicit", "compressed"))
        spread = np.sqrt((one.var(0, ddof=1) + two.var(0, ddof=1)) / len(one))
        seen = spread > 1e-9
        if seen.any():
            worst = max(worst, float(np.abs((one.mean(0) - two.mean(0))[seen] / spread[seen]).max()))
            worst = max(worst, ranked(one[:, seen], two[:, seen]))
    return worst


def beside(lab: Any, point: Mapping[str, Any], seed: int, twist: float) -> dict[str, Any]:
    """Runs of both kinds, at a batch at which both end: noise of heavy tails, as that of w^2, carries others off."""
    for batch in BATCHES:
        try:
            return {
                method: trained(lab, method, point["step"] * factor, batch, STEPS, point["seeds"], seed)
                for method, factor in (("explicit", 1.0), ("compressed", 1 + twist))
            }
        except RuntimeError:  # the weights are no longer finite
            if batch == BATCHES[-1]:
                raise
    raise AssertionError


def ranked(one: np.ndarray, two: np.ndarray) -> float:
    """The largest z-score of the rank sums of two samples (n, ..), which is N(0, 1) where their laws are one."""
    n = len(one)
    order = np.concatenate([one, two]).argsort(axis=0).argsort(axis=0)
    off = order[:n].sum(0) - n * (2 * n - 1) / 2
    return float(np.abs(off).max() / np.sqrt(n * n * (2 * n + 1) / 12))


def trained(lab: Any, method: str, step: float, batch: int, steps: int, seeds: int, seed: int) -> Any:
    """SGD of some replicas from the declared start in a small dimension."""
    parameters = lab.system.parameters()
    d = max(SMALL, 2 * rows(parameters).total)
    online = parameters.declaration.limit == "online"
    more = {"step": step * d} if online else {}
    until = steps / d if online else steps * step
    return lab.simulate(
        method=method, step_size=step, batch=batch, seed=seed, until=until, seeds=seeds, save_points=2, d=d, **more
    )


def _microscope(system: System) -> Claim:
    text = "Training of weight vectors in d dimensions and of their Gram matrix have the same law"
    sweep = once({"step": small_step(system), "seeds": 200})
    return _claim(system, "microscope", text, microscope, Agrees(), sweep, 1.0, (8,))


def small_step(system: System) -> float:
    """The step of SGD at which some steps in a small dimension move the state."""
    parameters = system.parameters()
    d = max(SMALL, 2 * rows(parameters).total)
    return min(horizon(system) / STEPS, 1.0 / d)


def small_steps(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> float:
    """Distance of the mean of compressed SGD from the flow at the same time, as the step falls at fixed noise."""
    system = lab.system
    until, step = horizon(system) / 4, horizon(system) / 4 * point["step"]
    d = max(SMALL, 2 * rows(system.parameters()).total)
    run = lab.simulate(
        method="compressed", step_size=step, batch=point["batch"], seed=seed, until=until, seeds=8, save_points=2, d=d
    )
    flow = lab.integrate(seed=seed, until=until, save_points=2, d=d, rtol=1e-9)
    names = [block.name for block in rows(system.parameters()).moving]
    off = [(run[name][:, -1].mean(0) - flow[name][-1]).ravel() for name in names]
    moved = [(flow[name][-1] - flow[name][0]).ravel() for name in names]
    gone = float(np.sqrt((np.concatenate(moved) ** 2).mean()))
    return float(np.sqrt((np.concatenate(off) ** 2).mean())) / gone + twist


def _small_step(system: System) -> Claim:
    text = "SGD tends to the flow as its step falls: at large batch the distance is proportional to the step"
    steps = [{"step": 1 / k, "batch": 200_000} for k in (2, 4, 8, 16)]
    law = Power(1.0, over="step", margin=0.25, meaning="distance", toward="small", because="a quarter of the exponent")
    return _claim(system, "small-step", text, small_steps, law, {"quick": grid(*steps, seeds=5)}, 0.5, (7,))


def extrapolated(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> float:
    """Difference of compressed SGD, extrapolated to step 0, from the sampled flow, over the error of both.

    The error of a sampled flow is not known better than by the scatter of its randomisations, and no power of the step
    is seen below it.  From steps h and 2h follows 2 y(h) - y(2h), which is free of the first order in h.
    """
    system, until = lab.system, horizon(lab.system) / 4
    d, names = max(SMALL, 2 * rows(system.parameters()).total), [b.name for b in rows(system.parameters()).moving]
    asked = {"seed": seed, "until": until, "save_points": 2, "d": d}
    flows = [lab.integrate(points=FINE, sample_seed=1 + k, **asked) for k in range(TIMES)]
    found = []
    for factor in (1, 2):
        step = factor * until * point["step"]
        run = lab.simulate(method="compressed", step_size=step, batch=point["batch"], seeds=8, **asked)
        found.append(np.concatenate([run[name][:, -1].reshape(8, -1) for name in names], axis=1))
    ends, starts = (np.array([np.concatenate([f[n][k].ravel() for n in names]) for f in flows]) for k in (-1, 0))
    off = 2 * found[0].mean(0) - found[1].mean(0) - (starts.mean(0) + (1 + twist) * (ends - starts).mean(0))
    variance = (4 * found[0].var(0, ddof=1) + found[1].var(0, ddof=1)) / 8 + ends.var(0, ddof=1) / TIMES
    return float(np.sqrt((off**2).mean() / variance.mean()))


def _extrapolated(system: System) -> Claim:
    text = "SGD tends to the flow as its step falls: extrapolated to step 0 it agrees within the error of the points"
    law, sweep = Agrees(meaning="difference over error"), once({"step": 1 / 16, "batch": 200_000}, seeds=2)
    return _claim(system, "small-step", text, extrapolated, law, sweep, 1.0, (7,))
