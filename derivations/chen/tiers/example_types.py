"""Common terms of tiers p3 and full: the state, sums over example types, and normalised gradients.

An example type is a pair of clusters (k, e), signs, and strengths; p3 has the nodes of three distributions, full has
points.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.chen.tiers.vocabulary import (
    ANY,
    CEN,
    CHANCE_WINS,
    COST,
    FEAT,
    GCEN,
    GFEAT,
    LAYER,
    M_SIZE,
    PI,
    UNITARY,
    E,
    J,
    K,
    L,
    M,
    Q,
    routing,
)
from derivations.contract import Crossing, Initial
from derivations.indexed import nested
from derivations.statement import (
    Base,
    Definition,
    Example,
    Indicator,
    Largest,
    Named,
    Shortcut,
    Step,
    Watched,
    function,
    indices_of,
    sp,
)

OUTPUT, NORM, WEIGH, DRIFT = map(Base, ("f", "norm", "G", "R"))
COHERENT, LOSSES, CORRECT, SHARE = map(Base, ("coherent", "losses", "correct", "share"))
ALONG_FEAT, ALONG_CEN = map(Base, ("R_x", "R_w"))
TOP, CHOSEN, SURE, SURE_CORRECT = map(Base, ("top", "chosen", "sure", "sure_correct"))
SPEED, G_FEAT, G_CEN = map(Base, ("V", "g_feat", "g_cen"))
LOOPS = "derivations.chen.example_loops:"
EXPERT, ROUTER = ("expert", "filter", "feature"), ("expert", "feature")
STATE = (
    Named(FEAT[M, J, K], "alignment of a filter with a feature signal", dims=EXPERT, bounds=ANY, symbol="<w_mj, v_k>"),
    Named(CEN[M, J, K], "alignment of a filter with a cluster centre", dims=EXPERT, bounds=ANY, symbol="<w_mj, c_k>"),
    Named(GCEN[M, K], "alignment of a router with a cluster centre", dims=ROUTER, bounds=ANY, symbol="<theta_m, c_k>"),
    Named(GFEAT[M, K], "alignment of a router with a feature signal", dims=ROUTER, bounds=ANY, symbol="<theta_m, v_k>"),
)
CROSSINGS = (Crossing("T_feat", "feat", 1.0, meaning="first time a filter's alignment reaches 1"),)
START = """rng = np.random.default_rng(0)
start = {"feat": 0.1 * rng.standard_normal((M, J, K)), "cen": 0.1 * rng.standard_normal((M, J, K))}
start |= {"gcen": np.zeros((M, K)), "gfeat": np.zeros((M, K))}"""
AT = "Algorithm 1, equation (3.4), in the mean"
SOURCE = "Definition 3.1, Algorithm 1, equations (3.1) and (3.4), Lemma E.2 (corrected)"


def sigma(z: Any) -> Any:
    """The activation."""
    return function("act")(z)


def slope(z: Any) -> Any:
    """The derivative of the activation."""
    return function("slope")(z)


def along_signal(name: str, rows: Any, strength: Any, node: tuple[Any, ...]) -> list[Definition]:
    """Definitions of the terms of a signal in the outputs (F) and squared gradients (S) of an expert's filters."""
    cluster = indices_of(rows)[-1]
    z = strength * rows
    squares = sp.Sum((strength * slope(z)) ** 2, J)
    return [
        Definition((Base(f"F_{name}")[(M, cluster, *node)],), sp.Sum(sigma(z), J), "output along one signal"),
        Definition((Base(f"S_{name}")[(M, cluster, *node)],), squares, "squared gradient along it"),
    ]


def weigh(types: tuple[Any, ...], chance: Any, label: Any, shortcut: Shortcut) -> list[Definition]:
    """Definitions of weights, losses, dispatch and drifts of example types (k, e, ..) with logits, outputs and norms.

    `shortcut` fills the mean sizes and the arrays after them.
    """
    at, rest = (M, *types), types[1:]
    margin = label * PI[at] * OUTPUT[at]
    weight = chance * CHANCE_WINS[at] * Q["q"](margin) * PI[at] * label
    gathered = sp.Sum(WEIGH[(L, *types)] * OUTPUT[(L, *types)], L)
    right = Indicator(sp.Gt(label * OUTPUT[at], 0))
    coherent = nested(sp.Abs(WEIGH[at]) * sp.sqrt(NORM[at]), *types)
    losses = nested(chance * CHANCE_WINS[at] * COST["cost"](margin), *types)
    correct = nested(chance * CHANCE_WINS[at] * right, *types)
    share = nested(chance * CHANCE_WINS[at], *rest)
    return [
        *routing(types),
        Definition((WEIGH[at],), weight, "weight of a type in the gradient of expert m (Lemma E.2, corrected)"),
        Definition((DRIFT[at],), WEIGH[at] * OUTPUT[at] - PI[at] * gathered, "weight in the router's drift"),
        Definition((COHERENT[M],), coherent, "mean size E|g|", shortcut=shortcut),
        Definition((LOSSES[M],), losses, "loss of the examples that expert m is sent"),
        Definition((CORRECT[M],), correct, "share of examples that expert m is sent and labels correctly"),
        Definition((SHARE[K, M],), share, "share of examples of cluster k sent to expert m"),
    ]


def largest(
    types: tuple[Any, ...], chance: Any, label: Any, logits: Any, outputs: Any, shortcut: Shortcut
) -> list[Definition]:
    """Definitions of the dispatch without routing noise: to the first expert with the largest logit."""
    at, others = (M, *types), (L, *types)
    first = -Largest(sp.Piecewise((-L, sp.Ge(logits[others], TOP[types])), (-M_SIZE, True)), L)
    sent = chance * Indicator(sp.Eq(CHOSEN[types], M))
    right = Indicator(sp.Gt(label * outputs[at], 0))
    return [
        Definition((TOP[types],), Largest(logits[others], L), "largest logit"),
        Definition((CHOSEN[types],), first, "first expert that has it (in code from 0)"),
        Definition(
            (SURE_CORRECT[M],),
            nested(sent * right, *types),
            "share of examples sent there and labelled correctly",
            shortcut=shortcut,
        ),
        Definition((SURE[K, M],), nested(sent, *types[1:]), "share of examples of cluster k sent there"),
    ]


def fills(*pushes: Any) -> tuple[Any, ...]:
    """The arrays after the mean sizes that the loops over types fill, in their order."""
    return (LOSSES[M], CORRECT[M], SHARE[K, M], ALONG_FEAT[M, K], ALONG_CEN[M, K], *pushes)


def speed(squares: Any) -> Definition:
    """Definition of the speed of an expert whose gradient has such a squared norm."""
    note = "one over the Frobenius norm; slower where the gradient is incoherent"
    return Definition((SPEED[M],), UNITARY["per"](sp.Max(sp.sqrt(squares), LAYER * COHERENT[M])), note)


def entropy(share: Any) -> Any:
    """Dispatch entropy: sum over experts of their load times the entropy of their clusters."""
    load = sp.Sum(share[E, M], E)
    return nested(sp.Piecewise((-share[K, M] * sp.log(share[K, M] / load), sp.Gt(share[K, M], 0)), (0, True)), K, M)


def watched() -> tuple[Watched, ...]:
    """Observables beside the state."""
    noisy = "share of examples sent to expert m under routing noise"
    joint = "joint share of cluster k and expert m, with noise"
    accuracy, right = "accuracy without routing noise", sp.Sum(SURE_CORRECT[M], M)
    wide = (0.0, np.inf)
    numbers = [
        Watched(sp.Symbol("entropy"), entropy(SURE), "dispatch entropy without routing noise", (), wide, "entropy"),
        Watched(sp.Symbol("accuracy"), right, accuracy),
        Watched(sp.Symbol("entropy_noisy"), entropy(SHARE), "dispatch entropy under routing noise", (), wide),
        Watched(sp.Symbol("accuracy_noisy"), sp.Sum(CORRECT[M], M), "accuracy under routing noise"),
    ]
    return (
        Watched(Base("load")[M], sp.Sum(SHARE[K, M], K), noisy, dims=("expert",), symbol="Load_m / n"),
        *numbers,
        Watched(Base("dispatch")[K, M], SHARE[K, M], joint, dims=("feature", "expert"), symbol="n_km / n"),
    )


def examples() -> tuple[Step, ...]:
    """Definition of an example, for a reader."""
    y, a, b, eps, c, v, w, z = sp.symbols("y alpha beta epsilon gamma v_k c_k v_e")
    about = (
        "an example of cluster k: its feature with the label's sign, its centre, and another cluster's feature as noise"
    )
    return (Step(sp.Symbol("patches"), function("of")(y * a * v, b * w, eps * c * z), about),)


def symbols() -> dict[str, tuple[str, str]]:
    """The symbols of the arrays along one signal, and of the sums over all types."""
    signals = {"a": ("\\alpha", "α"), "b": ("\\beta", "β"), "c": ("\\gamma", "γ")}
    along = {f"{x}_{n}": (f"{x}^{{{t}}}", f"{x}{u}") for x in "FSG" for n, (t, u) in signals.items()}
    return along | {
        "of": ("", ""),
        "patches": ("\\text{patches}", "patches"),
        "g_feat": ("g^{x}", "gx"),
        "g_cen": ("g^{c}", "gc"),
        "R_x": ("R^{x}", "Rx"),
        "R_w": ("R^{c}", "Rc"),
        "losses": ("\\Lambda", "Λ"),
        "correct": ("a", "a"),
        "share": ("n", "n"),
        "top": ("\\hat h", "ĥ"),
        "chosen": ("\\hat m", "m̂"),
        "sure": ("\\hat n", "n̂"),
        "sure_correct": ("\\hat a", "â"),
    }


def example(more: str, until: float) -> Example:
    """The example of a page, with additional keys of its start."""
    return Example(START + more, "feat", 0.5 if not more else 0.3, until)


def invariants(initial: Initial, state: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Deviations from conserved and bounded quantities of the flow, measured on the saved states.

    `router_sum` is the largest change of sum_m theta_m in the span of the signals, conserved by the softmax (Lemma
    E.1); `loss_increase` the largest increase of the loss between two saved times.
    """
    drift = max(float(np.abs(state[n].sum(axis=1) - state[n][0].sum(axis=0)).max()) for n in ("gcen", "gfeat"))
    rise = float(np.diff(state["loss"]).max(initial=0.0)) if "loss" in state else 0.0
    return {"router_sum": drift, "loss_increase": rise}
