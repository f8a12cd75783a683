"""Output of `odesim derive` for a tier: its page as text, LaTeX or Python, or the compiled kernels."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from derivations.contract import Dynamics, Equations, Map, Page, Stage, System, load
from odesim.errors import UsageError

if TYPE_CHECKING:
    from odesim.request.case import Case
    from odesim.show.page.symbolic import SymbolicEquations

FORMATS = ("text", "latex", "latex-fragment", "python", "kernels", "program")


def render(system: System, parameters: Any, format: str = "text", stage: str | None = None) -> str:
    """Return the page of the tier in `parameters`, for a stage (by default that of a run without a stage).

    `format` is text, latex (a document), latex-fragment (the equations, for inclusion in an article), python (a
    stand-alone file with NumPy and SciPy), kernels (the module that numba compiles), or program (the equations after
    every pass of the compiler). Raises `UsageError` for another format, and for a stage without equations of motion.
    """
    if format not in FORMATS:
        raise UsageError(f"--format must be one of {', '.join(FORMATS)}, but is {format!r}")
    chosen, tier = _chosen(system, parameters, stage)
    if isinstance(chosen, Map) and not format.startswith(("text", "latex")):
        raise UsageError(
            f"stage {chosen.name} of {system.name} is one step, without a right-hand side: give --format text or latex"
        )
    if format == "kernels":
        return _kernels(load(chosen.equations)(parameters, tier))
    statement = load(chosen.statement)(parameters, tier)
    if isinstance(statement, Page):
        printed = {"text": statement.text, "latex": statement.latex, "latex-fragment": statement.fragment}
        if format in printed:
            return printed[format]
        if statement.stated is None:
            raise UsageError(f"tier {tier} of {system.name} has no page in {format}; take --format text")
        statement = statement.stated()
    if format == "program":
        from derivations.equations.text import passes

        return passes(statement)
    return _printer(format)(statement)


def _kernels(equations: Equations) -> str:
    """The module that numba compiles for some equations."""
    if equations.code.statement is not None:
        from derivations.equations.text import example_numbers
        from odesim.code.prepared import tables_of

        statement = equations.code.statement()
        return tables_of(statement, equations.layout, example_numbers(statement), "rates").kernel_text()
    from odesim.code.compile import module_text

    return module_text(equations)


def symbolic(case: "Case") -> "SymbolicEquations":
    """Return the equations of the tier of a case as SymPy expressions, with the values of its constants.

    Raises `UsageError` for a stage without equations of motion, and for equations that are not written in SymPy.
    """
    from odesim.flow.problem import initial_condition
    from odesim.show.page.symbolic import SymbolicEquations

    chosen, tier = _chosen(case.system, case.parameters, case.stage)
    if isinstance(chosen, Map):
        raise UsageError(f"stage {chosen.name} of {case.system.name} is one step, without a right-hand side")
    statement = load(chosen.statement)(case.parameters, tier)
    if isinstance(statement, Page):
        if statement.stated is None:
            raise UsageError(
                f"tier {tier} of {case.system.name} evaluates some means numerically, so it has no equations in SymPy; "
                "use --format text"
            )
        statement = statement.stated()
    try:
        constants = statement.numbers(initial_condition(case))
    except UsageError:  # a stage that only follows an earlier one: `lambdify` takes its constants as arguments
        constants = {}
    return SymbolicEquations(case.system.name, chosen.name, tier, statement, constants)


def explain(system: System, parameters: Any, stage: str | None = None) -> str:
    """Return the explanation of a tier: why its equations close, the method and error of every term, and the other
    tiers.

    Raises `UsageError` for a stage without equations of motion.
    """
    from odesim.show.page import explain

    chosen, tier = _chosen(system, parameters, stage)
    return explain.page(system, chosen, parameters, tier, load(chosen.statement)(parameters, tier))


def _chosen(system: System, parameters: Any, stage: str | None) -> tuple[Stage, str]:
    """The stage of a request, which states its equations, and its tier."""
    chosen = system.stage(stage or (system.begin(parameters) if system.begin else _first(system).name))
    tier = getattr(parameters, "tier", None) or chosen.tiers[0]
    if isinstance(chosen, Dynamics) and tier not in chosen.tiers:
        tier = chosen.tier(parameters)
    if not chosen.statement:
        raise UsageError(_without_equations(system, chosen))
    return chosen, tier


def _first(system: System) -> Stage:
    """The first stage that has a clock."""
    return next((stage for stage in system.stages if isinstance(stage, Dynamics)), system.stages[0])


def _printer(format: str) -> Callable[[Any], str]:
    """The printer of a format."""
    from odesim.show.page import latex, python, text

    printers = {"text": text.page, "latex": latex.page, "latex-fragment": latex.fragment, "python": python.page}
    return printers[format]


def _without_equations(system: System, stage: Stage) -> str:
    """Return the message on a stage without a page, with the stages that have one."""
    alternatives = ", ".join(s.name for s in system.stages if s.statement)
    if isinstance(stage, Map):
        return (
            f"stage {stage.name} of {system.name} has no equations of motion: it is one step ({stage.meaning}); "
            f"give --stage with one of {alternatives}"
        )
    return f"stage {stage.name} of {system.name} states no equations; give --stage with one of {alternatives or 'none'}"
