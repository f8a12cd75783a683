"""Vocabulary of the statements of system `chen`: indices, names, symbols, the activation, the laws of the strengths."""

from typing import Any

import numpy as np

from derivations.chen import rules
from derivations.chen.kernels import POWER, activation, slope
from derivations.chen.kernels import Z as ARGUMENT
from derivations.chen.nodes import rule
from derivations.chen.parameters import Parameters
from derivations.statement import Base, Definition, Kernel, Largest, Named, Rule, log1p, sp

M_SIZE, J_SIZE, K_SIZE = sp.symbols("M J K", integer=True, positive=True)
RHO, LAYER, UNIT = sp.symbols("rho delta_c u", real=True)
M, L = (sp.Idx(n, M_SIZE) for n in "ml")
J = sp.Idx("j", J_SIZE)
K, E = (sp.Idx(n, K_SIZE) for n in "ke")
FEAT, CEN, GCEN, GFEAT = map(Base, ("feat", "cen", "gcen", "gfeat"))
H, CHANCE_WINS, PI = map(Base, ("h", "p", "pi"))
Q = Kernel("q", (UNIT,), {"q": 1 / (1 + sp.exp(UNIT))}, note="slope of the logistic loss")
COST = Kernel(
    "cost",
    (UNIT,),
    {"cost": sp.Max(-UNIT, 0) + log1p(sp.exp(-sp.Abs(UNIT)))},
    {"cost": (sp.log(1 + sp.exp(-UNIT)),)},
    note="logistic loss",
)
UNITARY = Kernel("per", (UNIT,), {"per": sp.Piecewise((0, sp.Eq(UNIT, 0)), (1 / UNIT, True))},
                 note="one over a norm; an expert without a gradient rests")  # fmt: skip
WINNING = Rule("winning", rules.winning, compiled="derivations.chen.routing_loops:winning")
ANY = (-np.inf, np.inf)
"""Bounds of an overlap of weights that are not normalised."""
PAPER = "Chen et al. 2022"
CLOCK = (
    "`t` is the expert step times the number of steps: experts move at unit speed, the router's step is rho times that"
)
NOTATION = {
    "feat": ("x", "x"),
    "cen": ("c", "c"),
    "gfeat": ("\\theta", "θ"),
    "gcen": ("\\vartheta", "ϑ"),
    "pi": ("\\pi", "π"),
    "cost": ("\\ell", "ℓ"),
    "act": ("\\sigma", "σ"),
    "slope": ("\\sigma'", "σ′"),
    "psi": ("\\psi", "ψ"),
    "strength": ("s", "s"),
    "delta_c": ("\\delta", "δ"),
    "power": ("\\mathfrak{q}", "𝔮"),
    "x_a": ("\\alpha", "α"),
    "x_b": ("\\beta", "β"),
    "x_c": ("\\gamma", "γ"),
    "w_a": ("w^{\\alpha}", "wα"),
    "w_b": ("w^{\\beta}", "wβ"),
    "w_c": ("w^{\\gamma}", "wγ"),
    "label": ("y", "y"),
    "member": ("\\mu", "μ"),
    "zeta": ("\\zeta", "ζ"),
    "chance": ("\\kappa", "κ"),
    "coherent": ("C", "C"),
    "beta": ("\\beta", "β"),
    "per": ("\\nu", "ν"),
    "w_beta": ("w", "w"),
}


def act(p: Parameters) -> tuple[Kernel, ...]:
    """The activation and its slope."""
    at_kinks = "; at a kink the mean of both sides" if p.activation in ("relu", "celu") else ""
    return (
        Kernel("act", (ARGUMENT,), {"act": activation(p.activation)}, note=f"activation {p.activation}"),
        Kernel("slope", (ARGUMENT,), {"slope": slope(p.activation)}, note="its derivative" + at_kinks),
    )


def power_constant(p: Parameters) -> tuple[Named, ...]:
    """The exponent of activation power."""
    return (Named(POWER, "exponent of the activation", p.power),) if p.activation == "power" else ()


def law(p: Parameters, name: str, nodes: int, *, signed: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of E over the distribution of a strength; with `signed` also over its sign."""
    x, w = rule(getattr(p, name), p.laws, nodes)
    return (np.concatenate([x, -x]), np.concatenate([w, w]) / 2) if signed else (x, w)


def said(p: Parameters, name: str, nodes: int) -> str:
    """Return a description of the nodes of a distribution."""
    ends = getattr(p, name)
    if p.laws == "points" or len(ends) == 1:
        return f"{name}: equally likely values {', '.join(f'{v:g}' for v in ends)}"
    return f"{name}: uniform on [{ends[0]:g}, {ends[-1]:g}], by {nodes} Gauss-Legendre nodes"


def literal(values: Any) -> str:
    """An array as NumPy code."""
    return f"np.array({np.asarray(values).tolist()})"


def nodes_of(
    p: Parameters, name: str, short: str, size: Any, index: Any, nodes: int, *, signed: bool = False
) -> list[Named]:
    """The constants with the nodes and weights of a distribution."""
    x, w = law(p, name, nodes, signed=signed)
    about = said(p, name, nodes) + (", with both signs" if signed else "")
    return [
        Named(size, f"nodes of {name}", len(x)),
        Named(Base(f"x_{short}")[index], about, literal(x)),
        Named(Base(f"w_{short}")[index], "their weights", literal(w)),
    ]


def routing(rest: tuple[Any, ...]) -> tuple[Definition, Definition]:
    """The distribution of the chosen expert, and the softmax, from the logits h[m, rest]."""
    others, own = H[(L, *rest)], H[(M, *rest)]
    top = Largest(others, L)
    means = sp.Integral(sp.Product(sp.Min(1, UNIT - others), L) / sp.Min(1, UNIT - own), (UNIT, top, own + 1))
    where = (
        "chance that expert m has the largest logit under uniform noise on [0, 1]; 0 where h_m + 1 is below the largest"
    )
    return (
        Definition((CHANCE_WINS[(M, *rest)],), (H,), where, rule=WINNING, means=means),
        Definition((PI[(M, *rest)],), sp.exp(own) / sp.Sum(sp.exp(others), L), "softmax of the logits"),
    )
