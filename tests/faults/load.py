"""Sweeps of many runs and of long ones, watched: `python -m tests.faults.load [--only short --only dask ..]`.

`short`: 20,000 runs of a tenth of a second's work or less, by two local processes.  `long`: 200 runs of about a second.
`dask`: 2,000 short runs on the workers of a cluster of this machine, one of which is killed every few seconds.  While
a sweep runs, the memory of its processes, its files, and the progress that it prints are looked at.  A fault is memory
that grows by more than `GROWTH` over the second half, files that stay, a progress that tells of more runs than there
are files, and a dataset that differs from that of single runs.
"""

import argparse
import contextlib
import itertools
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

GROWTH = 1.25
"""Memory at the end of a sweep over that at its half: the dataset itself is held, a few kilobytes a run."""
SHORT = "sweep --system liao -p m=2 -p m_star=1 -p d=50 --until 1"
LONG = "sweep --system liao -p m=25 -p m_star=5 -p d=1e5 --until 400"
SWEEPS = {"short": (SHORT, 20_000), "long": (LONG, 200), "dask": (SHORT, 2_000)}
SLACK = 0.02
"""Progress is printed with whole per cents, and files are counted a moment later."""


def main() -> int:
    """Run the sweeps that are asked for, and print a line of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.load", description=__doc__)
    parser.add_argument("--only", choices=list(SWEEPS), action="append")
    parser.add_argument("--runs", type=int, help="instead of the number that stands here")
    options = parser.parse_args()
    wrong = 0
    for name in options.only or SWEEPS:
        words, runs = SWEEPS[name]
        with tempfile.TemporaryDirectory() as folder:
            found, faults = watched(words, options.runs or runs, Path(folder), cluster=name == "dask")
        print(f"{name}: {found}" + "".join(f"\n    FAULT: {fault}" for fault in faults), flush=True)
        wrong += len(faults)
    return 1 if wrong else 0


def watched(words: str, runs: int, folder: Path, *, cluster: bool) -> tuple[str, list[str]]:
    """The observations of a sweep, and its faults."""
    out, told = folder / "sweep", Told()
    with contextlib.ExitStack() as stack:
        asked = [sys.executable, "-m", "odesim", *words.split(), "--over", f"seed=0..{runs - 1}", "--out", str(out)]
        asked += ["--scheduler", stack.enter_context(killed_workers(told))] if cluster else ["--workers", "2"]
        began = time.perf_counter()
        process = subprocess.Popen(asked, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        reader = threading.Thread(target=told.listen, args=(process, out, runs))
        reader.start()
        while process.poll() is None:
            told.look(process.pid, out, time.perf_counter() - began)
            time.sleep(0.5)
        reader.join()
        seconds = time.perf_counter() - began
    faults = list(told.faults)
    if process.returncode != 0:
        return "", [*faults, f"exit code {process.returncode}: {told.last}"]
    if told.growth() > GROWTH:
        faults.append(f"memory grew {told.growth():.2f}-fold over the second half")
    left = sum(1 for path in out.rglob("*") if path.is_file())
    if left > 10:
        faults.append(f"{left} files stay")
    faults += differences(words, out, runs)
    killed = f", {told.killed} workers killed" if cluster else ""
    return (
        f"{runs} runs in {seconds:.0f} s ({1e3 * seconds / runs:.1f} ms each){killed}; at most {told.most_memory():.0f}"
        f" MB, {told.growth():.2f} times that at half time; at most {told.most_files()} files, {left} stay"
    ), faults


class Told:
    """Observations of a sweep during its run."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, float, int]] = []
        self.faults: list[str] = []
        self.last, self.killed = "", 0

    def look(self, pid: int, out: Path, now: float) -> None:
        """Keep the time, the megabytes of the processes below `pid`, and the files."""
        with contextlib.suppress(OSError):
            files = sum(len(names) for _, _, names in os.walk(out.parent))
            self.seen.append((now, sum(map(resident, family(pid))), files))

    def listen(self, process: subprocess.Popen[str], out: Path, runs: int) -> None:
        """Hold what the command says of its progress against the files that there are."""
        assert process.stderr is not None
        for line in process.stderr:
            self.last = line.strip()
            said = re.search(r"(\d+) %", line)
            cells = out / "cells"
            if said and cells.is_dir():
                there = sum(1 for _ in cells.iterdir()) / runs
                if int(said[1]) / 100 > there + SLACK:
                    self.faults.append(f"told {said[1]} % with {100 * there:.1f} % of the files")

    def growth(self) -> float:
        """Memory late in the run over that at its half."""
        times = np.array([t for t, _, _ in self.seen])
        memory = np.array([m for _, m, _ in self.seen])
        middle, late = (memory[(times > a * times[-1]) & (times < b * times[-1])] for a, b in ((0.4, 0.5), (0.8, 0.95)))
        return float(np.median(late) / np.median(middle)) if middle.size and late.size else 1.0

    def most_memory(self) -> float:
        """The most megabytes of all processes together."""
        return max(m for _, m, _ in self.seen)

    def most_files(self) -> int:
        """The most files at a time."""
        return max(n for _, _, n in self.seen)


def family(pid: int) -> list[int]:
    """A process and its descendants."""
    found = [pid]
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in path.read_text().split():
            found += family(int(child))
    return found


def resident(pid: int) -> float:
    """Megabytes of memory of a process; 0 for one that has ended."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    return 0.0


@contextlib.contextmanager
def killed_workers(told: Told, every: float = 6.0) -> Iterator[str]:
    """The address of a cluster of this machine, one of whose workers is killed every few seconds."""
    import distributed

    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        done = threading.Event()

        def kill() -> None:
            choose = random.Random(0)
            while not done.wait(every):
                pids = [pid for nanny in cluster.workers.values() if (pid := getattr(nanny, "pid", None))]
                if pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(choose.choice(pids), signal.SIGKILL)
                        told.killed += 1

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            yield cluster.scheduler_address
        finally:
            done.set()
            killer.join()


def differences(words: str, out: Path, runs: int) -> list[str]:
    """Faults of the dataset, held against single runs of some of its seeds."""
    import odesim

    given = words.split()
    parameters = dict(pair.split("=") for flag, pair in itertools.pairwise(given) if flag == "-p")
    until, data = float(given[given.index("--until") + 1]), odesim.load(out)
    faults = []
    if data["outcome"].size != runs or not (data["outcome"] == "completed").all():
        faults.append(f"{int((data['outcome'] == 'completed').sum())} of {runs} runs completed")
    for seed in random.Random(1).sample(range(runs), min(runs, 5)):
        run = odesim.integrate("liao", seed=seed, until=until, **parameters)
        for name, variable in run.state.items():
            whole = np.take(variable.values, -1, variable.dims.index("time"))
            if not np.allclose(data[f"final_{name}"].sel(seed=seed), whole, rtol=1e-6, atol=1e-9):
                faults.append(f"{name} of seed {seed} is another than that of a single run")
    return faults


if __name__ == "__main__":
    sys.exit(main())
