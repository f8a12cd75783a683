"""Tier R3: a global task whose clusters cancel, alone: xi and the difference of two means, at leading order."""

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.contract import Code, Component, Crossing, Dense, Equations, Initial, Layout, Observables, Smooth, Tier
from derivations.kawata import population, summary
from derivations.kawata.parameters import ACTIVATIONS, Parameters, count, exponent, links, weights_of_global

STATE = (
    Component("xi", ("neuron",), symbol="xi", meaning="global alignment w . w*_g"),
    Component("dn", ("neuron",), (-2.0, 2.0), "nu_1 - nu_2", "difference of the overlaps with the two means"),
)


def equations(parameters: Parameters, tier: str = "R3") -> Equations:
    """xi' = k A dn xi^(k-1), dn' = 2 A xi^k, which conserves xi^2/k - dn^2/2."""
    level, neurons = parameters.threshold, count(parameters)
    return Equations(
        about=Tier(
            name=tier,
            validity="leading order in small overlaps of a neuron that no local task pulls, C = 2 and s = (s, -s)",
            neglects="the local tasks, the projection on the sphere, and higher orders in rho nu",
        ),
        advance=Smooth(),
        code=Code(
            structure="kawata_hidden",
            kernels=_kernels,
            loops=("derivations.kawata.hidden:flow",),
            roles={"flow": "flow"},
            arrays=arrays,
        ),
        state=STATE,
        layout=Layout((Dense("xi", (neurons,)), Dense("dn", (neurons,)))),
        arguments=arguments,
        begin=lambda initial: {"xi": initial.state["xi"], "dn": difference(initial)},
        crossings=(
            Crossing("T_xi", "xi", level, absolute=True, meaning=f"first time |xi| reaches {level:g}"),
            Crossing(
                "T_end",
                "xi",
                0.999,
                absolute=True,
                terminal=True,
                reason="an entry of xi reached 0.999, where the leading order no longer holds",
                meaning="first time |xi| reaches 0.999",
            ),
        ),
        observables=Observables(
            constants=population.constants,
            invariants=functools.partial(invariants, k=exponent(parameters)),
            summary=summary.summarise,
        ),
    )


def difference(initial: Initial) -> np.ndarray:
    """nu_1 - nu_2."""
    if "dn" in initial.state:
        return np.asarray(initial.state["dn"], float)
    nu = initial.state["nu"]
    return nu[:, 0] - nu[:, 1]


def rates(initial: Initial) -> np.ndarray:
    """A = lambda p rho sqrt(k+1) alpha_{k+1}(b) s_1 gamma_k of every neuron."""
    from derivations.kawata.arrays import shifted

    p, c = initial.parameters, initial.constants
    k = exponent(p)
    alpha = shifted(np, ACTIVATIONS.index(p.activation), c["a"], c["b"], c["sigma"], k + 1)[k + 1]
    gamma = links(p)[-1][k] if len(links(p)[-1]) > k else 0.0
    return c["share"][:, 0] / (p.J * p.C) * p.rho * math.sqrt(k + 1) * alpha * weights_of_global(p)[0] * gamma


def arguments(initial: Initial) -> tuple[Any, ...]:
    """k and the rates of the neurons."""
    return (exponent(initial.parameters), rates(initial))


def invariants(initial: Initial, state: Mapping[str, np.ndarray], k: int) -> dict[str, float]:
    """The largest change of xi^2/k - dn^2/2, relative to the largest of its terms."""
    energy = state["xi"] ** 2 / k - state["dn"] ** 2 / 2
    scale = np.abs(state["xi"]).max() ** 2 / k + np.abs(state["dn"]).max() ** 2 / 2
    return {"energy_change": float(np.abs(energy - energy[0]).max() / scale)}


def _kernels() -> Any:
    from derivations.kawata.kernels import hidden_kernels

    return hidden_kernels()


hidden: Callable[..., tuple[float, ...]]


def flow(t, y, k, rates):
    """dy/dt of all neurons, y = (xi, dn)."""
    n = rates.size
    out = np.empty(2 * n)
    S = np.empty((1, 1))
    for j in range(n):
        x = y[j]
        power = 1.0
        for _ in range(k - 1):
            power *= x
        d_xi, d_dn = hidden(S, 0, rates[j], 1.0 * k, y[n + j], x, power)
        out[j] = d_xi
        out[n + j] = d_dn
    return out


def arrays(xp: Any, kernels: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """`flow` from array operations."""

    def flow(t, y, k, rates):
        n = rates.shape[0]
        xi, dn = y[:n], y[n:]
        return xp.concatenate(kernels["hidden"]([], rates, float(k), dn, xi, xi ** (k - 1)))

    return {"flow": flow}
