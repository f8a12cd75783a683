"""Patch-level routing in a mixture of two-layer CNNs (Chowdhury et al. 2023)."""

from derivations.contract import Dynamics, Source, System
from derivations.pmoe.checks import check
from derivations.pmoe.parameters import TIERS, Parameters, begin, course

SOURCE = Source(
    authors="Chowdhury, Zhang, Wang, Liu & Chen",
    title="Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks",
    venue="ICML 2023",
    year=2023,
    bibtex="""@inproceedings{chowdhury2023patch,
  title     = {Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for
               Convolutional Neural Networks},
  author    = {Chowdhury, Mohammed Nowaz Rabbani and Zhang, Shuai and Wang, Meng and Liu, Sijia and Chen, Pin-Yu},
  booktitle = {International Conference on Machine Learning (ICML)},
  series    = {Proceedings of Machine Learning Research},
  volume    = {202},
  year      = {2023},
}""",
)

MNIST = {"n": 16, "p": 8, "d": 784}
"""The sizes of the paper's MNIST experiments (Section 5.1): 4 x 4 grids of digits, 0 and 1 discriminative."""
ALONE = {"p": 1, "n": 9, "composition": "deterministic", "counts": (8,), "tier": "L2"}
CLOCK = "flow = eta m t: one step of size eta advances it by eta times the number m of neurons"

SYSTEM = System(
    name="pmoe",
    title="Patch-level routing in a mixture of two-layer CNNs, expert-choice top-l gates",
    source=SOURCE,
    parameters=Parameters,
    presets={
        "mnist-separate": {**MNIST, "mode": "separate", "l": 2, "m": 40},
        "mnist-joint": {**MNIST, "mode": "joint", "k": 8, "l": 6, "m": 40},
        "mnist-cnn": {**MNIST, "mode": "cnn", "m": 40},
        "tiny-cnn": {**ALONE, "mode": "cnn", "init": "paired"},
        "tiny-separate": {**ALONE, "mode": "separate", "l": 3, "init": "paired", "routers": "perfect"},
        "joint-emerge": {"mode": "joint", "k": 4, "l": 3, "m": 400, "step": 2.0},
        "chatter": {"mode": "joint", "n": 10, "p": 5, "l": 3, "k": 3, "m": 60, "step": 2.0},
    },
    stages=(
        Dynamics(
            name="router",
            tiers=TIERS,
            equations="derivations.pmoe.tiers:routers",
            statement="derivations.pmoe.tiers:routers_statement",
            enter="derivations.pmoe.initial:enter_router",
            model="derivations.pmoe.truth:routers",
            clock="eta_r t: one step of size eta_r advances it by eta_r",
            horizon=lambda parameters: max(parameters.reach, 1e-12),
            meaning="separate training of the routers, in pairs, by the linear loss (Algorithm 1, Lemma 4.1, App. M.1)",
        ),
        Dynamics(
            name="experts",
            tiers=TIERS,
            equations="derivations.pmoe.tiers:experts",
            statement="derivations.pmoe.tiers:experts_statement",
            enter="derivations.pmoe.initial:enter_experts",
            model="derivations.pmoe.truth:experts",
            clock=CLOCK,
            horizon=lambda parameters: 200.0,
            meaning="training of the experts with constant routers (Theorem 4.2); of the CNN (Theorem 4.3)",
            tick=lambda parameters, step_size: step_size * parameters.m,
        ),
        Dynamics(
            name="joint",
            tiers=TIERS,
            equations="derivations.pmoe.tiers:joint",
            statement="derivations.pmoe.tiers:joint_statement",
            enter="derivations.pmoe.initial:enter_joint",
            model="derivations.pmoe.truth:joint",
            clock=CLOCK,
            horizon=lambda parameters: 200.0,
            meaning="joint training of routers and experts (Theorem 4.5)",
            tick=lambda parameters, step_size: step_size * parameters.m,
        ),
    ),
    check=check,
    read_initial="derivations.pmoe.initial:read",
    plot="derivations.pmoe.picture:draw",
    references="derivations.pmoe.theory:references",
    headlines="derivations.pmoe.headlines:HEADLINES",
    sizes={"d": "d", "k": "k", "l": "l", "m": "m", "n": "n", "p": "p"},
    predict="derivations.pmoe.answers:predict",
    claims="derivations.pmoe.claims:CLAIMS",
    numbered="derivations.pmoe.numbered:STATEMENTS",
    course=course,
    begin=begin,
    beside={"step_size": 0.02, "batch": 100},
)
