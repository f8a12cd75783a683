"""Our result: mis-signed experts lag by sqrt(N) if inputs have one irrelevant pattern, and not with many of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from figures.pruning._shared import COLOURS
from odesim.show.figures import Table

CAPTION = (
    "Time of a mis-signed expert divided by the time of a correctly signed expert, as a function of the number N "
    "of irrelevant patterns: one repeated pattern per input (exactly sqrt(N), line), n = 6 and n = d/2 independent "
    "tokens."
)
CLAIMS = ("mis-sign-ratio", "mis-sign-iid")


def measure(sizes: list[int]) -> dict[str, list[Any]]:
    """Delays for the three laws of the tokens, by the measurements of the claims."""
    from derivations.pruning.claims import missigned
    from odesim.evidence.laboratory import Laboratory
    from odesim.request.case import find_system

    lab = Laboratory(find_system("pruning"))
    rows: dict[str, list[Any]] = {"law": [], "N": [], "delay": []}
    for d in sizes:
        many = {"d": d, "n": d // 2, "stride": 1.0, "most": 6.0, "spread": 0.5}
        few = {"d": d, "n": 6, "stride": 1.0, "most": 1.6 * d**0.5, "spread": 1e-4}
        rows["law"] += ["single", "few", "many"]
        rows["N"] += [d - 2] * 3
        rows["delay"] += [
            missigned.delay(lab, {"N": d - 2}, 0),
            missigned.many_tokens(lab, few, 0),
            missigned.many_tokens(lab, many, 0),
        ]
    return rows


def needs(quick: bool = False) -> list[Table]:
    """Four sizes (a minute)."""
    return [Table("pruning-separation", measure, {"sizes": [16, 24] if quick else [20, 40, 80, 160]})]


def draw(stored: Sequence[Any]) -> Any:
    """Three sets of points and the square root."""
    from matplotlib.figure import Figure

    table = stored[0]
    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    axis = figure.subplots()
    law, N, delay = (np.asarray(table[name]) for name in ("law", "N", "delay"))
    names = {"single": "one pattern, repeated", "few": "n = 6 independent tokens", "many": "n = d/2 independent tokens"}
    for i, (key, label) in enumerate(names.items()):
        axis.plot(N[law == key], delay[law == key], "osD"[i], color=COLOURS[i], label=label)
    grid = np.geomspace(N.min(), N.max(), 20)
    axis.plot(grid, np.sqrt(grid), "-", color="0.5", linewidth=1.0, label=r"$\sqrt{N}$")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(sorted(set(N.tolist())), [str(int(v)) for v in sorted(set(N.tolist()))])
    axis.set_xticks([], minor=True)
    axis.set_yticks([4, 6, 10, 20], ["4", "6", "10", "20"])
    axis.set_yticks([], minor=True)
    axis.set_xlabel("irrelevant patterns N")
    axis.set_ylabel("delay of a mis-signed expert")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
