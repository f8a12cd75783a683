"""Training of only the two routers, which is exact at every level: their loss is linear.

    dg_1/dt = Gam c,  dg_2/dt = -Gam c,  c = E[y counts]

Equation (6), Algorithm 1 and Lemma E.1 of Chowdhury et al. 2023.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, Labelled, Observables
from derivations.pmoe.parameters import Parameters
from derivations.pmoe.summary import constants, summarise
from derivations.pmoe.tiers.parts import ANY, GRAM, NOTATION, PAIR, PAPER, P, W, Z, spread
from derivations.statement import Base, Definition, Equation, Example, Named, Statement, sign, sp

A = sp.Idx("a", 2)
LABEL, ROUTE, MEAN_COUNT = map(Base, ("y", "route", "mean_count"))
VALIDITY = "exact for every batch size, step and number of samples N_r (0: the population)"


def statement(p: Parameters, tier: str) -> Statement:
    """The two routers."""
    rate = LABEL[A] * sp.Sum(GRAM[Z, W] * MEAN_COUNT[W], W)
    return Statement(
        tier=tier,
        name=f"pmoe, router, {tier}",
        title="separate training of the two routers by the linear loss",
        source=f"{PAPER}, equation (6), Algorithm 1 and Lemma E.1",
        clock="one step of size eta advances t by eta",
        validity=VALIDITY,
        neglects="nothing",
        indices=[((A,), "routers, of class +1 and -1"), ((Z, W), "patterns o_1, o_2, q_1, ...")],
        sizes={"P": p.width},
        state=(Named(ROUTE[A, Z], "route value of a pattern", dims=PAIR, bounds=ANY, symbol="<w_s, z>"),),
        constants=(
            Named(P, "patterns", 4),
            Named(GRAM[Z, W], "Gram matrix of the patterns", "np.eye(P)"),
            Named(
                MEAN_COUNT[Z],
                "mean over the samples of label times number of copies",
                "np.eye(P)[0] / 2 - np.eye(P)[1] / 2",
            ),
        ),
        bind=bind,
        definitions=(Definition((LABEL[A],), sign(A), "class of the router"),),
        equations=(Equation(ROUTE[A, Z], rate, "equation (6)"),),
        observables=Observables(
            observe=observe,
            constants=constants,
            invariants=lambda initial, state: {"router_sum": spread(state["route"].sum(axis=1))},
            summary=summarise,
        ),
        notation=NOTATION,
        example=Example('start = {"route": np.zeros((2, P))}', "route", 0.4, 1.0),
    )


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    return {"P": initial.parameters.width, "gram": initial.constants["gram"], "mean_count": sample_mean(initial)}


def observe(initial: Initial, state: Mapping[str, np.ndarray]) -> Labelled:
    """The routers' linear loss -E[y <w_1 - w_2, sum_j x_j>], of the population and on the training samples."""
    route, mean = state["route"], sample_mean(initial)
    apart = route[:, 0] - route[:, 1]
    meaning = "the routers' linear loss -mean of y <w_1 - w_2, sum_j x_j> over the samples that train them"
    return {
        "router_loss": (("time",), (apart[:, 1] - apart[:, 0]) / 2, "the routers' linear loss over the population"),
        "router_loss_samples": (("time",), -(apart * mean).sum(axis=-1), meaning),
    }


def sample_mean(initial: Initial) -> np.ndarray:
    """The label-weighted mean counts of the training samples: of a file, of N_r random samples, or of the
    population.
    """
    from derivations.pmoe import router, world

    c, p = initial.constants, initial.parameters
    if bool(c["given"]):
        return (c["weight"] * c["label"]) @ c["counts"]
    return router.sample_means(p, world.generator(p.data_seed, "router"), 1)[0]
