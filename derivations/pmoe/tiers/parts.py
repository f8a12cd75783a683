"""Common parts of the tiers of system `pmoe`: indices, the logistic loss, the kernel of infinite width, and symbols."""

import numpy as np

from derivations.pmoe.kernels import RHO, U, kappa0
from derivations.statement import Base, Definition, Kernel, sp

ANY = (-np.inf, np.inf)
PAIR = ("expert", "pattern")
PAPER = "Chowdhury et al. 2023"

K, P, TOKENS, WIDTH, SAMPLES = sp.symbols("k P l M n_x", integer=True, positive=True)
S, (Z, W) = sp.Idx("s", K), (sp.Idx(n, P) for n in "zw")
GRAM, METRIC = Base("gram"), Base("K")
SLOPE = Kernel("v", (U,), {"v": 1 / (1 + sp.exp(U))}, note="slope of the logistic loss at the margin u")
LOSS = Kernel("cost", (U,), {"cost": sp.log(1 + sp.exp(-sp.Abs(U))) + sp.Max(0, -U)},
              means={"cost": (sp.log(1 + sp.exp(-U)),)}, note="logistic loss of the margin u")  # fmt: skip
ARC = Kernel("kappa0", (RHO,), {"kappa0": kappa0()},
             note="chance that two standard normals of covariance rho are both positive")  # fmt: skip
NOTATION = {
    "gram": ("\\Gamma", "Γ"),
    "share": ("\\sigma", "σ"),
    "kappa0": ("\\kappa_0", "κ₀"),
    "cost": ("\\ell", "ℓ"),
    "u0": ("u^{0}", "u⁰"),
    "pre": ("h", "h"),
    "response": ("\\varphi", "φ"),
    "route": ("g", "g"),
    "push": ("X", "X"),
    "count": ("N", "N"),
    "taken": ("n", "n"),
    "routed": ("\\bar{n}", "n̄"),
    "lead": ("\\iota", "ι"),
    "weight": ("q", "q"),
    "label": ("y", "y"),
    "out": ("a", "a"),
    "mean_count": ("\\bar{c}", "c̄"),
    "n_x": ("n_x", "nₓ"),
    "G_free": ("\\tilde{G}", "G̃"),
    "act": ("A", "A"),
}


def infinite_width() -> tuple[Kernel, Definition]:
    """K(z, z') = <z, z'> kappa0(cosine), with a cosine of exactly 1 on the diagonal."""
    cosine = GRAM[Z, W] / sp.sqrt(GRAM[Z, Z] * GRAM[W, W])
    value = sp.Piecewise((GRAM[Z, Z] / 2, sp.Eq(Z, W)), (GRAM[Z, W] * ARC["kappa0"](cosine), True))
    return ARC, Definition((METRIC[Z, W],), value, "kernel of a ReLU expert of infinite width")


def spread(values: np.ndarray) -> float:
    """The largest change along the run."""
    return float(np.abs(values - values[0]).max())
