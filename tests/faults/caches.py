"""Damaged, old, foreign and contended caches: `python -m tests.faults.caches --cases 100 [--only KIND]`.

Every kind of file in the cache is damaged (bytes changed, cut, emptied, doubled, replaced by another file, a folder in
its place), and a command that needs it is run in a fork.  It must end well, with the numbers of the whole run and at
most one line on stderr; the run after it must find the cache whole again.  Then: 8 processes at once in one empty
cache, processors of other kinds, other versions, a cache that is full or cannot be read or written.
"""

import argparse
import collections
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.faults import forks, kills

FLOW = "integrate --system liao -p m=2 -p m_star=1 -p d=50 --until 1 --save-points 3 --no-figures -q"
SAMPLED = "integrate --system quadratic_network -p tier=sampled --until .1 --save-points 3 --no-figures -q"
DERIVED = "integrate --system ren_2025 --until .001 --save-points 3 --no-figures -q"
SGD = "simulate --system liao -p m=2 -p m_star=1 -p d=50 --method compressed --step-size 1e-3 --batch 8 --until .01 -q"
KINDS = {
    "generated modules": (SGD + " --no-figures", "kernels/*.py"),
    "machine code": (FLOW, "**/*.nbc"),
    "hashes of machine code": (FLOW, "**/*.sha256"),
    "machine code of SGD": (f"{SGD} --no-figures", "**/*.nbc"),
    "points": (SAMPLED, "points_*.npz"),
    "derivations": (DERIVED, "derivation_*.json"),
    "responses": (SAMPLED, "responses_*.json"),
}
"""Kinds of files: the command that needs them, and where in the cache they are."""
CPUS = {
    "nehalem": {"NUMBA_CPU_NAME": "nehalem", "NUMBA_CPU_FEATURES": ""},
    "without AVX": {"NUMBA_ENABLE_AVX": "0"},
    "generic": {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
}
"""Other processors, as numba is told of them."""


def main() -> int:
    """Attack, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.caches", description=__doc__)
    parser.add_argument("--only", choices=[*KINDS, *WHOLE], action="append")
    parser.add_argument("--cases", type=int, default=100, help="of every kind of file")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    forks.imported()
    wrong = 0
    for kind in options.only or [*KINDS, *WHOLE]:
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as name:
            if kind in KINDS:
                found = damaged(kind, Path(name), options.cases, random.Random(f"{options.seed}/{kind}"))
            else:
                found = WHOLE[kind](Path(name))
        tally = ", ".join(f"{n} {what}" for what, n in found.most_common())
        print(f"{kind}: {found.total()} cases, {time.perf_counter() - began:.0f} s: {tally}", flush=True)
        wrong += sum(n for what, n in found.items() if what.isupper())
    return 1 if wrong else 0


def damaged(kind: str, folder: Path, cases: int, rng: random.Random) -> collections.Counter[str]:
    """The outcome for every damaged file of a kind; words in capitals are faults."""
    words, pattern = KINDS[kind]
    whole, cache = folder / "whole", folder / "kept"
    for _ in range(2):
        first = run(words, cache, whole)
        assert first.code == 0, first.stderr
    files = sorted(path.relative_to(cache) for path in cache.glob(pattern))
    found: collections.Counter[str] = collections.Counter()
    assert files, f"the command writes no {pattern}"
    for case in range(cases):
        place = folder / "cache"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(cache, place)
        how = damage(rng, place / rng.choice(files), [place / other for other in files])
        what = judged(words, place, whole, folder / "out")
        found[what] += 1
        if what.isupper():
            print(f"    {kind}, case {case}, {how}: {what}", flush=True)
    return found


def judged(words: str, cache: Path, whole: Path, out: Path) -> str:
    """The outcome of a command with a cache, and of the same command after it."""
    for again in ("", " THE NEXT TIME"):
        end = run(words, cache, out)
        if end.code < 0:
            return f"SIGNAL {-end.code}{again}"
        if end.code != 0 or "Traceback" in end.stderr:
            print(end.stderr[-300:])
            return f"EXIT CODE {end.code}{again}"
        if not kills.same(kills.Command(words), whole, out):
            return f"OTHER NUMBERS{again}"
        if len(end.lines) > (0 if again else 1):
            print(end.stderr[-600:])
            return f"{len(end.lines)} LINES ON STDERR{again}"
    if end.seconds > 30:
        return "NOT REBUILT"
    return "rebuilt" if compiled(words, cache, out) == 0 else "NOT REBUILT"


def run(words: str, cache: Path, out: Path, before: Callable[[], None] | None = None) -> forks.End:
    """A command with a cache folder, into a fresh folder."""
    shutil.rmtree(out, ignore_errors=True)
    os.environ["ODESIM_CACHE"] = str(cache)
    return forks.command([*words.split(), "--out", str(out)], out.with_name("said"), before)


def compiled(words: str, cache: Path, out: Path) -> int:
    """Number of functions that a command compiles because they are missing in the cache."""
    counted = out.with_name("counted")
    counted.write_bytes(b"")

    def count() -> None:
        import numba.core.compiler as compiler

        real = compiler.compile_extra

        def noted(*arguments, **named):
            with counted.open("ab") as file:
                file.write(b".")
            return real(*arguments, **named)

        compiler.compile_extra = noted

    end = run(words, cache, out, count)
    assert end.code == 0, end.stderr
    return counted.stat().st_size


def damage(rng: random.Random, path: Path, others: list[Path]) -> str:
    """Damage a file in one of many ways, and say in which."""
    data = bytearray(path.read_bytes())
    at = rng.randrange(len(data))
    match rng.randrange(10):
        case 0:
            path.write_bytes(b"")
            return "emptied"
        case 1:
            path.write_bytes(data[:at])
            return f"cut at {at}"
        case 2:
            path.unlink()
            path.mkdir()
            return "a folder in its place"
        case 3:
            path.write_bytes(rng.choice(others).read_bytes())
            return "another in its place"
        case 4:
            path.write_bytes(rng.randbytes(len(data)))
            return "random bytes"
        case 5:
            path.write_bytes(data[:at] + bytes(len(data) - at))
            return f"zeros from {at}"
        case 6:
            path.write_bytes(data + data[at:])
            return "longer"
    data[at] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    return f"a bit of byte {at} of {path.name}"


def contended(folder: Path) -> collections.Counter[str]:
    """8 processes at once in one cache that is empty."""
    found: collections.Counter[str] = collections.Counter()
    assert run(FLOW, folder / "kept", folder / "whole").code == 0
    for turn in range(3):
        crew = [
            subprocess.Popen(
                [sys.executable, "-m", "odesim", *FLOW.split(), "--out", str(folder / f"{turn}-{k}")],
                env={**os.environ, "ODESIM_CACHE": str(folder / f"cache{turn}")},
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            )
            for k in range(8)
        ]  # fmt: skip
        for k, process in enumerate(crew):
            told = process.communicate()[1]
            if process.returncode or told:
                found[f"EXIT CODE {process.returncode}: {told[-200:]}".upper()] += 1
            elif not kills.same(kills.Command(FLOW), folder / "whole", folder / f"{turn}-{k}"):
                found["OTHER NUMBERS"] += 1
            else:
                found["as alone"] += 1
        left = [path for path in (folder / f"cache{turn}").rglob("*") if ".tmp" in path.name or "partial" in path.name]
        found["FILES LEFT BEHIND"] += len(left)
        found["CACHE NOT WHOLE"] += bool(compiled(FLOW, folder / f"cache{turn}", folder / "out"))
    return +found


def processors(folder: Path) -> collections.Counter[str]:
    """A cache that another processor has filled: its machine code is not taken, and stays for it."""
    found: collections.Counter[str] = collections.Counter()
    cache = folder / "cache"
    assert run(FLOW, cache, folder / "whole").code == 0
    for name, environment in CPUS.items():
        for turn in ("first", "second"):
            end = subprocess.run(
                [sys.executable, "-c", COUNTING, *FLOW.split(), "--overwrite", "--out", str(folder / name)],
                env={**os.environ, "ODESIM_CACHE": str(cache), **environment}, capture_output=True, text=True,
            )  # fmt: skip
            hits, misses = map(int, end.stdout.split()[-2:])
            own = hits == 0 and misses > 0 if turn == "first" else hits > 0 and misses == 0
            found["its own machine code" if own and end.returncode == 0 else f"{hits} HITS, {misses} MISSES"] += 1
    found["STILL THERE" if compiled(FLOW, cache, folder / "out") else "ours still there"] += 1
    return found


COUNTING = """
import sys, numba.core.dispatcher as d
from odesim import cli
seen, real = [], d.Dispatcher.compile
def compile(self, signature):
    seen.append(self)
    return real(self, signature)
d.Dispatcher.compile = compile
code = cli._run(sys.argv[1:])
ours = {id(one): one for one in seen if one._cache.cache_path}.values()
print(sum(sum(one._cache_hits.values()) for one in ours), sum(sum(one._cache_misses.values()) for one in ours))
sys.exit(code)
"""
"""A command that prints at its end how often machine code was found in the cache, and how often not."""


WHOLE: dict[str, Callable[[Path], collections.Counter[str]]] = {
    "8 processes at once": contended,
    "other processors": processors,
}
"""Attacks on a cache as a whole."""


if __name__ == "__main__":
    sys.exit(main())
