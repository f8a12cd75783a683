"""Cluster-routed mixture of patch classifiers, top-1 routing with uniform noise (Chen et al. 2022)."""

from derivations.chen.parameters import TIERS, Parameters, check
from derivations.contract import Dynamics, Source, System

SOURCE = Source(
    authors="Chen, Deng, Wu, Gu & Li",
    title="Towards Understanding the Mixture-of-Experts Layer in Deep Learning",
    venue="NeurIPS 2022",
    year=2022,
    bibtex="""@inproceedings{chen2022towards,
  title     = {Towards Understanding the Mixture-of-Experts Layer in Deep Learning},
  author    = {Chen, Zixiang and Deng, Yihe and Wu, Yue and Gu, Quanquan and Li, Yuanzhi},
  booktitle = {Advances in Neural Information Processing Systems (NeurIPS)},
  year      = {2022},
}""",
)

PAPER = {"K": 4, "M": 8, "J": 16, "P": 4, "d": 50, "rho": 100.0, "sigma_0": 1e-3}
"""The sizes of the paper's synthetic experiments (Appendix A.2); at P = 4 the flow neglects one noise patch."""
WIDE, NARROW = {"gamma": (0.5, 3.0)}, {"gamma": (0.5, 2.0)}

SYSTEM = System(
    name="chen",
    title="Cluster-routed mixture of patch classifiers, top-1 routing, normalised gradient descent",
    source=SOURCE,
    parameters=Parameters,
    presets={
        "setting1": {**PAPER, **WIDE, "sigma_p": 1.0},
        "setting2": {**PAPER, **WIDE, "sigma_p": 2.0},
        "setting3": {**PAPER, **NARROW, "sigma_p": 1.0},
        "setting4": {**PAPER, **NARROW, "sigma_p": 2.0},
        "released1": {**PAPER, **WIDE, "variant": "released", "early_stop": True},
        "released2": {**PAPER, **WIDE, "sigma_p": 2.0, "variant": "released", "early_stop": True},
        "released3": {**PAPER, **NARROW, "variant": "released", "early_stop": True},
        "released4": {**PAPER, **NARROW, "sigma_p": 2.0, "variant": "released", "early_stop": True},
        "quick": {"nodes": 6},
        "manifold": {"M": 8, "J": 1, "K": 4, "P": 3, "rho": 64.0, "init": "specialised", "strength": 0.02},
    },
    stages=(
        Dynamics(
            name="train",
            tiers=TIERS,
            equations="derivations.chen.tiers:equations",
            statement="derivations.chen.tiers:statement",
            enter="derivations.chen.initial:enter",
            model="derivations.chen.model:MODEL",
            clock="tau = expert step times number of steps; one step of training advances it by the step size",
            horizon=lambda parameters: 2.0,
            meaning="Algorithm 1: normalised descent of the experts, plain descent of the router (Theorem 4.2)",
        ),
    ),
    check=check,
    read_initial="derivations.chen.initial:read",
    plot="derivations.chen.picture:draw",
    references="derivations.chen.theory:references",
    headlines="derivations.chen.headlines:HEADLINES",
    sizes={"d": "d", "K": "K", "M": "M", "J": "J", "P": "P", "rho": "rho"},
    predict="derivations.chen.answers:predict",
    claims="derivations.chen.claims:CLAIMS",
    numbered="derivations.chen.numbered:STATEMENTS",
    # The cost of a right-hand side is cubic in the nodes; this change of less than 1e-5 takes a seventh of the time.
    bare={"preset": "quick", "rtol": 1e-5},
    beside={"step_size": 0.005, "batch": 1000, "until": 0.6},
)
