"""The reference of the Python interface, written from `odesim.__all__`; Sphinx reads the docstrings."""

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

GROUPS = (
    ("Models and their equations", ("systems", "system", "declare", "derive", "System")),
    ("Runs", ("integrate", "simulate", "sweep", "Trajectory", "Run", "Flow")),
    (
        "Comparisons and analyses",
        (
            "compare",
            "observe",
            "linearise",
            "derivatives",
            "predict",
            "bands",
            "exponents",
            "atlas",
            "gradient",
            "optimise",
            "export",
            "conventions",
            "Comparison",
        ),
    ),
    ("Theorems", ("verify", "check", "Check", "Verdicts")),
    ("Files, figures and pages", ("save", "load", "figures", "report", "explore")),
    ("Errors", ("UsageError", "NumericalError", "MissingError", "InterruptedRun")),
)
"""Every public name under its heading; a test compares them with `odesim.__all__`."""
RETURNED = (
    "odesim.show.page.symbolic.SymbolicEquations",
    "odesim.study.derivatives.Derivatives",
    "odesim.study.linearisation.Linearisation",
    "odesim.study.linearisation.Stationary",
    "odesim.study.answers.atlas.Atlas",
    "odesim.study.answers.bands.Bands",
    "odesim.study.answers.exponents.Exponents",
    "odesim.study.conventions.Conventions",
    "odesim.study.conventions.Convention",
    "odesim.evidence.verification.Verdict",
    "odesim.request.trajectory.Outcome",
    "odesim.request.trajectory.Origin",
)
"""Types that functions and attributes give, and that nobody makes."""
INHERITED = ("odesim.", "derivations.")
"""Members that a class inherits from these packages are its own; those of `list` are not."""


def page() -> Iterator[str]:
    """The lines of the page."""
    odesim = importlib.import_module("odesim")
    yield from (
        "# Python",
        "",
        "This page lists all public names of odesim. Times are in the unit of the clock of a stage, which",
    )
    yield from (
        "`run.clock` states. Shapes are written as (time, expert, teacher). [Glossary](../glossary.md).",
        "",
    )
    for heading, names in GROUPS:
        yield from (f"## {heading}", "", *names_table(odesim, names), "", "```{eval-rst}")
        for name in names:
            yield from (*directive(name, getattr(odesim, name)), "")
        yield from ("```", "")
    yield from ("## Other types that functions return", "", "```{eval-rst}")
    for path in RETURNED:
        module, _, name = path.rpartition(".")
        yield from (*described(path, getattr(importlib.import_module(module), name)), "")
    yield "```"


def names_table(odesim: Any, names: tuple[str, ...]) -> list[str]:
    """The names of a heading, each with the first sentence of its docstring."""
    from written import table

    rows = ((f"{{py:obj}}`odesim.{name}`", first_sentence(getattr(odesim, name))) for name in names)
    return table(("name", "meaning"), rows)


def first_sentence(named: Any) -> str:
    """The first paragraph of a docstring in one line."""
    return " ".join((inspect.getdoc(named) or "").split("\n\n")[0].split())


def directive(name: str, named: Any) -> list[str]:
    """The autodoc directive of a public name."""
    if not inspect.isclass(named):
        return [f".. autofunction:: odesim.{name}"]
    if issubclass(named, BaseException):
        return [f".. autoexception:: odesim.{name}"]
    return described(f"odesim.{name}", named)


def described(path: str, kind: type) -> list[str]:
    """The autodoc directive of a class, with its public methods and properties."""
    own = members(kind)
    lines = [f".. autoclass:: {path}", "   :class-doc-from: class"]
    return [*lines, f"   :members: {', '.join(own)}", "   :inherited-members: list, ndarray"] if own else lines


def members(kind: type) -> list[str]:
    """The public methods and properties of a class and its base classes in odesim, in order."""
    found: dict[str, None] = {}
    for base in kind.__mro__:
        if base.__module__.startswith(INHERITED):
            for name, value in vars(base).items():
                public = not name.startswith("_") or name == "__call__"
                if public and (callable(value) or isinstance(value, property) or hasattr(value, "func")):
                    found[name] = None
    return list(found)
