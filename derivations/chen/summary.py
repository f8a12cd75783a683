"""Quantities of a run of system `chen`: professions at the start, and the headline numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, Labelled


def constants(initial: Initial) -> Labelled:
    """Return the constants of a run: the feature and filter of each expert's largest initial overlap."""
    c = initial.constants
    return {
        "kstar": (("expert",), np.asarray(c["kstar"]), "feature k*_m of the largest initial overlap of expert m"),
        "jstar": (("expert",), np.asarray(c["jstar"]), "filter j*_m of the largest initial overlap of expert m"),
    }


def summarise(initial: Initial, run: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Professions at the start and the end, the specialists' strengths, router alignment, and final observables."""
    summary: dict[str, Any] = {"kstar": [int(k) for k in initial.constants["kstar"]]}
    if "feat" in run:
        final = run["feat"][-1]
        summary["final_profession"] = [int(k) for k in final.max(axis=1).argmax(axis=1)]
        summary["strength"] = [float(s) for s in final.max(axis=(1, 2))]
    if "gcen" in run:
        summary["max_gcen"] = float(np.abs(run["gcen"][-1]).max())
    if "gfeat" in run:
        summary["max_gfeat"] = float(np.abs(run["gfeat"][-1]).max())
    for name in ("entropy", "accuracy", "entropy_noisy", "accuracy_noisy"):
        if name in run:
            summary[f"final_{name}"] = float(run[name][-1])
    if "loss" in run:
        summary |= {"loss_initial": float(run["loss"][0]), "loss_final": float(run["loss"][-1])}
    return summary
