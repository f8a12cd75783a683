"""The microscopic model of system `chen`, from the paper's set-up alone: data, network, routing, loss, one step.

    f_m(x) = sum_j sum_p sigma(w_mj . x_p)      h = Theta^T sum_p x_p      m = argmax_m (h_m + r_m), r ~ Unif[0, 1]
    F(x) = pi_m(x) f_m(x), pi = softmax(h)       loss = mean of log(1 + exp(-y F))

Experts move by normalised descent, routers by plain descent. The variant `released` is the protocol behind the paper's
tables: inputs times ten, filters with biases in two logits, the noisy winning logit in the place of pi, and a softmax
before the cross-entropy. This module contains no routing probabilities and no order parameters. Source: Chen et al.
2022, Definition 3.1, equations (3.1) to (3.4), Algorithm 1 and Appendix A.2.
"""

import math
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from derivations.alphabet.patterns import Examples, PatternModel, Plan, Weights
from derivations.alphabet.sizes import Sizes
from derivations.chen.initial import draw_entries
from derivations.chen.parameters import ACTIVATIONS, Parameters
from derivations.contract import Initial, Labelled

erf = np.vectorize(math.erf)  # bound to the compiled or traced function of the array library

RELEASED_INPUT = 10.0
"""The released code multiplies its inputs by ten."""
WORSE, FLOOR = 0.02, 0.314
"""The released code stops if its loss exceeds the best by the first number, or is below the second."""


class Numbers(NamedTuple):
    """The run-time arguments: sizes, the activation and its power, whether rules are those of the released code, the
    weight of its balance, signs of the filters (J,), rho, the norms that descent is divided by, the strengths' laws.
    """

    M: int
    J: int
    K: int
    kind: int
    power: float
    released: int
    balance: float
    signs: Any
    rho: float
    normalised: int
    law: int
    alpha: Any
    beta: Any
    gamma: Any
    scale: float


def activation(z, kind, power):
    """(sigma(z), sigma'(z)) of the activation with number `kind` in `parameters.ACTIVATIONS`."""
    if kind == 0:
        return z * z * z, 3.0 * z * z
    if kind == 1:
        return 1.0 * z, 1.0 + 0.0 * z
    if kind == 2:
        return np.where(z > 0, z, 0.0), np.where(z > 0, 1.0, np.where(z < 0, 0.0, 0.5))
    if kind == 3:
        below = np.exp(np.where(z < 0, z, 0.0))
        return np.where(z > 0, z, below - 1.0), np.where(z > 0, 1.0, below)
    if kind == 4:
        half = 0.5 * (1.0 + erf(z / math.sqrt(2.0)))
        return z * half, half + z * np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    if kind == 5:
        s = 1.0 / (1.0 + np.exp(-z))
        return z * s, s * (1.0 + z * (1.0 - s))
    if kind == 6:
        t = np.tanh(z)
        return t, 1.0 - t * t
    size = np.abs(z)
    return np.sign(z) * size**power, power * size ** (power - 1.0)


def strength(uniform, law, points):
    """A signal strength from a uniform number: on [low, high] (law 0), or one of equally likely points."""
    if law == 0:
        return points[0] + (points[-1] - points[0]) * uniform
    return points[(uniform * points.size).astype(np.int64)]


def draw(uniform, given):
    """One example from seven uniform numbers: feature, centre and feature noise as atoms of [v, c] with amplitudes.

    Cluster k and another feature k' are uniform, y and eps are signs: patches y alpha v_k, beta c_k, eps gamma v_k'.
    """
    K, law, alpha, beta, gamma, scale = given.K, given.law, given.alpha, given.beta, given.gamma, given.scale
    k = (uniform[0] * K).astype(np.int64)
    other = (k + 1 + (uniform[1] * (K - 1)).astype(np.int64)) % K
    y = np.where(uniform[2] < 0.5, -1.0, 1.0)
    eps = np.where(uniform[3] < 0.5, -1.0, 1.0)
    amplitudes = np.stack((
        scale * y * strength(uniform[4], law, alpha),
        scale * strength(uniform[5], law, beta),
        scale * eps * strength(uniform[6], law, gamma),
    ))  # fmt: skip
    return np.stack((k, K + k, other)), amplitudes, y, k


def dispatch(logits, noise, given):
    """The expert with the largest noisy logit."""
    return np.argmax(logits + noise, axis=0)


def coefficients(expert, fields, logits, noise, labels, share, given):
    """Minus the gradient of the loss through the chosen expert's output; the choice is constant.

    `np.multiply` and `np.subtract` are products and differences along the examples, which `odesim.sgd.light` compiles.
    """
    M, kind, power = given.M, given.kind, given.power
    released, balance, signs = given.released, given.balance, given.signs
    value, slope = activation(fields, kind, power)
    f = (signs.reshape(-1, 1) * value.sum(1)).sum(0)
    mine = np.where(np.arange(M).reshape(-1, 1) == expert, 1.0, 0.0)
    spread = balance * M * share.reshape(-1, 1)
    if released == 1:
        gate = (mine * (logits + noise)).sum(0)
        margin = labels * gate * f
        t = np.tanh(0.5 * margin)
        q = 0.5 * (1.0 - t * t) / (1.0 + np.exp(t))
        routers = q * labels * f * mine - spread
    else:
        ratio = np.exp(np.subtract(logits, (mine * logits).sum(0)))
        gate = 1.0 / ratio.sum(0)
        margin = labels * gate * f
        q = 1.0 / (1.0 + np.exp(margin))
        routers = np.multiply(mine - np.multiply(ratio, gate), q * labels * gate * f) - spread
    filters = np.multiply(slope, q * gate * labels)
    if released == 1:
        filters = signs.reshape(-1, 1, 1) * filters
    return filters, routers, margin


def losses(margin, given):
    """log(1 + e^-u) for the margin u = y F; the released code's second softmax makes it log(1 + exp(-tanh(u/2)))."""
    u = np.tanh(0.5 * margin) if given.released == 1 else margin
    return np.log(1.0 + np.exp(-np.abs(u))) + np.where(u < 0, -u, 0.0)


def rates(weights, bias, given):
    """1/|G_m| for the filters and for the biases of the experts (0 for a zero gradient); and rho.

    The released code adds the norms of weights and biases; `normalised` is 0 for plain descent, 1 for one norm of an
    expert, 2 for one of each tensor.
    """
    released, rho, normalised = given.released, given.rho, given.normalised
    one = np.sqrt(weights)
    if normalised == 0:
        return 1.0 + 0.0 * one, 1.0 + 0.0 * one, rho
    other = np.sqrt(bias)
    if normalised == 1:
        one = one + other if released == 1 else one
        other = one
    first = np.where(one > 0, 1.0, 0.0) / np.where(one > 0, one, 1.0)
    return first, np.where(other > 0, 1.0, 0.0) / np.where(other > 0, other, 1.0), rho


def halt(loss, best, given):
    """The released code's stopping rule, tested unless the loss is a new minimum: much above the best, or low
    enough.
    """
    return (loss > best) & ((loss > best + WORSE) | (loss <= FLOOR))


def numbers(parameters: Parameters) -> tuple[Any, ...]:
    """Run-time arguments of the functions above, in their order."""
    p = parameters
    released = int(p.variant == "released")
    signs = np.where(np.arange(p.J) < p.J // 2, -1.0, 1.0) if released else np.ones(p.J)
    laws = (np.array(p.alpha, float), np.array(p.beta, float), np.array(p.gamma, float))
    head = (p.M, p.J, p.K, ACTIVATIONS.index(p.activation), float(p.power), released, float(p.balance), signs)
    normalised = int(p.normalise) * (1 + int(p.normaliser == "tensor"))
    return (Numbers(*head, float(p.rho), normalised, int(p.laws == "points"), *laws, input_scale(p)),)


def input_scale(parameters: Parameters) -> float:
    """Factor of the inputs."""
    return RELEASED_INPUT if parameters.variant == "released" else 1.0


def noisy(parameters: Parameters) -> tuple[int, float]:
    """P - 3 noise patches N(0, sigma_p^2/d I)."""
    return parameters.P - 3, input_scale(parameters) * parameters.sigma_p / math.sqrt(parameters.d)


def place(
    initial: Initial, arrays: Mapping[str, np.ndarray] | None, rng: np.random.Generator, compressed: bool
) -> Weights:
    """The weights at the start: those of a file, or random ones with the overlaps of `initial`."""
    p, s = initial.parameters, initial.state
    inside = np.concatenate([s["feat"], s["cen"]], axis=-1)
    routers = np.concatenate([s["gfeat"], s["gcen"]], axis=-1)
    bias = np.zeros((p.M, p.J))
    if arrays is None and p.variant == "released":
        bias = draw_entries(p, rng, (p.M, p.J))
    elif arrays is not None and "bias" in arrays:
        bias = np.array(arrays["bias"], float)
    if compressed:
        return Weights(inside, bias, routers, np.eye(2 * p.K))
    if arrays is not None:
        frame = np.vstack([np.asarray(arrays["V"], float), np.asarray(arrays["C"], float)])
        filters, theta = (np.array(arrays[name], float) for name in ("W", "Theta"))
        return Weights(filters, bias, np.ascontiguousarray(theta.T), frame)
    beyond = p.d - 2 * p.K
    if "rest" in s:  # drawn with the flow's initial condition, in a basis of its span
        rest = np.pad(s["rest"], ((0, 0), (0, beyond - s["rest"].shape[1])))
        own, other = rest[: p.M * p.J].reshape(p.M, p.J, beyond), rest[p.M * p.J :]
        filters = np.concatenate([inside, own], axis=-1)
        return Weights(filters, bias, np.concatenate([routers, other], axis=-1), np.eye(2 * p.K, p.d))
    rest = np.zeros((p.M, p.J, beyond)) if p.init == "specialised" else draw_entries(p, rng, (p.M, p.J, beyond))
    filters = np.concatenate([inside, rest], axis=-1)
    return Weights(filters, bias, np.pad(routers, ((0, 0), (0, beyond))), np.eye(2 * p.K, p.d))


def given(parameters: Parameters, arrays: Mapping[str, np.ndarray] | None) -> Examples | None:
    """The training set of a file, all patches dense, with the clusters of the file.

    Without the array `cluster` the cluster of an example is that of its largest centre component. This is wrong if a
    noise patch has a larger component than the centre.
    """
    if arrays is None or "X" not in arrays:
        return None
    x = input_scale(parameters) * np.asarray(arrays["X"], float)
    if "cluster" in arrays:
        cluster = np.asarray(arrays["cluster"]).astype(np.int64)
    else:
        cluster = np.abs(x @ np.asarray(arrays["C"], float).T).max(axis=1).argmax(axis=1)
    none = np.zeros((0, len(x)))
    return Examples(none.astype(np.int64), none, x, np.asarray(arrays["y"], float), cluster)


def compressible(parameters: Parameters) -> str:
    """Empty for P = 3; otherwise the reason why the coordinates of the signals do not close."""
    if parameters.P == 3:
        return ""
    many = parameters.P - 3
    patches = f"{many} noise patch{'es' if many > 1 else ''}"
    return (
        f"P = {parameters.P} gives every example {patches} drawn separately in d dimensions, so the overlaps with the "
        "2 K signals are not a closed state; use --method explicit, or -p P=3"
    )


def conflict(parameters: Parameters, explicit: Collection[str], arrays: Mapping[str, Any], batch: int) -> str:
    """Empty, or the contradiction between the training set and the request."""
    p = parameters
    if p.data == "online" and "X" in arrays:
        return "-p data=online draws fresh examples, but the initial file contains a training set X, y"
    if p.data == "fixed" and p.n and batch > p.n:
        return (
            f"--batch {batch} is more than the n = {p.n} examples of the fixed training set: give --batch {p.n} for "
            "full batches, or -p data=online for fresh examples"
        )
    return ""


def plan(parameters: Parameters) -> Plan:
    """Return the training and test data of a run; filters have biases in the released protocol."""
    p = parameters
    return Plan(
        clusters=p.K, seed=p.data_seed, tests=p.n_test, fresh=p.data == "online", count=p.n, own=p.sets == "own",
        noise=p.noise, stops=p.early_stop, biased=p.variant == "released",
    )  # fmt: skip


def sizes(initial: Initial) -> Sizes:
    """Return the sizes of a run: M experts of J filters, 2 K signals in d dimensions, P patches."""
    p = initial.parameters
    return Sizes(experts=p.M, neurons=p.J, outputs=1, frame=2 * p.K, width=p.d, patches=p.P)


SCALARS = {
    "entropy": "dispatch entropy on the test examples without routing noise",
    "accuracy": "test accuracy without routing noise",
    "entropy_noisy": "dispatch entropy on the test examples under routing noise",
    "accuracy_noisy": "test accuracy under routing noise",
    "train_loss": "loss on the training examples (the test examples for fresh data) without routing noise",
    "train_accuracy": "accuracy on the training examples without routing noise",
    "train_entropy": "dispatch entropy on the training examples without routing noise",
}


def observe(parameters: Parameters, saved: np.ndarray) -> Labelled:
    """The overlaps, dispatch and scalars from the saved vectors (..., size), and residual norms if they are stored."""
    p = parameters
    parts: dict[str, Any] = {}
    rest = (
        ("rest_filter", (p.M, p.J), ("expert", "filter"), "length of a filter outside the signals"),
        ("rest_router", (p.M,), ("expert",), "length of a router outside the signals"),
    )
    weights = 2 * p.M * (p.J + 1) * p.K
    followed = saved.shape[-1] > weights + p.K * p.M + len(SCALARS)
    along = saved[..., :weights].reshape(*saved.shape[:-1], -1, 2 * p.K)  # filters, then routers
    filters = along[..., : p.M * p.J, :].reshape(*saved.shape[:-1], p.M, p.J, 2 * p.K)
    routers = along[..., p.M * p.J :, :]
    one, all_of = ("expert", "feature"), ("expert", "filter", "feature")
    parts["feat"] = (all_of, filters[..., : p.K], "alignment of a filter with a feature signal")
    parts["cen"] = (all_of, filters[..., p.K :], "alignment of a filter with a cluster centre")
    parts["gcen"] = (one, routers[..., p.K :], "alignment of a router with a cluster centre")
    parts["gfeat"] = (one, routers[..., : p.K], "alignment of a router with a feature signal")
    at = weights
    for name, shape, dims, meaning in (
        (
            "dispatch",
            (p.K, p.M),
            ("feature", "expert"),
            "joint share of cluster k and expert m among test examples, with noise",
        ),
        *((name, (), (), meaning) for name, meaning in SCALARS.items()),
        *(rest if followed else ()),
    ):
        count = math.prod(shape)
        parts[name] = (dims, saved[..., at : at + count].reshape(*saved.shape[:-1], *shape), meaning)
        at += count
    load = parts["dispatch"][1].sum(axis=-2)
    parts["load"] = (("expert",), load, "share of test examples sent to expert m under routing noise")
    return parts


MODEL = PatternModel(
    module="derivations.chen.model",
    helpers=("activation", "strength"),
    uniforms=7,
    numbers=numbers,
    noisy=noisy,
    place=place,
    given=given,
    compressible=compressible,
    plan=plan,
    sizes=sizes,
    conflict=conflict,
    observe=observe,
    counting="derivations.chen.counting:COUNTING",
    costly_loss=lambda parameters: True,
)
