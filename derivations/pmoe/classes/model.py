"""The microscopic truth of system `pmoe` with an output per class, written from the paper's set-up.

    f_i(x) = sum_s sum_r (a_{r,s,i}/l) sum_{j in J_s} ReLU(<w_{r,s}, x^(j)>) G_{j,s},   i = 1..c

with the loss log(sum_i e^(f_i)/e^(f_y)), whose gradient in f_i is softmax_i - 1(i = y); gates, routing and labels are
those of `derivations.pmoe.model`, except that y = 1..c. In separate training k = c, and w_i, w_(i+1), i odd, are
trained on the samples of classes i and i + 1 by the linear loss of two classes. Source: Chowdhury et al. 2023,
equations (23) to (25) and Appendix M (r runs to m/k in (23)).

The functions above `draw` use `np` with elementwise operations, products and sums only: NumPy and JAX run one source.
"""

import dataclasses
from typing import Any

import numpy as np

from derivations.alphabet.experts import respond, softmax_on, top_l
from derivations.alphabet.frame import FrameModel
from derivations.contract import Initial, Labelled
from derivations.pmoe import model
from derivations.pmoe.model import GATES, activate, gates, law, of_parameters
from derivations.pmoe.parameters import Parameters, settle

__all__ = ["EXPERTS", "JOINT", "ROUTER", "activate", "gates", "softmax_on", "top_l"]


def pushes(outputs, labels):
    """1(i = y) - softmax_i (c, B), minus the gradient of the loss in the outputs; the smallest f_y - f_j; and the loss.

    All by differences from f_y, against cancellation at a small loss.
    """
    own = np.arange(outputs.shape[0])[:, None] + 1 == labels
    mine = np.where(own, outputs, 0.0).sum(0)
    behind = np.where(own, -np.inf, outputs - mine).max(0)
    top = np.where(behind > 0, behind, 0.0)
    raised = np.where(own, 0.0, np.exp(np.where(own, 0.0, outputs - mine - top)))
    rest = raised.sum(0)
    total = rest + np.exp(-top)
    return np.where(own, rest, -raised) / total, -behind, top + np.log1p(rest + np.expm1(-top))


def weigh_joint(route, response, counts, labels, l, gate):  # noqa: E741
    """Minus the gradient of the softmax loss for every output of the experts (k, c, S, B) and for routers (k, S, B)."""
    share = gates(route, top_l(route, counts, l), l, gate)
    mean = (share[:, None] * response).sum(2, keepdims=True)
    push, margin, _ = pushes(mean.sum(0)[:, 0] / l, labels)
    experts = push[:, None] / l * share[:, None]
    moves = 1.0 if gate == 1 else 0.0
    return experts, moves * (experts * (response - mean)).sum(1), margin


def weigh_experts(route, response, counts, labels, l, gate):  # noqa: E741
    """Minus the gradient with constant routers."""
    experts, routers, margin = weigh_joint(route, response, counts, labels, l, gate)
    return experts, 0.0 * routers, margin


def weigh_pairs(route, response, counts, labels, l, gate):  # noqa: E741
    """Minus the gradient of the mean over the samples of a pair of classes of -+<w_i - w_(i+1), sum_j x_j>, i odd.

    Every pair averages over samples of its classes in the batch, and does not move if there are none.
    """
    first = 2 * np.arange(route.shape[0] // 2)[:, None] + 1
    sign = np.where(labels == first, 1.0, np.where(labels == first + 1, -1.0, 0.0))
    members = np.abs(sign).sum(1, keepdims=True)
    pull = (sign * labels.shape[0] / np.where(members > 0, members, 1.0))[:, None] * counts
    routers = np.stack((pull, -pull), axis=1).reshape((route.shape[0], *pull.shape[1:]))
    return 0.0 * response * counts, routers, (routers * route).sum(0).sum(0)


def draw(uniform, cumulative, classes):
    """Samples from n uniform numbers each: a class by the first, then an irrelevant pattern from each of the others.

    `cumulative` (n - 1, p): the distribution function of each of these patches over q_1..q_p; `classes` (blocks, 2):
    the lowest class of a block of n rows, and the number of its classes. The samples of all blocks follow each other.
    """
    n, blocks = cumulative.shape[0] + 1, classes.shape[0]
    uniform = uniform.reshape(blocks, n, -1)
    own = classes[:, :1] + np.minimum(np.floor(uniform[:, 0] * classes[:, 1:]), classes[:, 1:] - 1)
    first = own.reshape(1, -1)
    rest = np.transpose(uniform[:, 1:], (1, 0, 2)).reshape(n - 1, first.shape[1])
    count = (classes[:, 0] + classes[:, 1]).max()
    others = count + (rest[:, None, :] >= cumulative[:, :, None]).sum(1)
    tokens = np.concatenate((first, others), axis=0).astype(int)
    return tokens, np.ones(tokens.shape), first[0] + 1.0


def law_of_all(parameters: Parameters) -> tuple[Any, ...]:
    """Fresh samples of all classes."""
    return *law(parameters), np.array([[0.0, parameters.classes]])


def law_of_pairs(parameters: Parameters) -> tuple[Any, ...]:
    """Fresh samples of every pair of classes, for each pair as many as a batch has."""
    pairs = parameters.classes // 2
    return *law(parameters), np.stack([2.0 * np.arange(pairs), np.full(pairs, 2.0)], axis=1)


SCALARS = {
    "loss": "population loss of the current weights (pattern centres)",
    "error": "P(f_y <= f_j for some j) of the population",
}
SHARE = "mean of v = 1 - softmax_y in a class"


def measure(initial: Initial, pre: np.ndarray, route: np.ndarray) -> np.ndarray:
    """Return the saved variables: pre, response, route, and means over the compositions of the population or file."""
    p, c = initial.parameters, initial.constants
    phi = respond(c["out"], activate(pre)[0])
    share = gates(route[..., None], top_l(route[..., None], c["counts"].T, p.l), p.l, GATES.get(p.gate, 0))
    outputs = np.einsum("szb,siz->ib", share, phi) / p.l
    push, ahead, loss = pushes(outputs, c["label"])
    own = np.arange(p.classes)[:, None] + 1 == c["label"]
    weight = c["weight"]
    values = (own * push) @ weight / np.maximum(own @ weight, 1e-300)
    scalars = [weight @ loss, weight @ (ahead <= 0), *values]
    return np.concatenate([pre.reshape(-1), phi.reshape(-1), route.reshape(-1), scalars])


def observe(parameters: Parameters, saved: np.ndarray) -> Labelled:
    """Pre-activations, responses, route values and scalars from the saved vectors (..., size)."""
    p = settle(parameters) if parameters.k == 0 else parameters
    at, found = 0, {}
    for name, shape, dims, meaning in (
        ("pre", (p.k, p.m // p.k, p.width), ("expert", "neuron", "pattern"), "pre-activation of a neuron on a pattern"),
        ("response", (p.k, p.classes, p.width), ("expert", "class", "pattern"), "an expert's response for a class"),
        ("route", (p.k, p.width), ("expert", "pattern"), "route value of a pattern"),
        *((name, (), (), meaning) for name, meaning in SCALARS.items()),
        ("v", (p.classes,), ("class",), SHARE),
    ):
        count = int(np.prod(shape))
        found[name] = (dims, saved[..., at : at + count].reshape(*saved.shape[:-1], *shape), meaning)
        at += count
    return found


PAIR_LOSS = "the linear loss -E[+-<w_i - w_(i+1), sum_j x_j>] of the two routers of a pair of classes"


def pair_loss(route: np.ndarray) -> np.ndarray:
    """The linear losses (..., c/2) of route values (..., c, P) over the population of each pair of classes.

    Source: Chowdhury et al. 2023, equation (6) and Appendix M.1; irrelevant patches have the same distribution in all
    classes.
    """
    apart = route[..., 0::2, :] - route[..., 1::2, :]
    pair = np.arange(apart.shape[-2])
    return -(apart[..., pair, 2 * pair] - apart[..., pair, 2 * pair + 1]) / 2


def observe_routers(parameters: Parameters, saved: np.ndarray) -> Labelled:
    """Only the route values, with their losses, because the experts do not exist yet."""
    found = observe(parameters, saved)["route"]
    return {"route": found, "router_loss": (("pair",), pair_loss(found[1]), PAIR_LOSS)}


def _model(own: FrameModel, **different: Any) -> FrameModel:
    common: dict[str, Any] = {
        "module": "derivations.pmoe.classes.model",
        "helpers": ("softmax_on", "top_l", "gates", "pushes", "weigh_joint"),
        "loops": None,
        "law": of_parameters(law_of_all),
        "measure": measure,
        "observe": observe,
    }
    return dataclasses.replace(own, **{**common, **different})


EXPERTS = _model(model.EXPERTS)
JOINT = _model(model.JOINT)
ROUTER = _model(
    model.ROUTER,
    weigh="weigh_pairs",
    uniforms=of_parameters(lambda p: p.n * (p.classes // 2)),
    law=of_parameters(law_of_pairs),
    sizes=lambda initial: dataclasses.replace(model.sizes(initial), blocks=initial.parameters.classes // 2),
    observe=observe_routers,
)
