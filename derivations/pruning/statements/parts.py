"""Common parts of the pages of system `pruning`: indices, names, symbols, constants."""

from typing import Any

import numpy as np

from derivations.contract import Initial
from derivations.pruning.parameters import Parameters
from derivations.statement import Base, Kernel, Named, sp

K, M, D_SIZE, TOKENS = sp.symbols("k m d l", integer=True, positive=True)
ETA_R, ETA_E, STRIDE, GAP = sp.symbols("eta_r eta_e tau u", real=True)
S, R, P = sp.Idx("s", K), sp.Idx("r", M), sp.Idx("p", D_SIZE)
O, Q, W = sp.Idx("o", 2), sp.Idx("q", (2, D_SIZE - 1)), sp.Idx("w", (2, D_SIZE - 1))
H, U, SIGMA, SIGN, PI, LABEL = map(Base, ("h", "u", "sigma", "a", "pi", "y"))
GATE = Kernel("G", (GAP, TOKENS), {"G": 1 / (1 + (TOKENS - 1) * sp.exp(-GAP))},
              note="gate of the task token at gap u over l - 1 equal tokens")  # fmt: skip
PAPER = "Chowdhury et al. 2024"
CLOCK = "one step of SGD advances t by 1; both rates stand in the equations"
TASKS = "task tokens o_1, o_2 of label +1, -1"
NOTATION = {
    "o": ("o", "o"),
    "mass": ("S", "S"),
    "chosen": ("\\chi", "χ"),
    "below": ("B", "B"),
    "tied": ("T", "T"),
    "D_min": ("D^{\\min}", "Dmin"),
    "u_0": ("u^{0}", "u⁰"),
    "D_own": ("D", "D"),
    "delta_0": ("\\delta", "δ"),
    "m_eff": ("m", "m"),
    "tokens": ("p", "p"),
    "h_tok": ("\\hat h", "ĥ"),
    "s_tok": ("\\hat\\sigma", "σ̂"),
    "pooled": ("\\bar\\sigma", "σ̄"),
    "n_s": ("n_s", "nₛ"),
}


def rates(p: Parameters) -> tuple[Named, ...]:
    """The two rates and the head signs."""
    return (
        Named(ETA_R, "rate of the routers", 0.01 if p.eta_r < 0 else p.eta_r),
        Named(ETA_E, "rate of the experts", p.eta_e),
        Named(SIGN[S], "head sign of an expert, fixed", "np.where(np.arange(k) % 2, -1.0, 1.0)"),
    )


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    p, c = initial.parameters, initial.constants
    found = {"k": p.k, "m": p.m, "d": p.d, "l": p.l, "eta_r": p.router_rate, "eta_e": p.eta_e, "tau": p.stride}
    return {**found, "a": np.asarray(c["a"], float), "pi": np.concatenate([[0.0, 0.0], np.asarray(c["pi"], float)])}
