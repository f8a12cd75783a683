"""Claims on the routers of separate training: population gradient, conservation, samples, threshold in l."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_measure, break_number, break_setting, grid, over
from derivations.claim import Variant
from derivations.laws import Agrees, All, Bounded, Equals, Power, Vanishes
from derivations.laws.agreement import Score, score
from derivations.pmoe import model, router, world
from derivations.pmoe.claims.tools import claim, stream
from derivations.pmoe.parameters import Parameters, settle
from derivations.vectors import root


def sizes(**values: Any) -> Parameters:
    """Return the settled parameters of routers in separate training."""
    return settle(Parameters(**values), "router")


def population_gradient(lab: Any, point: Mapping[str, Any], seed: int) -> Score:
    """Compare one training step on 4000000 samples with the population gradient, factor (o1 - o2)/2.

    The standard error of the step follows from its exact covariance.
    """
    batch = 4_000_000
    p = sizes(n=point["n"], p=4, delta_d=0.3, b1=(0.4, 0.0, -0.3, 0.1))
    gram = world.gram_of(p)
    run = lab.simulate(
        stage="router", method="compressed", step_size=1.0, batch=batch, until=1.0, seed=seed, save_points=2,
        **{name: getattr(p, name) for name in ("n", "p", "delta_d", "b1")},
    )  # fmt: skip
    change = run["route"][0, -1] - run["route"][0, 0]
    expected = point.get("factor", 1.0) * gram @ router.mean_counts(p)
    error = np.sqrt(np.diag(gram @ router.covariance(p) @ gram) / batch)
    return score(change, error, [expected, -expected])


def invariance(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Return the change of w_1 + w_2 by training, and the difference between routers of two batch sizes.

    The batches have 64 and 16 samples, and both trainings use the same samples.
    """
    p = sizes(n=8, p=3)
    rng = stream(seed, 1, lab)
    counts, labels = world.sample(p, rng, 64)
    gram, start = world.gram_of(p), rng.standard_normal((2, 5))

    def train(size: int) -> np.ndarray:
        route = start.copy()
        for first in range(0, 64, size):
            part = slice(first, first + size)
            pull = model.weigh_router(route[..., None], None, counts[part].T, labels[part], p.l, 0)[1].mean(axis=-1)
            pull[1] *= point.get("second", 1.0)
            route = route + size / 64 * pull @ gram
        return route

    whole, split = train(64), train(16)
    return {
        "sum": float(np.abs(split.sum(axis=0) - start.sum(axis=0)).max()),
        "batches": float(np.abs(whole - split).max()),
    }


def initial_norms(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Return P(|w_s(0)| <= 1/n^2) - (1 - 1/n) over 4000 draws, and the median of |w_s(0)| n^2 log n."""
    n, d = point["n"], point["d"]
    p = settle(Parameters(n=n, d=d, p=2))
    factor = point.get("factor", 1.0)
    norms = factor * p.sigma_r * np.sqrt(stream(seed, 2, lab).chisquare(d, 4000))
    return {
        "probability": float((norms <= 1 / n**2).mean() - (1 - 1 / n)),
        "size": float(np.median(norms) * n**2 * math.log(n)),
    }


def ranked_first(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the probability of a correct ranking, less 1 - 1/n, at the N_r of Lemma 4.1.

    The ranking is correct if o1 is above every q with <o1 - o2, q> <= (1 - delta_d)/2, and o2 likewise.
    """
    n, delta_d = point["n"], point["delta_d"]
    c = 0.45 * (1 - delta_d)
    need = math.ceil(point.get("share", 1.0) * 4 * n**2 / (1 - delta_d) ** 2 * math.log(n))
    p = sizes(n=n, p=4, delta_d=delta_d, b1=(c / 2, -c / 2, 0, 0), b2=(-c / 2, c / 2, 0, 0), N_r=need)
    gram, rng = world.gram_of(p), stream(seed, 3, lab)
    start = p.sigma_r * rng.standard_normal((2000, 2, p.p + 2)) @ root(gram).T
    value = router.sample_means(p, rng, 2000) @ gram
    first = start[:, 0] + p.reach * value
    second = start[:, 1] - p.reach * value
    good = (first[:, 0] > first[:, 2:].max(axis=1)) & (second[:, 1] > second[:, 2:].max(axis=1))
    return float(good.mean() - (1 - 1 / n))


def close_world(c: float, r: int, **more: Any) -> Parameters:
    """Return parameters with two close patterns, <o1 - o2, q> = +-c (1 - delta_d), and two far ones.

    Every sample contains r close patches.
    """
    half = c * 0.8 / 2
    return sizes(
        n=8, p=4, delta_d=0.2, composition="bounded_close", close=r, b1=(half, -half, 0, 0),
        b2=(-half, half, 0, 0), **more
    )  # fmt: skip


def all_found(p: Parameters, route: np.ndarray) -> bool:
    """Return True if all samples of class +1 route o1 to expert 1, and those of class -1 route o2 to expert 2."""
    counts, label, weight = world.population(p)
    routed = model.top_l(route[..., None], counts.T, p.l)
    there = weight > 0
    return bool((routed[0, 0][(label > 0) & there] > 0).all() and (routed[1, 1][(label < 0) & there] > 0).all())


def success_at_l_star(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the share of 200 trained routers that find the discriminative patch in every sample.

    The number of routed patches is l = l*, plus `shift`.
    """
    base = close_world(point["c"], 3, N_r=40_000)
    gram, rng = world.gram_of(base), stream(seed, 4, lab)
    p = dataclasses.replace(base, l=router.l_star(base, gram) + point.get("shift", 0))
    start = p.sigma_r * rng.standard_normal((200, 2, p.p + 2)) @ root(gram).T
    value = router.sample_means(p, rng, 200) @ gram
    return float(np.mean([all_found(p, np.stack([s[0] + v, s[1] - v])) for s, v in zip(start, value, strict=True)]))


def threshold_gap(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Return the smallest sufficient l less l_sharp, and its excess over l*.

    It is the smallest l at which the routers of the population find every discriminative patch. l_sharp is 1 + the
    largest number of patches of a sample with +-<o1 - o2, q> > 1 - delta_d. With `half`, l* takes its place, which
    counts patches with |<o1 - o2, q>| > (1 - delta_d)/2 (control).
    """
    base = close_world(point["c"], point["r"])
    gram = world.gram_of(base)
    value = gram @ router.mean_counts(base)
    route = np.stack([value, -value])
    found = next(n for n in range(1, base.n + 1) if all_found(dataclasses.replace(base, l=n), route))
    star = router.l_star(base, gram)
    sharp = star if point.get("half") else max(router.thresholds(base, gram))
    return {"sharp": found - sharp, "star": max(0.0, found - star)}


def needed(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return N_r for 90 % success, by the exact covariance and the central limit theorem."""
    delta_d = 1 - 1 / point["separation"]
    p = sizes(n=point.get("n", 32), p=point.get("p", 8), delta_d=delta_d, balanced=point.get("balanced", False))
    return router.samples_for(p, world.gram_of(p), 0.9, 20_000, seed + 101 * lab.seed)


def law_gap(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the success rate of 20000 exact draws of N_r samples less that of the Gaussian law."""
    p = sizes(**{name: value for name, value in point.items() if name != "factor"})
    law = p if "factor" not in point else dataclasses.replace(p, N_r=int(point["factor"] * p.N_r))
    gram = world.gram_of(p)
    return router.success(p, gram, 20_000, seed + 1) - router.gaussian_success(law, gram, 20_000, seed)


def dropped(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Return two numbers on routed shares of patterns q.

    They are the rank correlation of the share with |<o1 - o2, q>|, and the smallest share.
    """
    from scipy.stats import spearmanr

    tilt = np.array([-0.8, -0.6, -0.4, -0.2, 0.0, 0.2, 0.4, 0.6, 0.8])
    p = sizes(n=24, p=9, l=4, b1=tuple(tilt / 2), b2=tuple(-tilt / 2))
    gram = world.gram_of(p)
    value = gram @ router.mean_counts(p)
    if point.get("random"):
        value = stream(seed, 5, lab).standard_normal(value.size)
    counts, _, weight = world.population(p)
    routed = model.top_l(np.stack([value, -value])[..., None], counts.T, p.l)
    share = (routed.sum(axis=0)[2:] @ weight) / (weight @ counts[:, 2:])
    return {"rank": float(spearmanr(np.abs(tilt), share)[0]), "least": float(share.min())}  # type: ignore[arg-type]


CASES = tuple({"n": n, "delta_d": x} for n in (8, 16, 32) for x in (0.0, 0.5))
LAWS = (
    {"n": 16, "p": 8, "delta_d": 0.5, "N_r": 200},
    {"n": 32, "p": 4, "N_r": 600},
    {"n": 64, "p": 8, "N_r": 200, "balanced": True},
)
THRESHOLDS = tuple({"c": c, "r": r} for c in (0.6, 0.9, 1.1, 1.5) for r in (1, 3, 5))
SQUARE = "N_r grows like the square of the separation"
PATCHES = "n patches of n dimensions in N_r = n^2 samples"
CLAIMS = (
    claim(
        "lem-E.1",
        "For every w the population gradient of the router loss is -(o1 - o2)/2 for w_1 and +(o1 - o2)/2 for w_2.",
        "Lemma E.1",
        population_gradient,
        Agrees(0.05, "gradient", "far below the factors 1/2 of the lemma"),
        over("n", 4, 16, seeds=2),
        break_measure(lambda lab, point, seed: population_gradient(lab, {**point, "factor": 0.9}, seed)),
        rungs=(2, 6, 9),
        seconds=10.0,
    ),
    claim(
        "rtr-conserve",
        "w_1 + w_2 is conserved, and the trained routers depend on the batches only through the mean of all samples "
        "(ours).",
        "equation (6)",
        invariance,
        All({"sum": Vanishes(1e-12), "batches": Vanishes(1e-12)}),
        grid(seeds=3),
        break_measure(lambda lab, point, seed: invariance(lab, {"second": 0.9}, seed)),
        rungs=(1, 5, 9),
    ),
    claim(
        "lem-E.2",
        "|w_s(0)| <= 1/n^2 with high probability, and |w_s(0)| n^2 -> 1/log n.",
        "Lemma E.2",
        initial_norms,
        All({"probability": Bounded(low=0.0, margin=0.01), "size": Equals(1.0, relative=0.05)}),
        grid(*({"n": n, "d": 100} for n in (8, 16, 64)), seeds=20),
        break_measure(lambda lab, point, seed: initial_norms(lab, {**point, "factor": 1.1}, seed)),
        rungs=(2, 9),
        variants=(
            Variant(
                "main",
                expected="consistent",
                identity="sigma_r is defined as 1/(n^2 log(n) sqrt(d)), and the norms are those before training",
            ),
        ),
        erratum="errata-5",
    ),
    claim(
        "lem-E.3",
        "After training with the N_r of Lemma 4.1, o1 is ranked above every patch outside S_c((1 - delta_d)/2) by "
        "router 1, "
        "and o2 by router 2, with high probability.",
        "Lemma E.3",
        ranked_first,
        Bounded(low=0.0, margin=0.005, meaning="success less 1 - 1/n"),
        grid(*CASES),
        break_measure(lambda lab, point, seed: ranked_first(lab, {**point, "share": 0.01}, seed)),
        rungs=(2, 9),
        variants=(Variant("main", expected="consistent"),),
        erratum="errata-6",
    ),
    claim(
        "lem-4.1",
        "For l >= l*, the trained routers send o1 of every sample of class +1 to expert 1, and o2 of class -1 to "
        "expert 2.",
        "Lemma 4.1",
        success_at_l_star,
        Bounded(low=0.99, meaning="share of trained routers that succeed"),
        over("c", 0.6, 0.9, 1.1, 1.5),
        break_measure(lambda lab, point, seed: success_at_l_star(lab, {"c": 1.1, "shift": -1}, seed)),
        rungs=(2, 9),
    ),
    claim(
        "lem-4.1-tight",
        "N_r for 90 % success grows like n^2 for independent samples, like n for class-balanced samples, and "
        "like (1 - delta_d)^(-2) (ours). It does not grow like the product n^2/(1 - delta_d)^3 of B_r and T_r in "
        "the lemma.",
        "Lemma 4.1",
        needed,
        Power(2.0, over="n", margin=0.1, meaning="N_r", short=PATCHES),
        over("n", 64, 128, 256, 512, 1024, seeds=6, separation=1.0, p=2),
        break_number(-2),
        rungs=(8, 9),
        variants=(
            Variant("n, independent"),
            Variant(
                "n, balanced",
                {"balanced": True},
                law=Power(1.0, over="n", margin=0.1, meaning="N_r", short=PATCHES),
            ),
            Variant(
                "n, smaller",
                statement="At p = 8 and n from 16 to 128, where p/n is not small, the exponent is already the same.",
                sweep={"quick": over("n", 8, 16, 32, 64, 128, seeds=6, separation=1.0, p=8)},
                expected="refuted",
            ),
            Variant(
                "separation",
                expected="inconclusive",
                law=Power(2.0, over="separation", margin=0.1, meaning="N_r", short=SQUARE),
                sweep={"quick": over("separation", 1.0, 2.0, 4.0, 7.0, 10.0, seeds=6)},
            ),
            Variant(
                "product attained",
                statement="N_r grows like (1 - delta_d)^(-3), as the product B_r T_r does. The lemma states that "
                "this product suffices.",
                expected="refuted",
                law=Power(3.0, over="separation", margin=0.1, meaning="N_r", short=SQUARE),
                sweep={"quick": over("separation", 1.0, 2.0, 4.0, 7.0, 10.0, seeds=6)},
            ),
        ),
        erratum="improvement-1",
    ),
    claim(
        "lem-4.1-law",
        "P(o1 outranks every q) at N_r samples is the orthant probability of a Gaussian distribution with the "
        "exact covariance (ours).",
        "Lemma 4.1",
        law_gap,
        Equals(0.0, absolute=0.02, meaning="difference of probabilities"),
        grid(*LAWS, seeds=6),
        break_measure(lambda lab, point, seed: law_gap(lab, {**point, "factor": 0.5}, seed)),
        rungs=(2, 9),
    ),
    claim(
        "lem-4.1-lstar",
        "In the population the routers find o1 and o2 in every sample if l is at least l_sharp = 1 + max #{<o1 - "
        "o2, q> > 1 - delta_d}. This number is at most the l* of Definition D.3.",
        "Definition D.3",
        threshold_gap,
        All({"sharp": Vanishes(0.0, 0.5), "star": Vanishes(0.0, 0.5)}),
        grid(*THRESHOLDS),
        break_setting(half=True),
        rungs=(1, 9),
        erratum="errata-3",
    ),
    claim(
        "dispatch-drop",
        "Irrelevant patterns with a larger |<o1 - o2, q>| are routed more often. Patterns with a small value go "
        "to no expert (ours).",
        "Section 4.2",
        dropped,
        All(
            {
                "rank": Bounded(low=0.9, visible=0.1, because="a rank correlation is at most 1"),
                "least": Bounded(high=0.02, visible=0.02, because="a share is at least 0"),
            }
        ),
        grid(),
        break_measure(lambda lab, point, seed: dropped(lab, {"random": True}, seed)),
        rungs=(2, 9),
    ),
)
