"""Golden runs: numbers of small runs of everything, so that a redesign can be seen to move none of them.

`python -m tests.golden FOLDER` computes them in this checkout and `python -m tests.golden FOLDER OTHER` compares two
folders bit for bit: made on one machine from two checkouts, before and after.  What is kept in the repository,
`reference.json`, is a few numbers of each run with a tolerance that holds on every processor; `test_golden` compares
them.
"""

import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import odesim

HERE = Path(__file__).parent
REFERENCE = HERE / "reference.json"
TOLERANCE = 1e-6
MEASURED = ("seconds", "steps_per_second")
"""Entries of a summary that are timings."""
NEGLIGIBLE = 1e-3
"""An array no larger than this is compared as if it were this large: a loss at its optimum or an eigenvalue that is 0
is what the tolerance of the integrator leaves, and another processor leaves other digits (4e-11 was seen)."""
SAVED = 201
"""Saved times, by number: some systems save early times besides where none is given."""
KEPT = 6
"""Entries of an array, evenly spaced, that the reference holds."""


def runs() -> dict[str, dict[str, Any]]:
    """The runs of `runs.toml`, by name."""
    listed = tomllib.loads((HERE / "runs.toml").read_text(encoding="utf-8"))["run"]
    named = {run["name"]: run for run in listed}
    if len(named) != len(listed):
        raise ValueError("two golden runs have one name")
    return named


def compute(run: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Every array and every number of the summary of a golden run, by public calls alone."""
    given = {"save_points": SAVED} | {name: _plain(value) for name, value in run["with"].items()}
    if run["do"] == "course":
        return _course(given, run["until"])
    if run["do"] == "simulate":
        return arrays_of(odesim.simulate(**given))
    trajectory = odesim.integrate(**given)
    if run["do"] == "integrate":
        return arrays_of(trajectory)
    found = odesim.linearise(trajectory)
    return {"jacobian": found.jacobian, "rates": np.sort(np.real(found.eigenvalues))}


def arrays_of(trajectory: Any) -> dict[str, np.ndarray]:
    """Time, state, extras, summary and conserved quantities of a trajectory, each as an array of numbers."""
    found = {"time": np.asarray(trajectory.time)}
    for kind, group in (("state", trajectory.state), ("extra", trajectory.extras)):
        found |= {f"{kind}.{name}": np.asarray(variable.values) for name, variable in group.items()}
    for kind, group in (("summary", trajectory.summary), ("invariant", trajectory.invariants)):
        found |= {f"{kind}.{name}": value for name, value in _numbers(group).items() if name not in MEASURED}
    found["outcome.time"] = np.asarray(trajectory.outcome.time)
    return {name: array for name, array in found.items() if array.dtype.kind in "fiubc"}


def _numbers(group: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The entries of a summary that are numbers or lists of them."""
    found = {}
    for name, value in group.items():
        if isinstance(value, int | float | list | tuple | np.ndarray):
            try:
                found[name] = np.asarray(value, float)
            except (TypeError, ValueError):  # a list of words
                continue
    return found


def _course(given: dict[str, Any], until: str) -> dict[str, np.ndarray]:
    """Several stages by the command, stage by stage from its folder."""
    words = ["--system", given.pop("system"), "--stage", given.pop("stages"), "--seed", str(given.pop("seed"))]
    words += ["--save-points", str(given.pop("save_points"))]
    for name, value in given.items():
        words += ["-p", f"{name}={value}"]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = [sys.executable, "-m", "odesim", "integrate", *words, "--until", until, "--no-figures", "--quiet"]
        subprocess.run([*command, "--out", str(out)], check=True)
        found = {}
        for stage in sorted((out / "stages").iterdir()):
            arrays = arrays_of(odesim.load(stage).trajectory)
            found |= {f"{stage.name}.{name}": array for name, array in arrays.items()}
    return found


def _plain(value: Any) -> Any:
    """Lists of TOML as the tuples that parameters are."""
    return tuple(map(_plain, value)) if isinstance(value, list) else value


def condensed(array: np.ndarray) -> dict[str, Any]:
    """Summary of an array in the reference: its shape, its largest finite size, and a few of its entries."""
    flat = array.astype(complex).ravel() if array.dtype.kind == "c" else array.astype(float).ravel()
    if array.dtype.kind == "c":
        flat = np.concatenate([flat.real, flat.imag])
    chosen = flat[np.unique(np.linspace(0, max(flat.size - 1, 0), KEPT).astype(int))] if flat.size else flat
    size = float(np.abs(flat[np.isfinite(flat)]).max(initial=0.0))
    return {"shape": list(array.shape), "size": size, "entries": [_jsonable(x) for x in chosen]}


def _jsonable(x: float) -> float | str:
    return float(x) if np.isfinite(x) else str(float(x))


def reference() -> dict[str, dict[str, Any]]:
    """The stored numbers, by run and array."""
    return json.loads(REFERENCE.read_text(encoding="utf-8"))
