"""Every term of the population recursion matters: each mutation of the compiled loops is refuted by the model's
steps.
"""

import inspect

import numpy as np
import pytest

from derivations.contract import load
from derivations.pmoe import initial, model, tiers
from derivations.pmoe.parameters import Parameters, settle
from odesim.code import printer

MUTATIONS = {
    "routing by the smallest": ("values[before] > values[moved]", "values[before] < values[moved]"),
    "one patch too many": ("left = l\n", "left = l + 1\n"),
    "copies are not taken away": ("left -= routed[z]", "left -= 0.0"),
    "gates do not sum to one": ("gates[z] /= total", "gates[z] /= total + 0.1"),
    "gate without exponential": ("gates[z] = np.exp(g[z] - top)", "gates[z] = 1.0 + g[z] - top"),
    "no multiplicity in the softmax": ("total += routed[z] * gates[z]", "total += gates[z]"),
    "no label in the margin": ("logistic(S, 0, label[row] * f / l)", "logistic(S, 0, f / l)"),
    "output not divided by l": ("label[row] * f / l)\n        loss", "label[row] * f)\n        loss"),
    "no label in the drive": ("push = weight[row] * label[row] * v / l", "push = weight[row] * v / l"),
    "drive not divided by l": ("push = weight[row] * label[row] * v / l", "push = weight[row] * label[row] * v"),
    "uncentred routers": ("(response[s, z] - mean)", "response[s, z]"),
    "no output weight": ("scale = out[s, r] / (k * M)", "scale = 1.0 / (k * M)"),
    "steps by the expert's width": ("scale = out[s, r] / (k * M)", "scale = out[s, r] / M"),
    "linear neurons": ("scale * c[s, z] if pre[s, r, z] >= 0.0 else 0.0", "scale * c[s, z]"),
    "responses of linear neurons": (
        "                if pre[s, r, z] > 0.0:\n                    response",
        "                if True:\n                    response",
    ),
    "orthogonal patterns": ("total += matrix[z, w] * vector[w]", "total += vector[w] if z == w else 0.0"),
    "routers blind to the geometry": ("times(gram, d[s], lam, ", "times(np.eye(P), d[s], lam, "),
    "routers 1 % too fast": ("times(gram, d[s], lam, ", "times(gram, d[s], 1.01 * lam, "),
}  # fmt: skip


@pytest.fixture(scope="module")
def case():
    """(equations, initial condition, the model's own mean step over the exact population) of a small joint network."""
    p = settle(
        Parameters(mode="joint", n=6, p=3, k=3, l=3, m=12, d=8, delta_d=0.3, b1=(0.4,), lam=0.7, sigma_r=0.6), "joint"
    )
    start = initial.enter_joint(p, None, np.random.default_rng(1))
    s, c = start.state, start.constants
    phi = model.respond(c["out"], model.activate(s["pre"])[0])[..., None]
    experts, routers, _ = model.weigh_joint(s["route"][..., None], phi, c["counts"].T, c["label"], *model.numbers(p))
    pull = (experts @ c["weight"])[:, None] * model.activate(s["pre"])[1]
    pre = c["out"][..., None] / p.m * (pull @ c["gram"])
    route = p.lam * (routers @ c["weight"]) @ c["gram"]
    return tiers.joint(p, "L0"), start, np.concatenate([pre.ravel(), route.ravel()])


def compiled(equations, old: str, new: str):
    """The flow compiled anew from the loops with one text replaced."""
    import numba

    kernel = printer.scalar_source("logistic", equations.code.kernels()["logistic"])
    texts = [kernel, *(inspect.getsource(inspect.unwrap(load(name))) for name in equations.code.loops)]
    source = "\n\n".join(texts)
    assert old in source, "the mutation names a text that is no longer there"
    namespace: dict = {}
    exec("import numpy as np\nfrom math import exp, log\n" + source.replace(old, new), namespace)
    for name in [text.split("(")[0].removeprefix("def ") for text in texts]:
        namespace[name] = numba.njit(namespace[name])
    return namespace["l0_flow_loss"]


def deviation(case, old: str, new: str) -> float:
    """The largest difference of the recursion's step from the model's, relative to its size."""
    equations, start, expected = case
    found = compiled(equations, old, new)(0.0, equations.start(start), equations.arguments(start))[0]
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def test_the_flow_itself_is_the_models_mean_step(case):
    assert deviation(case, "np", "np") < 1e-14


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_refuted(case, name):
    assert deviation(case, *MUTATIONS[name]) > 1e-4
