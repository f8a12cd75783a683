"""Tier `exact` of a declared model as a statement: closed population dynamics of the Gram matrix of its vectors."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from derivations.contract import Equations, Initial, Observables, Recursion, Smooth, UsageError
from derivations.declare import (
    batches,
    episode_motion,
    episodes,
    giant,
    labels,
    losses,
    memory_equations,
    mixture,
    noise,
    parameter_class,
    population,
    schedule_equations,
    schedules,
    spectra,
    system,
    velocity_equations,
)
from derivations.declare.algebra import Algebra, entry_of
from derivations.declare.declaration import Declaration
from derivations.declare.initial import enter
from derivations.declare.kernels import shapes_of
from derivations.declare.motion import BATCH, STEP, STEPS, TRAINING, Motion
from derivations.declare.parameter_class import rows
from derivations.declare.population import validity
from derivations.declare.remembered import kernels
from derivations.declare.rows import Rows
from derivations.declare.schedules import TIME
from derivations.declare.summary import observe, summarise
from derivations.declare.unit_kernels import Kernels
from derivations.equations.tier import equations_of
from derivations.statement import Base, Example, Named, Statement, key_of, sp

STIFF = 300.0
"""Number of explicit steps that an implicit run on inputs with eigenvalues costs. With 128 blocks over five decades of
time 500 to 1,100 evaluations were observed; one step of DOP853 takes a dozen, and compilation takes some seconds.
"""


def numbers(symbols: Algebra, kernels: Kernels, initial: Initial) -> Mapping[str, Any]:
    """The constants of the statement in a run."""
    p = initial.parameters
    values: dict[str, Any] = {symbols.size(g).name: count for g, count in enumerate(symbols.rows.sizes)}
    values |= of_inputs(symbols, p)
    values |= episode_motion.numbers(p, _rewarded(symbols))
    start_parameters = schedules.begun(p)
    values |= {name: float(getattr(start_parameters, name)) for name in ("step", "decay")}
    giant_steps = symbols.declared.limit == "batch"
    values["batch"] = batches.over_dimension(p) if giant_steps else float(start_parameters.batch)
    values["noise"] = noise.deviation(p)
    values |= {
        name: float(getattr(start_parameters, name)) for name in (*symbols.declared.names, *symbols.declared.rate_names)
    }
    if symbols.declared.momentum is not None:
        values[symbols.declared.momentum.parameter] = float(getattr(p, symbols.declared.momentum.parameter))
    if symbols.declared.clocked:
        values |= schedules.switched(p, float(initial.state[TIME]))
    values[memory_equations.UNDEFINED.name] = float("nan")
    return {**values, **initial.constants, **kernels.numbers()}


def of_inputs(symbols: Algebra, parameters: Any) -> dict[str, Any]:
    """Return the constants of the inputs: eigenvalue and share of every eigenspace, and arrays of clusters; single ones
    as numbers.
    """
    blocks, law = spectra.blocks(parameters), mixture.mixture(parameters)
    if blocks is None or law is None:
        return {}
    values = law.eigenvalue if symbols.varied else law.eigenvalue[0]
    entries: dict[str, Any] = {"eigenvalue": _plain(values if symbols.space else values[..., 0])}
    if symbols.space:
        entries |= {"blocks": len(blocks.share), "share": blocks.share}
    if symbols.cluster:
        entries |= {"clusters": len(law.probability), "probability": law.probability}
    if symbols.mean is not None:
        entries["mean_weights"] = law.mean if symbols.cluster else law.mean[0]
    if law.label is not None:
        entries["label"] = _plain(law.label if symbols.cluster else law.label[0])
    return entries


def _plain(values: np.ndarray) -> Any:
    """Return an array, or the number in it."""
    return values if values.ndim else float(values)


def equations(parameters: Any) -> Equations:
    """Return the exact flow, or online limit. Raises `UsageError` with the reason if it has no closed form."""
    declared: Declaration = parameters.declaration
    require_exact(parameters)
    exact_statement = statement(parameters)
    if any(kernel.name.startswith("series") for kernel in exact_statement.kernels):
        population.require_unit(parameters)
    full_statement = dataclasses.replace(
        exact_statement,
        advance=_advance(parameters),
        crossings=population.crossings(declared, rows(parameters)),
        observables=Observables(
            observe=observe,
            constants=population.constants,
            invariants=population.invariants,
            summary=functools.partial(summarise, "exact"),
        ),
    )
    # The fingerprint prints all formulas (40 ms for a committee) and does not depend on the parts added here.
    vars(full_statement)["fingerprint"] = exact_statement.fingerprint
    return equations_of(full_statement)


def _advance(parameters: Any) -> Smooth | Recursion:
    """Return the method of integration: an integrator, or giant steps."""
    declared: Declaration = parameters.declaration
    if declared.limit == "batch":
        return giant.advance(parameters)
    return Smooth(
        coupled=population.coupled(declared, parameter_class.numbers(parameters)),
        kinks=schedules.kinked(parameters),
        cost=0.0 if declared.inputs is None else STIFF,
        **population.clock(parameters),
    )


def require_exact(parameters: Any) -> None:
    """Raise `UsageError` with the reason and another tier if a model has no closed form."""
    closed_forms = kernels(parameters.declaration, parameter_class.numbers(parameters))
    missing = (
        closed_forms.closed
        or population.open_here(parameters)
        or (closed_forms.second if parameters.declaration.noisy else "")
    )
    if missing:
        other_tier = (
            "sampled"
            if closed_forms.closed or population.open_here(parameters)
            else "mixed (exact drift, second-order term sampled) or sampled"
        )
        raise UsageError(f"tier exact: {missing}; use -p tier={other_tier}")


def statement(parameters: Any, second: bool = True) -> Statement:
    """The exact flow, or online limit, of a declaration; without its second-order term if this is added elsewhere.

    Raises `Open` where it has no closed form.
    """
    changing = tuple(schedule.name for schedule in schedules.active(parameters))
    return cached_statement(
        episodes.in_force(parameters), rows(parameters), parameter_class.numbers(parameters), second, changing
    )


@functools.lru_cache(maxsize=32)
def cached_statement(
    declared: Declaration, layout: Rows, values: tuple[float, ...], second: bool, changing: tuple[str, ...] = ()
) -> Statement:
    """Return the statement of a declaration at given sizes and user's numbers; `changing` is that of `Motion`."""
    symbols = Algebra(declared, layout, shapes_of(declared, values), dict(zip(declared.names, values, strict=True)))
    motion = Motion(symbols, second, changing)
    definitions = motion.definitions()
    means = motion.kernels
    return Statement(
        name=declared.name,
        title=declared.title,
        source=declared.source,
        clock=system.clock(declared),
        validity=validity(declared),
        neglects=population.neglected(declared),
        indices=[],
        tier="exact",
        sizes={symbols.size(g).name: count for g, count in enumerate(layout.sizes)}
        | ({"blocks": layout.spaces} if symbols.space else {})
        | ({"clusters": symbols.clusters} if symbols.cluster else {})
        | ({episode_motion.COUNT.name: declared.episode.samples} if declared.episode is not None else {}),
        state=tuple(state(symbols)),
        constants=(*constants(symbols, changing), *means.named),
        bind=functools.partial(numbers, symbols, means),
        definitions=(*means.made, *definitions),
        equations=tuple(motion.equations()),
        loss=losses.loss(motion),
        watched=tuple(losses.watched(motion, error, heads) for error, heads in labels.errors(declared)),
        terms=means.terms,
        **({"kind": "recursion", "step": sp.Integer(1)} if declared.limit == "batch" else {}),
    )


def _rewarded(symbols: Algebra) -> bool:
    """Return True if vectors have a rule with a reward."""
    return any(episode_motion.reward(symbols, vector) is not None for vector in symbols.vectors)


def state(symbols: Algebra) -> Iterator[Named]:
    """Return the overlaps that change, then readouts and biases."""
    unbounded = (-np.inf, np.inf)
    for block, (first, second) in zip(symbols.rows.moving, symbols.moving(), strict=True):
        i, j = symbols.index("i", first.group), symbols.index("j", second.group)
        yield Named(symbols.overlap(first, i, second, j), block.meaning, dims=block.dims, bounds=unbounded,
                    symbol=block.name, symmetric=block.symmetric)  # fmt: skip
    for number, word, _ in symbols.rows.scalars:
        group = symbols.declared.students[number]
        text = f"readout {word}_i" if word in group.trained_readouts else f"number {word} of unit i"
        target = symbols.number(number, word, symbols.index("i", number))
        yield Named(target, f"{text}, of the student", dims=(group.named("unit"),), bounds=unbounded, symbol=word)
    yield from velocity_equations.state(symbols)
    for memory in symbols.declared.memories:
        yield Named(sp.Symbol(memory.name), "memory", bounds=unbounded, symbol=memory.name)
    if symbols.declared.clocked:
        yield Named(schedule_equations.CLOCK, population.CLOCK, bounds=unbounded, symbol=TIME)


def constants(symbols: Algebra, changing: tuple[str, ...] = ()) -> Iterator[Named]:
    """Return sizes, overlaps of the teachers, constant readouts, and the numbers of training and of the user.

    Numbers that are `changing` in time are replaced by their switches.
    """
    for g in symbols.groups:
        yield Named(symbols.size(g), "units of a group")
    yield from of_law(symbols)
    yield from episode_motion.constants(symbols.declared, _rewarded(symbols))
    names = [block.name for block in symbols.rows.fixed]
    for n, vector in enumerate(symbols.vectors):
        for other_vector in symbols.vectors[n:]:
            block = symbols.rows.block_of(vector, other_vector)
            if block.name in names:
                i, j = symbols.index("i", vector.group), symbols.index("j", other_vector.group)
                yield Named(symbols.overlap(vector, i, other_vector, j), block.meaning)
    for g, group in enumerate(symbols.declared.groups):
        i = symbols.index("i", g)
        for readout in (readout for number, readout in symbols.declared.fixed_readouts() if number == g):
            side = "student" if symbols.is_student(g) else "teacher"
            yield Named(Base(symbols.declared.readout_name(g, readout.head))[i], f"readout of {side} unit i")
        for word in symbols.declared.constants(group) if symbols.is_student(g) else ():
            yield Named(Base(group.named(word))[i], f"number {word} of student unit i")
    training = (*TRAINING, *steps(symbols.declared))
    training += velocity_equations.constants(symbols.declared)
    training += tuple(Named(sp.Symbol(name), "factor of the step") for name in symbols.declared.rate_names)
    yield from (named for named in training if key_of(named.target) not in changing)
    if any(schedule.seen for schedule in symbols.declared.schedules if schedule.name in changing):
        yield Named(memory_equations.UNDEFINED, "no number, marked by a value below 0")
    for schedule in symbols.declared.schedules:
        if schedule.name in changing:
            yield from (Named(sp.Symbol(switch.name), "1 from a time on, 0 before") for switch in schedule.switches)
    names = (name for name in symbols.declared.names if name not in changing)
    yield from (Named(sp.Symbol(name), "number of the model") for name in names)


def steps(declared: Declaration) -> tuple[Named, ...]:
    """Return the constants of limits with finite steps, in addition to those of a flow."""
    if declared.limit == "batch":
        share = (Named(BATCH, "samples of one step over the dimension, B/d"),)
        return (Named(STEP, "step eta of the weights"), *(share if declared.noisy else ()))
    if declared.limit == "flow":
        return ()
    if declared.episode is None:
        return STEPS
    return tuple(
        dataclasses.replace(constant, meaning="episodes of one step") if constant.target == BATCH else constant
        for constant in STEPS
    )


def of_law(symbols: Algebra) -> Iterator[Named]:
    """Return the constants of the distribution of the inputs; empty for isotropic ones."""
    if symbols.space:
        yield Named(symbols.space[0].upper + 1, "blocks of the inputs")
        yield Named(symbols.share, "share of a block in the coordinates of the inputs")
    if symbols.declared.inputs is not None:
        yield Named(symbols.eigenvalue, "eigenvalue of a block: variance of the inputs in it")
    if symbols.cluster:
        yield Named(symbols.cluster[0].upper + 1, "clusters of the inputs")
        yield Named(entry_of("probability", *symbols.cluster), "probability of a cluster")
    if symbols.mean is not None:
        yield Named(symbols.size(symbols.mean.group), "named means of the inputs")
        weight = symbols.mean_weight(symbols.index("k", symbols.mean.group))
        yield Named(weight, "weight of a named mean in the mean of a cluster")
    if symbols.labels is not None:
        yield Named(symbols.labels, "label of the samples of a cluster")


def printed(parameters: Any) -> Statement:
    """Return the statement with the values of a start as defaults of its constants, and an example that integrates from
    it.

    Raises `UsageError` where the model has no closed form.
    """
    initial, declared = enter(parameters, None, np.random.default_rng(0)), parameters.declaration
    if declared.clocked:
        initial = dataclasses.replace(initial, state={**initial.state, TIME: np.array(declared.begin)})
    make_statement = equations(parameters).code.statement
    assert make_statement is not None
    printable = make_statement()
    values = printable.numbers(initial)
    printable = schedule_equations.in_time(printable, declared.schedules)
    constants = tuple(dataclasses.replace(c, default=_literal(values[key_of(c.target)])) for c in printable.constants)
    start = ", ".join(f'"{key_of(v.target)}": {_literal(initial.state[key_of(v.target)])}' for v in printable.state)
    watched = [key_of(variable.target) for variable in printable.state if variable.target != schedule_equations.CLOCK][
        -1
    ]
    example = Example(f"start = {{{start}}}", watched, 0.9, float(declared.until - declared.begin))
    return dataclasses.replace(printable, constants=constants, example=example)


def _literal(value: Any) -> Any:
    """A number, or an array as NumPy code."""
    if np.ndim(value) == 0 and np.isnan(float(value)):
        return "np.nan"
    return f"np.array({value.tolist()!r})" if np.ndim(value) else value
