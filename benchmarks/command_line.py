"""Whole commands as a user waits for them: start-up, and `odesim integrate --system liao` at the defaults."""

import os
import subprocess
import sys
import tempfile
import time

from benchmarks.measure import Row, timing


def rows(quick: bool) -> list[Row]:
    """Wall times of processes, from start to exit."""
    repetitions = 2 if quick else 7
    with tempfile.TemporaryDirectory() as folder:
        helps = timing([_seconds(["--help"], folder) for _ in range(repetitions)])
        found = [Row("odesim --help", helps.median, helps.spread, note="bar 0.5 s")]
        integrate = ["integrate", "--system", "liao", "--overwrite", "--out", f"{folder}/run"]
        caches = [f"{folder}/caches-{k}" for k in range(1 if quick else 3)]
        cold = timing([_seconds(integrate, empty) for empty in caches])
        note = "bar 8 s; empty odesim and matplotlib caches, figures included"
        found.append(Row("odesim integrate --system liao, first time ever", cold.median, cold.spread, note=note))
        warm: dict[str, list[float]] = {"with figures": [], "--no-figures": []}
        for _ in range(repetitions):
            warm["with figures"].append(_seconds(integrate, caches[0]))
            warm["--no-figures"].append(_seconds([*integrate, "--no-figures"], caches[0]))
        for label, bar in (("with figures", "4 s (later 3.5 s)"), ("--no-figures", "2.5 s (later)")):
            result = timing(warm[label])
            name = f"odesim integrate --system liao, afterwards, {label}"
            found.append(Row(name, result.median, result.spread, note=f"bar {bar}"))
    return found


def _seconds(words: list[str], caches: str) -> float:
    """The wall time of `odesim WORDS` with its caches in a folder; raises where the command fails."""
    os.makedirs(caches, exist_ok=True)
    environment = {**os.environ, "ODESIM_CACHE": f"{caches}/odesim", "MPLCONFIGDIR": f"{caches}/matplotlib"}
    began = time.perf_counter()
    command = [sys.executable, "-m", "odesim", *words]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=600)
    return time.perf_counter() - began
