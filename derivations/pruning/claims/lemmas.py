"""Claims on Lemmas 4.1, 4.2 and 4.4: the effect of fine-tuning on important and unimportant experts."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_law, break_measure, break_number, break_setting, grid, over
from derivations.claim import Variant
from derivations.laws import Bounded, Power, Vanishes
from derivations.laws.tools import EXCEPTIONS
from derivations.pruning.claims.tools import claim, final, theory

PAIR = {"k": 2, "missigned": 0, "weak": 0, "important": 1}
"""One important expert of each sign."""


def important(lab: Any, point: Mapping[str, Any], seed: int) -> Any:
    """Run important experts at the rates of the theory."""
    given = {name: point[name] for name in ("d", "l", "K", "p_important", "eta_r") if name in point}
    return theory(lab, seed, **{**PAIR, "K": 8.0, **given})


def own(run: Any, name: str = "p") -> np.ndarray:
    """Return the proficiency (time, expert) on the own task token: p_1 of positive and p_2 of negative experts."""
    return np.where(run["a"] > 0, run["p1"], run["p2"])


def unselected(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest probability at T that an important expert does not select its own task token."""
    return float(1 - own(important(lab, point, seed))[-1].min())


def gate(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the smallest gate of the own task token at T, over experts and inputs."""
    run = important(lab, point, seed)
    gap = run["h"][-1, [0, 1], [0, 1]] - run["h"][-1, :, 2:].max(axis=1)
    l = run.origin.parameters["l"]
    return float(np.where(gap >= 0, 1 / (1 + (l - 1) * np.exp(-gap)), 0.0).min())


def displacement(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the displacement of active neurons at the own task pattern at T, averaged over experts."""
    run = important(lab, point, seed)
    return float(run["D"][-1, [0, 1], [0, 1]].mean())


def norm_growth(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the mean growth of the router norms at T, over 1.5 log l.

    With `of` "h", return the mean growth of the own task logit per active neuron.
    """
    run = important(lab, point, seed)
    if point.get("of") == "h":
        active = (run["u_start"][[0, 1], :, [0, 1]] >= 0).sum(axis=-1)
        return float(((run["h"][-1] - run["h"][0])[[0, 1], [0, 1]] / active).mean())
    return float(run["Delta"][-1].mean() / (1.5 * np.log(run.origin.parameters["l"])))


def least_growth(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the smallest growth of a router norm among the experts at T, over 1.5 log l."""
    run = important(lab, point, seed)
    return float(run["Delta"][-1].min() / (1.5 * np.log(run.origin.parameters["l"])))


def slow_router(measure: Any) -> Any:
    """Return the same measurement with routers whose learning rate has an additional factor 1/d."""

    def broken(lab: Any, point: Mapping[str, Any], seed: int) -> Any:
        d, l = int(point.get("d", 100)), int(point.get("l", 5))
        return measure(lab, {**point, "eta_r": 0.01 / d / (20 * l**2) / d}, seed)

    return broken


KIND = {
    "important": {"important": 1, "missigned": 0, "weak": 0},
    "missigned": {"important": 0, "missigned": 1, "weak": 0},
    "weak": {"important": 0, "missigned": 0, "weak": 1},
}


def unimportant(lab: Any, point: Mapping[str, Any], seed: int) -> Any:
    """Run one unimportant expert of each sign, of the given kind, to T."""
    return theory(lab, seed, k=2, d=int(point["d"]), K=5.0, c0=point.get("c0", 3.0), **KIND[point["kind"]])


def change(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the mean over experts of |Delta| or of |w(T) - w(0)|."""
    run = unimportant(lab, point, seed)
    return float(np.abs(run[point["of"]][-1]).mean())


def rise(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest increase of the own proficiency among weak experts."""
    p = own(unimportant(lab, {**point, "kind": "weak"}, seed))
    return float((p[-1] - p[0]).max())


def grown_gap(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the smallest gap of the own task token over all patterns, at `late` times T.

    The minimum is over experts with Delta > 1.5 log l. If the gap is above log(l - 1), and only then, the gate is above
    1/2 in every input and the proficiency is 1.
    """
    given = {"d": int(point["d"]), "k": 14, "important": 3, "missigned": 3, "weak": 1, "K": 5.0 * point["late"]}
    run = theory(lab, seed, **given)
    task = np.where(run["a"] > 0, 0, 1)
    gap = run["h"][-1, np.arange(14), task] - run["h"][-1, :, 2:].max(axis=1)
    grown = run["Delta"][-1] > 1.5 * np.log(5)
    return float(gap[grown].min())


def post_slope(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the smallest gain of the own displacement in T' steps after T, over eta_e T'."""
    given = {"d": int(point["d"]), "k": int(point["k"]), "l": int(point["l"])}
    run = theory(lab, seed, K=6.0, **given)
    end, half = final(run), given["k"] // 2
    kept = np.array([0, 1, half, half + 1])
    until = end.parameters.post_horizon
    post = lab.integrate(start=end, tier="flow", until=until, save_points=2, **given)
    gain = post["D"][-1, kept, np.array([0, 0, 1, 1])]
    return float(gain.min() / (end.parameters.eta_e * until)) * point.get("factor", 1.0)


def separation(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the smallest Delta of an important expert less the largest Delta of an unimportant one.

    The difference is divided by 1.5 log l.
    """
    given = {"k": 20, "important": 4, "missigned": 3, "weak": 2, "K": 6.0}
    run = theory(lab, seed, d=int(point["d"]), p_important=point.get("p", 0.9), **given)
    kind = np.tile(np.arange(10) < 4, 2)
    delta = run["Delta"][-1]
    return float((delta[kind].min() - delta[~kind].max()) / (1.5 * np.log(5)))


DS = (50, 100, 200, 400)
WIDE = (50, 100, 200, 400, 800)
PATTERNS = "a run grows like d^2 in time and memory"
CLAIMS = (
    claim(
        "lem-4.1-i",
        "An important expert ends with p_1(T) = 1.",
        "Lemma 4.1(i)",
        unselected,
        Vanishes(0.0, 0.0, "1 - p at T", EXCEPTIONS),
        over("p_important", 0.3, 0.5, 0.7, 0.9, seeds=15, d=100),
        break_measure(slow_router(unselected)),
        rungs=(4, 5, 9),
        full=over("p_important", 0.3, 0.5, 0.7, 0.9, seeds=15, d=400),
    ),
    claim(
        "lem-4.1-ii",
        "At T the gate of the own task token of an important expert is above 1/2 in every input.",
        "Lemma 4.1(ii)",
        gate,
        Bounded(low=0.5, meaning="least gate"),
        over("d", *DS, seeds=15),
        break_measure(slow_router(gate)),
        rungs=(4, 5, 9),
        variants=(Variant("main", expected="consistent"),),
    ),
    claim(
        "lem-4.1-iii",
        "At T a constant fraction of an important expert's neurons has alignment Omega(l C_2 sqrt(d log l)) "
        "with its task "
        "pattern.",
        "Lemma 4.1(iii)",
        displacement,
        Power(
            0.5,
            margin=0.05,
            meaning="displacement",
            because="the time before specialisation is a share of T",
            short=PATTERNS,
        ),
        over("d", *WIDE, seeds=8),
        break_number(),
        rungs=(4, 8, 9),
        variants=(
            Variant("in-d"),
            Variant(
                "in-l",
                {"d": 200},
                "The displacement grows at least like l (and, after specialisation, like l^2).",
                law=Power(
                    1.0, over="l", bound="at least", meaning="displacement", short="l tokens of d = 100 patterns"
                ),
                sweep={"quick": over("l", 3, 5, 8, 12, 20, seeds=6)},
                expected="consistent",
                control=break_law(exponent=2.5),
            ),
        ),
        control_variant="in-d",
    ),
    claim(
        "lem-4.1-iv",
        "Delta(T) > 1.5 log l for an important expert.",
        "Lemma 4.1(iv)",
        least_growth,
        Bounded(low=1.0, meaning="Delta/(1.5 log l)"),
        over("d", *DS, seeds=15),
        break_measure(slow_router(least_growth)),
        rungs=(4, 8, 9),
        variants=(
            Variant("bound", expected="consistent"),
            Variant(
                "independent-of-d",
                {},
                "Delta(T) does not depend on d.",
                law=Power(0.0, margin=0.05, meaning="Delta(T)", short=PATTERNS),
                sweep={"quick": over("d", *WIDE, seeds=24)},
            ),
        ),
        control_variant="bound",
        erratum="Delta from the gap",
    ),
    claim(
        "d1-eta",
        "With the extra 1/d in eta_r (Lemmas D.1, F.1 and H.1) Delta(T) = Omega(log l) still holds, for every d.",
        "Lemma D.1",
        slow_router(norm_growth),
        Power(0.0, bound="at least", margin=0.1, meaning="Delta/(1.5 log l)", because="Omega hides a constant, not d"),
        over("d", *DS, seeds=15),
        break_measure(norm_growth),
        rungs=(4, 8, 9),
        variants=(
            Variant("printed", expected="refuted"),
            Variant(
                "corrected",
                {"of": "h"},
                "With the extra 1/d the own task logit grows only by order 1/d, because the factor 1/d is "
                "counted twice.",
                law=Power(-1.0, margin=0.1, meaning="gain of the own task logit", short=PATTERNS),
                sweep={"quick": over("d", 50, 100, 200, 400, 800, seeds=10)},
            ),
        ),
        control_variant="corrected",
        erratum="extra 1/d",
    ),
    claim(
        "lem-4.2-i",
        "An unimportant expert, p_1(0) = c_0/d, ends with p_1(T) <= p_1(0).",
        "Lemma 4.2(i)",
        rise,
        Bounded(high=0.0, meaning="rise of p_1", visible=1 / 398, because="one of the 398 patterns"),
        over("c0", 1.0, 3.0, 10.0, seeds=20, d=400),
        break_measure(lambda lab, point, seed: rise(lab, {**point, "c0": 200.0}, seed)),
        rungs=(4, 9),
        full=over("c0", 1.0, 3.0, 10.0, seeds=20, d=800),
    ),
    claim(
        "lem-4.2-ii",
        "Delta(T) = O(log^2(l)/sqrt(d)) for an unimportant expert.",
        "Lemma 4.2(ii)",
        change,
        Power(-0.5, bound="at most", margin=0.05, meaning="|Delta(T)|", short=PATTERNS),
        over("d", *WIDE, seeds=20, of="Delta"),
        break_setting(kind="important"),
        rungs=(4, 8, 9),
        variants=(
            Variant("mis-signed", {"kind": "missigned"}, expected="consistent"),
            Variant("weak", {"kind": "weak"}, expected="consistent"),
            Variant(
                "change-mis-signed",
                {"kind": "missigned", "of": "dw"},
                "The norm of the change of a mis-signed router is of order 1/d, a factor sqrt(d) below the bound.",
                law=Power(-1.0, margin=0.1, meaning="|w(T) - w(0)|", short=PATTERNS),
            ),
            Variant(
                "change-weak",
                {"kind": "weak", "of": "dw"},
                "The norm of the change of a weak router is of order 1/d^2.",
                law=Power(-2.0, margin=0.2, meaning="|w(T) - w(0)|", short=PATTERNS),
            ),
        ),
        control_variant="mis-signed",
    ),
    claim(
        "lem-4.4-i",
        "Delta_s(T) > 1.5 log l implies p(T) = 1 and gates above 1/2, because the gap is above log(l - 1).",
        "Lemma 4.4(i)",
        grown_gap,
        Bounded(low=float(np.log(4)), meaning="least gap of an expert with Delta > 1.5 log l"),
        grid(*({"d": d, "late": late} for d in (50, 100, 200, 400) for late in (0.9, 1.0, 1.2)), seeds=5),
        break_measure(lambda lab, point, seed: grown_gap(lab, {**point, "d": 50, "late": 10.0}, seed)),
        rungs=(4, 9),
        variants=(
            Variant("in-the-window", expected="consistent"),
            Variant(
                "late",
                {},
                "Delta_s > 1.5 log l implies p = 1 also at ten times T, beyond sqrt(d) t*.",
                expected="refuted",
                sweep={"quick": over("d", 50, seeds=5, late=10.0)},
            ),
        ),
        control_variant="in-the-window",
        erratum="window of Lemma 4.4(i)",
        seconds=19.0,
    ),
    claim(
        "lem-4.4-iii",
        "In T' steps active neurons gain Omega(k l^2 C_2 sqrt(log l)) on the task pattern: between eta_e T'/4 and "
        "eta_e T'/2.",
        "Lemma 4.4(iii)",
        post_slope,
        Bounded(0.25, 0.5, meaning="gain/(eta_e T')"),
        grid(
            *(
                {"d": d, "k": k, "l": l}
                for d, k, l in ((50, 14, 5), (100, 14, 3), (100, 28, 5), (200, 14, 10), (400, 14, 5))
            ),
            seeds=12,
        ),
        break_measure(lambda lab, point, seed: post_slope(lab, {**point, "factor": 1.2}, seed)),
        rungs=(4, 9),
        seconds=15.0,
    ),
    claim(
        "gap-claim",
        "Router-norm change separates important from unimportant experts at T.",
        "Section 4.4",
        separation,
        Bounded(
            low=0.0, visible=math.inf, because="an order", meaning="least important less largest unimportant Delta"
        ),
        over("d", *DS, seeds=15),
        break_measure(lambda lab, point, seed: separation(lab, {**point, "p": 0.05}, seed)),
        rungs=(4, 9),
        full=over("d", 50, 100, 200, 400, 800, seeds=10),
        seconds=32.0,
    ),
)
