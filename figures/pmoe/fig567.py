"""Figures 5, 6 and 7 in pattern space: success over N and l, and the error of joint training against k and l."""

from collections.abc import Sequence
from typing import Any

from odesim.show.figures import Stored, Table

CAPTION = (
    "Left, Figure 5: share of runs of separate training whose error is at most 5 % after one pass over N samples (n "
    "= 64, "
    "p = 8, white: all). Middle and right, Figures 6 and 7: error of joint training with one good expert per class "
    "after one "
    "pass over 48 samples, against k (l = 8) and l (k = 4); medians and 10-90 % bands, the best of four steps. "
    "Patterns "
    "stand in for MNIST; the paper prints no numbers."
)
CLAIMS = ("thm-4.2", "cor-eps")


def measure(sizes: list[int], experts: list[int], seeds: int) -> dict[str, Any]:
    """Errors along one pass, the best of four steps at every number of samples."""
    import numpy as np

    import odesim
    from figures.pmoe._shared import STEPS

    world: dict[str, Any] = {"n": 64, "p": 8, "d": 100, "exact": 1, "pool": 300, "m": 256}
    cases = [("separate", 2, size) for size in sizes]
    cases += [("joint", k, 8) for k in experts] + [("joint", 4, size) for size in sizes if size != 8]
    rows: dict[str, list[Any]] = {"mode": [], "k": [], "l": [], "samples": [], "error": []}
    for mode, k, size in cases:
        found, taken = [], None
        for step in STEPS:
            run = odesim.simulate(
                "pmoe", method="compressed", step_size=step / 256, batch=8, until=float(step * 64), save_points=33,
                seeds=seeds, fresh_initial=True, mode=mode, k=k, l=size,
                routers="perfect" if mode == "separate" else "single", **world,
            )  # fmt: skip
            found.append(run.state["error"].values)
            taken = run.step
        best = np.min(found, axis=0)
        rows["mode"].append(mode)
        rows["k"].append(k)
        rows["l"].append(size)
        rows["samples"].append((np.asarray(taken) * 8).tolist())
        rows["error"].append(best.tolist())
    return rows


def needs(quick: bool = False) -> list[Table]:
    """l = 1 .. 32, k = 2 .. 16, ten seeds."""
    arguments = {"sizes": [1, 4, 16] if quick else [1, 2, 4, 8, 16, 32], "experts": [2, 4] if quick else [2, 4, 8, 16]}
    return [Table("pmoe-fig567", measure, {**arguments, "seeds": 3 if quick else 10})]


def draw(stored: Sequence[Stored]) -> Any:
    """The heat map, then error against k and l."""
    import numpy as np
    from matplotlib.figure import Figure

    (table,) = stored
    figure = Figure(figsize=(8.2, 3.0), layout="constrained")
    heat, middle, right = figure.subplots(1, 3)
    own = np.flatnonzero(table["mode"] == "separate")
    samples = np.asarray(table["samples"][own[0]])
    share = np.array([(np.asarray(table["error"][i]) <= 0.05).mean(axis=0) for i in own])[:, 1:]
    image = heat.imshow(share.T, origin="lower", aspect="auto", cmap="gray", vmin=0, vmax=1)
    heat.set_xticks(range(len(own)), [str(table["l"][i]) for i in own])
    ticks = np.arange(3, share.shape[1], 8)
    heat.set_yticks(ticks, [str(samples[1:][t]) for t in ticks])
    heat.set_xlabel("patches l of an expert")
    heat.set_ylabel("samples N")
    heat.grid(False)
    figure.colorbar(image, ax=heat, label="share of successes")
    at = int(np.argmin(np.abs(samples - 48)))
    panels = (
        (middle, "k", "experts k", table["l"] == 8),
        (right, "l", "patches l of an expert", table["k"] == 4),
    )
    for axis, name, words, keep in panels:
        rows = np.flatnonzero((table["mode"] == "joint") & keep)
        rows = rows[np.argsort(table[name][rows].astype(float))]
        x = table[name][rows].astype(float)
        values = [np.asarray(table["error"][i])[:, at] for i in rows]
        low, mid, high = np.quantile(values, [0.1, 0.5, 0.9], axis=1)
        axis.plot(x, mid, "s-", color="#009E73", clip_on=False)
        axis.fill_between(x, low, high, color="#009E73", alpha=0.2, linewidth=0)
        axis.set_xscale("log", base=2)
        axis.set_xticks(x, [f"{size:g}" for size in x])
        axis.minorticks_off()
        axis.set_ylim(bottom=0)
        axis.set_xlabel(words)
        axis.set_ylabel("error at N = 48")
    return figure
