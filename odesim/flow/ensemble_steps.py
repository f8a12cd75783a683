"""Many flows of one shape stepped side by side by one compiled JAX program, and steps of them taken again."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from odesim.code.traced import jax_slope
from odesim.flow.solvers.diffrax import CHUNK, make_controller, make_solver
from odesim.flow.solvers.step import QUARTERS

START = 1e-3
"""The first step moves no entry by more than this, as in `diffrax.diffrax_steps`."""
CLIP = 1e-14
"""A step that would end this close (relative) to the horizon ends at it."""


@functools.lru_cache(maxsize=64)
def lane_functions(
    flow: Callable[..., Any], sizes: tuple[int | None, ...], shared: tuple[bool, ...], solver: str
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Jitted `advance` (a chunk of steps in every lane) and `again` (one step to a time in every lane).

    `advance(lanes, fixed, arrays)` takes up to `CHUNK` steps in every lane whose `running` is set, and returns the
    lanes.  `lanes` holds arrays over lanes: t, y (lanes, n), step (0: to be chosen) and running; `fixed` what a lane
    keeps: until, due (its next save time), rtol, atol, always (every step counts), and the entries that it waits for
    (places, signs, levels (lanes, W)), see `Recorder.watched`.  A lane stops at its horizon, after an accepted step in
    which something that it waits for may happen, after `CHUNK` rejections in a row, or where a step is no longer than
    the spacing of the numbers; the program ends when half of the lanes have stopped, so that few wait for one.
    `arrays` are the run-time arguments, over lanes unless `shared`.
    """
    import diffrax
    import jax

    slope = jax_slope(flow, sizes)
    term = diffrax.ODETerm(slope)
    axes = [None if same else 0 for same in shared]

    def begin(lane: Any, fixed: Any, arrays: list[Any]) -> Any:
        return _begin(slope, term, solver, lane, fixed, arrays)

    def attempt(lane: Any, fixed: Any, arrays: list[Any]) -> Any:
        return _attempt(slope, term, solver, lane, fixed, arrays)

    def single(t: Any, y: Any, until: Any, rtol: Any, atol: Any, arrays: list[Any]) -> Any:
        method = make_solver(solver, rtol, atol)
        return method.step(term, t, until, y, arrays, method.init(term, t, until, y, arrays), made_jump=False)[0]

    @jax.jit
    def advance(lanes: Any, fixed: Any, arrays: list[Any]) -> Any:
        alive = lanes["running"].sum()
        step = jax.vmap(attempt, (0, 0, axes))

        def going(carry: Any) -> Any:
            return (carry[0] < CHUNK) & (2 * carry[1]["running"].sum() > alive)

        carry = (0, jax.vmap(begin, (0, 0, axes))(lanes, fixed, arrays))
        carry = jax.lax.while_loop(going, lambda carry: (carry[0] + 1, step(carry[1], fixed, arrays)), carry)
        return {name: value for name, value in carry[1].items() if name != "method"}

    return advance, jax.jit(jax.vmap(single, (0, 0, 0, 0, 0, axes)))


def _begin(slope: Any, term: Any, solver: str, lane: Any, fixed: Any, arrays: list[Any]) -> Any:
    """One lane with its slope, first step, the state of the method, and counters at zero."""
    import jax.numpy as jnp

    t, y = lane["t"], lane["y"]
    derivative = slope(t, y, arrays)
    largest = jnp.abs(derivative).max(initial=0.0)
    rest = fixed["until"] - t
    first = jnp.where(largest > 0, jnp.minimum(rest, START / largest), rest)
    step = jnp.where(lane["step"] > 0, lane["step"], first)
    method = make_solver(solver, fixed["rtol"], fixed["atol"]).init(term, t, t + step, y, arrays)
    counters = {name: jnp.zeros_like(lane["streak"]) for name in ("accepted", "rejected")}
    before = {"t0": t, "y0": y, "f0": derivative}
    return {**lane, **before, **counters, "f": derivative, "step": step, "method": method}


def _attempt(slope: Any, term: Any, solver: str, lane: Any, fixed: Any, arrays: list[Any]) -> Any:
    """One lane after one attempted step; unchanged where it does not run.

    The size of the steps is chosen by the controller of `diffrax.diffrax_functions`.
    """
    import jax
    import jax.numpy as jnp

    method = make_solver(solver, fixed["rtol"], fixed["atol"])
    control = make_controller(fixed["rtol"], fixed["atol"], (fixed["lower"], fixed["upper"]))
    t0, y0, until, order = lane["t"], lane["y"], fixed["until"], method.error_order(term)
    t1 = t0 + lane["step"]
    t1 = jnp.where(t1 >= until - CLIP * jnp.abs(until), until, t1)
    y1, error, _, state, _ = method.step(term, t0, t1, y0, arrays, lane["method"], made_jump=False)
    error = jnp.where(jnp.isnan(error), jnp.inf, error)
    memory = control.init(term, t0, t1, y0, t1 - t0, arrays, method.func, order)[1]
    keep, start, end, _, _, _ = control.adapt_step_size(t0, t1, y0, y1, arrays, error, order, memory)
    derivative = slope(t1, y1, arrays)
    stop = keep & ((t1 >= until) | _matters(fixed, lane, t1, y1, derivative))
    streak = jnp.where(keep, 0, lane["streak"] + 1)
    step = end - start
    taken = {"t": t1, "y": y1, "f": derivative, "t0": t0, "y0": y0, "f0": lane["f"], "method": state}
    moved = jax.tree.map(lambda new, old: jnp.where(keep, new, old), taken, {name: lane[name] for name in taken})
    stuck = (t1 <= t0) | (streak >= CHUNK) | ~(step > 0)
    after = {
        **moved, "step": step, "streak": streak, "running": ~(stop | stuck),
        "accepted": lane["accepted"] + keep, "rejected": lane["rejected"] + ~keep,
    }  # fmt: skip
    return jax.tree.map(lambda new, old: jnp.where(lane["running"], new, old), after, lane)


def _matters(fixed: Any, lane: Any, t1: Any, y1: Any, derivative: Any) -> Any:
    """Whether a save time lies in the step or a watched entry may have crossed: `Recorder._may_cross`, traced."""
    import jax.numpy as jnp

    places, signs, levels = fixed["places"], fixed["signs"], fixed["levels"]
    length = t1 - lane["t"]
    ends = jnp.stack([lane["y"][places], y1[places], length * lane["f"][places], length * derivative[places]])
    inside = jnp.einsum("kj,jw->kw", np.asarray(QUARTERS), ends)
    crossed = (signs * y1[places] >= levels).any() | (signs * inside >= levels).any()
    return fixed["always"] | (fixed["due"] <= t1) | crossed
