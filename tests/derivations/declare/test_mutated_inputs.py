"""Tables [inputs] and spreads that were valid and are no longer: each is run, or refused in one sentence."""

import copy
import math
import random

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError
from derivations.declare import inputs

MUTATIONS = 300
VALID = (
    {"inputs": {"blocks": [[2.0, 0.3], ["1/(1 + low)", "rest"]], "trace": 1.0}, "teacher": {"spread": [0.5, 0.5]}},
    {"inputs": {"blocks": [[1.5, "2/d"], [0.5, "rest"]]}, "teacher": {"spread": "random"}},
    {"inputs": {"spectrum": "j^(-1 - low)", "bins": 6}, "teacher": {"spread": "j^(-low)"}},
    {"inputs": {"spectrum": "spectrum.npy", "bins": 4, "trace": "2*low"}, "teacher": {"spread": "even"}},
    {"inputs": {"data": "X.npy", "bins": 5}, "teacher": {"spread": "teacher.npy"}},
    {"inputs": {"data": "X.csv", "trace": 0.5}, "teacher": {}},
    {"inputs": {"data": "X.npy", "label": "y.npy"}, "teacher": {"noise": 0.1}},
    {"inputs": {"covariance": "C.npy", "bins": 3}, "teacher": {"spread": "teacher.npy"}},
    {"inputs": {"data": "X.csv", "centre": False}, "teacher": {"spread": "random"}},
)
VALUES = (
    0,
    -1,
    1,
    2,
    0.5,
    1e-320,
    1e9,
    1e200,
    10**30,
    math.nan,
    math.inf,
    -math.inf,
    True,
    None,
    "",
    "x",
    "j",
    "d",
    "even",
    "random",
    "rest",
    "1/0",
    "1/(j - 3)",
    "j^j",
    "exp(j)",
    "(",
    "low",
    "sqrt(-1)",
    "He(13, j)",
    "softmax(j)",
    "X.npy",
    "spectrum.npy",
    "teacher.npy",
    "y.npy",
    "C.npy",
    "empty.csv",
    "text.csv",
    "nowhere.npy",
    ".npy",
    "/",
    "\0.npy",
    "é",
    [],
    [[]],
    [[1.0]],
    [[1.0, 1.0]],
    [[0.0, 1.0]],
    [[1.0, 0.5], [1.0, 0.5, 3.0]],
    [1.0],
    [0.2, 0.8],
    [[[1.0, 1.0]]],
    [["a", "b"]],
    {},
    {"sha256": 1},
    {"sha256": "0" * 64, "file": "X.npy", "shape": [3, 3], "dimension": 3},
    {"sha256": "0" * 64, "shape": [-1]},
    {"file": "X.npy"},
    {"blocks": 1},
    np.eye(3),
    np.array([]),
    np.array("x"),
    np.array([1.0, np.nan]),
    np.zeros((2, 0)),
    np.ones((2, 2, 2)),
    np.array([["a", "b"]]),
    3 + 2j,
    object(),
    b"X.npy",
    range(3),
    (1.0, 2.0),
    1e400,
)
KEYS = (*inputs.KEYS, "spread", "block", "Data", "", "gram", "norm", "é", "0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("inputs")
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(9, 8))
    np.save(place / "X.npy", samples)
    np.savetxt(place / "X.csv", samples, delimiter=",")
    np.save(place / "spectrum.npy", rng.uniform(0.1, 2, 8))
    np.save(place / "y.npy", np.where(samples[:, 0] > 0, 1.0, -1.0))
    np.save(place / "C.npy", samples.T @ samples)
    np.save(place / "teacher.npy", rng.normal(size=(1, 8)))
    (place / "empty.csv").write_text("")
    (place / "text.csv").write_text("a,b\n1,x\n")
    return place


def mutated(seed):
    """Valid tables with one or two entries, keys, or characters changed."""
    rng = random.Random(seed)
    made = copy.deepcopy(rng.choice(VALID))
    for _ in range(rng.randint(1, 2)):
        table = made[rng.choice(("inputs", "inputs", "teacher"))]
        kind = rng.randrange(6)
        key = rng.choice(list(table) or ["spread"])
        if kind <= 1:
            table[key] = copy.deepcopy(rng.choice(VALUES))
        elif kind == 2:
            table[rng.choice(KEYS)] = copy.deepcopy(rng.choice(VALUES))
        elif kind == 3:
            table.pop(key, None)
        elif isinstance(table.get(key), str):  # a character
            text = table[key]
            at = rng.randrange(len(text) + 1)
            table[key] = text[:at] + rng.choice("()*^/-+,.j09\0 ed") + text[at + (kind == 4) :]
        elif isinstance(table.get(key), list):  # an entry of a list, at some depth
            entries = table[key]
            while entries and isinstance(entries[0], list) and rng.random() < 0.7:
                entries = rng.choice([entry for entry in entries if isinstance(entry, list)] or [[]])
            entries.insert(rng.randrange(len(entries) + 1), copy.deepcopy(rng.choice(VALUES)))
            if len(entries) > 1 and kind == 4:
                entries.pop(rng.randrange(len(entries)))
    return made


def test_every_mutated_table_is_run_or_refused_in_a_sentence(folder, monkeypatch):
    monkeypatch.chdir(folder)
    ended = {"run": 0, "refused": 0}
    said = []
    for seed in range(MUTATIONS):
        tables = {"student": {"unit": "w"}, "parameters": {"low": 0.4}, **mutated(seed)}
        try:
            model = odesim.declare(**tables)
            run = odesim.integrate(model, until=0.01, save_points=2)
            ended["run"] += 1
            assert np.isfinite(run["Q_ww"]).all() or run.outcome.kind == "failed", seed
        except UsageError as error:
            ended["refused"] += 1
            said.append(str(error))
    assert all(text and "\n" not in text and len(text) < 1000 for text in said)
    assert min(ended.values()) > 50
