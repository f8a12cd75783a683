"""Picture of comparisons over a size: distance between SGD and its flow, with the fitted exponent."""

from typing import Any

import numpy as np

from derivations.drawing import BLACK, COLUMN, GREY
from odesim.show.column import STYLE, finish, head
from odesim.study import limit

SIZE = (COLUMN, 2.1)
"""Size in inches, without title and legend."""


def draw(data: Any, heading: str = "") -> Any:
    """Draw a data set of `odesim compare --over`: distances against the size, on logarithmic axes if both allow it.

    Every replica is a point. The solid line is the fitted power, the dashed one is proportional to the sampling noise
    sqrt(step/batch) and passes through the median at the smallest size.
    """
    import matplotlib as mpl

    with mpl.rc_context(rc=STYLE):
        return _drawn(data, heading)


def _drawn(data: Any, heading: str) -> Any:
    """Return the figure in the style of the picture."""
    from matplotlib.figure import Figure

    axis = limit.axis_of(data)
    distance, noise = data[limit.DISTANCE].values, data[limit.NOISE].values
    numbers = data[axis].values.dtype.kind in "if"
    sizes = data[axis].values.astype(float) if numbers else np.arange(float(len(distance)))
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.subplots()
    axes.plot(np.repeat(sizes, distance.shape[1]), distance.ravel(), ".", color=GREY, markersize=4, label="SGD")
    if limit.EXPONENT in data.attrs:
        estimate, low, high = data.attrs[limit.EXPONENT]
        centre = np.exp(np.log(distance).mean() + estimate * (np.log(sizes) - np.log(sizes).mean()))
        fitted = rf"${axis}^{{{estimate:.2f}}}$ [{low:.2f}, {high:.2f}]"
        axes.plot(sizes, centre, color=BLACK, linewidth=1.2, label=fitted)
        predicted = np.median(distance[0]) * noise / noise[0]
        share = rf"$\sqrt{{\mathrm{{step/batch}}}}$: ${axis}^{{{data.attrs['exponent_of_noise']:.2g}}}$"
        axes.plot(sizes, predicted, "--", color="C0", linewidth=1.0, label=share)
        axes.set(xscale="log", yscale="log")
    if not numbers:
        axes.set_xticks(sizes, [str(value) for value in data[axis].values])
    axes.set(xlabel=f"${axis}$" if len(axis) == 1 else axis.replace("_", " "), ylabel="largest |SGD - flow|")
    if heading:
        head(figure, heading)
    finish(figure)
    return figure
