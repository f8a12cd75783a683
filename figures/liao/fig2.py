"""Figure 2: matched pairs, loss, and the anti-alignment of students along the flow, in both initialisations."""

from collections.abc import Sequence
from typing import Any

from derivations.drawing import colour as colour_of
from derivations.liao.picture import matched_pairs
from figures.liao._shared import COLOURS, experiment, label, sizes
from odesim.show.figures import Request

CAPTION = (
    "Matched pairs along the flow (routers solid, experts dashed), the loss, the smallest overlap of two students, "
    "and the number of anti-aligned pairs (the paper's Figure 2, both initialisations). The paper does not have "
    "the lowest panel."
)
CLAIMS = ("fig-2", "fig-1")


def needs(quick: bool = False) -> list[Request]:
    """The runs of Figure 1."""
    return experiment(quick)


def draw(stored: Sequence[Any]) -> Any:
    """Three rows (alignment, loss, anti-alignment), one column for each initialisation."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 5.6), layout="constrained")
    axes = figure.subplots(3, len(stored), sharex=True, sharey="row", height_ratios=(2.0, 1.0, 1.0))
    counts = []
    for column, run in enumerate(stored):
        top, middle, bottom = axes[:, column]
        _alignments(top, run)
        middle.plot(run.trajectory.time, run["loss"], color=COLOURS[2])
        counts.append(_anti_alignment(bottom, run, last=column == len(stored) - 1))
        bottom.set_xlabel("time $t$")
        bottom.set_xlim(0, run.trajectory.time[-1])
    axes[0, -1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize=7)
    highest = max(count.get_ylim()[1] for count in counts)
    for count in counts:
        count.set_ylim(0, highest)
    axes[0, 0].set_ylabel("alignment of the matched pair")
    axes[1, 0].set_ylabel("loss $L$")
    axes[1, 0].set_ylim(bottom=0)
    axes[2, 0].set_ylabel(r"min $I^{(2)}_{ij}$", color=COLOURS[1])
    axes[2, 0].set_ylim(-1.05, 0.05)
    figure.suptitle(sizes(stored[0]), fontsize=8, color="0.35")
    return figure


def _alignments(axis: Any, run: Any) -> None:
    for i, j in matched_pairs(run.dataset()):
        colour = colour_of(j)
        axis.plot(run.trajectory.time, run["gamma1"][:, i, j], "-", color=colour, label=f"teacher {j + 1}")
        axis.plot(run.trajectory.time, run["gamma2"][:, i, j], "--", color=colour)
    axis.axhline(0.9, color="0.6", linewidth=0.8, linestyle=":", label="0.9: found")
    axis.plot([], [], "-", color="0.3", label=r"router $\gamma^{(1)}$")
    axis.plot([], [], "--", color="0.3", label=r"expert $\gamma^{(2)}$")
    axis.set_title(label(run))


def _anti_alignment(axis: Any, run: Any, last: bool) -> Any:
    axis.plot(run.trajectory.time, run["min_I2"], color=COLOURS[1])
    count = axis.twinx()
    count.plot(run.trajectory.time, run["anti_aligned"], color=COLOURS[0], linestyle="-.", drawstyle="steps-post")
    count.yaxis.get_major_locator().set_params(integer=True)
    count.set_ylim(0, max(1.0, 1.1 * float(run["anti_aligned"].max())))
    count.tick_params(axis="y", colors=COLOURS[0], right=last, labelright=last)
    count.spines["right"].set_visible(last)
    if last:
        count.set_ylabel("dead pairs ($I^{(2)} < -0.9$)", color=COLOURS[0])
    return count
