"""Samples to 5 % error in one pass, against n/l: separate and joint training, and the CNN."""

from collections.abc import Sequence
from typing import Any

from odesim.show.figures import Stored, Table

CAPTION = (
    "Number of samples until the population error is at most 5 % in one pass over fresh data (batches of 8, the "
    "best of four step sizes for every run), as a function of the number of patches l of an expert; n = 64, p = 8, "
    "2048 neurons. Medians and 10-90 % bands over seeds. The horizontal line is the CNN, which gets all 64 "
    "patches. The measured numbers are far below the sufficient number l^8."
)
CLAIMS = ("thm-4.2", "thm-4.3", "cor-ratio")


def measure(sizes: list[int], seeds: int) -> dict[str, Any]:
    """Samples by mode, l and seed."""
    from figures.pmoe._shared import one_pass

    rows: dict[str, list[Any]] = {"mode": [], "size": [], "samples": []}
    for mode, chosen in (("separate", sizes), ("joint", sizes), ("cnn", [64])):
        for size in chosen:
            for value in one_pass(mode, size, seeds):
                rows["mode"].append(mode)
                rows["size"].append(size)
                rows["samples"].append(value if value < 1e12 else None)
    return rows


def needs(quick: bool = False) -> list[Table]:
    """l = 1 .. 32 for twelve seeds."""
    return [
        Table(
            "pmoe-onepass", measure, {"sizes": [1, 4] if quick else [1, 2, 4, 8, 16, 32], "seeds": 3 if quick else 12}
        )
    ]


def draw(stored: Sequence[Stored]) -> Any:
    """Bands for both mixtures, a line for the CNN."""
    import numpy as np
    from matplotlib.figure import Figure

    from figures.pmoe._shared import COLOURS, band

    (table,) = stored
    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    axis = figure.subplots()
    samples = np.array([np.nan if v is None else float(v) for v in table["samples"]])
    most = float(np.nanmax(samples))
    samples = np.where(np.isnan(samples), 2 * most, samples)
    for mode in ("separate", "joint"):
        own = table["mode"] == mode
        sizes = np.unique(table["size"][own])
        band(axis, sizes, [samples[own & (table["size"] == size)] for size in sizes], mode)
    low, middle, high = np.quantile(samples[table["mode"] == "cnn"], [0.1, 0.5, 0.9])
    axis.axhline(middle, color=COLOURS["cnn"], label="CNN, n = 64")
    axis.axhspan(low, high, color=COLOURS["cnn"], alpha=0.2, linewidth=0)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xlabel("patches per expert, l")
    axis.set_ylabel("samples to 5 % error")
    axis.legend()
    return figure
