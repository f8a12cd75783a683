"""Many states and many runs at once on two cores: the right-hand side of 256 states, and 2,048 runs of liao."""

import functools
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.measure import Row, compare

THREADS = 2
DIMENSIONS = tuple(10**k for k in range(3, 11))


def rows(quick: bool) -> list[Row]:
    """Both measurements."""
    return [batched_flow(quick), runs(quick)]


def batched_flow(quick: bool) -> Row:
    """256 states of the exact flow (25, 5), shared out to two threads; the peer is the same on one thread."""
    from odesim.flow.problem import prepare
    from odesim.flow.solvers.ndf import right_hand_sides
    from odesim.request.case import Case

    problems = [prepare(Case.build("liao", {}, seed=seed)) for seed in range(8)]
    states = np.array([problem.start for problem in problems] * 32)
    assert problems[0].derivative is not None
    flow = functools.partial(right_hand_sides, problems[0].derivative, states)
    times = compare({"two": lambda: flow(THREADS), "one": lambda: flow(1)}, 5 if quick else 40)
    count = len(states)
    return Row(
        f"right-hand side liao (25, 5), {count} states, {THREADS} threads, each", times["two"].median / count,
        times["two"].spread / count, "one thread", times["one"].median / count, note="bar 13 us",
    )  # fmt: skip


def runs(quick: bool) -> Row:
    """`odesim sweep`: seeds by dimensions of liao (10, 3), orthogonal start, until 2 sqrt(d), two processes."""
    from odesim.sweeps import sweep

    seeds = range(2 if quick else 256)
    wanted = sweep.Sweep.build(
        "liao", {"seed": tuple(seeds), "d": DIMENSIONS}, {"m": 10, "m_star": 3, "init": "orthogonal"},
        until="2*sqrt(d)", save_points=2, rtol=1e-4, solver="NDF",
    )  # fmt: skip
    sweep.compute(*wanted.cells[0].words)  # compiled into the cache, from which the processes load it
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        data = sweep.run(wanted, Path(folder), workers=THREADS)
        seconds = time.perf_counter() - began
    found = np.isfinite(data["T_gamma2"].values).any(axis=-2).all(axis=-1)
    note = f"bar 30 s; {int((~found).sum())} of {found.size} runs have not found all teachers by 2 sqrt(d); "
    note += f"{seconds / found.size * 1e3 * THREADS:.0f} ms of one core each"
    return Row(f"ensemble of {found.size} runs, liao (10, 3), d = 1e3..1e10, 2 processes", seconds, 0.0, note=note)
