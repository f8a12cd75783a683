"""Layout of standard pictures: the width of one column of a two-column paper, and text of at least six points.

Panels keep their height. The lines of the title and the rows of the legend add to the height of the picture.
"""

from collections.abc import Sequence
from typing import Any

from odesim.show.axes import plain_logs
from odesim.show.legend import ROW, gather

TITLE = 6.5
"""Points of a title and of notes below the panels."""
LETTERS = 62
"""Letters in a line of the title."""
LINE = 0.13
"""Height of a line of the title in inches."""
STYLE: Any = {
    "font.size": 7, "axes.titlesize": 7, "axes.labelsize": 7, "xtick.labelsize": 6.5, "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5, "lines.linewidth": 1.0, "axes.linewidth": 0.6, "xtick.major.width": 0.6,
    "ytick.major.width": 0.6, "xtick.major.size": 2.5, "ytick.major.size": 2.5, "xtick.major.pad": 2.5,
    "ytick.major.pad": 2.5, "axes.labelpad": 2.5, "axes.spines.top": False, "axes.spines.right": False,
    "axes.formatter.limits": (-4, 5), "axes.formatter.use_mathtext": True,
    "savefig.dpi": 200, "figure.constrained_layout.h_pad": 0.05, "figure.constrained_layout.w_pad": 0.03,
}  # fmt: skip


def head(figure: Any, words: str) -> None:
    """Set the title of a picture."""
    figure.suptitle(words, fontsize=TITLE, x=0.01, ha="left")


def finish(figure: Any, handles: Sequence[Any] = ()) -> None:
    """Add the legend of a picture, set the ticks of its logarithmic axes, and make room for title and legend.

    The legend names `handles`, or without them all labels of the panels.
    """
    rows = gather(figure, handles)
    lines = len(figure.get_suptitle().splitlines())
    figure.set_figheight(figure.get_figheight() + ROW * rows + LINE * lines)
    plain_logs(figure)
