"""Claims on the experiments of section 5: arithmetic of architectures, many classes, and the worst-case condition."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_number, break_setting, grid, over
from derivations.claim import Variant
from derivations.laws import Bounded, Equals, Power
from derivations.pruning import criteria, initial
from derivations.pruning.accounting import E3_MOE, V_MOE
from derivations.pruning.claims.tools import claim, final, theory
from derivations.pruning.parameters import Parameters


def flops(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the share of multiply-adds saved by pruning a share of the experts, with tokens spread evenly."""
    model = {"V-MoE": V_MOE, "E3-MoE": E3_MOE}[point["model"]]
    if "tokens" in point:
        model = dataclasses.replace(model, tokens=int(point["tokens"]), classes=1000)
    if point.get("dense"):  # every token uses all experts
        model = dataclasses.replace(model, active=model.experts)
    return model.saved(float(point["experts"]))


def parameter_count(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the number of parameters of a model in millions, or the share of them in three quarters of its experts."""
    model = {"V-MoE": V_MOE, "E3-MoE": E3_MOE}[point["model"]]
    if point["of"] == "share":
        return model.pruned_share(0.75)
    if "experts" in point:
        model = dataclasses.replace(model, experts=int(point["experts"]), classes=21841)
    return model.parameters / 1e6


def aligned(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the number of kept experts of sign -1 at which an input with y = +1 is classified wrongly.

    All these experts have the activation m C_2 on one pattern. Their number is increased by a fortieth until the
    enumerated input with that pattern is wrong.
    """
    run = theory(lab, seed, d=int(point["d"]), k=2, m=80, important=1, missigned=0, weak=0, K=6.0)
    sigma, h = run["sigma"][-1, 0], run["h"][-1, 0]
    active = (run["u_start"][0, :, 0] >= 0).sum() / 40
    q = int(np.argmax(h[2:])) + 2
    other = np.where(np.arange(h.size) == q, 1.0, 0.0)
    p = Parameters(d=int(point["d"]), k=2, l=5, m=1, n_test=2)
    start = initial.from_alignments(
        p, np.stack([h, other]), np.stack([sigma, 80.0 * active * other])[:, None], np.array([1.0, -1.0])
    )
    answers, _, _, labels, _ = criteria.pooled(start)
    count = 1
    while count < 10**5 and (labels * (answers[0] - count * answers[1]))[: p.N][q - 2] > 0:
        count += max(1, count // 40)
    return float(count)


def classes(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the smallest share of experts of a sign that must be kept for zero error, for C pairs of task patterns.

    The pairs are independent. There are 32 experts of each sign. Two of them select the task pattern of each pair, and
    the others select none. An expert that knows one pair sees only the inputs of this pair, 1/C of all. Therefore each
    pair evolves separately, in the time t/C, and fine-tuning takes C times as long. The kept experts are those with the
    largest change of the router norm, over all pairs together. With `shared` the experts of the first pair serve all
    pairs.
    """
    C, half = (1 if point.get("shared") else int(point["C"])), 32
    runs = [
        final(theory(lab, seed + 1000 * pair, d=60, k=4, important=2, missigned=0, weak=0, K=6.0)) for pair in range(C)
    ]
    growth = [criteria.scores(end, np.random.default_rng(0))["router_norm_change"] for end in runs]
    for count in range(1, half + 1):
        worst = 0.0
        levels = [np.sort(np.concatenate([g[2 * s : 2 * s + 2] for g in growth]))[::-1] for s in range(2)]
        cut = [level[min(count, level.size) - 1] for level in levels]
        for end, g in zip(runs, growth, strict=True):
            kept = np.flatnonzero(g >= np.repeat(cut, 2))
            worst = max(worst, criteria.error(end, kept)[0] if kept.size else 1.0)
        if worst == 0.0:
            return count / half
    return float("inf")


def better_than_random(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the error of random pruning less the error of a criterion, both averaged over all sizes.

    With `rival`, this criterion takes the place of random pruning.
    """
    end = final(theory(lab, seed, d=100, K=point["K"]))
    rng = np.random.default_rng(seed)
    found = criteria.scores(end, rng)
    own = criteria.error_curve(end, found[point.get("criterion", "router_norm_change")], rng).mean()
    rival = criteria.error_curve(end, found[point["rival"]] if "rival" in point else None, rng).mean()
    return float(rival - own)


EARLY = (0.05, 0.1, 0.2)
"""Constants of T at which pruning still leaves errors, so that criteria can be told apart."""
INFORMED = ("router_norm_change", "router_change_norm", "neuron_norm_change_mean", "importance")
COUNTED = "arithmetic of the architecture, without any training"
PATTERNS = "a run grows like d^2 in time and memory"
CLAIMS = (
    claim(
        "flops-linear",
        "Pruning three quarters of the experts of V-MoE (CIFAR-10) saves about 40 % of the multiply-adds per image.",
        "Figures 6 and 10",
        flops,
        Equals(0.40, absolute=0.05, error=1e-12, meaning="share saved", because="the text rounds to tens of percent"),
        grid({"model": "V-MoE", "experts": 0.75}),
        break_setting(dense=True),
        rungs=(1, 9),
        variants=(
            Variant("CIFAR-10", identity=COUNTED),
            Variant(
                "ImageNet",
                {},
                "Pruning 20 of 48 experts of V-MoE (ImageNet, 577 tokens) saves 14 % of the multiply-adds, if "
                "tokens are spread evenly.",
                law=Equals(0.14, absolute=0.02, error=1e-12, meaning="share saved"),
                sweep={"quick": grid({"model": "V-MoE", "experts": 20 / 48, "tokens": 577})},
                expected="refuted",
            ),
            Variant(
                "E3-MoE",
                {},
                "Pruning three quarters of the experts of E3-MoE (CIFAR-100) saves 15 % of the multiply-adds, if "
                "tokens are spread evenly.",
                law=Equals(0.15, absolute=0.02, error=1e-12, meaning="share saved"),
                sweep={"quick": grid({"model": "E3-MoE", "experts": 0.75})},
                expected="refuted",
            ),
        ),
        control_variant="CIFAR-10",
        erratum="improvement-3",
    ),
    claim(
        "monotone-classes",
        "The share of experts that can be pruned falls with the number of task patterns. If C pairs of tasks "
        "have separate experts, at least C experts of each sign must be kept.  (This holds by construction for "
        "every criterion.)",
        "section 5.2 (CIFAR-10, CIFAR-100, ImageNet); our extension",
        classes,
        Power(
            1.0,
            over="C",
            bound="at least",
            margin=0.05,
            meaning="share that must be kept",
            short="classes share d patterns",
        ),
        over("C", 1, 2, 4, 8, 16, seeds=6),
        break_setting(shared=True),
        rungs=(4, 8, 9),
        variants=(
            Variant("main", expected="consistent", identity="each pair of tasks has separate experts by construction"),
        ),
    ),
    claim(
        "parameter-count",
        "V-MoE with eight experts per layer has 979 M parameters, and E3-MoE with two times four experts has 167 M.",
        "section A",
        parameter_count,
        Equals(979.0, relative=0.02, error=1e-12, meaning="million parameters"),
        grid({"model": "V-MoE", "of": "all"}),
        break_number(),
        rungs=(1, 9),
        variants=(
            Variant("V-MoE-printed", expected="refuted"),
            Variant(
                "V-MoE-32",
                {"experts": 32},
                "979 M is the number of parameters of the variant with 32 experts and the head of 21,841 classes.",
                identity=COUNTED,
            ),
            Variant(
                "E3-MoE-printed",
                {"model": "E3-MoE"},
                law=Equals(167.0, relative=0.02, error=1e-12, meaning="million parameters"),
                expected="refuted",
            ),
            Variant(
                "V-MoE-share",
                {"of": "share"},
                "Three quarters of the experts are 60 % of the parameters of V-MoE.",
                law=Equals(0.60, absolute=0.01, error=1e-12, meaning="share"),
                identity=COUNTED,
            ),
            Variant(
                "E3-MoE-share",
                {"model": "E3-MoE", "of": "share"},
                "Three quarters of the experts are 45 % of the parameters of E3-MoE.",
                law=Equals(0.45, absolute=0.01, error=1e-12, meaning="share"),
                identity=COUNTED,
            ),
        ),
        control_variant="V-MoE-32",
        erratum="parameter counts",
    ),
    claim(
        "k-crit",
        "Consider experts of the other sign, all aligned with one pattern with activation m C_2. The number of "
        "them that outweighs an important expert grows like sqrt(d).",
        "Theorem 4.3 (our worst case)",
        aligned,
        Power(0.5, margin=0.05, meaning="number", short=PATTERNS),
        over("d", 50, 100, 200, 400, 800, seeds=16),
        break_number(),
        rungs=(4, 9),
        seconds=25.0,
    ),
    claim(
        "criteria",
        "If fine-tuning ends while pruning still leaves errors, informed criteria prune better than a random choice.",
        "Figure 5 (on synthetic data)",
        better_than_random,
        Bounded(
            low=0.0, visible=math.inf, because="an order", meaning="error of random pruning less that of the criterion"
        ),
        grid(*({"criterion": name, "K": K} for name in INFORMED for K in EARLY), seeds=12),
        break_setting(criterion="random"),
        rungs=(4, 9),
        variants=(
            Variant("informed"),
            Variant(
                "router-norm",
                {"criterion": "router_norm"},
                "The norm of the router prunes better than a random choice.",
                sweep={"quick": over("K", *EARLY, seeds=5)},
                expected="refuted",
            ),
            Variant(
                "no envelope",
                {"rival": "neuron_norm_change_mean"},
                "Router-norm change is no better than the mean growth of neuron norms (in Figure 5 of the paper "
                "it is better).",
                law=Equals(
                    0.0,
                    absolute=0.002,
                    meaning="error of the rival less that of router-norm change",
                    because="a fifth of the error that either leaves at the earliest of these times",
                ),
                sweep={"quick": over("K", *EARLY, seeds=20)},
                control=break_setting(rival="router_norm"),
            ),
        ),
        control_variant="informed",
    ),
)
