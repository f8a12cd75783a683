"""Manifest of a run: the origin of its numbers, and everything needed to request it again."""

import datetime
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from derivations.installed import version
from odesim.machine import device
from odesim.request.trajectory import Trajectory
from odesim.store.files import MANIFEST, sha256
from odesim.store.folder import SCHEMA
from odesim.version import __version__

PACKAGES = (
    "numpy",
    "scipy",
    "sympy",
    "numba",
    "jax",
    "jaxlib",
    "diffrax",
    "equinox",
    "optimistix",
    "scikit-sundae",
    "xarray",
    "h5netcdf",
    "matplotlib",
)


def manifest(trajectory: Trajectory, case: Any, folder: Path, wall_times: Mapping[str, float]) -> dict[str, Any]:
    """Return the manifest of a run whose files are in `folder`."""
    origin, outcome = trajectory.origin, trajectory.outcome
    described = device.describe()
    return {
        "schema": SCHEMA,
        "digest": case.digest,
        "request": case.request(),
        **({"declaration": origin.declaration} if origin.declaration else {}),
        "seed": case.seed,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "outcome": {"kind": outcome.kind, "time": outcome.time, "reason": outcome.reason},
        "origin": {
            "system": origin.system,
            "stage": origin.stage,
            "tier": origin.tier,
            "method": origin.method,
            "parameters": origin.parameters,
            "options": origin.options,
            "seed": origin.seed,
        },
        "clock": trajectory.clock,
        "statistics": trajectory.statistics,
        "invariants": trajectory.invariants,
        "precision": origin.precision,
        "device": {"used": origin.device, **described},
        "threads": described["threads"],
        "wall_times": {name: round(seconds, 4) for name, seconds in wall_times.items()},
        "versions": versions(),
        "git": git_state(),
        "files": file_hashes(folder),
    }


def versions() -> dict[str, str | None]:
    """Return the versions of Python, odesim and its numerical packages, without importing them."""
    found = {"python": platform.python_version(), "odesim": __version__}
    return found | {name: version(name) for name in PACKAGES}


def file_hashes(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the SHA-256 and size of every file of a run except the manifest."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path != folder / MANIFEST)
    return {
        path.relative_to(folder).as_posix(): {"sha256": sha256(path), "bytes": path.stat().st_size} for path in files
    }


def git_state() -> dict[str, Any] | None:
    """Return the commit of the source checkout, and True if files have changed since; None outside of a checkout."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        commit = _git(root, "rev-parse", "HEAD").strip()
        return {"commit": commit, "dirty": bool(_git(root, "status", "--porcelain").strip())}
    except (OSError, subprocess.SubprocessError):
        return None


def _git(root: Path, *words: str) -> str:
    """Return the output of a git command."""
    command = ["git", "-C", str(root), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=5).stdout
