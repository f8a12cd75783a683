"""Tier p3 as a statement: every example type (k, k', y, eps, alpha, beta, gamma) with its weight, summed.

The sums over laws are those over their nodes, which are constants of the page.
"""

from typing import Any

import numpy as np

from derivations.chen.parameters import Parameters
from derivations.chen.population import exact as exact_tier
from derivations.chen.statements.parts import (
    CEN,
    CHANCE_WINS,
    CLOCK,
    COST,
    FEAT,
    GCEN,
    GFEAT,
    J_SIZE,
    K_SIZE,
    LAYER,
    M_SIZE,
    NOTATION,
    PAPER,
    PI,
    RHO,
    UNITARY,
    E,
    H,
    J,
    K,
    L,
    M,
    Q,
    act,
    law,
    nodes_of,
    power_constant,
    routing,
)
from derivations.contract import Initial
from derivations.indexed import nested
from derivations.statement import Base, Definition, Equation, Example, Indicator, Named, Statement, Step, function, sp

NA, NB, NC = sp.symbols("n_a n_b n_c", integer=True, positive=True)
I, N, R = sp.Idx("i", NA), sp.Idx("n", NB), sp.Idx("r", NC)
XA, WA, XB, WB, XC, WC, LABEL = map(Base, ("x_a", "w_a", "x_b", "w_b", "x_c", "w_c", "label"))
TYPE = (K, E, I, N, R)
CHANCE, OUTPUT, NORM, WEIGH, DRIFT = map(Base, ("chance", "f", "norm", "G", "R"))
COHERENT, SPEED, G_FEAT, G_CEN = map(Base, ("coherent", "V", "g_feat", "g_cen"))
BANKS = {"a": (FEAT, XA, I), "b": (CEN, XB, N), "c": (FEAT, XC, R)}
STATE = (
    Named(FEAT[M, J, K], "alignment of a filter with a feature"),
    Named(CEN[M, J, K], "alignment of a filter with a cluster centre"),
    Named(GCEN[M, K], "alignment of a router with a cluster centre"),
    Named(GFEAT[M, K], "alignment of a router with a feature"),
)
START = """rng = np.random.default_rng(0)
start = {"feat": 0.1 * rng.standard_normal((M, J, K)), "cen": 0.1 * rng.standard_normal((M, J, K))}
start |= {"gcen": np.zeros((M, K)), "gfeat": np.zeros((M, K))}"""


def sigma(z: Any) -> Any:
    """The activation."""
    return function("act")(z)


def slope(z: Any) -> Any:
    """Its derivative."""
    return function("slope")(z)


def banks() -> list[Definition]:
    """What the filters of an expert give together at every strength: outputs F and squared gradients S."""
    found = []
    for name, (rows, x, node) in BANKS.items():
        cluster = E if name == "c" else K
        z = x[node] * rows[M, J, cluster]
        found.append(Definition((Base(f"F_{name}")[M, cluster, node],), sp.Sum(sigma(z), J), "output along one signal"))
        found.append(
            Definition(
                (Base(f"S_{name}")[M, cluster, node],),
                sp.Sum((x[node] * slope(z)) ** 2, J),
                "squared gradient along it",
            )
        )
    return found


def of_types() -> list[Definition]:
    """Logits, outputs, and the weight of every example type in an expert's gradient."""
    at = (M, *TYPE)
    parts = [Base(f"{{}}_{name}") for name in BANKS]
    F, S = ([Base(b.name.format(x)) for b in parts] for x in ("F", "S"))
    logits = XA[I] * GFEAT[M, K] + XB[N] * GCEN[M, K] + XC[R] * GFEAT[M, E]
    pair = Indicator(sp.Ne(K, E)) / (K_SIZE * (K_SIZE - 1))
    margin = LABEL[I] * PI[at] * OUTPUT[at]
    size = CHANCE[TYPE] * CHANCE_WINS[at] * Q["q"](margin) * PI[at]
    gathered = sp.Sum(WEIGH[(L, *TYPE)] * OUTPUT[(L, *TYPE)], L)
    return [
        Definition((H[at],), logits, "logits"),
        Definition((OUTPUT[at],), F[0][M, K, I] + F[1][M, K, N] + F[2][M, E, R], "outputs of the experts"),
        Definition((NORM[at],), S[0][M, K, I] + S[1][M, K, N] + S[2][M, E, R], "squared size of a gradient over G"),
        *routing(TYPE),
        Definition((CHANCE[TYPE],), pair * WA[I] * WB[N] * WC[R], "chance of an example type"),
        Definition(
            (WEIGH[at],), size * LABEL[I], "weight of a type in the gradient of expert m (Lemma E.2, corrected)"
        ),
        Definition((DRIFT[at],), WEIGH[at] * OUTPUT[at] - PI[at] * gathered, "weight in the router's drift"),
        Definition((COHERENT[M],), nested(sp.Abs(WEIGH[at]) * sp.sqrt(NORM[at]), *TYPE), "mean size E|g|"),
    ]


def collected() -> list[Definition]:
    """Weights summed over everything but one signal."""
    found = []
    for array, name in ((WEIGH, "G"), (DRIFT, "R")):
        body = array[(M, *TYPE)]
        found += [
            Definition((Base(f"{name}_a")[M, K, I],), nested(body, E, N, R), "along the feature"),
            Definition((Base(f"{name}_b")[M, K, N],), nested(body, E, I, R), "along the centre"),
            Definition((Base(f"{name}_c")[M, E, R],), nested(body, K, I, N), "along the noise feature"),
        ]
    return found


def gradients() -> list[Definition]:
    """The mean gradients of the filters, and their normalisation."""
    G = {name: Base(f"G_{name}") for name in "abc"}
    own = sp.Sum(G["a"][M, K, I] * XA[I] * slope(XA[I] * FEAT[M, J, K]), I)
    noise = sp.Sum(G["c"][M, K, R] * XC[R] * slope(XC[R] * FEAT[M, J, K]), R)
    centre = sp.Sum(G["b"][M, K, N] * XB[N] * slope(XB[N] * CEN[M, J, K]), N)
    size = sp.sqrt(nested(G_FEAT[M, J, K] ** 2 + G_CEN[M, J, K] ** 2, J, K))
    return [
        Definition((G_FEAT[M, J, K],), own + noise, "mean gradient along a feature"),
        Definition((G_CEN[M, J, K],), centre, "mean gradient along a centre"),
        Definition(
            (SPEED[M],),
            UNITARY["per"](sp.Max(size, LAYER * COHERENT[M])),
            "one over the Frobenius norm; slower where the gradient is incoherent",
        ),
    ]


def equations() -> tuple[Equation, ...]:
    """Normalised descent of the experts, rho times descent of the router."""
    R_ = {name: Base(f"R_{name}") for name in "abc"}
    along = sp.Sum(R_["a"][M, K, I] * XA[I], I) + sp.Sum(R_["c"][M, K, R] * XC[R], R)
    centre = sp.Sum(R_["b"][M, K, N] * XB[N], N)
    at = "Algorithm 1, equation (3.4), in the mean"
    return (
        Equation(FEAT[M, J, K], SPEED[M] * G_FEAT[M, J, K], at),
        Equation(CEN[M, J, K], SPEED[M] * G_CEN[M, J, K], at),
        Equation(GCEN[M, K], RHO * centre, at),
        Equation(GFEAT[M, K], RHO * along, at),
    )


def constants(p: Parameters) -> tuple[Named, ...]:
    """Sizes, rates and the laws of the strengths."""
    count = len(law(p, "alpha", p.nodes)[0])
    return (
        Named(M_SIZE, "experts", 3),
        Named(J_SIZE, "filters of an expert", 4),
        Named(K_SIZE, "clusters", p.K),
        Named(RHO, "router step over expert step", p.rho),
        Named(LAYER, "coherence E g over E|g| below which an expert slows down", p.layer),
        *power_constant(p),
        *nodes_of(p, "alpha", "a", NA, I, p.nodes, signed=True),
        *nodes_of(p, "beta", "b", NB, N, p.nodes),
        *nodes_of(p, "gamma", "c", NC, R, p.nodes, signed=True),
        Named(LABEL[I], "label: the sign of the feature", f"np.repeat([1.0, -1.0], {count})"),
    )


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    p = initial.parameters
    found = {"M": p.M, "J": p.J, "K": p.K, "rho": p.rho, "delta_c": p.layer, "power": p.power}
    for name, short, signed in (("alpha", "a", True), ("beta", "b", False), ("gamma", "c", True)):
        x, w = law(p, name, p.nodes, signed=signed)
        found |= {f"n_{short}": len(x), f"x_{short}": x, f"w_{short}": w}
    return {**found, "label": np.repeat([1.0, -1.0], found["n_a"] // 2)}


def statement(p: Parameters, tier: str) -> Statement:
    """The exact population flow for three patches."""
    at = (M, *TYPE)
    loss = CHANCE[TYPE] * CHANCE_WINS[at] * COST["cost"](LABEL[I] * PI[at] * OUTPUT[at])
    stated = exact_tier(p)
    return Statement(
        name=f"chen, {tier}",
        title="population flow of a top-1 routed mixture of patch classifiers, three patches",
        source=f"{PAPER}, Definition 3.1, Algorithm 1, equations (3.1) and (3.4), Lemma E.2 (corrected)",
        clock=CLOCK,
        validity=stated.about.validity,
        neglects=stated.about.neglects,
        indices=[
            ((M, L), "experts"),
            ((J,), "filters"),
            ((K, E), "clusters"),
            ((I,), "strengths of the feature, with the label"),
            ((N,), "strengths of the centre"),
            ((R,), "strengths of the feature noise, with its sign"),
        ],
        state=STATE,
        constants=constants(p),
        bind=bind,
        definitions=(*act(p), Q, COST, UNITARY, *banks(), *of_types(), *collected(), *gradients()),
        steps=examples(),
        equations=equations(),
        loss=nested(loss, M, *TYPE),
        notation={**NOTATION, "g_feat": ("g^{x}", "gx"), "g_cen": ("g^{c}", "gc"), **banked()},
        example=Example(START, "feat", 0.5, 1.0),
    )


def examples() -> tuple[Step, ...]:
    """What an example is."""
    y, a, b, eps, c, v, w, z = sp.symbols("y alpha beta epsilon gamma v_k c_k v_e")
    about = (
        "an example of cluster k: its feature with the label's sign, its centre, and another cluster's feature as noise"
    )
    return (Step(sp.Symbol("patches"), function("of")(y * a * v, b * w, eps * c * z), about),)


def banked() -> dict[str, tuple[str, str]]:
    """The symbols of the arrays along one signal."""
    signals = {"a": ("\\alpha", "α"), "b": ("\\beta", "β"), "c": ("\\gamma", "γ")}
    found = {f"{x}_{n}": (f"{x}^{{{t}}}", f"{x}{u}") for x in "FSGR" for n, (t, u) in signals.items()}
    return found | {"of": ("", ""), "patches": ("\\text{patches}", "patches")}
