"""The homogeneous reduction: all irrelevant patterns alike, two numbers per expert, with a first integral.

    dx/dt = (eta_r/2) (1 + 1/N) S (1 - S) (delta_0 + m_eff D),   dD/dt = (eta_e/2) S,   S = 1/(1 + (l - 1) e^-x)

x is the gap of the own task token over the irrelevant ones, delta_0 the initial difference of activations, and
m_eff = m_plus(own) + m_plus(q)/N counts active neurons.  Conserved: x + e^x/(l - 1) - (eta_r (1 + 1/N)/eta_e)
(delta_0 D + m_eff D^2/2).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import (
    Code,
    Component,
    Crossing,
    Dense,
    Equations,
    Initial,
    Kernel,
    Labelled,
    Layout,
    Observables,
    Smooth,
    Tier,
)
from derivations.pruning.homogeneous_loops import Arguments
from derivations.pruning.parameters import Parameters

ANY = (-np.inf, np.inf)
STATE = (
    Component("x", ("expert",), ANY, "<w_s, o - q>", "gap of the own task logit over the mean irrelevant one"),
    Component("D_own", ("expert",), ANY, "", "displacement of the active neurons at the own task pattern"),
)


def equations(parameters: Parameters) -> Equations:
    """The equations of tier `homogeneous`."""
    return Equations(
        about=Tier(
            name="homogeneous",
            validity=(
                "exact where all irrelevant patterns have the same logits and activations, the other task token is "
                "never selected, no neuron is switched off, and until the gap falls below 0"
            ),
            neglects="differences between irrelevant patterns, and neurons that are switched off",
        ),
        advance=Smooth(),
        code=Code(
            structure="pruning_homogeneous",
            kernels=_kernels,
            loops=("derivations.pruning.homogeneous_loops:homogeneous_flow",),
            roles={"flow": "homogeneous_flow"},
            arrays=build,
            takes=Arguments,
        ),
        state=STATE,
        layout=Layout((Dense("x", (parameters.k,)), Dense("D_own", (parameters.k,)))),
        arguments=arguments,
        begin=begin,
        crossings=(
            Crossing("T_gap", "x", float(np.log(parameters.l)), meaning="first time the gap reaches log l"),
            Crossing("T_death", "x", 0.0, -1, meaning="time at which the task token is lost for ever"),
        ),
        observables=Observables(observe=observe, constants=constants, invariants=invariants, summary=summarise),
    )


def _kernels() -> Mapping[str, Kernel]:
    from derivations.pruning.kernels import homogeneous_kernels

    return homogeneous_kernels()


def reduce(initial: Initial) -> dict[str, np.ndarray]:
    """x, delta_0 and m_eff (k,) of an initial condition, the irrelevant patterns averaged with their chances."""
    p, c, s = initial.parameters, initial.constants, initial.state
    own = np.where(np.asarray(c["a"]) > 0, 0, 1)
    row, pi = np.arange(p.k), np.asarray(c["pi"])
    sigma, active = np.maximum(s["u"], 0.0).sum(1), (s["u"] >= 0).sum(1)
    return {
        "x": s["h"][row, own] - s["h"][:, 2:] @ pi,
        "delta": sigma[row, own] - sigma[:, 2:] @ pi,
        "m_eff": active[row, own] + active[:, 2:] @ pi / p.N,
    }


def arguments(initial: Initial) -> Arguments:
    """Number of experts, l, rates, 1 + 1/N, and delta_0, m_eff (k,)."""
    p, reduced = initial.parameters, reduce(initial)
    rates = float(p.router_rate), float(p.eta_e)
    return Arguments(p.k, p.l, *rates, 1.0 + 1.0 / p.N, reduced["delta"], reduced["m_eff"])


def begin(initial: Initial) -> Mapping[str, np.ndarray]:
    """x and D = 0; a saved state of the tier itself is taken as it is."""
    if "x" in initial.state:
        return initial.state
    return {"x": reduce(initial)["x"], "D_own": np.zeros(initial.parameters.k)}


def build(xp: Any, kernels: Any) -> dict[str, Any]:
    """`flow(t, y, p)` from array operations."""

    def flow(t: Any, y: Any, p: Arguments) -> Any:
        gap, displacement = kernels["gap_rate"](None, y[: p.k], y[p.k :], *p[1:])
        return xp.concatenate([gap, displacement])

    return {"flow": flow}


def first_integral(initial: Initial, x: np.ndarray, D: np.ndarray) -> np.ndarray:
    """x + e^x/(l - 1) - (eta_r (1 + 1/N)/eta_e) (delta_0 D + m_eff D^2/2), per expert (the last axis)."""
    p = arguments(initial)
    return x + np.exp(x) / (p.l - 1) - p.eta_r * p.kappa / p.eta_e * (p.delta * D + p.m_eff * D**2 / 2)


def observe(initial: Initial, state: Mapping[str, np.ndarray]) -> Labelled:
    """The gate of the own task token."""
    gate = 1 / (1 + (initial.parameters.l - 1) * np.exp(-state["x"]))
    return {"gate": (("time", "expert"), gate, "gate mass of the own task token where it is selected")}


def constants(initial: Initial) -> Labelled:
    """The constants of the reduction."""
    reduced = reduce(initial)
    return {
        "delta_0": (("expert",), reduced["delta"], "initial activation on the own task token less that on the others"),
        "m_eff": (("expert",), reduced["m_eff"], "active neurons: own ones and 1/N of the irrelevant ones"),
    }


def invariants(initial: Initial, state: Mapping[str, np.ndarray]) -> dict[str, float]:
    """The largest change of the first integral, where no gap has closed (the reduction ends there)."""
    if initial.parameters.eta_e <= 0:
        return {}
    values = first_integral(initial, state["x"], state["D_own"])
    alive = (state["x"] >= 0).all(axis=0)
    return {"first_integral": float(np.abs(values - values[0])[:, alive].max(initial=0.0))}


def summarise(initial: Initial, run: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Gaps at the end and the times at which they reached log l."""
    return {"x_final": [float(v) for v in run["x"][-1]], "T_gap": [float(v) for v in run["T_gap"]]}
