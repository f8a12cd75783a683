"""Answers beyond one trajectory.  Nothing is written."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odesim.public.make import CASE
from odesim.public.speak import chosen, known, speaking
from odesim.public.watch import watched

if TYPE_CHECKING:
    from derivations.contract import System
    from odesim.study.answers.atlas import Atlas
    from odesim.study.answers.bands import Bands
    from odesim.study.answers.exponents import Exponents
    from odesim.study.answers.optimise import OptimalSchedule
    from odesim.study.answers.sensitivity import Gradient


ATLAS = ("over", "map", "starts", "preset", "config", "seed", "stage")
"""Options of `atlas` that are not parameters of a system."""


@speaking
def bands(
    system: "str | System",
    *,
    level: float = 0.9,
    of: "str | Sequence[str]" = (),
    fresh_initial: bool = False,
    step_size: float | None = None,
    batch: int | None = None,
    preset: str | None = None,
    config: "str | os.PathLike[str] | None" = None,
    initial: "str | os.PathLike[str] | Mapping[str, Any] | None" = None,
    stage: str | None = None,
    seed: int | None = None,
    until: Any = None,
    save_points: int | None = None,
    save_at: Any = None,
    **parameters: Any,
) -> "Bands":
    """Compute bands of all quantities of SGD around the flow at a finite dimension d, without a simulation.

    The fluctuations of SGD are of order 1/sqrt(d). Their covariance solves a Lyapunov equation along the flow. After a
    saddle, where the covariance grows, the band is that of a mixture of flows.

    Arguments:
        system: Name of a system, path of a file that declares one, or a `System`.
        level: Probability of the bands.
        of: One or several measures: "final R" adds the band of R, "first time R >= c" the quantiles of that time.
        fresh_initial: Every run draws its own start; by default all runs have the same start.
        step_size: Step size of SGD; by default that of the declared model.
        batch: Fresh samples in a step; by default that of the declared model.
        preset, config, initial, stage, seed, until, save_at: As for `integrate`.
        save_points: Number of times (101).
        parameters: Parameters of the system, including d.

    Returns:
        A `Bands`: `.summary()`, `.dataset()`, `.plot()`, `.save(folder)`, and arrays by name such as
        `answer["error_low"]`.

    Raises:
        UsageError: The model has no bands (momentum, episodes, inputs from a finite set), or the request is invalid.
        NumericalError: The dimension is too small for bands.

    Example:
        >>> import odesim
        >>> training = {"limit": "online", "step": 0.5}
        >>> model = odesim.declare(student={"unit": "w"}, teacher={"noise": 0.5}, training=training)
        >>> answer = odesim.bands(model, d=400, until=6, seed=1)
        >>> low, mean, high = (answer.summary()[name] for name in ("error_low", "error_centre", "error_high"))
        >>> bool(low < mean < high)
        True
    """
    from odesim.ask import sgd
    from odesim.study.answers import bands as study

    own = chosen(system)
    known(own, parameters, (*CASE, "level", "of", "fresh_initial", "step_size", "batch"), "bands")
    simulation = sgd.request(
        own, parameters, method="compressed", step_size=step_size, batch=batch, fresh_initial=fresh_initial,
        preset=preset, config=config, initial=initial, stage=stage, seed=seed, until=until,
        save_points=101 if save_points is None and save_at is None else save_points, save_at=save_at,
    )  # fmt: skip
    measures = [of] if isinstance(of, str) else list(of)
    with watched(f"bands of {own.name}") as progress:
        return study.answer(simulation, level=level, of=measures, progress=progress)


@speaking
def exponents(
    system: "str | System", *, preset: str | None = None, stage: str | None = None, **parameters: Any
) -> "Exponents":
    """Compute the information, leap and generative exponents of the teacher of a declared model.

    Arguments:
        system: Name of a system, path of a file that declares one, or a `System`.
        preset: A named parameter set of the system.
        stage: The stage whose label is expanded; by default the first.
        parameters: Parameters of the system.

    Returns:
        An `Exponents` with `information`, `leap`, `generative` and `order`, the steps in which directions are found.
        `summary()` also has the number of samples, the time of the flow, and the order at which this student learns
        (docs/exponents.md).

    Raises:
        UsageError: The system is not declared, or its teacher has no exponents: inputs that are not isotropic, copies
            of students, more than four directions, a softmax loss or a loss that is an expression.

    Example:
        >>> import odesim
        >>> staircase = odesim.declare(student={"unit": "relu(w)"}, teacher={"unit": "u + 0.6*u*v + 0.35*u*v*w"})
        >>> answer = odesim.exponents(staircase)
        >>> answer.information, answer.leap, [step["directions"] for step in answer.order]
        (1, 1, ['u', 'v', 'w'])
        >>> odesim.exponents("ben_arous_2021")
        Exponents of ben_arous_2021
          information 3, generative 1: d^2 samples of SGD, flow time d^0.5
          with a transform of the label, or samples used twice: d samples of SGD, flow time 1
    """
    from odesim.request.case import Case
    from odesim.study.answers.exponents import answer

    system = chosen(system)
    known(system, parameters, ("preset", "stage"), "exponents")
    return answer(Case.build(system, parameters, preset=preset, stage=stage))


@speaking
def atlas(
    system: "str | System",
    *,
    over: "Mapping[str, Any] | None" = None,
    map: "Mapping[str, Any] | None" = None,
    starts: int = 400,
    preset: str | None = None,
    config: "str | os.PathLike[str] | None" = None,
    seed: int | None = None,
    stage: str | None = None,
    **parameters: Any,
) -> "Atlas":
    """Find the stationary points of a declared model modulo symmetry, and follow them over one or two parameters.

    The answer has a class for each point and its images. Every class has a loss, an index (the number of growing
    directions), a number of null directions, and an orbit. In the limit "flow" a point consists of vectors in the span
    of the teachers, and directions outside this span are counted too. In the limit "online" a point consists of
    overlaps. The search does not prove that the list is complete.

    Arguments:
        system: Name of a system, path of a file that declares one, or a `System`.
        over: A parameter and its range, such as {"step": (0, 6)}. The answer then has branches, folds, branch points
            and Hopf points.
        map: A second parameter and its range, over which the bifurcations are followed.
        starts: Number of random starts of the search.
        preset: A named parameter set of the system.
        config: A TOML file with options and a table [parameters]; arguments take precedence over it.
        seed: Seed of the starts (0).
        stage: The stage; by default the first.
        parameters: Parameters of the system.

    Returns:
        An `Atlas`: arrays by name, `summary()`, `tables()`, `dataset()`, `plot()`, `save(folder)`.

    Raises:
        UsageError: The model is not supported (giant steps, time-dependent values, random points, kinks, inputs that
            are not isotropic), or a range is invalid.

    Example:
        >>> import odesim
        >>> found = odesim.atlas("arnaboldi_2023", starts=60)
        >>> found["index"].tolist(), found["loss"].round(4).tolist()
        ([0, 1], [0.0675, 2.045])
    """
    from odesim.request.case import Case
    from odesim.request.parse import whole_number
    from odesim.study.answers.atlas import atlas as study

    system = chosen(system)
    known(system, parameters, ATLAS, "atlas")
    case = Case.build(system, parameters, preset=preset, config=config, seed=seed, stage=stage)
    with watched(f"searching stationary points of {case.name}"):
        return study(case, over=over, map=map, starts=whole_number(starts, "--starts"))


@speaking
def gradient(
    system: "str | System",
    *,
    of: "str | Sequence[str]",
    to: "str | Sequence[str]" = (),
    preset: str | None = None,
    config: "str | os.PathLike[str] | None" = None,
    initial: "str | os.PathLike[str] | Mapping[str, Any] | None" = None,
    stage: str | None = None,
    seed: int | None = None,
    until: Any = None,
    rtol: float | None = None,
    **parameters: Any,
) -> "Gradient":
    """Compute the derivatives of final values and hitting times of a flow with respect to its parameters.

    The derivatives are those of the equations, from tangents along the flow (up to four parameters) or an adjoint. The
    derivative of a hitting time follows from the implicit function theorem. The seed of a random start is kept fixed.

    Arguments:
        system: Name of a system, path of a file that declares one, or a `System`.
        of: One or several measures, "final R" or "first time R >= c".
        to: Names of parameters; by default all for which the flow has a derivative.
        preset, config, initial, stage, seed, until, rtol: As for `integrate`.
        parameters: Parameters of the system.

    Returns:
        A `Gradient`: `.value` by measure, `.of(measure)` by parameter, `.tables()`, and the arrays `derivative` and
        `elasticity`.

    Raises:
        UsageError: A parameter has no derivative (d, sizes, seeds, the tier), the equations are not a smooth flow, or
            a measure is invalid.
        NumericalError: The integration fails, or the quantity touches a level without crossing it.

    Example:
        >>> import odesim
        >>> answer = odesim.gradient("arnaboldi_2023", of="first time M_ww >= .9", to=["step", "noise"], until=100)
        >>> {name: round(value, 4) for name, value in answer.of("first time M_ww >= .9").items()}
        {'step': 129.1458, 'noise': 2.8811}
    """
    from odesim.ask import begin
    from odesim.request.case import Case
    from odesim.study.answers.sensitivity import answer

    own = chosen(system)
    known(own, parameters, ("of", "to", "preset", "config", "initial", "stage", "seed", "until", "rtol"), "gradient")
    own, initial, parameters = begin.from_run(own, initial, parameters, preset=preset, config=config)
    case = Case.build(
        own, parameters, preset=preset, config=config, initial=initial, stage=stage, seed=seed, until=until, rtol=rtol
    )
    with watched(f"derivatives of {own.name}"):
        return answer(case, [of] if isinstance(of, str) else list(of), [to] if isinstance(to, str) else list(to))


@speaking
def optimise(
    system: "str | System",
    *,
    vary: str = "step",
    minimise: str = "final error",
    knots: int = 20,
    between: Any = None,
    budget: Any = None,
    preset: str | None = None,
    config: "str | os.PathLike[str] | None" = None,
    initial: "str | os.PathLike[str] | Mapping[str, Any] | None" = None,
    seed: int | None = None,
    until: Any = None,
    **parameters: Any,
) -> "OptimalSchedule":
    """Find the schedule of the step, the decay or the noise of a declared model that minimises a measure.

    The schedule is linear between equally spaced knots. The search begins at the best constant value. For comparison
    the answer also has this constant, the greedy schedule, and the optimum in continuous time.

    Arguments:
        system: Name of a system, path of a file that declares one, or a `System`.
        vary: "step", "decay" or "noise".
        minimise: "final R", or "first time R >= c" for the shortest time to a level.
        knots: Number of pieces of the schedule.
        between: Smallest and largest allowed value; by default 0 and five times the present value.
        budget: Upper bound of the integral of the schedule over time.
        preset, config, initial, seed, until: As for `integrate`.
        parameters: Parameters of the system.

    Returns:
        An `OptimalSchedule`: `.value`, `.tables()`, `.model()` (the model with the best schedule), and the arrays
        `knot` and `schedule`.

    Raises:
        UsageError: The model is not declared, has stages, or is a gradient flow (without a step); or no constant
            value reaches the level.
        NumericalError: The integration grid cannot be made fine enough for the optimum.

    Example:
        >>> import odesim
        >>> answer = odesim.optimise("arnaboldi_2023", minimise="final error", until=20, knots=4, between=(0, 0.16))
        >>> answer.value < answer.summary()["constant_value"]
        True
    """
    from odesim.ask import begin
    from odesim.request.case import Case
    from odesim.study.answers.optimise import answer, wish

    own = chosen(system)
    options = ("vary", "minimise", "knots", "between", "budget", "preset", "config", "initial", "seed", "until")
    known(own, parameters, options, "optimise")
    own, initial, parameters = begin.from_run(own, initial, parameters, preset=preset, config=config)
    case = Case.build(own, parameters, preset=preset, config=config, initial=initial, seed=seed, until=until)
    asked = wish(case, vary, minimise, knots, between, budget)
    with watched(f"optimising {own.name}") as progress:
        return answer(case, asked, progress)
