"""Types for claims: the statement, its measurement, the law that judges it, and the parts of a verdict.

This module only defines types, like `derivations.contract`.  The laws are in `derivations.laws`, and the laboratory is
in `odesim.evidence.laboratory`.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from derivations.contract import Initial, Source, System

Answer = Literal["confirmed", "refuted", "consistent", "inconclusive"]
"""`consistent` means that the measurement obeys a bound with room to spare and is therefore no sharp test of it."""
ANSWERS: tuple[Answer, ...] = ("confirmed", "consistent", "refuted", "inconclusive")
HOLDS: tuple[Answer, ...] = ("confirmed", "consistent")
Effort = Literal["quick", "full", "gpu"]
Samples = Sequence[tuple[Mapping[str, Any], int, Any]]
"""Measured values of a claim: (point of the sweep, seed, measurement).  The measurement is a number or a mapping."""


@dataclasses.dataclass(frozen=True)
class Sensitivity:
    """Deviation from a claim that the measurement detects.

    If the claim is wrong by `size`, at most one of ten repetitions of the measurement confirms it or finds it
    consistent.  `size` depends on the design (the law, the number of runs and their scatter), and not on the distance
    of this sample from the claim.  It is `None` if no deviation has this property.  `kind` names the deviating quantity
    ("exponent", "one case", "share of runs", ...), `sentence` describes it for a reader, and `part` is the part of the
    law.
    """

    kind: str
    size: float | None
    sentence: str
    part: str = ""


@dataclasses.dataclass(frozen=True)
class Judgement:
    """Judgement of samples by a law: the answer, the estimate with its interval, and the reason in one sentence.

    `margin` is the largest deviation from the prediction that is still confirmed.  `slack` is the distance of the
    measurement from a bound.  `bound` is "at most" or "at least" if `predicted` is one number that bounds the estimate.
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
    """Prediction that judges samples; the laws in use are in `derivations.laws`."""

    def judge(self, samples: Samples, looks: int = 1) -> Judgement:
        """Return the answer with its evidence in one sentence; `looks` parts share the error probability."""
        ...

    def sensitivity(self, samples: Samples, looks: int = 1) -> Sequence[Sensitivity]:
        """Return the deviations from the claim that the measurement detects, for samples for which the claim holds."""
        ...


@runtime_checkable
class Lab(Protocol):
    """Laboratory: the argument of the function `measure` of a claim.  It records every run that it makes as evidence.

    `system`, `backend` and `effort` are the system, the back end and the effort of the verification.
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
        """Return the seed that reproduces here the draw of `seed` in the laboratory of seed 0, for a counterexample."""
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
    """Points of a sweep at one effort, and the number of seeds for each point."""

    points: tuple[Mapping[str, Any], ...] = ({},)
    seeds: int = 1


@dataclasses.dataclass(frozen=True)
class Variant:
    """Form of a claim: its settings (added to every point of the sweep), its statement, and the expected answer.

    `law` and `sweep` replace those of the claim, if this form needs its own.  `control` replaces the control of the
    claim, if that one does not break the statement of this form.
    `identity` is set if the measurement can have only one result, because it follows from the construction (the
    generator of the data, the definition of a parameter).  It gives the reason.  Such a form confirms nothing about the
    dynamics of the paper.
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
    """Theorem, lemma, figure or finding in a form that can be tested.

    Attributes:
        measure: measure(lab, point, seed) returns a number (or a mapping) at one point of the sweep.
        law: Law that judges all measured values.
        control: control(claim) returns a false version of the claim (wrong exponent, dropped term, flipped sign, other
            activation, shuffled data), which the same code must refute.  `derivations.broken.twin_of` applies it to
            every form that is expected to hold and has no control of its own.
        control_variant: Form for which the control is written.
        sweep: Sweep by effort; `None` for an effort at which the claim cannot be decided.
        rungs: Kinds of evidence: 1 identity, 2 expectation, 3 back ends, 4 integrators, 5 invariants, 6 drift,
            7 trajectory, 8 law, 9 control.
        erratum: Reference to the errata, if the printed statement is wrong.
        derived: True if the source does not print the claim.  It was derived here, or is generated for every model.
        seconds: Duration at quick effort, for a claim that takes more than ten core-seconds and shares no runs with
            other claims of its module; otherwise 0.  Such a claim is judged as a separate task, to balance the load of
            the processes.
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
