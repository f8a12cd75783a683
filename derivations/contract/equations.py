"""The equations of a tier: their kernels, their compiled functions, and their method of integration."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from derivations.contract.layout import Layout
from derivations.contract.state import Component, Crossing, Initial, Labelled

Kind = Literal["ode", "hybrid", "recursion"]
"""The word for a method of integration in `odesim systems`."""


Role = Literal["flow", "loss", "flow_loss", "flow_priced", "watch", "march"]
"""Role of a compiled function: flow(t, y, *arguments) -> dy/dt (size,), loss(y, *arguments) -> number, flow_loss(t, y,
*arguments) -> both, flow_priced(t, y, priced, *arguments) -> both, with 0 for a costly loss that is not requested,
watch(y, *arguments) -> the `watched` observables (count,), march as in `Stepped`.
"""
HEADS: dict[Role, tuple[str, ...]] = {
    "flow": ("t", "y"), "loss": ("y",), "flow_loss": ("t", "y"), "flow_priced": ("t", "y", "priced"), "watch": ("y",),
    "march": ("y", "t0", "t1", "hits", "memory", "tolerances", "counts"),
}  # fmt: skip
"""Arguments before the run-time arguments, by role."""
BOTH: tuple[Role, ...] = ("flow_loss", "flow_priced")
"""The roles of functions that return a derivative and the loss."""


@dataclasses.dataclass(frozen=True)
class Kernel:
    """Scalar kernel: SymPy expressions of named inputs.

    `table` names the inputs that are rows of one array (the correlation functions).  `scalars` names the other inputs,
    in the order of the arguments of the compiled function.  `outputs` maps names to SymPy expressions.
    """

    table: tuple[str, ...]
    scalars: tuple[str, ...]
    outputs: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Written:
    """Function as source text, for code that is too long for expressions: scalar operations, or loops.

    `serves` is "both" for scalar operations, which also work for arrays, with `np` bound to the array library.  It is
    "loops" for code that is only for numba, and "arrays" for code that is only for an array library.
    """

    text: str
    serves: Literal["both", "loops", "arrays"] = "both"


@dataclasses.dataclass(frozen=True)
class Smooth:
    """Ordinary flow dy/dt = F(t, y; arguments), for any adaptive integrator.

    Attributes:
        between: Computation of a state between two accepted steps: "step", one shorter step, or "interpolant", the
            interpolant of the method.  Use the interpolant for costly right-hand sides, and for those with kinks,
            where a step is no more accurate.
        kinks: True if F has kinks.
        coupled: coupled(initial) returns integers (size,), equal for entries of the flat state that act on each other.
            Implicit methods use them as the structure of the Jacobian.
        cost: Cost of a whole run by an implicit method, in explicit steps; 0 if it is not known.
        rough: Relative accuracy of F itself, if F is a mean over samples.  It is the default tolerance of a run.
        clock: Name of the component that is the time on the clock of the run, with the rate 1, if F depends on time.
        ended: ended(initial) returns the reason why F is not defined beyond a state, or "" if it is not known.
        breaks: Times on that clock at which F jumps or has a kink.  The arguments are made for a state, and are valid
            up to the next of these times.

    >>> Smooth().kind, Smooth(between="interpolant").coupled
    ('ode', None)
    """

    between: Literal["step", "interpolant"] = "step"
    coupled: Callable[[Initial], Callable[[np.ndarray], np.ndarray]] | None = None
    rough: float = 0.0
    kinks: bool = False
    cost: float = 0.0
    clock: str = ""
    breaks: tuple[float, ...] = ()
    ended: Callable[[Initial], str] = lambda initial: ""
    kind: ClassVar[Kind] = "ode"


@dataclasses.dataclass(frozen=True)
class Independent:
    """Smooth flow of independent blocks of `size` numbers.  The solver "blocks" integrates each with its own steps.

    The blocks are the rows of the state (`Statement.rows`), and their Jacobian follows from the statement.  Other
    integrators integrate all blocks together.

    >>> Independent(3).kind
    'ode'
    """

    size: int
    kind: ClassVar[Kind] = "ode"


@dataclasses.dataclass(frozen=True)
class Recursion:
    """Map y -> y + h F(t, y; arguments), the population form of one training step.

    The map is not an approximation of a flow.  `step` names the parameter with h, the time between two steps (if it is
    "", h is 1).  A run is saved at whole steps and has no tolerances.  `clock`, `breaks` and `ended` have the same
    meaning as in `Smooth`, for F that depend on t.

    >>> Recursion("stride").kind
    'recursion'
    """

    step: str = ""
    clock: str = ""
    breaks: tuple[float, ...] = ()
    ended: Callable[[Initial], str] = lambda initial: ""
    kind: ClassVar[Kind] = "recursion"


@dataclasses.dataclass(frozen=True)
class Stepped:
    """Equations with their own stepping function `march`, because their right-hand side jumps.

    march(y, t0, t1, hits, memory, tolerances, counts, *arguments) -> status integrates the flat state y from t0 to t1
    in place.  Its arguments are:

    - hits (names, width): hitting times, infinite at first.  `march` writes the time at which each event of `names`
      first happens in each block.
    - memory: numbers that are kept from one call to the next.  The attribute `memory(initial)` is their count.
    - tolerances: (relative, absolute).
    - counts: (steps, rejected, evaluations, events).  `march` adds to these counters.

    A status of 0 means success.  Otherwise `reasons[status]` describes the failure.

    Attributes:
        names: A mapping from hitting times to (dimension, meaning).
        record: record(initial, memory) returns variables without a time axis, from the memory at the end of a run.
        reached: reached(initial, state) returns booleans (.., blocks) by name: True if the event has happened at the
            saved state (components with any leading axes).  SGD, which only knows its saved states, finds its hitting
            times by this function.
        map: The recursion whose steps `march` takes, if there is one.  Its loops are faster than general ones, for
            example because they skip an expert that does not change.

    >>> march = Stepped({}, 0, lambda initial: 0, {})
    >>> march.kind, dataclasses.replace(march, map=Recursion("stride")).kind
    ('hybrid', 'recursion')
    """

    names: Mapping[str, tuple[str, str]]
    width: int
    memory: Callable[[Initial], int]
    reasons: Mapping[int, str]
    record: Callable[[Initial, np.ndarray], Labelled] | None = None
    reached: Callable[[Initial, Mapping[str, np.ndarray]], Mapping[str, np.ndarray]] | None = None
    map: Recursion | None = None

    @property
    def kind(self) -> Kind:
        """ "recursion" if the steps are those of a map, else "hybrid"."""
        return "hybrid" if self.map is None else self.map.kind


Advance = Smooth | Independent | Recursion | Stepped
"""Methods of integration; `odesim.flow.solve` implements each."""


@dataclasses.dataclass(frozen=True)
class Tier:
    """Level of approximation: its name, its range of validity, and the terms that it neglects.

    >>> Tier("exact", "at every d", "nothing").name
    'exact'
    """

    name: str
    validity: str
    neglects: str


@dataclasses.dataclass(frozen=True)
class Code:
    """Functions of the equations, compiled by numba and written for an array library.

    Attributes:
        kernels: kernels() derives the exact SymPy expressions of the kernels, or returns their source text.
        structure: Everything that the kernels depend on.  Compiled code is reused for equal structures.
        loops: Python functions "module:function" around the kernels that numba compiles, in the order of use, and the
            constants that they read.
        roles: The function for each role: "flow", "loss", "watch" or "march".
        arrays: arrays(xp, kernels) returns functions by role, made of array operations (NumPy, JAX).  Such a function
            of one state may have an attribute `along`, the same function for many states (states, n), because a run
            has hundreds of saved states.
        takes: Class of the run-time arguments, a NamedTuple at the top level of a module.  Loops and array functions
            then take one object p, flow(t, y, p); code that calls them from outside unpacks it, flow(t, y, *p).
            Without `takes` functions have separate arguments, which is suitable for a few.
        statement: A function that makes a `Statement`.  All functions are then generated from it, and the other
            attributes are not used.

    >>> Code("line", dict, (), {}, lambda xp, kernels: {"flow": lambda t, y: -y}).arrays(None, {})["flow"](0.0, 2.0)
    -2.0
    """

    structure: str
    kernels: Callable[[], Mapping[str, Kernel | Written]] = dict
    loops: tuple[str, ...] = ()
    roles: Mapping[Role, str] = dataclasses.field(default_factory=dict)
    arrays: Callable[..., Mapping[str, Callable[..., Any]]] = dict
    takes: type[Any] | None = None
    statement: Callable[[], Any] | None = None


@dataclasses.dataclass(frozen=True)
class Observables:
    """Quantities that a run reports in addition to its state.

    Attributes:
        summary: summary(initial, trajectory) returns the numbers of the summary.
        constants: constants(initial) returns arrays without a time axis.
        observe: observe(initial, components) returns arrays that are saved with the state, as name -> (dims, array,
            meaning), with a leading time axis.  `components` also has "time".
        invariants: invariants(initial, state) returns measured values of quantities that the exact dynamics conserves
            or bounds.

    >>> told = Observables(summary=lambda initial, trajectory: {"last": float(trajectory["time"][-1])})
    >>> told.summary(None, {"time": np.array([0.0, 2.0])}), told.constants(None)
    ({'last': 2.0}, {})
    """

    summary: Callable[[Initial, Mapping[str, np.ndarray]], Mapping[str, Any]]
    constants: Callable[[Initial], Labelled] = lambda initial: {}
    observe: Callable[[Initial, Mapping[str, np.ndarray]], Labelled] = lambda initial, components: {}
    invariants: Callable[[Initial, Mapping[str, np.ndarray]], Mapping[str, float]] = lambda initial, state: {}


@dataclasses.dataclass(frozen=True)
class Equations:
    """One tier of the population dynamics of a stage: dy/dt = F(t, y; arguments) for a flat vector y.

    Attributes:
        about: The tier.
        code: Functions that are compiled.
        advance: Method of integration: a smooth flow, independent blocks, a recursion, or a stepping function.
        arguments: arguments(initial) returns the run-time numbers and arrays of the functions.  Integers are sizes.
        layout: Position of each component in y.
        begin: begin(initial) returns the components at time 0; by default those of the initial condition.
        state: Components that are saved: all of y, or some of it.
        admits: admits(initial) raises `UsageError` for an initial state that this tier does not support.
        crossings: Events whose first times are stored.
        watched: Observables that the role "watch" returns as one flat vector for every saved state.
        observables: Other reported quantities.
    """

    about: Tier
    advance: Advance
    code: Code
    state: tuple[Component, ...]
    layout: Layout
    arguments: Callable[[Initial], tuple[Any, ...]]
    observables: Observables
    crossings: tuple[Crossing, ...] = ()
    watched: tuple[Component, ...] = ()
    begin: Callable[[Initial], Mapping[str, Any]] = lambda initial: initial.state
    admits: Callable[[Initial], None] = lambda initial: None

    def start(self, initial: Initial) -> np.ndarray:
        """The flat state y (size,) at time 0."""
        return self.layout.pack(self.begin(initial))

    def unpack(self, y: Any) -> dict[str, np.ndarray]:
        """Return the components of flat states y (..., size); leading axes are kept."""
        return self.layout.unpack(y)
