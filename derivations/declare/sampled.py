"""Tiers `sampled` and `mixed`: means over fixed randomised points, where there is no closed form.

The points stay the same along a run, so that the right-hand side is one smooth function and the error a bias of it,
which independent randomisations measure.  `mixed` has the exact drift and samples E[c c^T] alone.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.contract import Code, Equations, Initial, Observables, Smooth, Tier, UsageError, Written
from derivations.declare import arrays, classification, population, remembered
from derivations.declare.declaration import Declaration
from derivations.declare.kernels import Kernels
from derivations.declare.lane_frame import FIXED
from derivations.declare.points import points
from derivations.declare.remembered import identity, kernels
from derivations.declare.samples import Place, Sampler
from derivations.declare.summary import observe, summarise
from derivations.declare.system import numbers, rows
from derivations.special import special

RANDOMISATIONS = 4
WIDER = 1.5
"""The scatter of a few randomisations is 20 to 30 per cent too small at ten fields."""
KINKED, SMOOTH = 1e-4, 1e-6
"""Relative tolerances: a kink makes the right-hand side jump by 1/N as the state moves; both are below the error."""


def equations(parameters: Any, tier: str) -> Equations:
    """The equations over sampled means.  Raises `UsageError` for `mixed` where there is nothing to mix."""
    declared: Declaration = parameters.declaration
    found = kernels(declared, numbers(parameters)) if tier == "mixed" else Kernels()
    if tier == "mixed" and (found.closed or declared.limit != "online"):
        why = found.closed or "a flow has no second-order term to sample"
        raise UsageError(f"tier mixed: {why}; take -p tier={'sampled' if found.closed else 'exact'}")
    kinks = [c.word for g in declared.groups for c in g.unit.calls("relu", "abs", "step", "sign", "top1")]
    kinks += [c.word for c in declared.own_loss.calls("relu", "abs", "step", "sign")] if declared.own_loss else []
    kinked = bool(kinks) or declared.loss == "hinge"
    return Equations(
        about=Tier(
            name=tier,
            validity=population.validity(declared),
            neglects=f"the error of means over {parameters.points} points, which the summary measures",
        ),
        advance=Smooth(between="interpolant", rough=KINKED if kinked else SMOOTH, kinks=kinked),
        code=Code(
            structure=f"declared_{tier}_{identity(declared, found)}",
            kernels=functools.partial(texts, declared, found),
            loops=(),
            roles={"flow": "flow", "loss": "loss", "watch": "watch"},
            arrays=functools.partial(build, declared, found),
        ),
        state=population.state(parameters),
        layout=rows(parameters).layout,
        arguments=functools.partial(arguments, found),
        admits=functools.partial(_require_signal, found),
        crossings=population.crossings(declared, rows(parameters)),
        watched=(population.ERROR, *([classification.CLASSIFICATION] if declared.labelled() else [])),
        observables=Observables(
            observe=observe,
            constants=population.constants,
            invariants=population.invariants,
            summary=functools.partial(told, tier, found),
        ),
    )


def texts(declared: Declaration, found: Kernels) -> dict[str, Written]:
    """The per-sample functions, and those of the exact drift where tiers are mixed."""
    whole = {"samples": Written(remembered.per_sample(declared), "arrays")}
    return {**(population.written(found) if found.texts else {}), **whole}


def build(
    declared: Declaration, found: Kernels, xp: Any, functions: Mapping[str, Any]
) -> dict[str, Callable[..., Any]]:
    """`flow`, `loss` and `watch` of (y, .., points, weights): the arguments of the exact flow, and the points."""
    form, sampler = arrays.Form(declared, found, xp, functions), Sampler(declared, xp, functions)

    def seen(y: Any, given: tuple[Any, ...]) -> tuple[arrays.Arguments, arrays.View, Place, tuple[Any, Any]]:
        a, sample = split(given)
        view = arrays.raw(xp, y, a)
        return a, view, Place(view.G, view.w, view.bias, a.numbers, a.rates[4], a.sizes), sample

    def flow(t: Any, y: Any, *given: Any) -> Any:
        a, view, at, sample = seen(y, given)
        m = sampler.means(at, *sample)
        D, E = arrays.moved(xp, declared.weights, view, m.drift, m.second, a)
        scalars = dict(enumerate(m.scalars))
        if found.texts:  # the drift has closed forms, and E[c c] alone is sampled
            exact = form.view(y, a)
            C, scalars = form.drift(exact, a)
            D, _ = arrays.motion(xp, declared.weights, exact, C, xp.zeros_like(m.second), a)
        return form.packed(arrays.widened(xp, declared.weights, view, D, E, a), E, scalars, a)

    def losses(y: Any, *given: Any) -> tuple[Any, Any, Any]:
        a, view, at, sample = seen(y, given)
        loss, error, wrong = sampler.losses(at, *sample)
        if declared.labelled() and classification.has_closed_form(declared, a.sizes):
            wrong = classification.arccosine(declared, xp, view, a.sizes)
        return loss, error, wrong

    both = _once(losses) if xp is np else losses

    def loss(y: Any, *given: Any) -> Any:
        return both(y, *given)[0]

    def watch(y: Any, *given: Any) -> Any:
        found = both(y, *given)
        return xp.stack(found[1:] if declared.labelled() else found[1:2])

    return {"flow": flow, "watch": watch, "loss": loss}


def _once(losses: Callable[..., Any]) -> Callable[..., Any]:
    """Losses of the saved states of a run, of each of which one is asked for, and later the other."""
    known: dict[bytes, Any] = {}
    last: list[Any] = []

    def asked(y: np.ndarray, *given: Any) -> Any:
        if len(last) != len(given) or any(one is not two for one, two in zip(last, given, strict=True)):
            known.clear()
            last[:] = given
        key = y.tobytes()
        if key in known:
            return known.pop(key)
        known[key] = losses(y, *given)
        return known[key]

    return asked


def split(given: tuple[Any, ...]) -> tuple[arrays.Arguments, tuple[Any, Any]]:
    """The arguments of the exact flow, and the points with their weights, which stand before the sizes."""
    n = FIXED
    return arrays.Arguments._make((*given[:n], tuple(given[n + 2 :]))), (given[n], given[n + 1])


def arguments(found: Kernels, initial: Initial, seed: int | None = None) -> tuple[Any, ...]:
    """Those of the exact flow, with the points and their weights before the sizes."""
    p = initial.parameters
    exact = population.arguments(found, initial)
    x, weights = points(rows(p).total + 1, p.points, p.sample_seed if seed is None else seed)
    return (*exact[:FIXED], x, weights, *exact[FIXED:])


@functools.lru_cache(maxsize=8)
def per_sample(declared: Declaration, found: Kernels = Kernels()) -> dict[str, Callable[..., Any]]:
    """The functions of every sample (units, logits, loss) in NumPy, and those of the exact drift."""
    space: dict[str, Any] = {"np": np, "sqrt": np.sqrt, "exp": np.exp, "cos": np.cos, "sin": np.sin}
    space["erf"] = lambda x: special(np).erf(x)
    for written in texts(declared, found).values():
        if written.serves != "loops":
            exec(written.text, space)
    return {name: value for name, value in space.items() if callable(value)}


@functools.lru_cache(maxsize=8)
def right_hand_side(declared: Declaration, found: Kernels) -> Callable[..., Any]:
    """The sampled flow in NumPy, for what is told of its error."""
    return build(declared, found, np, per_sample(declared, found))["flow"]


def seen(initial: Initial, given: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gram matrix, readouts (teachers' negative) and the units' own numbers, by the arguments of the flow."""
    view = arrays.raw(np, rows(initial.parameters).layout.pack(initial.state), split(given)[0])
    return view.G, view.w, view.bias


def scatter(found: Kernels, initial: Initial, state: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The derivative at a state by independent randomisations: its mean and the error of one of them, widened."""
    p = initial.parameters
    y = rows(p).layout.pack(state)
    flow = right_hand_side(p.declaration, found)
    first = 1 + p.sample_seed
    each = np.array([flow(0.0, y, *arguments(found, initial, first + k)) for k in range(RANDOMISATIONS)])
    return each.mean(0), WIDER * each.std(0, ddof=1)


def _require_signal(found: Kernels, initial: Initial) -> None:
    """Refuse a start from which the points cannot tell where the students move: a weak recovery is not followed."""
    at = rows(initial.parameters)
    mean, error = scatter(found, initial, initial.state)
    drift, noise = at.layout.unpack(mean), at.layout.unpack(error)
    blocks = [block.name for block in at.moving if block.columns.start >= at.students]
    size = np.sqrt(np.mean([np.mean(drift[name] ** 2) for name in blocks]))
    unsure = np.sqrt(np.mean([np.mean(noise[name] ** 2) for name in blocks]))
    if unsure > 1e-12 and size <= unsure:
        raise UsageError(
            f"tier sampled: at the start the drift of the overlaps with the teacher ({size:.2g}) does not exceed the "
            f"error of means over {initial.parameters.points} points ({unsure:.2g}), so that a run would follow noise; "
            "take tier exact or leading where they exist, compressed SGD, more points, or start closer to the teacher"
        )


def told(tier: str, found: Kernels, initial: Initial, run: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The summary, with the error of the sampled derivative at the start, half-way and at the end."""
    summary = summarise(tier, initial, run)
    names = [part.name for part in rows(initial.parameters).layout.parts]
    errors = []
    for k in (0, len(run["time"]) // 2, -1):
        mean, error = scatter(found, initial, {name: run[name][k] for name in names})
        size = float(np.sqrt((mean**2).mean()))
        errors.append(float(np.sqrt((error**2).mean())) / size if size > 0 else None)
    summary |= {"points": initial.parameters.points, "sampling_error": errors}
    if "classification_error" in run:
        end = {name: run[name][-1] for name in names}
        summary["classification_sampling_error"] = classification_scatter(found, initial, end)
    return summary


def classification_scatter(found: Kernels, initial: Initial, state: Mapping[str, np.ndarray]) -> float:
    """The sampling error of `classification_error` at a state, of independent randomisations; 0 of a closed form."""
    p = initial.parameters
    y = rows(p).layout.pack(state)
    watch = build(p.declaration, found, np, per_sample(p.declaration, found))["watch"]
    first = 1 + p.sample_seed
    each = [watch(y, *arguments(found, initial, first + k))[1] for k in range(RANDOMISATIONS)]
    return WIDER * float(np.std(each, ddof=1))
