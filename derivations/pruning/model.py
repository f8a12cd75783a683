"""The microscopic model of system `pruning`, from the paper's set-up alone: data, routing, experts, loss, one step.

    f(x) = sum_s a_s sum_{j in J_s} G_js sum_r ReLU(<w_r, x_j>),   G_js = softmax over J_s of <w_s, x_j>

J_s are the l tokens with the largest logits at expert s (expert choice, equation (4)); under token choice a token keeps
its l experts of largest logit, and gates are the softmax over them (equation (3)). The gradient is that of 1 - y f, or
of the hinge max(1 - y f, 0). This module contains no order parameters. Source: Chowdhury et al. 2024, equations (1) to
(7), section 4.1 and Algorithm 1.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.alphabet.experts import relu as activate
from derivations.alphabet.experts import softmax_on, top_l
from derivations.alphabet.frame import FrameModel, FrameWeights, Samples
from derivations.alphabet.sizes import Sizes
from derivations.contract import Initial, Labelled
from derivations.pruning import inputs as test_inputs
from derivations.pruning.norms import growth
from derivations.pruning.parameters import DATA, Parameters

REPEATED = (DATA.index("single"), DATA.index("multi_copy"))


def draw(uniform, data, n, cumulative, tokens, labels):
    """Inputs from uniform numbers (U, B): a label, its task token, and irrelevant tokens of the distribution `data`.

    0 and 1: some patterns, each repeated; 2: n - 1 independent ones; 3: n - 1 different ones; 4: a row of a table.
    """
    N = cumulative.size
    if data == 4:
        row = (uniform[0] * labels.size).astype(np.int64)
        chosen = tokens[row].T
        return chosen, 1.0 + 0.0 * chosen, labels[row]
    y = np.where(uniform[0] < 0.5, 1.0, -1.0)
    task = np.where(y > 0, 0, 1).reshape(1, -1)
    if data == 3:
        q = np.argsort(uniform[1:], axis=0)[: n - 1]
    else:
        q = np.minimum(np.searchsorted(cumulative, uniform[1:].reshape(-1), side="right"), N - 1)
        q = q.reshape(uniform[1:].shape)
    number = q.shape[0]
    each = (n - 1) // number if data < 2 else 1
    left = n - 1 - each * number
    copies = np.where(np.arange(number) < left, each + 1.0, 1.0 * each).reshape(-1, 1) + 0.0 * q
    return np.concatenate((task, q + 2)), np.concatenate((0.0 * task + 1.0, copies)), y


def weigh(route, response, copies, labels, l, choice, hinge, a):
    """Minus the gradient of the loss along every token: of the active neurons of each expert, and of the routers."""
    sign = a.reshape(-1, 1, 1)
    if choice == 0:
        gate = softmax_on(top_l(route, copies, l), route)
        pooled = (gate * response).sum(axis=1, keepdims=True)
        output = (sign * pooled).sum(axis=0)[0]
        routers = sign * gate * (response - pooled)
        experts = sign * gate
    else:
        rank = np.argsort(np.argsort(-route, axis=0, stable=True), axis=0, stable=True)
        raised = np.where(rank < l, np.exp(route - route.max(axis=0, keepdims=True)), 0.0)
        gate = raised / raised.sum(axis=0, keepdims=True)
        mixed = (gate * sign * response).sum(axis=0, keepdims=True)
        output = (copies * mixed[0]).sum(axis=0)
        routers = copies * gate * (sign * response - mixed)
        experts = copies * gate * sign
    pushed = labels * np.where(labels * output < 1.0, 1.0, 0.0) if hinge == 1 else labels
    return pushed * experts, pushed * routers, output


def numbers(initial: Initial) -> tuple[Any, ...]:
    """Run-time arguments of `weigh`, in their order."""
    p = initial.parameters
    return p.l, int(p.routing == "token_choice"), int(p.loss == "hinge"), np.asarray(initial.constants["a"], float)


def law(initial: Initial) -> tuple[Any, ...]:
    """Run-time arguments of `draw`, in their order."""
    p, c = initial.parameters, initial.constants
    table = np.asarray(c["tokens"], np.int64), np.asarray(c["labels"], float)
    return DATA.index(p.data), p.n, np.cumsum(np.asarray(c["pi"], float)), *table


def rates(initial: Initial, step_size: float) -> tuple[float, float]:
    """eta_e and eta_r: the step size is that of the neurons."""
    return step_size, float(initial.parameters.router_rate)


def uniforms(initial: Initial) -> int:
    """Uniform numbers of one input."""
    p = initial.parameters
    return {"single": 2, "multi_copy": 1 + p.copies, "iid": p.n, "distinct": 1 + p.N, "empirical": 1}[p.data]


def inputs(initial: Initial) -> Samples | None:
    """All inputs of data=single, (y, q) with n - 1 copies of q, and of a table; otherwise they are too many."""
    p, c = initial.parameters, initial.constants
    if p.data == "single":
        labels = np.repeat([1.0, -1.0], p.N)
        tokens = np.stack([np.where(labels > 0, 0, 1), np.tile(np.arange(p.N), 2) + 2])
        copies = np.stack([np.ones(2 * p.N), np.full(2 * p.N, p.n - 1.0)])
        return Samples(tokens, copies, labels, np.tile(np.asarray(c["pi"], float), 2) / 2)
    if p.data == "empirical":
        tokens = np.asarray(c["tokens"], np.int64).T
        count = tokens.shape[1]
        return Samples(tokens, np.ones(tokens.shape), np.asarray(c["labels"], float), np.full(count, 1 / count))
    return None


def place(
    initial: Initial, arrays: Mapping[str, np.ndarray] | None, rng: np.random.Generator, compressed: bool
) -> FrameWeights:
    """The weights at the start: those of a file in its dimensions, or alignments with the standard basis."""
    out = np.ones(initial.state["u"].shape[:2])
    if arrays is not None and "w" in arrays and not compressed:
        w, neurons = np.array(arrays["w"], float), np.array(arrays["W"], float)
        patterns = np.asarray(arrays["P"], float) if "P" in arrays else np.eye(w.shape[1])
        return FrameWeights(neurons, w, out, patterns)
    basis = None if compressed else np.eye(initial.parameters.d)
    return FrameWeights(initial.state["u"].copy(), initial.state["h"].copy(), out, basis)


def sizes(initial: Initial) -> Sizes:
    """The network, and an input by its uniform numbers."""
    k, m, d = initial.state["u"].shape
    return Sizes(k, m, 1, d, d, uniforms(initial))


def measure(initial: Initial, u: np.ndarray, h: np.ndarray) -> np.ndarray:
    """h, u (if stored), sigma, Delta, |dw|, p_1, p_2, the error P(y f <= 0), the smallest margin, selection and
    gates.
    """
    p, c = initial.parameters, initial.constants
    sigma = activate(u)[0].sum(axis=1)
    rows, labels, chance = test_inputs.table(initial)
    tokens = rows.T
    given = (tokens, np.ones(tokens.shape), labels)
    output, gate = respond(h, sigma, given, p, c)
    seen = gate >= (1 - 1e-12) / p.l
    p1, p2 = (test_inputs.fraction(chance[labels == y], seen[:, labels == y]) for y in (1, -1))
    signed = labels * output
    change = h - c["h_start"]
    scalars = np.array([test_inputs.fraction(chance, signed <= 0), signed[chance > 0].min()])
    parts = [h, u] if p.keep_u else [h]
    both = [(chance[labels == y], gate[:, labels == y]) for y in (1, -1)]
    chosen = [test_inputs.fraction(weight, own > 0) for weight, own in both]
    gates = [(weight * own).sum(-1) / weight.sum() for weight, own in both]
    parts += [sigma, growth(c["h_start"], h, c["router_rest"]), np.sqrt((change**2).sum(-1)), p1, p2, scalars]
    parts += [*chosen, *gates]
    return np.concatenate([np.ravel(part) for part in parts])


def respond(h: np.ndarray, sigma: np.ndarray, given: Any, p: Parameters, c: Mapping[str, Any]) -> tuple[Any, Any]:
    """The output f (B,) and every expert's gate mass of the first token (k, B) on inputs (tokens, copies, labels)."""
    tokens, copies, labels = given
    a = np.asarray(c["a"], float)
    rule = (min(p.l, tokens.shape[0]), int(p.routing == "token_choice"), 0, a)
    experts, _, output = weigh(h[:, tokens], sigma[:, tokens], copies, labels, *rule)
    return output, experts[:, 0] * (a[:, None] * labels)


def observe(parameters: Parameters, saved: np.ndarray) -> Labelled:
    """The components of saved vectors (..., size)."""
    p, at, found = parameters, 0, {}
    pattern, expert = ("expert", "pattern"), ("expert",)
    neuron = (("u", (p.k, p.m, p.d), ("expert", "neuron", "pattern"), "alignment of a neuron with a pattern"),)
    for name, shape, dims, meaning in (
        ("h", (p.k, p.d), pattern, "alignment of a router with a pattern (o1, o2, q_1, ..)"),
        *(neuron if p.keep_u else ()),
        ("sigma", (p.k, p.d), pattern, "activation of an expert on a pattern"),
        ("Delta", (p.k,), expert, "growth of the router's norm"),
        ("dw", (p.k,), expert, "norm of the router's change"),
        ("p1", (p.k,), expert, "proficiency for o1"),
        ("p2", (p.k,), expert, "proficiency for o2"),
        ("f_error", (), (), "test error P(y f <= 0)"),
        ("margin", (), (), "least margin over the test inputs"),
        ("selected1", (p.k,), expert, "probability that o1 is selected, with any gate, y = +1"),
        ("selected2", (p.k,), expert, "probability that o2 is selected, with any gate, y = -1"),
        ("gate1", (p.k,), expert, "mean gate of o1, 0 where not selected, y = +1"),
        ("gate2", (p.k,), expert, "mean gate of o2, 0 where not selected, y = -1"),
    ):
        count = int(np.prod(shape))
        found[name] = (dims, saved[..., at : at + count].reshape(*saved.shape[:-1], *shape), meaning)
        at += count
    return found


def fixed(initial: Initial) -> Labelled:
    """The head signs, which training does not change."""
    return {"a": (("expert",), initial.constants["a"], "head sign of an expert")}


MODEL = FrameModel(
    module="derivations.pruning.model",
    helpers=("softmax_on", "top_l"),
    numbers=numbers,
    law=law,
    uniforms=uniforms,
    rates=rates,
    inputs=inputs,
    place=place,
    sizes=sizes,
    measure=measure,
    observe=observe,
    fixed=fixed,
    costly_loss=lambda parameters: parameters.data in ("iid", "distinct"),  # by quadrature over laws of many tokens
)
