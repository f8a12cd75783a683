"""Stairs of directions: the order at which SGD finds each direction of a teacher, for the label and its transforms."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from derivations.drawing import COLUMN
from odesim.request.answer import Answer

STAIRS = (("order", "label $y$", "C0", "-"), ("generative_order", "best transform $T(y)$", "C1", "--"))
"""The two stairs: the key of their steps, name, colour and line."""
COSTS = {1: "$d$", 2: r"$d\,\log d$"}
REST = "the rest of "
LONGEST = 34
"""Largest number of letters of a text on a tread; a longer one is cut after a whole direction."""


def draw(answer: Answer) -> Mapping[str, Any]:
    """Return the picture: a panel for every head, with treads as wide as the number of directions that are found
    together.
    """
    from matplotlib.figure import Figure

    summary = answer.summary()
    heads: Mapping[str, Mapping[str, Any]] = summary.get("heads", {"": summary})
    figure = Figure(figsize=(COLUMN, 2.1 * len(heads)), layout="constrained")
    for axis, (head, numbers) in zip(figure.subplots(len(heads), 1, squeeze=False)[:, 0], heads.items(), strict=True):
        _panel(axis, numbers, f"head {head}" if head else "")
    return {"exponents": figure}


def _panel(axis: Any, numbers: Mapping[str, Any], title: str) -> None:
    """Draw both stairs of a head."""
    highest = max(step["order"] for key, *_ in STAIRS for step in numbers[key])
    same_orders = [s["order"] for s in numbers["order"]] == [s["order"] for s in numbers["generative_order"]]
    for key, name, colour, line in STAIRS:
        # Below a tread there is room to the right, where the next ones are higher.
        first = key == "order"
        _stairs(axis, numbers[key], name, colour, line, below=same_orders or not first, text=first or not same_orders)
    count = sum(step["count"] for step in numbers["order"])
    if numbers["student"] not in (None, numbers["information"]):
        axis.axhline(numbers["student"], color="0.5", linestyle=":", label="seen by the student")
        highest = max(highest, numbers["student"])
    axis.set(xlim=(0, count), ylim=(0.4, highest + 0.75), xticks=range(count + 1), yticks=range(1, highest + 1))
    axis.set(xlabel="directions known", ylabel="order and samples", title=title)
    axis.set_yticklabels([f"{k}:  {COSTS.get(k, f'$d^{{{k - 1}}}$')}" for k in range(1, highest + 1)])


def _stairs(
    axis: Any, steps: Sequence[Mapping[str, Any]], name: str, colour: str, line: str, *, below: bool, text: bool
) -> None:
    """Draw one flight: a tread at the order of every step, with its directions above or below its left end."""
    edges, heights = [0], []
    for step in steps:
        edges.append(edges[-1] + step["count"])
        heights.append(step["order"])
    axis.stairs(heights, edges, baseline=None, color=colour, linestyle=line, label=name, linewidth=1.6)
    axis.plot(edges[1:-1], heights[:-1], "o", color=colour, markersize=3)
    place = {"xytext": (4, -3 if below else 3), "va": "top" if below else "bottom", "in_layout": False}
    for step, low in zip(steps if text else (), edges, strict=False):
        axis.annotate(
            formula(step["directions"]), (low, step["order"]), textcoords="offset points", color=colour, **place
        )


def formula(directions: str) -> str:
    """Return the names of directions as mathematics.

    >>> formula("0.71 w_1 - 0.71 w_2"), formula("the rest of w_1, w_2"), formula("local_w, global_w_2")
    ('$0.71\\\\,w_{1} - 0.71\\\\,w_{2}$', 'rest of $w_{1}, w_{2}$', '$w_{\\\\mathrm{local}}, w_{\\\\mathrm{global},2}$')
    """
    is_remainder = directions.startswith(REST)
    text = directions.removeprefix(REST)
    parts = re.split(r"([,;] )", text)
    while len("".join(parts)) > LONGEST and len(parts) > 2:
        parts = [*parts[:-2]] if parts[-1] != ".." else [*parts[:-4], parts[-2], ".."]
        parts = parts if parts[-1] == ".." else [*parts, ", ", ".."]
    text = re.sub(r"(\d) (?=[A-Za-z])", r"\1\\,", "".join(parts))
    text = re.sub(r"(?<![\\A-Za-z0-9_{])[A-Za-z]\w*", lambda match: _symbol(match[0]), text)
    return ("rest of " if is_remainder else "") + f"${text}$"


def _symbol(name: str) -> str:
    """The name of a vector as a symbol: its slot, with group and number below."""
    words = name.split("_")
    number = words.pop() if len(words) > 1 and words[-1].isdigit() else ""
    *group, slot = words
    subscript = ",".join(filter(None, [rf"\mathrm{{{'-'.join(group)}}}" if group else "", number]))
    return f"{slot}_{{{subscript}}}" if subscript else slot
