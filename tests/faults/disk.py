"""A disk that fails under every command at every operation: `python -m tests.faults.disk [--only NAME] [--fault KIND]`.

A command runs whole once, and its operations on what it writes are counted (`tests.faults.writes`).  Then it runs
once for every one of them (or `--cases`, evenly chosen), which meets the fault.  It must end with exit code 2 or 3 and
one sentence, or well and with the same numbers; nothing half-written may look finished or be left behind; a finished
run that it was to replace is whole; and the same command with --resume, on a sound disk, ends with the same numbers.
`--fault tmpfs` fills real file systems of every size instead (as root).
"""

import argparse
import collections
import dataclasses
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.faults import forks, kills, writes

SMALL = "--system liao -p m=2 -p m_star=1 -p d=50"
SGD = f"{SMALL} --step-size 1e-3 --batch 8 --until .01 -q"
FLOW = f"integrate {SMALL} --until 1 --save-points 3 --solver DOP853 -q"


@dataclasses.dataclass(frozen=True)
class Attacked:
    """A command, what it needs to be run again, whether it keeps a run that it is to replace, and what is special."""

    words: str
    again: str = "--resume"
    often: bool = False
    cold: bool = False
    tolerance: float = 0.0
    replaces: bool = True


COMMANDS = {
    "integrate": Attacked(FLOW),
    "integrate, checkpoints": Attacked(
        f"integrate {SMALL} --until 1 --save-points 3 --solver DOP853 --no-figures -q", often=True, tolerance=1e-9
    ),  # such a solver begins anew where it resumes
    "integrate, empty cache": Attacked(f"{FLOW} --no-figures", cold=True),
    "compressed": Attacked(f"simulate --method compressed {SGD} --no-figures", often=True),
    "explicit": Attacked(f"simulate --method explicit {SGD} --no-figures", often=True),
    "compare": Attacked(f"compare --method compressed {SGD}", again="--overwrite"),
    "sweep": Attacked(f"sweep {SMALL} --over seed=0..2 --until 1 --workers 1 -q"),
    "sweep, 2 workers": Attacked(f"sweep {SMALL} --over seed=0..2 --until 1 --workers 2 -q"),
    "verify": Attacked("verify --system liao --claim eq-5-sol --workers 1 -q", replaces=False),
    "verify, 2 workers": Attacked(
        "verify --system liao --claim eq-5-sol --claim lem-29 --workers 2 -q", replaces=False
    ),
    "figures": Attacked("figures --system liao --only fig1 --quick -q", again="", replaces=False),
    "report": Attacked("report RUN -q", again="--overwrite", replaces=False),
    "explore": Attacked("explore RUN -q", again="--overwrite", replaces=False),
    "observe": Attacked("observe weights.npz --system liao -p m=2 -p m_star=1 -q --no-figures"),
}
STDOUT = {
    "systems": "systems", "derive": "derive --system ren_2025", "cite": "cite --system liao", "show": "show RUN",
    "doctor": "doctor", "figures": "figures --list", "verify": "verify --system pruning --list",
    "integrate": "integrate --system liao --dry-run", "solvers": "integrate --list-solvers",
}  # fmt: skip
"""Commands whose output goes to a full disk (/dev/full)."""


def main() -> int:
    """Attack every command, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.disk", description=__doc__)
    parser.add_argument("--only", choices=list(COMMANDS), action="append")
    parser.add_argument("--fault", choices=[*writes.FAULTS, "tmpfs", "stdout"], action="append")
    parser.add_argument("--cases", type=int, default=1000, help="of every command and fault, at most")
    options = parser.parse_args()
    forks.imported()
    wrong = 0
    for fault in options.fault or [*writes.FAULTS, "tmpfs", "stdout"]:
        for name in ["all"] if fault == "stdout" else options.only or COMMANDS:
            began = time.perf_counter()
            with tempfile.TemporaryDirectory() as folder:
                attack = Attack(Path(folder), COMMANDS.get(name, Attacked("")), fault)
                found = attack.run(options.cases)
            tally = ", ".join(f"{n} {what}" for what, n in found.most_common())
            seconds = time.perf_counter() - began
            print(f"{fault}, {name}: {found.total()} cases, {seconds:.0f} s: {tally}", flush=True)
            wrong += sum(n for what, n in found.items() if what.isupper())
    return 1 if wrong else 0


class Attack:
    """One command under one fault."""

    def __init__(self, folder: Path, command: Attacked, fault: str) -> None:
        self.folder, self.command, self.fault = folder, command, fault
        self.place, self.whole, self.cache = folder / "place", folder / "whole", folder / "cache"
        self.last = False

    def run(self, cases: int) -> collections.Counter[str]:
        """The outcome of every case; words in capitals are faults."""
        found: collections.Counter[str] = collections.Counter()
        self.prepare()
        if self.fault == "stdout":
            return self.unheard()
        if self.fault == "tmpfs":
            return self.filled(cases)
        end = self.once(self.disk(None))
        assert end.code == 0, end.stderr
        shutil.move(self.place, self.whole)
        total = len((self.folder / "counter").read_text().splitlines())
        points = range(1, total + 1) if total <= cases else np.unique(np.linspace(1, total, cases).round()).astype(int)
        if self.fault == "slow":
            points = [1]
        for over in (False, True) if self.command.replaces and self.fault != "slow" else (False,):
            for at in points:
                self.last = at == total
                what = self.judged(int(at), over)
                found[what] += 1
                if what.isupper():
                    where = (self.folder / "counter").read_text().splitlines()[at - 1 : at]
                    print(f"    {self.fault} at {at} of {total} ({where}), over={over}: {what}", flush=True)
        return found

    def prepare(self) -> None:
        """A warm cache, a run for pages, weights to observe, and an older run for one to replace."""
        os.environ["ODESIM_CACHE"] = str(self.cache)
        os.environ["MPLCONFIGDIR"] = str(self.folder / "matplotlib")
        self.inputs()
        for words, name in ((f"{FLOW} --no-figures", "RUN"), (self.command.words or "systems", "warm")):
            told = self.words(words, self.folder / name) if words != "systems" else [words]
            end = forks.command(told, self.folder / "said", self.moved(self.folder))
            assert end.code == 0, (end.code, end.stderr)
        shutil.rmtree(self.folder / "warm", ignore_errors=True)

    def inputs(self) -> None:
        """Weights to observe."""
        rng = np.random.default_rng(0)
        frame = np.linalg.qr(rng.normal(size=(8, 8)))[0]
        names = {"V": frame[:2], "W": frame[2:4]}
        told = {name: np.stack([rows] * 3) for name, rows in names.items()}
        fixed = {"V_star": frame[4:5], "W_star": frame[5:6], "time": np.arange(3.0)}
        np.savez(self.folder / "weights.npz", **told, **fixed)  # type: ignore[arg-type]

    def words(self, text: str, out: Path) -> list[str]:
        """The words of a command with its folders in place."""
        told = text.replace("RUN", str(self.folder / "RUN")).replace("weights.npz", str(self.folder / "weights.npz"))
        page = text.split()[0] in ("report", "explore")
        return [*told.split(), "--out", str(out / "page.html" if page else out)]

    def moved(self, where: Path, disk: writes.Disk | None = None) -> Callable[[], None]:
        """First actions of a fork: enter a folder on a disk, and store a checkpoint after every piece."""

        def before() -> None:
            import odesim.flow.driver as driver

            os.chdir(where)
            random.seed(0)  # the names of temporary files alone
            if self.command.often:
                driver.CHECKPOINT_SECONDS = 0.0
            if disk is not None:
                disk.install()

        return before

    def disk(self, at: int | None) -> writes.Disk:
        """The disk of a case."""
        return writes.Disk([self.place, self.cache], self.folder / "counter", self.fault, at)

    def once(self, disk: writes.Disk | None, more: str = "", fresh: bool = True) -> forks.End:
        """The command, in the fork, in `place`."""
        if fresh:
            shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir(exist_ok=True)
        if self.command.cold and fresh:
            shutil.rmtree(self.cache, ignore_errors=True)
        words = self.words(f"{self.command.words} {more}", self.place / "out")
        return forks.command(words, self.folder / "said", self.moved(self.place, disk))

    def judged(self, at: int, over: bool) -> str:
        """The outcome of the command if its `at`-th operation has the fault, and the remaining files."""
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()
        if over:
            other = f"{FLOW} --no-figures --seed 7"
            shutil.copytree(self.older(other), self.place / "out")
        end = self.once(self.disk(at), "--overwrite" if over else "", fresh=not over)
        return self.verdict(end, over)

    def older(self, words: str) -> Path:
        """A finished run of another request, made once."""
        made = self.folder / "older"
        if not made.exists():
            end = forks.command(self.words(words, made), self.folder / "said", self.moved(self.folder))
            assert end.code == 0, end.stderr
        return made

    def verdict(self, end: forks.End, over: bool) -> str:
        """The faults of an outcome and of the remaining files, in capitals; without faults, the outcome."""
        out = self.place / "out"
        said = [line for line in end.lines if not line.startswith("odesim: the cache ")]
        problem = ""
        finished = (out / "manifest.json").exists()
        left = [path for path in self.folder.rglob("*") if any(word in path.name for word in (".partial", ".old-"))]
        if len(left) == 1 and str(left[0]) in end.stderr:  # an older run that could not even be put back
            os.replace(left.pop(), out)
        if end.code not in (0, 2, 3) or "Traceback" in end.stderr or "internal error" in end.stderr:
            problem = f"exit code {end.code}: {end.stderr[-400:]}"
        elif (end.code != 0 and len(said) != 1) or len(end.lines) - len(said) > 1:
            problem = f"{len(said)} lines on stderr: {end.stderr[-600:]}"
        elif end.code == 0 and not self.same() and not (self.fault == "removed" and self.last):  # by then it was there
            problem = "says it is done, with other results"
        elif left:
            problem = f"left behind: {', '.join(path.name for path in left[:3])}"
        elif over and end.code != 0 and self.fault != "removed" and not self.kept():
            problem = "the run that was to be replaced is lost"
        elif finished and not over and self.shown() != 0:
            problem = "looks finished but is not whole"
        else:
            again = self.again(over)
            if again.code != 0:
                problem = f"exit code {again.code} when run again: {again.stderr[-300:]}"
            elif not self.same():
                problem = "other results when run again"
        if problem:
            return problem.upper()
        return f"exit code {end.code}{', the older run kept' if over and end.code else ''}"

    def again(self, over: bool) -> forks.End:
        """The command once more, on a sound disk."""
        return self.once(None, "--overwrite" if over else self.command.again, fresh=False)

    def shown(self) -> int:
        """The exit code of `odesim show` for what was written."""
        return forks.command(["show", str(self.place / "out")], self.folder / "shown").code

    def kept(self) -> bool:
        """Return True if the older run exists and is complete, or the new run has replaced it."""
        older = kills.same(kills.Command(""), self.folder / "older", self.place / "out")
        return self.shown() == 0 and (older or self.same())

    def same(self) -> bool:
        """Return True if the results are those of the complete run."""
        return kills.same(kills.Command("", tolerance=self.command.tolerance), self.whole, self.place)

    def filled(self, cases: int) -> collections.Counter[str]:
        """The command on real file systems of many sizes, from nothing to enough."""
        found: collections.Counter[str] = collections.Counter()
        assert self.once(None).code == 0
        shutil.move(self.place, self.whole)
        used = sum(path.stat().st_size for path in self.whole.rglob("*") if path.is_file())
        pages = range(2, 24 + 3 * used // 4096)
        for size in pages if len(pages) <= cases else np.unique(np.linspace(2, pages[-1], cases).round()).astype(int):
            self.place.mkdir(exist_ok=True)
            options = f"size={int(size) * 4096}"
            if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.place)]).returncode:
                found["skipped: no file system can be mounted here"] += 1
                return found
            try:
                end = self.once(None, fresh=False)
                subprocess.run(["mount", "-o", "remount,size=64m", str(self.place)], check=True)
                what = self.verdict(end, over=False)
            finally:
                subprocess.run(["umount", str(self.place)], check=True)
            found[what] += 1
            if what.isupper():
                print(f"    tmpfs of {size} pages: {what}", flush=True)
        return found

    def unheard(self) -> collections.Counter[str]:
        """Commands whose output goes to a full disk."""
        found: collections.Counter[str] = collections.Counter()
        for name, words in STDOUT.items():
            told = [word.replace("RUN", str(self.folder / "RUN")) for word in words.split()]
            with open("/dev/full", "w") as full:
                end = subprocess.run(
                    [sys.executable, "-m", "odesim", *told], stdout=full, stderr=subprocess.PIPE, text=True
                )
            good = end.returncode == 3 and len(end.stderr.splitlines()) == 1 and "internal" not in end.stderr
            found["one sentence" if good else f"{name.upper()}: {end.returncode} {end.stderr.upper()}"] += 1
        return found


if __name__ == "__main__":
    sys.exit(main())
