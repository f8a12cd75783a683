"""Every term of the population recursion matters: each mutation of the statement, or of the loops that stand for one of
its formulas, is refuted by the model's steps.
"""

import numpy as np
import pytest

from derivations.pmoe import initial, model, tiers
from derivations.pmoe.parameters import Parameters, settle
from tests.controls.stated import flow_of, namespace

TIER = ("derivations.pmoe.tiers.routing", "derivations.pmoe.tiers.levels")
LOOPS = ("derivations.ranking", "derivations.pmoe.routing_loops")
MUTATIONS = {
    "routing by the smallest": ("higher = sp.Gt(", "higher = sp.Lt("),
    "one patch too many": ('TOKENS - look.at("above", Z)', 'TOKENS + 1 - look.at("above", Z)'),
    "copies are not taken away": ('sp.Max(0, TOKENS - look.at("above", Z))', "TOKENS"),
    "gates do not sum to one": ("sp.exp(look.value(Z)) / total", "sp.exp(look.value(Z)) / (total + sp.Rational(1, 9))"),
    "gate without exponential": ("taken * sp.exp(look.value(Z)) /", "taken * (1 + look.value(Z)) /"),
    "no multiplicity in the softmax": (
        'look.at("taken", W) * sp.exp(look.value(W))',
        'Indicator(sp.Gt(look.at("taken", W), 0)) * sp.exp(look.value(W))',
    ),
    "no label in the margin": ('SLOPE["v"](LABEL[X] * look.output) /', 'SLOPE["v"](look.output) /'),
    "output not divided by l": ("PHI[S, W], S, W) / TOKENS", "PHI[S, W], S, W)"),
    "no label in the drive": ("WEIGHT[X] * LABEL[X] * SLOPE", "WEIGHT[X] * SLOPE"),
    "drive not divided by l": ("look.output) / TOKENS", "look.output)"),
    "uncentred routers": ("(PHI[S, Z] - m)", "PHI[S, Z]"),
    "no output weight": ("rate = OUT[S, R] / (K * WIDTH)", "rate = 1 / (K * WIDTH)"),
    "steps by the expert's width": ("rate = OUT[S, R] / (K * WIDTH)", "rate = OUT[S, R] / WIDTH"),
    "linear neurons": ("active = Indicator(sp.Ge(PRE[S, R, W], 0))", "active = sp.Integer(1)"),
    "responses of linear neurons": ("sp.Max(0, PRE[S, R, Z])", "PRE[S, R, Z]"),
    "orthogonal patterns": ("GRAM[Z, W] * active", "sp.KroneckerDelta(Z, W) * active"),
    "routers blind to the geometry": ("GRAM[Z, W] * PULL[S, W]", "sp.KroneckerDelta(Z, W) * PULL[S, W]"),
    "routers 1 % too fast": ("pull = LAM *", "pull = sp.Rational(101, 100) * LAM *"),
}
LOOP_MUTATIONS = {
    "order of the smallest first": ("values[before] > values[moved]", "values[before] < values[moved]"),
    "one patch too many": ("left = kept\n", "left = kept + 1\n"),
    "copies are not taken away": ("left -= filled[s, x, z]", "left -= 0.0"),
    "a copy of every pattern": ("min(left, count[x, z])", "min(left, 1.0)"),
}


@pytest.fixture(scope="module")
def case():
    """(initial condition, the model's own mean step over the exact population) of a small joint network."""
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


def gap_of_loops(case, old: str, new: str) -> float:
    """The largest difference of the copies taken by the mutated loops, uncompiled, from those of the model."""
    start, _ = case
    route, count, kept = start.state["route"], start.constants["counts"], start.parameters.l
    found = namespace(LOOPS, old, new)
    taken = np.full((len(route), count.size), np.nan)
    found["ordered"] = found["rank"]
    found["top_copies"].py_func(route, count, float(kept), taken)
    wanted = np.moveaxis(model.top_l(route[..., None], count.T, kept), 2, 1)  # (experts, samples, patterns)
    return float(np.abs(taken.reshape(wanted.shape) - wanted).max())


def test_the_loops_take_what_the_model_takes(case):
    assert gap_of_loops(case, "np", "np") == 0.0


@pytest.mark.parametrize("name", LOOP_MUTATIONS)
def test_a_mutation_of_the_loops_is_refuted(case, name):
    assert gap_of_loops(case, *LOOP_MUTATIONS[name]) >= 1.0
