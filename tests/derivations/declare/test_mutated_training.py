"""Tables with rates and schedules that were valid and are no longer: each is run, or refused in one sentence."""

import copy
import math
import random

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError
from derivations.declare import schedules

MUTATIONS = 500
UNTIL = 0.2
VALID = (
    {"limit": "online", "step": "kappa/(1 + t)", "rates": {"w": 1.0, "a": [[0, 0.0], [0.1, "0.5 + t"]]}},
    {"limit": "online", "step": [[0, 1.0], [0.1, "abs(t - 0.05) + 0.1"]], "decay": "0.1*exp(-t)", "rates": 0.5},
    {"limit": "flow", "rates": "1 - 0.5*step(t - 0.1)", "decay": [[0, 0.1], [0.15, 0.0]]},
    {"limit": "batch", "step": [[0, 1.0], [1, "kappa"]], "batch": "3*d", "decay": "0.1*t", "rates": {"a": 0.5}},
    {"limit": "batch", "step": 0.5, "batch": "kappa*d + 4", "momentum": 0.5, "nesterov": True},
    {"limit": "batch", "batch": "inf", "weights": "sphere"},
    {"limit": "online", "weights": "sphere", "step": "0.2 + relu(1 - kappa*t)", "rates": {"a": "logistic(t)"}},
)
NOISES = (0.1, "0.1*sqrt(1 + t)", [[0, 0.2], [0.05, 0.0]])
VALUES = (
    0, -1, 1, 0.5, 1e-320, 1e9, 1e200, 10**30, math.nan, math.inf, True, None, "", "x", "t", "t^t", "1/t",
    "1/(t - 0.1)", "step(t^2 - 1)", "sign(t)*relu(t)", "step(1/t)", "abs(kappa)", "exp(1000*t)", "log(t)", "(", "w",
    "M_ww",
    "He(2, t)", "softmax(t)", "1/0", "-t", "t - 0.1", "step(0*t)", "step(kappa - 1)", [], [[]], [[0]], [[0, 1]],
    [[0, "t"]], [[0, 1], [0, 2]], [[1, 1]], [[0, 1], [-1, 2]], [[0, [1]]], [["0", 1]], [[0, 1], [math.inf, 1]],
    [[0, None]], {}, {"w": 1}, {"w": {}}, {"v": 1}, {"": 1}, {"w": "t", "a": "t"}, np.ones(3), np.array([[0.0, 1.0]]),
    "é", "3*d", "inf", "d", "d/1000", "exp(d)", "batch",
)  # fmt: skip
KEYS = ("step", "rates", "decay", "batch", "until", "rate", "t", "limit", "momentum", "nesterov", "weights")


def places(table, path=()):
    """All paths into nested tables and lists."""
    yield path
    items = table.items() if isinstance(table, dict) else enumerate(table) if isinstance(table, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


def alter(tables, rng, keys, values, kinds=4, depth=2):
    """Replace an entry or two at `depth` or deeper, or remove one below the first level, or give it to another key."""
    for _ in range(rng.choice((1, 1, 1, 2))):
        path = rng.choice([path for path in places(tables) if len(path) >= depth])
        inner = tables
        for key in path[:-1]:
            inner = inner[key]
        kind = rng.randrange(kinds)
        if kind == 0 and isinstance(inner, dict) and len(path) > 1:
            del inner[path[-1]]
        elif kind == 1 and isinstance(inner, dict) and len(path) > 1:
            inner[rng.choice(keys)] = inner.pop(path[-1])
        else:
            inner[path[-1]] = copy.deepcopy(rng.choice(values))
    return tables


def mutated(seed):
    """A valid table of training and a noise with an entry or two replaced, removed, or given to another key."""
    rng = random.Random(seed)
    tables = {"training": copy.deepcopy(rng.choice(VALID)), "noise": copy.deepcopy(rng.choice(NOISES))}
    return alter(tables, rng, KEYS, VALUES, depth=1)


def end(model):
    """The end of a run: giant steps are whole."""
    return 2.0 if model.parameters.declaration.limit == "batch" else UNTIL


def answer(tables):
    """ "run", or the sentence of the refusal."""
    try:
        model = odesim.declare(
            name="mutated",
            student={"unit": "w", "output": "trained"},
            teacher={"noise": tables["noise"]},
            training=tables["training"],
            parameters={"kappa": 0.8},
            start={"overlap": 0.3},
        )
        parameters = model.parameters(d=20)
        model.check(parameters)
        schedules.require(parameters, end(model))
        at = [schedules.at(parameters, t) for t in (0.0, 0.1, end(model))]
        assert all(one.noise >= 0 and one.decay >= 0 and one.step >= 0 for one in at)
        text = model.stages[0].truth(parameters).written()
        compile(text, "written", "exec")
    except UsageError as error:
        return str(error)
    return "run"


def test_every_mutated_table_of_training_is_read_or_refused():
    answers = [answer(mutated(seed)) for seed in range(MUTATIONS)]
    assert all(said and "\n" not in said and len(said) < 1000 for said in answers)
    assert MUTATIONS / 10 < answers.count("run") < 9 * MUTATIONS / 10
    assert len(set(answers)) > 40


@pytest.mark.parametrize("seed", [0, 2, 5])
def test_what_is_read_can_be_run(seed):
    tables = next(t for t in map(mutated, range(100 * seed, 100 * seed + 100)) if answer(t) == "run")
    model = odesim.declare(
        name="mutated", student={"unit": "w", "output": "trained"}, teacher={"noise": tables["noise"]},
        training=tables["training"], parameters={"kappa": 0.8}, start={"overlap": 0.3},
    )  # fmt: skip
    run = odesim.integrate(model, d=20, until=end(model), save_points=3)
    sgd = odesim.simulate(model, d=20, until=end(model), save_points=3, method="compressed", batch=4)
    assert np.isfinite(run["M_ww"]).all() and np.isfinite(sgd["M_ww"]).all()
