"""Tables 1 and 2: the accounting of cost, with the paper's numbers beside what follows from them."""

from collections.abc import Sequence
from typing import Any

from odesim.show.figures import Stored, Table

CAPTION = (
    "Left, Table 1: total cost to a fixed error relative to the CNN, by the printed exponents n^5, l^5 and k^2 l^3 "
    "(k = 8), and by measured flow times at the same step sizes (sharp gates for joint training). Right, Table 2 "
    "(WRN and WRN-pMoE on CelebA, numbers of the paper, not reproduced here): FLOPs divided by seconds is one "
    "constant, 22.4 to 23.8 TFLOP/s, so the FLOPs contain no more information than the seconds."
)
CLAIMS = ("tab-1", "tab-2")


def cost(sizes: list[int]) -> dict[str, Any]:
    """Measured total cost by kind and patches, in units of that of one patch at the same constants."""
    from derivations.pmoe.claims.accounts import routing_cost
    from figures.pmoe._shared import laboratory

    lab = laboratory()
    rows: dict[str, list[Any]] = {"kind": [], "size": [], "cost": []}
    for kind in ("separate", "sharp", "cnn"):
        for size in sizes:
            rows["kind"].append(kind)
            rows["size"].append(size)
            rows["cost"].append(routing_cost(lab, {"kind": kind, "size": size}, 0))
    return rows


def table_2() -> dict[str, Any]:
    """The paper's Table 2: samples, seconds and FLOPs (1e15) of both networks."""
    return {
        "N": [4000, 8000, 12_000, 16_000],
        "wrn_seconds": [260, 324, 468, 630],
        "pmoe_seconds": [156, 192, 280, 368],
        "wrn_flops": [6, 7.5, 11, 15],
        "pmoe_flops": [3.5, 4.4, 6.4, 8.5],
    }


def needs(quick: bool = False) -> list[Table]:
    """Measured cost at four sizes, and the printed table."""
    return [
        Table("pmoe-cost", cost, {"sizes": [2, 4, 8] if quick else [2, 4, 8, 16, 32]}),
        Table("pmoe-table2", table_2, {}),
    ]


def draw(stored: Sequence[Stored]) -> Any:
    """Cost against patches, and TFLOP/s."""
    from matplotlib.figure import Figure

    from figures.pmoe._shared import nested, slope

    table, printed = stored
    figure = Figure(figsize=(7.4, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    looks = {"separate": ("#0072B2", "o", "separate, $l^5$"), "sharp": ("#009E73", "s", "joint, $l^3$"),
             "cnn": ("#D55E00", "^", "CNN, $n^5$")}  # fmt: skip
    for k, (kind, (colour, marker, name)) in enumerate(looks.items()):
        own = table["kind"] == kind
        x, y = table["size"][own].astype(float), table["cost"][own].astype(float)
        left.loglog(x, y / y[0], marker + "-", color=colour, label=f"{name}: {slope(x, y):.2f}", **nested(k))
    left.set_xscale("log", base=2)
    left.set_xlabel("patches l (CNN: n)")
    left.set_ylabel("cost, relative")
    left.legend(title="printed: measured exponent")
    for name, colour, text in (("wrn", "#D55E00", "WRN"), ("pmoe", "#009E73", "WRN-pMoE")):
        speed = 1e3 * printed[f"{name}_flops"].astype(float) / printed[f"{name}_seconds"].astype(float)
        right.plot(printed["N"], speed, "o-", color=colour, label=text)
    right.set_ylim(0, 30)
    right.set_xticks(printed["N"])
    right.set_xlabel("training samples")
    right.set_ylabel("FLOPs / seconds, TFLOP/s")
    right.legend(loc="lower right")
    return figure
