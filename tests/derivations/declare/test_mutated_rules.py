"""Tables with rules, memories and laws of noise that were valid and are no longer: each is run, or refused."""

import copy
import math
import random

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError
from derivations.declare import responses
from derivations.declare.initial import enter
from derivations.declare.tiers import settled
from tests.derivations.declare.test_mutated_training import alter

MUTATIONS = 500
UNTIL = 0.2
VALID = (
    {"training": {"limit": "online", "rule": {"w": "F*dl*dphi", "a": "clip(dl, kappa)*df"}}},
    {"training": {"rule": {"w": "clip(grad, 0.5) + 0.1*l*w*y"}, "rates": {"a": "1/(1 + mean(a)^2)"}}},
    {
        "training": {
            "limit": "online",
            "weights": "sphere",
            "rule": {"w": "dl*(w + kappa)"},
            "step": "0.1 + M_ww[1,1]^2",
        }
    },
    {
        "training": {"limit": "online", "step": [[0, "kappa/sqrt(b2)"], [0.1, "relu(1 - mean(Q_ww))/b2"]]},
        "memory": {"b2": {"start": 0.3, "rate": "g2 + M_ww[1,1]^2"}, "slow": {"rate": "(a[1] - slow)/3"}},
    },
    {"training": {"rates": {"w": "1/sqrt(b2)"}, "decay": "0.01*b2"}, "memory": {"b2": {"start": 1, "rate": "g2_w"}}},
)
NOISES = (0.1, "0.1*xi", "0.3*(xi^3 - 3*xi)", "-0.3*sign(xi)*log(2*probit(-abs(xi)))", "clip(xi, kappa)")
DEFAULTS = ("1 - 0.4*j", 0.7, "sqrt(j)", "1/j")
VALUES = (
    0, -1, 0.5, 1e200, math.nan, math.inf, True, None, "", "x", "t", "xi", "w", "v", "a", "y", "dl", "-y", "f*f", "1",
    "dl/0", "dl/f", "1/y", "exp(w*w)", "exp(dl*dl)", "log(l)", "sqrt(dl)", "clip(dl)", "clip(dl, -1)", "clip(w, y)",
    "step(dl)*w", "He(3, w)*dl", "wick(2, w)", "softmax(w)", "g2", "g2_v", "gnorm", "R", "M_ww", "M_ww[1]", "M_ww[1,2]",
    "M_ww[1,9]", "Q_ww[0,1]", "mean(Q_ww)", "mean(w)", "mean(M_ww", "a[1]", "a[3]", "b2", "b2^2", "slow*g2", "1/xi",
    "xi^2", "sign(xi)/probit(-abs(xi))", "j", "F", "F*j", "1/(j - 1)", "(", "é", [], {}, {"w": 1}, {"w": "dl"},
    {"v": "dl"}, {"a": "dl*df"}, {"": "dl"}, {"b2": "dl"}, {"rate": "g2"}, {"start": 1}, {"rate": 1, "start": "x"},
    [[0, "b2"]], [[0, 1], [0.1, "M_ww[1,1]"]], np.ones(2),
)  # fmt: skip
KEYS = ("rule", "step", "rates", "rate", "start", "w", "a", "b2", "t")


def mutated(seed):
    """A valid declaration with an entry or two replaced, removed, or given to another key."""
    rng = random.Random(seed)
    tables = copy.deepcopy(rng.choice(VALID))
    tables["teacher"] = {"noise": rng.choice(NOISES)}
    tables["parameters"] = {"kappa": 0.8}
    if "F" in str(tables["training"]):
        tables["parameters"]["F"] = {"default": rng.choice(DEFAULTS), "per": "unit"}
    return alter(tables, rng, KEYS, VALUES, kinds=5)


def declared(tables):
    return odesim.declare(
        name="mutated", student={"unit": "erf(w)", "output": "trained", "units": 2}, start={"overlap": 0.3}, **tables
    )


def answer(tables):
    """ "run", or the sentence of the refusal."""
    try:
        model = declared(tables)
        parameters = model.parameters(d=20)
        model.check(parameters)
        enter(parameters, None, np.random.default_rng(0))
        settled(parameters)
        written = (model.stages[0].truth(parameters).written(), responses.module(parameters.declaration))
        for text in written:
            compile(text, "written", "exec")
    except UsageError as error:
        return str(error)
    return "run"


def test_every_mutated_table_of_rules_and_memories_is_read_or_refused():
    answers = [answer(mutated(seed)) for seed in range(MUTATIONS)]
    assert all(said and "\n" not in said and len(said) < 1000 for said in answers)
    assert MUTATIONS / 10 < answers.count("run") < 9 * MUTATIONS / 10
    assert len(set(answers)) > 60


@pytest.mark.parametrize("seed", range(4))
def test_what_is_read_can_be_run(seed):
    tables = next(t for t in map(mutated, range(100 * seed, 100 * seed + 100)) if answer(t) == "run")
    model = declared(tables)
    run = odesim.integrate(model, d=20, until=UNTIL, save_points=3, tier="sampled", points=1024)
    sgd = odesim.simulate(model, d=20, until=UNTIL, save_points=3, method="compressed", batch=4)
    explicit = odesim.simulate(model, d=20, until=UNTIL, save_points=3, method="explicit", batch=4)
    for one in (run, sgd, explicit):
        assert one.outcome.kind == "failed" or np.isfinite(one["M_ww"]).all()
