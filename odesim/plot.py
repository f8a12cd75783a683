"""Pictures of runs, drawn from stored or fresh trajectories without running anything."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from derivations.contract import load
from odesim.trajectory import Trajectory

STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.3,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "savefig.dpi": 150,
    "svg.fonttype": "path",
}


def draw(run: Any, folder: str | Path) -> list[Path]:
    """Draw a `Trajectory` or its data set into PNG files in `folder`; returns their paths."""
    paths = []
    for name, figure in figures(run).items():
        path = Path(folder) / f"{name}.png"
        with _style():
            figure.savefig(path)
        paths.append(path)
    return paths


def figures(run: Any) -> Mapping[str, Any]:
    """The figures of a run by name: those its system draws, otherwise every component against time."""
    from odesim.case import find_system

    dataset = run.dataset() if isinstance(run, Trajectory) else run
    if dataset.attrs["method"] == "compare":
        from odesim import comparison

        with _style():
            return {"comparison": comparison.draw(dataset)}
    system = find_system(dataset.attrs["system"])
    with _style():
        return load(system.plot)(one_replica(dataset)) if system.plot else {"components": components(dataset)}


def one_replica(dataset: Any) -> Any:
    """The median over replicas of a simulation, entry by entry; a flow as it is."""
    if "seed" not in dataset.dims:
        return dataset
    replicas = dataset.sizes["seed"]
    median = dataset.median("seed", keep_attrs=True)
    return median.assign_attrs(dataset.attrs, method=f"{dataset.attrs['method']} SGD, median of {replicas}")


def components(dataset: Any) -> Any:
    """Every variable with a time axis against time, one panel each."""
    from matplotlib.figure import Figure

    names = [name for name in dataset if "time" in dataset[name].dims]
    figure = Figure(figsize=(6.4, 1.6 * len(names) + 0.6), layout="constrained")
    axes = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    for axis, name in zip(axes, names, strict=True):
        values = dataset[name].transpose("time", ...).values
        axis.plot(dataset["time"], values.reshape(len(values), -1))
        axis.set_ylabel(name)
    axes[-1].set_xlabel("time")
    return figure


def _style() -> Any:
    import matplotlib as mpl

    return mpl.rc_context(rc=STYLE)
