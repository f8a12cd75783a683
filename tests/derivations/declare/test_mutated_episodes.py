"""Tables with episodes that were valid and are no longer: each is run, or refused in one sentence."""

import copy
import math
import random

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError
from tests.derivations.declare.test_mutated_tasks import answer_of
from tests.derivations.declare.test_mutated_training import alter

MUTATIONS, UNTIL = 500, 0.2
EPISODE = {"samples": 3, "success": "step(f*y)", "reward": "step(n - T + 0.5)"}
VALID = (
    {"training": {"limit": "online", "episode": EPISODE, "rule": "-((1 + kappa)*R - kappa)*sign(w)"}},
    {"training": {"episode": {**EPISODE, "reward": "n/T"}, "rule": {"w": "R*dl*df", "a": "tanh(R)*grad"}}},
    {
        "training": {
            "limit": "online", "weights": "sphere", "batch": 2,
            "episode": {**EPISODE, "success": "step(kappa - abs(f - y))*step(y)"}, "rule": "R^2*w",
        },
    },
    {
        "training": {"limit": "online", "episode": EPISODE, "rule": {"w": "R*w"}},
        "stage": [{"name": "one", "until": 1, "rule": {"w": "-y"}}, {"name": "two", "until": 2}],
    },
)  # fmt: skip
STUDENTS = ({"unit": "sign(w)"}, {"unit": "w", "output": "trained"}, {"unit": "erf(w)", "units": 2})
VALUES = (
    0, -1, 0.5, 1, 2, 3, 4, 100, "n", "2*n - T", "n^2/T", "step(n - 1.5)", "step(f*y - 0.1)", "step(y)",
    "R*f", "R*sign(w)", "-R*y*w", "(R - kappa)*dl*df", 101, 1e200, math.nan, math.inf, True, None, "", "x", "n", "T",
    "R", "w", "f", "y", "n/T",
    "1/n", "log(n)", "n^T", "step(n)", "step(f)", "step(y)*step(f)", "step(1)", "step(kappa)", "step(w)", "step(n)*f",
    "f*y", "1 - step(f)", "step(f) + step(y)", "step(f)^2", "softmax(n)", "He(2, n)", "clip(n, 1)", "R*w", "R*y",
    "R/R", "1/R", "exp(R)*w", "exp(R*w*w)", "R*gnorm", "R*l", "tanh(R*w)", "abs(w)*R", "kappa*R", "(", "é", [], {},
    {"samples": 2}, EPISODE, {**EPISODE, "samples": 1}, {**EPISODE, "reward": "exp(800*n)"}, {"w": "R"},
    {"a": "R*df"}, [[0, "R"]], np.ones(2),
)  # fmt: skip
KEYS = ("episode", "samples", "success", "reward", "rule", "w", "a", "look", "R", "T")


def mutated(seed):
    """A valid declaration with an entry or two replaced, removed, or given to another key."""
    rng = random.Random(seed)
    tables = copy.deepcopy(rng.choice(VALID))
    tables["student"] = rng.choice(STUDENTS)
    if "a" in str(tables["training"].get("rule")) and isinstance(tables["training"]["rule"], dict):
        tables["student"] = STUDENTS[1]
    return alter({key: tables[key] for key in tables if key != "student"}, rng, KEYS, VALUES) | {
        "student": tables["student"]
    }


def declared(tables):
    return odesim.declare(name="mutated", parameters={"kappa": 0.8}, start={"overlap": 0.3}, **tables)


def answer(tables):
    """ "run", or the sentence of the refusal."""
    return answer_of(lambda: declared(tables))


def test_every_mutated_episode_is_read_or_refused():
    answers = [answer(mutated(seed)) for seed in range(MUTATIONS)]
    assert all(said and "\n" not in said and len(said) < 1000 for said in answers)
    assert MUTATIONS / 16 < answers.count("run") < 9 * MUTATIONS / 10
    assert len(set(answers)) > 40


@pytest.mark.parametrize("seed", range(4))
def test_what_is_read_can_be_run(seed):
    tables = next(t for t in map(mutated, range(100 * seed, 100 * seed + 100)) if answer(t) == "run")
    more = {"d": 30, "save_points": 3, **({} if "stage" in tables else {"until": UNTIL})}
    try:
        runs = [odesim.integrate(declared(tables), points=2**12, **more),
                odesim.simulate(declared(tables), method="compressed", batch=2, **more)]  # fmt: skip
    except UsageError as error:
        if "would follow noise" in str(error):
            return
        raise
    assert all(np.isfinite(np.asarray(run["M_ww"])).all() for run in runs)
