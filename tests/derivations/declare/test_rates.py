"""Rates: factors of the step for vectors, readouts and biases, in the equations and in SGD."""

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError
from derivations.declare import reading
from odesim.flow.problem import prepare
from odesim.request.case import Case

TABLES = {
    "name": "rated",
    "student": {"units": 2, "unit": "erf(w/sqrt(2) + b)", "output": "trained"},
    "teacher": {"units": 2, "unit": "erf(w/sqrt(2))", "noise": 0.2},
    "parameters": {"b": {"default": 0.1, "per": "unit"}},
    "start": {"overlap": 0.3, "a": 0.5},
}
EVERYTHING = ["w", "a", "b"]
STAIRCASE = {"u": 1.0, "v": 0.5, "w": 4.0}
OVERLAPS = np.array(
    [
        [0.008693742539951841, -0.019135903228039527, -0.012108173030045634],
        [0.020137373213774186, 0.005230841889265714, 0.005511618545000791],
        [0.0029517906469990365, -0.0067691530525906055, -0.004381620292619025],
    ]
)
AMONG = {"uv": 5.755008638570855e-05, "uw": 0.0238814765918767, "vw": 0.002686717928469684}


def declared(**training):
    return odesim.declare(**TABLES, training={"trained": EVERYTHING, **training})


def slope(model, tier="auto", **parameters):
    """The derivative of every order parameter at the start."""
    problem = prepare(Case.build(model, {"tier": tier, "d": 100, **parameters}, until=1.0))
    return problem.equations.unpack(problem.slope()(0.0, problem.start))


@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_a_staircase_with_relative_rates(backend):
    # Independent integration over a tensor Gauss-Hermite grid, to all nine digits.
    start = {f"Q_{s}{s}": [[1.0]] for s in "uvw"} | {f"Q_{pair}": [[value]] for pair, value in AMONG.items()}
    start |= {f"M_{r}{s}": [[OVERLAPS[i, j]]] for i, r in enumerate("uvw") for j, s in enumerate("uvw")}
    model = odesim.declare(
        name="staircase",
        student={"unit": "u + 0.6*u*v + 0.35*u*v*w"},
        teacher={},
        training={"weights": "sphere", "rates": STAIRCASE},
        start=start,
    )
    run = odesim.integrate(model, backend=backend, save_at=[0, 1, 4, 8], rtol=1e-10)
    found = np.array([run[f"M_{s}{s}"][1:, 0, 0] for s in "uvw"]).T
    expected = [
        [0.712164710, 0.078970507, 0.001864794],
        [0.999344856, 0.553259443, 0.431679015],
        [0.999999578, 0.910456610, 0.961131464],
    ]
    assert found == pytest.approx(np.array(expected), abs=6e-10)


@pytest.mark.parametrize("limit", ["flow", "online"])
@pytest.mark.parametrize("weights", ["free", "sphere", "normalised"])
def test_every_part_of_the_motion_has_its_rate(limit, weights):
    tier = "mixed" if limit == "online" else "exact"
    plain = slope(declared(limit=limit, weights=weights), tier)
    rated = slope(declared(limit=limit, weights=weights, rates={"w": 0.5, "a": 0.25}), tier)
    sampled = slope(declared(limit=limit, weights=weights, rates={"w": 0.5, "a": 0.25}), "sampled")
    assert rated["a"] == pytest.approx(0.25 * plain["a"], rel=1e-12)
    assert rated["b"] == pytest.approx(plain["b"], rel=1e-12)
    size = np.abs(rated["M_ww"]).max()
    for name in plain:
        assert sampled[name] == pytest.approx(rated[name], abs=2e-3 * size), name
    if limit == "flow":
        assert rated["M_ww"] == pytest.approx(0.5 * plain["M_ww"], rel=1e-12)


def test_two_vectors_of_a_unit_have_two_rates_in_the_second_order_term_too():
    def motion(**rates):
        model = odesim.declare(
            name="pair",
            student={"unit": "u*v + u + v"},
            teacher={},
            training={"limit": "online", "step": 0.5, "rates": rates} if rates else {"limit": "online", "step": 0.5},
            start={"overlap": 0.4},
        )
        return {batch: slope(model, batch=batch) for batch in (1, 10**12)}

    plain, rated = motion(), motion(u=0.5, v=2.0)
    for name, factor in (("Q_uu", 0.25), ("Q_uv", 1.0), ("Q_vv", 4.0)):
        second = plain[1][name] - plain[10**12][name]
        assert np.abs(second).max() > 1e-2
        assert rated[1][name] - rated[10**12][name] == pytest.approx(factor * second, rel=1e-9, abs=1e-11)


def test_one_rate_for_all_is_another_step():
    rated = odesim.integrate(declared(limit="online", rates=0.4), d=100, until=2)
    step = odesim.integrate(declared(limit="online", step=0.4), d=100, until=2)
    assert rated["M_ww"] == pytest.approx(step["M_ww"], rel=1e-9)
    slow = odesim.integrate(declared(rates=0.5), d=100, until=2, save_points=3)
    assert slow["M_ww"] == pytest.approx(odesim.integrate(declared(), d=100, until=1, save_points=3)["M_ww"], rel=1e-6)


def test_a_rate_of_0_freezes():
    frozen = odesim.integrate(declared(rates={"w": 0.0}), d=100, until=2)
    assert np.abs(frozen["M_ww"] - frozen["M_ww"][0]).max() < 1e-14
    assert np.ptp(frozen["a"]) > 0.01
    never = odesim.integrate(odesim.declare(**TABLES, training={"trained": ["a", "b"]}), d=100, until=2)
    assert frozen["a"] == pytest.approx(never["a"], rel=1e-9)


def test_a_group_has_its_own_rate():
    tables = {**TABLES, "student": {"fast": {"unit": "erf(w)"}, "slow": {"unit": "erf(w)"}}, "parameters": {}}
    tables["start"] = {"overlap": 0.3}
    model = odesim.declare(**tables, training={"rates": {"w": 0.5, "fast_w": 2.0}})
    plain = odesim.declare(**tables)
    assert slope(model)["fast_M_ww"] == pytest.approx(2 * slope(plain)["fast_M_ww"], rel=1e-12)
    assert slope(model)["slow_M_ww"] == pytest.approx(0.5 * slope(plain)["slow_M_ww"], rel=1e-12)
    assert slope(model, rate_fast_w=4.0)["fast_M_ww"] == pytest.approx(4 * slope(plain)["fast_M_ww"], rel=1e-12)


def test_the_lowest_order_grows_at_the_rate():
    model = odesim.declare(
        name="single",
        student={"unit": "He(2, w)"},
        teacher={},
        training={"weights": "sphere", "rates": {"w": 0.25}},
        start={"overlap": 1e-3},
    )
    rated = odesim.integrate(model, tier="leading", until=40).summary["predicted_times"][0]
    plain = odesim.integrate(model, tier="leading", until=40, rate_w=1.0).summary["predicted_times"][0]
    assert rated == pytest.approx(4 * plain, rel=1e-12)


@pytest.mark.parametrize("weights", ["free", "sphere"])
@pytest.mark.parametrize("method", ["explicit", "compressed"])
def test_sgd_moves_by_the_rates(method, weights):
    # Means of replicas of small steps against the flow, in standard errors and what a step of this size is off.
    model = declared(weights=weights, rates={"w": 0.5, "a": 3.0})
    flow = odesim.integrate(model, d=30, until=1, save_points=2)
    run = odesim.simulate(model, method=method, d=30, step_size=4e-3, batch=128, seeds=24, until=1, save_points=2)
    for name in ("M_ww", "a", "b"):
        ends = np.asarray(run[name])[:, -1]
        error = ends.std(0, ddof=1) / np.sqrt(24)
        moved = np.abs(flow[name][-1] - flow[name][0]).max()
        assert np.abs(ends.mean(0) - flow[name][-1]).max() < 4.5 * error.max() + 5e-3 * moved, name
        assert moved > 20 * error.max(), name


def test_what_has_a_rate_is_said():
    model = declared(limit="online", weights="sphere", rates={"w": 0.5, "a": 3.0})
    page = odesim.derive(model, "text")
    assert "rates: step x rate_w for w, step x rate_a for a" in page and "r_w = rate_w" in page
    assert "d/dt a_i = -eta r_a (" in page and "d/dt b_i = -eta a_i (" in page
    assert r"\eta r_{a}\," in odesim.derive(model, "latex")


@pytest.mark.parametrize(
    ("rates", "sentence"),
    [
        ({"v": 1.0}, "rates names 'v', which is not trained; known are a, b, w"),
        ({"w": -1.0}, "w must be at least 0"),
        ({"w": True}, "w is a finite number"),
        ("fast", "unknown name 'fast' in 'fast'"),
        ({"w": [1.0]}, "w is a number, an expression in t, or a list of pairs"),
    ],
)
def test_wrong_rates_are_refused_in_a_sentence(rates, sentence):
    with pytest.raises(UsageError, match=sentence):
        declared(rates=rates)


def test_the_line_of_a_wrong_rate_is_found(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text('[student]\nunit = "erf(w)"\n[teacher]\n[training]\nrates = {w = 1.0, a = 2.0}\n')
    with pytest.raises(UsageError, match="line 5: rates names 'a', which is not trained"):
        reading.from_file(path)
