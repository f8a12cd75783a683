"""Ours: one universal curve of the router gap against scaled time, and its logarithmic end."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from figures.pruning._shared import COLOURS
from odesim.flow import solve
from odesim.show.figures import Table

CAPTION = (
    "Gap between task and irrelevant logits as a function of the scaled time (t/2) sqrt(eta_r eta_e m_+ (1 + "
    "1/N)), for several rates and numbers of neurons (markers) and l = 5, 10, 30. There is one curve per l. The "
    "dashed line is the law 2 log tau at late times."
)
CLAIMS = ("collapse", "t-star", "late-log")
CASES = ((1e-5, 1e-3, 10), (1e-3, 1e-4, 10), (1e-7, 1e-2, 40))


def measure(N: int, most: float) -> dict[str, list[Any]]:
    """Gaps at logarithmic scaled times for every l and every set of rates."""
    from derivations.pruning.claims.tools import alike
    from odesim.request.case import Case, find_system

    rows: dict[str, list[Any]] = {"l": [], "case": [], "tau": [], "gap": []}
    tau = np.concatenate([[0.0], np.geomspace(0.5, most, 24)])
    for l in (5, 10, 30):  # noqa: E741
        for k, (eta_r, eta_e, active) in enumerate(CASES):
            unit = 2 / np.sqrt(eta_r * eta_e * active * (1 + 1 / N))
            start = alike(N, 0.0, 0.0, active, alive=False, l=l, eta_r=eta_r, eta_e=eta_e)
            case = Case.build(find_system("pruning"), {"tier": "flow"}, until=float(tau[-1] * unit))
            run = solve.solve(case, times=tau * unit, initial=start)
            gap = run["h"][:, 0, 0] - run["h"][:, 0, 2]
            rows["l"].append(l)
            rows["case"].append(k)
            rows["tau"].append(tau.tolist())
            rows["gap"].append(gap.tolist())
    return rows


def needs(quick: bool = False) -> list[Table]:
    """Nine runs (seconds)."""
    return [Table("pruning-collapse", measure, {"N": 20, "most": 30.0} if quick else {"N": 198, "most": 3000.0})]


def draw(stored: Sequence[Any]) -> Any:
    """Markers for the rates, a line for the late law."""
    from matplotlib.figure import Figure

    table = stored[0]
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axis = figure.subplots()
    for i, l in enumerate(dict.fromkeys(int(v) for v in table["l"])):  # noqa: E741
        rows = [r for r in range(len(table["l"])) if int(table["l"][r]) == l]
        for r, marker in zip(rows, "o+x", strict=True):
            tau, gap = np.asarray(table["tau"][r]), np.asarray(table["gap"][r])
            axis.plot(
                tau[1:], gap[1:], marker, ms=5, mfc="none", color=COLOURS[i], label=f"l = {l}" if r == rows[0] else None
            )
        late = tau[1:][tau[1:] > 5 * l]
        axis.plot(late, np.log((l - 1) * late**2 / 2), "--", color=COLOURS[i], linewidth=1.0)
    axis.set_xscale("log")
    axis.set_xlabel(r"scaled time $\tau$")
    axis.set_ylabel(r"gap $x = h_o - h_q$")
    axis.legend(loc="upper left")
    return figure
