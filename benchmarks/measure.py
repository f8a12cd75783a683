"""Timing: medians of interleaved repetitions in one process, and the reported row."""

import compileall
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
"""The processors of this process when it began, where the system tells."""
HELD: list[str] = []
"""The settings that `single_core` has made."""
BRIEF = 0.1
"""Seconds: a call that is shorter is timed with warm caches."""


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the benchmark; times in seconds, `spread` the inter-quartile range of `seconds`.

    `error` and `peer_error` are those of the answers; `floor_seconds` is what the arithmetic (or the random numbers)
    alone would cost on this machine, measured or counted; `note` says what was measured, and the bar to meet.
    """

    name: str
    seconds: float | None = None
    spread: float | None = None
    peer: str | None = None
    peer_seconds: float | None = None
    error: float | None = None
    peer_error: float | None = None
    floor_seconds: float | None = None
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Timing:
    """The median of repeated timings and their inter-quartile range, in seconds."""

    median: float
    spread: float


def timing(samples: list[float]) -> Timing:
    """The median and inter-quartile range of `samples`."""
    if len(samples) < 2:
        return Timing(samples[0], 0.0)
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return Timing(statistics.median(samples), high - low)


def compare(functions: Mapping[str, Callable[[], Any]], repetitions: int, budget: float = 2.0) -> dict[str, Timing]:
    """Time functions in turn, `repetitions` rounds, so that a slow spell of the machine hits all of them.

    Each is called once before; a call shorter than 1 ms is repeated to reach that in every round.  A call shorter than
    `BRIEF` follows one that is not counted: that one finds caches and cores as the function before it left them, which
    would favour whoever runs after a relative (two steppers in Python took twice as long after torchdiffeq, whose
    threads keep the cores for a while).  Rounds stop early, after at least three, when `budget` seconds per function
    are spent.
    """
    calls, brief = {}, set[str]()
    for name, function in functions.items():
        function()
        once = min(_clock(function, 1) for _ in range(2))
        calls[name] = max(1, int(1e-3 / max(once, 1e-7)))
        if once < BRIEF:
            brief.add(name)
    samples: dict[str, list[float]] = {name: [] for name in functions}
    began = time.perf_counter()
    for done in range(repetitions):
        if done >= 3 and time.perf_counter() - began > budget * len(functions):
            break
        for name, function in functions.items():
            if name in brief:
                function()
            samples[name].append(_clock(function, calls[name]))
    return {name: timing(values) for name, values in samples.items()}


def _clock(function: Callable[[], Any], calls: int) -> float:
    """Seconds per call."""
    began = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - began) / calls


def as_installed() -> None:
    """Make odesim's byte code, as installing it does: without it a command takes a fifth of a second longer.

    Python keeps none by itself where it is told so (PYTHONDONTWRITEBYTECODE), or cannot write.
    """
    for package in ("hermite", "derivations", "odesim"):
        compileall.compile_dir(Path(__file__).parent.with_name(package), quiet=2)


def matmul_peak(dtype: str = "float64", size: int = 1024) -> float:
    """Floating-point operations per second of NumPy's matrix product on the cores of this process."""
    import numpy as np

    a = np.random.default_rng(0).standard_normal((size, size)).astype(dtype)
    return 2.0 * size**3 / compare({"product": lambda: a @ a}, 15)["product"].median


def child(call: str, environment: Mapping[str, str] | None = None, timeout: float = 600.0) -> Any:
    """Evaluate `call` ("module:function(arguments)") in a fresh process and return its JSON; raises on failure.

    The process has the machine as a user has it, also where this one is held to a single core.
    """
    module, _, expression = call.partition(":")
    code = f"import json, {module}; print('\\n' + json.dumps({module}.{expression}))"
    if CORES and os.sched_getaffinity(0) != CORES:  # of a process that `single_core` holds
        code = f"import os; os.sched_setaffinity(0, {CORES}); {code}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**{name: value for name, value in os.environ.items() if name not in HELD}, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    return json.loads(done.stdout.rstrip().splitlines()[-1])


def single_core() -> None:
    """Restrict this process to one core; call it before NumPy or JAX is imported."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        if name not in os.environ:
            HELD.append(name)
        os.environ[name] = "1"
    if CORES:
        os.sched_setaffinity(0, {max(CORES)})
