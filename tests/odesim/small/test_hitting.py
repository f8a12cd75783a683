"""Hitting times of small flows: closed forms, SciPy, lanes, stability, mistakes."""

import types

import numpy as np
import pytest
import sympy

from odesim.code import arrays
from odesim.errors import NumericalError, UsageError
from odesim.flow import block_loops, blocks, cubics
from odesim.flow.tableau import dop853
from odesim.small import lane_loops, lanes
from odesim.small.generated import lanes_text
from odesim.small.hitting import Flow

m, v, a, b = sympy.symbols("m v a b")
ESCAPE = Flow({"m": m**2 * (1 - m**2)})
PAIR = Flow({"m": a * m**2 * (1 - m**2) * v, "v": b * (1 - v) * m})
OSCILLATOR = Flow({"m": v, "v": -m})


def exact_time(q):
    return -1 / q + np.arctanh(q)


def test_times_are_those_of_the_closed_form_from_one_flow_to_many():
    start = np.array([0.6, *np.random.default_rng(0).permutation(np.logspace(-5, -0.5, 20))])
    times = ESCAPE.hitting_times({"m": start}, "m", 0.5, until=1e6, rtol=1e-11, atol=1e-17)
    np.testing.assert_allclose(times[1:], exact_time(0.5) - exact_time(start[1:]), rtol=1e-11)
    assert times[0] == 0.0
    alone = ESCAPE.hitting_times({"m": start[7]}, "m", 0.5, until=1e6, rtol=1e-11, atol=1e-17)
    assert alone.shape == () and alone == pytest.approx(times[7], rel=1e-14)
    short = ESCAPE.hitting_times({"m": start[1:].reshape(4, 5)}, "m", 0.5, until=20.0)
    assert short.shape == (4, 5)
    np.testing.assert_array_equal(np.isinf(short.ravel()), times[1:] > 20.0)


@pytest.mark.parametrize(("entry", "level", "sign"), [("m", 0.4, 1), ("v", 0.6, 1), ("m", -0.4, -1)])
def test_a_state_of_two_with_parameters_agrees_with_scipy(entry, level, sign):
    from scipy.integrate import solve_ivp

    rates = np.array([0.5, 1.0, 3.0])
    start = sign * 0.05
    values = {"m": start, "v": 0.1, "a": sign * rates, "b": sign * 0.7}
    until = 2000.0

    def scipy_time(rate):
        def slope(t, y):
            return [sign * rate * y[0] ** 2 * (1 - y[0] ** 2) * y[1], sign * 0.7 * (1 - y[1]) * y[0]]

        def reached(t, y):
            return y["mv".index(entry)] - level

        vars(reached)["terminal"] = True
        options = {"rtol": 1e-12, "atol": 1e-15, "max_step": 5.0, "events": reached}
        return solve_ivp(slope, (0.0, until), [start, 0.1], "DOP853", **options).t_events[0][0]

    times = PAIR.hitting_times(values, entry, level, until=until, direction=sign, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(times, [scipy_time(rate) for rate in rates], rtol=1e-8)
    if entry == "m":
        sized = PAIR.hitting_times(values, "m", 0.4, until=until, absolute=True, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(sized, times, rtol=1e-14)


def test_a_crossing_that_begins_and_ends_inside_a_step_is_found():
    for level in (0.3, 0.99):
        time = OSCILLATOR.hitting_times({"m": 0.0, "v": 1.0}, "m", level, until=20.0, rtol=1e-6)
        assert time == pytest.approx(np.arcsin(level), rel=1e-5)
    down = OSCILLATOR.hitting_times({"m": 0.0, "v": 1.0}, "m", -0.5, until=20.0, direction=-1)
    assert down == pytest.approx(np.pi + np.arcsin(0.5), rel=1e-8)
    assert np.isinf(OSCILLATOR.hitting_times({"m": 0.0, "v": 1.0}, "m", 1.001, until=20.0))


def test_a_size_that_passes_zero_within_a_step_has_fallen_to_its_level():
    start = np.array([1.0, -1.0, 0.005])
    values, options = {"m": start, "v": 0.0}, {"until": 20.0, "direction": -1, "absolute": True}
    for level in (0.1, 0.01, 1e-9, 0.0):
        times = OSCILLATOR.hitting_times(values, "m", level, **options)
        exact = np.where(abs(start) > level, np.arccos(np.minimum(level / abs(start), 1.0)), 0.0)
        np.testing.assert_allclose(times, exact, rtol=1e-8)
    with pytest.raises(UsageError, match=r"the level -0\.1 cannot be reached"):
        OSCILLATOR.hitting_times(values, "m", -0.1, **options)


def test_an_excursion_above_the_level_is_found_where_the_cubic_turns():
    """m = -b (v - 1)^2 with v the time: the cubic is exact, however long the step."""
    flow, gap = Flow({"m": -2 * b * (v - 1), "v": sympy.Integer(1)}), 1e-8
    rates = np.array([1.0, 1e2, 1e4])
    for sign in (1, -1):
        values = {"m": -sign * rates, "v": 0.0, "b": sign * rates}
        times = flow.hitting_times(values, "m", -sign * gap, until=50.0, direction=sign)
        np.testing.assert_allclose(times, 1.0 - np.sqrt(gap / rates), rtol=1e-9)
    assert cubics.turning(0.0, 1.0, 0.0, -1.0, 2.0) == 0.5
    assert cubics.turning(0.0, 1.0, 0.0, 1.0, 2.0) == 0.0


def test_a_flow_does_not_step_over_its_pole():
    flow = Flow({"m": m**2, "v": sympy.Integer(1)})
    with pytest.raises(NumericalError):
        flow.hitting_times({"m": 1.0, "v": 0.0}, "v", 2.0, until=5.0)


def test_a_step_that_ends_beyond_its_level_has_crossed_it(monkeypatch):
    """A stiff step taken again can differ by round-off times its stiffness, and end just before the level."""
    monkeypatch.setattr(block_loops, "locate", lambda *arguments: np.inf)
    for function in (cubics.measure, cubics.turning, cubics.bump):
        monkeypatch.setattr(block_loops, function.__name__, function)
    hits, rules, room = np.array([np.inf]), np.array([[0.5, 1.0, 0.0, 0.0]]), np.zeros((block_loops.J, 1))
    room[[block_loops.Y, block_loops.F, block_loops.END, block_loops.SLOPE], 0] = 0.4, 1.0, 0.5, 0.1
    block_loops.find_crossings.py_func(7.0, 0.2, True, (np.array([0]), rules), hits, None, (room,))
    assert hits[0] == 7.2


def test_a_crossing_that_only_the_cubic_shows_gives_the_step_back():
    """One entry, no parameter: rows y, f, new, slope, h, growth, rate; a lane that checks a crossing at h = 0.5."""
    rows, lane = np.zeros((7, 8)), np.zeros((9, 8))
    rows[:, 3] = [0.1, 1.0, 0.4, 0.0, 0.5, 2.0, 0.0]
    lane[:, 3] = [7.0, 1.0, 0.0, 0.5, 0.3, 1.0, 0.5, 2.0, 0.0]
    rule = (0.45, 1.0, 0.0, 1.0)
    assert lane_loops.take_step(rows, lane, 1, 3, 4, 0, rule, 20.0) == 1.0
    assert lane[7, 3] == 0.0 and lane[0, 3] == 7.0
    # The whole step again: the part up to one half of it is not looked at a second time.
    rows[:, 3] = [0.1, 1.0, 0.4, 0.0, 1.0, 2.0, 0.0]
    assert lane_loops.first_candidate(0.1, 1.0, 0.4, 0.0, 1.0, (0.3, 1.0, 0.0, 1.0), 0.0) == 0.5
    assert lane_loops.first_candidate(0.1, 1.0, 0.4, 0.0, 1.0, (0.3, 1.0, 0.0, 1.0), 0.5) == 0.75
    assert lane_loops.take_step(rows, lane, 1, 3, 4, 0, rule, 20.0) > 0.0
    assert lane[0, 3] == 8.0 and rows[0, 3] == 0.4


def test_the_written_out_step_is_scipys():
    from scipy.integrate._ivp.rk import rk_step

    table = dop853()
    A, B, E3, E5 = table.A, table.B, table.E3, table.E5
    kernel = PAIR._kernels["slopes"]
    namespace = {"np": np, "slopes": lambda S, lane, m, v, a, b: (a * m**2 * (1 - m**2) * v, b * (1 - v) * m)}
    assert PAIR.names == ("m", "v", "a", "b")
    for text in lanes.lane_functions(kernel, 2):
        exec(text, namespace)
    rows = np.zeros((14, 8))
    rows[13] = 1e-9 / 1e-6
    start = np.random.default_rng(1).uniform(0.1, 0.9, (4, 8))
    rows[:2], rows[8:10], rows[10] = start[:2], start[2:], np.linspace(0.1, 2.0, 8)
    for lane in range(8):
        namespace["lane_slope"](rows.reshape(-1), lane)
    namespace["lane_step"](rows.reshape(-1), 1e-6)
    for lane in range(8):
        one, two, rate_a, rate_b = start[:, lane]

        def slope(t, y, rate_a=rate_a, rate_b=rate_b):
            return np.array([rate_a * y[0] ** 2 * (1 - y[0] ** 2) * y[1], rate_b * (1 - y[1]) * y[0]])

        K, y, h = np.empty((13, 2)), np.array([one, two]), rows[10, lane]
        C = np.zeros(12)
        new, f = rk_step(slope, 0.0, y, slope(0.0, y), h, A, B, C, K)
        np.testing.assert_allclose(rows[4:6, lane], new, rtol=1e-14)
        np.testing.assert_allclose(rows[6:8, lane], f, rtol=1e-13)
        K[12] = f
        scale = 1e-9 + 1e-6 * np.maximum(np.abs(y), np.abs(new))
        five, three = (((K.T @ row / scale) ** 2).sum() for row in (E5, E3))
        norm = h * five / np.sqrt((five + 0.01 * three) * 2)
        assert rows[11, lane] == pytest.approx(norm ** (-1 / 8), rel=1e-3)


RELAXING = {"m": -1000 * (m - v), "v": sympy.Integer(1)}
"""From rest m = t - (1 - exp(-1000 t)) / 1000."""


def relaxing_times(flow):
    return flow.hitting_times({"m": [0.0, 9.0], "v": [0.0, 9.5]}, "m", 10.0, until=1e4, rtol=1e-7, atol=1e-9)


def test_flows_limited_by_stability_change_the_method(monkeypatch):
    flow = Flow(RELAXING)
    namespace = {}
    plain = "\n".join(line for line in lanes_text(flow._kernels, 2).splitlines() if not line.startswith("@"))
    exec(plain, namespace)
    vars(flow)["_lanes"] = types.SimpleNamespace(march_lanes=namespace["march_lanes"])
    called, whole = [], blocks.hitting_times

    def counted(functions, starts, *rest):
        called.append(len(starts))
        return whole(functions, starts, *rest)

    monkeypatch.setattr(blocks, "hitting_times", counted)
    with np.errstate(divide="ignore", invalid="ignore"):  # as numba has it
        np.testing.assert_allclose(relaxing_times(flow), [10.001, 0.501], rtol=1e-6)
    assert called == [2]
    monkeypatch.setattr(blocks, "MOST_STEPS", 3)
    with (
        np.errstate(divide="ignore", invalid="ignore"),
        pytest.raises(NumericalError, match="2 of 2 flows"),
    ):
        relaxing_times(flow)


@pytest.mark.slow
def test_stiff_flows_close_to_their_fixed_point_cross_every_level():
    """m follows v = 1 - exp(-t), a billion times faster: noise of 1e-8 in a step, and no crossing lost."""
    flow = Flow({"m": -a * (m - v), "v": 1 - v})
    for gap in np.logspace(-7, -9.3, 40):
        time = flow.hitting_times({"m": 0.0, "v": 0.0, "a": 1e9}, "m", 1 - gap, until=1e3)
        assert time == pytest.approx(-np.log(gap), rel=0.01)


@pytest.mark.slow
def test_the_compiled_flow_changes_the_method_too():
    np.testing.assert_allclose(relaxing_times(Flow(RELAXING)), [10.001, 0.501], rtol=1e-6)


MIXED = sympy.E * abs(m) * m + sympy.sqrt(2) * sympy.sin(m) + sympy.sign(m) / m**3 + m**-14 / 1000
MIXED += sympy.cos(a * m) / (1 + m) + sympy.sinh(m) * sympy.cosh(m) + sympy.asin(m) * sympy.erf(m) + sympy.pi


def test_quotients_constants_and_functions_are_those_of_sympy():
    """One flow in eight lanes: the others hold zeros, by which nothing may stumble."""
    from scipy.integrate import quad

    slope = sympy.lambdify(m, MIXED.subs(a, 2), "scipy")
    exact = quad(lambda x: 1 / slope(x), 0.3, 0.9, epsabs=1e-14, epsrel=1e-13)[0]
    time = Flow({"m": MIXED}).hitting_times({"m": 0.3, "a": 2.0}, "m", 0.9, until=10.0, rtol=1e-11)
    assert time == pytest.approx(exact, rel=1e-10)


def test_the_jacobian_of_every_function_is_real_and_right():
    flow = Flow({"m": MIXED * sympy.log(a) + sympy.tanh(m) * sympy.exp(-m)})
    slope, jacobian = (arrays.array_kernel(flow._kernels[name]) for name in ("slopes", "jacobian"))
    for at in (-0.6, 0.4, 0.8):
        (above,), (below,) = (slope(None, at + h, 2.0) for h in (1e-6, -1e-6))
        assert jacobian(None, at, 2.0)[0] == pytest.approx((above - below) / 2e-6, rel=1e-6)


def test_a_flow_that_fails_is_an_error():
    flow = Flow({"m": sympy.log(a - m)})
    with pytest.raises(NumericalError, match="the step size fell to zero in 1 of 2 flows"):
        flow.hitting_times({"m": 0.0, "a": [-1.0, 5.0]}, "m", 2.0, until=10.0)


def test_mistakes_are_named():
    def times(flow=PAIR, entry="m", until=1.0, **changed):
        values = {"m": 0.1, "v": 0.1, "a": 1.0, "b": 1.0, **changed}
        return flow.hitting_times(values, entry, 0.5, until=until)

    with pytest.raises(
        UsageError, match="needs values of m, v at time 0 and of the parameters a, b, but got m, v, a, b, c"
    ):
        times(c=1.0)
    with pytest.raises(UsageError, match="no entry 'w'"):
        times(entry="w")
    with pytest.raises(UsageError, match="do not broadcast"):
        times(m=[0.1, 0.2], v=[0.1, 0.2, 0.3])
    with pytest.raises(UsageError, match="finite"):
        times(m=np.nan)
    with pytest.raises(UsageError, match="a finite until > 0"):
        times(until=np.inf)
    with pytest.raises(UsageError, match="are numbers"):
        times(until="late")
    with pytest.raises(UsageError, match="are not numbers"):
        times(m="small")
    with pytest.raises(UsageError, match="the level nan cannot be reached"):
        PAIR.hitting_times({"m": 0.1, "v": 0.1, "a": 1.0, "b": 1.0}, "m", np.nan, until=1.0)
    with pytest.raises(UsageError, match="the slope of m uses gamma"):
        Flow({"m": sympy.gamma(m)})
    with pytest.raises(UsageError, match="the slope of m is not a finite real expression: I"):
        Flow({"m": sympy.I * m})
    with pytest.raises(UsageError, match="at least one entry"):
        Flow({})


@pytest.mark.slow
def test_trajectories_are_labelled_and_equal_a_closed_form_and_another_library():
    import scipy.integrate

    x, v, w = sympy.symbols("x v w")
    flow = Flow({"x": v, "v": -(w**2) * x})
    assert flow.states == ("x", "v") and flow.parameters == ("w",)
    speed = np.array([[1.0], [2.0], [3.0]])
    run = flow.integrate({"x": [1.0, 0.5], "v": 0.0, "w": speed}, until=10.0, save_points=41)
    assert run["x"].dims == ("flow_0", "flow_1", "time") and run["w"].dims == ("flow_0", "flow_1")
    exact = np.array([1.0, 0.5])[None, :, None] * np.cos(speed[..., None] * run["time"].values)
    assert np.abs(run["x"].values - exact).max() < 1e-7
    stiff = Flow({"x": -(10**4) * (x - sympy.cos(v)), "v": 1 + 0 * v})
    found = stiff.integrate({"x": 1.0, "v": 0.0}, until=5.0, save_points=6)
    other = scipy.integrate.solve_ivp(
        lambda t, y: [-1e4 * (y[0] - np.cos(y[1])), 1.0], (0, 5), [1.0, 0.0], "Radau", found["time"].values,
        rtol=1e-10, atol=1e-12,
    )  # fmt: skip
    assert np.abs(found["x"].values - other.y[0]).max() < 1e-8


def test_a_trajectory_that_cannot_be_is_refused():
    m = sympy.Symbol("m")
    with pytest.raises(UsageError, match="values of m at time 0 and has no parameters"):
        Flow({"m": m}).integrate({}, until=1.0)
    with pytest.raises(UsageError, match="save_points must be at least 2"):
        Flow({"m": m}).integrate({"m": 1.0}, until=1.0, save_points=1)
    with pytest.raises(NumericalError):
        Flow({"m": m**2}).integrate({"m": 1.0}, until=2.0)


TINY = np.array([1e-3, 1e-5, 1e-8, 1e-12, 1e-20, 1e-50, 1e-100, 1e-200, 1e-300])


def test_tiny_starts_escape_when_the_closed_forms_say():
    """m' = m (1 - m^2), m^2 (1 - m^2) and m^3 (1 - m^2), to ten times the default tolerance of 1e-9."""
    forms = {
        1: lambda q: np.log(q) - np.log1p(-(q**2)) / 2,
        2: lambda q: -1 / q + np.arctanh(q),
        3: lambda q: -0.5 / q / q + np.log(q) - np.log1p(-(q**2)) / 2,
    }
    for power, primitive in forms.items():
        start = TINY[TINY**power > 1e-300] if power > 1 else TINY
        exact = primitive(0.5) - primitive(start)
        flow = Flow({"m": m**power * (1 - m**2)})
        for options in ({}, {"atol": 0.0}):
            times = flow.hitting_times({"m": start}, "m", 0.5, until=2 * exact.max(), **options)
            np.testing.assert_allclose(times, exact, rtol=1e-8)


def test_a_trajectory_from_a_tiny_start_is_that_of_the_closed_form():
    """At 1e-300 the tolerance itself, 1e-311, has no reciprocal: compiled blocks refuse it."""
    start = np.append(TINY[:-1], 1e-295)
    run = Flow({"m": m * (1 - m**2)}).integrate({"m": start}, until=700.0, save_points=8)
    grown = start[:, None] * np.exp(np.minimum(run["time"].values, 700.0))
    exact = np.where(grown < 1e150, grown / np.sqrt(1 - start[:, None] ** 2 + np.minimum(grown, 1e150) ** 2), 1.0)
    np.testing.assert_allclose(run["m"].values, exact, rtol=1e-6)


def test_slopes_that_underflow_are_told_from_a_flow_at_rest():
    flow = Flow({"m": m**3 * (1 - m**2)})
    with pytest.raises(UsageError, match="underflow in float64"):
        flow.hitting_times({"m": 1e-200}, "m", 0.5, until=1e300)
    with pytest.raises(UsageError, match="underflow in float64"):
        flow.integrate({"m": 1e-200}, until=1e300, save_points=3)
    assert flow.hitting_times({"m": 0.0}, "m", 0.5, until=1e300) == np.inf
    assert Flow({"m": a * m}).hitting_times({"m": 1e-200, "a": 0.0}, "m", 0.5, until=10.0) == np.inf


def test_an_absolute_tolerance_of_zero_needs_a_start_without_zeros():
    with pytest.raises(UsageError, match="atol = 0 leaves the error of an entry that starts at 0"):
        PAIR.hitting_times({"m": 0.1, "v": 0.0, "a": 1.0, "b": 1.0}, "m", 0.5, until=10.0, atol=0.0)
    with pytest.raises(UsageError, match="atol >= 0"):
        ESCAPE.hitting_times({"m": 0.1}, "m", 0.5, until=10.0, atol=-1.0)


@pytest.mark.parametrize(
    ("slope", "rate"),
    [
        (sympy.acos(m), np.arccos),
        (1 + sympy.atan(m), lambda q: 1 + np.arctan(q)),
        (sympy.Max(m, a) + sympy.Abs(m - a), lambda q: max(q, 0.3) + abs(q - 0.3)),
        (sympy.Min(m, a) + sympy.asin(m), lambda q: min(q, 0.3) + np.arcsin(q)),
        (sympy.Piecewise((1, m < a), (2 + m, (m > 0.4) & (m < 0.45)), (m, True)), None),
    ],
)
def test_slopes_with_kinks_and_inverse_functions_agree_with_quadrature(slope, rate):
    from scipy.integrate import quad

    flow = Flow({"m": slope})
    values = {"m": 0.1, "a": 0.3} if a in slope.free_symbols else {"m": 0.1}
    if rate is None:
        exact = 0.2 + np.log(0.4 / 0.3) + np.log(2.45 / 2.4) + np.log(0.5 / 0.45)
    else:
        exact = quad(lambda q: 1 / rate(q), 0.1, 0.5, points=[0.3], epsabs=1e-13)[0]
    assert flow.hitting_times(values, "m", 0.5, until=10.0) == pytest.approx(exact, rel=1e-7)
    run = flow.integrate(values, until=exact, save_points=2)
    assert float(run["m"].values[-1]) == pytest.approx(0.5, rel=1e-6)


def test_a_piecewise_slope_says_what_it_is_everywhere():
    with pytest.raises(UsageError, match="leaves some states without a value"):
        Flow({"m": sympy.Piecewise((1, m < 0.5))})
    with pytest.raises(UsageError, match="uses gamma"):
        Flow({"m": sympy.gamma(m)})


@pytest.mark.parametrize("centre", [3.0, 7.3217, 9.9])
def test_a_pulse_after_a_quiet_stretch_is_not_stepped_over(centre):
    """A pulse of width 0.01 raises m by 0.01 sqrt(2 pi), half of it until its centre."""
    t = sympy.Symbol("t")
    flow = Flow({"t": 1, "m": sympy.exp(-((t - centre) ** 2) / (2 * sympy.Float(0.01) ** 2))})
    start, rise = {"t": 0.0, "m": 0.0}, 0.01 * np.sqrt(2 * np.pi)
    run = flow.integrate(start, until=10.0, save_points=3)
    assert abs(run["m"].values[-1] / rise - 1) < 1e-8
    assert abs(flow.hitting_times(start, "m", rise / 2, until=10.0) - centre) < 1e-9


def test_the_longest_step_is_what_is_asked_for():
    t = sympy.Symbol("t")
    slope = sympy.exp(-((t - 5) ** 2) / (2 * sympy.Float(1e-4) ** 2))
    start, rise = {"t": 0.0, "m": 0.0}, 1e-4 * np.sqrt(2 * np.pi)
    assert np.isinf(Flow({"t": 1, "m": slope}).hitting_times(start, "m", rise / 2, until=10.0))  # narrower than a step
    assert abs(Flow({"t": 1, "m": slope}, longest=1e-4).hitting_times(start, "m", rise / 2, until=10.0) - 5) < 1e-9


@pytest.mark.parametrize("longest", [0.0, -1.0, float("nan")])
def test_a_longest_step_that_is_none_is_refused(longest):
    with pytest.raises(UsageError, match="longest is the longest step of a flow"):
        Flow({"m": 1}, longest=longest)
