"""Training of only the routers with an output per class: by pairs of classes, each with a separate linear loss.

Equation (6), Algorithm 1 and Appendix M.1 of Chowdhury et al. 2023.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, Labelled, Observables
from derivations.pmoe import router, world
from derivations.pmoe.classes.model import PAIR_LOSS, pair_loss
from derivations.pmoe.parameters import Parameters, require_outputs
from derivations.pmoe.summary import constants, summarise
from derivations.pmoe.tiers.classes import NAMES, PATTERNS
from derivations.pmoe.tiers.parts import ANY, GRAM, PAIR, K, P, S, W, Z, spread
from derivations.pmoe.tiers.router import MEAN_COUNT, ROUTE, VALIDITY
from derivations.statement import Equation, Example, Named, Statement, sp


def statement(p: Parameters, tier: str) -> Statement:
    """dg_s/dt = Gam c_s: every router against its partner, w_i and w_(i+1) for odd i."""
    require_outputs(p, tier)

    default = "np.eye(k, P) / 2 - np.eye(k, P)[np.arange(k) + 1 - 2 * (np.arange(k) % 2)] / 2"
    return Statement(
        tier=tier,
        name=f"pmoe, router, {tier}, several classes",
        title="separate training of the routers by the linear loss, in pairs of classes (1, 2), (3, 4), ...",
        source="Chowdhury et al. 2023, equation (6), Algorithm 1 and Appendix M.1",
        clock="one step of size eta advances t by eta",
        validity=VALIDITY,
        neglects="nothing",
        indices=[((S,), "routers, one per class"), ((Z, W), PATTERNS)],
        sizes={"k": p.k, "P": p.width},
        state=(Named(ROUTE[S, Z], "route value of a pattern", dims=PAIR, bounds=ANY, symbol="<w_s, z>"),),
        constants=(
            Named(K, "routers", 4),
            Named(P, "patterns", 6),
            Named(GRAM[Z, W], "Gram matrix of the patterns", "np.eye(P)"),
            Named(
                MEAN_COUNT[S, Z],
                "mean over the samples of a pair of classes of the copies, negative in those of the other class",
                default,
            ),
        ),
        bind=bind,
        equations=(
            Equation(ROUTE[S, Z], sp.Sum(GRAM[Z, W] * MEAN_COUNT[S, W], W), "equation (6) and Appendix M.1, step 2"),
        ),
        observables=Observables(
            observe=observe,
            constants=constants,
            invariants=lambda initial, state: {"router_sum": spread(pair_sums(state["route"]))},
            summary=summarise,
        ),
        notation=NAMES,
        example=Example('start = {"route": np.zeros((k, P))}', "route", 0.4, 1.0),
    )


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    p, means = initial.parameters, pair_means(initial)
    signed = np.stack([means, -means], axis=1).reshape(-1, p.width)
    return {"k": p.k, "P": p.width, "gram": initial.constants["gram"], "mean_count": signed}


def pair_sums(route: np.ndarray) -> np.ndarray:
    """g_i + g_(i+1) of every pair (..., c/2, P), which is constant in training."""
    return route[..., 0::2, :] + route[..., 1::2, :]


def pair_means(initial: Initial) -> np.ndarray:
    """The label-weighted mean counts (c/2, P) of the training samples of pairs: of a file, of N_r random samples, or
    all.
    """
    c, p = initial.constants, initial.parameters
    if bool(c["given"]):
        return router.pair_means_of(c["counts"], c["label"], c["weight"], p.classes)
    return router.pair_means(p, world.generator(p.data_seed, "router"))


def observe(initial: Initial, state: Mapping[str, np.ndarray]) -> Labelled:
    """The linear loss of every pair, over its population and over its training samples."""
    route, mean = state["route"], pair_means(initial)
    apart = route[:, 0::2] - route[:, 1::2]
    return {
        "router_loss": (("time", "pair"), pair_loss(route), PAIR_LOSS),
        "router_loss_samples": (
            ("time", "pair"),
            -(apart * mean).sum(axis=-1),
            "the linear loss of a pair, -mean of +-<w_i - w_(i+1), sum_j x_j>, over the samples that train it",
        ),
    }
