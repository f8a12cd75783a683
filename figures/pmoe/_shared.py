"""Common parts of several figures of pmoe: data distributions, training in one pass, and styles of curves."""

from typing import Any

COLOURS = {"separate": "#0072B2", "joint": "#009E73", "cnn": "#D55E00", "uniform": "#CC79A7", "grey": "0.5"}
MARKERS = {"separate": "o", "joint": "s", "cnn": "^", "uniform": "D"}
LABELS = {"separate": "separate", "joint": "joint", "cnn": "CNN", "uniform": "joint, uniform gates"}
STEPS = (16, 64, 256, 1024)
"""Steps eta m over which one-pass training is tuned."""


def laboratory() -> Any:
    """A laboratory that measures and remembers."""
    from odesim.evidence.laboratory import Laboratory
    from odesim.request.case import find_system

    return Laboratory(find_system("pmoe"))


def one_pass(mode: str, size: int, seeds: int, pool: int = 300, goal: float = 0.05) -> list[float]:
    """Samples to a population error of `goal` in one pass of batches of 8, the best of four steps; one per seed.

    n = 64, p = 8, m = 2048 neurons; `size` is l, or n for the CNN; joint training has k = 4 experts, routers that rank
    o1
    and o2 first in turn, and moves them at the paper's speed.
    """
    import numpy as np

    import odesim

    request: dict[str, Any] = {"n": 64, "p": 8, "d": 100, "exact": 1, "pool": pool, "m": 2048, "mode": mode}
    request |= {"n": size} if mode == "cnn" else {"l": size, "routers": "perfect"}
    if mode == "joint":
        request["k"] = 4
    best = np.full(seeds, np.inf)
    for step in STEPS:
        for last, points in ((40, 41), (320, 65)):  # every step is looked at first, then every fifth
            run = odesim.simulate(
                "pmoe", method="compressed", step_size=step / 2048, batch=8, until=float(step * last),
                save_points=points, seeds=seeds, fresh_initial=True, **request,
            )  # fmt: skip
            reached = run.state["error"].values[:, 1:] <= goal
            steps = np.asarray(run.step)[1:]
            first = np.where(reached.any(axis=1), steps[reached.argmax(axis=1)] * 8.0, np.inf)
            best = np.minimum(best, first)
            if reached.any(axis=1).all():
                break
    return [float(b) for b in best]


def band(axis: Any, x: Any, values: Any, mode: str) -> None:
    """Median over seeds with the band of 10 to 90 %, from the least to the largest of fewer than ten."""
    import numpy as np

    found = np.asarray(values, float)
    ends = [0.1, 0.5, 0.9] if found.shape[1] >= 10 else [0.0, 0.5, 1.0]
    low, middle, high = np.quantile(found, ends, axis=1)
    axis.plot(x, middle, marker=MARKERS[mode], color=COLOURS[mode], label=LABELS[mode])
    axis.fill_between(x, low, high, color=COLOURS[mode], alpha=0.2, linewidth=0)


def nested(k: int) -> dict[str, Any]:
    """The mark of the k-th of some curves that lie on one another: hollow, each inside the one before it."""
    return {"markerfacecolor": "none", "markersize": 9.5 - 2.5 * k, "markeredgewidth": 1.2}


def slope(x: Any, y: Any) -> float:
    """The least-squares exponent of y against x."""
    import numpy as np

    return float(np.polyfit(np.log(np.asarray(x, float)), np.log(np.asarray(y, float)), 1)[0])
