"""Expert-choice mixture on token patterns: fine-tuned, scored by router-norm change, pruned (Chowdhury et al. 2024)."""

from collections.abc import Callable

from derivations.contract import Dynamics, Map, Source, System
from derivations.pruning.parameters import TIERS, Parameters, check, stepped

SOURCE = Source(
    authors="Chowdhury, Wang, El Maghraoui, Wang, Chen & Carothers",
    title="A Provably Effective Method for Pruning Experts in Fine-tuned Sparse Mixture-of-Experts",
    venue="ICML 2024, PMLR 235",
    year=2024,
    bibtex="""@inproceedings{chowdhury2024provably,
  title     = {A Provably Effective Method for Pruning Experts in Fine-tuned Sparse Mixture-of-Experts},
  author    = {Chowdhury, Mohammed Nowaz Rabbani and Wang, Meng and El Maghraoui, Kaoutar and Wang, Naigang and
               Chen, Pin-Yu and Carothers, Christopher},
  booktitle = {Proceedings of the 41st International Conference on Machine Learning (ICML)},
  series    = {PMLR},
  volume    = {235},
  year      = {2024},
}""",
)

POPULATION = "derivations.pruning.population:equations"
ENTER = "derivations.pruning.initial:enter"
STATES = ("recursion", "flow")


def train(name: str, tiers: tuple[str, ...], horizon: Callable[[Parameters], float], meaning: str) -> Dynamics:
    """A stage of SGD steps."""
    return Dynamics(
        name=name,
        tiers=tiers,
        equations=POPULATION,
        statement=f"derivations.pruning.tier_statements:{name.replace('-', '_')}",
        enter=ENTER,
        model="derivations.pruning.model:MODEL",
        clock="number of SGD steps; rates per step are in the right-hand side",
        horizon=horizon,
        meaning=meaning,
        tick=lambda parameters, step_size: 1.0,
        stepped=stepped,
        decades=True,
    )


def once(name: str, meaning: str) -> Map:
    """A stage without a clock."""
    return Map(
        name=name,
        tiers=STATES,
        equations=POPULATION,
        enter=ENTER,
        apply=f"derivations.pruning.stages:{name}",
        meaning=meaning,
    )


SYSTEM = System(
    name="pruning",
    title="Expert-choice mixture on token patterns: fine-tuning, router-norm change, provable expert pruning",
    source=SOURCE,
    parameters=Parameters,
    presets={
        "theory-small": {},
        "theory-sgd": {"eta_e": 2.0},
        "paper-synthetic": {
            "data": "iid", "d": 200, "n": 100, "k": 20, "l": 5, "m": 20, "init": "random", "eta_r": 0.01,
            "eta_e": 0.05, "T": 300.0, "n_test": 1000,
        },
        "iid-moderate": {
            "data": "iid", "d": 60, "n": 30, "k": 14, "l": 4, "m": 10, "init": "random", "router_std": 0.3,
            "neuron_std": 0.1, "eta_r": 0.01, "eta_e": 0.05, "T": 200.0,
        },
        "gpu-large": {
            "data": "distinct", "d": 2000, "n": 10, "k": 44, "l": 8, "m": 128, "eta_e": 0.5, "eta_r": 0.01, "T": 2000.0,
            "keep_u": False,
        },
    },
    stages=(
        train("tune", TIERS, lambda p: p.horizon, "fine-tuning of routers and neurons (Algorithm 1, steps 1 and 2)"),
        once("score", "every score of every expert, and the error after pruning by it"),
        once("prune", "the best experts of each sign are kept (Algorithm 1, step 3)"),
        train("post-tune", STATES, lambda p: p.post_horizon, "fine-tuning of the kept experts (Algorithm 1, step 4)"),
        once("evaluate", "test error, margins and proficiencies"),
    ),
    check=check,
    read_initial="derivations.pruning.initial:read",
    plot="derivations.pruning.picture:draw",
    references="derivations.pruning.theory:references",
    headlines="derivations.pruning.headlines:HEADLINES",
    sizes={"d": "d", "k": "k", "l": "l", "m": "m", "n": "n"},
    predict="derivations.pruning.answers:predict",
    claims="derivations.pruning.claims:CLAIMS",
    numbered="derivations.pruning.numbered:STATEMENTS",
    beside={"step_size": 20.0, "batch": 951475},
)  # fmt: skip
