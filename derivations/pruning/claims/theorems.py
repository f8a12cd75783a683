"""Claims on Theorems 4.3 and 4.5: pruning without and with later fine-tuning, and the effect of random pruning."""

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_measure, grid, over
from derivations.claim import Variant
from derivations.laws import All, Bounded, Premise, Vanishes
from derivations.laws.tools import EXCEPTIONS
from derivations.pruning import criteria, stages
from derivations.pruning.claims.tools import claim, final, theory, width

GAMMA = 0.6


def ranks(end: Any) -> np.ndarray:
    """Return the growth of the router norms."""
    return criteria.scores(end, np.random.default_rng(0))["router_norm_change"]


def pruned_errors(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Return errors of one run of fine-tuning.

    They are the error before fine-tuning, the largest error after pruning by any ratio up to gamma, and the error of
    random pruning by gamma.
    """
    run = theory(lab, seed, **width(int(point["d"])), K=point["K"])
    end = final(run)
    a, score = np.asarray(end.constants["a"]), ranks(end)
    ratios = [criteria.keep(a, score, rho) for rho in np.arange(0, GAMMA + 0.01, 0.1)]
    rng = np.random.default_rng(seed)
    kept = criteria.keep_count(end.parameters.k // 2, GAMMA)
    return {
        "before": float(run["f_error"][0]),
        "after": max(criteria.error(end, kept)[0] for kept in ratios),
        "random": float(criteria.error_curve(end, None, rng)[kept - 1]),
    }


def rescued(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Return the largest error with one or two experts of each sign kept, before and after T' further steps."""
    run = theory(lab, seed, d=int(point["d"]), K=point["K"], K_post=point.get("K_post", 1.0))
    end = final(run)
    a, score = np.asarray(end.constants["a"]), ranks(end)
    before, after = 0.0, 0.0
    for count in (1, 2):
        kept = criteria.keep(a, score, 1 - count / 7)
        start = stages.restrict(end, kept, np.arange(a.size))
        post = lab.integrate(
            start=start, tier="flow", until=end.parameters.post_horizon, save_points=2, d=int(point["d"])
        )  # fmt: skip
        before, after = max(before, float(post["f_error"][0])), max(after, float(post["f_error"][-1]))
    return {"after": after, "before": before}


def random_choices(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Try all C(7, r)^2 choices of r kept experts of each sign on the fine-tuned model.

    Returns the number of choices that keep an important expert of both signs and still fail, and the share of choices
    without an error less the probability that a choice keeps an important expert of both signs.
    """
    n, important, r = 7, 2, int(point["kept"])
    end = final(theory(lab, seed, d=100, K=6.0))
    answers, _, _, labels, chance = criteria.pooled(end)
    a = np.asarray(end.constants["a"])
    right, failing, total = 0, 0, 0
    for first in itertools.combinations(range(n), r):
        for second in itertools.combinations(range(n, 2 * n), r):
            kept = np.array([*first, *second])
            good = criteria.error_of(answers, a, labels, chance, kept)[0] == 0
            both = min(first) < important and min(second) < n + important
            right, failing, total = right + good, failing + (both and not good), total + 1
    law = (1 - math.comb(n - important, r) / math.comb(n, r)) ** int(point.get("signs", 2))
    return {"failing": float(failing), "share": right / total - law}


CLAIMS = (
    claim(
        "thm-4.3",
        "Suppose at least a fraction gamma of the experts of each sign is unimportant, and T and eta_r have the "
        "stated order. Then pruning any fraction up to gamma of each sign by router-norm change leaves y f > 0 "
        "for every input.",
        "Theorem 4.3",
        pruned_errors,
        All(
            {
                "after": Vanishes(0.0, 0.0, "error after pruning by router-norm change", EXCEPTIONS),
                "before": Premise(low=0.2, meaning="error before fine-tuning"),
                "random": Premise(low=1e-3, meaning="mean error of random pruning by gamma"),
            }
        ),
        over("d", 50, 100, 200, seeds=20, K=6.0),
        break_measure(lambda lab, point, seed: pruned_errors(lab, {**point, "K": 0.06}, seed)),
        rungs=(4, 5, 9),
        full=over("d", 50, 100, 200, 400, seeds=15, K=6.0),
    ),
    claim(
        "thm-4.5",
        "After T' = O(k l^2 C_2 sqrt(log l)/eta_e) steps of post-pruning fine-tuning, O(1) experts of each sign "
        "kept by router-norm change give y f > 0 for every input. Here the fine-tuning before pruning ends so "
        "early (K = 0.05 to 0.2) that pruning alone leaves errors.",
        "Theorem 4.5",
        rescued,
        All(
            {
                "after": Vanishes(0.0, 0.0, "error with one or two experts of each sign", EXCEPTIONS),
                "before": Premise(low=1e-3, meaning="error before post-pruning fine-tuning"),
            }
        ),
        grid(*({"d": d, "K": K} for d in (100, 200) for K in (0.05, 0.1, 0.2)), seeds=10),
        break_measure(lambda lab, point, seed: rescued(lab, {**point, "K_post": 1e-3}, seed)),
        rungs=(4, 5, 9),
        full=grid(*({"d": d, "K": K} for d in (100, 200, 400, 800) for K in (0.05, 0.1, 0.2)), seeds=15),
        erratum="sqrt of eta_e",
    ),
    claim(
        "random-prune",
        "Random pruning to r of n experts of each sign leaves no error with at least the probability of keeping "
        "an important expert of both signs, which is prod (1 - C(n - i, r)/C(n, r)).",
        "Figure 4a (our formula)",
        random_choices,
        All(
            {
                "failing": Vanishes(
                    0.0, 0.0, "number of choices with important experts of both signs that fail", EXCEPTIONS
                ),
                "share": Bounded(
                    low=0.0,
                    visible=0.05,
                    meaning="share of choices without an error less the formula",
                    because="a tenth of the chance of one expert of each sign",
                ),
            }
        ),
        over("kept", 1, 2, 3, seeds=20),
        break_measure(lambda lab, p, s: random_choices(lab, {**p, "signs": 1}, s)),
        rungs=(2, 4, 9),
        variants=(Variant("main", expected="consistent"),),
    ),
)
