"""Whole commands with their waiting times: start-up, `odesim integrate --system liao`, and a user's model."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Row, timing


def rows(quick: bool) -> list[Row]:
    """Wall times of processes, from start to exit."""
    repetitions = 1 if quick else 7
    with tempfile.TemporaryDirectory() as folder:
        helps = timing([_seconds(["--help"], folder) for _ in range(repetitions)])
        found = [Row("odesim --help", helps.median, helps.spread, note="bar 0.5 s")]
        integrate = ["integrate", "--system", "liao", "--overwrite", "--out", f"{folder}/run"]
        caches = [f"{folder}/caches-{k}" for k in range(1 if quick else 3)]
        cold = timing([_seconds(integrate, empty) for empty in caches])
        note = "bar 3 s; empty odesim and matplotlib caches, figures included"
        found.append(Row("odesim integrate --system liao, first time ever", cold.median, cold.spread, note=note))
        warm: dict[str, list[float]] = {"with figures": [], "--no-figures": []}
        for _ in range(repetitions):
            warm["with figures"].append(_seconds(integrate, caches[0]))
            warm["--no-figures"].append(_seconds([*integrate, "--no-figures"], caches[0]))
        for label, bar in (("with figures", "2 s"), ("--no-figures", "1.4 s")):
            result = timing(warm[label])
            name = f"odesim integrate --system liao, afterwards, {label}"
            found.append(Row(name, result.median, result.spread, note=f"bar {bar}"))
        limits = {"flow": 3} if quick else {"flow": 3, "online": 4}
        return [*found, *(row for limit, bar in limits.items() for row in _declared(folder, repetitions, limit, bar))]


OWN = """[student]
units = 3
unit = "erf(w/sqrt(2))"
[teacher]
units = 3
unit = "erf(w/sqrt(2))"
[training]
limit = "{limit}"
"""
"""The file of a user's model."""


def _declared(folder: str, repetitions: int, limit: str, bar: float) -> list[Row]:
    """From a file to its first trajectory: with an empty cache, after another model, and afterwards in every tier."""
    file = Path(folder) / f"{limit}.toml"
    words = ["integrate", "--system", str(file), "--no-figures", "--until", "20", "--overwrite", "--out",
             f"{folder}/own"]  # fmt: skip
    first, further, later = [], [], {tier: [] for tier in ("exact", "sampled")}
    for k in range(max(1, repetitions // 2)):
        caches = f"{folder}/own-{limit}-{k}"
        file.write_text(OWN.format(limit=limit), encoding="utf-8")
        first.append(_seconds(words, caches))
        for tier, seconds in later.items():
            given = [*words, "-p", f"tier={tier}", "-p", "sample_seed=0", *START]
            _seconds(given, caches)
            seconds.append(_seconds(given, caches))
        file.write_text(OWN.format(limit=limit).replace("sqrt(2)", "sqrt(3)"), encoding="utf-8")
        further.append(_seconds(words, caches))
    name = f"file of ten lines to first trajectory (erf, units = 3, {limit})"
    found = []
    for label, seconds, note in (
        ("first time ever", first, f"bar {bar} s; empty cache, imports included"),
        ("a further model", further, "its derivation and compilation; what all models share is there"),
        *((f"afterwards, tier {tier}", seconds, "bar 1 s") for tier, seconds in later.items()),
    ):
        result = timing(seconds)
        found.append(Row(f"{name}, {label}", result.median, result.spread, note=note))
    return found


START = ("-p", "overlap=0.3")
"""Not a weak recovery, which sampled means cannot follow."""


def _seconds(words: list[str], caches: str) -> float:
    """The wall time of `odesim WORDS` with its caches in a folder; raises where the command fails."""
    os.makedirs(caches, exist_ok=True)
    environment = {**os.environ, "ODESIM_CACHE": f"{caches}/odesim", "MPLCONFIGDIR": f"{caches}/matplotlib"}
    began = time.perf_counter()
    command = [sys.executable, "-m", "odesim", *words]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=600)
    return time.perf_counter() - began
