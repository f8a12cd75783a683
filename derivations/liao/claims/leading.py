"""Claims on leading orders: Lemmas 5, 6 and 7, equation (5) with its escape profile, linear system of Lemma 14."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_measure, break_setting
from derivations.claim import Claim, Grid, Variant
from derivations.contract import Initial
from derivations.laws import All, Bounded, Equals, Power, Vanishes
from derivations.liao import initial
from derivations.liao.claims import expectations, tools
from derivations.liao.claims.algebra import draw
from derivations.liao.claims.tools import at
from derivations.liao.parameters import Parameters

S = functools.lru_cache(maxsize=4096)(expectations.correlation)
"""S_ab(rho) by quadrature, remembered."""
C0, C1 = 0.5, expectations.coefficient(1)


def repulsion() -> float:
    """Constant C_S2 = S_11(1) + S_02(1), the rate at which router and expert of one student turn apart."""
    return S(1, 1, 1.0) + S(0, 2, 1.0)


def signs(rng: np.random.Generator, size: int) -> np.ndarray:
    """Draw numbers of either sign with sizes between 1/2 and 1."""
    return rng.choice([-1, 1], size=size) * rng.uniform(0.5, 1, size=size)


def pair_gram(rho: float, g: float, z: np.ndarray) -> np.ndarray:
    """Gram matrix of (v1, v2, w1, w2) with z = (z11, z12, z21, z22)."""
    gram = np.eye(4)
    gram[0, 1] = gram[1, 0] = rho
    gram[2, 3] = gram[3, 2] = g
    gram[:2, 2:] = z.reshape(2, 2)
    gram[2:, :2] = z.reshape(2, 2).T
    return gram


def lemma_5(lab: Any, point: Mapping[str, Any], seed: int, drop: bool = False) -> dict[str, float]:
    """Return |lambda hat - its leading terms| at gamma2 = 0.6 and 0.

    The mis-alignments have the size delta, and gamma1 = 0.4.
    """
    rho, z = 0.4, point["delta"] * signs(draw(seed, lab), 4)
    z[3] = 0.0  # v*_j is orthogonal to w*_j
    s00, s11, s02 = S(0, 0, rho), S(1, 1, rho), 0.0 if drop else S(0, 2, rho)
    found = {}
    for g, name in ((0.6, ""), (0.0, ", gamma2 = 0")):
        hat = expectations.moments(pair_gram(rho, g, z), expectations.LAMBDAS)
        leading = (
            6 * s11 * g**3,
            6 * s02 * g**2 * z[1],
            6 * s11 * g**2 * z[1],
            6 * s02 * g**2 * z[0] + 6 * s11 * g**2 * z[2],
            2 * s00 * g**2,
        )
        found |= {f"lambda hat {k + 1}{name}": abs(hat[k] - leading[k]) for k in range(5)}
    return found


def lemma_6(lab: Any, point: Mapping[str, Any], seed: int, drop: bool = False) -> dict[str, float]:
    """Return |lambda_ij|, i != j, at overlaps of size delta, and |lambda_ii - its leading term| at v_i.w_i = delta."""
    rng, delta = draw(seed, lab), point["delta"]
    x = delta * signs(rng, 6)
    lam = expectations.moments(pair_gram(x[0], x[1], x[2:]), expectations.LAMBDAS)
    found = {f"lambda {k + 1}, i != j": abs(value) for k, value in enumerate(lam)}
    p = float(delta * signs(rng, 1)[0])
    own = expectations.moments(pair_gram(1.0, 1.0, np.full(4, p)), expectations.LAMBDAS)
    linear = 6 * (S(1, 1, 1.0) if drop else repulsion()) * p
    leading = (6 * S(1, 1, 1.0), linear, linear, linear, 2 * S(0, 0, 1.0))
    return found | {f"lambda {k + 1}, i = j": abs(own[k] - leading[k]) for k in range(5)}


def lemma_7(lab: Any, point: Mapping[str, Any], seed: int, sign: int = 1) -> dict[str, float]:
    """Return the difference between the compiled flow and the terms of the lemma if all overlaps are of size eps.

    Norms are 1. The overlap of experts moves by -9 (lambda_ij5 + lambda_ji5)(1 - I2_ij^2); the printed lemma has no
    such term.
    """
    m, m_star = 4, 2
    start = tools.small_overlaps(draw(seed, lab), m, m_star, point["eps"])
    flow, state = lab.functions(start).flow(start.state), start.state
    gram, off = tools.rows_of(start), ~np.eye(m, dtype=bool)
    expert = np.zeros((m, m))
    if point["form"] == "corrected":
        for i in range(m):
            for j in range(i):
                index = [i, j, m + i, m + j]
                lam = expectations.moments(gram[np.ix_(index, index)], [(0, 0, 2, 2)])[0]
                expert[i, j] = expert[j, i] = -18 * sign * lam * (1 - state["I2"][i, j] ** 2)
    hat = np.zeros((m, m_star))
    for i, j in np.ndindex(hat.shape):
        index = [i, 2 * m + j, m + i, 2 * m + m_star + j]
        hat[i, j] = expectations.moments(gram[np.ix_(index, index)], [(0, 0, 2, 2)])[0]
    found = {name: float(np.abs(flow[name]).max()) for name in ("gamma1", "zeta1", "zeta2")}
    found["gamma2"] = float(np.abs(flow["gamma2"] - 9 * hat).max())
    found["I1"] = float(np.abs(flow["I1"][off]).max())
    found["I2"] = float(np.abs((flow["I2"] - expert)[off]).max())
    found["I3"] = float(np.abs(flow["I3"]).max())
    return found


def single(gamma1: float, gamma2: float, norms: tuple[float, float] = (1.0, 1.0), **others: float) -> Initial:
    """Return one student with one teacher, as an initial condition.

    The arguments are gamma1, gamma2, the norms a and b, and I3, zeta1, zeta2 (default zero).
    """
    gram = pair_gram(gamma1, gamma2, np.array([0.0, others.get("zeta1", 0.0), others.get("zeta2", 0.0), 0.0]))
    gram[0, 2] = gram[2, 0] = others.get("I3", 0.0)
    order = [0, 2, 1, 3]  # pair_gram has v, v*, w, w*
    a, b = (np.array([norm]) for norm in norms)
    return initial.from_gram(Parameters(m=1, m_star=1, d=10**6), gram[np.ix_(order, order)], a, b)


def equation_5(lab: Any, point: Mapping[str, Any], seed: int, slower: float = 0.0) -> dict[str, float]:
    """Return a^2 (d gamma1/dt) / (6 c1^2 gamma2^3) and b^2 (d gamma2/dt) / (18 c0^2 gamma2^2) at small gamma2.

    `slower` makes the expert longer by half of this share, which the prediction ignores (control).
    """
    a, b = draw(seed, lab).uniform(0.7, 1.4, size=2)
    g = point["gamma2"]
    start = single(0.0, g, (a, b * (1 + slower / 2)))
    flow = lab.functions(start).flow(start.state)
    router, expert = flow["gamma1"][0, 0], flow["gamma2"][0, 0]
    return {"router": a**2 * router / (6 * C1**2 * g**3), "expert": b**2 * expert / (18 * C0**2 * g**2)}


def escape(lab: Any, point: Mapping[str, Any], seed: int, norm: float = 1.0) -> dict[str, float]:
    """Return the time at which gamma2 reaches 0.9 over its prediction, and the delay of gamma1 (unit norms).

    `norm` is the length of the raw expert, which the prediction ignores (control).
    """
    g = point["gamma2"]
    start, until = single(0.0, g, (1.0, norm)), 0.4 / g + 40
    run = lab.integrate(start=start, m=1, m_star=1, d=10**6, until=until, save_points=2, rtol=1e-10, stiff=True)
    expert, router = float(run["T_gamma2"][0, 0]), float(run["T_gamma1"][0, 0])
    predicted = 1 / g - 1 / 0.9
    if point["form"] == "corrected":
        predicted = (predicted + math.atanh(0.9) - math.atanh(g)) / (18 * C0**2)
    return {"time": expert / predicted, "lag": router - expert}


def linear_system(g1: float, g2: float, norms: tuple[float, float], form: str, drop: bool = False) -> np.ndarray:
    """Return the matrix of Lemma 14 for (I3_ii, zeta1, zeta2): corrected, printed, or printed with -rho_3."""
    ia, ib = (1 / norm**2 for norm in norms)
    q0, q1, q2 = (g2**2 * S(*pair, g1) for pair in ((0, 0), (1, 1), (0, 2)))
    c2 = repulsion()
    q2 = 0.0 if drop else q2
    if form == "corrected":
        first = -36 * c2 * (ia + ib) - 6 * ia * g1 * g2 * q1 - 18 * ib * g2 * q0 + 18 * ia * g2 * q2
        return np.array(
            [
                [first, 18 * ib * (q0 + g1 * q1) + 18 * (ia + ib) * q2, 24 * ia * g2 * q1],
                [18 * ia * q2 - 36 * ia * c2 * g2, 18 * ia * g2 * q2 - 6 * ia * g1 * g2 * q1, 18 * ia * q1],
                [-36 * ib * c2 * g1, 18 * ib * (q1 + g1 * q2), -18 * ib * g2 * q0],
            ]
        )
    alpha1 = 36 * c2 * (ia + ib) + 6 * ia * g1 * g2 * q1 + 18 * ib * g1 * q1 - 18 * ia * g2 * q2
    alpha2, alpha3 = 36 * ia * c2 * g2 - 18 * ia * q2, 36 * ib * c2 * g2
    iota1 = 18 * ib * (q0 + g1 * q1) + 18 * (ia + ib) * q2
    iota2, iota3 = 6 * ia * (g1 * g2 * q1 - g2 * q2), 18 * ib * (q1 + g1 * q2)
    rho1, rho2, rho3 = 24 * ia * g1 * q1, 18 * ia * q1, 18 * ib * q0 * g2
    last = rho3 if form == "printed" else -rho3
    return np.array([[-alpha1, iota1, rho1], [-alpha2, -iota2, rho2], [-alpha3, iota3, last]])


def jacobian(lab: Any, g1: float, g2: float, norms: tuple[float, float], step: float = 1e-3) -> np.ndarray:
    """Return the derivative of the compiled flow of (I3_ii, zeta1, zeta2) at zero, by fourth-order differences."""
    names = ("I3", "zeta1", "zeta2")
    functions = lab.functions(single(g1, g2, norms))
    matrix = np.zeros((3, 3))
    for column, name in enumerate(names):
        for k, weight in ((1, 2 / 3), (2, -1 / 12)):
            for sign in (1, -1):
                flow = functions.flow(single(g1, g2, norms, **{name: sign * k * step}).state)
                matrix[:, column] += sign * weight / step * np.array([flow[n][0, 0] for n in names])
    return matrix


def lemma_14(lab: Any, point: Mapping[str, Any], seed: int, drop: bool = False) -> dict[str, float]:
    """Return two tests of the matrix of Lemma 14.

    They are its distance from the Jacobian of the flow at a random point, and its largest eigenvalue on the box gamma1,
    gamma2 in [0.9, 1] with norm ratios b / a between 0.8 and 1.25.
    """
    rng, form = draw(seed, lab), point["form"]
    g1, g2 = rng.uniform(-0.3, 0.95), rng.uniform(0.3, 0.8)
    a, b = (float(norm) for norm in rng.uniform(0.8, 1.25, size=2))
    difference = linear_system(g1, g2, (a, b), form, drop) - jacobian(lab, g1, g2, (a, b))
    values = np.linspace(0.9, 1, point["grid"])
    largest = max(
        np.linalg.eigvals(linear_system(float(x), float(y), (1.0, ratio), form, drop)).real.max()
        for x in values
        for y in values
        for ratio in (0.8, 1.0, 1.25)
    )
    return {"jacobian": float(np.abs(difference).max()), "stability": float(largest)}


ROUNDING = "below .005 residuals of order delta^6 drown in rounding"


def at_least(orders: Mapping[str, float], over: str) -> All:
    """Return the law that each residual vanishes at least at its order."""
    laws = {
        n: Power(p, over=over, bound="at least", margin=0.1, meaning="residual", short=ROUNDING)
        for n, p in orders.items()
    }
    return All(laws)


DELTAS: Mapping[str, Grid | None] = {
    "quick": Grid(tuple({"delta": v} for v in (0.005, 0.01, 0.02, 0.04, 0.08)), 6),
    "full": Grid(tuple({"delta": v} for v in (0.005, 0.01, 0.02, 0.04, 0.08)), 12),
}
EPSILONS: Mapping[str, Grid | None] = {
    "quick": Grid(tuple({"eps": v} for v in (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)), 6),
    "full": Grid(tuple({"eps": v} for v in (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)), 12),
}
ORDERS_5 = dict(zip((f"lambda hat {k}" for k in range(1, 6)), (2, 3, 3, 3, 2), strict=True))
ORDERS_5 |= dict(zip((f"lambda hat {k}, gamma2 = 0" for k in range(1, 6)), (4, 3, 3, 3, 4), strict=True))
ORDERS_6 = dict(zip((f"lambda {k}, i != j" for k in range(1, 6)), (3, 3, 3, 3, 2), strict=True))
ORDERS_6 |= dict(zip((f"lambda {k}, i = j" for k in range(1, 6)), (2, 3, 3, 3, 2), strict=True))
FAMILIES = ("gamma1", "gamma2", "zeta1", "zeta2", "I1", "I2", "I3")
FORMS = (Variant("printed", {"form": "printed"}, expected="refuted"), Variant("corrected", {"form": "corrected"}))
STABLE = Bounded(high=0.0, meaning="largest real part on the box", visible=math.inf, because="a sign")

CLAIMS = (
    Claim(
        id="eq-5",
        statement="Near initialisation d gamma1/dt = 6 c1^2 gamma2^3 / a^2 and d gamma2/dt = 18 c0^2 gamma2^2 / b^2 "
        "(the proportionality constants of equation (5)).",
        source=at("equation (5)"),
        measure=equation_5,
        law=All(
            {
                "router": Equals(1.0, absolute=1e-5, error=1e-9, meaning="router rate over 6 c1^2 gamma2^3 / a^2"),
                "expert": Equals(1.0, absolute=1e-5, error=1e-9, meaning="expert rate over 18 c0^2 gamma2^2 / b^2"),
            }
        ),
        sweep={"quick": Grid(tuple({"gamma2": g} for g in (1e-4, 1e-3)), 3)},
        control=break_measure(functools.partial(equation_5, slower=2e-5)),
        rungs=(1, 3, 9),
    ),
    Claim(
        id="eq-5-sol",
        statement="The escape time of an expert from gamma2(0), and the router's constant lag of 5.49 (unit norms).",
        source=at("Section 4.1, after equation (5)"),
        measure=escape,
        law=All(
            {
                "time": Equals(1.0, relative=1e-3, error=1e-8, meaning="time to gamma2 = 0.9 over its prediction"),
                "lag": Equals(5.49, absolute=0.02, error=1e-6, meaning="time from expert to router"),
            }
        ),
        sweep={
            "quick": Grid(tuple({"gamma2": g} for g in (1e-2, 1e-3, 1e-4))),
            "full": Grid(tuple({"gamma2": 10.0**-k} for k in range(2, 7))),
        },
        control=break_measure(functools.partial(escape, norm=1.001)),
        rungs=(3, 4, 8, 9),
        variants=(
            Variant("printed", {"form": "printed"}, "As printed: 1 / gamma2(t) = 1 / gamma2(0) - t.", "refuted"),
            Variant(
                "corrected",
                {"form": "corrected"},
                "t = (2/9)(1/gamma2(0) - 1/gamma2(t) + atanh gamma2(t) - atanh gamma2(0)): the slope is 4.5.",
            ),
        ),
        control_variant="corrected",
        erratum="errata-9",
    ),
    Claim(
        id="lem-5",
        statement="lambda hat 1..5 equal their leading terms up to O(delta^2, delta^3, delta^3, delta^3, delta^2) at "
        "gamma2 != 0, and up to O(delta^4) for the first and the last at gamma2 = 0.",
        source=at("Lemma 5"),
        measure=lemma_5,
        law=at_least(ORDERS_5, "delta"),
        variants=(Variant("main", expected="consistent"),),
        sweep=DELTAS,
        control=break_measure(functools.partial(lemma_5, drop=True)),
        slow_control=True,
        rungs=(2, 8, 9),
    ),
    Claim(
        id="lem-6",
        statement="lambda 1..5 of two students are O(delta^3, delta^3, delta^3, delta^3, delta^2). lambda 1..5 "
        "of one student equal 6 S_11(1), 6 C_S2 p (three times) and 2 S_00(1) up to O(p^2, p^3, p^3, "
        "p^3, p^2).",
        source=at("Lemma 6"),
        measure=lemma_6,
        law=at_least(ORDERS_6, "delta"),
        sweep=DELTAS,
        control=break_measure(functools.partial(lemma_6, drop=True)),
        slow_control=True,
        rungs=(2, 8, 9),
    ),
    Claim(
        id="lem-7",
        statement="If all overlaps are of size eps, the gradient projections equal the terms of the lemma up to "
        "O(eps^3).",
        source=at("Lemma 7"),
        measure=lemma_7,
        law=at_least(dict.fromkeys(FAMILIES, 3), "eps"),
        sweep=EPSILONS,
        control=break_measure(functools.partial(lemma_7, sign=-1)),
        slow_control=True,
        rungs=(1, 2, 3, 8, 9),
        variants=(
            Variant("printed", {"form": "printed"}, "As printed: no term for grad_w_i L . w_j, i != j.", "refuted"),
            Variant(
                "corrected", {"form": "corrected"}, "With the term 9 lambda_ij5 (1 - I2_ij^2) of grad_w_i L . w_j."
            ),
        ),
        control_variant="corrected",
        erratum="errata-1",
    ),
    Claim(
        id="lem-14",
        statement="(I3_ii, zeta1, zeta2) of the target pair obey a linear system that is stable on [0.9, 1]^2.",
        source=at("Lemma 14"),
        measure=lemma_14,
        law=All({"jacobian": Vanishes(1e-8, meaning="distance from the Jacobian of the flow"), "stability": STABLE}),
        sweep={"quick": Grid(({"grid": 6},), 60), "full": Grid(({"grid": 41},), 60)},
        control=break_measure(functools.partial(lemma_14, drop=True)),
        rungs=(1, 3, 8, 9),
        variants=(
            Variant("printed", {"form": "printed"}, "With the printed coefficients.", "refuted"),
            Variant(
                "sign",
                {"form": "sign"},
                "Only the stability, with the printed coefficients except for -rho_3 in the last row.",
                law=All({"stability": STABLE}),
                control=break_setting(form="printed"),
            ),
            Variant("corrected", {"form": "corrected"}, "With the coefficients re-derived from the exact flow."),
        ),
        control_variant="corrected",
        erratum="errata-5",
    ),
)
