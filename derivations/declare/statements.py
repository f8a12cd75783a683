"""The page of a declared model: order parameters, conventions, kernels and equations, as text, LaTeX and Python."""

import inspect
import math
from typing import Any

import numpy as np

from derivations.contract import Page, UsageError
from derivations.declare import arrays, loops, population, tilt
from derivations.declare.declaration import Declaration
from derivations.declare.initial import enter
from derivations.declare.kernels import Kernels
from derivations.declare.remembered import kernels
from derivations.declare.rows import Rows
from derivations.declare.summary import conventions, gradient_note
from derivations.declare.system import numbers, rows
from derivations.declare.tiers import settled

KEPT = 30
"""A kernel of more operations than this is named on the page and printed in Python alone."""


def statement(parameters: Any, tier: str) -> Page:
    """The page of a tier.  Raises `UsageError` for a tier without one."""
    declared: Declaration = parameters.declaration
    found = kernels(declared, numbers(parameters))
    tier = settled(parameters) if tier == "auto" else tier
    if tier == "leading":
        from derivations.declare import leading

        k, gain = leading.growth(parameters)
        lines = _head(parameters, tier, [f"tier leading: information exponent {k}"])
        law = f"dM_ij/dt = a_i sum_l b_l g M_il^{k - 1} P_lj,  g = {gain:.12g}"
        told = f"the time of escape from a random start grows like {leading.scaling(k)}"
        return Page("\n".join([*lines, "", law, told]) + "\n", _document(parameters, [], [law, told]), "")
    shown = _kernels(declared, found) if not found.closed else []
    text = [
        *_head(parameters, tier, explained(parameters, found)),
        "",
        "Kernels of units i and j (<u,v> the overlap of two vectors; S_k the series of two gates)",
    ]
    text += [f"  {name}: {what}\n    = {value}" for name, what, value, _ in shown] or ["  none in closed form"]
    text += ["", "Equations of motion", *(f"  {line}" for line in equations(declared))]
    python = _python(parameters, found) if tier == "exact" else ""
    return Page("\n".join(text) + "\n", _document(parameters, shown, explained(parameters, found)), python)


def _head(parameters: Any, tier: str, why: list[str]) -> list[str]:
    declared, at = parameters.declaration, rows(parameters)
    lines = [f"{declared.title}", f"  {declared.source}" if declared.source else "", f"tier {tier}", "", "Model"]
    lines += [f"  student {g.name}: {g.text}, output {g.output}" for g in declared.students]
    lines += [f"  teacher {g.name}: {g.text}, output {g.output}" for g in declared.teachers]
    lines += ["", "Conventions", *(f"  {key}: {value}" for key, value in conventions(declared).items())]
    if gradient_note(declared):
        lines.append(f"  gradient: {gradient_note(declared)}")
    lines += ["", "Order parameters", *(f"  {line}" for line in _parameters(at)), "", "Why it closes"]
    return [line for line in lines if line is not None] + [f"  {line}" for line in why]


def _parameters(at: Rows) -> list[str]:
    lines = [f"{b.name} ({', '.join(b.dims)}): {b.meaning}" for b in at.blocks]
    return lines + [
        f"{at.declaration.students[g].named(word)}: trained or given number of the units" for g, word, _ in at.scalars
    ]


def explained(parameters: Any, found: Kernels | None = None) -> list[str]:
    """Why the system closes (or not), which method serves which term, and the worst bound."""
    declared: Declaration = parameters.declaration
    found = found or kernels(declared, numbers(parameters))
    if found.closed:
        return [
            f"no closed form: {found.closed}",
            "every mean is taken over randomised quasi-random points (tier sampled)",
        ]
    lines = ["the inputs are Gaussian: every mean depends on the overlaps of the vectors alone"]
    if any(found.pairs):
        lines.append("means of two gates: their series in the correlation at unit variance, truncated below 1e-13")
    else:
        lines.append("means of pairs of units: closed forms, exact to rounding")
    if declared.limit == "online":
        lines.append(f"second-order term: {found.second or 'closed form (means of four units)'}")
        lines += ["  it is sampled (tier mixed)"] if found.second else []
    return lines


def equations(declared: Declaration) -> list[str]:
    """The motion of the overlaps, in words of the Gram matrix."""
    tangent = {"free": "", "sphere": " - (D_aa / G_aa) G_ab", "normalised": " - D_aa G_ab, over the norms"}
    eta = "eta " if declared.limit == "online" else ""
    lines = [
        "C_ab = dL/dG_ab for two vectors (twice that on the diagonal), a sum of the kernels above over pairs of units",
        f"D_ab = sum_c C_ac G_cb{' + lambda G_ab' if declared.decay else ''}{tangent[declared.weights]}",
        f"dQ_ab/dt = -{eta}(D_ab + D_ba)" + (" + (eta^2/B) E[c_a c_b]" if declared.limit == "online" else ""),
        f"dM_ab/dt = -{eta}D_ab",
    ]
    if declared.limit == "online" and declared.weights == "sphere":
        lines[2] += " - (eta^2/2B)(E[c_a^2]/Q_aa + E[c_b^2]/Q_bb) Q_ab"
        lines[3] += " - (eta^2/2B)(E[c_a^2]/Q_aa) M_ab"
    if any(group.output == "trained" or group.scalars for group in declared.students):
        lines.append(f"readouts and scalars: ds/dt = -{eta}dL/ds")
    return lines


def _kernels(declared: Declaration, found: Kernels) -> list[tuple[str, str, str, str]]:
    """(name, what it is, text, LaTeX) of the first output of every mean_g_h and pair_g_h that a page can hold."""
    import sympy

    space: dict[str, Any] = {
        "pi": sympy.pi, "root": sympy.sqrt, "angle": lambda t, r: sympy.atan2(t, r), "sqrt": sympy.sqrt,
        "exp": sympy.exp, "cos": sympy.cos, "sin": sympy.sin, "erf": sympy.erf, "np": sympy,
    }  # fmt: skip
    shown = []
    texts = dict(found.texts)
    for name, text in texts.items():
        if not name.startswith(("mean_", "pair_")) or name.startswith("mean_self"):
            continue
        exec(text.replace(repr(math.pi), "pi"), space)
        g, h = (int(n) for n in name.split("_")[1:3])
        cells, printed = _cells(declared, g, h)
        series = [sympy.Symbol(f"S_{k}") for k in range(64)]
        given = [
            series if n in ("S", "m") else cells.get(n, sympy.Symbol(n, real=True))
            for n in inspect.signature(space[name]).parameters
        ]
        for what, value in zip(_names(declared, name, g, h), space[name](*given), strict=False):
            tidy = sympy.nsimplify(sympy.sympify(value), rational=True)
            if tidy.count_ops() <= KEPT:
                tidy = sympy.simplify(tidy)
                shown.append((name, what, str(tidy), sympy.latex(tidy, symbol_names=printed)))
    return shown


def _cells(declared: Declaration, g: int, h: int) -> tuple[dict[str, Any], dict[Any, str]]:
    """The symbols of the covariance of units i of group g and j of group h, and how LaTeX prints them."""
    import sympy

    fields = [f"{s}_i" for s in declared.groups[g].slots] + [f"{s}_j" for s in declared.groups[h].slots]
    cells, printed = {}, {}
    for a, one in enumerate(fields):
        for b, two in enumerate(fields[a:], a):
            symbol = sympy.Symbol(f"<{one},{two}>", real=True, positive=True if a == b else None)
            cells[f"c{a}_{b}"], printed[symbol] = symbol, rf"\langle {one},{two}\rangle"
    return cells, printed


def _names(declared: Declaration, name: str, g: int, h: int) -> list[str]:
    one, two = declared.groups[g], declared.groups[h]
    if name.startswith("mean"):
        return [f"E[phi_i phi_j], i of group {g}, j of group {h}"]
    found = [f"E[d_{s} phi_i d_{t} phi_j]" for s in one.slots for t in two.slots]
    return found + [f"E[d_{s} d_{t} phi_i phi_j]" for s in one.slots for t in one.slots]


def _document(parameters: Any, shown: list[tuple[str, str, str, str]], why: list[str]) -> str:
    """A LaTeX document."""
    declared, at = parameters.declaration, rows(parameters)

    def plain(text: str) -> str:
        for sign, written in (
            ("\\", r"\textbackslash "),
            ("_", r"\_"),
            ("^", r"\^{}"),
            ("&", r"\&"),
            ("%", r"\%"),
            ("#", r"\#"),
        ):
            text = text.replace(sign, written)
        return text.replace("$", r"\$").replace("{}{}", "{}")

    lines = [
        r"\documentclass{article}",
        r"\usepackage{amsmath}",
        r"\begin{document}",
        rf"\section*{{{plain(declared.title)}}}",
    ]
    lines += [plain(declared.source), "", r"\paragraph{Model}"]
    lines += [rf"Student \texttt{{{plain(g.text)}}}, teacher side below.\\" for g in declared.students]
    lines += [rf"Teacher \texttt{{{plain(g.text)}}}.\\" for g in declared.teachers]
    lines += [
        r"\paragraph{Conventions}",
        ", ".join(f"{plain(k)}: {plain(v)}" for k, v in conventions(declared).items()) + ".",
    ]
    lines += [
        r"\paragraph{Order parameters}",
        r"\begin{itemize}",
        *(rf"\item {plain(x)}" for x in _parameters(at)),
        r"\end{itemize}",
    ]
    lines += [r"\paragraph{Closure}", *(rf"{plain(line)}.\\" for line in why)]
    if shown:
        lines.append(r"\paragraph{Kernels}")
        for _, what, _, value in shown:
            lines += [plain(what) + ":", r"\begin{equation*}", value, r"\end{equation*}"]
    lines += [
        r"\paragraph{Equations of motion}",
        r"\begin{itemize}",
        *(rf"\item {plain(x)}" for x in equations(declared)),
        r"\end{itemize}",
    ]
    return "\n".join([*lines, r"\end{document}"]) + "\n"


SCRIPT = """

def drift_of(t, y):
    return flow(t, y, *ARGUMENTS)


if __name__ == "__main__":
    from scipy.integrate import solve_ivp

    run = solve_ivp(drift_of, (0.0, UNTIL), START, method="DOP853", rtol=1e-8, atol=1e-10)
    print("loss at the start", loss(START, *ARGUMENTS))
    print("loss at time", run.t[-1], loss(run.y[:, -1], *ARGUMENTS))
"""


def _python(parameters: Any, found: Kernels) -> str:
    """A script that runs alone with NumPy and SciPy: the generated functions, the loops around them, and a start."""
    if found.closed or (parameters.declaration.limit == "online" and found.second):
        raise UsageError("there is no exact flow to print as Python")
    initial = enter(parameters, None, np.random.default_rng(0))
    equations_ = population.exact(parameters)
    named = {"second": population.NONE, **dict(found.texts)}
    texts = [text for name, text in named.items() if name != "pairs" and not name.startswith("lanes_")]
    tilted = (tilt.half_arcsine, tilt.add_arcsines, tilt.conditioned, tilt.tilted) if "erf_units" in named else ()
    around = (*tilted, loops.look_up, loops.seen, loops.motion, loops.packed, loops.flow,
              loops.parts, loops.watch, loops.loss)  # fmt: skip
    helpers = [inspect.getsource(function) for function in around]
    values = equations_.arguments(initial)
    plain = (*values[: arrays.Arguments._fields.index("cells")], *values[arrays.FIXED :])  # without tables of lanes
    given = ",\n    ".join(_literal(value) for value in plain)
    start = f"START = {_literal(equations_.start(initial))}\nARGUMENTS = (\n    {given},\n)\nUNTIL = 100.0\n"
    names = ", ".join(part.name for part in rows(parameters).layout.parts)
    head = f'"""{parameters.declaration.title}: the exact flow, derived by odesim.  State: {names}."""\n\n'
    head += "import math\nfrom math import cos, erf, exp, sin, sqrt\n\nimport numpy as np\n"
    return "\n\n".join([head, *texts, *helpers, start]) + SCRIPT


def _literal(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r}, np.{value.dtype.name}).reshape({value.shape})"
    return repr(value)
