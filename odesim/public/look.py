"""To look: systems, their equations, and what is read off a run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from odesim.public.speak import chosen, known, speaking

if TYPE_CHECKING:
    from derivations.contract import System
    from odesim.request.case import Case
    from odesim.request.trajectory import Trajectory, Variable
    from odesim.store import Run
    from odesim.study.linearisation import Linearisation


@speaking
def systems() -> list[str]:
    """The names of all systems: ours, and those that installed packages register (`odesim.systems` entry points)."""
    import derivations

    return derivations.names()


@speaking
def system(name: str) -> "System":
    """The system called `name`, or that a reference leads to: "module:SYSTEM", "path/to/file.py:SYSTEM".

    Raises `UsageError`, with the nearest name, if there is none, and for a reference that leads nowhere.

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
    """Return the equations of motion of a tier, with every definition that they need, as the program evaluates them.

    Arguments:
        system: Its name, a file that declares it, or a `System`.
        format: "text"; "latex", a document; "latex-fragment", its equations without a preamble, for an article with
            amsmath; "python", a file that runs alone with NumPy and SciPy; "kernels", the module that is compiled;
            "explanation", why the equations close, by which methods and with what error; or "sympy", expressions.
        preset: A named parameter set of the system.
        stage: The stage; by default the first that has a clock.
        parameters: Those of the system, `tier` among them.

    Returns:
        A text; for "sympy" an object with `state`, `rhs`, `definitions`, `loss` and `lambdify()`
        (`odesim.show.page.symbolic.SymbolicEquations`).

    Raises:
        UsageError: A request that cannot be met, such as a format that a model does not have.

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
def declare(**tables: Any) -> "System":
    """A system from a declaration: the tables of a file that declares a model, as keyword arguments.

    `student`, `teacher`, `training`, `start`, `parameters` are mappings, `event` and `claim` lists of them; expressions
    are texts, or SymPy expressions.  What comes back goes wherever the name of a system goes.  Raises `UsageError` with
    one sentence for what is wrong.

    >>> import odesim
    >>> committee = odesim.declare(student={"unit": "He(2, w)", "units": 2}, teacher={"units": 1})
    >>> committee.name
    'declared'
    """
    from derivations.declare import reading, system

    return system.system(reading.declaration(reading.plain(tables)))


@speaking
def linearise(
    source: "Case | Trajectory | Run",
    time: float | None = None,
    *,
    state: "Mapping[Any, Any] | None" = None,
    method: Any = None,
) -> "Linearisation":
    """Jacobian, spectrum and (by `.stationary()`) the nearby stationary point of a smooth flow.

    At `time` of a run or case, or with components replaced by those of `state`; `odesim.study.linearisation.linearise`
    has the details.  Raises `UsageError` where the equations are no smooth flow.
    """
    from odesim.request.parse import real_number
    from odesim.study.linearisation import linearise as run

    return run(source, None if time is None else real_number(time, "--time"), state=state, method=method)


@speaking
def predict(
    run: "Trajectory | Run", inputs: "Mapping[str, Any]", time: float | None = None
) -> "Mapping[str, Variable]":
    """What the network of a run answers on given samples at a saved time (the last unless given): outputs, margins.

    `inputs` are the arrays that the system describes a sample by (`odesim.study.prediction.predict` lists them).
    Raises `UsageError` for systems without a prediction, unknown times, and samples that do not fit.
    """
    from odesim.study.prediction import predict as answer

    return answer(run, inputs, time)
