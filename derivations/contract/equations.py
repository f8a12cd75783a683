"""The equations of a tier: their kernels, their compiled functions, and how they advance."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from derivations.contract.layout import Layout
from derivations.contract.state import Component, Crossing, Initial, Labelled

Kind = Literal["ode", "hybrid", "recursion"]
"""The word for an advance in `odesim systems`."""


Role = Literal["flow", "loss", "flow_loss", "flow_priced", "watch", "march"]
"""What a compiled function is for: flow(t, y, *arguments) -> dy/dt (size,), loss(y, *arguments) -> number,
flow_loss(t, y, *arguments) -> both, flow_priced(t, y, priced, *arguments) -> both, or 0 for a loss that is costly and
that nobody asks for, watch(y, *arguments) -> the `watched` observables (count,), march as in `Stepped`.
"""
HEADS: dict[Role, tuple[str, ...]] = {
    "flow": ("t", "y"), "loss": ("y",), "flow_loss": ("t", "y"), "flow_priced": ("t", "y", "priced"), "watch": ("y",),
    "march": ("y", "t0", "t1", "hits", "memory", "tolerances", "counts"),
}  # fmt: skip
"""What comes before the run-time arguments."""
BOTH: tuple[Role, ...] = ("flow_loss", "flow_priced")
"""The roles of functions that return a derivative and the loss."""


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
class Written:
    """A function as text, for what is too long for expressions: straight-line code in scalar operations, or loops.

    Scalar operations serve arrays as well, with `np` bound to the array library; "loops" are for numba alone, "arrays"
    for an array library alone.
    """

    text: str
    serves: Literal["both", "loops", "arrays"] = "both"


@dataclasses.dataclass(frozen=True)
class Smooth:
    """An ordinary flow dy/dt = F(t, y; arguments), for any adaptive integrator.

    `between` says how a state between two accepted steps is found: by one shorter "step", or by the method's own
    "interpolant", for right-hand sides that are costly, as are those with `kinks`, where a step is no better.  By
    `coupled` implicit methods know where the Jacobian is large: coupled(initial) makes of a flat state whole numbers
    (size,), the same for entries that feel each other; `cost` is what a whole run by them costs, in explicit steps,
    where the equations know it (0: they do not).  Below the relative tolerance `rough` the right-hand side itself
    is not known (it is a mean over samples): a run that names no tolerance takes that one.

    Where F depends on time, the component `clock` of the state is the time on the clock of the run, with the rate 1.
    `ended(initial)` says why F is not defined beyond a state; "" where it does not know.
    At the times `breaks` on that clock F jumps or bends.  The arguments belong to the state from which they are made,
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
    """A smooth flow of independent blocks of `size` numbers, each of which is integrated with steps of its own.

    The blocks are the rows of the state (`Statement.rows`); their Jacobian follows from the statement.  Other
    integrators take all blocks together.

    >>> Independent(3).kind
    'ode'
    """

    size: int
    kind: ClassVar[Kind] = "ode"


@dataclasses.dataclass(frozen=True)
class Recursion:
    """The map y -> y + h F(t, y; arguments), the population form of one training step and no approximation of a flow.

    `step` names the parameter with h, the time between two steps ("": 1): a run is saved at whole steps,
    and tolerances have no meaning for it.  `clock`, `breaks` and `ended` are those of `Smooth`, for F that depend on t.

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
    """Equations that bring steps of their own among their loops, because their right-hand side jumps.

    `march(y, t0, t1, hits, memory, tolerances, counts, *arguments) -> status` takes the flat state y from t0 to t1 in
    place.  `hits` (names, width) receives the times, infinite before, at which what `names` says first happens in each
    block; `memory(initial)` numbers survive from one call to the next; `tolerances` = (relative, absolute);
    `counts` = (steps, rejected, evaluations, events) is added to.  Status 0 is good, `reasons[status]` says what
    went wrong otherwise.  `names` maps each hitting time to (dimension, meaning).  `record(initial, memory)` are
    variables without a time axis made of the memory at the end of a run.  `reached(initial, state)` says of saved
    states (components with any leading axes) where what each of `names` says has happened: name -> booleans
    (.., blocks); training at random, whose path has nothing between two saved states, finds its hitting times by it.
    With `map` the steps are those of that recursion, in loops that are worth more than a general one: where an expert
    rests, say, it is left out.

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
        """ "recursion" where the steps are those of a map, else "hybrid"."""
        return "hybrid" if self.map is None else self.map.kind


Advance = Smooth | Independent | Recursion | Stepped
"""How a state goes forward: `odesim.flow.solve` has one way for each."""


@dataclasses.dataclass(frozen=True)
class Tier:
    """The name of a level of approximation, when it holds (`validity`), and what it leaves out (`neglects`).

    >>> Tier("exact", "at every d", "nothing").name
    'exact'
    """

    name: str
    validity: str
    neglects: str


@dataclasses.dataclass(frozen=True)
class Code:
    """What is derived and compiled, for numba and for an array library.

    `kernels()` derives the small exact SymPy expressions (or writes text), and `structure` names everything they depend
    on, so that compiled code can be reused.  `loops` lists plain Python functions "module:function" that numba compiles
    around the kernels, in order of use, and constants that they read.  `roles` says which of these functions is the
    "flow", "loss", "watch" or "march"; `arrays(xp, kernels)` builds functions by role from array operations (NumPy,
    JAX).  One of a state that NumPy evaluates may have an attribute `along`, the same of many states (states, n): those
    of a run are saved by the hundred.

    `takes` is the class of the run-time arguments, a NamedTuple at the head of a module: loops and functions of arrays
    take one of it, flow(t, y, p), and what calls them from outside unpacks it, flow(t, y, *p).  Without it they take
    the arguments one by one, which is for a few.

    With `statement`, which makes a `Statement`, all functions are generated from that and nothing else is given.

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
    """What is told of a run beside its state.

    `summary(initial, trajectory)` are the headline numbers; `constants(initial)` what has no time axis;
    `observe(initial, components)` what is saved beside the state (name -> (dims, array, meaning)), with a leading time
    axis, from the components and "time"; `invariants(initial, state)` what the exact dynamics conserves or bounds, as
    measured numbers.

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

    `about` names the tier, `code` is what is compiled, and `advance` says how the state goes forward: as a smooth flow,
    in independent blocks, as a recursion, or by steps that the loops bring along.  `arguments(initial)` are the
    run-time numbers and arrays of the functions (integers are sizes).

    The state: `layout` says where each component lies in y, and `begin(initial)` are the components at time 0, by
    default those of the initial condition; `state` are the components that are saved, all of y or some of it.
    `admits(initial)` raises `UsageError` for a start that this tier cannot follow.

    `crossings` are the events whose first times are stored; `watched` are observables that the role "watch" gives as
    one flat vector at every saved state, and `observables` what else is told of a run.
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
        """The components of flat states y (..., size), leading axes kept."""
        return self.layout.unpack(y)
