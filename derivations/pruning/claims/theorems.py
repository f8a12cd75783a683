"""Theorems 4.3 and 4.5: pruning without and with fine-tuning afterwards, and what random pruning does."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_measure, over
from derivations.claim import Variant
from derivations.laws import All, Bounded, Vanishes
from derivations.pruning import criteria, stages
from derivations.pruning.claims.tools import claim, final, theory, width

GAMMA = 0.6


def ranks(end: Any, sign: float) -> np.ndarray:
    """The growth of router norms, times a sign."""
    return sign * criteria.scores(end, np.random.default_rng(0))["router_norm_change"]


def pruned_errors(sign: float) -> Any:
    """Error before fine-tuning, and the largest error of the model pruned by any ratio up to gamma."""

    def measure(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
        run = theory(lab, seed, **width(int(point["d"])))
        end = final(run)
        a, score = np.asarray(end.constants["a"]), ranks(end, sign)
        ratios = [criteria.keep(a, score, rho) for rho in np.arange(0, GAMMA + 0.01, 0.1)]
        rng = np.random.default_rng(seed)
        kept = criteria.keep_count(end.parameters.k // 2, GAMMA)
        return {
            "before": float(run["f_error"][0]),
            "after": max(criteria.error(end, kept)[0] for kept in ratios),
            "random": float(criteria.error_curve(end, None, rng)[kept - 1]),
        }

    return measure


def rescued(sign: float) -> Any:
    """Error with one and two experts of each sign kept, after post-pruning fine-tuning for T'."""

    def measure(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
        run = theory(lab, seed, d=int(point["d"]), K=point["K"], K_post=point.get("K_post", 1.0))
        end = final(run)
        a, score = np.asarray(end.constants["a"]), ranks(end, sign)
        worst, gains = 0.0, []
        for count in (1, 2):
            kept = criteria.keep(a, score, 1 - count / 7)
            start = stages.restrict(end, kept, np.arange(a.size))
            post = lab.integrate(
                start=start, tier="flow", until=end.parameters.post_horizon, save_points=2, d=int(point["d"])
            )  # fmt: skip
            worst = max(worst, float(post["f_error"][-1]))
            gains.append(float(post["f_error"][0]))
        rng = np.random.default_rng(seed)
        return {"after": worst, "random": float(criteria.error_curve(end, None, rng)[0]), "before_post": gains[0]}

    return measure


def random_bound(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """|chance that random pruning keeps an important expert of both signs, by simulation - the product formula|."""
    from math import comb

    n, important, kept = 7, 2, int(point["kept"])
    rng = np.random.default_rng([seed, kept])
    draws = 40_000
    hits = np.ones(draws)
    for _ in range(2):
        hits *= np.argsort(rng.random((draws, n)), axis=1)[:, :kept].min(axis=1) < important
    per_sign = 1 - comb(n - important, kept) / comb(n, kept)
    chance = per_sign ** int(point.get("signs", 2))
    return float((hits.mean() - chance) / np.sqrt(max(chance * (1 - chance), 1e-9) / draws))


CLAIMS = (
    claim(
        "thm-4.3",
        "With at least a fraction gamma of unimportant experts of each sign and T, eta_r of the stated order, "
        "pruning any "
        "fraction up to gamma of each sign by router-norm change leaves y f > 0 for every input.",
        "Theorem 4.3",
        pruned_errors(1.0),
        All(
            {
                "before": Bounded(low=0.2, meaning="error before fine-tuning"),
                "after": Vanishes(0.0, 0.0, "error after pruning by router-norm change"),
                "random": Bounded(low=1e-3, meaning="mean error of random pruning by gamma"),
            }
        ),
        over("d", 50, 100, 200, 400, seeds=3),
        break_measure(pruned_errors(-1.0)),
        (4, 5, 9),
        full=over("d", 50, 100, 200, 400, seeds=10),
    ),
    claim(
        "thm-4.5",
        "After T' = O(k l^2 C_2 sqrt(log l)/eta_e) steps of post-pruning fine-tuning, O(1) experts of each sign "
        "kept by "
        "router-norm change give y f > 0 for every input.",
        "Theorem 4.5",
        rescued(1.0),
        All(
            {
                "after": Vanishes(0.0, 0.0, "error with one or two experts of each sign"),
                "random": Bounded(low=0.01, meaning="mean error of one random expert of each sign"),
                "before_post": Bounded(low=0.0, meaning="error with one expert before post-pruning fine-tuning"),
            }
        ),
        over("d", 100, 200, seeds=3, K=6.0),
        break_measure(rescued(-1.0)),
        (4, 5, 9),
        full=over("d", 50, 100, 200, 400, seeds=10, K=6.0),
        variants=(
            Variant("full-tuning"),
            Variant(
                "early-stop",
                {"K": 2.0, "K_post": 4.0},
                "The same where fine-tuning ends before experts have specialised (K = 2).",
            ),
        ),
        control_variant="full-tuning",
        erratum="sqrt of eta_e",
    ),
    claim(
        "random-prune",
        "Random pruning to r of n experts of each sign keeps an important one of both with probability "
        "prod (1 - C(n - i, r)/C(n, r)).",
        "Figure 4a (our formula)",
        random_bound,
        Bounded(-4.0, 4.0, meaning="z-score against simulation"),
        over("kept", 1, 3, 5),
        lambda c: dataclasses.replace(c, measure=lambda lab, p, s: random_bound(lab, {**p, "signs": 1}, s)),
        (2, 9),
    ),
)
