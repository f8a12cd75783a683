"""Claims on gradients: conservation of the sum of routers, means over the routing noise, coefficients, fluctuations."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_measure, break_number, grid, over
from derivations.chen import initial, route
from derivations.chen.claims.tools import claim, random_state
from derivations.chen.parameters import Parameters
from derivations.claim import Variant
from derivations.laws import Agrees, All, Power, Proven, Vanishes
from derivations.laws.agreement import Score, score

SMALL = {"M": 4, "J": 2, "K": 3, "d": 6, "n_test": 2}
ONES: dict[str, Any] = {"alpha": (1.0,), "beta": (1.0,), "gamma": (1.0,)}


def router_sum(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return max |sum_m theta_m| over max |theta_m| after a short training run."""
    size = {**SMALL, "sigma_0": 0.3 if point["variant"] == "paper" else 0.01, "rho": 16.0, "variant": point["variant"]}
    run = lab.simulate(
        method="compressed", step_size=0.02, batch=400, until=0.8, save_points=2, seed=seed, **size
    )  # fmt: skip
    theta = np.concatenate([run["gcen"][0, -1], run["gfeat"][0, -1]], axis=1)
    return float(np.abs(theta.sum(axis=0)).max() / np.abs(theta).max())


def formula(start: Any, printed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return minus the mean gradients (M, J + 1, 2 K) over the routing noise and all signs and pairs.

    All strengths are 1. E[-grad w_mj] = mean of p_m q(y pi_m f_m) pi_m y sum_p sigma'(w_mj . x_p) x_p, and E[-grad
    theta_m] = mean of X (a_m - pi_m sum_l a_l), a_l = p_l q(y pi_l f_l) pi_l y f_l. As `printed`, l' stands outside the
    sum over l.
    """
    p, s = start.parameters, start.state
    table = np.concatenate([s["feat"], s["cen"]], axis=-1)
    router = np.concatenate([s["gfeat"], s["gcen"]], axis=-1)
    found, count = np.zeros((p.M, p.J + 1, 2 * p.K)), 0
    for k, other in itertools.permutations(range(p.K), 2):
        for y, eps in itertools.product((-1.0, 1.0), repeat=2):
            count += 1
            x = np.zeros(2 * p.K)
            x[k], x[p.K + k], x[other] = y, 1.0, eps
            patches = [(k, y), (p.K + k, 1.0), (other, eps)]
            f = sum((strength * table[..., atom]) ** 3 for atom, strength in patches).sum(axis=1)
            h = router @ x
            chance, pi = route.probabilities(h), np.exp(h) / np.exp(h).sum()
            q = 1 / (1 + np.exp(y * pi * f))
            a = chance * pi * y * f
            push = q * a.sum() if printed else np.full(p.M, (q * a).sum())
            found[:, -1] += (q * a - pi * push)[:, None] * x
            for atom, strength in patches:
                slope = 3 * (strength * table[..., atom]) ** 2
                found[:, :-1, atom] += (chance * q * pi * y)[:, None] * slope * strength
    return found[:, :-1] / count, found[:, -1] / count


def against_formula(lab: Any, point: Mapping[str, Any], seed: int) -> Score:
    """Compare the mean gradients of the model with the formula."""
    rng = np.random.default_rng([seed, 1])
    start = random_state(rng, 0.8, 0.5, **SMALL, **ONES)
    means = lab.descent(start, 20_000, 30, seed)
    part = slice(None, -1) if point["of"] == "experts" else slice(-1, None)
    sample = means[:, :, part]
    experts, routers = formula(start, point.get("printed", False))
    expected = np.concatenate([experts, routers[:, None]], axis=1)[:, part]
    error = sample.std(axis=0, ddof=1) / np.sqrt(len(sample))
    return score(sample.mean(axis=0), error, expected * point.get("factor", 1.0), len(sample) - 1)


def against_flow(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, Score]:
    """Compare the mean gradients of experts and routers of the model with the exact flow (continuous distributions)."""
    rng = np.random.default_rng([seed, 2])
    start = random_state(rng, 0.6, 0.15, **SMALL, rho=1.0, nodes=10)
    flow = lab.functions(start, "p3").flow(start.state)
    means = lab.descent(start, 20_000, 30, seed + 50)
    mean, error = means.mean(axis=0), means.std(axis=0, ddof=1) / np.sqrt(len(means))
    expert = np.concatenate([flow["feat"], flow["cen"]], axis=-1)
    norm = np.sqrt((mean[:, :-1] ** 2).sum(axis=(1, 2)))
    router = np.concatenate([flow["gfeat"], flow["gcen"]], axis=-1)[:, None]
    return {
        "experts": score(mean[:, :-1], error[:, :-1], expert * norm[:, None, None], len(means) - 1),
        "routers": score(mean[:, -1:], error[:, -1:], router * point.get("factor", 1.0), len(means) - 1),
    }


def early_coefficient(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Test the coefficient of the early gradient, E[alpha^3]/(2 K M^2) 3 <w, v>^2.

    It is tested by SymPy, and against the mean gradient of the model.
    """
    import sympy

    from derivations.chen.kernels import early_drift

    alpha, k, m = sympy.symbols("alpha K M", positive=True)
    along, centre = early_drift()
    exact = sympy.simplify(along - alpha**3 / (point.get("factor", 2) * k * m**2)) == 0 and centre == 0
    rng = np.random.default_rng([seed, 3])
    start = random_state(rng, 0.05, 0.0, **SMALL)
    p = start.parameters
    means = lab.descent(start, 20_000, 30, seed + 80)[:, :, :-1]
    drift = 2.65625 / (point.get("factor", 2) * p.K * p.M**2) * 3 * start.state["feat"] ** 2
    expected = np.concatenate([drift, np.zeros_like(drift)], axis=-1)
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    # E q - 1/2 is of order f/M: a relative 3 (0.05 * 2)^3/16 of the coefficient, far below the error.
    found = score(means.mean(axis=0), error, expected, len(means) - 1)
    return {"symbolic": float(not exact), "gradient": found}


def off_projection(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the rms projection on the centres of a sample gradient of n examples, at small weights."""
    rng = np.random.default_rng([seed, 4])
    start = random_state(rng, 0.05, 0.0, **SMALL)
    means = lab.descent(start, int(point["n"]), 12, seed + 100)
    k = start.parameters.K
    return float(np.sqrt((means[:, :, :-1, k:] ** 2).mean()))


def fluctuation(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the rms fluctuation of sample gradients about their mean, for overlaps of size a.

    It is taken over 40 draws of the routing noise.
    """
    shape = random_state(np.random.default_rng([seed, 5]), 1.0, 0.0, **SMALL).state
    a = point["a"]
    state = [a * shape[name] for name in ("feat", "cen")] + [shape["gcen"], shape["gfeat"]]
    start = initial.from_overlaps(Parameters(M=4, J=2, K=3, d=6), *state)
    means = lab.descent(start, int(point["n"]), 40, seed, False)
    part = means[:, :, :-1] if point["of"] == "experts" else means[:, :, -1:]
    return float(np.sqrt(((part - part.mean(axis=0)) ** 2).mean()))


SIZES = tuple({"n": n, "a": 0.1, "of": "experts"} for n in (250, 1000, 4000, 16000, 32000))
AMPLITUDES = tuple({"n": 2000, "a": a} for a in (0.003, 0.01, 0.03, 0.1, 0.3))
CLAIMS = (
    claim(
        "lem-E.1",
        "The gradients of the routers sum to zero, so sum_m theta_m stays zero. This fails in the released "
        "protocol, whose multiplier is the noisy logit.",
        "Lemma E.1",
        router_sum,
        Vanishes(1e-12, meaning="|sum theta|/max |theta|"),
        grid(),
        break_measure(lambda lab, point, seed: router_sum(lab, {"variant": "released"}, seed)),
        rungs=(1, 5, 9),
        variants=(
            Variant("paper", {"variant": "paper"}),
            Variant(
                "released",
                {"variant": "released"},
                "The gradients of the routers sum to zero in the released protocol.",
                "refuted",
            ),
        ),
        erratum="errata-10",
    ),
    claim(
        "eq-E.1",
        "The mean gradient of an expert over the routing noise is that of the routed loss with 1(m_i = m) "
        "replaced by p_m.",
        "Lemma E.2, equation (E.1)",
        against_formula,
        Agrees(0.05, "gradient", "half of what a factor off by a tenth changes"),
        grid({"of": "experts"}),
        break_measure(lambda lab, point, seed: against_formula(lab, {**point, "factor": 1.1}, seed)),
        rungs=(2, 6, 9),
    ),
    claim(
        "eq-E.2",
        "In the mean gradient of a router over the routing noise, the multiplier l' is that of the selected "
        "expert, and stands inside the sum.",
        "Lemma E.2, equation (E.2)",
        against_formula,
        Agrees(0.05, "gradient", "half of what a factor off by a tenth changes"),
        grid({"of": "routers"}),
        break_measure(lambda lab, point, seed: against_formula(lab, {**point, "factor": 1.1}, seed)),
        rungs=(2, 6, 9),
        variants=(
            Variant("corrected"),
            Variant(
                "printed",
                {"printed": True},
                "In the mean gradient of a router the multiplier l' stands outside the sum.",
                "refuted",
            ),
        ),
        erratum="errata-5",
    ),
    claim(
        "p3-drift",
        "The exact flow for three patches is the mean of the model's gradients (ours).",
        "Algorithm 1",
        against_flow,
        All(
            dict.fromkeys(
                ("experts", "routers"), Agrees(0.05, "gradient", "half of what a factor off by a tenth changes")
            )
        ),
        grid(),
        break_measure(lambda lab, point, seed: against_flow(lab, {"factor": 1.1}, seed)),
        rungs=(3, 6, 9),
    ),
    claim(
        "eq-E5coef",
        "At the start the mean gradient along v_k is E[alpha^3]/(2 K M^2) sigma'(<w, v_k>), and zero along c_k.",
        "Lemma E.5",
        early_coefficient,
        All({"symbolic": Proven("the coefficient"), "gradient": Agrees(0.1, "gradient", "a fifth of the factor 2")}),
        grid(),
        break_measure(lambda lab, point, seed: early_coefficient(lab, {"factor": 3}, seed)),
        rungs=(1, 2, 6, 9),
    ),
    claim(
        "lem-E.5",
        "The sample gradient's projections on the centres are noise of order n^(-1/2).",
        "Lemma E.5",
        off_projection,
        Power(-0.5, over="n", margin=0.06, meaning="rms projection"),
        over("n", 250, 1000, 4000, 16000, 32000, seeds=16),
        break_number(-2),
        rungs=(6, 8, 9),
        erratum="errata-4",
    ),
    claim(
        "lem-E.2",
        "Sample gradients deviate from their mean over the routing noise. At overlaps of size a the deviation is "
        "O(n^(-1/2) a^2) for experts and O(n^(-1/2) a^3) for routers.",
        "Lemma E.2",
        fluctuation,
        Power(-0.5, over="n", margin=0.03, meaning="rms deviation"),
        grid(*SIZES, seeds=16),
        break_number(-2),
        rungs=(6, 8, 9),
        variants=(
            Variant("n"),
            Variant(
                "experts",
                {"of": "experts"},
                law=Power(2.0, over="a", margin=0.05, meaning="rms deviation"),
                sweep={"quick": grid(*AMPLITUDES, seeds=6)},
            ),
            Variant(
                "routers",
                {"of": "routers"},
                law=Power(3.0, over="a", margin=0.05, meaning="rms deviation"),
                sweep={"quick": grid(*AMPLITUDES, seeds=6)},
            ),
        ),
    ),
)
