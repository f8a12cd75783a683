"""SGD with momentum: single steps, explicit against compressed in law at seven dimensions, both against the limit."""

import numpy as np
import pytest

import odesim
from tests.derivations.declare import judged

START = {"Q_ww": [[0.5, 0.1], [0.1, 0.6]], "M_ww": [[0.2], [-0.1]]}
FORMS = {
    "heavy": {"momentum": 0.7}, "nesterov": {"momentum": 0.7, "nesterov": True},
    "time": {"momentum": {"time": 0.5}}, "nesterov in time": {"momentum": {"time": 0.5}, "nesterov": True},
}  # fmt: skip
REPLICAS, STEPS, D = 6_000, 5, 7


def declared(form, **more):
    return odesim.declare(
        name="law", student={"units": 2, "unit": "tanh(w)", "output": "trained"}, start=START,
        teacher={"unit": "tanh(2*w)", "noise": 0.2},
        training={"limit": "online", "step": 0.84, "decay": 0.05, "rates": {"a": 0.5}, **FORMS[form], **more},
    )  # fmt: skip


def ends(model, method, seed, backend="jax", **more):
    """Order parameters (replicas, numbers) after a few steps."""
    run = odesim.simulate(
        model, method=method, d=D, until=STEPS / D, save_points=2, seeds=REPLICAS, seed=seed, backend=backend, **more
    )
    names = [name for name in run.state if name.split("_")[0] in ("Q", "M", "VV", "VQ", "VM", "a", "velocity")]
    return np.concatenate([np.asarray(run[name])[:, -1].reshape(REPLICAS, -1) for name in names], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_explicit_and_compressed_have_one_law(form, batch):
    explicit = ends(declared(form), "explicit", 0, batch=batch, precision="float64")
    for backend in ("jax", "numba"):
        found = ends(declared(form), "compressed", 1, backend, batch=batch)
        assert np.abs(judged.z_of_laws(explicit, found)).max() < 4.5
    # Without Nesterov's factor, or with it, the law is another.
    other = {"heavy": "nesterov", "nesterov": "heavy", "time": "nesterov in time", "nesterov in time": "time"}[form]
    assert np.abs(judged.z_of_laws(explicit, ends(declared(other), "compressed", 1, batch=batch))).max() > 4.5


@pytest.mark.parametrize(("form", "batch"), [("nesterov", 1), ("time", 2), ("heavy", 5)])
def test_loops_and_arrays_have_one_law(form, batch):
    loops, arrays = (ends(declared(form), "compressed", k, way, batch=batch) for k, way in enumerate(["numba", "jax"]))
    assert np.abs(judged.z_of_laws(loops, arrays)).max() < 4.5
    another = ends(declared(form), "compressed", 0, "numba", batch=batch, step=1.1 * 0.84)
    assert np.abs(judged.z_of_laws(another, arrays)).max() > 4.5


def steps_of(form, h, d, slopes, a):
    """A number that moves by given slopes, as PyTorch's SGD writes it."""
    stated = FORMS[form]["momentum"]
    beta, damp = (1 - 1 / (stated["time"] * d), 1 / (stated["time"] * d)) if isinstance(stated, dict) else (stated, 1.0)
    v = 0.0
    for slope in slopes:
        v = beta * v + damp * slope
        a = a - h * (damp * slope + beta * v if "nesterov" in FORMS[form] else v)
    return a


@pytest.mark.parametrize(("method", "backend"), [("explicit", "jax"), ("compressed", "jax"), ("compressed", "numba")])
@pytest.mark.parametrize("form", FORMS)
def test_numbers_move_as_their_velocities_say(form, method, backend):
    """Readouts with the slope 1/4 at every step, and vectors that decay alone: u is a number times its start."""
    d, decay = 12, 0.3
    model = odesim.declare(
        name="steps", student={"unit": "w", "output": "trained"}, teacher={}, start={"Q_ww": [[2.0]], "M_ww": [[0.5]]},
        training={"limit": "online", "rule": {"w": "0", "a": "0.25"}, "decay": decay, **FORMS[form]},
    )  # fmt: skip
    asked = {"method": method, "backend": backend, "precision": "float64"}
    run = odesim.simulate(model, d=d, until=3 / d, save_points=4, a=1.0, **asked)
    h, found = 1 / d, np.asarray(run["a"])[0, :, 0]
    assert found == pytest.approx([steps_of(form, h, d, [0.25] * k, 1.0) for k in range(4)], abs=1e-12)
    stated = FORMS[form]["momentum"]
    beta, damp = (1 - 1 / (stated["time"] * d), 1 / (stated["time"] * d)) if isinstance(stated, dict) else (stated, 1.0)
    u, v, wanted = 1.0, 0.0, [0.5]
    for _ in range(3):
        g = damp * decay * u
        v = beta * v + g
        u = u - h * (g + beta * v if "nesterov" in FORMS[form] else v)
        wanted.append(0.5 * u)
    assert np.asarray(run["M_ww"])[0, :, 0, 0] == pytest.approx(wanted, abs=1e-12)


TIMES = [0, 1, 2, 4]
OPTIONS = [
    ("time", "compressed", {"d": 1000}, 64),
    pytest.param("nesterov in time", "explicit", {"d": 400}, 48, marks=pytest.mark.slow),
    pytest.param("nesterov in time", "compressed", {"d": 3000, "batch": 3}, 100, marks=pytest.mark.slow),
    pytest.param("heavy", "compressed", {"d": 8000}, 100, marks=pytest.mark.slow),
    pytest.param("nesterov", "compressed", {"d": 8000}, 100, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("form", "method", "options", "count"), OPTIONS)
def test_sgd_follows_its_limit(form, method, options, count):
    model = declared(form, step=0.84 if "time" in form else 0.25)
    flow = odesim.integrate(model, save_at=TIMES, batch=options.get("batch", 1), points=2**16)
    run = odesim.simulate(model, method=method, seeds=count, save_at=TIMES, **options)
    names = ["Q_ww", "M_ww", "a", *(["VV_ww", "VQ_ww", "VM_ww", "velocity_a"] if "time" in form else [])]
    z = judged.z_of_runs(run, flow, names)
    # The numbers of the same replicas: their root mean square scatters.
    assert 0.5 < judged.root_mean_square(z) < 1.6 and np.abs(z).max() < 4.5
    # Without momentum, or with half of its time, the limit is another.
    changed = {"momentum_time": 0.25} if "time" in form else {"momentum": 0.0}
    other = odesim.integrate(model, save_at=TIMES, batch=options.get("batch", 1), points=2**16, **changed)
    assert np.abs(judged.z_of_runs(run, other, names)).max() > 6


@pytest.mark.slow
@pytest.mark.parametrize("nesterov", [False, True])
def test_the_committee_follows_its_limit(nesterov):
    model = odesim.declare(
        name="committee", student={"units": 2, "unit": "erf(w/sqrt(2))"}, teacher={"units": 2, "noise": 0.2},
        training={"limit": "online", "momentum": {"time": 2}, "nesterov": nesterov},
        start={"Q_ww": [[0.5, 0.05], [0.05, 0.5]], "M_ww": [[0.2, 0.0], [0.0, 0.1]]},
    )  # fmt: skip
    times, names = [0, 1, 3, 6, 10], ("Q_ww", "M_ww", "VV_ww", "VQ_ww", "VM_ww")
    flow = odesim.integrate(model, save_at=times, rtol=1e-9)
    # The numbers of the same replicas belong together: of 100 alone their root mean square is .78 to 1.42.
    runs = [odesim.simulate(model, method="compressed", d=3000, seeds=100, save_at=times, seed=k) for k in range(4)]
    z = np.concatenate([judged.z_of_runs(run, flow, names) for run in runs])
    assert 0.7 < judged.root_mean_square(z) < 1.3


@pytest.mark.parametrize("method", ["explicit", "compressed"])
def test_a_flow_has_the_time_of_its_steps(method):
    model = odesim.declare(
        name="steps", student={"units": 2, "unit": "erf(w)", "output": "trained"}, teacher={"units": 2},
        training={"momentum": {"time": 1.0}}, start={"overlap": 0.3},
    )  # fmt: skip
    flow = odesim.integrate(model, until=2.0, d=20, save_points=3)
    run = odesim.simulate(
        model, method=method, until=2.0, d=20, step_size=0.01, batch=1024, save_points=3, seeds=4, precision="float64"
    )
    for name in ("Q_ww", "M_ww", "a", "VM_ww", "velocity_a"):
        assert np.asarray(run[name]).mean(0) == pytest.approx(np.asarray(flow[name]), abs=0.02)


def test_a_run_in_pieces_is_the_same_run():
    options = {"method": "compressed", "d": 50, "until": 1.0, "seeds": 2}
    one = odesim.simulate(declared("time"), save_points=2, **options)
    two = odesim.simulate(declared("time"), save_points=6, **options)
    for name in ("M_ww", "VV_ww", "velocity_a"):
        assert np.asarray(one[name])[:, -1] == pytest.approx(np.asarray(two[name])[:, -1], abs=1e-12)


@pytest.mark.parametrize("method", ["explicit", "compressed"])
def test_velocities_of_an_earlier_state_are_taken(method):
    model = declared("time")
    first = odesim.integrate(model, until=1.0, save_points=2, d=500)
    names = ("Q_ww", "M_ww", "a", "VV_ww", "VQ_ww", "VM_ww", "velocity_a")
    state = {name: np.asarray(first[name])[-1] for name in names}
    options = {"method": method, "d": 500, "until": 1.0, "seeds": 8, "save_points": 2}
    run = odesim.simulate(model, initial=state, precision="float64", **options)
    for name in names:
        begin = np.asarray(run[name])[:, 0]
        assert begin == pytest.approx(np.broadcast_to(state[name], begin.shape), abs=1e-9)
    # They take vectors on: from rest the overlaps move by much less.
    flow = odesim.integrate(model, initial=state, until=1.0, save_points=2, d=500)
    rest = odesim.integrate(model, initial={name: state[name] for name in names[:3]}, until=1.0, save_points=2, d=500)
    ends = np.asarray(run["M_ww"])[:, -1]
    z = (ends.mean(0) - np.asarray(flow["M_ww"])[-1]) / (ends.std(0) / np.sqrt(7))
    assert np.abs(z).max() < 5
    moved = np.abs(np.asarray(flow["M_ww"])[-1] - np.asarray(rest["M_ww"])[-1]).max()
    assert moved > 3 * np.abs(ends.mean(0) - np.asarray(flow["M_ww"])[-1]).max()


def test_velocities_that_belong_to_no_vectors_are_refused():
    model = declared("time")
    first = odesim.integrate(model, until=1.0, save_points=2, d=500)
    state = {name: np.asarray(first[name])[-1] for name in ("Q_ww", "M_ww", "a", "VM_ww")}
    with pytest.raises(odesim.UsageError, match="initial velocities do not fit the vectors"):
        odesim.integrate(model, initial=state)
    with pytest.raises(odesim.UsageError, match="VM_ww must have shape"):
        odesim.integrate(model, initial={**state, "VM_ww": np.zeros((3, 3))})


@pytest.mark.parametrize("method", ["explicit", "compressed"])
def test_a_run_of_two_stages_has_the_law_of_one(method):
    # Without the velocities of the first stage the second would begin at a tenth of the speed.
    replicas, names = 3000, ("Q_ww", "M_ww", "a", "VV_ww", "VQ_ww", "VM_ww", "velocity_a")
    tables = {
        "student": {"units": 2, "unit": "erf(w/sqrt(2))", "output": "trained"},
        "teacher": {"units": 2, "noise": 0.2},
        "start": {"Q_ww": [[0.5, 0.05], [0.05, 0.5]], "M_ww": [[0.2, 0.0], [0.0, 0.1]], "a": [0.5, 0.9]},
    }
    training = {"limit": "online", "step": 0.1, "momentum": 0.9, "nesterov": True}
    whole = odesim.declare(**tables, training={**training, "until": 2})
    parts = odesim.declare(**tables, training=training, stage=[{"name": "s1", "until": 1}, {"name": "s2", "until": 2}])
    one = odesim.simulate(whole, method=method, d=12, seeds=replicas, save_points=2)
    *_, two = odesim.simulate(parts, stage="all", method=method, d=12, seeds=replicas, save_points=2)

    def ends(run):
        values = [np.asarray(run[name]) for name in names]
        return np.concatenate([(v[:, -1] if k < 3 else v).reshape(replicas, -1) for k, v in enumerate(values)], axis=1)

    assert np.abs(judged.z_of_laws(ends(one), ends(two))).max() < 4.5


def test_vectors_that_rest_keep_their_velocities():
    model = odesim.declare(
        student={"units": 2, "unit": "erf(w)", "output": "trained"}, teacher={"noise": 0.2},
        training={"limit": "online", "step": 0.1, "momentum": 0.9},
        stage=[{"name": "first", "until": 1}, {"name": "second", "until": 2, "trained": ["a"]}], start={"overlap": 0.2},
    )  # fmt: skip
    first, second = odesim.simulate(model, stage="all", method="compressed", d=20, seeds=3)
    for name in ("VV_ww", "VQ_ww", "VM_ww"):
        assert np.asarray(second[name]) == pytest.approx(np.asarray(first[name]), rel=1e-10, abs=1e-12)
    assert np.abs(np.asarray(second["velocity_a"]) - np.asarray(first["velocity_a"])).max() > 0
