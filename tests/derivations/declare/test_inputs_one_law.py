"""Compressed and explicit SGD have one law: blocks of 1 to 300 coordinates, two clusters, after one and four steps.

Vectors are given by their coordinates, so that a block of a single one has the parts of all of them.
"""

import dataclasses
import functools

import numpy as np
import pytest

from derivations.declare import initial
from derivations.declare.model import model
from odesim.sgd import spaces
from odesim.sgd.scalar_traced import ScalarReplicas
from odesim.sgd.simulation import explicit_rows
from tests.derivations.declare import judged
from tests.derivations.declare.test_inputs import parameters_of

pytestmark = pytest.mark.slow

REPLICAS = 6000
LEAST_CHANCE = 1e-3
"""Of the least p-value of all laws of a case, times their number."""
MOMENTS, FURTHEST = (0.7, 1.35), 5.5
"""Bounds of the root mean square of z of moments up to the third, some hundred correlated ones, and of the largest."""
TOLD = 1e-6
"""Of the least p-value of laws that are not the same."""
DIMENSIONS = {"1, 3 and 300": (1, 3, 300), "5, 6 and 40": (5, 6, 40)}


def tables_of(dimensions, weights):
    d = sum(dimensions)
    return {
        "student": {"unit": "erf(w)", "units": 2, "output": "trained"},
        "teacher": {"unit": "erf(w)", "noise": 0.2},
        "inputs": {
            "blocks": [[2.0, dimensions[0] / d], [0.7, dimensions[1] / d], [0.3, "rest"]],
            "means": {"mu": 1.0},
            "cluster": [
                {"p": 0.7, "mean": "mu"}, {"p": 0.3, "mean": "-0.5*mu", "eigenvalues": [0.5, 1.5, 0.6]},
            ],
        },
        "training": {"weights": weights, **({"decay": 0.1} if weights == "free" else {})},
        "start": {"a": 0.7},
    }  # fmt: skip


def vectors(dimensions):
    """Two students, a teacher and a mean that have parts of size 1 in every block."""
    rng = np.random.default_rng(7)
    parts = [rng.normal(size=(4, m)) * np.sqrt(0.6 / m) for m in dimensions]
    w, teacher, mean = np.split(np.hstack(parts), [2, 3])
    return {"w": w, "w_star": teacher, "mean_m_star": mean, "a": np.array([0.8, -0.4])}


@functools.lru_cache(maxsize=8)
def after(kind, blocks, weights, batch):
    """The numbers (replicas, ..) of Gram matrices and readouts after one step, and after four."""
    from odesim.machine import device

    device.configure("cpu")
    dimensions = DIMENSIONS[blocks]
    p, arrays = parameters_of(tables_of(dimensions, weights), d=sum(dimensions)), vectors(dimensions)
    start, made = initial.enter(p, arrays, np.random.default_rng(0)), model(p)
    assert made.spaces(p).dimension.tolist() == list(dimensions)
    grams = np.array([made.place(start)] * REPLICAS)
    explicit = kind == "explicit"
    rows = explicit_rows(made, arrays, grams, p.d, made.sizes(p)[0], made.spaces(p), 0) if explicit else None
    run = ScalarReplicas(made, [start] * REPLICAS, grams, p.d, batch, 0.05, 1 + explicit, rows=rows)
    found = [run.grams()]
    for steps in (1, 3):
        assert run.advance(steps)
        found.append(run.grams())
    return found


def distinct(numbers):
    """The columns of numbers that move, each once: a Gram matrix has most of its entries twice."""
    moves = numbers.std(0) > 1e-9
    _, first = np.unique(numbers[:2].round(12), axis=1, return_index=True)
    return np.flatnonzero(moves & np.isin(np.arange(numbers.shape[1]), first))


def moments_apart(one, two):
    """z of the differences of means, squares, third powers and products, about the means of the first sample."""
    size, centre = one.std(0), one.mean(0)
    one, two = (one - centre) / size, (two - centre) / size
    powers = [(one**k, two**k) for k in (1, 2, 3)]
    pairs = [(one[:, [i]] * one[:, i + 1 :], two[:, [i]] * two[:, i + 1 :]) for i in range(one.shape[1] - 1)]
    return np.concatenate([
        (a.mean(0) - b.mean(0)) / np.sqrt((a.var(0) + b.var(0)) / len(a)) for a, b in powers + pairs
    ])  # fmt: skip


def apart(blocks, weights, batch):
    """The least p-value times the number of laws, that number, and z of moments, of both numbers of steps."""
    chances, count, z = [], 0, []
    begun, *one = after("explicit", blocks, weights, batch)
    again, *two = after("compressed", blocks, weights, batch)
    assert begun == pytest.approx(again, abs=1e-12)
    for each, other in zip(one, two, strict=True):
        columns = distinct(each)
        chance, laws = judged.least_chance(each[:, columns], other[:, columns])
        chances.append(chance)
        count += laws
        z.append(moments_apart(each[:, columns], other[:, columns]))
    return min(chances) * count, count, np.concatenate(z)


@pytest.mark.parametrize("weights", ["free", "sphere", "normalised"])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("blocks", list(DIMENSIONS))
def test_explicit_and_compressed_sgd_have_one_law(blocks, batch, weights):
    chance, count, z = apart(blocks, weights, batch)
    assert count > 40 and len(z) > 400
    assert chance > LEAST_CHANCE
    assert MOMENTS[0] < judged.root_mean_square(z) < MOMENTS[1] and np.abs(z).max() < FURTHEST


@pytest.mark.parametrize("weights", ["free", "sphere", "normalised"])
@pytest.mark.parametrize(("blocks", "count"), [("5, 6 and 40", 3), ("1, 3 and 300", 60)])
def test_dimensions_too_many_are_another_law(blocks, count, weights, monkeypatch):
    """The control: the parts outside of all vectors have more degrees of freedom than their dimension gives.

    Three are seen in a block of 6; of 300 dimensions they are a hundredth, which 6000 replicas cannot see.
    """
    right = spaces.Parts.of.__func__

    def wider(cls, held, n, rank):
        found = right(cls, held, n, rank)
        more = tuple(m + count if k in found.factored else m for k, m in enumerate(found.dimensions))
        return dataclasses.replace(found, dimensions=more)

    begun, *one = after("explicit", blocks, weights, 1)
    monkeypatch.setattr(spaces.Parts, "of", classmethod(wider))
    again, *two = after.__wrapped__("compressed", blocks, weights, 1)
    assert begun == pytest.approx(again, abs=1e-12)
    columns = distinct(one[-1])
    chance, laws = judged.least_chance(one[-1][:, columns], two[-1][:, columns])
    assert chance * laws < TOLD
