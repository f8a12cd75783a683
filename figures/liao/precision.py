"""Ours: work and precision of the integrators on the way to the recovery times."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from figures.liao._shared import COLOURS, power
from odesim.show.figures import Table

CAPTION = (
    "Largest relative error of the recovery times as a function of the number of evaluated right-hand sides, by "
    "the requested tolerance (orthogonal initialisation, until 2 sqrt(d); the reference is DOP853 at 1e-12). The "
    "default method changes from DOP853 to NDF when its own steps show that this is cheaper. NDF and CVODE "
    "(SUNDIALS' BDF, matrix-free) use the structure of the strongly coupled overlaps, and LSODA has a dense "
    "Jacobian."
)
PUBLISHED = "m = 10, m* = 3."
CLAIMS = ()  # what integrators cost says nothing about a theorem
SOLVERS = ("automatic", "NDF", "CVODE", "DOP853", "LSODA")
TICKS = (500, 1000, 2000, 5000, 20_000, 50_000, 200_000)
TOLERANCES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)


def measure(dimensions: Sequence[int], tolerances: Sequence[float], m: int, m_star: int) -> Mapping[str, Any]:
    """Error and evaluations for each dimension, solver and tolerance; NaN where other teachers are found."""
    import odesim

    def times(d: int, **options: Any) -> tuple[np.ndarray, int]:
        run = odesim.integrate(
            "liao", m=m, m_star=m_star, d=d, init="orthogonal", until=2 * d**0.5, save_points=2, **options
        )
        return run["T_gamma2"], int(run.statistics["evaluations"])

    found: dict[str, list[Any]] = {"d": [], "solver": [], "rtol": [], "error": [], "evaluations": []}
    for d in dimensions:
        exact = times(d, solver="DOP853", rtol=1e-12)[0]
        reached = np.isfinite(exact)
        for solver in SOLVERS:
            for rtol in tolerances:
                ours, evaluations = times(d, solver=solver, rtol=rtol)
                same = (np.isfinite(ours) == reached).all()
                error = float(np.abs(ours[reached] / exact[reached] - 1).max()) if same else float("nan")
                for name, value in zip(found, (d, solver, rtol, error, evaluations), strict=True):
                    found[name].append(value)
    return found


def needs(quick: bool = False) -> list[Table]:
    """Two dimensions, five solvers, six tolerances (some minutes)."""
    full = {"dimensions": [10**4, 10**6], "tolerances": list(TOLERANCES), "m": 10, "m_star": 3}
    small = {"dimensions": [10**3, 10**4], "tolerances": [1e-5, 1e-7], "m": 3, "m_star": 1}
    return [Table("liao-precision", measure, small if quick else full)]


def draw(stored: Sequence[Any]) -> Any:
    """One panel for each dimension, one curve for each integrator."""
    from matplotlib.figure import Figure

    table = stored[0]
    d, solver = np.asarray(table["d"], int), np.asarray(table["solver"])
    figure = Figure(figsize=(6.6, 3.3), layout="constrained")
    dimensions = sorted(set(d.tolist()))
    axes = figure.subplots(1, len(dimensions), sharey=True, squeeze=False)[0]
    for axis, dimension in zip(axes, dimensions, strict=True):
        for k, name in enumerate(SOLVERS):
            here = (d == dimension) & (solver == name)
            x, y = np.asarray(table["evaluations"], float)[here], np.asarray(table["error"], float)[here]
            axis.plot(x, y, marker="osD^v"[k], ms=4, color=COLOURS[k], label=name, zorder=3 - (k > 0))
        axis.set_xscale("log")
        axis.set_yscale("log")
        evaluations = np.asarray(table["evaluations"], float)[d == dimension]
        ticks = [t for t in TICKS if evaluations.min() / 1.5 <= t <= evaluations.max() * 1.2]
        axis.set_xticks(ticks, [f"{t:,}" for t in ticks])
        axis.xaxis.set_minor_formatter("")
        axis.set_xlabel("right-hand sides evaluated")
        axis.set_title(f"d = {power(dimension)}")
    axes[0].set_ylabel("largest relative error of a recovery time")
    axes[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
