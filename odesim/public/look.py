"""Systems, their equations, and analyses of runs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from odesim.public.speak import chosen, known, speaking

if TYPE_CHECKING:
    from derivations.contract import System
    from odesim.request.case import Case
    from odesim.request.trajectory import Trajectory, Variable
    from odesim.store import Run
    from odesim.study.derivatives import Derivatives
    from odesim.study.linearisation import Linearisation


@speaking
def systems() -> list[str]:
    """Return the names of all systems: those of odesim, and those that installed packages register.

    Models of the gallery (docs/gallery.md) have names too, and a file that declares a model is a system by its path.

    Returns:
        A list of names, which every function takes as `system`.

    Raises:
        UsageError: A system of an installed package that cannot be imported.

    Example:
        >>> import odesim
        >>> odesim.systems()[:3]
        ['chen', 'kawata', 'liao']
    """
    import derivations

    return derivations.names()


@speaking
def system(name: str) -> "System":
    """Return the system called `name`. `print` shows its parameters, presets, stages and tiers.

    Arguments:
        name: A name of `systems()` or of the gallery, a file "path/to/model.toml", or a reference to Python,
            "module:SYSTEM" or "path/to/file.py:SYSTEM".

    Returns:
        A `System`, which every function takes in the place of its name.

    Raises:
        UsageError: The name is unknown (the message has the most similar name), or the reference does not exist.

    Example:
        >>> import odesim
        >>> odesim.system("derivations.liao:SYSTEM") is odesim.system("liao")
        True
    """
    return chosen(name)


@speaking
def derive(
    system: "str | System",
    format: str = "text",
    *,
    preset: str | None = None,
    stage: str | None = None,
    **parameters: Any,
) -> Any:
    """Return the equations of motion of a tier, with all definitions, as odesim evaluates them.

    Arguments:
        system: Name of a system, path of a file that declares one, or a `System`.
        format: One of
            "text", a page of Unicode mathematics;
            "latex", a document;
            "latex-fragment", the equations without a preamble, for an article with amsmath;
            "python", a program that needs only NumPy and SciPy;
            "kernels", the module that is compiled;
            "program", the intermediate form after every pass of the compiler;
            "explanation", the reason why the equations close, with methods and errors;
            "sympy", SymPy expressions.
        preset: A named parameter set of the system.
        stage: The stage; by default the first that has a clock.
        parameters: Parameters of the system, including `tier`.

    Returns:
        A text; for "sympy" an object with `state`, `rhs`, `definitions`, `loss` and `lambdify()`
        (`odesim.show.page.symbolic.SymbolicEquations`).

    Raises:
        UsageError: The request is invalid, for example because the model does not have this format.

    Example:
        >>> import odesim
        >>> page = odesim.derive("pruning", tier="homogeneous")
        >>> page.splitlines()[0]
        'pruning, tune, homogeneous: all irrelevant patterns alike, two numbers per expert'
        >>> equations = odesim.derive("saad_solla_1995", "sympy")
        >>> list(equations.state.values())
        [Q_ww[i, k], M_ww[i, j]]
        >>> run = odesim.integrate("saad_solla_1995", until=1.0)
        >>> sorted(equations.lambdify()(run(0.5)))
        ['M_ww', 'Q_ww']
    """
    from odesim.request.case import Case
    from odesim.show.page.render import explain, render, symbolic

    system = chosen(system)
    known(system, parameters, ("format", "preset", "stage"), "derive")
    case = Case.build(system, parameters, preset=preset, stage=stage)
    if format == "explanation":
        return explain(case.system, case.parameters, case.stage)
    if format == "sympy":
        return symbolic(case)
    return render(case.system, case.parameters, format, case.stage)


@speaking
def derivatives(
    system: "str | System", *, preset: str | None = None, stage: str | None = None, **parameters: Any
) -> "Derivatives":
    """Return the derivatives of a right-hand side with respect to its state and its constants, exact up to rounding.

    odesim differentiates the equations of the tier definition by definition, and compiles the result like the flow.

    Arguments:
        system: Name of a system, or a `System`.
        preset: A named parameter set of the system.
        stage: The stage; by default the first that has a clock.
        parameters: Parameters of the system, including `tier`.

    Returns:
        A `Derivatives`. For a flat state y (n,) it has the methods `jacobian(y)` (n, n); `along(y, direction)` (n,),
        the derivative in a direction; `by_constants(y)`, the derivatives with respect to the constants, as a mapping
        from names to arrays (n, ..); and `second(y, M)` (n,), the second derivatives contracted with a matrix M (n, n).
        `start` is the flat state at time 0, and `constants` has the values of the constants by name.

    Raises:
        UsageError: The tier has a rule without a derivative (chen) or a row of numbers for every neuron (kawata), or
            the model is a declared one.

    Example:
        >>> import numpy as np
        >>> import odesim
        >>> d = odesim.derivatives("liao", tier="riccati", m=1, m_star=1, d=100, seed=0)
        >>> y = d.start
        >>> bool(np.abs(d.jacobian(y) @ y - d.along(y, y)).max() < 1e-15)
        True
    """
    from odesim.request.case import Case
    from odesim.study.derivatives import derivatives as run

    system = chosen(system)
    seed = parameters.pop("seed", 0)
    known(system, parameters, ("preset", "stage"), "derivatives")
    return run(Case.build(system, parameters, preset=preset, stage=stage, seed=seed))


@speaking
def declare(**tables: Any) -> "System":
    """Return a system from the tables of a file that declares a model, given as keyword arguments.

    Arguments:
        tables: `student`, `teacher`, `training`, `start` and `parameters` are dictionaries; `event`, `stage` and
            `claim` are lists of dictionaries (docs/own-model.md). Expressions are strings or SymPy expressions.

    Returns:
        A `System`, which every function takes instead of a name.

    Raises:
        UsageError: The declaration is wrong; the message describes the first mistake.

    Example:
        >>> import odesim
        >>> committee = odesim.declare(student={"unit": "He(2, w)", "units": 2}, teacher={"units": 1})
        >>> committee.name
        'declared'
        >>> odesim.integrate(committee, until=1.0)["M_ww"].shape  # (time, unit, teacher)
        (201, 2, 1)
    """
    from derivations.declare import python_arrays, reading, system

    return system.system(reading.declaration(reading.plain(python_arrays.with_records(tables))))


@speaking
def linearise(
    source: "Case | Trajectory | Run",
    time: float | None = None,
    *,
    state: "Mapping[Any, Any] | None" = None,
    method: Any = None,
) -> "Linearisation":
    """Linearise a smooth flow: Jacobian, spectrum and, by `.stationary()`, the nearby stationary point.

    Arguments:
        source: A run of this session, a stored run, or a `Case`, which is linearised at its initial state.
        time: A time of the run, in the unit of its clock; by default its end.
        state: New values for components of the state, by name or SymPy symbol.
        method: "differences" of the compiled flow, or "forward mode" by JAX; by default differences if accurate.

    Returns:
        A `Linearisation` with `jacobian` (n, n) in the order of the flat state `y` (n,), `eigenvalues` (n,) and
        `vectors` (n, n) (`odesim.study.linearisation`).

    Raises:
        UsageError: The equations are not a smooth flow, the state is too large, or the time is outside of the run.

    Example:
        >>> import odesim
        >>> run = odesim.integrate("kawata", tier="R3", neurons=1, d=100, until=0.1)
        >>> odesim.linearise(run).jacobian.shape
        (2, 2)
    """
    from odesim.request.parse import real_number
    from odesim.study.linearisation import linearise as run

    return run(source, None if time is None else real_number(time, "--time"), state=state, method=method)


@speaking
def predict(
    run: "Trajectory | Run", inputs: "Mapping[str, Any]", time: float | None = None
) -> "Mapping[str, Variable]":
    """Return the outputs and margins of the network of a run on given samples.

    Arguments:
        run: A run of this session, or a stored run.
        inputs: Arrays by name that describe the samples (`odesim.study.prediction.predict` lists them for each system).
        time: A saved time, in the unit of the run's clock; by default the last.

    Returns:
        Labelled arrays by name, with a dimension "sample" (and "seed" for SGD).

    Raises:
        UsageError: The system has no prediction, the time was not saved, or the samples have a wrong form.

    Example:
        >>> import odesim
        >>> run = odesim.integrate("pmoe", mode="cnn", n=3, p=1, m=20, d=5, until=50.0, save_points=3)
        >>> found = odesim.predict(run, {"index": [[0, 2, 2], [2, 1, 2]], "y": [1, -1]})
        >>> found["margin"].dims, bool((found["margin"] > 0).all())
        (('sample',), True)
    """
    from odesim.study.prediction import predict as answer

    return answer(run, inputs, time)
