"""`python -m tests.golden FOLDER [OTHER]`: compute the golden runs into a folder, or compare two bit for bit."""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import derivations
from tests import golden


def main() -> int:
    """Compute or compare; exit code 1 where a number differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("other", type=Path, nargs="?", help="a second folder: compare, and compute nothing")
    parser.add_argument("--only", default="", help="the runs whose names contain this")
    parser.add_argument("--verdicts", action="store_true", help="also the quick verdicts of every system (20 minutes)")
    parser.add_argument("--keep", action="store_true", help="write reference.json from the folder")
    asked = parser.parse_args()
    if asked.other is not None:
        return compare(asked.folder, asked.other)
    asked.folder.mkdir(parents=True, exist_ok=True)
    for name, run in golden.runs().items():
        if asked.only in name and not (asked.folder / f"{name}.npz").exists():
            begun = time.perf_counter()
            np.savez(asked.folder / f"{name}.npz", **golden.compute(run))
            print(f"{time.perf_counter() - begun:7.2f} s  {name}", flush=True)
    if asked.verdicts:
        for system in derivations.names():
            _verdicts(system, asked.folder / f"verdicts-{system}.json")
    if asked.keep:
        kept = {name: _condensed(asked.folder / f"{name}.npz") for name in golden.runs()}
        lines = [f"{json.dumps(name)}: {json.dumps(arrays)}" for name, arrays in kept.items()]
        golden.REFERENCE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return 0


def compare(first: Path, second: Path) -> int:
    """Print every array and every verdict that is not the same to the last bit in both folders."""
    names = sorted({path.name for folder in (first, second) for path in folder.iterdir()})
    different = 0
    for name in names:
        if not ((first / name).exists() and (second / name).exists()):
            found = [f"only in {first if (first / name).exists() else second}"]
        elif name.endswith(".npz"):
            found = _differences(first / name, second / name)
        else:
            found = _answers(first / name, second / name)
        different += bool(found)
        for line in found:
            print(f"{name.removesuffix('.npz'):<28} {line}")
    print(f"{len(names) - different} of {len(names)} are the same to the last bit")
    return int(different > 0)


def _differences(first: Path, second: Path) -> list[str]:
    """The arrays that differ, each with how far."""
    with np.load(first) as one, np.load(second) as two:
        lines = [f"{name}: only in one" for name in sorted(set(one.files) ^ set(two.files))]
        for name in sorted(set(one.files) & set(two.files)):
            a, b = one[name], two[name]
            if a.shape != b.shape:
                lines.append(f"{name}: shape {a.shape} and {b.shape}")
            elif not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
                finite = np.isfinite(a) & np.isfinite(b)
                size = np.abs(a[finite]).max(initial=1e-300)
                lines.append(f"{name}: {np.abs(a[finite] - b[finite]).max(initial=0.0) / size:.1e} of its size")
    return lines


def _verdicts(system: str, path: Path) -> None:
    """The quick verdicts of a system by the command, without what is not an answer (seconds, folders)."""
    if path.exists():
        return
    command = [sys.executable, "-m", "odesim", "verify", "--system", system, "--effort", "quick", "--json", "--quiet"]
    answered = subprocess.run([*command, "--workers", "2", "--out", f"{path}.run"], check=False, capture_output=True)
    verdicts = json.loads(answered.stdout)["verdicts"]
    kept = [{k: v for k, v in verdict.items() if k not in ("seconds", "evidence")} for verdict in verdicts]
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def _answers(first: Path, second: Path) -> list[str]:
    """The forms whose verdicts differ."""
    if first.is_dir():  # the folder of a verification, beside its verdicts
        return []
    one, two = (
        {(v["claim"], v["variant"]): v for v in json.loads(path.read_text("utf-8"))} for path in (first, second)
    )
    return [
        f"{' '.join(form)}: {one.get(form, {}).get('answer')}, {two.get(form, {}).get('answer')}"
        for form in sorted(set(one) | set(two))
        if one.get(form) != two.get(form)
    ]


def _condensed(path: Path) -> dict[str, object]:
    with np.load(path) as arrays:
        return {name: golden.condensed(arrays[name]) for name in arrays.files}


if __name__ == "__main__":
    sys.exit(main())
