"""Claims on specialisation: first integral, time to a gap, collapse, late growth, threshold of the router rate."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import brentq

from derivations.broken import break_measure, break_number, break_setting, grid, over
from derivations.claim import Variant
from derivations.laws import All, Bounded, Equals, Power, Vanishes
from derivations.pruning.claims.tools import alike, claim, once_run
from derivations.pruning.tiers.homogeneous import first_integral

N = 198


@functools.cache
def tau(l: int, gap: float) -> float:
    """Return the scaled time from gap 0 to `gap` for delta_0 = 0.

    It is int dx/(S (1 - S) sqrt(2 (x + (e^x - 1)/(l - 1)))).
    """
    from scipy.integrate import quad

    def integrand(s: float) -> float:
        x = s * s
        gate = 1 / (1 + (l - 1) * np.exp(-x))
        return 2 * s / (gate * (1 - gate) * np.sqrt(2 * (x + np.expm1(x) / (l - 1))))

    return float(quad(integrand, 0, np.sqrt(gap), epsabs=1e-9, epsrel=1e-9, limit=200)[0])


def hit(lab: Any, l: int, eta_r: float, eta_e: float, active: int, tier: str = "flow") -> float:
    """Return the time at which the gap of equal patterns grows from 0 to log l.

    Neurons elsewhere are switched off.
    """
    start = alike(N, 0.0, 0.0, active, alive=False, l=l, eta_r=eta_r, eta_e=eta_e)
    guess = 2 * tau(l, float(np.log(l))) / np.sqrt(eta_r * eta_e * active)
    return float(once_run(lab, start, 1.2 * guess, tier)["T_gap"][0])


def prefactor(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Return the measured time over the quadrature, and over the law of large l."""
    l, eta_r, eta_e, active = int(point["l"]), 1e-5, 1e-3, 10
    exact = 2 * tau(l, float(np.log(l))) / np.sqrt(eta_r * eta_e * active * (1 + 1 / N))
    exact *= np.sqrt(point.get("mass", 1.0))
    star = np.sqrt(2 * np.pi) * (l - 1) ** 1.5 / np.sqrt(l) / np.sqrt(eta_r * eta_e * active * (1 + 1 / N))
    star *= np.sqrt(np.log(l)) ** point.get("logarithm", 0)
    found = hit(lab, l, eta_r, eta_e, active)
    return {"quadrature": found / exact, "ratio": found / star}


def scaled(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the time to a gap of log l for one combination of learning rates and number of neurons."""
    given = {"eta_r": 1e-5, "eta_e": 1e-3, "active": 10}
    given[point["of"]] = point["x"]
    return hit(lab, 5, given["eta_r"], given["eta_e"], int(given["active"]))


def conserved(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the drift of the first integral along a run, relative to its terms."""
    start = alike(50, 0.05, 1.0, 10, l=5, eta_r=2e-4, eta_e=1e-3)
    run = once_run(lab, start, 2e4, "flow", rtol=1e-10)
    return drift_of(start, run, point.get("factor", 1.0))


def drift_of(start: Any, run: Any, factor: float = 1.0) -> float:
    """Return |change of the first integral| over its largest term."""
    gap = run["h"][:, :1, 0] - run["h"][:, :1, 2]
    D = run["u"][:, :1, 0, 0] - start.state["u"][:, 0, 0]
    values = first_integral(start, gap, factor * D)
    return float(abs(values[-1, 0] - values[0, 0]) / np.exp(gap[-1, 0]))


def euler_drift(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the drift of the first integral along Euler steps of the given length."""
    start = alike(50, 0.05, 1.0, 10, l=5, eta_r=2e-4, eta_e=1e-3, stride=float(point["step"]))
    return drift_of(start, once_run(lab, start, 2e4, "recursion", stride=float(point["step"])))


def collapse(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest relative deviation of the scaled curve x(tau) from the curve at reference rates."""
    l, times = 5, np.linspace(0, 12, 13)
    curves = []
    for eta_r, eta_e, active in ((1e-5, 1e-3, 10), (point["eta_r"], point["eta_e"], int(point["m"]))):
        start = alike(N, 0.0, 0.0, active, alive=False, l=l, eta_r=eta_r, eta_e=eta_e)
        unit = 2 / np.sqrt(eta_r * eta_e * active ** point.get("power", 1.0) * (1 + 1 / N))
        run = lab.integrate(start=start, tier="flow", until=float(times[-1] * unit), save_points=13)
        curves.append(run["h"][:, 0, 0] - run["h"][:, 0, 2])
    return float((np.abs(curves[0] - curves[1])[1:] / curves[0][1:]).max())


def late(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return e^x at a multiple of t*; with `window`, the slope d x/d log t between 5 and 100 times t*."""
    l = int(point["l"])
    star = 2 * tau(l, float(np.log(l))) / np.sqrt(1e-8 * 10)
    ends = (5.0, 100.0) if point.get("window") else (float(point["t"]),)
    x = []
    for at in ends:
        start = alike(N, 0.0, 0.0, 10, alive=False, l=l, eta_r=1e-5, eta_e=1e-3)
        run = once_run(lab, start, at * star)
        x.append(float(run["h"][-1, 0, 0] - run["h"][-1, 0, 2]))
    return (x[1] - x[0]) / float(np.log(20)) if point.get("window") else float(np.exp(x[0]))


def growth_at_T(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the gap at the time T of the theory over the gap by quadrature.

    The setting is K = 4 and c m_+/m = 1, for which tau(T) = (K l/2) sqrt(log l). With `plain`, return the gap over log
    l.
    """
    l, irrelevant = int(point["l"]), 2000
    start = alike(irrelevant, 0.0, 0.0, 4, alive=False, l=l, eta_r=1e-5, eta_e=1e-3)
    until = 4.0 * l * np.sqrt(np.log(l)) / np.sqrt(1e-8 * 4)
    run = once_run(lab, start, float(until))
    gap = float(run["h"][-1, 0, 0] - run["h"][-1, 0, 2])
    if point.get("plain"):
        return gap / float(np.log(l))
    scaled_time = until / 2 * np.sqrt(1e-8 * 4 * (1 + 1 / irrelevant))
    exact: Any = brentq(lambda x: tau(l, x) - scaled_time, 0.1, 4 * np.log(l) + 1)
    return gap / float(exact)


def threshold(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the router rate above which an expert loses its task token, over the formula.

    It is found by bisection. With `paper` the formula is the printed rate; with `bare` this rate lacks its factor 1/(m
    l^2) (control).
    """
    C, delta, l, N, m = point["C"], point["delta"], int(point["l"]), 60, 10
    m_eff, kappa = m * (1 + 1 / N), 1 + 1 / N
    law = 2e-3 * m_eff * (C + np.expm1(C) / (l - 1)) / (kappa * delta**2)
    if point.get("paper"):
        law = 1e-3 * C / ((1 if point.get("bare") else m * l**2) * (delta / m) ** 2)
    low, high = (1e-4 if point.get("bare") else 0.2) * law, (1e6 if point.get("paper") else 5.0) * law
    for _ in range(24):
        middle = np.sqrt(low * high)
        start = alike(N, C, delta, m, l=l, eta_r=float(middle), eta_e=1e-3)
        until = 40 * l * abs(delta) / (1e-3 * m)
        alive = once_run(lab, start, float(until))["p1"][-1, 0] > 0.5
        low, high = (middle, high) if alive else (low, middle)
    return float(np.sqrt(low * high) / law)


def death(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest motion of a router after it has lost its task token."""
    start = alike(60, 0.02, point["delta"], 10, l=int(point["l"]), eta_r=2e-4, eta_e=1e-3)
    run = lab.integrate(start=start, tier="flow", until=6e4, save_points=3)
    return float(np.abs(run["h"][2] - run["h"][1]).max())


def either(plain: Any, other: Any, key: str) -> Any:
    """Return a measurement that uses `other` if a point has `key`, and `plain` if it does not."""
    return lambda lab, point, seed: other(lab, point, seed) if key in point else plain(lab, point, seed)


CLAIMS = (
    claim(
        "first-integral",
        "x + e^x/(l - 1) - (eta_r (1 + 1/N)/eta_e)(delta_0 D + m_eff D^2/2) is conserved.",
        "Lemma E.4 (our first integral)",
        either(conserved, euler_drift, "step"),
        Vanishes(1e-8, meaning="relative drift"),
        grid({}),
        break_measure(lambda lab, point, seed: conserved(lab, {"factor": 1.01}, seed)),
        rungs=(4, 5, 9),
        variants=(
            Variant("flow"),
            Variant(
                "order-of-Euler",
                {},
                "Along Euler steps the conserved quantity drifts in proportion to the step.",
                law=Power(1.0, over="step", margin=0.05, error=1e-6, meaning="drift"),
                sweep={"quick": over("step", 0.16, 0.5, 1.6, 5.0, 16.0)},
                control=break_number(),
            ),
        ),
        control_variant="flow",
    ),
    claim(
        "t-star",
        "The gap reaches log l at the time tau(log l) of an exact quadrature. For large l this is t* = sqrt(2 "
        "pi)(l - 1)^(3/2) l^(-1/2)/sqrt(eta_r eta_e m_+), without a factor sqrt(log l).",
        "equation (21) (our law)",
        either(prefactor, scaled, "x"),
        All({"quadrature": Equals(1.0, relative=1e-3, error=1e-5, meaning="time over the quadrature")}),
        over("l", 2, 3, 5, 8, 10, 20, 30, 100),
        break_setting(mass=1.004),
        rungs=(2, 4, 8, 9),
        variants=(
            Variant("prefactor"),
            Variant(
                "large-l",
                {},
                "For large l the time is t*, without a factor sqrt(log l): the ratio of the two tends to a "
                "constant, which is 1.",
                law=All(
                    {
                        "quadrature": Equals(1.0, relative=1e-3, error=1e-5, meaning="time over the quadrature"),
                        "ratio": Power(
                            0.0,
                            over="l",
                            margin=0.005,
                            error=1e-5,
                            correction=1.0,
                            meaning="time over t*",
                            because="the next order is 1/l; sqrt(log l) would add .1",
                        ),
                    }
                ),
                sweep={"quick": over("l", 30, 100, 300, 1000, 3000)},
                control=break_setting(logarithm=1),
            ),
            *(
                Variant(
                    f"in-{name}",
                    {"of": name},
                    f"t* falls like {name}^(-1/2).",
                    law=Power(-0.5, over="x", margin=0.01, error=1e-5, meaning="t*"),
                    sweep={"quick": over("x", *values)},
                    control=break_number(),
                )
                for name, values in (
                    ("eta_r", (1e-6, 3e-6, 1e-5, 3e-5, 1e-4)),
                    ("eta_e", (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)),
                    ("active", (2, 6, 20, 60, 200)),
                )
            ),
        ),
        control_variant="prefactor",
    ),
    claim(
        "collapse",
        "The gap as a function of scaled time is one curve for all rates and numbers of neurons.",
        "section 4.1 (our scaling)",
        collapse,
        Vanishes(1e-6, meaning="relative deviation"),
        grid(
            {"eta_r": 1e-3, "eta_e": 1e-4, "m": 10},
            {"eta_r": 1e-5, "eta_e": 1e-2, "m": 40},
            {"eta_r": 1e-7, "eta_e": 1e-4, "m": 5},
        ),
        break_setting(power=0.99),
        rungs=(4, 8, 9),
    ),
    claim(
        "late-log",
        "At late times the gap x grows like 2 log t, so e^x grows like t^2.",
        "Lemma 4.1(iv) (our law)",
        either(late, growth_at_T, "at_T"),
        Power(
            2.0,
            over="t",
            margin=0.02,
            error=1e-6,
            correction=1.0,
            meaning="e^x",
            because="the time lost before gates saturate adds t*/t to the slope",
        ),
        over("t", 10, 30, 100, 300, 1000, 3000),
        break_number(),
        rungs=(4, 8, 9),
        variants=(
            Variant("slope", {"l": 5}),
            Variant("slope, l = 30", {"l": 30}),
            Variant(
                "from 5 t*",
                {"window": True},
                "Between 5 and 100 times t* the slope of the gap in log t is 2 within 0.05.",
                law=Equals(2.0, absolute=0.05, error=1e-5, meaning="dx/d log t"),
                sweep={"quick": over("l", 5, 10, 30)},
                expected="refuted",
            ),
            Variant(
                "at-T",
                {"at_T": True},
                "At T with K = 4 the gap is that of the quadrature.",
                law=Equals(1.0, relative=1e-3, error=1e-5, meaning="gap over the quadrature's"),
                sweep={"quick": over("l", 3, 10, 30, 100, 300)},
            ),
            Variant(
                "about-3",
                {"at_T": True, "plain": True},
                "At T with K = 4 the gap is about 3 log l (the proof of Lemma D.1 assumes at most 2 log l).",
                law=Equals(3.0, absolute=0.5, error=1e-5, meaning="gap over log l"),
                sweep={"quick": over("l", 10, 30, 100, 300)},
            ),
        ),
        control_variant="slope",
    ),
    claim(
        "dip-threshold",
        "A task token that is at first less active is lost if and only if eta_r is above 2 eta_e m_eff (C_p + "
        "(e^C_p - 1)/(l - 1))/((1 + 1/N) delta_0^2).",
        "Lemma E.4 (our threshold)",
        threshold,
        Equals(1.0, relative=0.01, error=1e-4, meaning="threshold over the law"),
        grid({"C": 0.02, "delta": -3.0, "l": 5}, {"C": 0.1, "delta": -1.0, "l": 10}, {"C": 0.5, "delta": -5.0, "l": 3}),
        break_number(),
        rungs=(4, 9),
        variants=(
            Variant("exact"),
            Variant(
                "printed",
                {"paper": True},
                "The printed rate eta_e C_p/(m l^2 C_2^2) is safe, because it is below the threshold.",
                law=Bounded(low=1.0, meaning="threshold over the printed rate"),
                expected="consistent",
                control=break_setting(bare=True),
            ),
        ),
        control_variant="exact",
    ),
    claim(
        "router-death",
        "A router that has lost its task token never moves again.",
        "Lemma E.4 (our finding)",
        death,
        Vanishes(0.0, 0.0, "motion"),
        grid({"delta": -3.0, "l": 5}, {"delta": -5.0, "l": 5}, {"delta": -3.0, "l": 10}),
        break_setting(delta=-0.2),
        rungs=(5, 9),
    ),
)
