"""The flow to v = 0.1 against the number of patches: l for the mixtures, n for the CNN."""

from collections.abc import Sequence
from typing import Any

from odesim.show.figures import Stored, Table

CAPTION = (
    "Flow time (step size times neurons times steps) until v = 1/(1 + exp(y f)) has fallen to 0.1 on average, at "
    "infinite width from random responses, as a function of the number of patches of an expert (n = 64, p = 8; the "
    "CNN gets all n). The exponents 2 (separate, CNN, sharp gates) and 4 (uniform gates) follow from the closed "
    "form."
)
CLAIMS = ("thm-F.3", "thm-F.6", "thm-4.5", "thm-F.5")


def measure(sizes: list[int], seeds: int) -> dict[str, Any]:
    """Flow times by kind, size and seed."""
    from derivations.pmoe.claims.complexity import flow
    from figures.pmoe._shared import laboratory

    lab = laboratory()
    rows: dict[str, list[Any]] = {"kind": [], "size": [], "flow": []}
    for kind in ("separate", "sharp", "uniform", "cnn"):
        for size in sizes:
            for seed in range(seeds):
                rows["kind"].append(kind)
                rows["size"].append(size)
                rows["flow"].append(flow(lab, {"kind": kind, "size": size}, seed))
    return rows


def needs(quick: bool = False) -> list[Table]:
    """Sizes 2 to 32 for three seeds."""
    arguments = {"sizes": [2, 4, 8] if quick else [2, 4, 8, 16, 32], "seeds": 1 if quick else 3}
    return [Table("pmoe-flowtime", measure, arguments)]


def draw(stored: Sequence[Stored]) -> Any:
    """One curve for each kind, with its exponent."""
    import numpy as np
    from matplotlib.figure import Figure

    from figures.pmoe._shared import nested, slope

    (table,) = stored
    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    axis = figure.subplots()
    looks = {"separate": ("#0072B2", "o", "-"), "sharp": ("#009E73", "s", "--"), "uniform": ("#CC79A7", "D", "-"),
             "cnn": ("#D55E00", "^", "-")}  # fmt: skip
    names = {"separate": "separate", "sharp": "joint, sharp gates", "uniform": "joint, uniform gates", "cnn": "CNN (n)"}
    for k, (kind, (colour, marker, line)) in enumerate(looks.items()):
        own = table["kind"] == kind
        x, y = table["size"][own].astype(float), table["flow"][own].astype(float)
        sizes = np.unique(x)
        middle = [np.median(y[x == size]) for size in sizes]
        label = f"{names[kind]}: {slope(sizes, middle):.2f}"
        axis.loglog(sizes, middle, line, color=colour, marker=marker, label=label, **nested(k))
    axis.set_xscale("log", base=2)
    axis.set_xlabel("patches per expert, l (CNN: n)")
    axis.set_ylabel(r"flow $\eta m t$ to $v = 0.1$")
    axis.legend(title="exponent")
    return figure
