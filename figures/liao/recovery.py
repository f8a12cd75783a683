"""Ours: recovery times against d over ten decades, with the law, its rivals and their ratio to the law."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from derivations import scaling
from derivations.laws import LOGARITHMS
from figures.liao._shared import COLOURS, parameters
from odesim.show.figures import Request

CAPTION = (
    "Upper panel: time at which the last teacher is recovered, for router and expert, from the orthogonal "
    "initialisation, as a function of d. Lower panel: this time divided by the fitted law C sqrt(d). Rival laws "
    "with a logarithm are fitted to the same medians and drawn in the lower panel too."
)
CLAIMS = ("thm-1d",)
LAG = 5.49
"""Delay between an expert and its router, at every d; claim `thm-1d` fits with this shift too."""
FITTED_FROM = 1e4
"""Below, overlaps of 1/sqrt(d) are not small: claim `thm-1d` starts here too."""
LAW = scaling.Form("sqrt(d)", exponent=0.5)
STYLES = ("--", "-.", ":")


def needs(quick: bool = False) -> list[Request]:
    """Three seeds at every decade of d (30 runs of some seconds each; the last decades take longest)."""
    size = {"m": 5, "m_star": 2} if quick else {"m": 10, "m_star": 3}
    found = []
    for exponent in range(2, 5) if quick else range(3, 13):
        until = float(10 ** (exponent / 2) + 60)
        for seed in range(3):
            options = {"seed": seed, "until": until, "save_points": 3}
            found.append(Request("liao", {**size, "d": 10**exponent, "init": "orthogonal"}, options))
    return found


def draw(stored: Sequence[Any]) -> Any:
    """Points, law and rivals in logarithms, and a strip of ratios to the law."""
    from matplotlib.figure import Figure

    d = np.array([float(parameters(run)["d"]) for run in stored])
    pairs = [np.maximum(run["T_gamma1"], run["T_gamma2"]).min(axis=0) for run in stored]
    times = np.array([pair.max() for pair in pairs]) - LAG
    good = np.isfinite(times) & (times > 0)
    figure = Figure(figsize=(5.6, 4.8), layout="constrained")
    top, strip = figure.subplots(2, 1, sharex=True, height_ratios=(2.6, 1.0))
    line = np.geomspace(d.min(), d.max(), 200)
    law = _curve(d[good], times[good], LAW)
    seeds = np.array([int(run.manifest["seed"]) for run in stored])
    for k, seed in enumerate(np.unique(seeds)):  # an open mark for each seed: two that coincide are both seen
        own = good & (seeds == seed)
        style = {"marker": "os^D"[k % 4], "ms": 5, "mfc": "none", "ls": "none", "color": COLOURS[0]}
        top.loglog(d[own], times[own], label=f"exact flow, seed {seed}", **style)
        strip.semilogx(d[own], times[own] / _curve(d[good], times[good], LAW)(d[own]), **style)
    top.loglog(line, law(line), color="black", label=f"law: {law(1.0):.3g} $\\sqrt{{d}}$")
    strip.axhline(1.0, color="black")
    for rival, colour, style in zip(LOGARITHMS, (COLOURS[1], COLOURS[2], COLOURS[3]), STYLES, strict=True):
        curve = _curve(d[good], times[good], rival)
        name = rival.name.replace("sqrt(d log d)", r"$\sqrt{d\,\log d}$").replace("sqrt(d)", r"$\sqrt{d}$")
        top.loglog(line, curve(line), style, color=colour, label=f"rival: {name}")
        strip.semilogx(line, curve(line) / law(line), style, color=colour)
    p = parameters(stored[0])
    top.set_title(f"orthogonal initialisation, m = {p['m']}, m* = {p['m_star']}")
    top.set_ylabel(f"last recovery time $T_{{m^*}} - {LAG}$")
    top.legend(loc="upper left")
    strip.set_ylabel("over the law")
    if not good.all():
        note = f"{np.sum(~good)} of {good.size} runs not shown: not all recovered, or at $T \\leq {LAG}$"
        top.text(0.98, 0.03, note, transform=top.transAxes, ha="right", fontsize=7, color="0.35")
    strip.set_xlabel("input dimension $d$")
    return figure


def _curve(d: np.ndarray, times: np.ndarray, form: scaling.Form) -> Any:
    """The form with the constant that fits the medians over seeds, from d = 1e4 on where there are enough."""
    at, middle = scaling.medians(d, times)
    if np.sum(at >= FITTED_FROM) >= 3:
        at, middle = at[at >= FITTED_FROM], middle[at >= FITTED_FROM]
    constant = scaling.least_squares(at, middle, form)[1]

    def curve(x: Any) -> Any:
        logarithm = np.log(x) ** form.logarithm if form.logarithm else 1.0
        return np.exp(constant) * np.asarray(x, float) ** form.exponent * logarithm

    return curve
