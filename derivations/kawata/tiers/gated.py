"""The page of tier `gated`: the exact flow of neurons behind a gate, on 2 C + 2 overlaps.

It runs by the loops of `gated_loops`, which are up to a hundred times faster (decision 0127).

The potential is typed by the means B_mn; its gradient follows by the calculus of indices and by the rule that a
derivative by the shift, the edge or the correlation raises an index of B (or both: Price).
"""

from typing import Any

import numpy as np

from derivations.contract import Initial, UsageError
from derivations.indexed import gradient
from derivations.kawata import gated
from derivations.kawata.parameters import Parameters, activation_series, degree
from derivations.kawata.tiers import coefficients, flow
from derivations.kawata.tiers.coefficients import DENSITY, DISTRIBUTION, ORDER, SIGMA, TERM, WIDTH, J
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
    Statement,
    Step,
    function,
    sp,
)

TILT, OMEGA, CHI, MU, TAU, BY_TILT = map(Base, ("tilt", "omega", "chi", "mu", "tau", "U_tilt"))
ROW, COL = sp.symbols("row col", integer=True, nonnegative=True)
SHIFT, EDGE, CORR, SPREAD, ANGLE = sp.symbols("shift edge corr spread x", real=True)
M, FIRST, LEIBNIZ = sp.Idx("m", (1, DEGREE)), sp.Idx("n", DEGREE + 1), sp.Idx("k", DEGREE + 1)
HALVES = sp.Idx("h", WIDTH)
smooth, part, opened = function("G"), function("S_v"), function("F_g")


def _decided(x: Any, at: int) -> Any:
    """d B_mn by t, tau and q."""
    raised = {3: (1, 0), 4: (0, 1), 5: (1, 1)}.get(at)
    return decided(x[0] + raised[0], x[1] + raised[1], *x[2:]) if raised else None


decided = function("B_g", _decided)


def smoothed(p: Parameters) -> tuple[Kernel, ...]:
    """G_n(s, r) = d^n/ds^n E[sigma(r Z + s)], with the kernels that it needs."""
    s, r, n = SHIFT, SPREAD, ORDER
    needed: tuple[Kernel, ...] = ()
    if p.activation == "relu":
        u = s / r
        phi, below = DENSITY["phi"](u), DISTRIBUTION["Phi"](u)
        high = (-1) ** n * r ** (1 - n) * He(n - 2, u) * phi
        value: Any = sp.Piecewise((s * below + r * phi, sp.Eq(n, 0)), (below, sp.Eq(n, 1)), (high, True))
    elif p.activation == "polynomial":
        order = n + 2 * HALVES
        term = SIGMA[order] * sp.sqrt(sp.factorial(order)) / sp.factorial(HALVES) * ((r**2 - 1) / 2) ** HALVES
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
        f"of its derivative by q; x is uniform between 0 and 1 ({gated.NODES} Gauss-Legendre nodes)"
    )
    note = (
        "mean of the m-th derivative of the activation at u + t and the n-th of the gate's step at v + tau, u and v "
        "normal of correlation q"
    )
    return (
        Kernel("F_g", (m, t, tau, q), {"F_g": first}, orders=1, note=open_note),
        Kernel("B_g", (m, n, t, tau, q), {"B_g": value}, orders=2, note=note),
    )


def potential(p: Parameters, c: Any) -> Any:
    """U_j: the mean of y times the neuron's output on the samples that its gate lets in, clusters summed over c."""
    m, n = M, FIRST
    local = (lambda i: BETA[c, i]) if p.orthogonal else (lambda i: LOCAL[c, i])
    remote = (lambda i: S[c] * GAMMA[i]) if p.orthogonal else (lambda i: REMOTE[c, i])
    place = (RHO * NU[J, c] + B[J], TAU[J, c], TILT[J])
    apart = local(n) * OMEGA[J, c] ** n + remote(n) * CHI[J] ** n
    both = local(m + n) * KAPPA[J, c] ** m * OMEGA[J, c] ** n + remote(m + n) * XI[J] ** m * CHI[J] ** n
    scale = sp.sqrt(sp.factorial(m + n)) / (sp.factorial(m) * sp.factorial(n))
    inner = sp.Sum(apart / sp.sqrt(sp.factorial(n)) * decided(0, n, *place), n)
    inner += sp.Sum(scale * both * decided(m, n, *place), m, n)
    return A[J] / (J_SIZE * C) * sp.Sum(inner, c)


def padded(p: Parameters) -> int:
    """The length of a table of links that is read up to degree 2 p, as zeros beyond p."""
    return 2 * degree(p) + 1


def longest(p: Parameters) -> int:
    """The length of the table of a polynomial activation, read as zeros beyond its degree."""
    return 3 * len(activation_series(p)) + 2 * degree(p) + 6


def constants(p: Parameters) -> tuple[Named, ...]:
    """Those of the exact flow with longer tables, and what is fixed of the neurons' gates."""
    i, long = sp.Idx("i", 2 * DEGREE + 1), "np.pad({}, [*[(0, 0)] * {}, (0, degree)])"
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
        Named(TAU[J, C1], f"rho times that; {gated.ALWAYS:g} for a gate that vanishes and is always open", "rho * mu"),
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
        row = np.array(activation_series(p))
        found["sigma"] = np.pad(row, (0, longest(p) - len(row)))
    numbers = gated.arguments(initial)
    frame, expert, tau = numbers.frame, numbers.expert, numbers.tau
    unit = frame[expert][:, -1]
    found |= {"omega": unit[:, : p.C], "chi": unit[:, p.C], "mu": unit[:, p.C + 1 : -1], "tau": tau[expert]}
    return found


def equations(p: Parameters) -> tuple[Equation, ...]:
    """dm/dt = G g - m R in the frame and the direction of the own gate."""
    at = "Algorithm 1, Phase III; the closed form is ours"
    own = {"kappa": OMEGA[J, C1], "xi": CHI[J], "nu": MU[J, C1]}
    targets = {"kappa": KAPPA[J, C1], "xi": XI[J], "nu": NU[J, C1]}
    moved = flow.turned(p)
    found = [Equation(x, moved[n] + own[n] * BY_TILT[J] - x * RADIAL[J], at) for n, x in targets.items()]
    across = sp.Sum(OMEGA[J, C2] * BY_KAPPA[J, C2] + MU[J, C2] * BY_NU[J, C2], C2) + CHI[J] * BY_XI[J]
    return (*found, Equation(TILT[J], BY_TILT[J] + across - TILT[J] * RADIAL[J], at))


def definitions(p: Parameters) -> tuple[Any, ...]:
    """The kernels, the gradient of the potential, and its part along the neuron."""
    total, meaning = potential(p, C2), "gradient of the potential"
    by = ((BY_KAPPA[J, C1], KAPPA[J, C1]), (BY_XI[J], XI[J]), (BY_NU[J, C1], NU[J, C1]), (BY_TILT[J], TILT[J]))
    along = sp.Sum(KAPPA[J, C2] * BY_KAPPA[J, C2] + NU[J, C2] * BY_NU[J, C2], C2)
    along += XI[J] * BY_XI[J] + TILT[J] * BY_TILT[J]
    return (
        DENSITY,
        DISTRIBUTION,
        *smoothed(p),
        *mean_kernels(),
        *(Definition((g,), gradient(total, x), meaning) for g, x in by),
        Definition((RADIAL[J],), along, "its part along the neuron"),
    )


def statement(p: Parameters) -> Statement:
    """The exact flow behind a gate."""
    if p.signs:
        raise UsageError(
            "the page is for neurons of one activation: leave out signs=true, whose neurons have their own"
        )
    told = gated.equations(p)
    y, act = function("y"), function("activation")
    shown = A[J] / J_SIZE * E(y(sp.Symbol("x")) * act(sp.Symbol("z") + B[J]) * Indicator(sp.Ge(sp.Symbol("h"), 0)))
    return Statement(
        name="kawata, phase3, gated",
        title="every neuron of the correlation loss on its own sphere, behind the gate of its expert",
        source="Kawata et al. 2025, Section 3.2, Algorithm 1 (Phase III); the closed form is ours",
        clock="one step of SGD of size eta advances t by eta; the factor 1/J of the network stands in U",
        validity=told.about.validity,
        neglects=told.about.neglects,
        indices=[
            ((J,), "neurons"), ((C1, C2), "clusters"), ((M, FIRST), "degrees along neuron and gate"),
            ((LEIBNIZ,), "terms of the derivative of a product, C(n-1, k) = 0 for k >= n"),
        ],
        state=(
            Named(KAPPA[J, C1], "alignment of a neuron with the local task of cluster c"),
            Named(XI[J], "alignment with the global task"),
            Named(NU[J, C1], "overlap with the mean of cluster c"),
            Named(TILT[J], "overlap with the direction of the own gate"),
        ),
        constants=constants(p),
        bind=bind,
        definitions=definitions(p),
        steps=(
            Step(U[J], shown, "z and h the fields of the neuron and of its gate"),
            Step(U[J], potential(p, C1), "each field's regression on the two others, by Price's rule"),
        ),
        equations=equations(p),
        notation={
            **coefficients.NOTATION, "row": ("m", "m"), "col": ("n", "n"), "shift": ("t", "t"), "edge": (r"\tau", "τ"),
            "corr": ("q", "q"), "spread": ("r", "r"), "tilt": ("q", "q"), "B_g": (r"\mathcal{B}", "ℬ"),
            "F_g": (r"\mathcal{F}", "ℱ"),
            "S_v": ("S", "S"),
            "U_tilt": ("U^{q}", "Uq"), "activation_n": (r"\sigma^{(n)}", "σ⁽ⁿ⁾"),
        },
        loss=-sp.Sum(potential(p, C2), J),
        laws={"x": (sp.Integer(0), sp.Integer(1), gated.NODES)},
        example=Example(START, "kappa", 0.9, 300.0),
    )  # fmt: skip


START = f'{flow.START[:-1]}, "tilt": np.zeros(N)' + "}"
