"""Faults of a picture at the width of one column: small text, text outside, texts that overlap, flat panels."""

import itertools
from typing import Any

COLUMN = 3.4
"""Inches."""
LEAST = 6.0
"""Points of text at that width."""
INCHES = 0.45
"""Least height and width of a panel."""


def faults(figure: Any) -> list[str]:
    """Return what a reader of one column could not read, in words; the picture is drawn for this."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer, width = canvas.get_renderer(), figure.get_figwidth()
    boxes = [(text, text.get_window_extent(renderer)) for text in _texts(figure)]
    found = [f"small: {t.get_text()!r}" for t, _ in boxes if t.get_fontsize() * COLUMN / width < LEAST]
    ends = figure.bbox
    for text, box in boxes:
        if box.x0 < ends.x0 - 1 or box.x1 > ends.x1 + 1 or box.y0 < ends.y0 - 1 or box.y1 > ends.y1 + 1:
            found.append(f"outside: {text.get_text()!r}")
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        if min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1:
            found.append(f"overlap: {one.get_text()!r} and {other.get_text()!r}")
    for axis in figure.axes:
        box = axis.get_window_extent(renderer)
        if axis.get_label() != "<colorbar>" and min(box.width, box.height) < INCHES * figure.dpi:
            found.append(f"flat: {axis.get_label()!r}, {box.width / figure.dpi:.2f} x {box.height / figure.dpi:.2f}")
    return found


def _texts(figure: Any) -> list[Any]:
    """All texts that are drawn; of ticks those within the ends of their axis."""
    from matplotlib.text import Text

    hidden = set()
    for axes in [inner for outer in figure.axes for inner in (outer, *outer.child_axes)]:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not low - 1e-9 * abs(low) <= tick.get_loc() <= high + 1e-9 * abs(high):
                    hidden |= {tick.label1, tick.label2}
            hidden |= {
                t for tick in axis.get_major_ticks() for t in (tick.label1, tick.label2) if not tick.get_visible()
            }
    texts = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip() and t not in hidden]
    return list(dict.fromkeys(texts))
