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
"""The options of `atlas`, which are no parameters of a system."""


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
    """Return where SGD of a given dimension is around the flow: bands of every quantity, without a simulation.

    The fluctuations of SGD are of order 1/sqrt(d). Their covariance solves a Lyapunov equation along the flow; behind a
    saddle, where it grows, the band is that of a mixture of flows.

    Arguments:
        system: Its name, a file that declares it, or a `System`.
        level: Probability of the bands.
        of: A measure or several: "final R" adds the band of R, "first time R >= c" the quantiles of that time.
        fresh_initial: Every run draws its own start; by default all start alike.
        step_size: Step size of SGD; by default a declared model's own.
        batch: Fresh samples in a step; by default a declared model's own.
        preset, config, initial, stage, seed, until, save_at: As of `integrate`.
        save_points: Number of times (101).
        parameters: Those of the system, d among them.

    Returns:
        A `Bands`: `.summary()`, `.dataset()`, `.plot()`, `.save(folder)`, and arrays by name such as
        `answer["error_low"]`.

    Raises:
        UsageError: A model whose bands are not derived (momentum, episodes, inputs from a finite set), or a request
            that cannot be met.
        NumericalError: A dimension that is too small for bands.

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
    """Return the information, leap and generative exponent of the teacher of a declared model, and their costs.

    Arguments:
        system: Its name, a file that declares it, or a `System`.
        preset: A named parameter set of the system.
        stage: The stage whose label is meant; by default the first.
        parameters: Parameters of the system.

    Returns:
        An `Exponents` with `information`, `leap`, `generative` and `order`, the steps in which directions are found;
        `summary()` has their costs and what this student sees (docs/exponents.md).

    Raises:
        UsageError: A system that is not declared, or a teacher without exponents: inputs that are not isotropic, copies
            of students, more than four directions, a softmax loss or one of its own.

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

    Every class has its loss, index (number of growing directions), null directions, and orbit. In the limit "flow"
    points are vectors in the span of the teachers, and directions out of it are counted too; in the limit "online"
    they are overlaps. A search proves no completeness.

    Arguments:
        system: Its name, a file that declares it, or a `System`.
        over: A parameter and its range, such as {"step": (0, 6)}: branches, folds, branch points and Hopf points.
        map: A second parameter and its range, over which the bifurcations are followed.
        starts: Random starts of the search.
        preset: A named parameter set of the system.
        config: A TOML file with options and, in [parameters], parameters; arguments take precedence.
        seed: Seed of the starts (0).
        stage: The stage; by default the first.
        parameters: Those of the system.

    Returns:
        An `Atlas`: arrays by name, `summary()`, `tables()`, `dataset()`, `plot()`, `save(folder)`.

    Raises:
        UsageError: A model without stationary points of vectors: giant steps, values that change in time, random
            points, kinks, inputs with a law of their own; or a range that is none.

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
    """Return the derivatives of final values and hitting times of a flow by its parameters.

    They are those of the equations: tangents along the flow for up to four parameters, an adjoint beyond. A hitting
    time has its derivative by the implicit function theorem. A random start keeps its seed.

    Arguments:
        system: Its name, a file that declares it, or a `System`.
        of: A measure or several: "final R" or "first time R >= c".
        to: Parameters; by default all by which the flow has a derivative.
        preset, config, initial, stage, seed, until, rtol: As of `integrate`.
        parameters: Those of the system.

    Returns:
        A `Gradient`: `.value` by measure, `.of(measure)` by parameter, `.tables()`, and the arrays `derivative` and
        `elasticity`.

    Raises:
        UsageError: A parameter without a derivative (d, sizes, seeds, the tier), equations that are no smooth flow,
            and measures that cannot be read.
        NumericalError: A flow that cannot be followed, or a level that is touched and not crossed.

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
    """Return the schedule of the step, the decay or the noise of a declared model that is best for a measure.

    The schedule is linear between equally spaced knots and optimised from the best constant. The answer has the best
    constant, the greedy schedule and the optimum in continuous time beside it.

    Arguments:
        system: Its name, a file that declares it, or a `System`.
        vary: "step", "decay" or "noise".
        minimise: "final R", or "first time R >= c" for the least time to a level.
        knots: Pieces of the schedule.
        between: The least and the largest value; by default 0 and five times the present value.
        budget: Most of the integral of the schedule over time.
        preset, config, initial, seed, until: As of `integrate`.
        parameters: Those of the system.

    Returns:
        An `OptimalSchedule`: `.value`, `.tables()`, `.model()` with the schedule in it, and the arrays `knot` and
        `schedule`.

    Raises:
        UsageError: A gradient flow, which has no step; a model that is not declared or has stages; a level that no
            constant reaches.
        NumericalError: An optimum that no grid resolves.

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
