"""Tier `gated`: the exact flow of neurons behind a gate, with the correlation of its decision and the other fields.

With th = theta/|theta| the direction of the neuron's gate, tau_c = rho th.v_c, om = th.w* (fixed) and q = w.th,

    U = (1/CJ) sum_c E[1(th.z >= -tau_c) (f_c(u_c) + s_c g(u_g)) a sigma(w.z + t_c)],   t_c = rho nu_c + b.

A field u has regression on the two others only through its overlaps, and E[h_i(u) F(w.z, th.z)] is i!^(-1/2) times the
mean of (kappa d_1 + om d_2)^i F (Price), so that with B_jn = E[d^j sigma(w.z + t) d^n 1(th.z + tau >= 0)]

    U = (a/CJ) sum_c sum_{j,n} sqrt((j+n)!)/(j! n!) (beta_{j+n} kappa^j om_c^n + s gamma_{j+n} xi^j om_g^n) B_jn

which is finite for links of finite degree, even if the triple Hermite series of the specification (its section 3.8) is
infinite. d_t and d_tau raise an index of B by one, and d_q raises both (Price): the gradient of the potential follows
by these rules and by the calculus of indices. The flow closes on 2C + 2 overlaps.

Loops compute the table of means B in place of its formulas (`derivations.kawata.gated_loops`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, Observables
from derivations.indexed import gradient
from derivations.kawata import population, summary
from derivations.kawata.gated_loops import NODES
from derivations.kawata.initial import expert_of, join, length_outside
from derivations.kawata.parameters import Parameters, activation_series, degree
from derivations.kawata.tiers import coefficients, flow
from derivations.kawata.tiers.coefficients import DENSITY, DISTRIBUTION, ORDER, SIGMA, TERM, WIDTH, J, monomial
from derivations.kawata.tiers.flow import (
    BETA,
    BY_KAPPA,
    BY_NU,
    BY_XI,
    C1,
    C2,
    DEGREE,
    GAMMA,
    J_SIZE,
    KAPPA,
    LOCAL,
    NU,
    RADIAL,
    REMOTE,
    RHO,
    XI,
    A,
    B,
    C,
    S,
    U,
)
from derivations.statement import (
    Base,
    Definition,
    E,
    Equation,
    Example,
    He,
    Indicator,
    Kernel,
    Mean,
    Named,
    Shortcut,
    Statement,
    Step,
    function,
    sp,
)

ALWAYS = 60.0
"""tau of a zero gate, which is always open."""
TILT, OMEGA, CHI, MU, TAU, BY_TILT = map(Base, ("tilt", "omega", "chi", "mu", "tau", "U_tilt"))
MEANS, NEAR, FAR, INVERSE, ROOT = map(Base, ("B_g", "W_l", "W_g", "per_m", "root_m"))
POWERS = {x: Base(f"p_{x.name}") for x in (KAPPA, XI, OMEGA, CHI)}
"""x^n/n! for every overlap with a task."""
ROW, COL = sp.symbols("row col", integer=True, nonnegative=True)
SHIFT, EDGE, CORR, SPREAD, ANGLE = sp.symbols("shift edge corr spread x", real=True)
M, FIRST, LEIBNIZ = sp.Idx("m", DEGREE + 2), sp.Idx("n", DEGREE + 2), sp.Idx("f", DEGREE + 1)
POWER, ALONG, ACROSS = sp.Idx("u", DEGREE + 1), sp.Idx("i", DEGREE + 1), sp.Idx("k", DEGREE + 1)
WEIGHT, HALVES = sp.Idx("d", 2 * DEGREE + 2), sp.Idx("h", WIDTH)
smooth, part, opened = function("G"), function("S_v"), function("F_g")


def _decided(x: Any, at: int) -> Any:
    """d B_mn with respect to t, tau and q."""
    raised = {3: (1, 0), 4: (0, 1), 5: (1, 1)}.get(at)
    return decided(x[0] + raised[0], x[1] + raised[1], *x[2:]) if raised else None


decided = function("mean_g", _decided)


def sigma(p: Parameters, order: Any) -> Any:
    """The coefficient of a degree of a polynomial activation, that of the neuron with `signs`."""
    return SIGMA[J, order] if p.signs else SIGMA[order]


def smoothed(p: Parameters) -> tuple[Kernel, ...]:
    """G_n(s, r) = d^n/ds^n E[sigma(r Z + s)], with the kernels in it."""
    s, r, n = SHIFT, SPREAD, ORDER
    needed: tuple[Kernel, ...] = ()
    if p.activation == "relu":
        u = s / r
        phi, below = DENSITY["phi"](u), DISTRIBUTION["Phi"](u)
        high = (-1) ** n * r ** (1 - n) * He(n - 2, u) * phi
        value: Any = sp.Piecewise((s * below + r * phi, sp.Eq(n, 0)), (below, sp.Eq(n, 1)), (high, True))
    elif p.activation == "polynomial":
        order = n + 2 * HALVES
        term = sigma(p, order) * sp.sqrt(sp.factorial(order)) / sp.factorial(HALVES) * ((r**2 - 1) / 2) ** HALVES
        note = "part of the smoothed activation that has no power of s"
        needed = (Kernel("S_v", (n, r), {"S_v": sp.Sum(term, HALVES)}, orders=1, note=note),)
        value = sp.Sum(part(n + TERM, r) * s**TERM / sp.factorial(TERM), TERM)
    elif p.activation in ("erf", "probit"):
        width = sp.sqrt(1 + r**2)
        u, scale = s / width, 2 if p.activation == "erf" else 1
        zero = sp.erf(u / sp.sqrt(2)) if p.activation == "erf" else DISTRIBUTION["Phi"](u)
        high = scale * (-1) ** (n + 1) * He(n - 1, u) * DENSITY["phi"](u) / width**n
        value = sp.Piecewise((zero, sp.Eq(n, 0)), (high, True))
    elif p.activation == "exp":
        value = sp.exp(s + r**2 / 2)
    else:
        value = sp.exp(-(r**2) / 2) * sp.cos(s + sp.pi * n / 2)
    mean = E(function("activation_n")(r * sp.Symbol("Z") + s))
    note = "the activation smoothed over a width r: its n-th derivative by t"
    return (*needed, Kernel("G", (n, s, r), {"G": value}, {"G": (mean,)}, orders=1, note=note))


def mean_kernels() -> tuple[Kernel, Kernel]:
    """B_mn(t, tau, q) = E[d^m sigma(u + t) d^n 1(v + tau >= 0)] for normal u, v of correlation q."""
    m, n, t, tau, q, k = ROW, COL, SHIFT, EDGE, CORR, LEIBNIZ
    angle = sp.asin(q)
    density = DENSITY["phi"](tau)
    turned = sp.cos(angle * ANGLE) * smooth(m + 1, t - tau * sp.sin(angle * ANGLE), sp.cos(angle * ANGLE))
    first = DISTRIBUTION["Phi"](tau) * smooth(m, t, 1) + density * angle * Mean(turned, ANGLE)
    given = smooth(m + k, t - q * tau, sp.sqrt(1 - q**2))
    leibniz = sp.Sum(sp.binomial(n - 1, k) * He(sp.Max(0, n - 1 - k), tau) * q**k * given, k)
    value = sp.Piecewise((opened(m, t, tau, q), sp.Eq(n, 0)), ((-1) ** (n + 1) * density * leibniz, True))
    open_note = (
        "mean of the m-th derivative of the activation over what the gate lets in: its value at q = 0 and the integral "
        f"of its derivative by q; x is uniform between 0 and 1 ({NODES} Gauss-Legendre nodes)"
    )
    note = (
        "mean of the m-th derivative of the activation at u + t and the n-th of the gate's step at v + tau, u and v "
        "normal of correlation q"
    )
    return (
        Kernel("F_g", (m, t, tau, q), {"F_g": first}, orders=1, note=open_note),
        Kernel("mean_g", (m, n, t, tau, q), {"mean_g": value}, orders=2, note=note),
    )


def weights(p: Parameters) -> list[Definition]:
    """Definitions of sqrt(n!) times the coefficients of the links, and of the powers of overlaps over factorials."""
    near = BETA[C1, WEIGHT] if p.orthogonal else LOCAL[C1, WEIGHT]
    far = S[C1] * GAMMA[WEIGHT] if p.orthogonal else REMOTE[C1, WEIGHT]
    powers, note = [(x[(J, C1) if x in (KAPPA, OMEGA) else (J,)], made) for x, made in POWERS.items()], "powers"
    return [
        Definition((ROOT[WEIGHT],), sp.sqrt(sp.factorial(WEIGHT)), "roots of factorials"),
        Definition((NEAR[C1, WEIGHT],), ROOT[WEIGHT] * near, "coefficients of the local links times the root of d!"),
        Definition((FAR[C1, WEIGHT],), ROOT[WEIGHT] * far, "those of the global link"),
        Definition((INVERSE[POWER],), 1 / sp.factorial(POWER), "inverse factorials"),
        *(Definition((made[(*x.indices, POWER)],), INVERSE[POWER] * x**POWER, note) for x, made in powers),
    ]


def table(p: Parameters) -> Definition:
    """Definition of the means B_mn of every neuron and cluster."""
    top = degree(p) + 2
    mean = decided(M, FIRST, RHO * NU[J, C1] + B[J], TAU[J, C1], TILT[J])
    value = sp.Piecewise((mean, sp.Le(M + FIRST, top)), (0, True))
    given = (NU, B, TAU, TILT, RHO, *((SIGMA, WIDTH) if p.activation == "polynomial" else ()))
    loops = Shortcut(f"derivations.kawata.gated_loops:{p.activation}_means", given)
    meaning = "mean of the m-th derivative of the activation and the n-th of the gate's step"
    return Definition((MEANS[J, C1, M, FIRST],), value, meaning, shortcut=loops)


def potential(c: Any) -> Any:
    """U_j: the mean of y times the neuron's output on samples for which its gate is open, summed over clusters c."""
    i, k = ALONG, ACROSS
    local = NEAR[c, i + k] * monomial(i, KAPPA[J, c]) * POWERS[OMEGA][J, c, k]
    remote = FAR[c, i + k] * monomial(i, XI[J]) * POWERS[CHI][J, k]
    mean = decided(i, k, RHO * NU[J, c] + B[J], TAU[J, c], TILT[J])
    return A[J] / (J_SIZE * C) * sp.Sum((local + remote) * mean, i, k, c)


def by_tables(e: Any) -> Any:
    """Return the expression with powers and means replaced by entries of their tables.

    If a derivative lowers the power of a neuron, the sum over i begins at 1. Then i is replaced by i + 1, which adds
    terms above the degree of the links, whose coefficients are 0.
    """

    def raised(total: Any) -> Any:
        lowered = any(x.args[0] == ALONG - 1 for x in total.function.atoms(monomial))
        return sp.Sum(total.function.xreplace({ALONG: ALONG + 1}), *total.limits) if lowered else total

    def power(order: Any, x: Any) -> Any:
        return POWERS[x.base][(*x.indices, order)]

    e = e.replace(lambda x: isinstance(x, sp.Sum), raised).replace(monomial, power)
    return e.replace(decided, lambda m, n, t, tau, q: MEANS[(*tau.indices, m, n)])


def padded(p: Parameters) -> int:
    """The length of a table of links with zeros from degree p + 1 to 2 p + 1."""
    return 2 * degree(p) + 2


def longest(p: Parameters) -> int:
    """The length of the table of a polynomial activation, with zeros beyond its degree."""
    return 3 * len(activation_series(p)) + 2 * degree(p) + 6


def constants(p: Parameters) -> tuple[Named, ...]:
    """Constants of the exact flow with longer tables, and the constant part of the neurons' gates."""
    i, long = sp.Idx("i", 2 * DEGREE + 2), "np.pad({}, [*[(0, 0)] * {}, (0, degree + 1)])"
    found: list[Named] = []
    for c in flow.constants(p):
        name = c.target.base.name if isinstance(c.target, sp.Indexed) else c.target.name
        if name in ("beta", "gamma", "B", "Y"):
            index, rows = c.target.indices[:-1], len(c.target.indices) - 1
            found.append(Named(c.target.base[(*index, i)], c.meaning + ", then zeros", long.format(c.default, rows)))
        elif name == "sigma":
            row = list(activation_series(p))
            code = f"np.pad({row}, (0, 2 * width + 2 * degree + 6))"
            found.append(Named(c.target, c.meaning + ", then zeros", code))
        elif name != "q":
            found.append(c)
    return (
        *found,
        Named(OMEGA[J, C1], "overlap of the gate's direction with the local task", "np.full((N, C), 0.1)"),
        Named(CHI[J], "that with the global task", "np.full(N, -0.1)"),
        Named(MU[J, C1], "that with the mean", "np.eye(C)[np.arange(N) % C] - 0.5"),
        Named(TAU[J, C1], f"rho times that; {ALWAYS:g} for a gate that vanishes and is always open", "rho * mu"),
    )


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    p = initial.parameters
    found = flow.bind(initial)
    long = padded(p)
    for name in {"beta", "gamma", "B", "Y"} & set(found):
        table = np.asarray(found[name])
        found[name] = np.pad(table, [*[(0, 0)] * (table.ndim - 1), (0, long - table.shape[-1])])
    if p.activation == "polynomial":
        rows = np.atleast_2d(initial.constants["sigma"])
        rows = np.pad(rows, [(0, 0), (0, longest(p) - rows.shape[1])])
        found["sigma"] = rows if p.signs else rows[0]
    expert = expert_of(p, p.neurons)
    norm = directions(initial.constants)[expert, None]
    unit = np.divide(initial.constants["theta"][expert], norm, out=np.zeros((len(norm), 2 * p.C + 1)), where=norm > 0)
    means = unit[:, p.C + 1 :]
    tau = np.where(norm > 0, p.rho * means, ALWAYS)
    return {**found, "omega": unit[:, : p.C], "chi": unit[:, p.C], "mu": means, "tau": tau}


def directions(constants: Mapping[str, Any]) -> np.ndarray:
    """|theta_m| (M,)."""
    return np.sqrt(np.maximum(np.diag(constants["gate_gram"]), 0.0))


def begin(initial: Initial) -> dict[str, np.ndarray]:
    """The state at time 0, with the overlap of every neuron with the direction of its gate."""
    return {**initial.state, "tilt": tilt(initial)}


def tilt(initial: Initial) -> np.ndarray:
    """q = w.th of every neuron: its part in the frame and that along the gate outside the frame."""
    if "tilt" in initial.state:
        return np.asarray(initial.state["tilt"], float)
    p, c, m = initial.parameters, initial.constants, join(initial.state)
    inverse, expert = np.linalg.pinv(c["gram"], hermitian=True), expert_of(p, len(m))
    inside = ((m @ inverse) * c["theta"][expert]).sum(1)
    far = length_outside(m, inverse) * c["gate_direction"][expert, np.arange(len(m))]
    norm = directions(c)[expert]
    return np.divide(inside + far, norm, out=np.zeros(len(m)), where=norm > 0)


def invariants(initial: Initial, state: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Deviations from properties of the exact flow: unit ball, overlaps of at most 1, and a decreasing loss."""
    excess = float(max(0.0, np.abs(state["tilt"]).max(initial=0.0) - 1.0))
    return {**population.invariants(initial, state), "tilt_excess": excess}


def equations(p: Parameters) -> tuple[Equation, ...]:
    """dm/dt = G g - m R in the frame and the direction of the neuron's gate."""
    at = "Algorithm 1, Phase III; the closed form is ours"
    own = {"kappa": OMEGA[J, C1], "xi": CHI[J], "nu": MU[J, C1]}
    targets = {"kappa": KAPPA[J, C1], "xi": XI[J], "nu": NU[J, C1]}
    moved = flow.turned(p)
    found = [Equation(x, moved[n] + own[n] * BY_TILT[J] - x * RADIAL[J], at) for n, x in targets.items()]
    across = sp.Sum(OMEGA[J, C2] * BY_KAPPA[J, C2] + MU[J, C2] * BY_NU[J, C2], C2) + CHI[J] * BY_XI[J]
    return (*found, Equation(TILT[J], BY_TILT[J] + across - TILT[J] * RADIAL[J], at))


def definitions(p: Parameters) -> tuple[Any, ...]:
    """The kernels, the tables, the gradient of the potential, and its part along the neuron."""
    total, meaning = potential(C2), "gradient of the potential"
    by = ((BY_KAPPA[J, C1], KAPPA[J, C1]), (BY_XI[J], XI[J]), (BY_NU[J, C1], NU[J, C1]), (BY_TILT[J], TILT[J]))
    along = sp.Sum(KAPPA[J, C2] * BY_KAPPA[J, C2] + NU[J, C2] * BY_NU[J, C2], C2)
    along += XI[J] * BY_XI[J] + TILT[J] * BY_TILT[J]
    return (
        DENSITY,
        DISTRIBUTION,
        *smoothed(p),
        *mean_kernels(),
        *weights(p),
        table(p),
        *(Definition((g,), by_tables(gradient(total, x)), meaning) for g, x in by),
        Definition((RADIAL[J],), along, "its part along the neuron"),
    )


STATE = (
    *flow.STATE,
    Named(TILT[J], "overlap with the direction of the own gate w . theta/|theta|", dims=("neuron",), symbol="q"),
)


def statement(p: Parameters) -> Statement:
    """The exact flow behind a gate.  Source: Kawata et al. 2025, Algorithm 1, Phase III; the closed form is ours."""
    y, act = function("y"), function("activation")
    shown = A[J] / J_SIZE * E(y(sp.Symbol("x")) * act(sp.Symbol("z") + B[J]) * Indicator(sp.Ge(sp.Symbol("h"), 0)))
    return Statement(
        tier="gated",
        name="kawata, phase3, gated",
        title="every neuron of the correlation loss on its own sphere, behind the gate of its expert",
        source="Kawata et al. 2025, Section 3.2, Algorithm 1 (Phase III); the closed form is ours",
        clock="one step of SGD of size eta advances t by eta; the factor 1/J of the network stands in U",
        validity=(
            "exact for Gaussian clusters at every d, links of finite degree, any frame and any gate, in the limit "
            "of small step size (gradient flow on the population correlation loss)"
        ),
        neglects="nothing",
        indices=[
            ((J,), "neurons"),
            ((C1, C2), "clusters"),
            ((M, FIRST), "derivatives of activation and gate"),
            ((POWER, ALONG, ACROSS), "degrees along neuron and gate"),
            ((WEIGHT,), "degrees of the links"),
            ((LEIBNIZ,), "terms of the derivative of a product, C(n-1, f) = 0 for f >= n"),
        ],
        rows=J,
        sizes=flow.sizes(p),
        state=STATE,
        constants=constants(p),
        bind=bind,
        begin=begin,
        definitions=definitions(p),
        steps=(
            Step(U[J], shown, "z and h the fields of the neuron and of its gate"),
            Step(U[J], by_tables(potential(C1)), "each field's regression on the two others, by Price's rule"),
        ),
        equations=equations(p),
        notation={**coefficients.NOTATION, **NOTATION},
        loss=-sp.Sum(by_tables(potential(C2)), J),
        laws={"x": (sp.Integer(0), sp.Integer(1), NODES)},
        crossings=population.crossings(p),
        observables=Observables(constants=population.constants, invariants=invariants, summary=summary.summarise),
        example=Example(START, "kappa", 0.9, 300.0),
    )


NOTATION = {
    "row": ("m", "m"),
    "col": ("n", "n"),
    "shift": ("t", "t"),
    "edge": (r"\tau", "τ"),
    "corr": ("q", "q"),
    "spread": ("r", "r"),
    "tilt": ("q", "q"),
    "B_g": (r"\mathcal{B}", "ℬ"),
    "mean_g": (r"\mathcal{D}", "𝒟"),
    "F_g": (r"\mathcal{F}", "ℱ"),
    "S_v": ("S", "S"),
    "W_l": (r"\hat\beta", "β̂"),
    "W_g": (r"\hat\gamma", "γ̂"),
    "per_m": (r"\iota", "ι"),
    "root_m": (r"\varrho", "ϱ"),
    "p_kappa": (r"\hat\kappa", "κ̂"),
    "p_xi": (r"\hat\xi", "ξ̂"),
    "p_omega": (r"\hat\omega", "ω̂"),
    "p_chi": (r"\hat\chi", "χ̂"),
    "U_tilt": ("U^{q}", "Uq"),
    "activation_n": (r"\sigma^{(n)}", "σ⁽ⁿ⁾"),
}
START = f'{flow.START[:-1]}, "tilt": np.zeros(N)' + "}"
