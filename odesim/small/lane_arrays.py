"""Many small flows in lockstep as array operations for JAX, from the first step to the crossings in one compiled call.

The method, its control and the search for the crossing are those of `lane_loops`; a lane that is done waits.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from odesim.flow.block_loops import bump
from odesim.flow.blocks import coefficients

MARCH, LOCATE, CHECK, DONE = 0, 1, 2, 3
"""What a lane does: takes steps, locates its crossing, checks a crossing that the cubic alone shows, waits; the status
of a lane that has failed is added to DONE."""
Slopes = Callable[..., tuple[Any, ...]]
Ends = tuple[Any, Any, Any, Any]
"""The entry and its slope at the start of a step, and at its end."""


class Rule(NamedTuple):
    """A crossing: which entry, its threshold, the direction, and whether its size counts."""

    entry: int
    threshold: Any
    direction: Any
    absolute: bool

    def measure(self, value: Any) -> Any:
        """How far beyond the threshold."""
        return self.direction * ((jnp.abs(value) if self.absolute else value) - self.threshold)

    def rate(self, value: Any, slope: Any) -> Any:
        """The derivative of `measure` in time."""
        return self.direction * (jnp.sign(value) * slope if self.absolute else slope)


class Lanes(NamedTuple):
    """What the loop carries, over the flows; few arrays, since each costs a copy in every turn.

    State and slope (tuples over its entries), the time (at the end the time of the crossing), the next step, the last
    one times its norm^(-1/8), then for a crossing the whole step, the lowest trial (in steps: the fraction of the step
    already looked at) and the highest; what the lane does, how many steps stability limited; and the turns taken.
    """

    y: tuple[Any, ...]
    f: tuple[Any, ...]
    t: Any
    h: Any
    trend: Any
    full: Any
    low: Any
    high: Any
    mode: Any
    limited: Any
    turns: Any


def step(slopes: Slopes, y: tuple[Any, ...], f: tuple[Any, ...], h: Any, rtol: Any, atol: Any) -> tuple[Any, ...]:
    """One step of DOP853: the new state, its slope, norm^(-1/8) of the error, and (h times the largest rate)^2."""
    A, B, E3, E5 = coefficients()
    n, F, stage = range(len(y)), [f], y

    def combined(weights: Any, i: int) -> Any:
        return sum(float(c) * F[s][i] for s, c in enumerate(weights) if c != 0)

    for s in range(1, 12):
        stage = tuple(y[i] + h * combined(A[s], i) for i in n)
        F.append(slopes(*stage))
    new = tuple(y[i] + h * combined(B, i) for i in n)
    F.append(slopes(*new))
    scale = [atol + rtol * jnp.maximum(jnp.abs(y[i]), jnp.abs(new[i])) for i in n]
    five = sum((combined(E5, i) / scale[i]) ** 2 for i in n)
    three = sum((combined(E3, i) / scale[i]) ** 2 for i in n)
    norm = h * five / jnp.sqrt((five + 0.01 * three) * len(y) + 1e-300)
    rise = sum((F[12][i] - F[11][i]) ** 2 for i in n)
    run = sum(((new[i] - stage[i]) ** 2 for i in n), start=1e-300)
    return new, F[12], 1.0 / jnp.sqrt(jnp.sqrt(jnp.sqrt(norm))), h * h * rise / run


def candidate(rule: Rule, ends: Ends, h: Any, after: Any) -> Any:
    """`lane_loops.first_candidate`."""
    x = turning(ends, h)
    found = jnp.where((after < x) & (rule.measure(bump(*ends, h, x)) >= 0.0), x, 0.0)
    found = jnp.where((after < 1.0) & (rule.measure(ends[2]) >= 0.0), 1.0, found)
    for x in (0.75, 0.5, 0.25):
        found = jnp.where((after < x) & (rule.measure(bump(*ends, h, x)) >= 0.0), x, found)
    return found


def turning(ends: Ends, h: Any) -> Any:
    """`block_loops.turning`."""
    v0, s0, v1, s1 = ends
    a, b = h * jnp.abs(s0), -h * jnp.abs(s1)
    rise = (v1 - v0) * jnp.sign(s0)
    quadratic, cubic = 3.0 * rise - 2.0 * a - b, a + b - 2.0 * rise
    turns = s0 * s1 < 0.0
    root = jnp.sqrt(jnp.where(turns, quadratic * quadratic - 3.0 * cubic * a, 1.0)) - quadratic
    return jnp.where(turns, a / jnp.where(turns, root, 1.0), 0.0)


def cubic_root(rule: Rule, ends: Ends, h: Any) -> Any:
    """`lane_loops.cubic_root` over the whole step."""
    low, high = jnp.zeros_like(h), jnp.ones_like(h)
    for _ in range(9):
        middle = 0.5 * (low + high)
        beyond = rule.measure(bump(*ends, h, middle)) >= 0.0
        low, high = jnp.where(beyond, low, middle), jnp.where(beyond, middle, high)
    return 0.5 * (low + high) * h


def advance(slopes: Slopes, rule: Rule, until: Any, rtol: Any, atol: Any, most: Any, lanes: Lanes) -> Lanes:
    """One step of all lanes, and what each makes of it (`lane_loops.take_step`)."""
    h, t, mode, e = lanes.h, lanes.t, lanes.mode, rule.entry
    new, slope, growth, stiff = step(slopes, lanes.y, lanes.f, h, rtol, atol)
    ends = (lanes.y[e], lanes.f[e], new[e], slope[e])
    marching, accepted = mode == MARCH, growth >= 1.0
    x = candidate(rule, ends, h, lanes.low)
    moved, met, sure = marching & accepted & (x == 0.0), marching & accepted & (x > 0.0), x == 1.0
    last = moved & (h >= until - t)
    t_new = jnp.where(moved, jnp.where(last, until, t + h), t)

    value, rate = rule.measure(new[e]), rule.rate(new[e], slope[e])
    missed = (mode == CHECK) & (value < 0.0)
    locating = (mode == LOCATE) | ((mode == CHECK) & (value >= 0.0))
    low = jnp.where(met | moved, 0.0, jnp.where(missed, lanes.high / lanes.full, lanes.low))
    low = jnp.where(locating & (value < 0.0), h, low)
    high = jnp.where(locating & (value >= 0.0), h, jnp.where(met, x * h, lanes.high))
    full = jnp.where(met, h, lanes.full)
    root = jnp.where(rate > 0.0, h - value / rate, -1.0)
    close = (root > 0.0) & (jnp.abs(root - h) <= 1e-8 * full)
    hit = locating & (close | (high - low <= 1e-13 * high))

    rejected = h * jnp.where(growth > 0.0, jnp.clip(0.9 * growth, 0.2, 0.9), 0.2)
    first = jnp.where(sure, cubic_root(rule, ends, h), x * h)
    trial = jnp.where((low < root) & (root < high), root, 0.5 * (low + high))
    h_new = jnp.where(
        moved, longer(h, growth, lanes.trend), jnp.where(met, first, jnp.where(marching, rejected, trial))
    )
    h_new = jnp.where(missed, lanes.full, h_new)
    limited = jnp.where(moved, jnp.maximum(0, lanes.limited + jnp.where(stiff > 25.0, 1, -1)), lanes.limited)

    failed = jnp.where(h_new < 1e-300, 2, jnp.where(lanes.turns >= most, 3, jnp.where(limited >= 8, 4, 0)))
    mode_new = jnp.where(
        met, jnp.where(sure, LOCATE, CHECK), jnp.where(missed, MARCH, jnp.where(locating, LOCATE, mode))
    )
    mode_new = jnp.where(hit | last, DONE, jnp.where(failed > 0, DONE + failed, mode_new))
    waiting = mode >= DONE
    found = jnp.where(hit, t + jnp.where(close, root, high), jnp.where(last, jnp.inf, t_new))
    return Lanes(
        y=tuple(jnp.where(moved, a, b) for a, b in zip(new, lanes.y, strict=True)),
        f=tuple(jnp.where(moved, a, b) for a, b in zip(slope, lanes.f, strict=True)),
        t=jnp.where(waiting, t, found),
        h=jnp.minimum(h_new, until - t_new),
        trend=jnp.where(moved, h * jnp.minimum(growth, 10.0**0.5), lanes.trend),
        full=full,
        low=low,
        high=high,
        mode=jnp.where(waiting, mode, mode_new),
        limited=limited,
        turns=lanes.turns + 1,
    )


def longer(h: Any, growth: Any, trend: Any) -> Any:
    """The step after an accepted one: by its error, and by the trend of the error (Gustafsson 1994)."""
    factor = 0.9 * growth
    factor = jnp.where((trend > 0.0) & jnp.isfinite(growth), jnp.minimum(factor, factor * growth * h / trend), factor)
    return h * jnp.clip(factor, 0.2, 5.0)


def compile_lanes(slopes: Slopes, n: int) -> Callable[..., Any]:
    """Jitted `march(table, numbers, entry, absolute)` of all flows; few arguments, each of which costs microseconds.

    `table` (flows, n + q) holds states and parameters, `numbers` = (threshold, direction, until, rtol, atol, most), and
    `slopes(None, *state, *parameters)` is the kernel.  The result (2, flows) has the times and the status of
    `lane_loops.march_lanes`.
    """

    def march(table: Any, numbers: Any, entry: int, absolute: bool) -> Any:
        threshold, direction, until, rtol, atol, most = numbers
        rule = Rule(entry, threshold, direction, absolute)
        y, fixed = tuple(table[:, i] for i in range(n)), tuple(table[:, n:].T)

        def flow(*state: Any) -> tuple[Any, ...]:
            return tuple(jnp.broadcast_to(s, state[0].shape) for s in slopes(None, *state, *fixed))

        lanes = jax.lax.while_loop(
            lambda lanes: (lanes.mode < DONE).any(),
            lambda lanes: advance(flow, rule, until, rtol, atol, most, lanes),
            begin(flow, rule, y, until, atol),
        )
        return jnp.stack([lanes.t, lanes.mode - DONE])

    return jax.jit(march, static_argnums=(2, 3))


def begin(slopes: Slopes, rule: Rule, y: tuple[Any, ...], until: Any, atol: Any) -> Lanes:
    """All lanes at time 0, with the first step of `lane_loops.load_lane`."""
    f = slopes(*y)
    size, speed = (jnp.max(jnp.abs(jnp.stack(a)), axis=0) for a in (y, f))
    zero, whole = jnp.zeros_like(y[0]), jnp.zeros(y[0].shape, jnp.int32)
    return Lanes(
        y=y,
        f=f,
        t=zero,
        h=jnp.where(speed > 0.0, jnp.minimum(until, 0.05 * (size + atol) / speed), until),
        trend=zero,
        full=zero,
        low=zero,
        high=zero,
        mode=jnp.where(rule.measure(y[rule.entry]) >= 0.0, DONE, MARCH).astype(jnp.int32),
        limited=whole,
        turns=jnp.zeros((), jnp.int32),
    )
