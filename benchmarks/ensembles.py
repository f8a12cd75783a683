"""Many states and many runs at once on two cores: right-hand sides of 256 states, 2,048 runs of liao, and sweeps."""

import functools
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import peers
from benchmarks.measure import Row, compare, timing

THREADS = 2
DIMENSIONS = tuple(10**k for k in range(3, 11))


def rows(quick: bool) -> list[Row]:
    """All measurements."""
    return [batched_flow(quick), runs(quick), *scaling(quick)]


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


def seeds_by_dimensions(seeds: int) -> Any:
    """The sweep of `seeds` seeds by all dimensions."""
    from odesim.sweeps.sweep import Sweep

    return Sweep.build(
        "liao", {"seed": tuple(range(seeds)), "d": DIMENSIONS}, {"m": 10, "m_star": 3, "init": "orthogonal"},
        until="2*sqrt(d)", save_points=2, rtol=1e-4, solver="NDF",
    )  # fmt: skip


def swept(wanted: Any, **how: Any) -> tuple[Any, float]:
    """The result of a sweep into a new folder, and its time in seconds."""
    from odesim.sweeps import sweep

    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        data = sweep.run(wanted, Path(folder), **how)
        return data, time.perf_counter() - began


def runs(quick: bool) -> Row:
    """`odesim sweep`: seeds by dimensions of liao (10, 3), orthogonal start, until 2 sqrt(d), two processes."""
    from odesim.sweeps import sweep

    wanted = seeds_by_dimensions(2 if quick else 256)
    sweep.compute(*wanted.cells[0].words)  # compiled into the cache, from which the processes load it
    data, seconds = swept(wanted, workers=THREADS)
    found = np.isfinite(data["T_gamma2"].values).any(axis=-2).all(axis=-1)
    note = f"bar 30 s; {int((~found).sum())} of {found.size} runs have not found all teachers by 2 sqrt(d); "
    note += f"{seconds / found.size * 1e3 * THREADS:.0f} ms of one core each"
    return Row(f"ensemble of {found.size} runs, liao (10, 3), d = 1e3..1e10, 2 processes", seconds, 0.0, note=note)


def scaling(quick: bool) -> list[Row]:
    """Additional time of a sweep beside its runs; time of a part of it with one process, two, and two dask workers."""
    few = seeds_by_dimensions(1 if quick else 8)
    swept(few, workers=1)  # which imports what joins the cells
    added = timing([around(few) for _ in range(2 if quick else 5)])
    wanted = seeds_by_dimensions(1 if quick else 32)
    one, two = swept(wanted, workers=1)[1], swept(wanted, workers=THREADS)[1]
    name = f"sweep of {len(wanted.cells)} of these runs"
    found = [
        Row("what a sweep adds to each of these runs", added.median, added.spread,
            note="bar 2 ms; by one process: requests, files of cells on the disk and their dataset"),
        Row(f"{name}, 2 processes", two, 0.0, "1 process", one, note="with the start of the processes"),
    ]  # fmt: skip
    try:
        from distributed import LocalCluster

        made: Any = LocalCluster(n_workers=THREADS, threads_per_worker=1, dashboard_address=":0")
        with made as cluster:
            dask = swept(wanted, workers=THREADS, scheduler=cluster.scheduler_address)[1]
        found.append(Row(f"{name}, 2 workers of dask", dask, 0.0, "1 process", one, note="workers that run already"))
    except Exception as error:
        found.append(Row(f"{name}, 2 workers of dask", note=peers.reason(error)))
    return found


def around(wanted: Any) -> float:
    """Seconds per run that a sweep of one process takes beside the runs, both measured in one sweep."""
    from odesim.flow import solve

    alone, run = [], solve.solve

    def timed(case: Any) -> Any:
        began = time.perf_counter()
        found = run(case)
        alone.append(time.perf_counter() - began)
        return found

    with mock.patch.object(solve, "solve", timed):
        whole = swept(wanted, workers=1)[1]
    return (whole - sum(alone)) / len(alone)
