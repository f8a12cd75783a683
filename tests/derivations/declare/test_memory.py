"""Memories and values that depend on the state: in the equations, in SGD, and what is refused."""

import dataclasses

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import odesim
from derivations.declare.claims.states import state
from derivations.declare.parameter_class import rows
from derivations.declare.tiers import equations
from odesim.flow.problem import compile_functions
from tests.derivations.declare import judged


def adagrad(noise):
    """AdaGrad-Norm on streaming least squares, as in the stored runs of H6."""
    return odesim.declare(
        name="adagrad", student={"unit": "w"}, teacher={"noise": noise},
        training={"limit": "online", "step": "G0/sqrt(b2)", "until": 10},
        memory={"b2": {"start": 0.09, "rate": "g2"}}, parameters={"G0": 1.0},
        start={"Q_ww": [[1e-12]], "M_ww": [[0.0]]},
    )  # fmt: skip


STORED = [1 / 8, 0.3125, 0.625, 5, 10]
LOSSES = [(1.34272, 0.0035), (1.35165, 0.0032), (1.23401, 0.0031), (0.653738, 0.0007), (0.587239, 0.0005)]
"""Means of thirty runs of public code at d = 2048 (amackenzie1/adagrad) and their standard errors."""
STEPS = [(1.5850, 0.009), (1.0465, 0.005), (0.76430, 0.0026), (0.334459, 0.0003), (0.257560, 0.0002)]


@pytest.mark.parametrize("backend", ["numba", "jax"])
@pytest.mark.parametrize(
    ("noise", "times", "losses", "steps"),
    [
        # The last stored record is that before time 10.
        (1.0, [5, 2559 / 256], [0.653864, 0.586916], [0.334508, 0.257803]),
        (0.0, [2559 / 256], [5.12795e-5], [0.785903]),
    ],
)
def test_adagrad_norm_has_its_digits(noise, times, losses, steps, backend):
    run = odesim.integrate(adagrad(noise), save_at=[0, *times], rtol=1e-10, backend=backend, d=10**9)
    found = 0.5 * (np.asarray(run["error"]) + noise**2)[1:]
    assert found == pytest.approx(losses, rel=2e-6)
    assert 1 / np.sqrt(np.asarray(run["b2"])[1:]) == pytest.approx(steps, rel=2e-6)


def test_adagrad_norm_is_its_two_equations():
    for noise in (1.0, 0.0):

        def slope(t, y, noise=noise):
            return [-2 * y[0] / np.sqrt(y[1]) + (y[0] + noise**2) / y[1], y[0] + noise**2]

        known = solve_ivp(slope, (0, 10), [1.0, 0.09], t_eval=[1, 5, 10], rtol=1e-11, atol=1e-14, method="DOP853").y
        run = odesim.integrate(adagrad(noise), save_at=[0, 1, 5, 10], rtol=1e-10, d=10**9)
        assert np.asarray(run["error"])[1:] == pytest.approx(known[0], rel=1e-7)
        assert np.asarray(run["b2"])[1:] == pytest.approx(known[1], rel=1e-7)


@pytest.mark.slow
def test_stored_runs_of_adagrad_norm():
    count = 400
    times = [0, *(round(2048 * t + 0.5) / 2048 for t in STORED)]
    run = odesim.simulate(adagrad(1.0), method="compressed", d=2048, seeds=count, save_at=times)
    Q, M = (np.asarray(run[name])[:, 1:, 0, 0] for name in ("Q_ww", "M_ww"))
    loss, step = 0.5 * (Q - 2 * M + 2), 1 / np.sqrt(np.asarray(run["b2"])[:, 1:])
    for values, stored in ((loss, LOSSES), (step, STEPS)):
        own = values.std(0, ddof=1) / np.sqrt(count)
        z = (values.mean(0) - [mean for mean, _ in stored]) / np.hypot(own, [error for _, error in stored])
        assert np.abs(z).max() < 3.5


def test_a_step_that_depends_on_the_error():
    # E' = -E^2/(E + s2) for the step E/(E + s2): H9a.
    model = odesim.declare(
        name="feedback", student={"unit": "w"}, teacher={"noise": 0.5},
        training={"limit": "online", "step": "(Q_ww[1,1] - 2*M_ww[1,1] + 1)/(Q_ww[1,1] - 2*M_ww[1,1] + 1.25)"},
        start={"Q_ww": [[1e-12]], "M_ww": [[0.0]]},
    )  # fmt: skip
    for backend in ("numba", "jax"):
        run = odesim.integrate(model, save_at=[0, 10], rtol=1e-11, d=10**9, backend=backend)
        assert np.asarray(run["error"])[-1] == pytest.approx(0.0360848383071, abs=1e-10)


INITIAL = judged.committee()
TABLES = {
    "name": "remembers",
    "student": {"units": 3, "unit": "erf(w/sqrt(2))", "output": "trained"},
    "teacher": {"units": 2, "noise": [[0, 0.3], [1, 0.1]]},
    "parameters": {"kappa": 0.9},
    "memory": {
        "b2": {"start": 0.3, "rate": "g2 + 0.01*M_ww[1,2]^2"},
        "slow": {"start": 1.0, "rate": "(a[1] - slow)/3"},
    },
}
ONLINE = {
    "limit": "online",
    "step": [[0, "kappa/sqrt(b2)"], [1.5, "kappa*relu(1 - mean(Q_ww))/(1 + b2)"]],
    "decay": "0.02*slow^2",
    "rates": {"w": "1 - 0.5*step(t - 0.5)", "a": "0.3 + 0.1*mean(a)"},
}


def declared(**training):
    return odesim.declare(**TABLES, training={**ONLINE, **training})


def slope(initial, tier, backend):
    found = equations(initial.parameters, tier)
    functions = compile_functions(found, backend)
    return np.asarray(functions["flow"](0.0, found.start(initial), *found.arguments(initial)))


@pytest.mark.parametrize("time", [0.2, 1.7])
def test_closed_forms_and_samples_take_the_same_values(time):
    initial = state(declared().parameters, 2)
    initial = dataclasses.replace(initial, state={**initial.state, "t": np.array(time), "b2": np.array(0.4)})
    one, other = (slope(initial, "exact", backend) for backend in ("numba", "jax"))
    assert one == pytest.approx(other, abs=1e-11)
    fine = dataclasses.replace(initial, parameters=dataclasses.replace(initial.parameters, points=2**17))
    two = slope(fine, "sampled", "numba")
    assert two == pytest.approx(slope(fine, "sampled", "jax"), abs=1e-11)
    assert np.abs(one - two).max() < 3e-3 * np.abs(one).max()
    unpack = rows(initial.parameters).layout.unpack
    assert float(unpack(one)["t"]) == 1.0
    known = float((initial.state["a"][0] - initial.state["slow"]) / 3)
    assert float(unpack(one)["slow"]) == pytest.approx(known, abs=1e-13)


def test_the_squared_gradient_of_a_flow_is_that_of_its_mean():
    model = odesim.declare(
        name="flow", student={"units": 2, "unit": "erf(w)"}, teacher={"units": 2},
        training={"rates": "1/sqrt(b2)"}, memory={"b2": {"start": 0.3, "rate": "g2"}, "c2": {"rate": "g2_w"}},
    )  # fmt: skip
    initial = state(model.parameters, 2)
    functions = compile_functions(equations(initial.parameters, "exact"), "numba")
    found = equations(initial.parameters, "exact")
    y, given = found.start(initial), found.arguments(initial)
    rate = rows(initial.parameters).layout.unpack(np.asarray(functions["flow"](0.0, y, *given)))
    assert float(rate["b2"]) == pytest.approx(float(rate["c2"]), rel=1e-12)
    # dL/dt = -rate |gradient|^2: by the loss on both sides of a small step along the flow.
    step = 1e-5
    flow = np.asarray(functions["flow"](0.0, y, *given))
    change = (functions["loss"](y + step * flow, *given) - functions["loss"](y - step * flow, *given)) / (2 * step)
    factor = 1 / np.sqrt(float(initial.state["b2"]))
    assert -change / factor == pytest.approx(float(rate["b2"]), rel=1e-6)
    fine = dataclasses.replace(initial, parameters=dataclasses.replace(initial.parameters, points=2**16))
    other = rows(initial.parameters).layout.unpack(slope(fine, "sampled", "numba"))
    assert float(other["b2"]) == pytest.approx(float(rate["b2"]), rel=2e-3)


@pytest.mark.parametrize(
    ("method", "options", "count"),
    [
        ("compressed", {"d": 2000}, 64),
        ("compressed", {"d": 2000, "backend": "jax"}, 64),
        ("compressed", {"d": 2000, "batch": 3}, 64),
        pytest.param("explicit", {"d": 500}, 48, marks=pytest.mark.slow),
    ],
)
def test_sgd_with_memories_follows_its_limit(method, options, count):
    model, times = declared(), [0, 0.6, 1.2, 3]
    flow = odesim.integrate(model, initial=INITIAL, save_at=times, batch=options.get("batch", 1))
    run = odesim.simulate(model, initial=INITIAL, method=method, seeds=count, save_at=times, **options)
    z = judged.z_of_runs(run, flow, ("Q_ww", "M_ww", "a", "b2", "slow"))
    assert np.sqrt((z**2).mean()) < 1.8 and np.abs(z).max() < 4.5
    # A memory that stays where it started is many standard errors away.
    still = odesim.integrate(model, initial=INITIAL, save_at=times, step=1.5, batch=options.get("batch", 1))
    b2 = np.asarray(run["b2"])[:, -1]
    assert abs(b2.mean() - np.asarray(still["b2"])[-1]) > 5 * b2.std() / np.sqrt(count)


REPLICAS = 20_000


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 3])
def test_explicit_and_compressed_have_one_law(batch):
    def ends(method, seed, **more):
        run = odesim.simulate(
            declared(), initial=INITIAL, method=method, backend="jax", d=9, until=0.5, save_points=2, seeds=REPLICAS,
            batch=batch, seed=seed, **more,
        )  # fmt: skip
        names = ("Q_ww", "M_ww", "a", "b2", "slow")
        return np.concatenate([np.asarray(run[name])[:, -1].reshape(REPLICAS, -1) for name in names], axis=1)

    one, two = ends("explicit", 0, precision="float64"), ends("compressed", 1)
    assert np.abs(judged.z_of_laws(one, two)).max() < 4.5


@pytest.mark.parametrize(("method", "backend"), [("explicit", "jax"), ("compressed", "jax"), ("compressed", "numba")])
def test_a_step_takes_the_new_memory_and_the_old_overlaps(method, backend):
    """One step by a rule that is 1: |g|^2 = |x|^2, b2 = start + |x|^2/d^2, and u moves by -x/(d b2)."""
    model = odesim.declare(
        name="order", student={"unit": "w"}, teacher={},
        training={"limit": "online", "rule": "1", "step": "M_ww[1,1]/b2"},
        memory={"b2": {"start": 0.5, "rate": "g2"}}, start={"Q_ww": [[1.0]], "M_ww": [[0.25]]},
    )  # fmt: skip
    d, count = 12, 64
    run = odesim.simulate(model, method=method, backend=backend, d=d, until=1 / d, save_points=2, seeds=count)
    b2 = np.asarray(run["b2"])[:, -1]
    square = (b2 - 0.5) * d * d  # |x|^2
    assert square.mean() == pytest.approx(d, rel=0.3) and (square > 0).all()
    Q, M = (np.asarray(run[name])[:, -1, 0, 0] for name in ("Q_ww", "M_ww"))
    h = 0.25 / b2 / d
    along, onto = (1.0 - Q + h**2 * square) / (2 * h), (0.25 - M) / h  # u.x and u*.x
    # They are the fields of a normal input: their variances are 1, their covariance is M.
    assert along.std() == pytest.approx(1.0, rel=0.35) and onto.std() == pytest.approx(1.0, rel=0.35)
    assert np.corrcoef(along, onto)[0, 1] == pytest.approx(0.25, abs=0.45)
    assert (along**2 + onto**2 - 2 * 0.25 * along * onto <= (1 - 0.25**2) * square * (1 + 1e-6)).all()


def test_a_run_goes_on_with_its_memories(tmp_path):
    model = declared()
    whole = odesim.integrate(model, initial=INITIAL, save_at=[0, 1.2, 2.4], rtol=1e-10)
    first = odesim.integrate(model, initial=INITIAL, until=1.2, save_points=3, rtol=1e-10)
    second = odesim.integrate(model, after=first, until=2.4, save_points=3, rtol=1e-10)[-1]
    for name in ("M_ww", "b2", "slow", "t"):
        assert np.asarray(second[name])[-1] == pytest.approx(np.asarray(whole[name])[-1], abs=1e-8)
    again = odesim.integrate(model, initial=INITIAL, b2=0.7, save_at=[0, 1])
    assert float(np.asarray(again["b2"])[0]) == 0.7


@pytest.mark.parametrize("options", [{}, {"backend": "jax"}, {"solver": "Radau"}, {"solver": "CVODE"}])
def test_a_value_that_falls_below_zero_ends_the_run(options):
    model = odesim.declare(
        name="falls", student={"unit": "erf(w)"}, teacher={}, start={"norm": 0.5, "overlap": 0.5},
        training={"limit": "online", "step": "0.5 - 0.05*t*M_ww[1,1]"},
    )  # fmt: skip
    run = odesim.integrate(model, d=1000, until=60, save_points=61, **options)
    assert run.outcome.kind == "failed" and "step falls below 0 at t = 1" in run.outcome.reason
    assert 5 < run.time[-1] < 30 and np.isfinite(np.asarray(run["M_ww"])).all()


def test_the_page_says_what_memories_are():
    model = declared()
    text = str(odesim.derive(model))
    for line in ("d/dt b2 = g2 + 0.01*M_ww[1,2]^2", "g2 = sum_i E[c_i^2]/B over trained vectors", "b2 (memory): 0.3"):
        assert line in text


REFUSED = [
    ({"step": "M_vw[1,1]"}, {}, "M_vw is not an order parameter that changes; did you mean 'M_ww'"),
    ({"step": "M_ww[2,1]"}, {}, "M_ww is 1 x 1"),
    ({"step": "M_ww[1]"}, {}, "M_ww is 1 x 1"),
    ({"step": "step(M_ww[1,1] - 0.5)"}, {}, "jumps only at fixed times"),
    ({"step": "M_ww[0,1]"}, {}, "expected the number of a unit or a block, from 1"),
    ({"step": "mean(2)"}, {}, "expected the name of an order parameter"),
    ({"step": "0.1 - M_ww[1,1]"}, {}, "step is -0.4 at t = 0, but must be above 0"),
    ({"step": "1/(1 + bb)"}, {}, "unknown name 'bb'"),
    ({"step": "1/(1 + bb)"}, {"bb": {"rate": "g3"}}, "unknown name 'g3'"),
    ({}, {"bb": {"rate": "step(t - 1)"}}, "cannot have jumps or kinks in time"),
    ({}, {"bb": {"start": 1.0}}, "memory bb has no rate"),
    ({}, {"bb": 3.0}, "a memory is a table"),
    ({}, {"bb": {"rate": "1", "stop": 2}}, "unknown key 'stop'"),
    ({}, {"t": {"rate": "1"}}, "'t' cannot be the name of a memory"),
    ({}, {"step": {"rate": "1"}}, "'step' cannot be the name of a memory"),
    ({"limit": "flow", "weights": "sphere"}, {"bb": {"rate": "g2"}}, "take limit = 'online'"),
]


@pytest.mark.parametrize(("training", "memory", "said"), REFUSED)
def test_what_is_refused(training, memory, said):
    tables = {"memory": memory} if memory else {}
    with pytest.raises(odesim.UsageError, match=said):
        odesim.declare(
            student={"unit": "erf(w)"}, teacher={}, start={"Q_ww": [[1.0]], "M_ww": [[0.5]]},
            training={"limit": "online", **training}, **tables,
        )  # fmt: skip


def test_noise_changes_in_time_alone():
    with pytest.raises(odesim.UsageError, match="noise may depend only on time"):
        odesim.declare(student={"unit": "erf(w)"}, teacher={"noise": "M_ww[1,1]"}, training={"limit": "online"})
    with pytest.raises(odesim.UsageError, match="noise may depend only on time"):
        odesim.declare(student={"unit": "erf(w)"}, teacher={"noise": [[0, 0.1], [1, "mean(Q_ww)"]]})


@pytest.mark.parametrize("inputs", [None, {"blocks": [[2.0, 0.5], [0.5, 0.5]]}])
def test_what_is_coupled_counts_the_memories(inputs):
    more = {} if inputs is None else {"inputs": inputs}
    model = odesim.declare(
        name="coupled", student={"units": 2, "unit": "He(2, w)"}, teacher={"units": 2}, start={"overlap": 0.3},
        training={"rates": "1/(1 + bb)", "weights": "sphere"},
        memory={"bb": {"rate": "mean(Q_ww)"}, "cc": {"rate": "bb - cc"}}, **more,
    )  # fmt: skip
    initial = state(model.parameters, 2)
    found = equations(initial.parameters, "exact")
    y = found.start(initial)
    assert found.advance.coupled is not None
    assert found.advance.coupled(initial)(y).shape == y.shape
    one, two = (odesim.integrate(model, until=1, save_points=3, solver=solver, d=50) for solver in ("NDF", "DOP853"))
    for name in ("Q_ww", "M_ww", "bb", "cc"):
        assert np.asarray(one[name])[-1] == pytest.approx(np.asarray(two[name])[-1], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(("method", "backend"), [("explicit", "jax"), ("compressed", "jax"), ("compressed", "numba")])
def test_a_memory_that_nothing_reads_changes_no_step(method, backend):
    tables = {
        "name": "unread", "student": {"units": 2, "unit": "erf(w)", "output": "trained"}, "teacher": {"noise": 0.2},
        "training": {"limit": "online", "step": "0.5/(1 + t)", "decay": "0.1*exp(-t)", "rates": {"w": "1 + t"}},
    }  # fmt: skip
    options = {"method": method, "backend": backend, "d": 20, "until": 0.5, "save_points": 3}
    one = odesim.simulate(odesim.declare(**tables), **options)
    two = odesim.simulate(odesim.declare(**tables, memory={"b2": {"rate": "g2"}}), **options)
    for name in ("Q_ww", "M_ww", "a"):
        assert np.asarray(two[name]) == pytest.approx(np.asarray(one[name]), rel=1e-5)
    assert (np.asarray(two["b2"])[:, -1] > 0).all()


def test_names_that_begin_like_a_squared_gradient_are_none():
    model = odesim.declare(
        name="named", student={"g2": {"unit": "erf(w)"}, "other": {"unit": "erf(w)"}}, teacher={"unit": "erf(w)"},
        training={"limit": "online", "step": "0.5/(1 + g2more)"}, memory={"g2more": {"rate": "g2_Q_ww[1,1] + g2"}},
    )  # fmt: skip
    initial = state(model.parameters, 2)
    unpack = rows(initial.parameters).layout.unpack
    one, two = (unpack(slope(initial, "exact", backend)) for backend in ("numba", "jax"))
    fine = dataclasses.replace(initial, parameters=dataclasses.replace(initial.parameters, points=2**16))
    three = unpack(slope(fine, "sampled", "numba"))
    assert float(one["g2more"]) == pytest.approx(float(two["g2more"]), rel=1e-12)
    assert float(three["g2more"]) == pytest.approx(float(one["g2more"]), rel=2e-3)
    run = odesim.simulate(model, method="compressed", d=20, until=0.5, save_points=3)
    assert np.isfinite(np.asarray(run["g2more"])).all()
