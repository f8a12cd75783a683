"""The picture of an entry: the flow, SGD as a band, and the number of the claim as a line, a panel for each claim."""

import dataclasses
import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

STEPS, SAMPLES = 20_000, 15_000_000
"""Steps of SGD beside a flow, and samples times vectors; where they end before it, so does the band."""
REPLICAS = 4
DIMENSION = 1000
NOISE = 0.005
"""Step x dimension / batch of the SGD beside a flow, which is its limit at 0."""
MOST, NAMED = 8, 5
"""Lines of a panel; up to how many have a name each."""
ROUNDING = 1e-12
"""Errors below are not drawn."""


@dataclasses.dataclass
class Panel:
    """One variable along one run: the curves in it, each a measure, and the lines of claims."""

    variable: str
    parameters: Mapping[str, Any]
    until: float
    curves: list[tuple[str, Mapping[str, Any]]]
    levels: list[tuple[float, str]] = dataclasses.field(default_factory=list)
    times: list[tuple[float, str]] = dataclasses.field(default_factory=list)
    thresholds: list[float] = dataclasses.field(default_factory=list)


def panels(system: Any, claims: Iterable[Any], run: Any) -> list[Panel]:
    """The overlaps with the teachers in a run of the defaults, those that move most, then what the claims follow."""
    stages = system.parameters.declaration.stages
    horizon = stages[-1].until if stages else system.stages[0].horizon(system.parameters())
    from derivations.declare.claims.measurements import of_whole_vectors

    overlaps = {name: of_whole_vectors(np.asarray(run[name])) for name in run.state if "M_" in name}
    main = max(overlaps, key=lambda name: np.ptp(overlaps[name], axis=0).max())
    best = np.abs(overlaps[main][-1]).argmax(axis=0)[:MOST]
    every = [(f"teacher {j + 1}", {"entry": (int(i), j), "absolute": False}) for j, i in enumerate(best)]
    found = [Panel(main, {}, horizon, every)]
    for claim in claims:
        asked, law = claim.measure.keywords["asked"], claim.law
        if asked["engine"] != "flow" or claim.sweep["quick"].points != ({},):
            continue
        if all(variant.expected == "refuted" for variant in claim.variants):  # a rival, which nobody claims
            continue
        _add(found, asked, law, asked["until"] or horizon)
    if len(found) == 1:
        found.append(Panel("error", {}, horizon, [("", {"entry": None, "absolute": False, "reduction": "max"})]))
    return found


def _add(found: list[Panel], asked: Mapping[str, Any], law: Any, until: float) -> None:
    """A claim's curve and lines, in the panel of its variable and run where there is one."""
    same = (asked["variable"], dict(asked["parameters"]))
    panel = next((p for p in found if (p.variable, dict(p.parameters)) == same), None)
    if panel is None:
        found.append(panel := Panel(*same, until, []))
    panel.until = max(panel.until, until)
    if not any(curve["entry"] == asked["entry"] for _, curve in panel.curves):
        panel.curves.append((_named(asked), asked))
    for value, label in (
        (getattr(law, "value", None), "claim:"),
        (getattr(law, "high", None), "at most"),
        (getattr(law, "low", None), "at least"),
    ):
        if value is not None and math.isfinite(value):
            lines = panel.levels if asked["sign"] is None else panel.times
            lines.append((float(value), label))
    if asked["level"] is not None and asked["level"] not in panel.thresholds:
        panel.thresholds.append(asked["level"])


def _named(asked: Mapping[str, Any]) -> str:
    if asked["entry"] is not None:
        return f"[{','.join(str(n + 1) for n in asked['entry'])}]"
    inner = "abs" if asked["absolute"] else ""
    return f"{asked['reduction']}{inner and ' ' + inner}" if asked["variable"] not in ("error", "loss") else ""


def draw(system: Any, name: str, wanted: Sequence[Panel], target: Path, sgd: bool) -> tuple[str, list[str]]:
    """Draw the panels into a file; the picture in words, and for every panel how its runs were made."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from odesim.show.alt import describe
    from odesim.show.plot import STYLE

    columns = 3 if len(wanted) == 3 else min(2, len(wanted))
    rows = math.ceil(len(wanted) / columns)
    said = []
    with mpl.rc_context(rc=STYLE):
        figure = Figure(figsize=((3.9 if columns < 3 else 2.9) * columns + 0.3, 2.7 * rows + 0.2), layout="constrained")
        axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
        for axis, panel in zip(axes, wanted, strict=False):
            said.append(_panel(axis, system, name, panel, sgd))
        for axis in axes[len(wanted) :]:
            axis.set_visible(False)
        alt = describe(figure)
        figure.savefig(target, dpi=150)
    return alt, said


def _panel(axis: Any, system: Any, name: str, panel: Panel, sgd: bool) -> str:
    """One panel, and its SGD in words."""
    from derivations.drawing import BLACK, colour

    time, values, told = _flow(system, name, panel)
    paths = [_path(values, curve) for _, curve in panel.curves]
    beside, words = _sgd(system, name, panel, "sgd" in told) if sgd else (None, "")
    for k, ((label, curve), path) in enumerate(zip(panel.curves, paths, strict=True)):
        if beside is not None:
            found = np.array([_path(values, curve) for values in _values(system, beside, panel)])
            axis.fill_between(beside.time, found.min(0), found.max(0), color=colour(k), alpha=0.25, linewidth=0)
        axis.plot(time, path, color=colour(k), linewidth=1.3, label=label if 1 < len(paths) <= NAMED else None)
    for values, line in ((panel.levels, axis.axhline), (panel.times, axis.axvline)):
        for value, label in values:
            line(value, color=BLACK, linestyle=(0, (4, 2)), linewidth=0.9, label=f"{label} {value:.6g}")
    for level in panel.thresholds:
        axis.axhline(level, color="0.7", linewidth=0.6, zorder=0)
    axis.set_title(", ".join(f"{k} = {v:g}" for k, v in panel.parameters.items()) or "defaults", fontsize=8)
    axis.set_xlabel("time")
    axis.set_ylabel(_label(panel.variable))
    _scales(axis, panel, paths, time if len(system.stages) == 1 else None)
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=7, frameon=False)
    return words


def _flow(system: Any, name: str, panel: Panel) -> tuple[np.ndarray, np.ndarray, Mapping[str, Any]]:
    """Times and values of the panel's variable along the flow, over all stages of a model, and what is told of it."""
    import odesim

    points = {} if system.stages[0].decades else {"save_points": 1001}
    stages = [stage for stage in system.parameters.declaration.stages if stage.begin < panel.until]
    if not stages:
        run = odesim.integrate(name, until=panel.until, **points, **panel.parameters)
        return np.asarray(run.time), np.asarray(run[panel.variable]), run.summary
    ends = {stage.stage: min(stage.until, panel.until) for stage in stages}
    found = odesim.integrate(name, stage=",".join(ends), until=ends, **points, **panel.parameters)
    runs = found if isinstance(found, list) else [found]
    times, values = (
        [np.asarray(part) for part in each]
        for each in zip(*((run.time, run[panel.variable]) for run in runs), strict=True)
    )
    return np.concatenate(times), np.concatenate(values), runs[-1].summary


def _label(variable: str) -> str:
    words = {"error": r"$E(f-f^*)^2$", "loss": "loss"}
    letters = variable.rsplit("_", 1)[-1]
    return words.get(variable, rf"${letters[0]}_i\cdot {letters[-1]}^*_j$" if "M_" in variable else variable)


def _path(values: Any, curve: Mapping[str, Any]) -> np.ndarray:
    from derivations.declare.claims.measurements import followed

    return followed(np.asarray(values), curve)


def _values(system: Any, run: Any, panel: Panel) -> Any:
    """A variable of SGD; its error is told by its loss, which is half of error and noise together."""
    if panel.variable != "error":
        return run[panel.variable]
    values = dataclasses.replace(system.parameters(), **panel.parameters)
    return 2 * np.asarray(run["loss"]) - values.noise**2


def _scales(axis: Any, panel: Panel, paths: Sequence[np.ndarray], time: Any) -> None:
    """Logarithms where a linear axis would show a corner: of values over decades, of times before what happens late.

    `time` is None where it stays linear: of stages, each of which has an early time of its own.
    """
    largest = max(path.max() for path in paths)
    if panel.variable in ("error", "loss") and min(path.min() for path in paths) > -1e-6 * largest:
        least = min(path[path > ROUNDING].min() for path in paths)
        if least < 0.03 * largest:
            axis.set_yscale("log")
            axis.set_ylim(bottom=max(least / 2, ROUNDING), top=2 * largest)
    if time is None:
        return
    path = paths[0]
    moved = np.abs(path - path[0]) >= 0.5 * np.ptp(path)
    if np.ptp(path) > 0 and time[int(np.argmax(moved))] < 0.01 * time[-1]:
        axis.set_xscale("log")
        axis.set_xlim(time[1], time[-1])


def _sgd(system: Any, name: str, panel: Panel, warned: bool) -> tuple[Any, str]:
    """SGD of some replicas, exactly in law, until the flow ends or its steps are used up; None where there is none.

    Where the flow's own summary warns that SGD leaves it (`warned`) a band beside it would be noise; in a dimension far
    above the others the flow stands for a limit: SGD near it would need as many samples a step.  There is none either
    where the flow is over within one step, or where readouts are so fast that a step throws them away.
    """
    from derivations.declare.parameter_class import rows

    if len(system.stages) > 1:  # every stage would want replicas of its own
        return None, ""
    stage = system.stages[0]
    values = dataclasses.replace(system.parameters(), **{"d": DIMENSION, **panel.parameters})
    untold = warned or (panel.variable == "error" and system.parameters.declaration.loss != "squared")
    if untold or values.d > 100 * DIMENSION:
        return None, ""
    step, batch = stage.usual(values)
    batch = batch if system.parameters.declaration.limit == "online" else math.ceil(step * values.d / NOISE)
    steps = min(STEPS, SAMPLES // (batch * rows(values).total))
    until = min(panel.until, steps * stage.tick(values, step))
    if until < stage.tick(values, step):
        return None, ""
    asked = {"d": DIMENSION, **panel.parameters}
    found = _trained(name, until, step, batch, tuple(asked.items()))
    if found.outcome.kind == "failed":
        return None, ""
    return found, f"d = {values.d:g}, step {step:g}, batch {batch}, until {until:.3g}"


@functools.lru_cache(maxsize=2)
def _trained(name: str, until: float, step: float, batch: int, asked: tuple[tuple[str, Any], ...]) -> Any:
    """The replicas; panels of one run ask for them once."""
    import odesim

    return odesim.simulate(
        name, method="compressed", seeds=REPLICAS, until=until, save_points=201, step_size=step, batch=batch,
        **dict(asked),
    )  # fmt: skip
