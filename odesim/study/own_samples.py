"""Comparisons on a user's samples: flow, SGD on the samples, and SGD on Gaussian inputs with their covariance."""

from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.request.trajectory import Trajectory, Variable
from odesim.study import agreement, panels

if TYPE_CHECKING:
    from odesim.study.comparison import Comparison


def told(gaussian: "Comparison", second: Trajectory) -> dict[str, Any]:
    """Return the entries of a summary on SGD on Gaussian inputs, and the mean number of draws of a sample."""
    entries: dict[str, Any] = {
        "gaussian_distance_median": float(np.median(gaussian.overall)),
        "gaussian_agreement": agreement.overall(gaussian.judgements),
    }
    return {**entries, **{key: second.summary[key] for key in ("passes",) if key in second.summary}}


def sentence(samples: "Comparison", gaussian: "Comparison") -> str:
    """Return the sentence with the distances on the samples and on Gaussian inputs."""
    sample_distance, gaussian_distance = (float(np.median(comparison.overall)) for comparison in (samples, gaussian))
    return (
        f"the largest difference between SGD and the ODE (median replica) is {sample_distance:.3g} on the samples and "
        f"{gaussian_distance:.3g} on Gaussian inputs of the same covariance; on Gaussian inputs: "
        f"{agreement.overall(gaussian.judgements)}"
    )


def variables(gaussian: "Comparison") -> dict[str, Variable]:
    """Return the variables of SGD on Gaussian inputs for the picture of a comparison (`panels.variables`)."""
    first, second = gaussian.first, gaussian.second
    panel_variables = panels.variables(first, second, gaussian.reference, gaussian.times)
    names = {"shown_second": "shown_gaussian", "loss_second": "loss_gaussian"}
    renamed = {names[name]: value for name, value in panel_variables.items() if name in names}
    for name, values in gaussian.distance.items():
        meaning = f"max |difference| of {name}, SGD on Gaussian inputs"
        renamed[f"gaussian_distance_{name}"] = Variable(("seed", "time"), values, meaning)
    return renamed
