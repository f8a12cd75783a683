"""Origin of Assumption 4.4: its frequency against the movement of routers, and the tie of the irrelevant patterns."""

from collections.abc import Sequence
from typing import Any

from odesim.show.figures import Request, Stored, Table

CAPTION = (
    "Left: frequency of Assumption 4.4 at the flow time 600, with 95 % intervals, as a function of the "
    "displacement of the routers divided by their initial size sigma_r (router speed from 1e-5 to 1 times the "
    "paper's 1/m). The dotted line is the probability at the start. Right: route values of one expert in joint "
    "training. Irrelevant patterns (grey) slide on one common value."
)
CLAIMS = ("asm-4.4", "asm-4.4-init", "joint-equalise", "sliding")


def measure(speeds: list[float], seeds: int) -> dict[str, Any]:
    """Displacement and the assumption by speed and seed."""
    from derivations.pmoe.claims.gating import EMERGE
    from figures.pmoe._shared import laboratory

    lab = laboratory()
    rows: dict[str, list[Any]] = {"speed": [], "displacement": [], "holds": []}
    for speed in speeds:
        for seed in range(seeds):
            run = lab.integrate(
                seed=seed, until=600.0, save_points=2, tier="L1", lam=speed / EMERGE["m"], data_seed=seed, **EMERGE
            )
            rows["speed"].append(speed)
            rows["displacement"].append(run.summary["displacement_over_sigma_r"])
            rows["holds"].append(float(run["assumption"][-1]))
    return rows


def needs(quick: bool = False) -> list[Any]:
    """Six speeds for ten seeds, and one run of the hard rule."""
    arguments = {
        "speeds": [1e-4, 1e-2, 1.0] if quick else [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0],
        "seeds": 3 if quick else 10,
    }
    run = {"mode": "joint", "n": 10, "p": 5, "l": 3, "k": 3, "m": 60, "tier": "L1", "step": 2.0}
    return [
        Table("pmoe-assumption", measure, arguments),
        Request("pmoe", run, {"until": 100.0 if quick else 900.0, "seed": 1, "save_points": 451}),
    ]


def draw(stored: Sequence[Any]) -> Any:
    """Frequency against displacement, and route values against flow."""
    import numpy as np
    from matplotlib.figure import Figure

    from derivations import intervals
    from derivations.pmoe.claims.gating import at_start

    table: Stored = stored[0]
    route = stored[1].trajectory.state["route"].values
    time = stored[1].trajectory.time
    figure = Figure(figsize=(7.4, 3.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    speeds = np.unique(table["speed"])
    x = [np.median(table["displacement"][table["speed"] == s].astype(float)) for s in speeds]
    held = [table["holds"][table["speed"] == s].astype(float) for s in speeds]
    y = np.array([own.mean() for own in held])
    bounds = np.array([intervals.share(int(own.sum()), own.size) for own in held])
    left.errorbar(x, y, np.abs(bounds.T - y), fmt="o-", color="#0072B2", capsize=2, label="frequency, 95 % interval")
    left.set_xscale("log")
    left.axhline(at_start(6, 4), color="0.5", linestyle=":", label="probability at the start")
    left.legend(loc="lower right", bbox_to_anchor=(1.0, 0.28), fontsize=7)
    left.set_xlabel(r"displacement / $\sigma_r$")
    left.set_ylabel("frequency of Assumption 4.4")
    left.set_ylim(-0.03, 1.03)
    s = int(np.argmax(route[-1, :, :2].max(axis=1)))
    right.plot(time, route[:, s, 2:], color="0.7", linewidth=0.7)
    right.plot(time, route[:, s, 0], color="#0072B2", label="$o_1$")
    right.plot(time, route[:, s, 1], color="#D55E00", label="$o_2$")
    right.plot([], [], color="0.7", label="irrelevant")
    right.set_xlabel(r"flow $\eta m t$")
    right.set_ylabel(f"route values of expert {s + 1}")
    right.legend()
    return figure
