"""The vocabulary of the project: what a system, a stage, a set of equations and a trajectory's outcome are.

Types only.  What acts on them lives in `odesim`; what they are filled with lives in one folder per system.
Nothing here imports SymPy, JAX, numba or `hermite`, so that a `model` stays independent of every derivation.
"""

import dataclasses
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

Kind = Literal["ode", "hybrid", "recursion"]
Labelled = Mapping[str, tuple[tuple[str, ...], Any, str]]
"""Arrays with their dimensions and meaning: name -> (dims, values, meaning)."""


@dataclasses.dataclass(frozen=True)
class Source:
    """Where a statement comes from: a paper, and the place in it."""

    authors: str
    title: str
    venue: str
    year: int
    bibtex: str = ""
    place: str = ""

    def at(self, place: str) -> "Source":
        """The same paper, at `place` (theorem and equation number)."""
        return dataclasses.replace(self, place=place)

    def __str__(self) -> str:
        where = f", {self.place}" if self.place else ""
        return f"{self.authors} {self.year}{where}"


def parameter(
    default: Any,
    meaning: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    choices: Sequence[str] | None = None,
) -> Any:
    """Declare one field of a system's parameter class: default, domain and meaning.

    `minimum` and `maximum` are included in the domain, `above` is excluded; `choices` lists the words allowed.
    """
    metadata = {
        "meaning": meaning,
        "minimum": minimum,
        "maximum": maximum,
        "above": above,
        "choices": tuple(choices) if choices else None,
    }
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Component:
    """One variable of the state: its name, named dimensions, bounds, symbol in the paper, and meaning."""

    name: str
    dims: tuple[str, ...]
    bounds: tuple[float, float] = (-1.0, 1.0)
    symbol: str = ""
    meaning: str = ""


@dataclasses.dataclass(frozen=True)
class Crossing:
    """A hitting time to locate by root-finding: when each entry of `component` first passes `threshold`.

    `direction` is +1 (upwards) or -1 (downwards); with `absolute` the size of the entry counts.  With `terminal`
    the run stops at the first crossing, and `reason` is the sentence stored as the outcome.
    """

    name: str
    component: str
    threshold: float
    direction: int = 1
    absolute: bool = False
    terminal: bool = False
    reason: str = ""
    meaning: str = ""


@dataclasses.dataclass(frozen=True)
class Initial:
    """Where a stage starts: the components of its state, and the numbers that stay constant during it.

    `parameters` are those of the run after sizes were read from a file; `scale` is the typical size of the
    small entries (1/sqrt(d) for random directions), from which the absolute tolerance is taken.
    """

    parameters: Any
    state: Mapping[str, np.ndarray]
    constants: Mapping[str, np.ndarray]
    scale: float


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A scalar kernel: exact SymPy outputs in named inputs.

    `table` names the inputs that arrive together as rows of one array (the correlation functions), `scalars` the
    others, in the order of the compiled function's arguments; `outputs` maps names to SymPy expressions.
    """

    table: tuple[str, ...]
    scalars: tuple[str, ...]
    outputs: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Blocks:
    """A flat state made of independent blocks of `size` numbers, each of which is integrated with steps of its own.

    Among the loops of the equations are then `block_start(k, *arguments) -> work` (what block k needs, made once),
    `block_slope(y, out, work, k, *arguments)` and `block_jacobian(y, J, work, k, *arguments)`, which fill the
    derivative (size,) of a block and its Jacobian (size, size).
    """

    size: int


@dataclasses.dataclass(frozen=True)
class March:
    """Equations whose right-hand side jumps: they bring steps of their own among their loops.

    `march(y, t0, t1, hits, memory, tolerances, counts, *arguments) -> status` takes the flat state y from t0 to t1 in
    place.  `hits` (names, width) receives the times, infinite before, at which what `names` says first happens in each
    block; `memory(initial)` numbers survive from one call to the next; `tolerances` = (relative, absolute);
    `counts` = (steps, rejected, evaluations, events) is added to.  Status 0 is good, `reasons[status]` says what
    went wrong otherwise.  `names` maps each hitting time to (dimension, meaning).  A recursion has `step`, the time of
    one of its steps: it is saved at whole steps, and tolerances have no meaning for it.  `record(initial, memory)` are
    variables without a time axis made of the memory at the end of a run.  `reached(initial, state)` says of saved
    states (components with any leading axes) where what each of `names` says has happened: name -> booleans (..,
    blocks).  Training at random, whose path has nothing between two saved states, finds its hitting times by it.
    """

    names: Mapping[str, tuple[str, str]]
    width: int
    memory: Callable[[Initial], int]
    reasons: Mapping[int, str]
    step: float | None = None
    record: Callable[[Initial, np.ndarray], Labelled] | None = None
    reached: Callable[[Initial, Mapping[str, np.ndarray]], Mapping[str, np.ndarray]] | None = None


@dataclasses.dataclass(frozen=True)
class Coupled:
    """Where the Jacobian of a flow is large: between entries of the state that have the same label.

    `labels(initial)` makes whole numbers (size,) of a flat state.  `flow` is "module:inner_flow", a function
    inner_flow(y, *arguments) -> dy/dt that numba compiles after the loops of the equations, for `arguments(initial)`.
    """

    labels: Callable[[Initial], Callable[[np.ndarray], np.ndarray]]
    flow: str
    arguments: Callable[[Initial], tuple[Any, ...]]


@dataclasses.dataclass(frozen=True)
class Equations:
    """One tier of the population dynamics of a stage: dy/dt = F(t, y; arguments) for a flat vector y.

    A tier of kind "recursion" is the map y -> y + h F(t, y; arguments) for a step h of the clock, which is the
    population
    form of one training step and not an approximation of the differential equation.

    `kernels()` derives the small exact SymPy expressions; `structure` names everything they depend on, so that
    compiled code can be reused.  `loops` lists plain Python functions "module:function" that numba compiles
    around the kernels, in order of use, with `flow(t, y, *arguments)` last but for `loss(y, *arguments)` where
    there is one; `around` lists functions that call these and stay interpreted; `arrays(xp, kernels)` builds the
    same functions from array operations (NumPy, JAX).  `arguments(initial)` are the run-time numbers and arrays
    (integers are sizes), `start(initial)` is y at time 0 and `unpack` splits y, with any leading axes, into components.
    `observe(initial, components)` gives what is saved beside the state (name -> (dims, array, meaning)), with a leading
    time axis, from the components and "time"; `constants(initial)` what has none; `invariants(initial, state)` what the
    exact dynamics conserves or
    bounds, as measured numbers; `summary(initial, trajectory)` the headline numbers.  `watched` are observables that
    `watch(y, *arguments)`, compiled beside `flow`, gives as one flat vector at every saved state.  `dense` says how a
    state between two accepted steps is found: by one shorter "step", or by the method's own "interpolant", for
    right-hand sides that are costly and have kinks, where a step is no better.  With `coupled` implicit methods
    know where the flow is stiff.  With `march` the loops step themselves.
    """

    tier: str
    kind: Kind
    structure: str
    state: tuple[Component, ...]
    kernels: Callable[[], Mapping[str, Kernel]]
    loops: tuple[str, ...]
    arrays: Callable[..., Mapping[str, Callable[..., Any]]]
    arguments: Callable[[Initial], tuple[Any, ...]]
    start: Callable[[Initial], np.ndarray]
    unpack: Callable[[np.ndarray], dict[str, np.ndarray]]
    observe: Callable[[Initial, Mapping[str, np.ndarray]], Labelled]
    constants: Callable[[Initial], Labelled]
    invariants: Callable[[Initial, Mapping[str, np.ndarray]], Mapping[str, float]]
    crossings: tuple[Crossing, ...]
    summary: Callable[[Initial, Mapping[str, np.ndarray]], Mapping[str, Any]]
    validity: str
    neglects: str
    around: tuple[str, ...] = ()
    blocks: Blocks | None = None
    watched: tuple[Component, ...] = ()
    dense: Literal["step", "interpolant"] = "step"
    coupled: Coupled | None = None
    march: March | None = None


@dataclasses.dataclass(frozen=True)
class Model:
    """The microscopic truth of a stage, once for both simulators: weight vectors, samples, one training step.

    A model has `trained` vectors and a fixed `frame` (teachers, means); inputs are x = sum_k mean_k frame_k + z
    with z ~ N(0, I_d).  `module` holds its functions, written with `np` and elementwise operations, products,
    sums, `where`, `sort` and `argmax` only, so that one source is traced by JAX (with `np` bound to its array
    library) and compiled by numba.  Arrays carry the vector index first and, for a batch, the sample index last:

        coefficients(fields, labels, *numbers) -> (trained, ...)   one scalar per sample and trained vector; the
            gradient of vector k is the batch mean of coefficient_k x.  fields = inner products of x with
            [trained, frame] (trained + frame, ...)
        update(vv, vg, gg, step_size, *numbers) -> (a, b)   new vector_k = a_k vector_k + b_k gradient_k, from the
            squared norms of vectors and gradients and their inner products, each (trained,)
        draw(uniform, normal, *numbers) -> labels, mean(labels, *numbers) -> (frame, ...)   where `noise` is not (0, 0):
            labels made of `noise` = (uniforms, normals) per sample, and the mean of x in the frame

    With `normalised` the fields are those of the trained vectors divided by their lengths.  `helpers` lists further
    functions of the module that these call.  `sizes(parameters)` = (trained, frame);
    `numbers(parameters, gram)` are the run-time arguments (integers are sizes or switches), and after them come the
    arrays of the initial condition that `constants` names (second-layer weights, biases);
    `place(initial)` is the Gram matrix of the raw vectors at the start, `weights(arrays)` their rows where a
    file gives them (absent, or None, where a file gives overlaps); `observe(parameters, gram)` reads the components off
    raw Gram matrices (..., n, n).
    """

    module: str
    helpers: tuple[str, ...]
    normalised: bool
    noise: tuple[int, int]
    sizes: Callable[[Any], tuple[int, int]]
    numbers: Callable[[Any, np.ndarray], tuple[Any, ...]]
    place: Callable[[Initial], np.ndarray]
    weights: Callable[[Mapping[str, np.ndarray]], np.ndarray | None] | None
    observe: Callable[[Any, np.ndarray], Labelled]
    constants: tuple[str, ...] = ()

    def bound(self, initial: Initial, gram: np.ndarray) -> tuple[Any, ...]:
        """All run-time arguments of the functions for one initial condition: `numbers`, then the constants."""
        fixed = tuple(np.asarray(initial.constants[name], float) for name in self.constants)
        return (*self.numbers(initial.parameters, gram), *fixed)


@dataclasses.dataclass(frozen=True)
class MapResult:
    """What a stage without a clock leaves: the state after it, what it did, and its headline numbers.

    `kept` says which entries of a dimension are left, by their places before (dimension -> places), so that what was
    found before the stage can be told of what is left.  `ended` is a sentence where no stage can follow.
    """

    initial: Initial
    extras: Labelled
    summary: Mapping[str, Any]
    kept: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    ended: str = ""


@dataclasses.dataclass(frozen=True)
class Stage:
    """A phase of a system: `dynamics` has a clock; a `map` is one step (a gate step, pruning, a regression).

    The three strings "module:attribute" are imported on first use: `equations(parameters, tier) -> Equations`,
    `model` (one, or a function parameters -> model), and `enter(parameters, previous, rng) -> Initial`, where
    `previous` holds the arrays of an initial file or the components and constants at the end of an earlier stage.
    `horizon(parameters)` is the default end time.  A map has `apply(initial, rng) -> MapResult` instead of a clock.
    One step of training moves the clock by `tick(parameters, step_size)`, and `stepped(parameters, step_size,
    explicit)` are the parameters that a step size implies.  Where the equations are a recursion, `stride` names the
    parameter with the time between two of its steps.
    `statement(parameters, tier)` (again "module:attribute") states the equations of a tier, or what a map does, for
    `odesim derive`.
    """

    name: str
    kind: Literal["dynamics", "map"]
    tiers: tuple[str, ...]
    equations: str
    enter: str
    clock: str
    horizon: Callable[[Any], float]
    model: str = ""
    apply: str = ""
    meaning: str = ""
    stride: str = ""
    statement: str = ""
    tick: Callable[[Any, float], float] = lambda parameters, step_size: step_size
    stepped: Callable[[Any, float, frozenset[str]], Any] = lambda parameters, step_size, explicit: parameters

    def truth(self, parameters: Any) -> Any:
        """The model that `model` names, or that the function so named gives for the parameters."""
        found = load(self.model)
        return found(parameters) if callable(found) else found


@dataclasses.dataclass(frozen=True)
class System:
    """A paper's system: parameters with domains, presets, stages and claims.

    Found by scanning the folders of `derivations`, or by a reference (`derivations.system`).

    `check(parameters, drawn)` raises `UsageError` for parameters that do not fit together (`drawn` is False when
    the initial condition comes from a file); `read_initial(arrays, parameters, explicit) -> parameters` checks
    the arrays of such a file and takes the sizes from them; `plot(dataset) -> {name: figure}` draws a run.
    `course(parameters)` names the stages of a complete run in order (all of them unless given), and `begin(parameters)`
    the stage of a run that names none (the first with a clock unless given).  `predict` names
    predict(parameters, arrays, inputs) -> Labelled, what the network answers on given samples: `arrays` are the
    variables of a run at one time, and the dimension of the samples is called "sample".  `numbered` names a mapping of
    the paper's numbered statements to the reason why one has no claim (empty where one has).  `figures` is the name of
    a package of figures (`odesim.show.figures`) where a system brings its own.
    """

    name: str
    title: str
    source: Source
    parameters: type
    presets: Mapping[str, Mapping[str, Any]]
    stages: tuple[Stage, ...]
    check: Callable[..., None]
    read_initial: str
    plot: str = ""
    claims: str = ""
    course: Callable[[Any], tuple[str, ...]] | None = None
    begin: Callable[[Any], str] | None = None
    predict: str = ""
    numbered: str = ""
    figures: str = ""

    def stage(self, name: str) -> Stage:
        """The stage called `name`; `KeyError` lists those there are."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise KeyError(f"{self.name} has no stage {name!r}; it has {', '.join(s.name for s in self.stages)}")


class UsageError(ValueError):
    """The caller's mistake: what was expected, what came, and what to try.  Exit code 2."""


def load(reference: str) -> Any:
    """Import what a "module:attribute" string names."""
    module, _, attribute = reference.partition(":")
    return getattr(importlib.import_module(module), attribute)
