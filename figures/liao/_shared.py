"""Common parts of several figures of liao: the paper's experiment in both initialisations, and the names of runs."""

from typing import Any

from odesim.show.figures import Request

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""The Okabe-Ito colours."""
INITS = ("random", "orthogonal")


def experiment(quick: bool) -> list[Request]:
    """The paper's experiment (m = 25, m* = 5, d = 1000, until 90) as the exact flow, both initialisations."""
    size = {"m": 5, "m_star": 2, "d": 100} if quick else {"m": 25, "m_star": 5, "d": 1000}
    options = {"seed": 0, "until": 30.0 if quick else 90.0, "save_points": 181}
    return [Request("liao", {**size, "init": init}, options) for init in INITS]


def parameters(run: Any) -> dict[str, Any]:
    """The parameters of a stored run."""
    return run.manifest["origin"]["parameters"]


def sizes(run: Any) -> str:
    """The sizes of a run, for a title."""
    p = parameters(run)
    return f"m = {p['m']}, m* = {p['m_star']}, d = {power(p['d'])}"


def power(d: int) -> str:
    """A dimension as a power of ten if it is one."""
    exponent = len(str(d)) - 1
    return f"$10^{{{exponent}}}$" if d >= 1000 and d == 10**exponent else str(d)


def label(run: Any) -> str:
    """The initialisation of a run, in words."""
    return f"{parameters(run)['init']} initialisation"
