"""Picture of every verdict: the measured values and the claim, as a small vector graphic."""

import fractions
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from derivations.drawing import COLOURED, PALETTE
from derivations.laws.agreement import relative
from odesim.show.legend import ROW, gather
from odesim.show.symbols import symbol_of
from odesim.show.title import number
from odesim.store.files import replacing, storing

FOLDER = "evidence"
FOUND = "#0072b2"
"""Colour of measured values; the claim is black."""
RIVALS = PALETTE[1:COLOURED]
"""The colours of rejected rivals."""
PANELS, ACROSS = 6, 3
"""Largest number of parts that are drawn, and of parts in a row; the deciding part comes first."""
RANGE, DECADE, LABELLED = 4, 10, 6
"""Ratios from which sizes and measurements have a logarithmic axis, and the largest number of sizes written at it."""


def draw_all(verdicts: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Draw every verdict that has samples into `folder`/evidence, as CLAIM.FORM.svg."""
    with storing(folder):
        (folder / FOLDER).mkdir(exist_ok=True)
        for verdict in verdicts:
            path = folder / FOLDER / f"{file_name(verdict)}.svg"
            if verdict["samples"]:
                with replacing(path) as file:
                    draw(verdict).savefig(file, format="svg", metadata={"Date": None})


def file_name(verdict: Mapping[str, Any]) -> str:
    """The name of the picture of a verdict, without its ending."""
    name = str(verdict["claim"]) + ("" if verdict["variant"] == "main" else f".{verdict['variant']}")
    return "".join(letter if letter.isalnum() or letter in ".-_" else "_" for letter in name)


def caption(verdict: Mapping[str, Any]) -> str:
    """Return a sentence that describes the picture of a verdict: its marks, and the decision."""
    count = len(verdict["samples"])
    said = [f"{count} measurement{'s' if count > 1 else ''}"]
    said += ["solid the claim" + (", grey its margin" if verdict["margin"] else "")] if _has_claim(verdict) else []
    if verdict["law"] == "Power" and verdict["estimate"] is not None:
        said.append(f"dashed the fitted exponent {verdict['estimate']:.4g}, shaded its interval")
        drawable = [name for name in verdict.get("rejected") or [] if rival(name) is not None]
        said += [f"dotted what was rejected: {', '.join(drawable)}"] if drawable else []
    elif verdict["law"] == "Equals" and verdict["interval"]:
        said.append("dashed the estimate, shaded its interval")
    return "; ".join(said) + "."


def _has_claim(verdict: Mapping[str, Any]) -> bool:
    """Return True if the claim is a number, or a bound on one side at least."""
    predicted = verdict["predicted"]
    return any(end is not None for end in (predicted if isinstance(predicted, list) else [predicted]))


def draw(verdict: Mapping[str, Any], *, titled: bool = True) -> Any:
    """A `matplotlib.figure.Figure`: a panel for every part, the deciding one first.

    Measurements are drawn against a swept number, with a logarithmic axis from a ratio of four on; otherwise case by
    case. The claimed value and its margin are drawn if the verdict has one number. Measurements of a claimed power law
    are divided by this power. `titled` adds a title with claim and answer.
    """
    from matplotlib.figure import Figure

    parts = list(itertools.islice(_parts(verdict), PANELS))
    across = min(len(parts), ACROSS)
    down = -(-len(parts) // across)
    figure = Figure(figsize=(3.1 * across + 0.5, 2.4 * down + (0.3 if titled else 0)), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).flat
    for (name, samples), axis in zip(parts, axes, strict=False):
        decides = len(parts) == 1 or name == verdict["deciding"]
        if decides and verdict["law"] == "Probability" and verdict["interval"]:
            _share(axis, verdict)
        else:
            _panel(axis, samples, verdict["predicted"] if decides and verdict["law"] == "Power" else None)
        axis.set_title(name, fontsize=8, loc="left")
        if decides:
            _claimed(axis, verdict, samples)
    for axis in list(axes):  # the rest of the last row
        axis.set_visible(False)
    if titled:
        title = (
            f"{verdict['claim']} ({verdict['variant']}): {verdict['answer']}, {len(verdict['samples'])} measurements"
        )
        figure.suptitle(title, fontsize=7.5, x=0.01, ha="left")
    rows = gather(figure)
    figure.set_figheight(figure.get_figheight() + ROW * rows)
    return figure


def _parts(verdict: Mapping[str, Any]) -> Iterator[tuple[str, list[tuple[Any, int, float]]]]:
    """The samples part by part, as numbers."""
    samples = verdict["samples"]
    first = samples[0][2]
    if not isinstance(first, Mapping) or "difference" in first:
        yield "", [(point, seed, _number(value)) for point, seed, value in samples]
        return
    for name in sorted(first, key=lambda part: part != verdict["deciding"]):
        yield name, [(point, seed, _number(value[name])) for point, seed, value in samples]


def _number(value: Any) -> float:
    """Return a measurement as the number that is drawn: for a comparison of sampled means, its relative difference."""
    return relative(value) if isinstance(value, Mapping) else float(value)


def _panel(axis: Any, samples: Sequence[tuple[Mapping[str, Any], int, float]], power: float | None = None) -> None:
    """Draw the measurements as points, against the swept coordinate or case by case, divided by a given power of it.

    Deviations from a law over many decades are visible only after division by the law.
    """
    swept = _swept([point for point, _, _ in samples])
    finite = [(p, y) for p, _, y in samples if math.isfinite(y)]
    x = [float(p[swept]) if swept else float(k) for k, (p, _) in enumerate(finite, start=1)]
    y = [value for _, value in finite]
    if power is not None and swept and min(x, default=0) > 0:
        y = [value * u**-power for u, value in zip(x, y, strict=True)]
        axis.set_ylabel(f"measured / {_law(swept, power)}" if power else "measured", fontsize=8)
    if not swept:
        axis.xaxis.get_major_locator().set_params(integer=True)
    axis.plot(x, y, "o", ms=4, alpha=0.7, mec="none", color=FOUND)
    axis.set_xlabel(symbol_of(swept) if swept else "case", fontsize=8)
    axis.tick_params(which="both", labelsize=7)
    if swept and min(x, default=0) > 0 and max(x) / min(x) >= RANGE:
        axis.set_xscale("log")
    if swept and len(set(x)) <= LABELLED:
        axis.set_xticks(sorted(set(x)), [_size(value) for value in sorted(set(x))])
        axis.minorticks_off()
    axis.yaxis.get_offset_text().set_fontsize(7)
    if y and min(y) > 0 and max(y) / min(y) >= DECADE:
        axis.set_yscale("log")
    if swept:
        _joined(axis, [seed for p, seed, y in samples if math.isfinite(y)], x, y)
    if len(finite) < len(samples):
        words = f"{len(samples) - len(finite)} never reached"
        axis.text(1.0, 1.02, words, transform=axis.transAxes, fontsize=7, ha="right")  # outside of the data


def _size(value: float) -> str:
    """A size at an axis: powers of ten as such, other numbers in full while they are short.

    Example:
        >>> _size(1e6), _size(65536), _size(0.5)
        ('$10^6$', '65536', '0.5')
    """
    written = number(value)
    return f"{value:.6g}" if "times" in written else written


def _joined(axis: Any, seeds: Sequence[int], x: Sequence[float], y: Sequence[float]) -> None:
    """Join the measurements of a seed by a thin line, if it has one at every size."""
    from matplotlib.collections import LineCollection

    runs = [sorted((u, v) for s, u, v in zip(seeds, x, y, strict=True) if s == seed) for seed in dict.fromkeys(seeds)]
    if all(len({u for u, _ in run}) == len(run) for run in runs):  # several cases of a seed at one size are not a curve
        axis.add_collection(LineCollection(runs, colors=FOUND, linewidths=0.5, alpha=0.4), autolim=False)


def _share(axis: Any, verdict: Mapping[str, Any]) -> None:
    """Draw the share of a yes-or-no measurement with its interval."""
    low, high = verdict["interval"]
    share = verdict["estimate"]
    axis.errorbar([0], [share], yerr=[[share - low], [high - share]], fmt="o", ms=4, capsize=4, color=FOUND)
    axis.set(xlim=(-1, 1), xticks=[], ylim=(-0.05, 1.05))
    axis.tick_params(labelsize=7)
    axis.set_ylabel("share of runs", fontsize=8)


def _swept(points: Sequence[Mapping[str, Any]]) -> str:
    """Return the numerical coordinate with the most values; empty if no coordinate is swept."""
    numbers: dict[str, set[float]] = {}
    for name in points[0]:
        found = [point[name] for point in points if name in point]
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in found):
            numbers[name] = set(found)
    numbers = {name: found for name, found in numbers.items() if len(found) > 1}
    return max(numbers, key=lambda name: len(numbers[name])) if numbers else ""


def _claimed(axis: Any, verdict: Mapping[str, Any], samples: Sequence[tuple[Any, int, float]]) -> None:
    """Draw the claimed value or bound with its margin and the estimate; for a power, the lines through the points."""
    predicted, margin = verdict["predicted"], verdict["margin"]
    if verdict["law"] == "Power":
        _power(axis, verdict, samples)
        return
    for end in predicted if isinstance(predicted, list) else [predicted]:
        if end is not None and math.isfinite(end) and not (end <= 0 and axis.get_yscale() == "log"):
            axis.axhline(end, color="black", lw=0.8, label=f"claimed: {end:.4g}")
            if margin:
                axis.axhspan(end - margin, end + margin, color="black", alpha=0.08, lw=0)
    if verdict["law"] == "Equals" and verdict["interval"] and None not in verdict["interval"]:
        axis.axhline(verdict["estimate"], ls="--", color=FOUND, lw=0.8, label=f"estimate: {verdict['estimate']:.4g}")
        axis.axhspan(*verdict["interval"], color=FOUND, alpha=0.2, lw=0)


def _power(axis: Any, verdict: Mapping[str, Any], samples: Sequence[tuple[Any, int, float]]) -> None:
    """Draw the claim, the fit, and rejected rivals through the middle of the points, which are divided by the claimed
    power.
    """
    import numpy as np

    from derivations import scaling

    swept, claim = _swept([point for point, _, _ in samples]), verdict["predicted"]
    good = [(float(p[swept]), y) for p, _, y in samples if swept and math.isfinite(y) and y > 0 and p[swept] > 0]
    if not good or claim is None:
        return
    u = np.log([x for x, _ in good])
    v = np.log([y for _, y in good]) - claim * u
    ends = np.linspace(u.min(), u.max(), 33)

    def through(exponent: float, logarithm: float = 0.0) -> Any:
        """Return a law divided by the claimed power, shifted to the middle of the points."""
        own, there = (
            (exponent - claim) * w + (logarithm * np.log(scaling.logarithm(np.exp(w))) if logarithm else 0.0)
            for w in (u, ends)
        )
        return np.exp(there + float((v - own).mean()))

    x = np.exp(ends)
    axis.plot(x, through(claim), color="black", lw=0.8, label=f"claimed: {_law(swept, claim)}")
    if verdict["margin"]:
        axis.fill_between(
            x, through(claim - verdict["margin"]), through(claim + verdict["margin"]), color="black", alpha=0.08, lw=0
        )
    if verdict["estimate"] is not None:
        label = f"fitted: {_law(swept, verdict['estimate'])}"
        axis.plot(x, through(verdict["estimate"]), "--", color=FOUND, lw=0.9, label=label)
    if verdict["interval"] and None not in verdict["interval"]:
        axis.fill_between(x, *map(through, verdict["interval"]), color=FOUND, alpha=0.2, lw=0)
    rejected = {
        (form.exponent, form.logarithm): _law(swept, form.exponent, form.logarithm)
        for form in map(rival, verdict.get("rejected") or [])
        if form is not None
    }
    for k, (form, words) in enumerate(rejected.items()):
        axis.plot(x, through(*form), ":", color=RIVALS[k % len(RIVALS)], lw=1.1, label=f"rejected: {words}")


def _law(over: str, exponent: float, logarithm: float = 0.0) -> str:
    r"""A power of a coordinate with its exponent, as mathematics; simple fractions as such.

    Example:
        >>> _law("d", 1 / 3), _law("d", 0.5, -1.0), _law("m_star", 0.4983)
        ('$d^{1/3}$', '$d^{1/2}\\,(\\log d)^{-1}$', '$(m^{*})^{0.4983}$')
    """
    base = symbol_of(over).strip("$")
    power = rf"({base})^{{{_exponent(exponent)}}}" if "^" in base else rf"{base}^{{{_exponent(exponent)}}}"
    above = "" if logarithm == 1 else f"^{{{_exponent(logarithm)}}}"
    return f"${power}$" if not logarithm else rf"${power}\,(\log {base}){above}$"


def _exponent(value: float) -> str:
    """Return an exponent, as a fraction of small numbers if possible."""
    near = fractions.Fraction(value).limit_denominator(6)
    return str(near) if abs(float(near) - value) < 1e-9 else f"{value:.4g}"


EXPONENT = r"(-?\d+(?:\.\d+)?(?:/\d+)?)"
NAMES = re.compile(rf"[A-Za-z]\w*(?:\^{EXPONENT})?(?: \(log [A-Za-z]\w*\)\^{EXPONENT})?")


def rival(name: str) -> Any:
    """Return the law of a rival by its name, or None for a name without an exponent.

    Example:
        >>> rival("d^0.5").exponent, rival("sqrt(d) log d").logarithm, rival("d^{k/2}")
        (0.5, 1.0, None)
        >>> rival("d^1/3").exponent == 1 / 3, rival("d^0.5 (log d)^-0.5").logarithm
        (True, -0.5)
    """
    from derivations.laws.power import LOGARITHMS
    from derivations.scaling import Form

    known = {form.name: form for form in (*LOGARITHMS, Form("sqrt(d)", exponent=0.5), Form("no fall", exponent=0.0))}
    found = NAMES.fullmatch(name)
    if name in known or found is None:
        return known.get(name)
    power, logarithm = (float(fractions.Fraction(text)) if text else 0.0 for text in found.groups())
    return Form(name, logarithm, power if found[1] else 1.0)
