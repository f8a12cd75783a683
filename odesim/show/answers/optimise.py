"""Picture of an optimal schedule: schedule over quantity, with the best constant and the greedy schedule."""

from collections.abc import Mapping
from typing import Any

from derivations.drawing import COLUMN
from odesim.request.answer import Answer

LINES = (
    ("constant", "best constant", "0.45", (0, (1, 1.5))), ("greedy", "greedy", "#b2182b", (0, (4, 2))),
    ("polished", "continuous time", "#9ecae1", "-"),
)  # fmt: skip
"""The schedules in addition to the best one: name, words, colour, dashes."""
BEST = "#1f4e79"


def draw(answer: Answer) -> Mapping[str, Any]:
    """Return the figure "optimise"."""
    from matplotlib.figure import Figure

    numbers = answer.numbers
    figure = Figure(figsize=(COLUMN, 4.2), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for name, words, colour, dashes in LINES:
        if f"{name}_time" not in answer.variables:
            continue
        width = 3.0 if name == "polished" else 1.2
        style: dict[str, Any] = {"color": colour, "linestyle": dashes, "linewidth": width}
        above.plot(answer[f"{name}_time"], answer[f"{name}_schedule"], label=words, **style)
        below.plot(answer[f"{name}_time"], answer[f"{name}_quantity"], **style)
    above.plot(answer["knot"], answer["schedule"], color=BEST, marker="o", markersize=2.5, label="on knots")
    below.plot(answer["time"], answer["quantity"], color=BEST)
    above.set(ylabel=str(numbers["vary"]))
    above.legend()
    below.set(xlabel="time $t$", ylabel=str(numbers["minimise"]).split(" ")[1 if "final" in numbers["minimise"] else 2])
    drawn = [answer[name] for name in answer.variables if name.endswith("quantity")]
    least, most = min(values.min() for values in drawn), max(values.max() for values in drawn)
    if least > 0 and most > 10 * least:
        below.set_yscale("log")
    return {"optimise": figure}
