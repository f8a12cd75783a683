"""Soft-routed sigmoid mixture of experts, teacher-student, population gradient flow (Liao & Kyrillidis 2026)."""

from derivations.contract import Dynamics, Map, Source, System
from derivations.liao.parameters import Parameters, check

SOURCE = Source(
    authors="Liao & Kyrillidis",
    title="Guided by the Experts: Provable Feature Learning Dynamic of Soft-Routed Mixture-of-Experts",
    venue="AISTATS 2026, PMLR 300",
    year=2026,
    bibtex="""@inproceedings{liao2026guided,
  title     = {Guided by the Experts: Provable Feature Learning Dynamic of Soft-Routed Mixture-of-Experts},
  author    = {Liao, Fangshuo and Kyrillidis, Anastasios},
  booktitle = {Proceedings of the International Conference on Artificial Intelligence and Statistics (AISTATS)},
  series    = {PMLR},
  volume    = {300},
  year      = {2026},
}""",
)

CLOCK = "time t of the gradient flow; one SGD step advances it by the step size"

SYSTEM = System(
    name="liao",
    title="Soft-routed sigmoid mixture of experts, teacher-student, population gradient flow",
    source=SOURCE,
    parameters=Parameters,
    presets={
        "paper": {"m": 25, "m_star": 5, "d": 1000, "init": "random"},
        "orthogonal": {"m": 25, "m_star": 5, "d": 1000, "init": "orthogonal"},
        "pair": {"m": 2, "m_star": 1, "d": 1000, "init": "random"},
    },
    stages=(
        Dynamics(
            name="train",
            tiers=("exact", "cascade", "riccati", "riccati_paper", "linear"),
            equations="derivations.liao.tiers:equations",
            statement="derivations.liao.tiers:statement",
            enter="derivations.liao.initial:enter",
            model="derivations.liao.model:MODEL",
            clock=CLOCK,
            horizon=lambda parameters: 90.0,
            meaning="gradient flow of all experts and routers on the population loss (Theorem 1)",
        ),
        Map(
            name="prune",
            tiers=("exact",),
            equations="derivations.liao.tiers:equations",
            statement="derivations.liao.tiers.prune:statement",
            enter="derivations.liao.initial:enter",
            apply="derivations.liao.pruning:apply",
            meaning="greedy removal of experts while the loss falls (Theorem 2)",
        ),
        Dynamics(
            name="tune",
            tiers=("exact", "linear"),
            equations="derivations.liao.tiers:equations",
            statement="derivations.liao.tiers:statement",
            enter="derivations.liao.initial:enter",
            model="derivations.liao.model:MODEL",
            clock=CLOCK,
            horizon=lambda parameters: 60.0,
            meaning="gradient flow of the experts that pruning kept (Theorems 3 and 4)",
        ),
    ),
    check=check,
    read_initial="derivations.liao.initial:read",
    plot="derivations.liao.picture:draw",
    references="derivations.liao.theory:references",
    headlines="derivations.liao.headlines:HEADLINES",
    sizes={"d": "d", "m": "m", "m_star": "m*"},
    claims="derivations.liao.claims:CLAIMS",
    numbered="derivations.liao.numbered:STATEMENTS",
    beside={"m": 2, "m_star": 1, "d": 100, "step_size": 0.01, "batch": 4000, "until": 20.0},
)
