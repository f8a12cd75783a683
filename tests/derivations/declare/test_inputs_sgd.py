"""SGD on inputs with eigenvalues, explicit against compressed and against its limit; and what is refused."""

import dataclasses

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError
from derivations.declare import initial, parameter_class, reading
from derivations.declare.model import model
from odesim.sgd import spaces
from odesim.sgd.scalar_traced import ScalarReplicas
from odesim.sgd.simulation import explicit_rows
from tests.derivations.declare import judged
from tests.derivations.declare.test_inputs import LINEAR, PHASE, PLATEAU, parameters_of

# -- SGD


def states(tables, kind, replicas, batch, steps, seed, **numbers):
    """The states of explicit or compressed SGD some steps after one start, (replicas, n n L + s)."""
    from odesim.machine import device

    device.configure("cpu")
    p = parameters_of(tables, **numbers)
    start = initial.enter(p, None, np.random.default_rng(5))
    made = model(p)
    grams = np.array([made.place(start)] * replicas)
    rows = None
    if kind == "explicit":
        rows = explicit_rows(made, None, grams, p.d, made.sizes(p)[0], made.spaces(p), seed)
    run = ScalarReplicas(made, [start] * replicas, grams, p.d, batch, 0.05, seed, rows=rows)
    begun = run.grams()
    assert run.advance(steps)
    return begun, run.grams()


SMALL = {
    "student": {"unit": "erf(w)", "units": 2, "output": "trained"},
    "teacher": {"unit": "erf(w)", "noise": 0.2, "spread": "random"},
    "training": {"decay": 0.1},
}
BLOCKS = {
    "tiny, small and large": ([[2.0, "1/d"], [0.7, "3/d"], [0.3, "rest"]], 300),
    "around the number of vectors": ([[2.0, "5/d"], [0.7, "6/d"], [0.3, "rest"]], 51),
}


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["free", "sphere", "normalised"])
@pytest.mark.parametrize(("batch", "steps"), [(1, 1), (3, 4)])
@pytest.mark.parametrize("blocks", list(BLOCKS))
def test_explicit_and_compressed_steps_have_one_law(weights, batch, steps, blocks):
    values, d = BLOCKS[blocks]
    training = {"weights": weights} if weights == "normalised" else {**SMALL["training"], "weights": weights}
    tables = {**SMALL, "inputs": {"blocks": values}, "training": training}
    replicas = 3000
    begun, one = states(tables, "explicit", replicas, batch, steps, 1, d=d)
    again, two = states(tables, "compressed", replicas, batch, steps, 2, d=d)
    assert begun == pytest.approx(again, abs=1e-12)
    judged.assert_one_law(one, two)


@pytest.mark.slow
def test_three_more_dimensions_outside_are_another_law(monkeypatch):
    values, d = BLOCKS["around the number of vectors"]
    tables = {**SMALL, "inputs": {"blocks": values}}
    _, one = states(tables, "explicit", 3000, 3, 4, 1, d=d)
    right = spaces.Parts.of.__func__

    def wider(cls, held, n, rank):
        found = right(cls, held, n, rank)
        more = tuple(m + 3 if k in found.factored else m for k, m in enumerate(found.dimensions))
        return dataclasses.replace(found, dimensions=more)

    monkeypatch.setattr(spaces.Parts, "of", classmethod(wider))
    _, two = states(tables, "compressed", 3000, 3, 4, 2, d=d)
    assert judged.least_chance(one, two)[0] < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["committee", "phase retrieval"])
def test_sgd_follows_the_online_limit(name):
    d = 2000
    tables = {
        "committee": {
            **{key: value for key, value in PLATEAU.items() if key != "start"},
            "start": {"norm": 0.5, "overlap": 0.2},
        },
        "phase retrieval": PHASE,
    }[name]
    made = odesim.declare(**tables)
    until = {"committee": 20, "phase retrieval": 15}[name]
    numbers = {"low": 0.25} if name == "committee" else {}
    flow = odesim.integrate(made, d=d, until=until, save_points=6, **numbers)
    sgd = odesim.simulate(made, method="compressed", d=d, until=until, save_points=6, seeds=64, **numbers)
    z = []
    for order in ("Q_ww", "M_ww"):
        values = np.asarray(sgd[order])[:, 1:].reshape(64, -1)
        wanted = np.asarray(flow[order])[1:].ravel()
        seen = values.std(0) > 1e-9
        z.append(((values.mean(0) - wanted) / (values.std(0, ddof=1) / 8))[seen])
    z = np.concatenate(z)
    assert 0.6 < np.sqrt((z**2).mean()) < 1.6 and np.abs(z).max() < 5


def test_a_resumed_run_of_blocks_is_the_uninterrupted_one():
    values, d = BLOCKS["tiny, small and large"]
    p = parameters_of({**SMALL, "inputs": {"blocks": values}}, d=d)
    start, made = initial.enter(p, None, np.random.default_rng(5)), model(p)
    grams = np.array([made.place(start)] * 2)
    whole, first, second = (ScalarReplicas(made, [start] * 2, grams, d, 3, 0.05, 1) for _ in range(3))
    assert whole.advance(5) and first.advance(2)
    second.restore(first.state())
    assert second.advance(3)
    assert np.array_equal(whole.grams(), second.grams())


def test_given_weights_keep_their_coordinates():
    p = parameters_of({**SMALL, "inputs": {"blocks": [[2.0, 0.3], [0.5, 0.7]]}}, d=20)
    rng = np.random.default_rng(1)
    arrays = {"w": rng.normal(size=(2, 20)), "w_star": rng.normal(size=(1, 20))}
    start = initial.enter(p, arrays, rng)
    every = np.vstack([arrays["w"], arrays["w_star"]])
    gram = parameter_class.rows(p).gram({**start.state, **start.constants})
    assert gram[0] == pytest.approx(every[:, :6] @ every[:, :6].T)
    assert gram[1] == pytest.approx(every[:, 6:] @ every[:, 6:].T)


# -- what is refused

REFUSED = {
    "shares": ({"inputs": {"blocks": [[1.0, 0.5], [2.0, 0.4]]}}, "sum to 0.9"),
    "no rest": ({"inputs": {"blocks": [[1.0, 0.7], [2.0, 0.4], [3.0, "rest"]]}}, "nothing is left for"),
    "two rests": ({"inputs": {"blocks": [[1.0, "rest"], [2.0, "rest"]]}}, "only one block may"),
    "negative": ({"inputs": {"blocks": [[-1.0, 0.5], [2.0, 0.5]]}}, "at least 0"),
    "all zero": ({"inputs": {"blocks": [[0.0, 0.5], [0.0, 0.5]]}}, "nothing to learn"),
    "both": ({"inputs": {"blocks": [[1.0, 1.0]], "spectrum": "j^(-1)"}}, "one of the four"),
    "neither": ({"inputs": {"bins": 3}}, "one of the four"),
    "bins of blocks": ({"inputs": {"blocks": [[1.0, 1.0]], "bins": 4}}, "blocks are given"),
    "unknown name": ({"inputs": {"spectrum": "j^(-alpa)"}, "parameters": {"alpha": 1.0}}, "alpha"),
    "unknown key": ({"inputs": {"block": [[1.0, 1.0]]}}, "blocks"),
    "not positive": ({"inputs": {"spectrum": "1 - j/10"}}, "must lie between"),
    "not finite": ({"inputs": {"spectrum": "1/(j - 3)"}}, "not finite"),
    "form of blocks": ({"inputs": {"blocks": [1.0, 2.0]}}, "list of"),
    "trace": ({"inputs": {"blocks": [[1.0, 1.0]], "trace": -1.0}}, "trace must be above 0"),
    "spread alone": ({"teacher": {"spread": "even"}}, "but there is no table"),
    "spread of other length": (
        {"inputs": {"blocks": [[1.0, 0.5], [2.0, 0.5]]}, "teacher": {"spread": [0.2, 0.3, 0.5]}}, "3 shares",
    ),
    "spread that does not sum": (
        {"inputs": {"blocks": [[1.0, 0.5], [2.0, 0.5]]}, "teacher": {"spread": [0.2, 0.3]}}, "sum to 0.5",
    ),
    "list for a spectrum": ({"inputs": {"spectrum": "j^(-1)"}, "teacher": {"spread": [0.5, 0.5]}}, "for a spectrum"),
    "wick": ({"inputs": {"blocks": [[1.0, 1.0]]}, "student": {"unit": "wick(2, w)"}}, "write the polynomial"),
    "start of one matrix": (
        {"inputs": {"blocks": [[1.0, 0.5], [2.0, 0.5]]}, "start": {"Q_ww": [[1.0]], "M_ww": [[0.1]]}}, "shape",
    ),
    "start of no vectors": (
        {"inputs": {"blocks": [[1.0, 0.5], [2.0, 0.5]]},
         "start": {"Q_ww": [[[0.5]], [[0.5]]], "M_ww": [[[0.9]], [[0.1]]]}}, "block 1 of the inputs does not belong",
    ),
    "too many blocks": ({"inputs": {"blocks": [[1.0, 1e-4]] * 5000}}, "at most 4096"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_is_no_covariance_is_refused_in_a_sentence(name):
    tables, said = REFUSED[name]
    with pytest.raises(UsageError, match=said):
        reading.declaration({"student": {"unit": "w"}, "teacher": {}, **tables})


def test_what_a_tier_cannot_do_is_refused():
    tables = {"student": {"unit": "tanh(w)"}, "inputs": {"blocks": [[1.0, 0.5], [2.0, 0.5]]},
              "training": {"weights": "sphere"}}  # fmt: skip
    made = odesim.declare(**tables)
    with pytest.raises(UsageError, match="the variances depend"):
        odesim.integrate(made, tier="exact", until=1)
    with pytest.raises(UsageError, match=r"on \[inputs\]"):
        odesim.integrate(made, tier="leading", until=1)
    with pytest.raises(UsageError, match="number of blocks"):
        odesim.integrate(made, d=1, until=1)


def test_sgd_refuses_vectors_that_have_no_room_in_a_block():
    tables = {"student": {"unit": "w"}, "teacher": {"units": 2}, "inputs": {"blocks": [[2.0, "1/d"], [1.0, "rest"]]}}
    made = odesim.declare(**tables)
    odesim.integrate(made, d=50, until=0.1, save_points=2)  # an average over signs
    for method in ("explicit", "compressed"):
        with pytest.raises(UsageError, match=r"block 1 of the inputs has 1 dimension, .* fixed .* rank 2 .* list"):
            odesim.simulate(made, method=method, d=50, until=0.01, step_size=0.01, batch=1, save_points=2)


def test_sgd_refuses_students_that_have_no_room_and_takes_the_start_that_is_named():
    """With an overlap a student has in every block a part that is orthogonal to all else: one coordinate has none."""
    tables = {"student": {"unit": "w"}, "teacher": {}, "inputs": {"blocks": [[2.0, "1/d"], [1.0, "rest"]]}}
    asked = {"d": 50, "until": 0.01, "step_size": 0.01, "batch": 1, "save_points": 2}
    for method in ("explicit", "compressed"):
        with pytest.raises(UsageError, match=r"vectors of rank 2 .* SGD needs a random start \(no overlap\), weights"):
            odesim.simulate(odesim.declare(**tables, start={"overlap": 0.3}), method=method, **asked)
        drawn = odesim.simulate(odesim.declare(**tables), method=method, **asked)
        assert np.isfinite(drawn["Q_ww"]).all()
    rng = np.random.default_rng(0)
    given = {"w": rng.normal(size=(1, 50)), "w_star": rng.normal(size=(1, 50))}
    run = odesim.simulate(odesim.declare(**tables), method="explicit", initial=given, **asked)
    assert run["Q_ww"][0, 0, 0, 0, 0] == pytest.approx(given["w"][0, 0] ** 2)


def test_a_large_step_in_a_concentrated_spectrum_is_told():
    run = odesim.integrate(odesim.declare(**LINEAR), d=200, until=0.01, save_points=2)
    assert run.summary["step_x_largest"] == pytest.approx(0.2)
    assert "small steps" in run.summary["inputs"]
