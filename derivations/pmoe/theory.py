"""Theoretical predictions in the figures of a run of `pmoe`: the closed form of v, Lambert's function."""

import math
from typing import Any

import numpy as np

from derivations.drawing import GREY, Reference, parameters
from derivations.pmoe.closed import lambert
from derivations.pmoe.signal import kappa0


def references(run: Any) -> list[Reference]:
    """v = 1/(1 + e^u) with u + e^u growing linearly, at infinite width and with irrelevant patches of one kind.

    The rate is 1/(4 l^2) behind perfect routers and (1/2 - delta_d kappa0(delta_d))/(2 n^2) for the CNN
    (`derivations.pmoe.closed`); joint training has no such form. Its initial value is the mean of both classes.
    """
    given = parameters(run)
    if not given or run.attrs.get("stage") != "experts" or "v1" not in run or run.sizes.get("time", 0) < 2:
        return []
    delta = given["delta_d"]
    if given["mode"] == "separate":
        rate, which = 1 / (4 * given["l"] ** 2), "perfect routers"
    elif given["mode"] == "cnn":
        rate, which = (0.5 - delta * float(kappa0(delta))) / (2 * given["n"] ** 2), "CNN"
    else:
        return []
    times = run["time"].values
    v = float(run["v1"].values[0] + run["v2"].values[0]) / 2
    if not 0 < v < 1:
        return []
    fine = np.linspace(times[0], times[-1], 200)
    curve = 1 / (1 + np.exp(lambert(math.log(1 / v - 1), rate, fine - times[0])))
    label = f"closed form of $v$: one irrelevant pattern, infinite width, {which}"
    return [Reference("v", label, x=fine.tolist(), y=curve.tolist(), colour=GREY, of=("v1", "v2"))]
