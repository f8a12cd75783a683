"""The time at which m' = m^2 (1 - m^2), the flow of a single index with information exponent 3, reaches m = 1/2.

From m(0) = d^(-1/2) at d = 1e4, and at 1,024 values of d from 1e2 to 1e8; the exact time is F(1/2) - F(m(0)) with
F(m) = -1/m + artanh m.
"""

import contextlib
import functools
import math
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.measure import Row, compare
from derivations.contract import Crossing

START, LEVEL = 1e-2, 0.5
RTOL, ATOL = 1e-10, 1e-12
EXACT = (-1 / LEVEL + math.atanh(LEVEL)) - (-1 / START + math.atanh(START))
MANY = np.logspace(2, 8, 1024) ** -0.5
CROSSING = Crossing("T", "m", LEVEL, terminal=True, reason="m reached its level")


def slope(m: Any) -> Any:
    """dm/dt."""
    return m * m * (1.0 - m * m)


def rows(quick: bool) -> list[Row]:
    """Our paths and the peers, warm, one core, all at rtol 1e-10 and atol 1e-12 (heyoka: machine precision)."""
    solvers: dict[str, Callable[[], float]] = {
        "odesim.Flow": ours(), "recorder": ours_dop853(), "recorder, JAX": ours_jax()
    }  # fmt: skip
    notes = {}
    for name, build in PEERS.items():
        try:
            solvers[name] = build()
            solvers[name]()
        except (Exception, SystemExit) as error:  # a failed build of C leaves by SystemExit
            solvers.pop(name, None)
            notes[name] = peers.reason(error)
    times = compare(solvers, 5 if quick else 40, budget=3.0)
    errors = {name: abs(solve() - EXACT) / EXACT for name, solve in solvers.items()}
    found = []
    for path in WHAT:
        for name in PEERS:
            peer = times.get(name)
            note = notes.get(name) or NOTES.get(name, "")
            found.append(
                Row(
                    f"hitting time, information exponent 3, d = 1e4, {path}", times[path].median, times[path].spread,
                    name, peer.median if peer else None, errors[path], errors.get(name),
                    note=f"{WHAT[path]}; {note}".rstrip("; "),
                )
            )  # fmt: skip
    return [*found, *many(quick)]


WHAT = {
    "odesim.Flow": "bar 9 us",
    "recorder": "odesim's stepper and recorder, as in a run, with DOP853",
    "recorder, JAX": "odesim's stepper and recorder, as in a run, around diffrax's Dopri8",
}
NOTES = {"JiTCODE": "no event: integrates to the exact time, error taken from the state there"}


def many(quick: bool) -> list[Row]:
    """1,024 hitting times on one core, at relative 1e-9, against heyoka's scalar loop."""
    exact = EXACT - 1 / START + np.arctanh(START) + 1 / MANY - np.arctanh(MANY)
    solvers: dict[str, Callable[[], Any]] = {
        "ours": functools.partial(flow().hitting_times, {"m": MANY}, "m", LEVEL, until=1e5, rtol=1e-9, atol=1e-16)
    }
    note = "bar 8 ms at 1e-9"
    try:
        one = heyoka()
        solvers["heyoka"] = lambda: np.array([one(start) for start in MANY])
    except Exception as error:
        note += f"; {peers.reason(error)}"
    times = compare(solvers, 5 if quick else 20)
    worst = {name: float(np.abs(solve() / exact - 1).max()) for name, solve in solvers.items()}
    peer = times.get("heyoka")
    return [
        Row(
            "1,024 hitting times, information exponent 3, d = 1e2..1e8", times["ours"].median,
            times["ours"].spread, "heyoka", peer.median if peer else None, worst["ours"], worst.get("heyoka"),
            note=note,
        )
    ]  # fmt: skip


@functools.cache
def flow() -> Any:
    """The flow, for odesim."""
    import sympy

    import odesim

    return odesim.Flow({"m": slope(sympy.Symbol("m"))})


def ours() -> Callable[[], float]:
    """odesim's hitting times of small flows."""
    options = {"until": 2 * EXACT, "rtol": RTOL, "atol": ATOL}
    return lambda: float(flow().hitting_times({"m": START}, "m", LEVEL, **options))


def ours_dop853() -> Callable[[], float]:
    """odesim's DOP853 and root-finding recorder."""
    import numba

    from odesim.flow.solvers import dop853, step

    compiled = numba.njit(lambda t, y: y * y * (1.0 - y * y))
    y = np.array([START])

    def solve() -> float:
        span = step.Span(0.0, y, 2 * EXACT, RTOL, ATOL, step.Statistics("DOP853"))
        return _first_hit(y, dop853.dop853_steps(compiled, span))

    return solve


def ours_jax() -> Callable[[], float]:
    """odesim's diffrax stepper and root-finding recorder."""
    import jax

    from odesim.flow.solvers import diffrax, step

    jax.config.update("jax_enable_x64", True)
    y = np.array([START])

    def traced(t: Any, y: Any) -> Any:
        return slope(y)

    def solve() -> float:
        span = step.Span(0.0, y, 2 * EXACT, RTOL, ATOL, step.Statistics("Dopri8"))
        segments = diffrax.diffrax_steps("Dopri8", traced, (), span)
        return _first_hit(y, segments)

    return solve


def _first_hit(y: Any, segments: Any) -> float:
    """The time at which the recorder stops the run."""
    from odesim.flow.record import Recorder

    recorder = Recorder(_equations(), 0.0, y, np.zeros(1))
    for segment in segments:
        if recorder.take(segment):
            return recorder.end[0]
    raise RuntimeError("the level was not reached")


@functools.cache
def _equations() -> Any:
    """The one-dimensional flow as the recorder knows it: a component, and the crossing that ends the run."""
    import types

    from derivations.contract import Dense, Layout

    layout = Layout((Dense("m", (1,)),))
    return types.SimpleNamespace(crossings=(CROSSING,), layout=layout, unpack=layout.unpack)


def heyoka() -> Callable[..., float]:
    """Taylor series with a terminal event."""
    import heyoka as hk

    x = hk.make_vars("x")
    taylor = hk.taylor_adaptive([(x, slope(x))], [START], t_events=[hk.t_event(x - LEVEL)])

    def solve(start: float = START) -> float:
        taylor.time = 0.0
        taylor.state[0] = start
        taylor.reset_cooldowns()
        taylor.propagate_until(2 / start)
        return float(taylor.time)

    return solve


def diffrax() -> Callable[[], float]:
    """Tsit5 with an event and Newton's method, the program's documented way."""
    import diffrax as dfx
    import jax
    import optimistix

    jax.config.update("jax_enable_x64", True)
    event = dfx.Event(lambda t, y, args, **_: y - LEVEL, optimistix.Newton(1e-12, 1e-12))
    controller = dfx.PIDController(rtol=RTOL, atol=ATOL)
    term = dfx.ODETerm(lambda t, y, args: slope(y))

    @jax.jit
    def run(start: Any) -> Any:
        solution = dfx.diffeqsolve(
            term, dfx.Tsit5(), 0.0, 2 * EXACT, 0.1, start, event=event, stepsize_controller=controller
        )
        return solution.ts[-1]  # type: ignore[index]

    return lambda: float(run(START))


def scipy() -> Callable[[], float]:
    """`solve_ivp` with DOP853 and a terminal event."""
    import scipy.integrate

    def event(t: float, y: Any) -> Any:
        return y[0] - LEVEL

    vars(event)["terminal"] = True

    def solve() -> float:
        run = scipy.integrate.solve_ivp(
            lambda t, y: slope(y), (0.0, 2 * EXACT), [START], "DOP853", events=event, rtol=RTOL, atol=ATOL
        )
        return float(run.t_events[0][0])

    return solve


def torchdiffeq() -> Callable[[], float]:
    """`odeint_event` with dopri5, the more accurate of its two usual methods here."""
    import torch
    import torchdiffeq as tde

    torch.set_num_threads(1)
    start, zero = torch.tensor([START], dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64)

    def solve() -> float:
        with torch.no_grad():
            time, _ = tde.odeint_event(
                lambda t, y: slope(y), start, zero, event_fn=lambda t, y: y[0] - LEVEL,
                rtol=RTOL, atol=ATOL, method="dopri5",
            )  # fmt: skip
        return float(time)

    return solve


def jitcode() -> Callable[[], float]:
    """Compiled C in SciPy's older dop853; it has no events."""
    import jitcode as jc

    ode = jc.jitcode([slope(jc.y(0))], verbose=False)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # it builds a package where it stands
        ode.set_integrator("dop853", rtol=RTOL, atol=ATOL, nsteps=100_000)

    def solve() -> float:
        ode.set_initial_value([START], 0.0)
        m = float(ode.integrate(EXACT)[0])
        return EXACT - (m - LEVEL) / slope(LEVEL)

    return solve


PEERS = {
    "heyoka": heyoka,
    "diffrax": diffrax,
    "SciPy": scipy,
    "torchdiffeq": torchdiffeq,
    "JiTCODE": jitcode,
}
