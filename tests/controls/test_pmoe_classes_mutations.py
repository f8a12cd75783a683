"""With an output per class too every term of the recursion matters: each mutation is refuted by the model's steps."""

import inspect

import numpy as np
import pytest

from derivations.contract import load
from derivations.pmoe import initial, model, tiers
from derivations.pmoe.classes import model as several
from derivations.pmoe.parameters import Parameters, settle
from odesim.sgd.frame_step import pushed

MUTATIONS = {
    "no class of its own": ("push[i] = rest / total if i == y else -push[i] / total", "push[i] = -push[i] / total"),
    "softmax of the others alone": ("total = rest + np.exp(-top)", "total = rest"),
    "labels from zero": ("int(label[row]) - 1, push)", "int(label[row]) % outputs.size, push)"),
    "outputs not divided by l": ("outputs[i] += mean[s, i] / l", "outputs[i] += mean[s, i]"),
    "drive not divided by l": ("scale = weight[row] * push[i] / l", "scale = weight[row] * push[i]"),
    "uncentred routers": ("(response[s, i, z] - mean[s, i])", "response[s, i, z]"),
    "no output weight": ("out[s, r, i] * c[s, i, z] / (k * M)", "c[s, i, z] / (k * M)"),
    "one class alone": ("push[z] += out[s, r, i] * c", "push[z] = out[s, r, i] * c"),
    "steps by the expert's width": ("c[s, i, z] / (k * M)", "c[s, i, z] / M"),
    "linear neurons": ("if pre[s, r, z] >= 0.0:", "if True:"),
    "responses of linear neurons": ("if pre[s, r, z] > 0.0:", "if True:"),
    "orthogonal patterns": ("total += matrix[z, w] * vector[w]", "total += vector[w] if z == w else 0.0"),
    "routers at rest": ("move_routers(route, d, gram, lam, dy[size:])", "pass"),
}


@pytest.fixture(scope="module")
def case():
    """(equations, initial condition, the model's own mean step over the exact population) of a small joint network."""
    p = Parameters(mode="joint", classes=3, n=4, p=2, k=2, l=2, m=6, d=8, delta_d=0.3, b1=(0.4,), lam=0.7, sigma_r=0.6)
    start = initial.enter_joint(settle(p, "joint"), None, np.random.default_rng(1))
    p, s, c = start.parameters, start.state, start.constants
    phi = model.respond(c["out"], model.activate(s["pre"])[0])[..., None]
    experts, routers, _ = several.weigh_joint(s["route"][..., None], phi, c["counts"].T, c["label"], *model.numbers(p))
    pull = pushed(c["out"], experts @ c["weight"]) * model.activate(s["pre"])[1]
    pre, route = pull @ c["gram"] / p.m, p.lam * (routers @ c["weight"]) @ c["gram"]
    return tiers.joint(p, "L0"), start, np.concatenate([pre.ravel(), route.ravel()])


def deviation(case, old: str, new: str) -> float:
    """The largest difference of the step of the mutated loops, uncompiled, from the model's, relative to its size."""
    equations, start, expected = case
    source = "\n\n".join(inspect.getsource(inspect.unwrap(load(name))) for name in equations.code.loops)
    assert old in source, "the mutation names a text that is no longer there"
    namespace: dict = {}
    exec("import numpy as np\n" + source.replace(old, new), namespace)
    found = namespace["class_l0_flow_loss"](0.0, equations.start(start), equations.arguments(start))[0]
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def test_the_flow_itself_is_the_models_mean_step(case):
    assert deviation(case, "np", "np") < 1e-14


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_refuted(case, name):
    assert deviation(case, *MUTATIONS[name]) > 1e-4
