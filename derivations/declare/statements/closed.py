"""Closed forms of the pair kernels of a declared model, as exact SymPy expressions of its order parameters.

They are parsed from the generated code with exact numbers, so that a page shows the code that is evaluated.
"""

import ast
import dataclasses
import functools
import inspect
import math
import re
from collections.abc import Callable
from typing import Any

from derivations.declare import symbols
from derivations.declare.declaration import Declaration
from derivations.declare.gates import Shape
from derivations.declare.kernels import Kernels
from derivations.declare.moments import Program, Tables
from derivations.declare.rows import Rows

SMALL = 60
"""Forms with up to this number of operations are simplified."""
LETTERS = ("ik", "jl")
"""Indices of two students, of two teachers."""


@dataclasses.dataclass(frozen=True)
class Forms:
    """The closed forms of one pair of kinds of units, in the symbols of `Names`.

    `mean` is K = E[phi_i phi_k]; `slopes[s, t]` is V = E[d_s phi_i d_t phi_k]; `bends[s, r]` is W = E[d_s d_r phi_i
    phi_k], plus 2 d phi_i/dq_s on the diagonal. Slopes and bends exist only if i is a student.
    """

    first: int
    second: int
    indices: str
    mean: Any
    slopes: dict[tuple[str, str], Any]
    bends: dict[tuple[str, str], Any]


@dataclasses.dataclass
class Names:
    """Symbols of order parameters and their LaTeX; `series` contains the S_ab in use by (gates, orders)."""

    rows: Rows
    printed: dict[Any, str] = dataclasses.field(default_factory=dict)
    series: dict[Any, tuple[Any, ...]] = dataclasses.field(default_factory=dict)

    def overlap(self, left: tuple[int, str, str], right: tuple[int, str, str]) -> Any:
        """The covariance of the fields of two vectors (group, slot, index), an entry of an order parameter.

        For inputs with eigenvalues it is an entry of S, which the page defines.
        """
        import sympy

        places = list(self.rows.starts)
        (g, r, i), (h, s, j) = sorted((left, right), key=lambda v: places.index((v[0], v[1])))
        if (g, r) == (h, s) and j < i:
            i, j = j, i
        block = next(b for b in self.rows.blocks if b.rows == self.rows.of(g, r) and b.columns == self.rows.of(h, s))
        same_vector = (g, r, i) == (h, s, j)
        scaled = self.rows.declaration.inputs is not None
        name = f"S_{block.name}" if scaled else block.name
        symbol = sympy.Symbol(f"{name}[{i},{j}]", real=True, positive=True if same_vector else None)
        self.printed[symbol] = f"{self.tex(block.name, 'S' if scaled else '')}_{{{i}{j}}}"
        return symbol

    def centre(self, slot: str, i: str) -> Any:
        """The mean of a field as a symbol."""
        import sympy

        superscript = "" if self.rows.single else slot
        symbol = sympy.Symbol(f"mu{superscript and f'_{superscript}'}[{i}]", real=True)
        self.printed[symbol] = rf"\mu{superscript and f'^{{{superscript}}}'}_{{{i}}}"
        return symbol

    def tex(self, name: str, replacement: str = "", space: str = "") -> str:
        """A block's name in LaTeX: its letter or `replacement`, with groups, slots and eigenspaces above if there are
        several.
        """
        *groups, letter, slots = name.split("_")
        several = not self.rows.single
        superscripts = (
            [rf"\mathrm{{{group}}}" for group in groups] + ([slots] if several else []) + ([space] if space else [])
        )
        hatted = self.rows.declaration.weights == "normalised" and letter in "QM"
        letter = replacement or letter
        hat = rf"\hat{{{letter}}}" if hatted else letter
        return hat + (f"^{{{', '.join(superscripts)}}}" if superscripts else "")

    def correlation(self, entry: tuple[Any, ...], slots: tuple[str, str]) -> Any:
        """S_ab of two gates (kind, slope, order, kind, slope, order) in these slots of two units."""
        import sympy

        kinds = [f"{kind}({slope})" for kind, slope in (entry[0:2], entry[3:5])]
        pairs = list(dict.fromkeys([*(value[:2] for value in self.series.values()), tuple(kinds)]))
        prime = "'" * pairs.index(tuple(kinds))
        symbol = sympy.Symbol(f"S{prime}_{entry[2]},{entry[5]}", real=True)
        self.series[symbol] = (*kinds, entry, slots)
        self.printed[symbol] = f"S{prime}_{{{entry[2]}{entry[5]}}}"
        return symbol


def forms(declared: Declaration, kernels: Kernels, names: Names) -> list[Forms]:
    """The closed forms of all pairs of kinds; empty if the means have no closed form."""
    if kernels.closed:
        return []
    texts, pair_forms = dict(kernels.texts), []
    programs = [name for name in texts if re.match(r"(pair|self|mean|quad)_", name)]
    students, total = len(declared.students), len(declared.groups)
    for g in range(total):
        for h in range(g, total):
            if not declared.meet(g, h, declared.watched):
                continue
            outputs = values(texts, programs, f"mean_{g}_{h}", (g, h), kernels, names)
            slopes, bends = {}, {}
            if g < students and declared.meet(g, h):
                derivatives = values(texts, programs, f"pair_{g}_{h}", (g, h), kernels, names)
                first_slots, second_slots = declared.groups[g].slots, declared.groups[h].slots
                slopes = dict(zip([(s, t) for s in first_slots for t in second_slots], derivatives, strict=False))
                bends = dict(
                    zip([(s, r) for s in first_slots for r in first_slots], derivatives[len(slopes) :], strict=False)
                )
            pair_forms.append(Forms(g, h, letters(g, h, students), outputs[0], slopes, bends))
    return pair_forms


def alone(names: Names, number: int, shape: Shape) -> Any:
    """E[phi_i] of a unit of a group of students, which labels of clusters multiply."""
    import sympy

    declared = names.rows.declaration
    group, has_means = declared.groups[number], declared.moved
    program = Program([shape], [group.scalars], Tables(), moved=has_means)
    (value,) = program.expressions([(shape.value,)])
    places: dict[Any, Any] = {}
    for a, slot in enumerate(group.slots):
        places |= {program.entry(a, b): names.overlap((number, slot, "i"), (number, other_slot, "i"))
                   for b, other_slot in enumerate(group.slots)}  # fmt: skip
        places |= {program.centre(a): names.centre(slot, "i")} if has_means else {}
    for word in group.scalars:
        unit_number = sympy.Symbol(f"{word}[i]", real=True)
        names.printed[unit_number] = f"{word}_i"
        places[sympy.Symbol(f"b0_{word}", real=True)] = unit_number
    return tidy(sympy.sympify(value).subs(places, simultaneous=True), names)


def letters(g: int, h: int, students: int) -> str:
    """The two indices of a unit of group g and one of group h."""
    if (g < students) == (h < students):
        return LETTERS[g >= students]
    return "ij"


def values(
    texts: dict[str, str], programs: list[str], name: str, kinds: tuple[int, int], kernels: Kernels, names: Names
) -> list[Any]:
    """The outputs of a generated function at symbols."""
    import sympy

    number, layout = programs.index(name), names.rows
    declared, students = layout.declaration, len(layout.declaration.students)
    unit = (declared.weights == "normalised" and declared.inputs is None) or bool(kernels.pairs[number])
    index = letters(*kinds, students)
    fields = [(k, slot, i) for k, i in zip(kinds, index, strict=True) for slot in declared.groups[k].slots]

    def cell(a: int, b: int) -> Any:
        left = fields[a]
        if a == b and (kernels.pairs[number] or (unit and left[0] < students)):
            return sympy.S.One
        return names.overlap(left, fields[b])

    arguments: list[Any] = []
    function = _function(texts[name], name)
    for argument in inspect.signature(function).parameters:
        if match := re.fullmatch(r"c(\d+)_(\d+)", argument):
            arguments.append(cell(int(match[1]), int(match[2])))
        elif argument == "S":
            left, right = (declared.groups[k].slots for k in kinds)
            slots = (
                (left[kernels.places[number][0]], right[kernels.places[number][1]])
                if kernels.pairs[number]
                else ("", "")
            )
            arguments.append([names.correlation(entry, slots) for entry in kernels.pairs[number]])
        elif argument == "m":
            arguments.append([_mean_symbol(entry, names) for entry in kernels.means[number]])
        elif match := re.fullmatch(r"b(\d)_(\w+)", argument):
            arguments.append(sympy.Symbol(f"{match[2]}[{index[int(match[1])]}]", real=True))
            names.printed[arguments[-1]] = f"{match[2]}_{index[int(match[1])]}"
        elif match := re.fullmatch(r"mu_(\d+)", argument):
            _, slot, i = fields[int(match[1])]
            arguments.append(names.centre(slot, i))
        else:
            arguments.append(sympy.Symbol(argument, real=True))
    return [tidy(value, names) for value in function(*arguments)]


def _mean_symbol(entry: tuple[Any, ...], names: Names) -> Any:
    """E[F^(a)(z)] of a series gate at unit variance."""
    import sympy

    kind, slope, order = entry
    symbol = sympy.Symbol(f"E[{kind}({slope})^({order})]", real=True)
    names.printed[symbol] = rf"\mathrm{{E}}[\mathrm{{{kind}}}^{{({order})}}]"
    return symbol


def tidy(value: Any, names: Names) -> Any:
    """An expression for printing: short ones simplified, those of series in terms of S_ab."""
    import sympy

    value = sympy.sympify(value)
    series = [s for s in names.series if value.has(s)]
    if series:
        return sympy.collect(sympy.expand(value), sorted(series, key=str))
    if value.count_ops() <= SMALL:
        value = sympy.simplify(value)
    asin = value.replace(sympy.Function("angle"), lambda t, r: sympy.asin(t / sympy.sqrt(sympy.expand(t**2 + r**2))))
    asin = asin.replace(
        sympy.Function("orthant"),
        lambda u, v, X, Y, T, r: both_below()(u / sympy.sqrt(X), v / sympy.sqrt(Y), T / sympy.sqrt(X * Y)),
    )
    return asin.replace(
        lambda e: e.is_Pow and e.exp in (sympy.Rational(-1, 2), sympy.Rational(1, 2)) and e.base.is_Add,
        lambda e: sympy.factor(e.base) ** e.exp,
    )


@functools.cache
def both_below() -> Any:
    """Phi_2(h, k, rho) = P(x < h, y < k) of standard normal x, y with correlation rho, as a SymPy function."""
    import sympy

    class Phi_2(sympy.Function):
        nargs = 3

        def _latex(self, printer: Any) -> str:
            # SymPy calls this method to print the function.
            arguments = [printer._print(e) for e in self.args]  # noqa: SLF001
            return r"\Phi_2\left(" + ", ".join(arguments) + r"\right)"

        def _eval_evalf(self, prec: int) -> Any:
            from hermite.means import factor, mean

            h, k, rho = (float(str(e.evalf(17))) for e in self.args)
            return sympy.Float(mean([factor("step")] * 2, [[1.0, rho], [rho, 1.0]], [h, k]).value)

    return Phi_2


class _Exact(ast.NodeTransformer):
    """Replaces floating-point numbers of generated code by exact ones."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if not isinstance(node.value, float):
            return node
        return ast.Call(ast.Name("number", ast.Load()), [ast.Constant(node.value)], [])


def _number(value: float) -> Any:
    import sympy

    return sympy.pi if value == math.pi else symbols.exact(value)


def _function(text: str, name: str) -> Callable[..., Any]:
    """A generated function that accepts symbols."""
    import sympy

    tree = ast.fix_missing_locations(_Exact().visit(ast.parse(text)))
    space: dict[str, Any] = {
        "number": _number, "root": sympy.sqrt, "sqrt": sympy.sqrt, "angle": sympy.Function("angle"),
        "orthant": sympy.Function("orthant"), "step": sympy.Function("step"), "absolute": sympy.Abs,
        "exp": sympy.exp, "cos": sympy.cos, "sin": sympy.sin, "erf": sympy.erf, "np": sympy,
    }  # fmt: skip
    exec(compile(tree, name, "exec"), space)
    return space[name]


def tilted(has_means: bool = False) -> tuple[tuple[str, Any], ...]:
    """I = E[g'(z_i) g'(z_k) g(z_m) g(z_n)], g(z) = erf(z/sqrt 2), as named expressions of the covariance C.

    If `has_means` is True the fields have means mu, and J = E[g'(z_i) g'(z_k) g(z_m)] comes last. Source: Saad & Solla
    1995 for fields without means (`derivations.declare.arcsines`).
    """
    import sympy

    def c(a: str, b: str) -> Any:
        return sympy.Symbol(f"C_{{{''.join(sorted(a + b))}}}", real=True)

    size_i, size_k = 1 + c("i", "i"), 1 + c("k", "k")
    L0, L1, L2, L4 = sympy.symbols("Lambda_0 Lambda_1 Lambda_2 Lambda_4", positive=True)
    cross = c("i", "k")

    def variance(m: str) -> Any:
        return (
            L4 * (1 + c(m, m)) - c("k", m) ** 2 * size_i - c("i", m) ** 2 * size_k + 2 * cross * c("i", m) * c("k", m)
        )

    definitions = (
        ("Lambda_4", size_i * size_k - cross**2),
        (
            "Lambda_0",
            L4 * c("m", "n")
            - c("k", "m") * c("k", "n") * size_i
            - c("i", "m") * c("i", "n") * size_k
            + cross * (c("i", "m") * c("k", "n") + c("i", "n") * c("k", "m")),
        ),
        ("Lambda_1", variance("m")),
        ("Lambda_2", variance("n")),
    )
    if not has_means:
        return (*definitions, ("I", 4 / sympy.pi**2 / sympy.sqrt(L4) * sympy.asin(L0 / sympy.sqrt(L1 * L2))))
    epsilon, *heights = sympy.symbols("epsilon h_m h_n", real=True)
    mu = {name: sympy.Symbol(f"mu_{name}", real=True) for name in "ikmn"}
    phi, phi2 = sympy.Function("Phi"), sympy.Function("Phi_2")

    def height(m: str, size: Any) -> Any:
        first, last = size_k * c("i", m) - cross * c("k", m), size_i * c("k", m) - cross * c("i", m)
        return (L4 * mu[m] - first * mu["i"] - last * mu["k"]) / sympy.sqrt(L4 * size)

    common = 2 / sympy.pi / sympy.sqrt(L4) * sympy.exp(-epsilon / 2)
    pair_mean = 4 * phi2(*heights, L0 / sympy.sqrt(L1 * L2)) - 2 * phi(heights[0]) - 2 * phi(heights[1]) + 1
    return (
        *definitions,
        ("epsilon", (size_k * mu["i"] ** 2 - 2 * cross * mu["i"] * mu["k"] + size_i * mu["k"] ** 2) / L4),
        ("h_m", height("m", L1)),
        ("h_n", height("n", L2)),
        ("I", common * pair_mean),
        ("J", common * (2 * phi(heights[0]) - 1)),
    )
