"""Common parts of several figures of kawata: the paper's experiment through its phases, and colours."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from odesim.show.figures import Table

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""The Okabe-Ito colours."""
HALF = 0.5**0.5
LINK = ((0, 0, 0, HALF, 0, HALF), (0, 0, 0, HALF, HALF), (0, 0, 0, 1.0))
"""f_1 = (h_3 + h_5)/sqrt 2, f_2 = (h_3 + h_4)/sqrt 2, g = h_3: the paper's links with normalised polynomials."""
PUBLISHED = (
    "The sizes are those of the paper (d = 200, C = 2, 8 experts of 500 neurons, T1 = 3.5e6, T3 = 1e7 steps at "
    "rate 1). The runs are gradient flow instead of SGD, because fewer neurons grow under SGD at rate 1. The paper "
    "does not state rho and the biases; here rho = 4 and the biases are in [-1.5, 1.5]."
)


def phases(M: int, J: int, d: int, T1: float, T3: float, rho: float, seed: int) -> Mapping[str, Any]:
    """Phases I to III by population flow: final overlaps per phase, the gate, and the initial alignments."""
    from odesim.flow import pipeline

    request = {"C": 2, "M": M, "J": J, "d": d, "rho": rho, "link": LINK, "s": (1.0, -1.0), "bias": (-1.5, 1.5)}
    options = {"seed": seed, "save_points": 2, "rtol": 1e-6}
    ends = {"phase1": T1, "phase3": T1 + T3}
    first, second, last = pipeline.run(pipeline.build("kawata", request, "phase1,phase2,phase3", until=ends, **options))
    return {
        "kappa1": first["kappa"][-1].tolist(),
        "xi1": first["xi"][-1].tolist(),
        "kappa0": first["kappa"][0].tolist(),
        "iota": second["iota"].tolist(),
        "gate_norm": second["gate_norm"].tolist(),
        "theta": second["theta"].tolist(),
        "routing": second["routing"].tolist(),
        "kappa3": last["kappa"][-1].tolist(),
        "xi3": last["xi"][-1].tolist(),
    }


def experiment(quick: bool) -> list[Table]:
    """The paper's experiment, or one of 8 experts with 20 neurons."""
    size = {"M": 8, "J": 20 if quick else 500, "d": 200, "rho": 4.0, "seed": 0}
    scale = size["J"] / 500
    return [Table("kawata-phases", phases, {**size, "T1": 3.5e6 * scale, "T3": 1e7 * scale})]


def by_expert(stored: Any, name: str) -> np.ndarray:
    """Overlaps (expert, neuron, ...) of a phase."""
    values = np.asarray(stored[name])
    return values.reshape(stored.arguments["M"], -1, *values.shape[1:])


def heat(axis: Any, values: np.ndarray, rows: list[str], colours: str, high: float, low: float = 0.0) -> Any:
    """A labelled heat map with the rows named."""
    image = axis.imshow(values, vmin=low, vmax=high, cmap=colours, aspect="auto", interpolation="nearest")
    axis.set_yticks(range(len(rows)), rows)
    return image


TASKS = [r"$w_1^*$", r"$w_2^*$", r"$w_g^*$"]
