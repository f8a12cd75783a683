"""Picture of derivatives: a tornado of elasticities for every measure."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.drawing import COLUMN
from odesim.request.answer import Answer

UP, DOWN = "#b2182b", "#1f4e79"
"""Colours of parameters that raise and that lower a measure."""


def draw(answer: Answer) -> Mapping[str, Any]:
    """Return the figure "sensitivity": a panel for every measure, the largest elasticity on top."""
    from matplotlib.figure import Figure

    measures, parameters = answer["measure"].tolist(), answer["parameter"].tolist()
    height = len(measures) * (0.9 + 0.2 * len(parameters))
    figure = Figure(figsize=(COLUMN, height), layout="constrained")
    axes = figure.subplots(len(measures), 1, squeeze=False)[:, 0]
    for axis, measure, elasticities, slopes, value in zip(
        axes, measures, answer["elasticity"], answer["derivative"], answer["value"], strict=True
    ):
        usable = np.isfinite(elasticities).all()
        _panel(axis, parameters, elasticities if usable else slopes)
        axis.set(title=f"{measure} = {value:.4g}")
        axis.set_xlabel("elasticity: % by 1 % of the parameter" if usable else "derivative")
    return {"sensitivity": figure}


def _panel(axis: Any, parameters: list[str], lengths: np.ndarray) -> None:
    """Draw the bars of a measure; a measure without derivatives has none."""
    lengths = np.where(np.isfinite(lengths), lengths, 0.0)
    order = np.argsort(np.abs(lengths), kind="stable")
    colours = [UP if lengths[k] > 0 else DOWN for k in order]
    axis.barh(range(len(order)), lengths[order], color=colours, height=0.7)
    axis.set_yticks(range(len(order)), [parameters[k] for k in order])
    axis.axvline(0.0, color="0.2", linewidth=0.8)
