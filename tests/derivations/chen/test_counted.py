"""Counted batches: the same law as drawn examples, at a cost free of their number, with the flow as their limit."""

import numpy as np
import pytest

from derivations.chen import counting, initial, model
from derivations.chen.parameters import Parameters
from odesim import simulate
from odesim.evidence.laboratory import Laboratory
from odesim.request.case import find_system
from odesim.sgd.counted import CountedChains, chains, replicas
from odesim.sgd.patterns import PatternChains

LAWS = {"laws": "points", "alpha": (0.5, 1.5, 1.5), "beta": (1.0, 2.0), "gamma": (1.0,)}


def start_of(**parameters):
    p = Parameters(**{"M": 3, "J": 2, "K": 2, "d": 4, "n_test": 4, "rho": 1.0, **LAWS, **parameters})
    rng = np.random.default_rng(5)
    filters, routers = 0.6 * rng.normal(size=(2, p.M, p.J, p.K)), 0.4 * rng.normal(size=(2, p.M, p.K))
    return initial.from_overlaps(p, *filters, *routers)


def make(kind, start, batch, seed=0):
    return kind(model.MODEL, [start], None, compressed=True, batch=batch, step_size=0.1, seed=seed)


def descents(engine, count):
    """`count` independent descents from one state, (count, size): expert gradients before normalisation, routers."""
    found = []
    for _ in range(count):
        filters, _, routers, loss = engine.descent(0)
        found.append(np.concatenate([filters.ravel(), routers.ravel(), [loss]]))
    return np.array(found)


def product_scores(a, b):
    """z-scores of the differences of all second moments (around the common mean) of two sets of samples."""
    centre = (a.mean(axis=0) + b.mean(axis=0)) / 2
    i, j = np.triu_indices(a.shape[1])
    first, second = ((x - centre)[:, i] * (x - centre)[:, j] for x in (a, b))
    error = np.sqrt(first.var(axis=0) / len(a) + second.var(axis=0) / len(b))
    moving = error > 1e-12
    return (first.mean(axis=0) - second.mean(axis=0))[moving] / error[moving]


@pytest.mark.parametrize(
    ("data", "n", "batch"),
    [("online", 0, 150), ("fixed", 0, 150), pytest.param("fixed", 400, 150, marks=pytest.mark.slow)],
    ids=["fresh", "full", "part"],
)
def test_a_counted_step_has_the_law_of_a_drawn_one(data, n, batch):
    start = start_of(data=data, n=n)
    counted, drawn = (
        descents(make(CountedChains, start, batch), 1600),
        descents(make(PatternChains, start, batch, 1), 1600),
    )
    error = np.sqrt((counted.var(axis=0) + drawn.var(axis=0)) / 1600)
    z = (counted.mean(axis=0) - drawn.mean(axis=0))[error > 1e-12] / error[error > 1e-12]
    # 37 means and 703 second moments: |z| > 4.5 in one of 200 sets of independent ones, and the seeds are fixed.
    assert np.abs(z).max() < 4 and 0.5 < np.sqrt((z**2).mean()) < 1.5
    z = product_scores(counted, drawn)
    assert z.size > 500 and np.abs(z).max() < 4.5 and np.sqrt((z**2).mean()) < 1.5


def test_fewer_routed_examples_would_be_noticed():
    # The same comparison tells a batch of 150 from one of 210: the test above has power against a wrong variance.
    start = start_of(data="online")
    z = product_scores(
        descents(make(CountedChains, start, 210), 1600), descents(make(PatternChains, start, 150, 1), 1600)
    )
    assert np.sqrt((z**2).mean()) > 2


def test_the_configurations_have_the_chances_of_the_data():
    start = start_of(K=3)
    listed, chance = counting.configurations(start.parameters)
    assert len(listed) == 3 * 2 * 4 * 6 and chance.sum() == pytest.approx(1)
    # By hand: alpha = 1.5 twice in three, k' differs from k, centre and feature belong to the same cluster.
    assert chance[np.abs(listed.amplitudes[0]) == 1.5].sum() == pytest.approx(2 / 3)
    assert (listed.atoms[1] == listed.atoms[0] + 3).all() and (listed.atoms[2] != listed.atoms[0]).all()
    assert (np.sign(listed.amplitudes[0]) == listed.labels).all()
    assert abs((chance * listed.labels * np.sign(listed.amplitudes[2])).sum()) < 1e-15


@pytest.mark.parametrize("engine", ["online", "fixed"])
def test_a_step_touches_arrays_of_configurations_only(engine, monkeypatch):
    sizes = []
    start = start_of(data=engine, n=0 if engine == "online" else 3000)
    chain = make(CountedChains, start, 10**12 if engine == "online" else 3000)
    passed = chain.compiled.descend_counted

    def counted(weights, configurations, logits, counts):
        sizes.extend(x.size for x in (*weights, *configurations, logits, counts))
        return passed(weights, configurations, logits, counts)

    monkeypatch.setattr(chain.compiled, "descend_counted", counted)
    monkeypatch.setattr(chain, "pass_over", None)
    assert chain.advance(3)
    # Expert by configuration or signal by configuration; a set merges the value of alpha that the law lists twice.
    assert max(sizes) == 3 * len(chain.listed) and len(chain.listed) == (48 if engine == "online" else 32)


def test_infinitely_many_examples_give_the_exact_flow():
    # Fluctuations of 10^15 examples are of relative order 1e-7.
    start = start_of(data="online")
    chain = make(CountedChains, start, 10**15)
    before = chain.weights[0]
    assert chain.advance(1)
    flow = Laboratory(find_system("chen")).functions(start, "p3").flow(start.state)
    filters, routers = (
        (chain.weights[0].filters - before.filters) / 0.1,
        (chain.weights[0].routers - before.routers) / 0.1,
    )
    assert np.abs(filters - np.concatenate([flow["feat"], flow["cen"]], axis=-1)).max() < 2e-6
    assert np.abs(routers - np.concatenate([flow["gfeat"], flow["gcen"]], axis=-1)).max() < 1e-6


def test_without_routing_noise_every_example_is_where_it_would_be():
    start = start_of(noise=False)
    counted, drawn = make(CountedChains, start, 500), make(PatternChains, start, 500)
    for a, b in zip(counted.descent(0), drawn.descent(0), strict=True):
        assert np.abs(a - b).max() < 1e-12
    for a, b in zip(counted.saved()[0], drawn.saved()[0], strict=True):
        assert a == pytest.approx(b, abs=1e-12)


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"data": "online"}, "counts of 48 configurations"),
        ({"variant": "released"}, "examples: variant released"),
        ({"laws": "uniform", "alpha": (0.5, 1.0), "beta": (1.0,)}, "examples: the law of alpha is continuous"),
        ({"laws": "uniform", "alpha": (0.5,), "beta": (1.0,)}, "counts of 8 configurations"),
        ({"batch": 40}, "examples: a batch of 40 is smaller than the 48 configurations"),
    ],
)
def test_a_run_says_whether_it_counted(extra, words):
    size = {"M": 3, "J": 2, "K": 2, "d": 4, "n_test": 4, **LAWS, "batch": 64, "step_size": 0.1, "until": 0.1}
    assert simulate("chen", method="compressed", **{**size, **extra}).summary["batches"].startswith(words)
    assert "batches" not in simulate("chen", method="explicit", **{**size, "batch": 64}).summary


def test_jax_draws_examples_and_says_so():
    engine = replicas(model.MODEL, [start_of()], None, compressed=True, batch=64, step_size=0.1, seed=0)
    assert engine.batches.startswith("examples: back end jax")


def test_a_stopped_counted_run_resumes():
    start = start_of(data="online")
    once, first, second = (make(chains, start, 1000) for _ in range(3))
    once.advance(6)
    first.advance(2)
    second.restore(first.state())
    second.advance(4)
    assert isinstance(second, CountedChains) and (second.weights[0].filters == once.weights[0].filters).all()
