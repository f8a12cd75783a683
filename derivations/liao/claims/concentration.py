"""Claims on Lemmas 2 and 3 and Condition 1: properties of the random initialisation at any dimension."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_measure, break_number
from derivations.claim import Claim, Grid, Variant
from derivations.laws import All, Bounded, Power, Probability, Vanishes
from derivations.liao import initial
from derivations.liao.claims.algebra import draw
from derivations.liao.claims.tools import at

BETA = 0.1
"""The constant in delta_s = beta delta_P / m^2; the lemma only says that there is one."""
BETA_3 = 8.0
"""The constant of the bound on squared overlaps: union bounds give 2 log(2 m^2 / delta_P) / log(m / delta_P) < 6."""


def greedy(w: np.ndarray) -> list[tuple[int, int]]:
    """Return (i_l*, j_l*) for l = 1..m*: repeatedly the largest remaining entry of w (m, m*)."""
    left = w.copy()
    found = []
    for _ in range(w.shape[1]):
        i, j = divmod(int(left.argmax()), w.shape[1])
        found.append((i, j))
        left[i, :] = left[:, j] = -np.inf
    return found


def gap(w: np.ndarray) -> float:
    """Return the largest factor 1 + 2 delta_s for which the row, column and threshold gaps hold."""
    order = greedy(w)
    rows, columns = set(range(w.shape[0])), set(range(w.shape[1]))
    best = math.inf
    for step, (i, j) in enumerate(order):
        rows.discard(i)
        columns.discard(j)
        rivals = [w[i, k] for k in columns] + [w[k, j] for k in rows]
        rivals += [w[order[step + 1]]] if step + 1 < len(order) else []
        largest = max(rivals, default=-math.inf)
        if largest > 0:
            best = min(best, float(w[i, j] / largest))
    return best


def strong(w: np.ndarray) -> bool:
    """Return True if every greedy entry is at least sqrt(log m*) (in units of 1/sqrt d)."""
    return all(w[pair] >= math.sqrt(math.log(w.shape[1])) for pair in greedy(w))


def duplicated(w: np.ndarray) -> np.ndarray:
    """Return the weights with every student twice, so that no gap is left between the copies."""
    half = len(w) // 2
    return np.vstack([w[:half], w[:half]])


@functools.lru_cache(maxsize=64)
def draws(seed: int, lab_seed: int, m: int, m_star: int, count: int, broken: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return gaps, and True or False for the magnitude bound, for `count` initialisations.

    Only sqrt(d) w along the teachers is drawn.
    """
    rng = np.random.default_rng([seed, lab_seed])
    samples = [rng.normal(size=(m, m_star)) for _ in range(count)]
    samples = [duplicated(w) if broken else w for w in samples]
    return np.array([gap(w) for w in samples]), np.array([strong(w) for w in samples])


def lemma_2(lab: Any, point: Mapping[str, Any], seed: int, broken: bool = False) -> float:
    """Return 1 if all gaps exceed delta_s = beta delta_P / m^2 and the magnitude bound holds in one draw, else 0.

    delta_P = 1/20.
    """
    gaps, large = draws(seed, lab.seed, point["m"], point["m_star"], 1, broken)
    return float(gaps[0] >= 1 + 2 * BETA * 0.05 / point["m"] ** 2 and large[0])


def failing_gaps(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the share of initialisations in which a gap of delta_s = 0.0006 * factor fails."""
    gaps, _ = draws(seed, lab.seed, point["m"], point["m_star"], point["draws"], False)
    return float((gaps < 1 + 2 * UNIT * point["factor"]).mean())


def lemma_2_form(lab: Any, point: Mapping[str, Any], seed: int, broken: bool = False) -> float:
    """Return the event of the lemma in one draw; with `factor`, the share of failing gaps in many draws."""
    return failing_gaps(lab, point, seed) if "factor" in point else lemma_2(lab, point, seed, broken)


def raw_rows(rng: np.random.Generator, m: int, m_star: int, d: int) -> np.ndarray:
    """Return the student rows [v, w] (2m, 2 m* + 2m) of Assumption 2; the first 2 m* entries are along the teachers."""
    unit, a, b = initial.draw_random(m, m_star, d, rng)
    return unit * np.concatenate([a, b])[:, None]


def overlaps(rows: np.ndarray, m: int, m_star: int) -> tuple[float, float, float]:
    """Return three numbers on student rows.

    They are the largest squared overlap of different vectors, the largest overlap of v_i with w_i, and the largest |
    |row|^2 - 1 |.
    """
    gram = rows @ rows.T
    norms = np.abs(np.diag(gram) - 1).max()
    index = np.arange(m)
    own = np.abs(gram[index, m + index]).max()
    np.fill_diagonal(gram, 0.0)
    gram[index, m + index] = gram[m + index, index] = 0.0
    largest = max(np.abs(gram).max(), np.abs(rows[:, : 2 * m_star]).max()) ** 2
    return float(largest), float(own), float(norms)


def lemma_3(lab: Any, point: Mapping[str, Any], seed: int, common: float = 0.0) -> dict[str, float]:
    """Return the (1 - delta_P)-quantiles of d max^2 / log(m / delta_P) and of the deviation of the norms.

    The quantiles are over fresh draws. `common` adds a shared direction to every row, so that overlaps do not shrink
    with d (control).
    """
    m, m_star, d, delta_p = point["m"], 3, point["d"], 0.05
    rng = draw(seed, lab)
    squares, owns, norms = [], [], []
    for _ in range(point["draws"]):
        rows = raw_rows(rng, m, m_star, d)
        if common:
            rows = np.hstack([rows, np.full((2 * m, 1), common)])
        largest, own, deviation = overlaps(rows, m, m_star)
        squares.append(largest)
        owns.append(own)
        norms.append(deviation)
    scaled = float(np.quantile(squares, 1 - delta_p)) * d / math.log(m / delta_p)
    deviation = float(np.quantile(norms, 1 - delta_p))
    return {"overlap": scaled, "constant": scaled, "norm": deviation, "own": max(owns)}


def condition_1(lab: Any, point: Mapping[str, Any], seed: int, broken: bool = False) -> float:
    """Return 1 if gaps, magnitude, norms and overlaps satisfy Condition 1 at once, else 0.

    delta_s = beta delta_P / (m m*), beta_2 = 1/10.
    """
    m, m_star, d, delta_p = point["m"], point["m_star"], point["d"], point["delta_p"]
    rows = raw_rows(draw(seed, lab), m, m_star, d)
    largest, own, deviation = overlaps(rows, m, m_star)
    delta_s = BETA * delta_p / (m * m_star)
    w = rows[m:, m_star : 2 * m_star] * math.sqrt(d)
    w = duplicated(w) if broken else w
    bounded = largest <= BETA_3 / d * math.log(m / delta_p) and own < 1e-14
    norms = deviation <= 2 * 0.1 * delta_s - (0.1 * delta_s) ** 2  # | |v|^2 - 1 | when |v| is within 1 -+ 0.1 delta_s
    return float(gap(w) >= 1 + 2 * delta_s and strong(w) and bounded and norms)


def dimension(m: int, m_star: int, delta_p: float) -> int:
    """Return the smallest d >= 16 / (beta_2 delta_s)^2 log(4 m / delta_P), as the proof of Lemma 3 needs for norms."""
    delta_s = BETA * delta_p / (m * m_star)
    return math.ceil(16 / (0.1 * delta_s) ** 2 * math.log(4 * m / delta_p))


SIZES = ((40, 2), (100, 5))
JOINT = tuple({"m": m, "m_star": s, "delta_p": 0.05} for m, s in SIZES)
LARGE = tuple({**point, "d": dimension(point["m"], point["m_star"], 0.05)} for point in JOINT)
UNIT = 6e-4
"""A delta_s at which some per cent of the draws fail, few enough that the share is linear to 3 %."""
FACTORS = {
    "quick": Grid(tuple({"factor": f, "draws": 10_000} for f in (0.5, 1, 2, 4, 8)), 10),
    "full": Grid(tuple({"factor": f, "draws": 50_000} for f in (0.5, 1, 2, 4, 8)), 20),
}
LINEAR = Power(
    1.0, over="factor", margin=0.1, meaning="P(a gap fails)", because="P up to .07 is linear to P/2",
    short="smaller gaps fail too seldom to be counted, larger ones too often to be linear",
)  # fmt: skip


def sizes(m: int, m_star: int) -> Variant:
    """Return the variant of the lemma at given sizes, delta_P = 1/20."""
    return Variant(f"m = {m}", {"m": m, "m_star": m_star}, f"At m = {m}, m* = {m_star}.", "consistent")


CLAIMS = (
    Claim(
        id="lem-2",
        statement="With probability at least 1 - 4 delta_P the greedy entries exceed their row, column and successor "
        "by 1 + 2 delta_s and are at least sqrt(log m* / d), for delta_s = 0.1 delta_P / m^2 and all l <= m* "
        "(the threshold gap without the printed square).",
        source=at("Lemma 2 (Lemma 4)"),
        measure=lemma_2_form,
        law=Probability(low=0.8, meaning="gaps and magnitudes as stated, delta_P = 1/20"),
        sweep={"quick": Grid(seeds=100), "full": Grid(seeds=2000)},
        control=break_measure(functools.partial(lemma_2_form, broken=True)),
        rungs=(8, 9),
        variants=(
            *(sizes(m, m_star) for m, m_star in SIZES),
            Variant(
                "linear",
                {"m": 20, "m_star": 2},
                "The probability that a gap fails is linear in delta_s.",
                law=LINEAR,
                sweep=FACTORS,
                control=break_number(),
            ),
        ),
        erratum="errata-10",
    ),
    Claim(
        id="lem-3",
        statement="Overlaps of different initial vectors have squares at most beta_3 log(m / delta_P) / d, squared "
        "norms deviate from one by O(1/sqrt d), and v_i.w_i = 0.",
        source=at("Lemma 3"),
        measure=lemma_3,
        law=All(
            {
                "overlap": Power(0.0, margin=0.02, meaning="quantile of d max^2 / log(m / delta_P)"),
                "constant": Bounded(high=BETA_3, meaning="quantile of d max^2 / log(m / delta_P)"),
                "norm": Power(-0.5, margin=0.03, meaning="quantile of | |row|^2 - 1 |"),
                "own": Vanishes(1e-14, meaning="|v_i.w_i|"),
            }
        ),
        sweep={
            "quick": Grid(tuple({"m": 10, "d": 10**k, "draws": 150} for k in (4, 5, 6, 7, 8)), 12),
            "full": Grid(tuple({"m": m, "d": 10**k, "draws": 400} for m in (5, 25) for k in (4, 5, 6, 7, 8)), 9),
        },
        control=break_measure(functools.partial(lemma_3, common=0.03)),
        variants=(Variant("main", expected="consistent"),),
        rungs=(8, 9),
    ),
    Claim(
        id="cond-1",
        statement="Gaps, magnitude, norms and overlaps of the initialisation hold together with probability at least "
        "1 - 7 delta_P at the dimension that the proof asks for.",
        source=at("Condition 1"),
        measure=condition_1,
        law=Probability(low=0.65, meaning="all of Condition 1, delta_P = 1/20"),
        sweep={"quick": Grid(LARGE, 60), "full": Grid(LARGE, 1000)},
        control=break_measure(functools.partial(condition_1, broken=True)),
        variants=(Variant("main", expected="consistent"),),
        rungs=(8, 9),
        erratum="errata-10",
    ),
)
