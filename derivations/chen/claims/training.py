"""Theorem 4.2 end to end, at sizes where training can be run: accuracy, groups, dispatch, and the comparisons."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_law, break_measure, grid, over
from derivations.chen.claims.tools import SETTINGS, claim
from derivations.claim import Grid, Variant
from derivations.laws import Bounded, Power, Probability

PAPER: dict[str, Any] = {"K": 4, "M": 8, "J": 16, "P": 4, "d": 50, "rho": 100.0, "sigma_0": 1e-3, "n_test": 4000}
"""The paper's sizes, with n = 2000 training examples and a step of 0.005 so that a run takes seconds."""
STEP, BATCH, UNTIL = 5e-3, 2000, 2.0


def sizes(point: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the standard run at a point."""
    given = {k: point[k] for k in ("M", "J", "d", "activation") if k in point}
    return {**PAPER, **SETTINGS[point.get("setting", 3)], **given}


def trained(lab: Any, point: Mapping[str, Any], seed: int) -> Any:
    """Algorithm 1 on its own training set: every seed has its own data."""
    return lab.simulate(
        method="explicit", step_size=STEP, batch=point.get("n", BATCH), until=point.get("until", UNTIL), save_points=11,
        seed=seed, data_seed=seed, **sizes(point),
    )  # fmt: skip


def final(name: str) -> Any:
    """The last value of a scalar of the standard run."""

    def measure(lab: Any, point: Mapping[str, Any], seed: int) -> float:
        if point.get("single"):
            return single(lab, point, seed)
        if point.get("lag"):
            both = [
                trained(lab, {**point, "activation": kind}, seed)["accuracy"][0, -1] for kind in ("cubic", "linear")
            ]
            return float(both[0] - both[1])
        return float(trained(lab, point, seed)[name][0, -1])

    return measure


def at_start(name: str) -> Any:
    """The first value of the same scalar, before training."""
    return lambda lab, point, seed: float(trained(lab, point, seed)[name][0, 0])


def professions(lab: Any, point: Mapping[str, Any], seed: int) -> np.ndarray:
    """k*[m] (M,) of Definition D.3: the cluster of the largest overlap of an expert at the start."""
    feat = trained(lab, point, seed)["feat"][0, 0]
    found: np.ndarray = feat.max(axis=1).argmax(axis=1)
    return found


def begins_covered(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """1 if every cluster is some expert's profession at the start, which the theorem has with high probability."""
    start = lab.initial(seed=seed, **sizes(point))
    return float(len(set(start.state["feat"].max(axis=1).argmax(axis=1).tolist())) == PAPER["K"])


def covered(lab: Any, point: Mapping[str, Any], count: int) -> int:
    """The seed of the run number `count` in which all clusters are covered at the start."""
    seed = -1
    for _ in range(count + 1):
        seed += 1
        while not begins_covered(lab, point, seed):
            seed += 1
    return seed


def groups_err(lab: Any, point: Mapping[str, Any], seed: int, shift: int = 0) -> float:
    """The largest error of an expert on the cluster of its profession k*, signals only; `shift`: on another cluster.

    In runs whose professions cover all clusters, whatever the experts turned into.
    """
    chosen = covered(lab, point, seed)
    feat, home = trained(lab, point, chosen)["feat"][0, -1], professions(lab, point, chosen)
    laws = SETTINGS[point.get("setting", 3)]
    rng, worst = np.random.default_rng(seed), 0.0
    for m, k in enumerate((home + shift) % 4):
        other = (k + rng.integers(1, 4, 4000)) % 4
        alpha, gamma = rng.uniform(0.5, 2, 4000), rng.uniform(laws["gamma"][0], laws["gamma"][1], 4000)
        cubes = (feat[m] ** 3).sum(axis=0)
        margin = alpha**3 * cubes[k] + rng.choice([-1, 1], 4000) * gamma**3 * cubes[other]
        worst = max(worst, float((margin <= 0).mean()))
    return worst


def at_group(lab: Any, point: Mapping[str, Any], seed: int, at: int = -1) -> float:
    """The share of examples at an expert whose profession k* is their cluster, in runs that begin covered."""
    chosen = covered(lab, point, seed)
    home, dispatch = professions(lab, point, chosen), trained(lab, point, chosen)["dispatch"][0, at]
    return float(dispatch[home, np.arange(home.size)].sum() / dispatch.sum())


def flawless(lab: Any, point: Mapping[str, Any], seed: int, at: int = -1) -> float:
    """1 if no training example is wrong."""
    return float(trained(lab, point, seed)["train_accuracy"][0, at] == 1.0)


def steps_needed(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Steps until the noiseless test accuracy passes 0.97, K = 2, three patches."""
    eta = point["eta"]
    run = lab.simulate(
        method="compressed", step_size=eta, batch=1000, until=1.0, save_points=126, seed=seed, data_seed=seed, K=2, M=6,
        J=8, d=4, rho=36.0, sigma_0=0.02, n_test=1000,
    )  # fmt: skip
    return float(run.time[(run["accuracy"][0] > 0.97).argmax()] / eta)


def single(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """The best test accuracy along the training of one expert of 32 filters."""
    run = trained(lab, {**point, "M": 1, "J": 32, "until": 0.6}, seed)
    return float(run["accuracy"][0].max())


def with_balance(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Test accuracy of the released protocol: linear experts with load balancing, or cubic ones without."""
    size = {**PAPER, **SETTINGS[point["setting"]], "activation": point["activation"], "variant": "released"}
    run = lab.simulate(
        method="explicit", step_size=1e-3, batch=2000, until=0.5, save_points=3, seed=seed, data_seed=seed,
        balance=1e-4 if point["activation"] == "linear" else 0.0, **size,
    )  # fmt: skip
    return float(run["accuracy_noisy"][0, -1])


def speeds(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Largest over smallest strength of the experts when the largest passes 0.3, three patches."""
    size = {"K": 4, "M": 8, "J": 8, "d": 8, "sigma_0": 0.02, "rho": 0.0, "n_test": 2, "normalise": point["normalise"]}
    step, until = (0.01, 0.5) if point["normalise"] else (8.0, 4000.0)
    run = lab.simulate(
        method="compressed", step_size=step, batch=1000, until=until, save_points=51, seed=seed, data_seed=seed, **size
    )  # fmt: skip
    s = run["feat"][0].max(axis=(2, 3))
    at = int((s.max(axis=1) > 0.3).argmax())
    return float(s[at].max() / s[at].min())


def behind(lab: Any, point: Mapping[str, Any], seed: int, swap: bool = False) -> float:
    """The accuracy of cubic experts without balancing less that of balanced linear ones (`swap`: the other way)."""
    cubic, linear = (with_balance(lab, {**point, "activation": kind}, seed) for kind in ("cubic", "linear"))
    return linear - cubic if swap else cubic - linear


TEN: Grid = grid(seeds=10)
FIVE: Grid = grid(seeds=5)
SCALES = ({"n": 1000, "d": 25}, {"n": 2000, "d": 50}, {"n": 4000, "d": 100})
BOTH = (Variant("setting 3", {"setting": 3}), Variant("setting 4", {"setting": 4}))
MORE = {"quick": grid(*SCALES, seeds=6), "full": grid(*SCALES, {"n": 8000, "d": 200}, seeds=12)}


def over_sizes(id: str, statement: str, measure: Any, law: Any, broken: Any, variants: Any = BOTH) -> Any:
    """A part of Theorem 4.2 at several (n, d) with n/d fixed, in runs whose professions cover all clusters."""
    return claim(
        id, statement, "Theorem 4.2", measure, law, MORE["quick"], break_measure(broken), (7, 9), full=MORE["full"],
        variants=variants, control_variant="setting 3",
    )  # fmt: skip


CLAIMS = (
    claim(
        "thm-4.2-train",
        "Algorithm 1 reaches zero training error: not one example of 2,000 is wrong, in nine runs of ten.",
        "Theorem 4.2",
        flawless,
        Probability(low=0.9, visible=0.25, meaning="no training error", because="what ten runs can tell"),
        TEN,
        break_measure(lambda *a: flawless(*a, at=0)),
        (7, 9),
        full=grid(seeds=40),
        variants=(BOTH[0], Variant("setting 4", {"setting": 4}, expected="refuted")),
        control_variant="setting 3",
    ),
    over_sizes(
        "thm-4.2-test",
        "Its test error is o(1): below 1 % without routing noise at n/d = 40.",
        lambda lab, point, seed: 1 - final("accuracy")(lab, point, covered(lab, point, seed)),
        Bounded(high=0.01, visible=0.01, meaning="test error", because="o(1) has no stronger form"),
        lambda lab, point, seed: 1 - at_start("accuracy")(lab, point, seed),
    ),
    over_sizes(
        "thm-4.2-groups",
        "Every expert classifies the cluster of its group M_k, k* from the initial weights.",
        groups_err,
        Bounded(high=0.02, visible=0.02, meaning="largest own error", because="o(1) has no stronger form"),
        lambda *a: groups_err(*a, shift=1),
    ),
    over_sizes(
        "thm-4.2-router",
        "Examples go to the experts of their cluster's group, k* from the initial weights.",
        at_group,
        Bounded(low=0.98, visible=0.02, meaning="share at their group", because="1 - o(1)"),
        lambda *a: at_group(*a, at=0),
    ),
    claim(
        "thm-4.2-cover",
        "The groups are nonempty: all K = 4 clusters are some expert's profession with high probability (the theorem "
        "lets M grow; at the paper's M = 8 the probability is .623 by lem-D.4c).",
        "Theorem 4.2",
        begins_covered,
        Probability(low=0.9, meaning="all clusters covered"),
        grid(seeds=100),
        break_measure(begins_covered),
        (2, 9),
        full=grid(seeds=1000),
    ),
    claim(
        "thm-4.2-T",
        "The number of steps is of order 1/eta.",
        "Theorem 4.2",
        steps_needed,
        Power(-1.0, over="eta", margin=0.05, meaning="steps to 97 % accuracy", because="sixteen steps are not many"),
        over("eta", 0.001, 0.002, 0.004, 0.008, seeds=8),
        break_law(exponent=-0.9),
        (7, 8, 9),
    ),
    claim(
        "moe-vs-single",
        "The mixture passes the ceiling of 7/8 that no single expert passes.",
        "Section 6, Table 1",
        final("accuracy"),
        Bounded(low=0.875, visible=math.inf, meaning="test accuracy", because="an order"),
        FIVE,
        break_measure(single),
        (7, 9),
        full=grid(seeds=10),
        variants=(
            *BOTH,
            *(
                Variant(
                    f"single {name}",
                    {"single": True, "activation": name, "setting": 3},
                    f"A single {name} expert stays below 7/8.",
                    "consistent",
                    law=Bounded(high=0.875, meaning="best test accuracy"),
                )
                for name in ("cubic", "linear")
            ),
        ),
        control_variant="setting 3",
    ),
    claim(
        "lin-vs-nonlin",
        "Linear mixtures keep a high dispatch entropy; cubic ones do not.",
        "Section 6, Table 1",
        final("entropy"),
        Bounded(low=1.0, visible=0.4, meaning="dispatch entropy", because="log 4 = 1.39 is the largest"),
        grid({"activation": "linear", "setting": 1}, seeds=5),
        break_measure(lambda lab, point, seed: final("entropy")(lab, {**point, "activation": "cubic"}, seed)),
        (7, 9),
        full=grid({"activation": "linear", "setting": 1}, seeds=10),
        variants=(
            Variant("linear"),
            Variant(
                "cubic",
                statement="Cubic mixtures end with a dispatch entropy below .3.",
                law=Bounded(high=0.3, visible=0.3, meaning="dispatch entropy", because="0 is the least"),
                sweep={"quick": FIVE},
            ),
            Variant(
                "accuracy",
                {"lag": True},
                "Linear mixtures are less accurate.",
                law=Bounded(low=0.0, visible=math.inf, meaning="accuracy of cubic minus linear", because="a sign"),
                sweep={"quick": grid({"activation": "linear", "setting": 1}, seeds=5)},
            ),
        ),
    ),
    claim(
        "lb-not-key",
        "Load balancing does not bring linear mixtures to the accuracy of cubic ones.",
        "Section 6, Table 9",
        behind,
        Bounded(low=0.0, visible=math.inf, meaning="accuracy of cubic less balanced linear", because="a sign"),
        grid({"setting": 1}, seeds=5),
        break_measure(lambda *a: behind(*a, swap=True)),
        (7, 9),
        full=grid({"setting": 1}, {"setting": 3}, seeds=10),
    ),
    claim(
        "ngd-key",
        "Normalised gradients keep the experts' strengths together; plain descent lets them run apart.",
        "Section 4.2, Key technique 3",
        speeds,
        Bounded(high=2.0, visible=1.0, meaning="largest over smallest strength", because="1 is the least"),
        grid({"normalise": True}, seeds=6),
        break_measure(lambda lab, point, seed: speeds(lab, {"normalise": False}, seed)),
        (7, 9),
        variants=(
            Variant("normalised"),
            Variant(
                "plain",
                {"normalise": False},
                "With plain descent the largest is more than twice the smallest.",
                law=Bounded(low=2.0, visible=math.inf, meaning="largest over smallest strength", because="an order"),
            ),
        ),
    ),
)
