"""Kill, terminate and interrupt every command at random moments: `python -m tests.faults.kills --cases 50`.

Every command runs whole once, for its result and its duration; then `--cases` times with a signal at a moment that is
uniform over the duration.  After each: a folder that looks finished is whole (`odesim show` checks its hashes), the
same command with `--resume` ends well and with the numbers of the whole run, no temporary file is left beside the
result, and no process of the command lives.
"""

import argparse
import collections
import contextlib
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

SIGNALS = {"KILL": signal.SIGKILL, "TERM": signal.SIGTERM, "INT": signal.SIGINT}
EXITS = {"KILL": {-9}, "TERM": {143, -15, 130}, "INT": {130, -2}}
"""What a command may end with beside 0, where it was done before; -2 where Python itself began or ended."""
MARK = "ODESIM_FAULT_MARK"
"""An environment variable by which the processes of a case are known."""


@dataclasses.dataclass(frozen=True)
class Command:
    """Words of a command with OUT for its folder, whether it resumes, and by how much its numbers may differ then."""

    words: str
    resumes: bool = True
    tolerance: float = 0.0
    before: str = ""


SGD = "simulate --system liao --method compressed -p m=4 -p m_star=2 -q --no-figures"
SWEEP = "sweep --system liao --over seed=0..9 -p m=6 -p m_star=2 --until 200 -q"
COMMANDS = {
    "integrate, numba": Command(
        "integrate --system liao -p m=12 -p m_star=3 --until 600 --solver DOP853 -q --no-figures", True
    ),
    "integrate, jax": Command(
        "integrate --system liao -p m=3 -p m_star=1 --until 60 --backend jax -q --no-figures", True, 1e-9
    ),
    "compressed, numba": Command(f"{SGD} -p d=1e6 --step-size 1e-4 --batch 16 --until 4 --seeds 2", True),
    "compressed, jax": Command(f"{SGD} -p d=1e6 --step-size 1e-4 --batch 16 --until .3 --backend jax", True, 1e-12),
    "explicit": Command(
        f"{SGD.replace('compressed', 'explicit')} -p d=50 --step-size 1e-4 --batch 16 --until 2", True, 1e-12
    ),
    "epochs of chen": Command(
        "simulate --system chen --method explicit -p n=200 -p d=20 -p M=4 -p K=2 -q --step-size 1e-2 --batch 200"
        " --until 3 --no-figures",
        True,
    ),
    "sweep": Command(f"{SWEEP} --workers 2", True),
    "sweep, dask": Command(f"{SWEEP} --scheduler SCHEDULER", True),
    "verify": Command("verify --system pruning --claim lem-4.1-i --claim lem-4.2-i --workers 2 -q", True),
    "figures": Command("figures --system liao --only fig1 --quick -q", False),
    "report": Command("report RUN -q --out OUT/page.html --overwrite", False, before="integrate --system liao -q"),
}


def main() -> int:
    """Attack every command, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.kills", description=__doc__)
    parser.add_argument("--only", choices=list(COMMANDS), action="append")
    parser.add_argument("--cases", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wrong = 0
    for name in options.only or COMMANDS:
        with tempfile.TemporaryDirectory() as folder, placed(COMMANDS[name]) as command:
            found = attack(command, Path(folder), options.cases, np.random.default_rng(options.seed))
        tally = ", ".join(f"{n} {what}" for what, n in found.most_common())
        print(f"{name}: {tally}", flush=True)
        wrong += sum(n for what, n in found.items() if what.isupper())
    return 1 if wrong else 0


@contextlib.contextmanager
def placed(command: Command) -> Iterator[Command]:
    """A command with the address of a cluster of this machine, which outlives it, where it asks for one."""
    if "SCHEDULER" not in command.words:
        yield command
        return
    import distributed

    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield dataclasses.replace(command, words=command.words.replace("SCHEDULER", cluster.scheduler_address))


def attack(command: Command, folder: Path, cases: int, rng: np.random.Generator) -> collections.Counter[str]:
    """The outcome of every case; words in capitals are faults."""
    if command.before:
        run(command.before, folder / "RUN", folder).check_returncode()
    for _ in range(2):  # the first compiles
        shutil.rmtree(folder / "whole", ignore_errors=True)
        began = time.perf_counter()
        run(command.words, folder / "whole", folder).check_returncode()
        duration = time.perf_counter() - began
    found: collections.Counter[str] = collections.Counter()
    for case in range(cases):
        kind = list(SIGNALS)[case % 3]
        problems, state = one(command, folder, f"case{case}", kind, float(rng.uniform(0.0, duration)))
        found[state] += 1
        for problem in problems:
            found[problem.upper()] += 1
            print(f"    case {case} ({kind}, {state}): {problem}", flush=True)
        shutil.rmtree(folder / f"case{case}", ignore_errors=True)
    return found


def one(command: Command, folder: Path, name: str, kind: str, moment: float) -> tuple[list[str], str]:
    """The faults of one case, and where the signal found the command."""
    out, problems = folder / name, []
    process = start(command.words, out, folder)
    time.sleep(moment)
    process.send_signal(SIGNALS[kind])
    try:
        _, told = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        return ["hangs after the signal"], "hung"
    if process.returncode not in EXITS[kind] | {0}:
        problems.append(f"exit code {process.returncode} after {kind}")
    if "Traceback" in told:
        problems.append("a traceback")
        print(f"    {told.strip()[-600:]}", flush=True)
    finished = (out / "manifest.json").exists()
    shown = odesim(["show", str(out)])
    if finished and shown.returncode != 0:
        problems.append("looks finished but is not whole")
    if process.returncode == 0 and not same(command, folder / "whole", out):
        problems.append("says it is done, with other numbers")
    state = "finished" if process.returncode == 0 else "with a checkpoint" if out.exists() else "with nothing yet"
    again = run(command.words + (" --resume" if command.resumes else ""), out, folder)
    if again.returncode != 0:
        problems.append(f"exit code {again.returncode} when run again: {again.stderr.strip()[-200:]}")
    elif not same(command, folder / "whole", out):
        problems.append("other numbers when run again")
    left = [path.name for path in folder.rglob("*partial*")]
    if left:
        problems.append(f"left behind: {', '.join(left[:3])}")
    if living(str(out)):
        time.sleep(2.0)
        if living(str(out)):
            problems.append("processes live on")
    return problems, state


def words_of(text: str, out: Path, folder: Path) -> list[str]:
    """The words of a command with its folders in place."""
    words = [word.replace("OUT", str(out)).replace("RUN", str(folder / "RUN")) for word in text.split()]
    return words if "--out" in words else [*words, "--out", str(out)]


def start(text: str, out: Path, folder: Path) -> subprocess.Popen[str]:
    """A command at work, its processes marked."""
    return subprocess.Popen(
        [sys.executable, "-m", "odesim", *words_of(text, out, folder)],
        env={**os.environ, MARK: str(out)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run(text: str, out: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command from beginning to end."""
    process = start(text, out, folder)
    stdout, stderr = process.communicate(timeout=600)
    return subprocess.CompletedProcess(text, process.returncode, stdout, stderr)


def odesim(words: list[str]) -> subprocess.CompletedProcess[str]:
    """A command that is not attacked."""
    return subprocess.run([sys.executable, "-m", "odesim", *words], capture_output=True, text=True, timeout=120)


def living(mark: str) -> list[int]:
    """The processes of a case."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}\0".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def same(command: Command, whole: Path, out: Path) -> bool:
    """Return True if two folders contain the same results."""
    for path in sorted(whole.rglob("*")):
        other = out / path.relative_to(whole)
        if path.is_file() and not other.is_file():
            return False
        compare = COMPARE.get(path.name) or COMPARE.get(path.suffix)
        if compare is not None and not compare(path, other, command.tolerance):
            return False
    return True


def same_arrays(first: Path, second: Path, tolerance: float) -> bool:
    """Return True if two NetCDF files contain the same variables."""
    import xarray

    with xarray.open_dataset(first) as a, xarray.open_dataset(second) as b:
        if set(a.variables) != set(b.variables):
            return False
        for name in a.variables:
            x, y = a[name].values, b[name].values
            if name in ("seconds", "wall_time", "evaluations"):
                continue
            if x.dtype.kind != "f" or not tolerance:
                if not (np.array_equal(x, y, equal_nan=x.dtype.kind == "f")):
                    return False
            elif not np.allclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True):
                return False
    return True


def same_verdicts(first: Path, second: Path, tolerance: float) -> bool:
    """Return True if two files of verdicts are equal except for times."""
    a, b = (json.loads(path.read_text())["verdicts"] for path in (first, second))
    return _timeless(a) == _timeless(b)


def _timeless(verdicts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in verdict.items() if name != "seconds"} for verdict in verdicts]


COMPARE: dict[str, Callable[[Path, Path, float], bool]] = {".nc": same_arrays, "verdicts.json": same_verdicts}


if __name__ == "__main__":
    sys.exit(main())
