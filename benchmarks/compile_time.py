"""First times: the right-hand side and loss of liao from nothing, and every system and method as a whole command.

Each with an empty cache, and in later processes that use the cache.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time

from benchmarks.measure import Row, child, timing


def rows(quick: bool) -> list[Row]:
    """Fresh processes; imports of third-party packages apart, and also counted in."""
    first, second = [], []
    for _ in range(1 if quick else 3):
        with tempfile.TemporaryDirectory() as cache:
            environment = {"ODESIM_CACHE": cache}
            first.append(child("benchmarks.compile_time:until_first_values()", environment))
            second += [child("benchmarks.compile_time:until_first_values()", environment) for _ in range(2)]
    found = []
    for label, runs, bar in (("empty cache", first, "3 s"), ("from the cache", second, "0.3 s")):
        work = timing([run["work"] for run in runs])
        everything = timing([run["work"] + run["imports"] for run in runs])
        parts = ", ".join(f"{k} {timing([run[k] for run in runs]).median:.2f} s" for k in ("derive", "flow", "loss"))
        note = f"bar {bar}; {parts}; with imports of NumPy, SciPy, numba and SymPy {everything.median:.2f} s"
        found.append(Row(f"derive and compile liao, numba, {label}", work.median, work.spread, note=note))
    return [*found, *first_steps(quick)]


FIRST_STEPS = {
    "liao, integrate": "integrate --system liao --until 20 --save-points 2",
    "kawata, integrate": "integrate --system kawata --until 1e6 --save-points 2",
    "chen, integrate": "integrate --system chen --until 0.01 --save-points 2",
    "pmoe, integrate": "integrate --system pmoe --until 1 --save-points 2",
    "pruning, integrate": "integrate --system pruning --until 1 --save-points 2",
    "liao, simulate": "simulate --system liao -p m=3 -p m_star=2 -p d=30 --step-size 0.01 --batch 8 --until 0.1",
    "kawata, simulate": "simulate --system kawata -p J=3 -p d=30 --step-size 0.01 --batch 4 --until 0.1",
    "chen, simulate": "simulate --system chen -p M=4 -p J=3 -p K=2 -p d=20 --step-size 0.02 --batch 64 --until 0.1",
    "pmoe, simulate": "simulate --system pmoe -p n=6 -p p=4 -p m=12 -p l=2 --step-size 0.1 --batch 32 --until 2",
    "pruning, simulate": "simulate --system pruning -p d=9 -p n=12 -p l=4 -p k=6 -p m=6 -p important=1 --step-size 0.3 "
    "--batch 50 --until 6",
}
"""Commands that end soon after their first step; `simulate` by both methods."""


def first_steps(quick: bool) -> list[Row]:
    """Whole processes from start to exit, imports included: with an empty cache, and the least of three after it.

    A quick benchmark takes those of liao alone.
    """
    found = []
    for name, words in FIRST_STEPS.items():
        if quick and not name.startswith("liao"):
            continue
        for method in ("compressed", "explicit") if "simulate" in name else ("",):
            given = [*words.split(), *(["--method", method] if method else [])]
            with tempfile.TemporaryDirectory() as folder:
                first = _process(given, folder)
                later = min(_process(given, folder) for _ in range(1 if quick else 3))
            label = f"{name} {method}".strip()
            for when, (used, wall), bar in (("first call, empty cache", first, 5), ("later process", later, 1.5)):
                note = f"bar {bar} s; {used:.2f} s of processor time"
                found.append(Row(f"{label}, {when}", wall, note=note))
    return found


def _process(words: list[str], folder: str) -> tuple[float, float]:
    """Seconds of processor time, and from start to exit, of `odesim WORDS` with its caches and run in a folder."""
    environment = {**os.environ, "ODESIM_CACHE": f"{folder}/cache", "MPLCONFIGDIR": f"{folder}/matplotlib"}
    command = [sys.executable, "-m", "odesim", *words, "--no-figures", "--overwrite", "--out", f"{folder}/run"]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=600)
    ended, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, ended - began


def until_first_values() -> dict[str, float]:
    """Seconds for third-party imports, and for everything from the request to values of the flow and the loss."""
    began = time.perf_counter()
    import numba  # noqa: F401
    import numpy  # noqa: F401
    import scipy.integrate  # noqa: F401
    import sympy  # noqa: F401

    imported = time.perf_counter()
    from odesim.flow.problem import prepare
    from odesim.request.case import Case

    problem = prepare(Case.build("liao", {}))
    derived = time.perf_counter()
    problem.functions["flow"](0.0, problem.start, *problem.arguments)
    flow = time.perf_counter()
    problem.functions["loss"](problem.start, *problem.arguments)
    ended = time.perf_counter()
    return {
        "imports": imported - began,
        "derive": derived - imported,
        "flow": flow - derived,
        "loss": ended - flow,
        "work": ended - imported,
    }
