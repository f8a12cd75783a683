"""Claims on the regularity of data and initialisation (Lemmas D.1 to D.5), and on professions changed by sampling."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_law, break_measure, break_number, break_setting, grid, over
from derivations.chen import model
from derivations.chen.claims.tools import claim, laws_of
from derivations.chen.nodes import moment
from derivations.chen.parameters import Parameters
from derivations.claim import Variant
from derivations.laws import Equals, Power, Probability
from derivations.scaling import Form


def generator(lab: Any, seed: int, salt: int) -> np.random.Generator:
    """Return the random number generator of one measurement."""
    return np.random.default_rng([seed, salt, lab.seed])


def examples(rng: np.random.Generator, n: int, **parameters: Any) -> tuple[np.ndarray, ...]:
    """Draw n examples: atoms, amplitudes, labels, clusters."""
    return model.draw(rng.random((7, n)), *model.numbers(Parameters(**parameters)))


def cluster_sum(lab: Any, point: Mapping[str, Any], seed: int, centred: bool = True) -> float:
    """Return the rms, over 60 draws, of one of the sums of the lemma over cluster 0, less its mean.

    Without `centred` the signs that make the mean zero, or the subtraction of the mean, are left out (control).
    """
    return cluster_sums(int(point["n"]), (seed, 1, lab.seed), centred)[point["sum"]]


@functools.lru_cache(maxsize=1024)
def cluster_sums(n: int, stream: tuple[int, ...], centred: bool) -> dict[str, float]:
    """Return `cluster_sum` for all three sums, from the same draws."""
    rng, p, found = np.random.default_rng(stream), Parameters(), []
    for _ in range(60):
        _, amplitudes, labels, cluster = examples(rng, n)
        inside = cluster == 0
        y, b, g = labels[inside], amplitudes[1, inside], amplitudes[2, inside]
        sign = y if centred else 1.0
        found.append((
            (sign * b**3).sum(),
            (y * g**3 if centred else np.abs(g) ** 3).sum(),
            (np.abs(amplitudes[0, inside]) ** 3).sum() - (n * moment(p, "alpha", 3) / p.K if centred else 0),
        ))  # fmt: skip
    return dict(zip(SUM_NAMES, np.sqrt(np.mean(np.square(found), axis=0)).tolist(), strict=True))


def noise_products(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest |<xi, xi'>| among 200 noise patches of sigma_p = 1.

    With `bounds`, return 1 if a bound fails, else 0.
    """
    if point.get("bounds"):
        return noise_exceeds(lab, point, seed)
    d = int(point["d"])
    xi = generator(lab, seed, 2).standard_normal((200, d)) / math.sqrt(d)
    gram = np.abs(xi @ xi.T)
    np.fill_diagonal(gram, 0)
    return float(gram.max())


def noise_exceeds(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return 1 if one of the three bounds of the lemma fails for 200 patches at failure probability 0.1, else 0."""
    d, n, delta, k = 256, 200, 0.1, 4
    xi = generator(lab, seed, 3).standard_normal((n, d)) / math.sqrt(d)
    gram = point.get("swell", 1.0) * xi @ xi.T
    norms = np.abs(np.diag(gram) - 1).max() > 3 * math.sqrt(math.log(4 * n / delta) / d)
    np.fill_diagonal(gram, 0)
    products = np.abs(gram).max() > 2 * math.sqrt(math.log(12 * n * n / delta) / d)
    signals = np.abs(xi[:, : 2 * k]).max() > 2 * math.sqrt(math.log(6 * n * k / delta) / d)
    return float(norms or products or signals)


def gap_holds(lab: Any, point: Mapping[str, Any], seed: int, share: float = 1.0) -> float:
    """Return 1 if all relative top gaps of a draw are at least delta/(3 M J^2 K^2), delta = 1/10, else 0."""
    m, j, k, delta = 8, 8, 4, 0.1
    top = np.sort(generator(lab, seed, 4).standard_normal((m, j * k)), axis=1)[:, -2:]
    return float((1 - top[:, 0] / top[:, 1]).min() >= share * delta / (3 * m * j**2 * k**2))


def winner_size(lab: Any, point: Mapping[str, Any], seed: int, least: float = 0.01) -> float:
    """Return 1 if the largest overlap of every expert is at least `least` sigma_0 in a draw, else 0."""
    return float(generator(lab, seed, 5).standard_normal((8, 32)).max(axis=1).min() >= least)


def largest_overlap(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest |<w(0), u>| over signals and 50 noise patches.

    The weights have independent entries of size sigma_0, d = 64.
    """
    rng, d = np.random.default_rng([seed, 6, lab.seed, round(-1000 * math.log10(point["sigma_0"]))]), 64
    directions = np.vstack([np.eye(8, d), rng.standard_normal((50, d)) / math.sqrt(d)])
    return float(np.abs(point["sigma_0"] * rng.standard_normal((64, d)) @ directions.T).max())


def class_weights(n: int, setting: int, rng: np.random.Generator, repeats: int) -> np.ndarray:
    """Draw C_k/(E alpha^3/K) - 1 for samples of n examples (repeats, K).

    The draws are Gaussian with the exact covariance of the sums.
    """
    p = Parameters(**{k: v for k, v in laws_of({"setting": setting}).items() if k != "sigma_p"})
    a3, a6, g6 = moment(p, "alpha", 3), moment(p, "alpha", 6), moment(p, "gamma", 6)
    # Var of 1(k) alpha^3 + 1(k') y eps gamma^3, and the covariance of two features, through E[1(k)] E[1(l)] alone.
    own = (a6 + g6) / p.K - (a3 / p.K) ** 2
    cross = -((a3 / p.K) ** 2)
    root = np.linalg.cholesky((own - cross) * np.eye(p.K) + cross)
    return rng.standard_normal((repeats, p.K)) @ root.T / math.sqrt(n) / (a3 / p.K)


def flips(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the probability that argmax C_k <w, v_k> differs from argmax <w, v_k>, J = 16.

    C_k has its Gaussian distribution.
    """
    if point.get("training"):
        return flips_in_training(lab, point, seed)
    rng = generator(lab, seed, 7)
    c = 1 + class_weights(int(point["n"]), point.get("setting", 3), rng, 4000)
    x = rng.standard_normal((4000, 16, 4))
    moved = (x * c[:, None]).reshape(4000, -1).argmax(axis=1)
    return float((moved != x.reshape(4000, -1).argmax(axis=1)).mean())


def flips_in_training(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the observed less the predicted share of experts whose largest overlap changes.

    There are 16 data sets with four experts each. If the point asks for the observed share alone, there are 32. With
    many experts each would see few examples in a step, and this sampling is not part of the prediction. The statement
    is about the end of the race, max C_k <w, v_k>. Training stops at four sigma_0 of its clock, when close entries have
    not yet overtaken each other. The prediction therefore follows the race by the same steps to the same time.
    """
    n, m, steps, size, sets = int(point.get("n", 2000)), 4, 40, 0.1, 32 if point.get("observed") else 16
    run = lab.simulate(
        method="compressed", step_size=size * 1e-3, batch=n, until=steps * size * 1e-3, save_points=2, seed=seed, M=m,
        J=8, P=3, d=8, sigma_0=1e-3, data_seed=seed, rho=0.0, n_test=2, seeds=sets, sets="own", fresh_initial=True,
    )  # fmt: skip
    first, last = (run["feat"][:, t].reshape(sets, m, -1).argmax(axis=2) for t in (0, -1))
    if point.get("observed"):
        return float((first != last).mean())
    rng = generator(lab, seed, 8)
    c = 1 + (0.0 if point.get("noiseless") else 1.0) * class_weights(n, 3, rng, 4000)[:, None]
    x = rng.standard_normal((4000, 8, 4))
    start = x.reshape(4000, -1).argmax(axis=1)
    for _ in range(steps):
        slope = c * x**2
        x = x + size * slope / np.sqrt((slope**2).sum(axis=(1, 2), keepdims=True))
    return float((first != last).mean() - (start != x.reshape(4000, -1).argmax(axis=1)).mean())


SUM_NAMES = ("y beta^3", "y eps gamma^3", "alpha^3")
STAYS = (Form("no fall", exponent=0.0),)
SUMS = "the rms of a sum of n independent terms of the generator; claim lem-E.5 measures its effect on gradients"
CLAIMS = (
    claim(
        "lem-D.1",
        "The sums over a cluster of y beta^3, of y eps gamma^3, and of alpha^3 - E[alpha^3] are O(sqrt n).",
        "Lemma D.1",
        cluster_sum,
        Power(0.5, over="n", margin=0.03, meaning="rms of the sum"),
        over("n", 250, 1000, 4000, 16000, 32000, seeds=30),
        break_measure(lambda *a: cluster_sum(*a, centred=False)),
        rungs=(2, 8, 9),
        variants=tuple(Variant(name, {"sum": name}, identity=SUMS) for name in SUM_NAMES),
        control_variant="alpha^3",
        seconds=12.0,
    ),
    claim(
        "lem-D.2",
        "Norms and products of noise patches concentrate: |<xi, xi'>| = O(sigma_p^2 sqrt(log n/d)).",
        "Lemma D.2",
        noise_products,
        Power(-0.5, over="d", margin=0.05, meaning="largest |<xi, xi'>|"),
        over("d", 40, 160, 640, 2048, 4096, seeds=24),
        break_number(),
        rungs=(2, 8, 9),
        variants=(
            Variant(
                "scaling",
                identity="inner products of noise patches, which are drawn as Gaussian vectors of variance 1/d",
            ),
            Variant(
                "bounds",
                {"bounds": True},
                law=Probability(high=0.1, meaning="a bound fails", visible=0.05),
                sweep={"quick": grid(seeds=200)},
                expected="consistent",
                control=break_setting(swell=1.8),
            ),
        ),
    ),
    claim(
        "lem-D.4a",
        "For every expert the relative gap between the two largest overlaps is at least delta/(3 M J^2 K^2) with "
        "probability 1 - delta/3.",
        "Lemma D.4",
        gap_holds,
        Probability(low=1 - 0.1 / 3, meaning="gaps are as large", visible=0.02),
        grid(seeds=600),
        break_measure(lambda *a: gap_holds(*a, share=4e3)),
        rungs=(2, 9),
        variants=(Variant("main", expected="consistent"),),
    ),
    claim(
        "lem-D.4b",
        "The largest overlap of every expert is at least 0.01 sigma_0 with probability 1 - delta/3.",
        "Lemma D.4",
        winner_size,
        Probability(low=1 - 0.1 / 3, meaning="winners are as large", visible=0.02),
        grid(seeds=600),
        break_measure(lambda *a: winner_size(*a, least=1.2)),
        rungs=(2, 9),
        variants=(Variant("main", expected="consistent"),),
    ),
    claim(
        "lem-D.5",
        "All initial overlaps are O(sigma_0) up to logarithms.",
        "Lemma D.5",
        largest_overlap,
        Power(1.0, over="sigma_0", margin=0.03, meaning="largest |<w, u>|"),
        over("sigma_0", 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, seeds=8),
        break_law(exponent=0.94),
        rungs=(2, 8, 9),
        variants=(Variant("main", identity="weights are drawn as sigma_0 times standard normal numbers"),),
    ),
    claim(
        "nflip",
        "Sampling noise of the class weights C_k changes the feature that an expert learns. The probability of a "
        "change falls like n^(-1/2), and is 5.6 % at n = 16000 in setting 3.",
        "Section 5",
        flips,
        Power(
            -0.5,
            over="n",
            margin=0.06,
            meaning="flip probability",
            because="at n = 1000 the share of 0.2 is no longer linear in the noise",
        ),
        over("n", 500, 2000, 8000, 32000, 64000, seeds=6),
        break_number(-2),
        rungs=(2, 7, 8, 9),
        variants=(
            Variant("rate"),
            Variant(
                "setting 3",
                law=Equals(0.056, absolute=0.012),
                sweep={"quick": over("n", 16000, seeds=6)},
                control=break_setting(setting=1),
            ),
            Variant(
                "setting 1",
                {"setting": 1},
                law=Equals(0.133, absolute=0.02),
                sweep={"quick": over("n", 16000, seeds=6)},
                control=break_setting(setting=3),
            ),
            Variant(
                "training",
                {"training": True},
                law=Equals(0.0, absolute=0.03, meaning="share less its law", because="half of the share of 0.06"),
                sweep={"quick": grid(seeds=12)},
                control=break_setting(noiseless=True),
            ),
            Variant(
                "training, rate",
                {"training": True, "observed": True},
                "In training the share of changed experts also falls like n^(-1/2).",
                "inconclusive",
                law=Power(
                    -0.5,
                    over="n",
                    margin=0.25,
                    rivals=STAYS,
                    meaning="share",
                    because="half way to none",
                    short="a training set of 32,000 examples takes minutes",
                ),
                sweep={"quick": over("n", 250, 500, 1000, 2000, 4000, seeds=6)},
                control=break_number(),
            ),
        ),
        seconds=43.0,
    ),
)
