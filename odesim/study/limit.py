"""The flow as the limit of SGD: the distance between SGD and its flow as a function of a size, with its exponent."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from odesim.errors import UsageError
from odesim.request.trajectory import Outcome
from odesim.study.comparison import Comparison

if TYPE_CHECKING:
    import xarray

REPLICA = "replica"
"""Name of the dimension of the replicas of SGD in a sweep; the dimension `seed` is that of the swept seeds."""
DISTANCE, NOISE, EXPONENT = "distance", "noise", "exponent"
LEAST_SIZES = 3
"""Smallest number of sizes for an exponent with an interval."""
LEVEL = 0.95

Condensed = tuple[dict[str, np.ndarray], dict[str, tuple[list[str], str]], Outcome]


@dataclasses.dataclass(frozen=True)
class Exponent:
    """Exponent p of distance ~ x^p, its 95 % interval, and the exponent of `noise`, that of gradients of order 1."""

    estimate: float
    low: float
    high: float
    noise: float


def condensed(comparison: Comparison) -> Condensed:
    """Return arrays, their dimensions and meanings, and the outcome of a comparison, in the form of a cell of a sweep.

    `distance` (replica,) is the largest |SGD - flow| over components and times, `distance_NAME` that of a component,
    and `noise` is sqrt(t/B) for a time t of one step and B samples in it: the standard deviation of the noise of an
    order parameter over a time of order 1 is of this order.
    """
    second = comparison.second
    arrays = {DISTANCE: comparison.overall, f"{DISTANCE}_median": np.asarray(np.median(comparison.overall))}
    descriptions = {
        DISTANCE: ([REPLICA], "largest |SGD - flow| over components and times"),
        f"{DISTANCE}_median": ([], "median over replicas of the largest |SGD - flow|"),
    }
    for name, values in comparison.distance.items():
        arrays[f"{DISTANCE}_{name}"] = values.max(axis=1)
        descriptions[f"{DISTANCE}_{name}"] = ([REPLICA], f"largest |SGD - flow| of {name}")
    arrays[NOISE] = np.asarray(np.sqrt(time_of_step(comparison) / second.origin.options["batch"]))
    descriptions[NOISE] = (
        [],
        "sqrt(time of a step / batch), the size of sampling noise if gradients of a sample are of order 1",
    )
    return arrays, descriptions, second.outcome


def time_of_step(comparison: Comparison) -> float:
    """Time on the clock of the flow that one step of the simulation takes."""
    steps = comparison.second.step
    if steps is None or steps[-1] == steps[0]:
        raise UsageError("the distance from the flow needs a simulation of at least one step")
    return float((comparison.times[-1] - comparison.times[0]) / (steps[-1] - steps[0]))


def exponent(sizes: np.ndarray, distance: np.ndarray, noise: np.ndarray) -> Exponent:
    """Return the exponent of distances (size, replica) against sizes (size,), by least squares on logarithms.

    The interval is the wider of two: Student's of the slope through the means of log distance by size, if every size
    has its own start, and that of the slope through all replicas. `noise` (size,) gives the exponent of sampling noise
    in the same way. Raises `UsageError` for fewer than three sizes and for distances of zero.

    >>> sizes = np.array([100.0, 400.0, 1600.0])
    >>> found = exponent(sizes, np.outer(sizes**-0.5, [1.0, 1.2]), sizes**-0.5)
    >>> round(found.estimate, 12), round(found.noise, 12), found.low < -0.5 < found.high
    (-0.5, -0.5, True)
    """
    if len(sizes) < LEAST_SIZES:
        raise UsageError(f"an exponent needs {LEAST_SIZES} sizes, got {len(sizes)}")
    if not (np.isfinite(distance).all() and distance.min() > 0):
        raise UsageError("an exponent needs distances above zero, but a run is not finite or equals its flow")
    x, y = np.log(sizes), np.log(distance)
    fits = [stats.linregress(x, y.mean(axis=1)), stats.linregress(np.repeat(x, y.shape[1]), y.ravel())]
    counts = (len(sizes), y.size)
    widths = [fit.stderr * stats.t.ppf((1 + LEVEL) / 2, n - 2) for fit, n in zip(fits, counts, strict=True)]
    slope, width = float(fits[0].slope), float(max(widths))
    return Exponent(slope, slope - width, slope + width, float(stats.linregress(x, np.log(noise)).slope))


def axis_of(data: "xarray.Dataset") -> str:
    """Name of the swept size of a data set of comparisons."""
    (axis,) = map(str, data["outcome"].dims)
    return axis


def with_exponent(data: "xarray.Dataset") -> "xarray.Dataset":
    """Return a data set of comparisons with the attributes `exponent` (estimate, low, high) and `exponent_of_noise`.

    With fewer than three numbers, or a distance without a logarithm, the data set gets the reason as the attribute
    `no_exponent` instead.
    """
    sizes = data[axis_of(data)].values
    try:
        if sizes.dtype.kind not in "if" or (sizes <= 0).any():
            raise UsageError(f"an exponent needs sizes above zero, and {axis_of(data)} has others")
        fit = exponent(sizes.astype(float), data[DISTANCE].values, data[NOISE].values)
    except UsageError as error:
        return data.assign_attrs(no_exponent=str(error))
    return data.assign_attrs({EXPONENT: [fit.estimate, fit.low, fit.high], "exponent_of_noise": fit.noise})


def sentence(data: "xarray.Dataset") -> str:
    """Return one sentence on the dependence of the distance on the size, and on the sampling noise.

    If the gradients of a sample depend on the size, their exponent differs from that of `noise`.
    """
    axis, attributes = axis_of(data), data.attrs
    if EXPONENT not in attributes:
        return f"no exponent: {attributes['no_exponent']}"
    estimate, low, high = attributes[EXPONENT]
    noise = attributes["exponent_of_noise"]
    within = low <= noise <= high
    return (
        f"the distance between SGD and its flow scales as {axis}^{estimate:.3f} "
        f"({100 * LEVEL:g} % interval of the exponent: {low:.3f} to {high:.3f}); the interval "
        f"{'contains' if within else 'does not contain'} {noise:.3g}, "
        "the exponent of sampling noise for gradients of order 1"
    )


def is_comparison(data: "xarray.Dataset") -> bool:
    """Return True for a data set of comparisons over one size."""
    return DISTANCE in data and NOISE in data


def record(data: "xarray.Dataset") -> dict[str, Any] | None:
    """Return the exponent with its interval and that of sampling noise, as plain data; None if there is no exponent."""
    if EXPONENT not in data.attrs:
        return None
    estimate, low, high = map(float, data.attrs[EXPONENT])
    return {"estimate": estimate, "interval": [low, high], "noise": float(data.attrs["exponent_of_noise"])}
