"""Claims on the vanilla network: hitting times, the hidden global task, and exceptional neurons of Theorem 4.3."""

import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from derivations.broken import break_measure, break_number, once
from derivations.claim import Claim, Grid, Variant
from derivations.contract import Initial
from derivations.kawata.claims.tools import LOOSE, at, coefficient, hermite_link, neuron, quartile
from derivations.laws import Equals, Power, Vanishes
from derivations.laws.tools import EXCEPTIONS
from derivations.scaling import Form

K = 6
"""The information exponent of the theorem's measurements: its hypothesis asks for 5 at least."""
BIAS = {4: -0.5, 6: -1.0}


def learners(lab: Any, seed: int, **request: Any) -> Initial:
    """Return random neurons with a such that alpha_k is positive."""
    start = lab.initial(seed=seed, **request)
    alpha = coefficient(start.parameters.activation, request["k_star"], start.constants["b"])
    return dataclasses.replace(start, constants={**start.constants, "a": np.sign(alpha)})


def subset(start: Initial, chosen: np.ndarray) -> Initial:
    """Return the initial condition of some of the neurons."""
    state = {name: values[chosen] for name, values in start.state.items()}
    constants = {name: start.constants[name][chosen] for name in ("a", "b", "share")}
    fixed = {name: start.constants[name] for name in ("gram", "sigma")}
    p = dataclasses.replace(start.parameters, neurons=len(chosen))
    return Initial(p, state, {**fixed, **constants, "directions": np.eye(len(chosen))}, start.scale)


def single_runs(lab: Any, seed: int, level: float, neurons: int = 24, **request: Any) -> Iterator[tuple[Initial, Any]]:
    """Yield (start, run) of every neuron with alpha_k > 0 until its first local overlap reaches `level`.

    beta = 1, C = 2. From there to recovery a neuron needs a share (d^-1/2/level)^(k-2) of the time so far, 1e-6 at d =
    3e6. With the tolerances `LOOSE`, some runs would therefore end after recovery.
    """
    k, d = request["k_star"], request["d"]
    start = learners(lab, seed, C=2, rho=1.0, bias=(BIAS[k],), neurons=neurons, threshold=level, **request)
    horizon = 1e3 * d ** ((k - 2) / 2)
    times = lab.integrate(start=start, until=horizon, save_points=2, rtol=1e-9)["T_kappa"].min(axis=1)
    for j in np.flatnonzero(np.isfinite(times) & (times > 0)):
        one = subset(start, np.array([j]))
        yield one, lab.integrate(start=one, until=float(times[j]), save_points=2, rtol=1e-9)


def global_sup(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the median over neurons of sup_t |xi|, beta = (1, -1), s = (1, -1)."""
    d, k = point["d"], point.get("k", K)
    run = lab.integrate(C=2, d=d, link=hermite_link(k, 2, (1, -1)), bias=(BIAS[k],), neurons=400, seed=seed,
                        until=1e3 * d ** ((k - 1) / 2), save_points=20, rtol=1e-6)  # fmt: skip
    return float(np.median(np.abs(run["xi"]).max(axis=0)))


def exceptional(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the share of neurons that align with the global task in spite of the cancellation."""
    d, C, k = point["d"], point.get("C", 2), point.get("k", K)
    beta = (1, -1) if C == 2 else (1, -1, 1, -1)
    s = (1.0, -1.0) if C == 2 else (1.0, -1.0, 0.0, 0.0)
    run = lab.integrate(C=C, d=d, link=hermite_link(k, C, beta), s=s, bias=(BIAS[k],), neurons=point["neurons"],
                        seed=seed, until=1e3 * d ** ((k - 1) / 2), **LOOSE)  # fmt: skip
    return float(np.isfinite(run["T_xi"]).mean())


def hidden_time(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the 25 % quantile of the hitting time of the global task alone (no local tasks).

    Only neurons that reach it count.
    """
    d, k = point["d"], point["k"]
    run = lab.integrate(C=2, d=d, link=hermite_link(k, 2, 0.0), s=point["s"], bias=(point["b"],), neurons=150,
                        seed=seed, until=1e3 * d ** ((k + 1) / 2), **LOOSE)  # fmt: skip
    reached = run["T_xi"][np.isfinite(run["T_xi"])]
    return quartile(reached) if reached.size else math.inf


def race_share(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the share of learning neurons that align with the global task if it does not cancel, s = (1, 1)."""
    start = learners(lab, seed, C=2, d=point["d"], link=hermite_link(4, 2, (1, -1)), k_star=4, s=(1.0, 1.0),
                     bias=(-0.5,), rho=1.0, neurons=1500)  # fmt: skip
    run = lab.integrate(start=start, until=1e3 * point["d"], **LOOSE)
    return float(np.isfinite(run["T_xi"]).mean())


def unopposed_share(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the share of neurons that align with the cancelled global task.

    No local task can be learned (alpha beta < 0).
    """
    start = learners(lab, seed, C=2, d=point["d"], link=hermite_link(4, 2, -1.0), k_star=4, bias=(-0.5,), rho=1.0,
                     neurons=2500)  # fmt: skip
    run = lab.integrate(start=start, until=1e7 * point["d"] ** 1.5, **LOOSE)
    return float(np.isfinite(run["T_xi"]).mean())


def local_time(lab: Any, point: Mapping[str, Any], seed: int, constant: bool = False) -> float:
    """Return the hitting time of the local task from kappa = d^{-1/2}; with `constant`, over its leading form."""
    d, J, k = point.get("d", 10**6), point.get("J", 1), 4
    alpha = float(coefficient("relu", k, -0.5))
    arrays = neuron([d**-0.5, 0.0], a=math.copysign(1.0, alpha), b=-0.5)
    run = lab.integrate(initial=arrays, C=2, d=d, k_star=k, J=J, until=1e3 * J * d ** ((k - 2) / 2), save_points=2)
    time = float(run["T_kappa"][0, 0])
    return time / (2 * J * d ** ((k - 2) / 2) / (k * (k - 2) * abs(alpha))) if constant else time


def median_time(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the median time at which a learning neuron first reaches d^{-1/2+1/(2k)}."""
    d, k = point["d"], 4
    start = learners(lab, seed, C=2, d=d, k_star=k, bias=(-0.5,), neurons=120, threshold=d ** (-0.5 + 1 / (2 * k)))
    return quartile(lab.integrate(start=start, until=1e3 * d, **LOOSE)["T_kappa"].min(axis=1), 0.5)


def censor_everything(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return `exceptional` without the global task, so that no neuron can align with it."""
    run = lab.integrate(C=2, d=point["d"], link=hermite_link(4, 2, (1, -1), 0.0), bias=(-0.5,), neurons=500, seed=seed,
                        until=1e3 * point["d"] ** 1.5, **LOOSE)  # fmt: skip
    return float(np.isfinite(run["T_xi"]).mean())


WIDE = {
    "quick": Grid(tuple({"d": 10**k} for k in (2, 3, 4, 5, 6)), 10),
    "full": Grid(tuple({"d": 10**k} for k in range(2, 9)), 6),
}
RARE = {
    "quick": Grid(tuple({"d": 10**k, "neurons": 1500} for k in (4, 5, 6, 7, 8)), 6),
    "full": Grid(tuple({"d": 10**k, "neurons": 20_000} for k in range(4, 9)), 3),
}
FORMS = (
    Variant("typical", statement="For typical neurons: the median of sup |xi| is of order d^{-1/2}.",
            sweep=WIDE),
    Variant("all", statement="For all of J = poly(d) neurons with high probability, as stated.", expected="refuted",
            law=Vanishes(1e-3, refuted_above=5e-3, meaning="share of neurons that align with w*_g"),
            sweep={"quick": Grid(tuple({"d": 10 ** k, "neurons": 1500, "share": 1} for k in (3,4, 5,6)), 2)}),
)  # fmt: skip


def theorem(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the median of sup |xi|, or the share of neurons that violate the bound."""
    return exceptional(lab, point, seed) if "share" in point else global_sup(lab, point, seed)


def hidden(name: str, exponent: float, rival: float, statement: str, **settings: Any) -> Variant:
    """Return a form of `hidden-ie`."""
    law = Power(exponent, margin=0.03, rivals=(Form(f"d^{rival:g}", exponent=rival),), meaning="hitting time")
    return Variant(name, {"k": 4, "s": (1.0, -1.0), "b": -0.5, **settings}, statement, law=law)


HIDDEN = (
    hidden("cancelled", 1.5, 1.0, "For s = (1, -1) the hitting time is that of the information exponent k + 1."),
    hidden(
        "biasless",
        2.0,
        1.5,
        "For ReLU without bias and even k the hitting time is that of the information exponent k + 2.",
        b=0.0,
    ),
    hidden(
        "not cancelled",
        1.0,
        1.5,
        "For s = (1, 1) the hitting time is that of the information exponent k.",
        s=(1.0, 1.0),
    ),
)
STATED = "Along the flow of the vanilla network |xi_j| stays O(d^{-1/2}): the global task is not found."
CLAIMS = (
    Claim(
        "thm-4.3", STATED, at("Theorem 4.3"), theorem, Power(-0.5, margin=0.05, meaning="median of sup |xi|"), WIDE,
        break_number(-2), (4, 8, 9), FORMS, "typical", erratum="errata-4",
    ),
    Claim(
        "thm-B.17", STATED + "  (The measurement of thm-4.3.)", at("Theorem B.17"), theorem,
        Power(-0.5, margin=0.05, meaning="median of sup |xi|"), WIDE,
        break_number(-2), (4, 8, 9), FORMS, "typical", erratum="errata-4",
    ),
    Claim(
        "thm43-frac", "A fraction d^{-|C_j| / (2(k-2))} of the neurons nevertheless aligns with the global task.",
        at("Theorem 4.3 (corrected)"), exceptional,
        Power(-0.125, margin=0.04, meaning="share"), RARE, break_number(-2), (4, 8, 9),
        (
            Variant("one cluster", {"C": 2, "k": 6}, "|C_j| = 1, k = 6."),
            # Its exponent still changes at d = 10^7: at quick effort it lies across the edge of the margin.
            Variant("two clusters", {"C": 4, "k": 6}, "|C_j| = 2, C = 4, k = 6.", "inconclusive",
                    law=Power(-0.25, margin=0.04, meaning="share")),
            Variant("k = 4", {"C": 2, "k": 4}, "|C_j| = 1, k = 4, where the hypothesis k >= 5 fails.",
                    law=Power(-0.25, margin=0.04, meaning="share"), sweep={"quick": Grid(RARE["quick"].points, 12)}),
        ),
        "one cluster", erratum="errata-4",
    ),
    Claim(
        "thm43-race", "Without cancellation a share (2/pi) arctan(2^{1/(k-2)}) = .608 of the neurons finds the "
                      "global task, for every d.",
        at("Theorem 4.3 (control)"), race_share, Equals(0.608, absolute=0.02, meaning="share of neurons"),
        once({"d": 10**3}, {"d": 10**5}, seeds=8), break_number(), (4, 9),
    ),
    Claim(
        "thm43-empty", "If no local task can be learned, a share 1 - arctan(sqrt k)/pi = .648 of the neurons "
                       "finds the global task.",
        at("Theorem 4.3 (control)"), unopposed_share,
        Equals(0.648, absolute=0.02, meaning="share of neurons"),
        once({"d": 10**4}, {"d": 10**6}, seeds=8), break_number(), (4, 9),
        seconds=27.0,
    ),
    Claim(
        "hidden-ie", "A global task that cancels between the clusters has the hitting time of a larger "
                     "information exponent.",
        at("Section 4.1"), hidden_time, Power(1.5, margin=0.03), WIDE, break_number(-2), (4, 8, 9), HIDDEN,
        "cancelled",
    ),
    Claim(
        "eq-4.1.2", "Weak recovery of a local task takes a time of order J d^{(k-2)/2} (k = 4).", at("Section 4.1"),
        local_time, Power(1.0, margin=0.02, error=1e-5, meaning="hitting time"),
        {"quick": Grid(tuple({"d": 10**k} for k in (3, 4, 5, 6, 7)))}, break_number(), (4, 8, 9),
        (
            Variant("d"),
            Variant("J", identity="J divides the clock of the flow",
                    law=Power(1.0, over="J", margin=0.001, error=1e-5, meaning="hitting time"),
                    sweep={"quick": Grid(tuple({"J": j} for j in (1, 3, 10, 30, 100)))}),
        ),
        "d",
    ),
    Claim(
        "eq-4.1.2-constant", "From kappa = x d^{-1/2} weak recovery takes the time T = C J d^{(k-2)/2} / (k "
                             "(k-2) alpha beta x^{k-2}).",
        at("Section 4.1 (ours)"), functools.partial(local_time, constant=True),
        Equals(1.0, relative=0.005, error=1e-5, meaning="time over its leading form"), once({"d": 10**5}, {"d": 10**6}),
        break_number(), (4, 9),
    ),
    Claim(
        "lem-B.12", "Neurons that learn a task reach d^{-1/2+1/(2k)} within a time of order J d^{(k-2)/2} (the "
                    "median over neurons).",
        at("Lemma B.12"), median_time, Power(1.0, margin=0.05, bound="at most", meaning="median time"),
        {"quick": Grid(tuple({"d": 10**k} for k in (3, 4, 5, 6, 7)), 6)}, break_number(-2), (4, 8, 9),
    ),
    Claim(
        "thm43-none", "If there is no global task, no neuron aligns with the direction of this task.",
        at("Theorem 4.3 (control)"),
        censor_everything, Vanishes(0.0, 1e-3, "share", EXCEPTIONS), once({"d": 10**4}, seeds=60), break_measure(
            lambda lab, point, seed: exceptional(lab, {**point, "neurons": 500, "k": 4}, seed)), (4, 9),
    ),
)  # fmt: skip
