"""The microscopic model of system `kawata`, from the paper's set-up alone: clusters, tasks, experts, one SGD step.

    c uniform, x = rho v_c + z, z ~ N(0, I_d),  y = f_c(w*_c . x) + s_c g(w*_g . x) + zeta N(0, 1)
    f_m(x) = (1/J) sum_j a_mj sigma(w_mj . x + b_mj),  loss -y F(x)

Phase I routes a sample to one uniformly random expert with softmax weight 1/M; Phase III to every expert whose gate
theta_m . x is not negative, with weight one.  A step moves w on the sphere: w + step (I - w w^T) g, normalised.
Vectors: the neurons; then w*_1..w*_C, w*_g, v_1..v_C, and in Phase III the gates.  Source: Kawata et al. 2025,
Sections 3.1 and 3.2, Algorithm 1.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from derivations.contract import Initial, Labelled, Model
from derivations.kawata.initial import expert_of, full_gram, split
from derivations.kawata.parameters import ACTIVATIONS, Parameters, count, links, weights_of_global

erf = np.vectorize(math.erf)  # bound to the compiled or traced function of the array library
FAIR, GATED, PERFECT = 0, 1, 2
"""Routing of a sample: to one expert at random, to experts with a nonnegative gate, or to those of its cluster."""


class Numbers(NamedTuple):
    """The run-time arguments except for a, b, sigma of the neurons: sizes, rho, zeta, kinds of activation and routing,
    the edges of the clusters, experts and their selector, the scale of a gradient, the links with the weights s.
    """

    N: int
    C: int
    M: int
    rho: float
    zeta: float
    kind: int
    gated: int
    low: Any
    high: Any
    expert: Any
    selector: Any
    scale: float
    links: Any
    s: Any


def column(values, like):
    """A vector as a column for a batch, and unchanged for a single sample."""
    if like.ndim == 1:
        return values
    return values.reshape((-1, 1))


def evaluate(u, series):
    """sum_i series_i He_i(u), by the recurrence He_i = u He_{i-1} - (i - 1) He_{i-2}."""
    below = 0.0 * u
    value = 1.0 + 0.0 * u
    total = series[0] * value
    for i in range(1, len(series)):
        above = u * value - (i - 1.0) * below
        below = value
        value = above
        total = total + series[i] * value
    return total


def slope(t, sigma, kind):
    """sigma'(t); kinds: 0 relu, 1 polynomial with coefficients `sigma` (rows, degrees), 2 erf, 3 exp, 4 cos, 5 Phi."""
    if kind == 0:
        return 1.0 * (t > 0.0)
    if kind == 1:
        below = 0.0 * t
        value = 1.0 + 0.0 * t
        total = 0.0 * t
        for i in range(1, sigma.shape[1]):
            total = total + math.sqrt(i * 1.0) * column(sigma[:, i].copy(), t) * value
            above = (t * value - math.sqrt(i - 1.0) * below) / math.sqrt(i * 1.0)
            below = value
            value = above
        return total
    if kind == 2:
        return math.sqrt(2.0 / math.pi) * np.exp(-0.5 * t * t)
    if kind == 3:
        return np.exp(t)
    if kind == 4:
        return -np.sin(t)
    return np.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)


def slope_of_one(t, series, kind):
    """`slope` of one neuron at a number t, without temporary arrays; `series` (degrees,) are its coefficients."""
    if kind == 0:
        return 1.0 if t > 0.0 else 0.0
    if kind == 1:
        below = 0.0
        value = 1.0
        total = 0.0
        for i in range(1, series.size):
            total = total + math.sqrt(i * 1.0) * series[i] * value
            above = (t * value - math.sqrt(i - 1.0) * below) / math.sqrt(i * 1.0)
            below = value
            value = above
        return total
    if kind == 2:
        return math.sqrt(2.0 / math.pi) * math.exp(-0.5 * t * t)
    if kind == 3:
        return math.exp(t)
    if kind == 4:
        return -math.sin(t)
    return math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)


def activation(t, sigma, kind):
    """sigma(t), kinds as in `slope`."""
    if kind == 0:
        return t * (t > 0.0)
    if kind == 1:
        below = 0.0 * t
        value = 1.0 + 0.0 * t
        total = column(sigma[:, 0].copy(), t) * value
        for i in range(1, sigma.shape[1]):
            above = (t * value - math.sqrt(i - 1.0) * below) / math.sqrt(i * 1.0)
            below = value
            value = above
            total = total + column(sigma[:, i].copy(), t) * value
        return total
    if kind == 2:
        return erf(t / math.sqrt(2.0))
    if kind == 3:
        return np.exp(t)
    if kind == 4:
        return np.cos(t)
    return 0.5 + 0.5 * erf(t / math.sqrt(2.0))


def draw(uniform, normal, p, a, b, sigma):
    """Labels (C + 2, ...): the cluster (one of C is 1), the number that selects the expert, the label noise."""
    C, zeta, low, high = p.C, p.zeta, p.low, p.high
    if uniform.ndim == 1:  # one sample: the same by a loop, without temporary arrays
        labels = np.zeros(C + 2)
        labels[min(int(uniform[0] * C), C - 1)] = 1.0
        labels[C] = uniform[1]
        labels[C + 1] = zeta * normal[0]
        return labels
    cluster = uniform[:1]
    mine = 1.0 * ((cluster >= column(low, uniform)) & (cluster < column(high, uniform)))
    return np.concatenate((mine, uniform[1:2], zeta * normal))


def mean(labels, p, a, b, sigma):
    """The mean of x in the frame: rho on the vector v_c of the sample's cluster."""
    C, M, rho, gated = p.C, p.M, p.rho, p.gated
    if labels.ndim == 1:
        centre = np.zeros(2 * C + 1 + (M if gated == 1 else 0))
        for c in range(C):
            centre[C + 1 + c] = rho * labels[c]
        return centre
    parts = (0.0 * labels[: C + 1], rho * labels[:C])
    if gated == 1:
        return np.concatenate((parts[0], parts[1], np.zeros((M,) + labels.shape[1:])))
    return np.concatenate(parts)


def label(fields, labels, N, C, links, s):
    """y of a sample from the fields of the teacher vectors."""
    y = labels[C + 1]
    shared = evaluate(fields[N + C], links[C])
    for c in range(C):
        if labels.ndim == 1:
            if labels[c] == 0.0:
                continue
        y = y + labels[c] * (evaluate(fields[N + c], links[c]) + s[c] * shared)
    return y


def active(fields, labels, N, C, M, gated, expert, selector):
    """1 for the neurons whose expert gets the sample."""
    if gated == 1:
        return selector @ (1.0 * (fields[N + 2 * C + 1 :] >= 0.0))
    if gated == 2:
        return selector @ labels[:C]
    return 1.0 * (column(expert, fields) == np.floor(M * labels[C]))


def along_one(fields, labels, p, a, b, sigma):
    """`coefficients` of one sample, neuron by neuron, because temporary arrays would take a third of the time of a
    step.

    `sigma` has a row for every neuron, or one for all.
    """
    N, C, M, gated, expert, selector = p.N, p.C, p.M, p.gated, p.expert, p.selector
    found = np.zeros(N)
    y = label(fields, labels, N, C, p.links, p.s)
    chosen = np.floor(M * labels[C])
    for n in range(N):
        reached = 0.0
        if gated == 0:
            reached = 1.0 if expert[n] == chosen else 0.0
        elif gated == 1:
            for m in range(M):
                reached += selector[n, m] if fields[N + 2 * C + 1 + m] >= 0.0 else 0.0
        else:
            for c in range(C):
                reached += selector[n, c] * labels[c]
        if reached != 0.0:
            found[n] = (
                (p.scale * y) * reached * a[n] * slope_of_one(fields[n] + b[n], sigma[min(n, len(sigma) - 1)], p.kind)
            )
    return found


def coefficients(fields, labels, p, a, b, sigma):
    """Along x, the ascent direction of y F(x): scale y a sigma'(w.x + b) for the neurons of the active experts.

    `scale` is 1/J times the weight of an active expert; `selector` (N, M) is 1 for the expert of a neuron, or, with
    perfect routing, (N, C) for the cluster of its expert.
    """
    if fields.ndim == 1:
        return along_one(fields, labels, p, a, b, sigma)
    N, C, M, kind, gated = p.N, p.C, p.M, p.kind, p.gated
    expert, selector, scale, links, s = p.expert, p.selector, p.scale, p.links, p.s
    y = label(fields, labels, N, C, links, s)
    t = fields[:N] + column(b, fields)
    reached = active(fields, labels, N, C, M, gated, expert, selector)
    return (scale * y) * reached * column(a, fields) * slope(t, sigma, kind)


def update(vv, vg, gg, step_size, p, a, b, sigma):
    """The spherical step: v + step (I - v v^T) g, divided by its length."""
    along = vg / vv
    length = np.sqrt(vv + step_size * step_size * (gg - vg * along))
    return (1.0 - step_size * along) / length, step_size / length


def sizes(parameters: Parameters) -> tuple[int, int]:
    """The number of neurons in the state, and of the 2C + 1 fixed vectors."""
    return count(parameters), 2 * parameters.C + 1


def sizes3(parameters: Parameters) -> tuple[int, int]:
    """The number of neurons in the state, and of fixed vectors: 2C + 1 and, if gates route, M more."""
    return count(parameters), 2 * parameters.C + 1 + (parameters.M if parameters.routing == "gate" else 0)


def numbers(parameters: Parameters, gram: np.ndarray, gated: int = FAIR) -> tuple[object, ...]:
    """Run-time arguments of the functions above, except for a, b, sigma of the neurons."""
    p, N = parameters, count(parameters)
    expert = expert_of(p, N)
    edges = np.arange(p.C + 1) / p.C
    scale = 1.0 / p.J if gated else 1.0 / (p.J * p.M)
    selector = np.eye(p.C)[expert % p.C] if gated == PERFECT else np.eye(p.M)[expert]
    norms = np.array([math.sqrt(math.factorial(i)) for i in range(len(links(p)[0]))])
    tables = (np.array(links(p), float) / norms, np.array(weights_of_global(p), float))
    kind = ACTIVATIONS.index(p.activation)
    head = (N, p.C, p.M, float(p.rho), float(p.zeta), kind, gated)
    rest = (edges[:-1].copy(), edges[1:].copy(), expert.astype(float), selector.copy(), scale, *tables)
    return (Numbers._make((*head, *rest)),)


def numbers3(parameters: Parameters, gram: np.ndarray) -> tuple[object, ...]:
    """As `numbers`, for Phase III: samples are routed by the gates, or perfectly."""
    return numbers(parameters, gram, GATED if parameters.routing == "gate" else PERFECT)


def place(initial: Initial) -> np.ndarray:
    """The Gram matrix of [neurons, frame (, gates)]; see `initial.full_gram`."""
    return full_gram(initial.state, initial.constants)


def observe(parameters: Parameters, gram: np.ndarray) -> Labelled:
    """kappa, xi and nu of the neurons, and their norms, from Gram matrices (..., n, n)."""
    N, C = count(parameters), parameters.C
    norms = np.sqrt(np.diagonal(gram, axis1=-2, axis2=-1)[..., :N])
    state = split(gram[..., :N, N : N + 2 * C + 1] / norms[..., None], C)
    dims = {"kappa": ("neuron", "cluster"), "xi": ("neuron",), "nu": ("neuron", "cluster")}
    found = {name: (dims[name], values, f"overlaps {name} of the unit vectors") for name, values in state.items()}
    if N <= SHOWN:
        mutual = gram[..., :N, :N] / (norms[..., :, None] * norms[..., None, :])
        found["overlap"] = (("neuron", "neuron_"), mutual, "mutual overlaps of the neurons")
        if gram.shape[-1] > N + 2 * C + 1:
            along = gram[..., :N, N + 2 * C + 1 :] / norms[..., None]
            found["along_gates"] = (("neuron", "expert"), along, "inner products of the unit vectors with the gates")
    found["norm"] = (("neuron",), norms, "norm of the neuron, 1 after every step")
    return found


SHOWN = 64
"""Up to this number of neurons their mutual overlaps are stored with a run, so that a later phase can start from it."""
HELPERS = ("column", "evaluate", "slope", "slope_of_one", "label", "active", "along_one")
CONSTANTS = ("a", "b", "sigma")
MODEL = Model(
    "derivations.kawata.model", HELPERS, False, (2, 1), sizes, numbers, place, None, observe, constants=CONSTANTS
)
PHASE3 = Model(
    "derivations.kawata.model", HELPERS, False, (2, 1), sizes3, numbers3, place, None, observe, constants=CONSTANTS
)
