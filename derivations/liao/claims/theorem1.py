"""Claims on Theorem 1 (sequential recovery in O(sqrt d) time), for the random and for an orthogonal initialisation."""

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.broken import break_law, break_measure, break_number, break_setting, once
from derivations.claim import Claim, Grid, Variant
from derivations.laws import LOGARITHMS, All, Equals, Power, Probability
from derivations.liao import race
from derivations.liao.claims import tools
from derivations.liao.claims.tools import at

ERRATUM = "errata-1"
LAG = 5.49
"""The router follows its expert by this time in the exact reduction m = m* = 1 (unit norms)."""
BOTH = (
    Variant("random", {"init": "random"}, expected="refuted"),
    Variant("orthogonal", {"init": "orthogonal"}),
)
SHARES = (BOTH[0], Variant("orthogonal", {"init": "orthogonal"}, expected="consistent"))
"""Under the orthogonal initialisation the events fail with a probability that vanishes with d, far from 7 delta_P."""
LONG = {
    "quick": Grid(tuple({"d": 10**k} for k in (5, 6, 8, 10, 12)), 8),
    "full": Grid(tuple({"d": 10**k} for k in (5, 6, 7, 8, 9, 10, 11, 12)), 20),
}
SINGLE: dict[str, Grid | None] = {"quick": Grid(({"d": 10**9},), 30), "full": Grid(({"d": 10**10},), 60)}
WIDTHS = (100, 200)
WIDE = {"m": 80, "m_star": 4}
"""A width that Theorem 1 admits: its proof asks for m >= 18 log(m*/delta_P) = 79 (83 for m* = 5), delta_P = 1/20."""


def all_recovered(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return 1 if every teacher is recovered by time sqrt(d) + 60, else 0.

    Router and expert must be recovered by the same student.
    """
    return float(np.isfinite(tools.pair_times(tools.recovery(lab, point, seed))).all())


def in_order(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return 1 if the teachers are recovered one after the other, else 0.

    Router and expert of teacher l must be recovered before the expert of teacher l + 1, for every l.
    """
    run = tools.recovery(lab, point, seed)
    pairs, experts = tools.pair_times(run), tools.recovery_times(run)
    return float(np.isfinite(pairs).all() and (pairs[:-1] <= experts[1:]).all())


def unrecovered_overlap(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest |gamma1| and |gamma2| of students and teachers without a recovered partner.

    It is read whenever an expert is recovered, except at the last recovery.
    """
    found, run = [], tools.recovery(lab, point, seed)
    order = np.argsort(run["T_gamma2"].min(axis=0))
    experts = tools.used(run)
    for count, (_, end) in enumerate(tools.staged(lab, point, seed), 1):
        for name in ("gamma1", "gamma2"):
            rest = np.delete(np.delete(end[name][-1], experts[order[:count]], 0), order[:count], 1)
            found.append(float(np.abs(rest).max(initial=0.0)))
    return max(found, default=0.0) or math.inf


def waiting_overlap(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest |gamma1|, |gamma2| of pairs that are not yet recovered, over all l.

    It is read at T_l + share (T_(l+1) - T_l), where T_l is the time at which router and expert of the first l pairs
    have passed 0.9. `share` 1 is the last moment of [T_l, T_(l+1)), a relative 1e-9 before its end. The result is
    infinite if a teacher is never recovered.
    """
    run = tools.recovery(lab, point, seed)
    times = np.maximum(run["T_gamma1"], run["T_gamma2"])
    expert, pairs = times.argmin(axis=0), times.min(axis=0)
    if not np.isfinite(pairs).all():
        return math.inf
    order, found = np.argsort(pairs), []
    for done in range(1, len(order)):
        first, last = pairs[order[done - 1]], pairs[order[done]]
        moment = first + min(point["share"], 1.0) * (last - first)
        end = tools.stopped(lab, point, seed, moment * (1 - 1e-9))
        rest = order[done:]
        found += [float(np.abs(end[name][-1][expert[rest], rest]).max()) for name in ("gamma1", "gamma2")]
    return max(found)


def last_recovery(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return T*, the time of recovery of the last pair of router and expert; infinite if a pair is never recovered."""
    return float(tools.pair_times(tools.recovery(lab, point, seed))[-1])


def perfection(lab: Any, point: Mapping[str, Any], seed: int, wait: float = 1.0) -> float:
    """Return max(1 - gamma1, 1 - gamma2) over the recovered pairs after settling.

    The result is infinite if a teacher is never recovered. `wait` shortens the time after the last recovery, so that 1
    - gamma is large enough to be read directly (control).
    """
    run = tools.settled(lab, point, seed, wait)
    if run is None:
        return math.inf
    pairs = [(int(i), j) for j, i in enumerate(tools.used(tools.recovery(lab, point, seed)))]
    if wait < 1:
        return max(1 - float(run[name][-1][pair]) for name in ("gamma1", "gamma2") for pair in pairs)
    return max(tools.shortfall(lab, run, name, *pair) for name in ("gamma1", "gamma2") for pair in pairs)


def unused_overlap(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest overlap, of any kind, of an unused expert after settling.

    Without recovery it is read at the end of the run. I3 is not symmetric, so both v_i . w_j and v_j . w_i count.
    """
    run = tools.pruned_run(lab, point, seed)
    rest = tools.unused(tools.recovery(lab, point, seed))
    largest = max(np.abs(run[name][-1][rest]).max() for name in ("gamma1", "gamma2", "zeta1", "zeta2"))
    for name in ("I1", "I2"):
        block = run[name][-1][rest].copy()
        block[np.arange(rest.size), rest] = 0
        largest = max(largest, np.abs(block).max())
    return float(max(largest, np.abs(run["I3"][-1][rest]).max(), np.abs(run["I3"][-1][:, rest]).max()))


def annihilation_ratio(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the first time at which min I2 falls below -1/2, over its prediction.

    The prediction is sqrt(d)/(9 max |z_-|) with the exact leading-order rates.
    """
    start = lab.initial(seed=seed, d=point["d"], **tools.SMALL)
    rate = 4.5 * (start.constants["norm_w"][:, None] ** -2 + start.constants["norm_w"] ** -2)
    z = np.tril(start.state["I2"] * rate / 9, -1).min()
    predicted = 1 / (9 * -z)
    size = {"d": point["d"], "until": 1.5 * predicted + 20, **tools.SMALL}
    run = lab.integrate(seed=seed, stiff=True, save_points=2, rtol=1e-6, **size)
    return float(run["T_I2"].min() / predicted)


def race_ratio(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the time of the first capture in the flow over the time of the first capture in the race."""
    start = lab.initial(seed=seed, d=point["d"], **tools.SMALL, init=point.get("init", "random"))
    b = start.constants["norm_w"]
    u = math.sqrt(point["d"]) * start.state["gamma2"] / b[:, None] ** 2
    z = math.sqrt(point["d"]) * start.state["I2"] * (b[:, None] ** -2 + b**-2) / 2
    predicted = race.capture_times(u, z)[0] * math.sqrt(point["d"])
    run = tools.recovery(lab, {"init": "random", **point}, seed)
    return float(tools.recovery_times(run)[0] / predicted)


def missing_term(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return dI2_ij/dt over -9 I2_ij^2 at small overlaps, for the entry with the largest |I2|."""
    start = tools.small_overlaps(np.random.default_rng(seed), 4, 2, point["eps"])
    derivative = lab.functions(start).flow(start.state)["I2"]
    off = start.state["I2"] - np.eye(4)
    i, j = np.unravel_index(np.argmax(np.abs(off)), off.shape)
    return float(derivative[i, j] / (-9 * off[i, j] ** 2))


def greedy_order(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return 1 if all greedy experts recover their teachers, in the greedy order, else 0.

    The greedy experts are those of the initial overlaps.
    """
    run = tools.recovery(lab, point, seed)
    start = lab.initial(seed=seed, d=point["d"], **tools.SMALL, init=point["init"])
    expert = run["greedy_expert"]
    greedy = start.state["gamma2"][expert, np.arange(len(expert))]
    times = run["T_gamma2"][expert, np.arange(len(expert))]
    return float(np.isfinite(times).all() and (np.diff(times[np.argsort(-greedy)]) > 0).all())


def success_of_width(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Return 1 if the race captures all five teachers, else 0, for each of two widths that the proof allows.

    With orthogonal students no pair can annihilate.
    """
    rng, m_star, found = np.random.default_rng(seed + 10_007 * lab.seed), 5, {}
    for m in WIDTHS:
        u, z = rng.normal(size=(m, m_star)), np.zeros((m, m))
        if point["init"] == "random":
            z = rng.normal(size=(m, m))
        captured = len(race.capture_times(u, np.tril(z) + np.tril(z).T))
        found[f"m = {m}"] = float(captured == m_star)
    return found


def with_random(measure: Callable[..., Any]) -> Callable[[Claim], Claim]:
    """Return a control with students that are drawn independently, so that their experts repel each other in pairs."""
    return break_measure(lambda lab, point, seed: measure(lab, {**point, "init": "random"}, seed))


def event(id: str, statement: str, measure: Callable[..., Any], meaning: str, full: Grid | None = None) -> Claim:
    """Return the claim that an event happens with the probability of Theorem 1."""
    return Claim(
        id=id,
        statement=f"{statement} (with probability at least 1 - 7 delta_P, which is .65 at delta_P = 1/20).",
        source=at("Theorem 1"),
        measure=measure,
        law=Probability(low=0.65, meaning=meaning),
        sweep=SINGLE | ({"full": full} if full else {}),
        control=with_random(measure),
        slow_control=True,
        rungs=(3, 4, 5, 8, 9),
        variants=SHARES,
        control_variant="orthogonal",
        erratum=ERRATUM,
    )


def rate(id: str, statement: str, measure: Callable[..., Any], law: Power, control: Any, **more: Any) -> Claim:
    """Return a claim on the growth or decrease of a quantity with d, in runs from both initialisations."""
    return Claim(
        id=id, statement=statement, source=at("Theorem 1"), measure=measure, law=law, control=control,
        slow_control=True, rungs=(3, 4, 5, 8, 9), control_variant="orthogonal", **more,
    )  # fmt: skip


CLAIMS = (
    event(
        "thm-1a",
        "An injective map assigns an expert to every teacher, and all m* pairs are recovered in O(sqrt d) time",
        all_recovered,
        "all teachers recovered by sqrt(d) + 60",
        full=Grid(({"d": 10**10}, {"d": 2 * 10**11, **WIDE}), 40),
    ),
    event(
        "thm-1b",
        "Recovery is sequential: router and expert of the pairs up to l have passed 0.9 before the next expert does",
        in_order,
        "pairs recovered one after the other",
    ),
    rate(
        "thm-1c",
        "At each recovery of an expert except the last, gamma1 and gamma2 of all pairs that are not yet "
        "recovered are O(m^2 / (delta_P sqrt d)).  (thm-1g is about the other times of [T_l, T_(l+1)).)",
        unrecovered_overlap,
        Power(-0.5, bound="at most", margin=0.03, reached=0.65, meaning="largest unrecovered overlap"),
        break_number(-2),
        sweep=tools.LARGE,
        variants=(Variant("random", {"init": "random"}), BOTH[1]),
    ),
    rate(
        "thm-1d",
        "All pairs are recovered by T* = O(sqrt d).",
        last_recovery,
        Power(0.5, margin=0.02, rivals=tuple(LOGARITHMS), shift=LAG, reached=0.65, meaning="T* - 5.49"),
        break_law(exponent=0.54, rivals=()),
        sweep=LONG,
        variants=BOTH,
        erratum=ERRATUM,
    ),
    rate(
        "thm-1e",
        "The learned features (routers and experts) deviate by O(m^7 delta_P^-3 d^-3/2) from the teachers, "
        "measured at T* + 30 + 4.5 log d.",
        perfection,
        Power(-1.5, bound="at most", margin=0.05, reached=0.65, meaning="1 - gamma after T*"),
        break_measure(functools.partial(perfection, wait=0.05)),
        sweep=tools.LARGE,
        variants=SHARES,
        erratum=ERRATUM,
    ),
    rate(
        "thm-1f",
        "Overlaps of unused experts are O(m^2 / (delta_P sqrt d)) after all pairs are recovered, measured at T* "
        "+ 30 + 4.5 log d.",
        unused_overlap,
        Power(-0.5, bound="at most", margin=0.03, meaning="largest overlap of unused experts"),
        break_number(-2),
        sweep=tools.LARGE,
        variants=BOTH,
        erratum=ERRATUM,
    ),
    rate(
        "thm-1g",
        "On the whole of [T_l, T_(l+1)) both alignments of the pairs that are not yet recovered are O(m^2 / "
        "(delta_P sqrt d)). But those of pair l + 1 are at least 0.9 at T_(l+1). A continuous flow allows both "
        "only if T_l = T_(l+1).",
        waiting_overlap,
        Power(-0.5, bound="at most", margin=0.03, reached=0.65, meaning="largest overlap of pairs to come"),
        break_setting(share=1.0),
        sweep=tools.LARGE,
        variants=(
            Variant("printed", {"init": "orthogonal", "share": 1.0}, expected="refuted"),
            Variant(
                "orthogonal",
                {"init": "orthogonal", "share": 0.9},
                "The alignments are bounded in this way after nine tenths of the interval. Overlaps exceed the "
                "order d^(-1/2) only in the last part of the interval.",
                "consistent",
            ),
        ),
        erratum="errata-11",
    ),
    event(
        "claim-order",
        "Teachers are recovered in the greedy order of w_i(0).w*_j",
        greedy_order,
        "all teachers recovered in the greedy order",
    ),
    Claim(
        id="claim-m",
        statement="Moderate over-parameterisation m >= Omega(m* log(m*/delta_P)) suffices to recover every "
        "teacher (m* = 5, race limit d -> infinity). The claim thm-1a at full effort has the flow at m "
        "= 80, m* = 4.",
        source=at("Theorem 1"),
        measure=success_of_width,
        law=All({f"m = {m}": Probability(low=0.65, meaning="all five teachers captured") for m in WIDTHS}),
        sweep={"quick": Grid(({},), 100), "full": Grid(({},), 1000)},
        control=with_random(success_of_width),
        rungs=(8, 9),
        variants=SHARES,
        control_variant="orthogonal",
        erratum=ERRATUM,
    ),
    Claim(
        id="own-1",
        statement="Student experts obey dI2_ij/dt = -9 I2_ij^2 + O(eps^3) at unit norms. The proof of Lemma 7 "
        "omits this term.",
        source=at("Lemma 7, corrected"),
        measure=missing_term,
        law=Equals(1.0, absolute=2e-3, meaning="dI2/dt over -9 I2^2", error=1e-9, because="the next order m eps"),
        sweep=once({"eps": 1e-4}, seeds=9),
        control=break_number(),
        rungs=(3, 6, 8, 9),
        erratum=ERRATUM,
    ),
    Claim(
        id="own-2",
        statement="From the random initialisation the first student pair anti-aligns at time sqrt(d) / (9 max |z_-|).",
        source=at("Theorem 1, corrected"),
        measure=annihilation_ratio,
        law=Equals(1.0, relative=0.02, meaning="T_A over its prediction", because="cubic terms, m z / sqrt d"),
        sweep={"quick": Grid(({"d": 10**6},), 12), "full": Grid(tuple({"d": 10**k} for k in (6, 8, 10)), 20)},
        control=break_number(),
        slow_control=True,
        rungs=(3, 4, 8, 9),
        erratum=ERRATUM,
    ),
    Claim(
        id="own-5",
        statement="With mutually orthogonal students the race of leading-order growth has no annihilating pairs "
        "and predicts the first captured teacher.",
        source=at("Theorem 1, repaired"),
        measure=race_ratio,
        law=Equals(1.0, relative=0.02, meaning="first recovery over the race's first capture", because="u^2 / sqrt d"),
        sweep={
            "quick": Grid(({"d": 10**8, "init": "orthogonal"},), 12),
            "full": Grid(({"d": 10**10, "init": "orthogonal"},), 20),
        },
        control=break_number(),
        slow_control=True,
        rungs=(3, 4, 8, 9),
        erratum=ERRATUM,
    ),
)
