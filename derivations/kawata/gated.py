"""Tier `gated`: Phase III behind a gate, exactly, with the correlation of its decision and the other fields.

With th = theta/|theta| the direction of the neuron's gate, tau_c = rho th.v_c, om = th.w* (fixed) and q = w.th,

    U = (1/CJ) sum_c E[1(th.z >= -tau_c) (f_c(u_c) + s_c g(u_g)) a sigma(w.z + t_c)],   t_c = rho nu_c + b.

A field u has regression on the two others only through its overlaps, and E[h_i(u) F(w.z, th.z)] is i!^(-1/2) times the
mean of (kappa d_1 + om d_2)^i F (Price), so that with B_jn = E[d^j a sigma(w.z + t) d^n 1(th.z + tau >= 0)]

    U = (1/CJ) sum_c sum_{j,n} sqrt((j+n)!)/(j! n!) (beta_{j+n} kappa^j om_c^n + s gamma_{j+n} xi^j om_g^n) B_jn

which is finite for links of finite degree, also where the triple Hermite series of the specification (its section 3.8)
is infinite; d_t, d_tau raise an index of B by one, and d_q raises both.  The flow closes on 2C + 2 overlaps.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Code, Component, Dense, Equations, Initial, Layout, Observables, Smooth, Tier
from derivations.kawata import gated_arrays, population, summary
from derivations.kawata.gated_loops import Arguments
from derivations.kawata.initial import expert_of, join, length_outside, outside
from derivations.kawata.parameters import ACTIVATIONS, Parameters, degree

STATE = (
    Component("kappa", ("neuron", "cluster"), symbol="kappa_{m,j,c}", meaning="local alignment w . w*_c"),
    Component("xi", ("neuron",), symbol="xi_{m,j,g}", meaning="global alignment w . w*_g"),
    Component("nu", ("neuron", "cluster"), symbol="w_{mj} . v_c", meaning="overlap with the cluster means w . v_c"),
    Component("tilt", ("neuron",), symbol="q", meaning="overlap with the direction of the own gate w . theta/|theta|"),
)
LOOPS = tuple(
    f"derivations.kawata.gated_loops:{name}"
    for name in ("smoothed", "decided", "gated_gradient", "gated_flow", "gated_loss")
)
NODES = 48
"""Gauss-Legendre nodes in the angle arcsin q: round-off for |q| <= .9 and biases of order one."""
ALWAYS = 60.0
"""tau of a gate that vanishes, which is always open."""


def equations(p: Parameters) -> Equations:
    """The exact flow behind the gate.  Source: Kawata et al. 2025, Algorithm 1, Phase III; the closed form is ours."""
    C = p.C
    return Equations(
        about=Tier(
            name="gated",
            validity=(
                "exact for Gaussian clusters at every d, links of finite degree, any frame and any gate, in the limit "
                "of small step size (gradient flow on the population correlation loss)"
            ),
            neglects="nothing",
        ),
        advance=Smooth(),
        code=Code(
            structure="kawata_gated",
            kernels=dict,
            loops=LOOPS,
            roles={"flow": "gated_flow", "loss": "gated_loss"},
            arrays=gated_arrays.build,
            takes=Arguments,
        ),
        state=STATE,
        layout=Layout((Dense("kappa", (C,)), Dense("xi", ()), Dense("nu", (C,)), Dense("tilt", ())), rows=True),
        arguments=arguments,
        begin=lambda initial: {**initial.state, "tilt": tilt(initial)},
        crossings=population.crossings(p),
        observables=Observables(constants=population.constants, invariants=invariants, summary=summary.summarise),
    )


def directions(constants: Mapping[str, Any]) -> np.ndarray:
    """|theta_m| (M,)."""
    return np.sqrt(np.maximum(np.diag(constants["gate_gram"]), 0.0))


def tilt(initial: Initial) -> np.ndarray:
    """q = w.th of every neuron: its part in the frame and that along the gate outside the frame."""
    if "tilt" in initial.state:
        return np.asarray(initial.state["tilt"], float)
    p, c, m = initial.parameters, initial.constants, join(initial.state)
    inverse, expert = np.linalg.pinv(c["gram"], hermitian=True), expert_of(p, len(m))
    inside = ((m @ inverse) * c["theta"][expert]).sum(1)
    far = length_outside(m, inverse) * c["gate_direction"][expert, np.arange(len(m))]
    norm = directions(c)[expert]
    return np.divide(inside + far, norm, out=np.zeros(len(m)), where=norm > 0)


def arguments(initial: Initial) -> Arguments:
    """The run-time arguments of `gated_flow` and `gated_loss`, in their order."""
    p, c = initial.parameters, initial.constants
    gram, norm = np.asarray(c["gram"], float), directions(c)
    local, remote = population.teacher_series(p, gram)
    top = degree(p)
    unit = np.divide(c["theta"], norm[:, None], out=np.zeros(c["theta"].shape), where=norm[:, None] > 0)
    frame = np.zeros((len(unit), len(gram) + 1, len(gram) + 1))
    frame[:, :-1, :-1], frame[:, -1, -1] = gram, 1.0
    frame[:, -1, :-1] = frame[:, :-1, -1] = unit
    tau = np.where(norm[:, None] > 0, p.rho * unit[:, p.C + 1 :], ALWAYS)
    x, w = np.polynomial.legendre.leggauss(NODES)
    vectors = [np.ascontiguousarray(c[name], float) for name in ("a", "b", "sigma")]
    kind = ACTIVATIONS.index(p.activation)
    return Arguments._make((
        p.C, top, kind, float(p.rho), *vectors, 1.0 / (p.J * p.C), np.ascontiguousarray(local[:, : top + 1]),
        np.ascontiguousarray(remote[:, : top + 1]), frame, expert_of(p, p.neurons), tau, (x + 1) / 2, w / 2,
    ))  # fmt: skip


def invariants(initial: Initial, state: Mapping[str, np.ndarray]) -> dict[str, float]:
    """What the exact flow preserves, as measured: the unit ball, overlaps of at most 1, and a loss that only falls."""
    excess = float(max(0.0, -outside(state, initial.constants["gram"]).min(initial=0.0)))
    increase = float(np.diff(state["loss"]).max(initial=0.0)) if "loss" in state else 0.0
    return {
        "ball_excess": excess,
        "tilt_excess": float(max(0.0, np.abs(state["tilt"]).max(initial=0.0) - 1.0)),
        "loss_increase": increase,
    }
