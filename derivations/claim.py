"""The vocabulary of a claim: the statement, what measures it, the law that judges it, and the verdict's parts.

Types only, as in `derivations.contract`; the laws in use are in `derivations.laws`, the laboratory in
`odesim.evidence.laboratory`.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from derivations.contract import Initial, Source, System

Answer = Literal["confirmed", "refuted", "consistent", "inconclusive"]
"""`consistent`: a bound that the measurement obeys with room to spare, so that it was not put to the test."""
ANSWERS: tuple[Answer, ...] = ("confirmed", "consistent", "refuted", "inconclusive")
HOLDS: tuple[Answer, ...] = ("confirmed", "consistent")
Effort = Literal["quick", "full", "gpu"]
Samples = Sequence[tuple[Mapping[str, Any], int, Any]]
"""What a claim measured: (point of the sweep, seed, measurement), the measurement a number or a mapping."""


@dataclasses.dataclass(frozen=True)
class Sensitivity:
    """A deviation at which an answer that holds would have been lost, stated for the design of the measurement.

    `size` depends on the law, the number of runs and their scatter, not on how near to the claim this sample happened
    to fall: a sample of which the claim is wrong by `size` is confirmed (or found consistent) in at most one of ten
    repetitions.  It is `None` where no deviation has this property.  `kind` says of what ("exponent", "one case",
    "share of runs", ...), `sentence` the same for a reader, `part` the part of the law.
    """

    kind: str
    size: float | None
    sentence: str
    part: str = ""


@dataclasses.dataclass(frozen=True)
class Judgement:
    """What a law says of the samples: the answer, the estimate with its interval, and one quotable reason.

    `margin` is the deviation from the prediction that still confirms; `slack` how far a bound is from being touched.
    `bound` is "at most" or "at least" where `predicted` is one number that bounds the estimate.
    """

    answer: Answer
    predicted: Any
    estimate: float | None
    interval: tuple[float, float] | None
    reason: str
    rejected: tuple[str, ...] = ()
    margin: float | None = None
    slack: float | None = None
    deciding: str = ""
    sensitivity: tuple[Sensitivity, ...] = ()
    bound: str = ""


@runtime_checkable
class Law(Protocol):
    """A prediction that can be held against samples; the laws in use are in `derivations.laws`."""

    def judge(self, samples: Samples, looks: int = 1) -> Judgement:
        """The answer with the evidence in one sentence; `looks` is the number of parts that share the doubt."""
        ...

    def sensitivity(self, samples: Samples, looks: int = 1) -> Sequence[Sensitivity]:
        """The deviations at which the answer would have been lost, for samples of which the claim holds."""
        ...


@runtime_checkable
class Lab(Protocol):
    """The instruments of a claim, given to its `measure`; every run they make is recorded as evidence.

    `system`, `backend` and `effort` say what is measured, how and how hard.
    """

    system: System
    backend: str
    effort: Effort

    def integrate(self, *, seed: int = 0, until: float | None = None, **request: Any) -> Any:
        """A `Trajectory` of the flow; `request` are parameters of the system and options of `odesim integrate`."""
        ...

    def simulate(
        self, *, method: str, step_size: float | None = None, batch: int | None = None, seed: int = 0, **request: Any
    ) -> Any:
        """A `Trajectory` of finite-sample SGD, dimensions (seed, time, ...)."""
        ...

    def bands(self, *, seed: int = 0, until: float | None = None, of: Sequence[str] = (), **request: Any) -> Any:
        """The bands of SGD without a simulation (`odesim.bands`), with the law of hitting times that `of` asks for."""
        ...

    def gradient(self, of: Sequence[str], *, seed: int = 0, until: float | None = None, **request: Any) -> Any:
        """The derivatives of measures of the flow by its parameters (`odesim.gradient`)."""
        ...

    def functions(self, initial: Initial, tier: str | None = None, stage: str | None = None) -> "Evaluator":
        """The compiled right-hand side and loss of a tier of a stage (the first) at the sizes of `initial`."""
        ...

    def exhibit(self, seed: int) -> int:
        """The seed that draws here what `seed` draws in the laboratory of seed 0: for a counterexample once found."""
        ...

    def drift(self, initial: Initial, samples: int, seed: int = 0, stage: str | None = None) -> Any:
        """Mean and standard error of the model's drift by Monte Carlo: of the Gram matrix, or of what `descent` is."""
        ...

    def descent(
        self, initial: Initial, batch: int, repeats: int, seed: int = 0, fresh: bool = True, stage: str | None = None
    ) -> np.ndarray:
        """Minus the model's mean gradients over batches: (repeats, k, m + 1, F) in the frame, neurons then router; for
        Gaussian inputs (repeats, n, n + frame), inner products of the gradients with all vectors.
        """
        ...

    def course(self, *, method: str = "flow", seed: int = 0, until: float | None = None, **request: Any) -> list[Any]:
        """The trajectories of all stages with a clock, in order, up to a time on the clock that they share."""
        ...

    def stage(self, name: str, previous: Any, *, seed: int = 0, **request: Any) -> Any:
        """The `Trajectory` of a later stage that starts from the end of `previous`."""
        ...


@dataclasses.dataclass(frozen=True)
class Evaluator:
    """`flow(state)` -> components of the derivative, `loss(state)` -> number, for component mappings."""

    flow: Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]
    loss: Callable[[Mapping[str, np.ndarray]], float]


@dataclasses.dataclass(frozen=True)
class Grid:
    """The points of a sweep at one effort, and how many seeds each of them gets."""

    points: tuple[Mapping[str, Any], ...] = ({},)
    seeds: int = 1


@dataclasses.dataclass(frozen=True)
class Variant:
    """A form of a claim: what it fixes (added to every point), how its statement reads, what it last came out as.

    `law` and `sweep` replace those of the claim where this form needs its own.  `control` breaks what this form
    states, where the control of the claim breaks something else.
    `identity` is the reason why the measurement could not come out otherwise: it follows from the construction (the
    generator of the data, the definition of a parameter), so that the form confirms nothing of the paper's dynamics.
    """

    name: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    statement: str = ""
    expected: Answer = "confirmed"
    law: Law | None = None
    sweep: Mapping[str, Grid | None] | None = None
    control: "Callable[[Claim], Claim] | None" = None
    identity: str = ""


@dataclasses.dataclass(frozen=True)
class Claim:
    """A theorem, lemma, figure or finding as data, with what would refute it.

    `measure(lab, point, seed)` gives a number (or a mapping) at one point of the sweep; `law` judges all of them.
    `control(claim)` is a broken twin (wrong exponent, dropped term, flipped sign, other activation, shuffled data)
    that the same code must refute; `control_variant` names the form it is written for.  `derivations.broken.twin_of`
    applies it to every form that is expected to hold and has no control of its own.  `sweep[effort]` is `None` where
    the claim cannot be decided at that effort.  `rungs` are the rungs of the ladder of evidence it stands on
    (1 identity, 2 expectation, 3 back ends, 4 integrators, 5 invariants, 6 drift, 7 trajectory, 8 law, 9 control).
    `erratum` points to the errata where the printed statement is wrong.
    `derived` claims are printed nowhere in the source: they were derived here, or are generated for every model.
    `seconds` is what a claim costs that takes more than ten core-seconds at quick effort and shares no runs with other
    claims of its module (0 for all others).  Such a claim is judged by itself, so that several processes end together.
    """

    id: str
    statement: str
    source: Source
    measure: Callable[[Any, Mapping[str, Any], int], Any]
    law: Law
    sweep: Mapping[str, Grid | None]
    control: Callable[["Claim"], "Claim"]
    rungs: tuple[int, ...]
    variants: tuple[Variant, ...] = (Variant("main"),)
    control_variant: str = ""
    slow_control: bool = False
    erratum: str = ""
    seconds: float = 0.0
    derived: bool = False
