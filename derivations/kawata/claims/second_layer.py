"""Claims on Phase IV: approximation by the second layer, its sample size, and the four phases end to end."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_measure, break_number, break_setting, once
from derivations.claim import Claim, Grid, Variant
from derivations.kawata import ridge
from derivations.kawata.claims.tools import at, hermite_link, orthonormal, rng_of
from derivations.kawata.initial import from_arrays
from derivations.kawata.parameters import Parameters
from derivations.laws import Bounded, Power, Typical


def approximation(lab: Any, point: Mapping[str, Any], seed: int, both: bool = True) -> float:
    """Return sup |f - fit| on [-2, 2] for f = h_4.

    The fit is by least squares in 2N ReLU features +-u + b, with b equally spaced in [-4, 4].
    """
    N = point["N"]
    u = np.linspace(-2, 2, 801)
    b = np.linspace(-4, 4, N)
    features = [np.maximum(u[:, None] + b, 0)] + ([np.maximum(-u[:, None] + b, 0)] if both else [])
    design = np.concatenate(features, axis=1) if both else np.maximum(u[:, None] - 2.5 + 0.0 * b, 0)
    target = orthonormal(4, u)
    weights = np.linalg.lstsq(design, target, rcond=None)[0]
    return float(np.abs(design @ weights - target).max())


def aligned(
    J: int, zeta: float, samples: int, rng: np.random.Generator, wrong: bool = False, tests: int = 20_000
) -> float:
    """Return E|F - f*| of ridge regression on J neurons, with one cluster and C_b = 4.

    Half of the neurons are aligned with the local task and half with the global task.
    """
    kappa, xi = np.zeros((J, 1)), np.zeros(J)
    kappa[::2, 0] = rng.choice([-1.0, 1.0], kappa[::2, 0].size)
    xi[1::2] = rng.choice([-1.0, 1.0], xi[1::2].size)
    if wrong:
        kappa, xi = 0.0 * kappa, 0.0 * xi
    p = Parameters(C=1, M=1, J=J, d=200, rho=0.0, s=(1.0,), zeta=zeta, link=hermite_link(3, 1),
                   ridge=1e-9, ridge_samples=samples, test_samples=tests)  # fmt: skip
    arrays = {"kappa": kappa, "xi": xi, "nu": np.zeros((J, 1)), "a": np.ones(J), "b": rng.uniform(-4, 4, J)}
    start = from_arrays(p, {**arrays, "directions": np.eye(J)})
    return ridge.fit(start, rng)["summary"]["test_error"]


def width_error(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the test error for the number of neurons of the point, without noise."""
    return aligned(point["J"], 0.0, 20_000, rng_of(lab, seed), wrong=point.get("wrong", False))


def sample_error(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the test error for the number of training samples of the point, with label noise."""
    return aligned(200, 1.0, point["T"], rng_of(lab, seed), tests=10_000)


def kernel_ridge(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the squared test error of kernel ridge regression on h_3(w . x) over E f^2, by default n = d^2 samples."""
    rng, d = rng_of(lab, seed), 24
    n = int(point.get("n", d * d))
    w = rng.normal(size=d)
    w /= np.linalg.norm(w)
    x, test = rng.standard_normal((n, d)), rng.standard_normal((1500, d))
    y, exact = orthonormal(3, x @ w), orthonormal(3, test @ w)

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.exp(a @ b.T / d) if not point.get("oracle") else np.exp(np.outer(a @ w, b @ w))

    fit = np.linalg.solve(kernel(x, x) + 1e-3 * np.eye(n), y)
    return float(np.mean((kernel(test, x) @ fit - exact) ** 2) / np.mean(exact**2))


END = dict(C=2, d=10**12, k_star=4, rho=8.0, bias=(-0.5,), ridge_bias=(-4.0, 4.0), ridge=1e-9, ridge_samples=40_000,
           test_samples=100_000)  # fmt: skip
KNOWN = 0.02
"""Standard error of a test error over E f*^2 from that many samples, whose tails are those of He_4^2: two estimates of
one network differed by .004, .012 and .026; from 10,000 samples by up to .08."""
EXPERTS, WIDTH_1, WIDTH_3 = 12, 8, 80
"""Experts, and neurons of each in Phase I and from Phase III on."""


def end_to_end(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the test error E(F - f*)^2 / E f*^2 after all phases by the population flow.

    The network has four phases, or is vanilla. Half of E f*^2 belongs to the global task, so a network that does not
    learn this task has at least the error 1/2.
    """
    summary = four_phases(lab, seed, point["network"], point.get("until", 60.0))
    return summary["test_squared_error"] / summary["squared_error_of_zero"]


def four_phases(lab: Any, seed: int, network: str, until: float = 60.0) -> Mapping[str, Any]:
    """Return the summary of the last phase.

    The vanilla network has as many neurons, and trains for the time of Phase III: `until` d times their number.
    """
    d = END["d"]
    if network == "vanilla":
        width = EXPERTS * WIDTH_3
        request = {**END, "M": 1, "J": width}
        first = lab.integrate(seed=seed, until=until * width * d, save_points=2, rtol=1e-6, **request)
        return lab.stage("phase4", first, seed=seed, save_points=2).summary
    # Tests take most of the time, a product of 960 neurons with as many directions each, and 1/2 is far away.
    request = {**END, "M": EXPERTS, "J": WIDTH_1, "width3": WIDTH_3, "test_samples": 20_000}
    first = lab.integrate(seed=seed, until=10.0 * WIDTH_1 * EXPERTS**2 * d, save_points=2, rtol=1e-6, **request)
    second = lab.stage("phase2", first, seed=seed)
    third = lab.stage("phase3", second, seed=seed, until=until * WIDTH_3 * d, save_points=2, rtol=1e-6)
    return lab.stage("phase4", third, seed=seed).summary


CLAIMS = (
    Claim(
        "lem-C.27", "ReLU features with +-w and biases of range C_b approximate a polynomial of w . x to O(1/N).",
        at("Lemma C.27"), approximation,
        Power(-1.0, over="N", bound="at most", margin=0.05, error=1e-6, meaning="sup error"),
        {"quick": Grid(tuple({"N": n} for n in (4, 8, 16, 32, 64, 128, 256, 512)))},
        break_measure(functools.partial(approximation, both=False)), (2, 8, 9),
        (Variant("main", expected="consistent"),), erratum="errata-13",
    ),
    Claim(
        "lem-C.28", "A second layer with small squared error exists, and its error falls at least like 1/J.",
        at("Lemma C.28"), width_error, Power(-1.0, over="J", bound="at most", margin=0.1, meaning="test error",
        short="a ridge of J features costs J^3"),
        {"quick": Grid(tuple({"J": j} for j in (8, 16, 32, 64, 128)), 9)},
        break_measure(lambda lab, p, s: width_error(lab, {**p, "wrong": True}, s)), (2, 8, 9),
        (Variant("main", expected="consistent"),),
    ),
    Claim(
        "lem-C.29", "With label noise the test error falls like T_4^{-1/2} (against the noiseless target).",
        at("Lemma C.29"), sample_error, Power(-0.5, over="T", margin=0.06, meaning="test error"),
        {"quick": Grid(tuple({"T": t} for t in (500, 1600, 5000, 16_000, 50_000)), 16)}, break_number(-2),
        (7, 8, 9), erratum="errata-13",
        seconds=15.0,
    ),
    Claim(
        "thm-4.6-krr", "Kernel ridge regression needs d^{p*} samples. With n = d^2 samples it has not learned a "
                       "cubic target.",
        at("Theorem 4.6 (remark)"), kernel_ridge, Bounded(low=0.5, meaning="squared error over E f^2"), once(seeds=60),
        break_measure(lambda lab, point, seed: kernel_ridge(lab, {**point, "oracle": True}, seed)), (7, 9),
        (Variant("main", expected="consistent"),),
    ),
    Claim(
        "thm-4.6", "After the four phases (the first and third by the population flow) the test error of the "
                   "mixture is below one half of the error of the zero function. One half is the share of the "
                   "global task.  (thm-4.6-samples measures the sample complexity d^{k-1} by SGD.)",
        at("Theorem 4.6"), end_to_end, Typical(high=0.5, meaning="squared test error over E f*^2"),
        {"quick": Grid(seeds=6), "full": Grid(seeds=10)},
        break_setting(until=1e-6), (4, 7, 9),
        (
            Variant("mixture", {"network": "mixture"}, expected="consistent"),
            Variant("vanilla", {"network": "vanilla"}, "A vanilla network of equal size does not learn the "
                                                       "global task, and its error stays above 1/2, the share of "
                                                       "that task.",
                    law=Typical(low=0.5, margin=3 * KNOWN, meaning="squared test error over E f*^2", visible=KNOWN,
                                because="known to that, from 100,000 samples"),
                    sweep={"quick": Grid(seeds=6), "full": Grid(seeds=10)}, expected="consistent",
                    control=break_setting(network="mixture")),
        ),
        "mixture",
        seconds=90.0,
    ),
)  # fmt: skip
