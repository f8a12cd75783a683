"""Commands in unusual places: `python -m tests.faults.places [--only NAME ..]`.

Every command runs once as it is, for its result, and once in every place: locale C, no home, no terminal and closed
streams, one core, two gigabytes of memory, a path with blanks and umlauts, no network.  A fault is another exit code, a
traceback, and numbers that differ; where memory is short, a sentence with exit code 3 is an honest answer too.
"""

import argparse
import dataclasses
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.faults import kills

SIZES = "-p m=2 -p m_star=1 -p d=50 --until 1"
COMMANDS = {
    "integrate": f"integrate --system liao {SIZES}",
    "integrate, JAX": f"integrate --system liao {SIZES} --backend jax --no-figures",
    "simulate": f"simulate --system liao {SIZES} --method compressed --step-size 1e-2 --batch 8",
    "explicit": f"simulate --system liao {SIZES} --method explicit --step-size 1e-2 --batch 8 --no-figures",
    "sweep": f"sweep --system liao {SIZES} --over seed=0..3 --workers 2",
    "verify": "verify --system pruning --claim random-prune --workers 2",
    "declared": "integrate --system ren_2025 --until 1 --no-figures",
}
TOLERANCE = 1e-7
"""Of one core against two: products are added up in another order."""
GIGABYTES = 2 << 30


def _short_of_memory() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (GIGABYTES, GIGABYTES))


def _one_core() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _closed() -> None:
    os.close(0)


@dataclasses.dataclass(frozen=True)
class Place:
    """The folder to work in, variables of the environment (None: unset), and what the process does to itself first."""

    folder: str = "plain"
    environment: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    before: Callable[[], None] | None = None
    wrapped: tuple[str, ...] = ()
    refuses: bool = False


PLACES = {
    "locale C": Place(environment={"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    "no home": Place(environment={"HOME": None, "XDG_CACHE_HOME": None, "ODESIM_CACHE": None, "USER": None}),
    "no terminal, closed stdin": Place(environment={"TERM": None}, before=_closed),
    "one core": Place(before=_one_core),
    "2 GB of memory": Place(before=_short_of_memory, refuses=True),
    "blanks and umlauts": Place("ein Ordner, größer als \u03c0", {"ODESIM_CACHE": "Über Cache"}),
    "no network": Place(wrapped=("unshare", "--net", "--map-root-user")),
}


def main() -> int:
    """Run every command in every place, and print a line for each place."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.places", description=__doc__)
    parser.add_argument("--only", choices=list(PLACES), action="append")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        whole = {command: run(words, root / "whole" / command, Place()) for command, words in COMMANDS.items()}
        assert all(done.returncode == 0 for done in whole.values()), whole
        for place in options.only or PLACES:
            faults, refused = [], 0
            for command, words in COMMANDS.items():
                out = root / "case" / PLACES[place].folder / command
                done = run(words, out, PLACES[place])
                refused += done.returncode == 3 and PLACES[place].refuses
                told = fault(done, out, root / "whole" / command, PLACES[place].refuses)
                faults += [f"{command}: {told}"] if told else []
            shutil.rmtree(root / "case", ignore_errors=True)
            said = f", {refused} refused in a sentence" if refused else ""
            print(f"{place}: {len(COMMANDS) - len(faults)} of {len(COMMANDS)} commands well{said}", flush=True)
            for told in faults:
                print(f"    FAULT: {told}", flush=True)
            wrong += len(faults)
    return 1 if wrong else 0


def run(words: str, out: Path, place: Place) -> subprocess.CompletedProcess[str]:
    """A command in a place, its folder made before."""
    out.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **{name: value for name, value in place.environment.items() if value is not None}}
    if "ODESIM_CACHE" in place.environment and place.environment["ODESIM_CACHE"] is not None:
        environment["ODESIM_CACHE"] = str(out.parent / str(place.environment["ODESIM_CACHE"]))
    for name in (name for name, value in place.environment.items() if value is None):
        environment.pop(name, None)
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    asked = [*place.wrapped, sys.executable, "-m", "odesim", *words.split(), "-q", "--out", str(out)]
    return subprocess.run(
        asked, cwd=out.parent, env=environment, preexec_fn=place.before, capture_output=True, text=True, timeout=600
    )


def fault(done: subprocess.CompletedProcess[str], out: Path, whole: Path, refuses: bool) -> str:
    """The fault of a finished command, or nothing."""
    if "Traceback" in done.stderr or "Error:" in done.stderr:
        return done.stderr.strip()[-300:]
    if refuses and done.returncode == 3 and len(done.stderr.strip().splitlines()) <= 3:
        return ""
    if done.returncode != 0:
        return f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"
    command = kills.Command("", tolerance=TOLERANCE)
    return "" if kills.same(command, whole, out) else "other numbers"


if __name__ == "__main__":
    sys.exit(main())
