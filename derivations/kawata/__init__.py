"""Mixture of experts on clusters of single-index tasks, correlation loss, four phases (Kawata et al. 2025)."""

import math

from derivations.contract import Dynamics, Map, Source, System
from derivations.kawata.parameters import TIERS, Parameters, check, exponent

SOURCE = Source(
    authors="Kawata et al.",
    title="Mixture of Experts Provably Detect and Learn the Latent Cluster Structure in Gradient-Based Learning",
    venue="ICML 2025, PMLR 267",
    year=2025,
    bibtex="""@inproceedings{kawata2025mixture,
  title     = {Mixture of Experts Provably Detect and Learn the Latent Cluster Structure in Gradient-Based Learning},
  author    = {Kawata, Ryotaro and Matsutani, Kohsei and Kinoshita, Yuri and Nishikawa, Naoki and Suzuki, Taiji},
  booktitle = {Proceedings of the International Conference on Machine Learning (ICML)},
  year      = {2025},
}""",
)

CLOCK = "time t of the gradient flow; one SGD step advances it by the step size (1/J and 1/M^2 in the right-hand side)"


def horizon(p: Parameters) -> float:
    """30 C J M^2 times d^((k*-2)/2) (log d at k* = 2): a few times as long as a typical neuron needs in Phase I."""
    k = exponent(p)
    return 30.0 * p.C * p.J * p.M**2 * (math.log(p.d) if k <= 2 else p.d ** ((k - 2) / 2))


SYSTEM = System(
    name="kawata",
    title="Mixture of experts on clusters of single-index tasks, correlation loss, four phases",
    source=SOURCE,
    parameters=Parameters,
    presets={
        "paper": {
            "C": 2,
            "M": 8,
            "J": 500,
            "d": 200,
            "rho": 4.0,
            "link": ((0, 0, 0, 0.5**0.5, 0, 0.5**0.5), (0, 0, 0, 0.5**0.5, 0.5**0.5), (0, 0, 0, 1.0)),
            "bias": (-1.5, 1.5),
        },
        "vanilla": {"C": 2, "M": 1, "J": 1, "d": 10**6, "k_star": 4, "bias": (-0.5,), "neurons": 1000},
        "phases": {
            "M": 8,
            "J": 8,
            "width3": 60,
            "d": 10**6,
            "rho": 8.0,
            "bias": (-0.5,),
            "ridge_bias": (-4.0, 4.0),
        },
        "hidden": {
            "C": 2,
            "d": 10**6,
            "k_star": 4,
            "bias": (-0.5,),
            "link": ((0.0,), (0.0,), (0, 0, 0, 0, 1.0)),
            "neurons": 300,
        },
    },
    stages=(
        Dynamics(
            name="phase1",
            tiers=TIERS,
            equations="derivations.kawata.tiers:equations",
            statement="derivations.kawata.tiers:phase1",
            enter="derivations.kawata.initial:enter",
            model="derivations.kawata.model:MODEL",
            clock=CLOCK,
            horizon=horizon,
            decades=True,
            meaning="weak recovery of one task per neuron, routing uniformly random (M = 1: the vanilla network)",
        ),
        Map(
            name="phase2",
            tiers=TIERS,
            equations="derivations.kawata.tiers:equations",
            enter="derivations.kawata.phases:enter_gate",
            apply="derivations.kawata.phases:step_gate",
            meaning="one gradient step of the gate from zero, by the population gradient or from a batch",
        ),
        Dynamics(
            name="phase3",
            tiers=TIERS,
            equations="derivations.kawata.tiers:retraining_equations",
            statement="derivations.kawata.tiers:phase3",
            enter="derivations.kawata.phases:enter_retraining",
            model="derivations.kawata.model:PHASE3",
            clock=CLOCK,
            horizon=lambda p: horizon(p) / p.M**2 * (p.width3 or p.J) / p.J,
            decades=True,
            meaning="fresh neurons behind the constant gate: each expert gets the clusters with a nonnegative score",
        ),
        Map(
            name="phase4",
            tiers=TIERS,
            equations="derivations.kawata.tiers:retraining_equations",
            enter="derivations.kawata.phases:enter_ridge",
            apply="derivations.kawata.phases:fit_second_layer",
            clock="none: one regression",
            meaning="ridge regression of the second layer on flipped neurons with fresh biases; the test error",
        ),
    ),
    check=check,
    read_initial="derivations.kawata.initial:read",
    plot="derivations.kawata.picture:draw",
    references="derivations.kawata.theory:references",
    headlines="derivations.kawata.headlines:HEADLINES",
    sizes={"d": "d", "C": "C", "M": "M", "J": "J", "k_star": "k*", "rho": "rho"},
    claims="derivations.kawata.claims:CLAIMS",
    numbered="derivations.kawata.numbered:STATEMENTS",
    bare={"preset": "phases"},
    beside={
        "C": 1, "M": 1, "J": 4, "d": 50, "k_star": 3, "activation": "polynomial", "sigma": (0.0, 0.0, 0.0, 1.0),
        "rho": 0.0, "s": (0.0,), "until": 16.0, "step_size": 0.02, "batch": 10_000,
    },
)  # fmt: skip
