"""With an output per class too every term of the recursion matters: each mutation is refuted by the model's steps."""

import numpy as np
import pytest

from derivations.pmoe import initial, model, tiers
from derivations.pmoe.classes import model as several
from derivations.pmoe.parameters import Parameters, settle
from odesim.sgd.frame_step import pushed
from tests.controls.stated import flow_of, namespace

TIER = ("derivations.pmoe.tiers.routing", "derivations.pmoe.tiers.classes")
MUTATIONS = {
    "no class of its own": ("(behind[at] / total, sp.Eq(OWN[X], I))", "(-raised / total, sp.Eq(OWN[X], I))"),
    "softmax of the others alone": ("total = behind[at] + sp.exp(-ahead[at])", "total = behind[at]"),
    "labels from zero": ("astype(int) - 1", "astype(int) % initial.parameters.classes"),
    "outputs not divided by l": ("PHI[S, I, W], S, W) / TOKENS", "PHI[S, I, W], S, W)"),
    "drive not divided by l": ("else sp.Integer(1)) / TOKENS", "else sp.Integer(1))"),
    "uncentred routers": ("(PHI[S, I, Z] - m)", "PHI[S, I, Z]"),
    "no output weight": ("active * OUT[S, R, I] * DRIVE", "active * DRIVE"),
    "one class alone": (
        "DRIVE[S, I, W], W, I) / (K * WIDTH)",
        "sp.KroneckerDelta(I, 0) * DRIVE[S, I, W], W, I) / (K * WIDTH)",
    ),
    "steps by the expert's width": ("DRIVE[S, I, W], W, I) / (K * WIDTH)", "DRIVE[S, I, W], W, I) / WIDTH"),
    "linear neurons": ("active = Indicator(sp.Ge(PRE[S, R, W], 0))", "active = sp.Integer(1)"),
    "responses of linear neurons": ("sp.Max(0, PRE[S, R, Z])", "PRE[S, R, Z]"),
    "orthogonal patterns": ("GRAM[Z, W] * active", "sp.KroneckerDelta(Z, W) * active"),
    "routers at rest": ("pull = LAM * sp.Sum(GRAM[Z, W] * PULL[S, W], W)", "pull = sp.Integer(0)"),
}


@pytest.fixture(scope="module")
def case():
    """(initial condition, the model's own mean step over the exact population) of a small joint network."""
    p = Parameters(mode="joint", classes=3, n=4, p=2, k=2, l=2, m=6, d=8, delta_d=0.3, b1=(0.4,), lam=0.7, sigma_r=0.6)
    start = initial.enter_joint(settle(p, "joint"), None, np.random.default_rng(1))
    p, s, c = start.parameters, start.state, start.constants
    phi = model.respond(c["out"], model.activate(s["pre"])[0])[..., None]
    experts, routers, _ = several.weigh_joint(s["route"][..., None], phi, c["counts"].T, c["label"], *model.numbers(p))
    pull = pushed(c["out"], experts @ c["weight"]) * model.activate(s["pre"])[1]
    pre, route = pull @ c["gram"] / p.m, p.lam * (routers @ c["weight"]) @ c["gram"]
    return start, np.concatenate([pre.ravel(), route.ravel()])


def deviation(case, old: str, new: str) -> float:
    """The largest difference of the mutated statement's step from the model's, relative to its size."""
    start, expected = case
    statement = namespace(TIER, old, new)["statement"](start.parameters, "L0", "joint")
    found = flow_of(statement)(0.0, tiers.joint(start.parameters, "L0").start(start), *statement.arguments(start))
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def test_the_flow_itself_is_the_models_mean_step(case):
    assert deviation(case, "sp", "sp") < 1e-14


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_refuted(case, name):
    assert deviation(case, *MUTATIONS[name]) > 1e-4
