"""Mixture of experts on clusters of single-index tasks, correlation loss, four phases (Kawata et al. 2025)."""

import math

from derivations.contract import Source, Stage, System
from derivations.kawata.parameters import Parameters, check, exponent

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
    """30 C J M^2 times d^((k*-2)/2) (log d at k* = 2): some times longer than a typical neuron needs in Phase I."""
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
        Stage(
            name="phase1",
            kind="dynamics",
            tiers=("exact", "paper", "R1", "R2", "R3", "R4"),
            equations="derivations.kawata.population:equations",
            enter="derivations.kawata.initial:enter",
            model="derivations.kawata.model:MODEL",
            clock=CLOCK,
            horizon=horizon,
            meaning="weak recovery of one task per neuron, routing uniformly random (M = 1: the vanilla network)",
        ),
    ),
    check=check,
    read_initial="derivations.kawata.initial:read",
)
