"""Tables with heads, stages, momentum, looks and predictions that were valid and are no longer: run, or refused."""

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
HEADS = {"unit": "erf(w)", "units": 2, "output": {"one": "trained", "two": "mean"}}
TEACHERS = {"gram": 0.3, "one": {}, "two": {"unit": "w"}}
PAIR = {"one": {"unit": "w"}, "two": {"unit": "erf(w)"}}
GROUPS = {"prediction": "gate*net", "gate": {"unit": "probit(w)"}, "net": {"unit": "erf(w)", "output": "trained"}}
VALID = (
    {
        "student": HEADS, "teacher": TEACHERS,
        "training": {"limit": "online", "head": "one", "rates": {"a_one": 0.5}, "trained": ["w", "a"]},
        "start": {"a_one": [0.3, -0.2], "norm": 0.5},
    },
    {
        "student": HEADS, "teacher": TEACHERS, "training": {"limit": "online", "step": 0.5},
        "stage": [
            {"name": "first", "head": "one", "until": 1},
            {"name": "second", "head": ["two"], "until": 2, "step": 0.1},
        ],
    },
    {
        "student": HEADS, "teacher": {"noise": 0.1, "all": {"unit": "w", "output": {"one": "sum", "two": "1/j"}}},
        "training": {"loss": "softmax", "weights": "sphere"},
    },
    {
        "student": {"unit": "erf(w)", "output": "trained"}, "teacher": PAIR,
        "training": {"limit": "online", "teacher": ["one"], "momentum": {"time": 2.0}, "nesterov": True},
    },
    {
        "student": {"unit": "erf(w)", "output": "trained"}, "teacher": PAIR,
        "training": {"momentum": 0.9},
        "stage": [{"name": "s1", "teacher": ["one"], "until": 1}, {"name": "s2", "teacher": ["two"], "trained": ["a"],
                   "until": 3, "loss": "correlation", "decay": 0.1, "noise": 0.2, "rates": {"a": 0.1}}],
    },
    {
        "student": {"unit": "He(2, w)"}, "teacher": {"noise": 0.1},
        "training": {"limit": "online", "look": {"size": 0.1, "use": "sum", "times": 2}, "rule": "grad/(1 + gnorm)"},
    },
    {
        "student": {"unit": "erf(w)", "units": 2, "output": "trained"},
        "teacher": {"noise": 0.1, "one": {"unit": "w"}, "copy": {"from": "student"}},
        "training": {"limit": "online", "teacher": ["one"]},
        "stage": [{"name": "first", "until": 1}, {"name": "second", "teacher": ["copy"], "until": 2,
                   "begin": {"copy": "student", "w": "fresh", "a": 0.5}}],
    },
    {
        "student": GROUPS, "teacher": {"prediction": "tanh(one*two)", **PAIR},
        "training": {"limit": "online", "loss": "(f - y)^2/2 + 0.1*f^2"},
    },
)  # fmt: skip
KEYS = (
    "head", "stage", "momentum", "nesterov", "look", "prediction", "output", "teacher", "size", "use", "times", "time",
    "one", "two", "name", "until", "trained", "a_one", "gate", "net", "unit", "from", "begin", "copy", "w", "a",
)  # fmt: skip
VALUES = (
    0, -1, 0.5, 1, 2, 1e200, math.nan, math.inf, True, False, None, "", "one", "two", "tow", "star", "a", "w", "f", "y",
    "f_one", "f_two*y_one", "sum", "trained",
    "student", "fresh", {"w": "fresh"}, {"copy": "one"}, {"from": "student"}, "1/j", "last", "all", "train",
    "first", "gate", "gate*net", "gate/net",
    "exp(net)", "sign(f)", "softmax(f)", "first*first", [], ["one"], ["one", "one"], ["a_one"], ["tow"], [1], {}, [{}],
    {"one": "sum"}, {"one": "trained", "tow": "sum"}, {"one": 3}, {"time": 0}, {"time": -1}, {"time": "t"}, {"size": 1},
    {"size": "t"}, {"use": "first"}, {"one": "gate"}, [{"name": "x"}], [{"name": "x", "until": -1}], "t", "é",
    np.ones(2),
)  # fmt: skip


def mutated(seed):
    """A valid declaration with an entry or two replaced, removed, or given to another key."""
    rng = random.Random(seed)
    tables = copy.deepcopy(rng.choice(VALID))
    return alter(tables, rng, KEYS, VALUES)


def answer(tables):
    """ "run", or the sentence of the refusal."""
    return answer_of(lambda: odesim.declare(**{"name": "mutated", **tables}))


def answer_of(make):
    """The same of the model that `make` declares: every stage is entered, and its functions are written."""
    try:
        model = make()
        for stage in model.stages:
            parameters = stage.adapt(model.parameters(d=30))
            model.check(parameters)
            settled(parameters)
            enter(parameters, None, np.random.default_rng(0))
            compile(responses.module(parameters.declaration), "responses", "exec")
            compile(stage.truth(parameters).written(), "written", "exec")
    except UsageError as error:
        return str(error)
    return "run"


@pytest.mark.parametrize("part", range(5))
def test_every_mutated_declaration_is_read_or_refused(part):
    answers = [answer(mutated(seed)) for seed in range(part * MUTATIONS // 5, (part + 1) * MUTATIONS // 5)]
    assert all(said and "\n" not in said and len(said) < 1000 for said in answers)
    assert len(answers) / 10 < answers.count("run") < 9 * len(answers) / 10
    assert len(set(answers)) > 20
