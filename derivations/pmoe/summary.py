"""Quantities of a run of system `pmoe`: constants, and the headline numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, Labelled
from derivations.pmoe.signal import signal_constants

OUT = {2: ("expert", "neuron"), 3: ("expert", "neuron", "class")}
ROWS = {"counts": ("row", "pattern"), "label": ("row",), "weight": ("row",)}


def constants(initial: Initial) -> Labelled:
    """The Gram matrix and the output weights, and the training set of a file."""
    from derivations.pmoe.separability import of_gram

    c = initial.constants
    distance, bound = of_gram(np.asarray(c["gram"]), initial.parameters.classes)
    found: dict[str, Any] = {"distance": (("pattern", "pattern_"), distance, "distances of the patterns")}
    if bound is not None:
        meaning = "all compositions of n patches are linearly separable if and only if n - 1 is below it"
        found["beta_star"] = ((), np.array(bound), meaning)
    found |= {
        "gram": (("pattern", "pattern_"), np.asarray(c["gram"]), "inner products of the patterns"),
        "out": (OUT[np.ndim(c["out"])], np.asarray(c["out"]), "output weights a, never trained"),
    }
    if bool(c["given"]):
        found["samples"] = ((), np.asarray(c["given"]), "number of samples of the file")
        found |= {name: (dims, np.asarray(c[name]), "different samples of the file") for name, dims in ROWS.items()}
    return found


def summarise(initial: Initial, run: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Loss, error and class means of v at both ends; routing margins; and changes of routers.

    With an output per class the means of v and the routing margins are lists, in the order of the classes.
    """
    p = initial.parameters
    summary: dict[str, Any] = {"mode": p.mode, "k": p.k, "l": p.l, "compositions": len(initial.constants["label"])}
    if "loss" in run and not p.softmax:
        schur, cube = signal_constants(np.asarray(initial.constants["gram"]))
        summary |= {"signal_constant": schur, "gamma_cubed": cube}
    for name in ("loss", "error", "v1", "v2"):
        if name in run:
            summary[f"{name}_initial"], summary[f"{name}_final"] = float(run[name][0]), float(run[name][-1])
    if "v" in run:
        summary |= {f"v_{end}": [float(v) for v in run["v"][at]] for end, at in (("initial", 0), ("final", -1))}
    if "assumption" in run and p.mode == "joint":
        summary["assumption_4_4"] = bool(run["assumption"][-1] > 0)
    if "route" in run and run["route"].shape[-1] > p.classes and p.mode != "cnn":
        final = run["route"][-1]
        rest = final[:, p.classes :].max(axis=1)
        above = [float((final[:, a] - rest).max()) for a in range(p.classes)]
        summary |= {"o_above": above} if p.softmax else {"o1_above": above[0], "o2_above": above[1]}
        moved = np.abs(final - run["route"][0]).max()
        summary["router_displacement"] = float(moved)
        summary["displacement_over_sigma_r"] = float(moved / p.sigma_r) if p.sigma_r > 0 else None
    if "flips" in run:
        summary["flips_final"] = float(run["flips"][-1])
    return summary
