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
    upper, lower = figure.subplots(2, 1, sharex=True)
    for name, words, colour, dashes in LINES:
        if f"{name}_time" not in answer.variables:
            continue
        width = 3.0 if name == "polished" else 1.2
        style: dict[str, Any] = {"color": colour, "linestyle": dashes, "linewidth": width}
        upper.plot(answer[f"{name}_time"], answer[f"{name}_schedule"], label=words, **style)
        lower.plot(answer[f"{name}_time"], answer[f"{name}_quantity"], **style)
    upper.plot(answer["knot"], answer["schedule"], color=BEST, marker="o", markersize=2.5, label="on knots")
    lower.plot(answer["time"], answer["quantity"], color=BEST)
    upper.set(ylabel=str(numbers["vary"]))
    upper.legend()
    lower.set(xlabel="time $t$", ylabel=str(numbers["minimise"]).split(" ")[1 if "final" in numbers["minimise"] else 2])
    quantities = [answer[name] for name in answer.variables if name.endswith("quantity")]
    smallest, largest = min(values.min() for values in quantities), max(values.max() for values in quantities)
    if smallest > 0 and largest > 10 * smallest:
        lower.set_yscale("log")
    return {"optimise": figure}
