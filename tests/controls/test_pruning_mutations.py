"""Every term of the slopes matters: each mutation of the loops is refuted by an enumeration of all inputs.

The loops are plain Python, and run uncompiled here.
"""

import inspect
import itertools
import math

import numpy as np
import pytest

from derivations.contract import load
from derivations.pruning import population
from derivations.pruning.recursion_loops import Arguments
from odesim.code import arrays

LIMIT = 1e-9
SINGLE = {
    "gates of one token less": ("gate(S, 0, x, l)", "gate(S, 0, x, l - 1)"),
    "selection blind to the order": ("if x >= 0.0 or n == l:", "if True:"),
    "router blind to the irrelevant activation": ("(sig[task] - sig[q + 2])", "(sig[task])"),
    "irrelevant router unmoved": ("dh[q + 2] -= moved", "pass"),
    "irrelevant router pushed the other way": ("dh[q + 2] -= moved", "dh[q + 2] += moved"),
    "no sign of the class": ("sign = 1.0 if task == 0 else -1.0", "sign = 1.0"),
    "irrelevant neurons unmoved": ("g[q + 2] += sign * chance * rest", "pass"),
    "task neurons unmoved": ("g[task] += sign * chance * mass", "pass"),
    "unselected inputs forgotten": ("rest = 1.0\n", "rest = 0.0\n"),
}
IID = {
    "no repeated last pattern": ("nt = kept - b", "nt = min(1, kept - b)"),
    "no task token": ("extra = nt * s[i] + select[i] * so", "extra = nt * s[i]"),
    "no pairs above": ("second = b * (b - 1)", "second = 0.0 * (b - 1)"),
    "no suffix": ("above += A_bar[i]", "pass"),
    "no suffix of activations": ("above_s += As_bar[i]", "pass"),
    "task gate without its logit": ("F_bar += w * copies * inner", "pass"),
    "wrong order of a tie": ("<= h[task] else 0", "> h[task] else 0"),
    "chance of the rest forgotten": ("choose(M, b) * left ** (M - b) * total", "choose(M, b) * total"),
    "first only of the last pattern's copies": ("        total += term\n", "        total += 0.0\n"),
}
DISTINCT = {
    "no perturbation": ("d[i, b - 1] + s[i] * e[i, b - 1])", "d[i, b - 1])"),
    "weights of the ranks": ("scale *= (N - r - (M - l)) / (N - r)", "scale *= (N - r - (M - l)) / (N - r + 1)"),
    "no backward step of e": ("e_bar[b - 1] += phi[i] * (e_bar[b] + s[i] * d_bar[b])", "pass"),
    "no backward step of d": ("d_bar[b - 1] += phi[i] * d_bar[b]", "pass"),
    "task gate without its logit": ("F_bar += w * (last_d + so * last)", "pass"),
}


def enumerate_inputs(h, sigma, pi, count, top, data):
    """(dPhi/dh, dPhi/dsigma) over all inputs: one pattern repeated, independent, or different ones."""
    N = pi.size
    if data == "single":
        tuples = [(q,) * count for q in range(N)]
    elif data == "iid":
        tuples = list(itertools.product(range(N), repeat=count))
    else:
        tuples = list(itertools.permutations(range(N), count))
    dh, g = np.zeros(N + 2), np.zeros(N + 2)
    for chosen in tuples:
        chance = {"single": pi[chosen[0]], "iid": float(np.prod(pi[list(chosen)]))}.get(data, 1 / math.perm(N, count))
        for task in (0, 1):
            tokens = np.array([task, *(q + 2 for q in chosen)])
            kept = tokens[np.argsort(-h[tokens], kind="stable")[:top]]
            gate = np.exp(h[kept]) / np.exp(h[kept]).sum()
            pooled = float((gate * sigma[kept]).sum())
            signed = 0.5 * (1 - 2 * task) * chance
            np.add.at(g, kept, signed * gate)
            np.add.at(dh, kept, signed * gate * (sigma[kept] - pooled))
    return dh, g


def difference(data, old, new):
    """The largest deviation of a mutated slope from the enumeration, over three random states."""
    kernel = arrays.array_kernel(population._kernels()["gate"])
    references = ["derivations.ranking:rank", *(f"derivations.pruning.{name}" for name in population.SLOPES[data])]
    source = "\n\n".join(inspect.getsource(inspect.unwrap(load(name))) for name in references)
    assert old in source, "the mutation names a text that is no longer there"
    namespace = {"np": np, "gate": lambda table, lane, x, top: kernel(None, x, top)}
    exec(source.replace(old, new), namespace)
    worst = 0.0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        N, count, top = 5 if data == "distinct" else 4, 4, 3
        h, sigma = rng.standard_normal(N + 2), rng.random(N + 2)
        h[0] = np.sort(h[2:])[-2] + 0.05  # selected in some inputs
        pi = rng.dirichlet(np.ones(N)) if data != "distinct" else np.full(N, 1 / N)
        dh, g, value = np.zeros(N + 2), np.zeros(N + 2), np.zeros(2)
        law = {"l": top, "n": count + 1, "copies": 1, "pi": pi, "nodes": 160}
        given = Arguments(**dict.fromkeys(Arguments._fields) | law)
        namespace["expert_slope"](h, sigma, pi / 2, pi / 2, dh, g, value, given)
        right = enumerate_inputs(h, sigma, pi, count, top, data)
        worst = max(worst, np.abs(dh - right[0]).max(), np.abs(g - right[1]).max())
    return worst


@pytest.mark.parametrize("data", ["single", "iid", "distinct"])
def test_the_slopes_themselves_agree_with_the_enumeration(data):
    assert difference(data, "", "") < LIMIT


@pytest.mark.parametrize(
    ("data", "name"),
    [(data, name) for data, group in (("single", SINGLE), ("iid", IID), ("distinct", DISTINCT)) for name in group],
)
def test_a_mutation_is_refuted(data, name):
    group = {"single": SINGLE, "iid": IID, "distinct": DISTINCT}[data]
    assert not difference(data, *group[name]) < 1e3 * LIMIT
