"""The derived expressions of a tier, as text, LaTeX or the Python code that is compiled."""

from typing import Any

from derivations.contract import Equations, System, load
from odesim.errors import UsageError

FORMATS = ("text", "latex", "python")


def render(system: System, parameters: Any, format: str = "text", stage: str | None = None) -> str:
    """Every kernel of the tier that `parameters` select, in `format` (text, latex or python)."""
    if format not in FORMATS:
        raise UsageError(f"--format must be one of {', '.join(FORMATS)}, but is {format!r}")
    stage = stage or (system.begin(parameters) if system.begin is not None else system.stages[0].name)
    chosen = system.stage(stage)
    tier = getattr(parameters, "tier", chosen.tiers[0])
    equations: Equations = load(chosen.equations)(parameters, tier)
    if format == "python":
        from odesim.compile import module_text

        return module_text(equations)
    return (_latex if format == "latex" else _text)(system, equations)


def _text(system: System, equations: Equations) -> str:
    import sympy

    lines = [f"{system.name}, tier {equations.tier} ({equations.kind})", f"valid: {equations.validity}"]
    lines += [f"neglects: {equations.neglects}", "", "state:"]
    lines += [f"  {c.name:<10} {c.symbol:<16} {c.meaning}" for c in equations.state]
    for name, kernel in equations.kernels().items():
        inputs = ", ".join([*kernel.table, *kernel.scalars])
        lines += ["", f"{name}({inputs}):"]
        lines += [f"  {label} = {sympy.sstr(expression)}" for label, expression in kernel.outputs.items()]
    return "\n".join(lines)


def _latex(system: System, equations: Equations) -> str:
    import sympy

    lines = [f"% {system.name}, tier {equations.tier}: {equations.validity}"]
    for name, kernel in equations.kernels().items():
        lines.append(f"% {name}")
        for label, expression in kernel.outputs.items():
            left = rf"\mathrm{{{label.replace('_', ' ')}}}" if label == "K" else rf"\partial_{{{label}}} K"
            lines.append(rf"\begin{{equation}} {left} = {sympy.latex(expression)} \end{{equation}}")
    return "\n".join(lines)
