"""Lemmas 8 to 17: how the target pair escapes, and how small everything else stays (orthogonal initialisation)."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_law, break_measure, once
from derivations.claim import Claim, Grid, Variant
from derivations.laws import All, Bounded, Equals, Power
from derivations.liao.claims import tools
from derivations.liao.claims.tools import at

DECADES: Mapping[str, Grid | None] = {
    "quick": Grid(tuple({"d": 10**k, "init": "orthogonal"} for k in (6, 8, 10)), 6),
    "full": Grid(tuple({"d": 10**k, "init": "orthogonal"} for k in (6, 7, 8, 9, 10)), 12),
}
POINTS = tuple({"d": 10**k, "init": "orthogonal"} for k in (4, 5, 6))
SETTLING: Mapping[str, Grid | None] = {
    "quick": Grid(POINTS, 9),
    "full": Grid(tuple({"d": 10**k, "init": "orthogonal"} for k in (4, 5, 6, 7)), 12),
}
RANDOM: Mapping[str, Grid | None] = {
    "quick": Grid(tuple({"d": 10**k, "init": "random"} for k in (4, 5, 6)), 3),
    "full": Grid(tuple({"d": 10**k, "init": "random"} for k in (4, 6, 8)), 12),
}
BOTH = (
    Variant("random", {"init": "random"}, expected="refuted", sweep=RANDOM),
    Variant("orthogonal", {"init": "orthogonal"}),
)


def reduction(lab: Any, g2: float, until: float, points: int = 401) -> Any:
    """The exact flow of m = m* = 1 with every overlap zero except gamma2 = g2 (unit norms)."""
    d = 10**6
    rows = np.zeros((4, 8))
    rows[0, 0] = rows[2, 1] = rows[3, 2] = 1.0
    rows[1, 2], rows[1, 3] = g2, math.sqrt(1 - g2**2)
    start = tools.from_rows(rows, 1, 1)
    return lab.integrate(start=start, m=1, m_star=1, d=d, until=until, save_points=points, rtol=1e-10)


def target_moves_up(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Along a run: the smallest derivative of gamma2 of the target pair, and min gamma1 times sqrt(d)."""
    run = tools.recovery(lab, point, seed)
    size = {**tools.SMALL, "init": point["init"]}
    end = float(tools.recovery_times(run)[0])
    i, j = np.unravel_index(np.argmin(run["T_gamma2"]), run["T_gamma2"].shape)
    fine = lab.integrate(d=point["d"], seed=seed, until=end, save_points=201, stiff=True, **size)
    steps = np.diff(fine["gamma2"][:, i, j])
    return {"gamma2 step": float(steps.min()), "gamma1": float(fine["gamma1"][:, i, j].min() * math.sqrt(point["d"]))}


def escape_bound(lab: Any, point: Mapping[str, Any], seed: int, saturation: float = 1.0) -> float:
    """min over t of gamma2(t) minus 1/(1/gamma2(0) - 4.5 (1 - xi^2) t) while gamma2 <= xi (exact reduction).

    `saturation` = 0 leaves the factor 1 - xi^2 out, which makes the bound false.
    """
    xi, g2 = point["xi"], point["g2"]
    run = reduction(lab, g2, 1.3 * 2 / 9 * (1 / g2))
    t, g = run.time, run["gamma2"][:, 0, 0]
    inside = g <= xi
    inverse = 1 / g2 - 4.5 * (1 - saturation * xi**2) * t[inside]
    bound = np.where(inverse > 1, 1 / np.maximum(inverse, 1), 1.0)
    return float((g[inside] - bound).min() / g2)


def escape_time(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """T(0.9) of the first recovered pair, less its lag, times 4.5 gamma2(0)/b^2."""
    run = tools.recovery(lab, point, seed)
    start = lab.initial(seed=seed, d=point["d"], **tools.SMALL, init=point["init"])
    i, j = np.unravel_index(np.argmin(run["T_gamma2"]), run["T_gamma2"].shape)
    rate = 4.5 * start.state["gamma2"][i, j] / start.constants["norm_w"][i] ** 2
    return float(run["T_gamma2"][i, j] * rate)


def lag(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Time from gamma2 = 1/2 to both alignments above 0.9 for the first recovered pair."""
    run = tools.recovery(lab, point, seed)
    both = np.maximum(run["T_gamma1"], run["T_gamma2"])
    i, j = np.unravel_index(np.argmin(run["T_gamma2"]), both.shape)
    # From 1/2 to 0.9 the expert takes (2/9)(2 - 1/0.9 + atanh 0.9 - atanh 0.5) at rate S00 = 1/4.
    return float(both[i, j] - run["T_gamma2"][i, j] + 2 / 9 * (2 - 1 / 0.9 + math.atanh(0.9) - math.atanh(0.5)))


def router_lag(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """T(gamma1 = 0.9) - T(gamma2 = 0.9) in the exact reduction."""
    run = reduction(lab, 1e-3, 250.0, points=3)
    return float(run["T_gamma1"][0, 0] - run["T_gamma2"][0, 0])


def families(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """The largest overlap of each family at the first recovery, the recovered pair left out."""
    run = tools.recovery(lab, point, seed)
    first = float(tools.recovery_times(run)[0])
    end = first if math.isfinite(first) else math.sqrt(point["d"])
    size = {**tools.SMALL, "init": point["init"]}
    state = lab.integrate(d=point["d"], seed=seed, until=end, stiff=True, save_points=2, **size)
    i, j = np.unravel_index(np.argmin(run["T_gamma2"]), run["T_gamma2"].shape)
    found = {}
    for name in ("gamma1", "gamma2"):
        values = np.abs(state[name][-1]).copy()
        values[i, j] = 0
        found[name] = float(values.max())
    for name in ("zeta1", "zeta2"):
        found[name] = float(np.delete(np.abs(state[name][-1]), i, 0).max())
    for name in ("I1", "I2", "I3"):
        found[name] = float((np.abs(state[name][-1]) * (1 - np.eye(tools.SMALL["m"]))).max())
    return found


def others(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """The largest of all these families but the columns and rows that are allowed to move."""
    return max(families(lab, point, seed).values())


def recovered_column(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """The largest |gamma2| of other experts with the first recovered teacher, at the last recovery there is."""
    run = tools.recovery(lab, point, seed)
    times = tools.recovery_times(run)
    times = times[np.isfinite(times)]
    if times.size == 0:
        return math.inf
    size = {**tools.SMALL, "init": point["init"]}
    state = lab.integrate(d=point["d"], seed=seed, until=float(times[-1]), stiff=True, save_points=2, **size)
    i, j = np.unravel_index(np.argmin(run["T_gamma2"]), run["T_gamma2"].shape)
    return float(np.abs(np.delete(state["gamma2"][-1][:, j], i)).max())


def self_overlap(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """The largest |v_i.w_i| over recovered experts after settling."""
    run = tools.settled_precisely(lab, point, seed)
    if run is None:
        return math.inf
    return float(np.abs(np.diagonal(run["I3"][-1])[tools.used(run)]).max())


def row_overlap(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """The largest other overlap (gamma, zeta) in the rows of recovered experts after settling."""
    run = tools.settled_precisely(lab, point, seed)
    if run is None:
        return math.inf
    expert, teacher = tools.used(run), np.arange(2)
    largest = 0.0
    for name in ("gamma1", "gamma2"):
        rows = np.abs(run[name][-1][expert]).copy()
        rows[teacher, teacher] = 0
        largest = max(largest, float(rows.max()))
    return largest


def distance(name: str) -> Any:
    """A measure of max(1 - overlap) over the recovered pairs after settling."""

    def measure(lab: Any, point: Mapping[str, Any], seed: int) -> float:
        run = tools.settled_precisely(lab, point, seed)
        if run is None:
            return math.inf
        best = run[name][-1][tools.used(run), np.arange(2)]
        return float(max(np.max(1 - best), 1e-16))

    return measure


def bounded_by_root(
    id: str, statement: str, place: str, measure: Any, variants: Any = BOTH[1:], sweep: Any = DECADES
) -> Claim:
    """A claim that something stays O(1/sqrt d)."""
    points = sweep["quick"]
    return Claim(
        id=id,
        statement=statement,
        source=at(place),
        measure=measure,
        law=Power(-0.5, bound="at most", margin=0.05, reached=0.65, meaning="largest overlap"),
        sweep=sweep,
        control=break_measure(tools.mirrored(measure, points.points)),
        rungs=(3, 4, 8, 9),
        variants=variants,
        control_variant="orthogonal",
        slow_control=True,
        erratum="errata-1" if len(variants) > 1 else "",
    )


CLAIMS = (
    Claim(
        id="lem-8a",
        statement="Until it escapes, gamma2 of the target pair does not decrease and gamma1 stays above -C/sqrt(d).",
        source=at("Lemma 8"),
        measure=target_moves_up,
        law=All({"gamma2 step": Bounded(low=0.0, margin=1e-9), "gamma1": Bounded(low=-6.0, margin=1.0)}),
        sweep=DECADES,
        control=break_measure(
            lambda lab, point, seed: {"gamma2 step": -1.0, "gamma1": target_moves_up(lab, point, seed)["gamma1"]}
        ),
        rungs=(3, 4, 8, 9),
        variants=BOTH[1:],
        slow_control=True,
    ),
    Claim(
        id="lem-8b",
        statement="While gamma2 <= xi, gamma2(t) >= 1/(1/gamma2(0) - (18 c0^2/b^2)(1 - xi^2) t).",
        source=at("Lemma 8"),
        measure=escape_bound,
        law=Bounded(low=0.0, margin=1e-7, meaning="(gamma2 - bound) / gamma2(0)"),
        sweep=once(*({"xi": xi, "g2": g2} for xi in (0.5, 0.9) for g2 in (1e-1, 1e-2, 1e-3))),
        control=break_measure(lambda lab, point, seed: escape_bound(lab, point, seed, saturation=0.0)),
        rungs=(3, 4, 8, 9),
    ),
    Claim(
        id="lem-8c",
        statement="The escape time is T = (b^2 / (18 c0^2)) / gamma2(0) (1 + o(1)).",
        source=at("Lemma 8"),
        measure=escape_time,
        law=Equals(1.0, relative=0.01, meaning="T 4.5 gamma2(0)/b^2"),
        sweep={
            "quick": Grid(({"d": 10**8, "init": "orthogonal"},), 6),
            "full": Grid(({"d": 10**10, "init": "orthogonal"},), 15),
        },
        control=break_law(value=2.0),
        rungs=(3, 4, 8, 9),
        slow_control=True,
    ),
    bounded_by_root(
        "lem-9",
        "Until the target escapes, every other |gamma2| stays O(m^2/(delta_P sqrt d)).",
        "Lemma 9",
        lambda lab, point, seed: families(lab, point, seed)["gamma2"],
    ),
    bounded_by_root(
        "lem-10",
        "Overlaps of other experts with a recovered teacher stay O(m^2/(delta_P sqrt d)).",
        "Lemma 10",
        recovered_column,
    ),
    bounded_by_root(
        "lem-11",
        "All of gamma1, zeta1, zeta2, I1, I2, I3 (i != j) stay O(m^2/(delta_P sqrt d)).",
        "Lemma 11",
        others,
        BOTH,
    ),
    Claim(
        id="lem-12",
        statement="The self overlap |v_i.w_i| of recovered experts is O(m eps^3), eps ~ d^-1/2.",
        source=at("Lemma 12"),
        measure=self_overlap,
        law=Power(-1.5, bound="at most", margin=0.1, reached=0.65, meaning="|v_i.w_i|"),
        sweep=SETTLING,
        control=break_measure(tools.mirrored(self_overlap, POINTS)),
        rungs=(3, 4, 8, 9),
        variants=BOTH[1:],
        slow_control=True,
    ),
    Claim(
        id="lem-13",
        statement="From gamma2 = 1/2, router and expert both pass 0.9 within a constant time.",
        source=at("Lemma 13"),
        measure=lag,
        law=Equals(5.9, relative=0.15, meaning="time from gamma2 = 1/2 to both above 0.9"),
        sweep=DECADES,
        control=break_law(value=80.0),
        rungs=(3, 4, 8, 9),
        variants=BOTH[1:],
        slow_control=True,
    ),
    bounded_by_root(
        "lem-15", "The other overlaps in a recovered row stay O(d^-1/2).", "Lemma 15", row_overlap, sweep=SETTLING
    ),
    *(
        Claim(
            id=id,
            statement=f"{text} of recovered pairs is O(d^-3/2) after O(log d) time.",
            source=at(place),
            measure=distance(name),
            law=Power(-1.5, bound="at most", margin=0.1, reached=0.65, meaning=text),
            sweep=SETTLING,
            control=break_measure(tools.mirrored(distance(name), POINTS)),
            rungs=(3, 4, 8, 9),
            variants=BOTH[1:],
            slow_control=True,
        )
        for id, place, name, text in (
            ("lem-16", "Lemma 16", "gamma1", "1 - gamma1"),
            ("lem-17", "Lemma 17", "gamma2", "1 - gamma2"),
        )
    ),
    Claim(
        id="own-7",
        statement="The router follows its expert 5.49 time units later (exact reduction, threshold 0.9, unit norms).",
        source=at("Lemma 13, sharpened"),
        measure=router_lag,
        law=Equals(5.49, absolute=0.01, meaning="router lag"),
        sweep=once({}),
        control=break_law(value=80.0),
        rungs=(3, 4, 8, 9),
    ),
)
