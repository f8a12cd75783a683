"""Right-hand sides of declared models: erf committees beside the field's formulas, sampled means, liao declared."""

import math
from typing import Any

import numpy as np

from benchmarks.measure import Row, compare

ERF = {"unit": "erf(w/sqrt(2))", "units": 8}
NOISE, STEP = 0.1, 0.5


def rows(quick: bool) -> list[Row]:
    """One evaluation each, on one core; the peer's answer is compared with ours."""
    rounds = 20 if quick else 200
    return [*_committees(rounds), *_sampled(rounds), _liao(rounds)]


def _problem(system: Any, parameters: dict[str, Any] | None = None, backend: str = "numba") -> Any:
    from odesim.flow.problem import prepare
    from odesim.request.case import Case

    return prepare(Case.build(system, parameters or {}, until=1.0, backend=backend))


def _committees(rounds: int) -> list[Row]:
    import odesim

    found = []
    for limit in ("flow", "online"):
        system = odesim.declare(
            student=ERF, teacher={**ERF, "noise": NOISE}, training={"limit": limit, "step": STEP}, start={"norm": 0.7}
        )
        problem = _problem(system)
        found.append(_committee(problem, limit, rounds))
    return found


def _committee(problem: Any, limit: str, rounds: int) -> Row:
    y, slope, peer = problem.start, problem.slope(), transcribed()
    rate, second = (STEP, STEP**2) if limit == "online" else (1.0, 0.0)

    def ours() -> Any:
        return slope(0.0, y)

    def theirs() -> Any:
        return peer(y, 8, 8, rate, second, NOISE)

    times = compare({"ours": ours, "peer": theirs}, rounds)
    return Row(
        f"right-hand side of a declared erf committee, K = M = 8, {limit}", times["ours"].median,
        times["ours"].spread, "I3 and I4 in loops, numba", times["peer"].median, float(np.abs(ours() - theirs()).max()),
        note="whole, called from Python; the formulas that nn2pp evaluates, transcribed; error: their difference",
    )  # fmt: skip


def _sampled(rounds: int) -> list[Row]:
    import jax

    import odesim

    jax.config.update("jax_enable_x64", True)
    unit = {"unit": "erf(w/sqrt(2))", "units": 5}
    system = odesim.declare(student=unit, teacher=unit, training={"limit": "online"}, start={"norm": 0.7})
    slopes = {}
    for backend in ("numba", "jax"):
        problem = _problem(system, {"tier": "sampled"}, backend)
        slopes[backend] = (problem.slope(), problem.start)
    times = compare({name: lambda s=s, y=y: s(0.0, y) for name, (s, y) in slopes.items()}, max(10, rounds // 4))
    note = "bar 2.5 ms; ten fields, 2^14 points, online; "
    ways = {"numba": "NumPy, in blocks: means over arrays have no loops to compile", "jax": "JAX"}
    return [
        Row(f"right-hand side of sampled means, back end {name}", times[name].median, times[name].spread,
            note=note + way)
        for name, way in ways.items()
    ]  # fmt: skip


def _liao(rounds: int) -> Row:
    """The exact flow of liao (25, 5) as a declaration, beside the system of that name with its own loops."""
    import odesim

    unit = "logistic(v)*He(3, w)"
    declared = _problem(
        odesim.declare(
            student={"unit": unit, "units": 25}, teacher={"unit": unit, "units": 5},
            training={"weights": "normalised"}, start={"norm": 1.0},
        )
    )  # fmt: skip
    own = _problem("liao")
    ours, theirs, start, other = declared.slope(), own.slope(), declared.start, own.start
    times = compare({"ours": lambda: ours(0.0, start), "own": lambda: theirs(0.0, other)}, rounds)
    return Row(
        "right-hand side of liao (25, 5) as a declaration", times["ours"].median, times["ours"].spread,
        "the system liao, its own loops", times["own"].median, note="bar 1.1 times the system's; at its random start",
    )  # fmt: skip


def third(a, b, c, C):
    """E[g'(a) z_b g(c)], g = erf(z/sqrt 2)."""
    room = (1 + C[a, a]) * (1 + C[c, c]) - C[a, c] ** 2
    return (2 / math.pi) * (C[b, c] * (1 + C[a, a]) - C[a, b] * C[a, c]) / ((1 + C[a, a]) * math.sqrt(room))


def fourth(a, b, c, d, C):
    """E[g'(a) g'(b) g(c) g(d)]."""
    L4 = (1 + C[a, a]) * (1 + C[b, b]) - C[a, b] ** 2
    L0 = L4 * C[c, d] - C[b, c] * C[b, d] * (1 + C[a, a]) - C[a, c] * C[a, d] * (1 + C[b, b])
    L0 += C[a, b] * C[a, c] * C[b, d] + C[a, b] * C[a, d] * C[b, c]
    L1 = L4 * (1 + C[c, c]) - C[b, c] ** 2 * (1 + C[a, a]) - C[a, c] ** 2 * (1 + C[b, b])
    L1 += 2 * C[a, b] * C[a, c] * C[b, c]
    L2 = L4 * (1 + C[d, d]) - C[b, d] ** 2 * (1 + C[a, a]) - C[a, d] ** 2 * (1 + C[b, b])
    L2 += 2 * C[a, b] * C[a, d] * C[b, d]
    return (4 / math.pi**2) / math.sqrt(L4) * math.asin(L0 / math.sqrt(L1 * L2))


def widened(i, j, C, sign, noise):
    """E[g'(i) g'(j) (f - y)^2]."""
    total = noise**2 * (2 / math.pi) / math.sqrt((1 + C[i, i]) * (1 + C[j, j]) - C[i, j] ** 2)
    for c in range(sign.size):
        for d in range(sign.size):
            total += sign[c] * sign[d] * fourth(i, j, c, d, C)
    return total


def committee(y, K, M, rate, second, noise):
    """dy/dt of an erf committee of readouts 1 from I3 and I4, a loop for every sum; y = upper Q by rows, then M."""
    n = K + M
    C, sign, dy, at = np.eye(n), np.ones(n), np.zeros(y.size), 0
    sign[:K] = -1.0
    for first, last in ((0, K), (K, n)):
        for i in range(K):
            for j in range(max(i, first), last):
                C[i, j] = C[j, i] = y[at]
                at += 1
    at = 0
    for first, last in ((0, K), (K, n)):
        for i in range(K):
            for j in range(max(i, first), last):
                for c in range(n):
                    dy[at] += rate * sign[c] * (third(i, j, c, C) + (third(j, i, c, C) if j < K else 0.0))
                if second > 0 and j < K:
                    dy[at] += second * widened(i, j, C, sign, noise)
                at += 1
    return dy


def transcribed() -> Any:
    """`committee` and what it calls, compiled."""
    import numba

    space = globals()
    for name in ("third", "fourth", "widened", "committee"):
        if not hasattr(space[name], "py_func"):
            space[name] = numba.njit(space[name])
    return space["committee"]
