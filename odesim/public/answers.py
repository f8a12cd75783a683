"""Answers beyond one trajectory.  Nothing is written."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odesim.public.make import CASE
from odesim.public.speak import chosen, known, speaking
from odesim.public.watch import watched

if TYPE_CHECKING:
    from derivations.contract import System
    from odesim.study.answers.bands import Bands
    from odesim.study.answers.optimise import OptimalSchedule
    from odesim.study.answers.sensitivity import Gradient


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
        >>> low, flow, high = (answer.summary()[name] for name in ("error_low", "error_flow", "error_high"))
        >>> bool(low < flow < high)
        True
    """
    from odesim.ask import sgd
    from odesim.study.answers import bands as study

    own = chosen(system)
    known(own, parameters, (*CASE, "level", "of", "fresh_initial", "step_size", "batch"), "bands")
    simulation = sgd.request(
        own, parameters, method="compressed", step_size=step_size, batch=batch, fresh_initial=fresh_initial,
        preset=preset, config=config, initial=initial, stage=stage, seed=seed, until=until,
        save_points=101 if save_points is None else save_points, save_at=save_at,
    )  # fmt: skip
    measures = [of] if isinstance(of, str) else list(of)
    with watched(f"bands of {own.name}") as progress:
        return study.answer(simulation, level=level, of=measures, progress=progress)


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
    from odesim.request.case import Case
    from odesim.study.answers.sensitivity import answer

    own = chosen(system)
    known(own, parameters, ("of", "to", "preset", "config", "initial", "stage", "seed", "until", "rtol"), "gradient")
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
    from odesim.request.case import Case
    from odesim.study.answers.optimise import answer, wish

    own = chosen(system)
    options = ("vary", "minimise", "knots", "between", "budget", "preset", "config", "initial", "seed", "until")
    known(own, parameters, options, "optimise")
    case = Case.build(own, parameters, preset=preset, config=config, initial=initial, seed=seed, until=until)
    asked = wish(case, vary, minimise, knots, between, budget)
    with watched(f"optimising {own.name}") as progress:
        return answer(case, asked, progress)
