"""Declared models on all engines: one law, whatever moves; replicas, checkpoints, drifts, runs from end to end."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[2] / "derivations" / "declare"))
import odesim
from derivations.contract import UsageError, packed, unpacked
from derivations.declare import parameter_class, reading, system
from odesim.request.case import Case
from odesim.sgd import drift
from odesim.sgd.engines import NumbaChains
from odesim.sgd.scalar_traced import ScalarReplicas
from odesim.sgd.simulation import explicit_rows
from tests.derivations.declare.models import TABLES, made

LAWS = ["erf with biases", "wick", "sphere", "softmax of four", "normalised"]
EACH = [LAWS[0], *(pytest.param(name, marks=pytest.mark.slow) for name in LAWS[1:])]


@pytest.fixture(scope="module", autouse=True)
def double():
    """JAX in float64, as the commands have it."""
    from odesim.machine import device

    device.configure("cpu")


@pytest.fixture
def no_flow(monkeypatch):
    """Without population dynamics: a run then has no losses, and needs none of the derivation."""

    def equations(parameters, tier):
        raise UsageError("none here")

    monkeypatch.setattr("derivations.declare.tiers.equations", equations)


def engine(kind, name, batch, replicas, *, step=0.05, seed=3, d=50):
    """An engine of a declared model, all replicas from one start."""
    model, parameters, start = made(name, d)
    grams = np.array([model.place(start)] * replicas)
    if kind == "numba":
        return NumbaChains(model, parameters, grams, d, batch, step, seed, threads=1, initials=[start] * replicas)
    rows = None
    if kind != "jax":
        rows = explicit_rows(model, None, grams, d, model.sizes(parameters)[0])
    dtype = "float64" if kind == "jax" else kind
    return ScalarReplicas(model, [start] * replicas, grams, d, batch, step, seed, rows=rows, dtype=dtype)


def changes(kind, name, batch, replicas, seed):
    """The change in one step (replicas, n n + s) of the entries that move."""
    model, _, start = made(name)
    run = engine(kind, name, batch, replicas, seed=seed)
    assert run.advance(1)
    return run.grams() - packed(model.place(start), model.scalars(start))


@pytest.mark.parametrize("batch", [1, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", EACH)
def test_one_explicit_and_one_compressed_step_have_one_law(name, batch):
    replicas = 1500
    found = {kind: changes(kind, name, batch, replicas, seed) for seed, kind in enumerate(("numba", "jax", "float64"))}
    moves = found["float64"].std(0) > 1e-12
    for kind in ("numba", "jax"):
        a, b = found[kind][:, moves], found["float64"][:, moves]
        smallest = min(stats.ks_2samp(x, y).pvalue for x, y in zip(a.T, b.T, strict=True))
        assert smallest * moves.sum() > 1e-3, f"{kind} against explicit"
        error = np.sqrt((a.var(0) + b.var(0)) / replicas)
        assert (np.abs(a.mean(0) - b.mean(0)) < 5 * error).all()
        assert np.abs(found[kind][:, ~moves]).max(initial=0.0) < 1e-12, "what is fixed moved"


@pytest.mark.slow
def test_the_law_of_a_wrong_gradient_is_another(monkeypatch):
    """The control: the same model with a twentieth of its readouts' slopes gone."""
    from odesim.sgd import compressed

    name, replicas = "erf with biases", 1500
    right = changes("float64", name, 20, replicas, 2)
    loops = compressed.compile_numba(made(name)[0])

    def broken(X, scalars, *arguments):
        before = scalars.copy()
        good = loops["scalar_batch_steps"](X, scalars, *arguments)
        scalars -= 0.2 * (scalars - before)
        return good

    monkeypatch.setattr("odesim.sgd.engines.compile_numba", lambda model: {**loops, "scalar_batch_steps": broken})
    wrong = changes("numba", name, 20, replicas, 0)
    moves = right.std(0) > 1e-12
    assert min(stats.ks_2samp(a, b).pvalue for a, b in zip(right[:, moves].T, wrong[:, moves].T, strict=True)) < 1e-6


@pytest.mark.parametrize("batch", [1, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "kind", ["numba", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("jax", "float64", "float32"))]
)
def test_a_resumed_run_is_the_uninterrupted_one(kind, batch):
    name = "erf with biases"
    whole, first, second = (engine(kind, name, batch, 2) for _ in range(3))
    assert whole.advance(7) and first.advance(3)
    second.restore(first.state())
    assert second.advance(4)
    assert np.array_equal(whole.grams(), second.grams())
    assert set(whole.state()) >= {"scalars", "steps"}


@pytest.mark.parametrize(
    "kind", ["numba", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("jax", "float64"))]
)
def test_a_replica_is_the_same_alone_and_among_others(kind):
    one, three = engine(kind, "wick", 4, 1), engine(kind, "wick", 4, 3)
    one.advance(5), three.advance(5)
    assert np.abs(one.grams()[0] - three.grams()[0]).max() < 1e-13
    assert np.abs(three.grams()[0] - three.grams()[1]).max() > 1e-6


@pytest.mark.slow
def test_float32_and_float64_take_nearly_the_same_step():
    for name in LAWS[:2]:
        model, _, start = made(name)
        before = packed(model.place(start), model.scalars(start))
        run = engine("float32", name, 20, 1, step=1e-3)
        assert run.advance(1)
        moved = run.grams()[0] - before
        assert 1e-6 < np.abs(moved).max() < 0.5, name


def test_overlaps_of_weights_in_float32_are_summed_in_float64():
    run = engine("float32", "wick", 20, 2)
    weights = run.state()["values"]
    wide = weights.astype(float)
    found = unpacked(run.grams(), weights.shape[1])[0]
    assert weights.dtype == np.float32 and np.abs(found - wide @ np.swapaxes(wide, 1, 2)).max() < 1e-15


@pytest.mark.slow
def test_what_is_not_trained_stays():
    model, parameters, start = made("frozen slot")
    rows = parameter_class.rows(parameters)
    for kind in ("numba", "jax", "float64"):
        run = engine(kind, "frozen slot", 3, 1)
        assert run.advance(20)
        seen = model.observe(parameters, run.grams()[0])
        assert np.abs(seen["Q_vv"][1] - start.state["Q_vv"]).max() < 1e-12
        assert np.abs(seen["Q_ww"][1] - start.state["Q_ww"]).max() > 1e-3
    assert rows.students == 4


@pytest.mark.slow
def test_the_sphere_keeps_the_norms_that_it_starts_with():
    model, parameters, _ = made("sphere")
    for kind in ("numba", "jax", "float64"):
        run = engine(kind, "sphere", 2, 1)
        assert run.advance(50)
        assert np.abs(np.diag(model.observe(parameters, run.grams()[0])["Q_ww"][1]) - 1.69).max() < 1e-12


@pytest.mark.parametrize("name", EACH)
def test_the_drift_is_the_mean_change_of_a_small_step(name):
    """Over the step: drift + O(step), which for norms is the size of a gradient, of order 10 here."""
    model, _, start = made(name)
    (gram, gram_error), (scalars, scalar_error) = drift.state_drift(model, start, 100_000, seed=1)
    step, replicas = 1e-7, 1000
    mean, error = drift.step_change(model, start, step, 100, replicas, seed=2)
    for (rate, doubt), (moved, spread) in zip(
        ((gram, gram_error), (scalars, scalar_error)), (mean, error), strict=True
    ):
        bound = 5 * np.hypot(doubt, spread / step) + 1e-4
        assert (np.abs(rate - moved / step) < bound).all()


def test_a_step_decays_and_stays_where_there_is_nothing_to_learn():
    """At the teacher of a noiseless model the gradient is 0: what is left is -decay u, in the flow and online."""
    for limit in ("flow", "online"):
        kind = system.system(
            reading.declaration(
                {
                    "student": {"unit": "He(2, w)", "units": 2},
                    "training": {"decay": 0.3, "limit": limit},
                    "start": {"norm": 1.0, "overlap": 1.0},
                }
            )
        ).parameters
        from derivations.declare import initial
        from derivations.declare.model import model as model_of

        parameters = kind(d=20, teachers=2, units=2)
        start = initial.enter(parameters, None, np.random.default_rng(0))
        model = model_of(parameters)
        chains = NumbaChains(
            model, parameters, np.array([model.place(start)]), 20, 5, 0.01, 1, threads=1, initials=[start]
        )
        assert chains.advance(1)
        gram, _ = unpacked(chains.grams()[0], 4)
        assert np.abs(np.diag(gram)[:2] - (1 - 0.01 * 0.3) ** 2).max() < 1e-12


def test_a_declared_system_is_simulated_from_end_to_end(no_flow, tmp_path):
    declared = system.system(reading.declaration(TABLES["erf with biases"], name="biased"))
    options = {"step_size": 1e-2, "until": 0.5, "seeds": 2, "save_points": 6}
    runs = {}
    for method, batch in (("compressed", 1), ("explicit", 4)):
        run = odesim.simulate(declared, method=method, batch=batch, d=40, **options)
        assert run.state["a"].dims == ("seed", "time", "unit") and run.state["b"].shape == (2, 6, 3)
        assert run.state["M_ww"].dims == ("seed", "time", "unit", "teacher")
        assert run.extras["a_star"].shape == (2,) and run.extras["P_ww"].dims == ("teacher", "teacher_")
        assert np.ptp(run.state["a"][0], axis=0).max() > 1e-4 and np.ptp(run.state["b"][0], axis=0).max() > 1e-4
        runs[method] = run
    assert np.abs(runs["compressed"]["Q_ww"][:, 0] - runs["explicit"]["Q_ww"][:, 0]).max() < 1e-12


def test_weights_whose_squares_overflow_end_a_run_without_a_warning(no_flow):
    # One step of 1e200 leaves weights of about that size: they are numbers, their squares are none.
    square = system.system(reading.declaration({"student": {"unit": "w^2"}}, name="square"))
    run = odesim.simulate(square, method="explicit", step_size=1e200, until=1e200, batch=2, d=20, seeds=2)
    assert run.outcome.kind == "failed" and "no longer finite by step 1" in run.outcome.reason
    assert all(np.isfinite(values.values).all() for values in run.state.values())


def test_weights_of_a_file_are_the_weights_of_explicit_training(no_flow):
    declared = system.system(reading.declaration(TABLES["two groups"], name="two"))
    rng = np.random.default_rng(0)
    d = 12
    arrays = {"fast_w": rng.normal(size=(2, d)), "slow_w": rng.normal(size=(3, d)), "slow_v": rng.normal(size=(3, d))}
    arrays |= {"one_w_star": np.eye(d)[:2], "two_w_star": np.eye(d)[2:3], "fast_a": np.array([0.5, -0.5])}
    case = Case.build(declared, {}, initial=arrays, until=1e-3)
    from odesim.sgd.simulation import Simulation, simulate

    run = simulate(Simulation.build(case, method="explicit", step_size=1e-3, batch=2))
    assert np.abs(run["slow_two_M_vw"][0, 0] - (arrays["slow_v"] @ np.eye(d)[2:3].T)).max() < 1e-12
    assert np.array_equal(run["fast_a"][0, 0], arrays["fast_a"])


def test_an_engine_needs_the_start_of_a_model_with_scalars():
    model, parameters, start = made("wick")
    with pytest.raises(UsageError, match="needs their initial values"):
        NumbaChains(model, parameters, np.array([model.place(start)]), 50, 1, 0.1, 0, threads=1)
