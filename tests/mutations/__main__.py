"""`make mutants`: every mutation of a list is applied to a copy of the program, and a few tests must notice it.

Each system, and what is common to all, has a list `NAME.toml` of mutations: a name, the file, the text that is
replaced (it occurs once), what it is replaced by, and the tests that should see it.  A mutation is caught when a test
fails, or when the program itself refuses to run; it survives when all pass.  Prints one line each, and exits with 1
if any survives.
"""

import argparse
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PASSED, FAILED = 0, 1
"""Exit codes of pytest; any other is an error of the test run itself."""
LIMIT = 900.0
"""Seconds after which a mutated program counts as one that no longer comes to an end, which is noticed."""


def listed(names: list[str]) -> list[dict[str, Any]]:
    """The mutations of the lists of these names, or of all."""
    found = []
    for path in sorted(HERE.glob("*.toml")):
        if not names or path.stem in names:
            entries = tomllib.loads(path.read_text(encoding="utf-8"))["mutation"]
            found += [{"list": path.stem, **entry} for entry in entries]
    return found


def copy_of_the_program(folder: Path) -> Path:
    """The files that git knows or would know, in a folder of their own."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    for name in names.decode().split("\0"):
        if name and (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    return folder


def tested(folder: Path, tests: list[str]) -> int:
    """The exit code of pytest on some tests of a copy."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return FAILED
    return done.returncode


def tried(folder: Path, mutation: dict[str, Any]) -> str:
    """The outcome of one mutation: caught, SURVIVED, or the reason why it was not tried."""
    path = folder / mutation["file"]
    source = path.read_text(encoding="utf-8")
    if source.count(mutation["old"]) != 1:
        return f"NOT APPLIED: the text occurs {source.count(mutation['old'])} times in {mutation['file']}"
    path.write_text(source.replace(mutation["old"], mutation["new"]), encoding="utf-8")
    try:
        code = tested(folder, mutation["tests"])
    finally:
        path.write_text(source, encoding="utf-8")
    return {PASSED: "SURVIVED", FAILED: "caught"}.get(code, f"ERROR: pytest ended with {code}")


def work(inbox: queue.Queue[dict[str, Any]], results: list[bool]) -> None:
    """Try mutations on a copy until there are none left."""
    with tempfile.TemporaryDirectory() as name:
        folder = copy_of_the_program(Path(name))
        while True:
            try:
                mutation = inbox.get_nowait()
            except queue.Empty:
                return
            began = time.perf_counter()
            outcome = tried(folder, mutation)
            results.append(outcome == "caught")
            print(
                f"{mutation['list']}: {mutation['name']}: {outcome} ({time.perf_counter() - began:.0f} s)", flush=True
            )


def main() -> int:
    """Try all mutations with several workers, after their tests have passed on the program as it is."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description="apply mutations, expect failures")
    parser.add_argument("names", nargs="*", help="lists (systems); all without a name")
    parser.add_argument("--workers", type=int, default=2, help="copies of the program that are worked on at once")
    arguments = parser.parse_args()
    mutations = listed(arguments.names)
    if not mutations:
        parser.error(f"no list of mutations is called {', '.join(arguments.names)}")
    with tempfile.TemporaryDirectory() as name:
        tests = sorted({test for mutation in mutations for test in mutation["tests"]})
        if tested(copy_of_the_program(Path(name)), tests) != PASSED:
            print("the tests do not pass on the program as it is: mutations would say nothing", file=sys.stderr)
            return 1
    inbox: queue.Queue[dict[str, Any]] = queue.Queue()
    for mutation in mutations:
        inbox.put(mutation)
    results: list[bool] = []
    crew = [threading.Thread(target=work, args=(inbox, results)) for _ in range(arguments.workers)]
    for worker in crew:
        worker.start()
    for worker in crew:
        worker.join()
    print(f"{sum(results)} of {len(mutations)} caught")
    return 0 if sum(results) == len(mutations) else 1


if __name__ == "__main__":
    sys.exit(main())
