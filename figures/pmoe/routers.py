"""Figures 8 and 9 in pattern space: how often trained routers find the discriminative patch."""

from collections.abc import Sequence
from typing import Any

from odesim.show.figures import Stored, Table

CAPTION = (
    "Left, the setting of Figure 8 (n = 16, p = 8): share of samples whose o1 is among the l patches of expert 1, "
    "for routers trained on N_r samples; medians and 10-90 % intervals over draws. Orthogonal patterns replace "
    "MNIST digits, for which the paper finds 95 % at N_r = 300, l = 4. Right: N_r for 90 % success as a function "
    "of n, for independent and for class-balanced samples."
)
CLAIMS = ("lem-4.1", "lem-4.1-tight", "lem-4.1-law")


def success(sizes: list[int], draws: int) -> dict[str, Any]:
    """The share of samples of class +1 whose o1 is routed, by N_r, l and draw."""
    import numpy as np

    from derivations.pmoe import model, router, world
    from derivations.pmoe.parameters import Parameters, settle

    rows: dict[str, list[Any]] = {"N_r": [], "l": [], "share": []}
    for samples in sizes:
        p = settle(Parameters(n=16, p=8, N_r=samples, exact=1, pool=400, delta_d=0.6), "router")
        gram = world.gram_of(p)
        counts, label, weight = world.population(p)
        means = router.sample_means(p, np.random.default_rng(samples), draws) @ gram
        for l in (1, 2, 4, 6, 8):  # noqa: E741
            for value in means:
                routed = model.top_l(value[None, :, None], counts.T, l)[0, 0] > 0
                rows["N_r"].append(samples)
                rows["l"].append(l)
                rows["share"].append(float((weight * (label > 0) * routed).sum() * 2))
    return rows


def needed(sizes: list[int]) -> dict[str, Any]:
    """N_r for 90 % success by n, independent and balanced."""
    from derivations.pmoe import router, world
    from derivations.pmoe.parameters import Parameters, settle

    rows: dict[str, list[Any]] = {"n": [], "independent": [], "balanced": []}
    for n in sizes:
        rows["n"].append(n)
        for name, flag in (("independent", False), ("balanced", True)):
            p = settle(Parameters(n=n, p=8, balanced=flag), "router")
            rows[name].append(router.samples_for(p, world.gram_of(p)))
    return rows


def needs(quick: bool = False) -> list[Table]:
    """Four sample sizes with 40 draws, n = 8 .. 512."""
    return [
        Table(
            "pmoe-routers", success, {"sizes": [30, 300] if quick else [10, 30, 100, 300], "draws": 10 if quick else 40}
        ),
        Table("pmoe-routers-needed", needed, {"sizes": [16, 32, 64] if quick else [8, 16, 32, 64, 128, 256, 512]}),
    ]


def draw(stored: Sequence[Stored]) -> Any:
    """Success against l, and the need against n."""
    import numpy as np
    from matplotlib.figure import Figure

    from figures.pmoe._shared import slope

    table, need = stored
    figure = Figure(figsize=(7.4, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    colours = ("#56B4E9", "#0072B2", "#009E73", "#D55E00")
    for k, (colour, samples) in enumerate(zip(colours, np.unique(table["N_r"]), strict=False)):
        taken = np.unique(table["l"])
        values = [table["share"][(table["N_r"] == samples) & (table["l"] == size)].astype(float) for size in taken]
        low, middle, high = np.quantile(values, [0.1, 0.5, 0.9], axis=1)
        ends = np.abs(np.array([low, high]) - middle)
        shifted = taken + 0.12 * (k - 1.5)  # or intervals would hide each other
        left.errorbar(
            shifted, middle, ends, fmt="o-", color=colour, label=f"$N_r$ = {samples}", capsize=2, markersize=4
        )
    left.axhline(0.95, color="0.5", linewidth=0.8, linestyle=":", label="paper: 95 %")
    left.set_xticks(np.unique(table["l"]))
    left.set_xlabel("patches l of an expert")
    left.set_ylabel("share with o1 routed")
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3)
    for name, colour, marker in (("independent", "#0072B2", "o"), ("balanced", "#D55E00", "s")):
        y = need[name].astype(float)
        right.loglog(need["n"], y, marker + "-", color=colour, label=f"{name}: {slope(need['n'][-3:], y[-3:]):.2f}")
    right.set_xlabel("patches n of an input")
    right.set_ylabel(r"$N_r$ for 90 % success")
    right.legend(title="exponent of the last three")
    return figure
