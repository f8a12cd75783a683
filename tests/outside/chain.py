"""A system in one file: chains of three weights u v w that learn a number s, without input noise.

    loss = sum_i (s_i - u_i v_i w_i)^2 / 2

The gradient flow is u' = v w (s - u v w), and so on (Saxe, McClelland & Ganguli 2014, with three layers).  Tier early
keeps the target alone, as long as u v w is small.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import (
    Crossing,
    Dynamics,
    Equations,
    Initial,
    Observables,
    Source,
    System,
    UsageError,
    parameter,
)
from derivations.equations.tier import equations_of
from derivations.statement import Base, Definition, Equation, Named, Statement, sp

SOURCE = Source("Nobody", "On One Chain", "Nowhere", 2026)
N = sp.Symbol("n", integer=True)
I = sp.Idx("i", N)  # noqa: E741
U, V, W, TARGET, GAP = (Base(name)[I] for name in ("u", "v", "w", "s", "gap"))
WEIGHTS = {"u": U, "v": V, "w": W}


@dataclasses.dataclass(frozen=True)
class Parameters:
    """The number of chains, the size of their weights at the start, and the tier."""

    n: int = parameter(2, "number of chains", minimum=1)
    scale: float = parameter(0.1, "size of the weights at the start", above=0.0)
    tier: str = parameter("exact", "level of description", choices=("exact", "early"))


def statement(parameters: Parameters, tier: str) -> Statement:
    """The gradient flow, or its beginning."""
    product = U * V * W
    return Statement(
        tier=tier,
        name=f"chain, {tier}",
        title="chains of three weights",
        source="Saxe, McClelland & Ganguli 2014",
        clock="one step of size eta advances t by eta",
        validity="always" if tier == "exact" else "while u v w is much smaller than s",
        neglects="nothing" if tier == "exact" else "the part of the target that is learned",
        indices=[((I,), "chains")],
        sizes={"n": parameters.n},
        state=tuple(
            Named(x, f"weight {name}", dims=("chain",), bounds=(-np.inf, np.inf)) for name, x in WEIGHTS.items()
        ),
        constants=(Named(N, "number of chains", 2), Named(TARGET, "target of a chain", "1.0 + np.arange(n)")),
        bind=lambda initial: {"n": initial.parameters.n, "s": 1.0 + np.arange(initial.parameters.n)},
        definitions=(Definition((GAP,), TARGET - product if tier == "exact" else TARGET, "part that is not learned"),),
        equations=tuple(Equation(x, sp.Mul(*(y for y in WEIGHTS.values() if y != x)) * GAP) for x in WEIGHTS.values()),
        loss=sp.Sum((TARGET - product) ** 2 / 2, I),
        crossings=(Crossing("T_u", "u", 0.9, meaning="first time u reaches .9"),),
        observables=Observables(summary=lambda initial, run: {"u_final": [float(x) for x in run["u"][-1]]}),
    )


def equations(parameters: Parameters, tier: str | None = None) -> Equations:
    """A tier as it runs."""
    return equations_of(statement(parameters, tier or parameters.tier))


def enter(parameters: Parameters, previous: Mapping[str, np.ndarray] | None, rng: np.random.Generator) -> Initial:
    """Random positive weights, or those of a file."""
    if previous is None:
        previous = {name: parameters.scale * rng.uniform(0.5, 1.5, parameters.n) for name in WEIGHTS}
    state = {name: np.asarray(previous[name], float) for name in WEIGHTS}
    return Initial(parameters, state, {}, parameters.scale)


def read(arrays: Mapping[str, np.ndarray], parameters: Parameters, explicit: frozenset[str]) -> Any:
    """An initial file holds u, v and w."""
    if set(arrays) != set(WEIGHTS):
        raise UsageError(f"the initial file must hold u, v and w, but holds {', '.join(arrays)}")
    return dataclasses.replace(parameters, n=len(arrays["u"]))


SYSTEM = System(
    name="chain",
    title="Chains of three weights",
    source=SOURCE,
    parameters=Parameters,
    presets={},
    stages=(
        Dynamics(
            name="train",
            tiers=("exact", "early"),
            equations=f"{__name__}:equations",
            statement=f"{__name__}:statement",
            enter=f"{__name__}:enter",
            clock="time t of the gradient flow",
            horizon=lambda parameters: 20.0,
            meaning="gradient flow",
        ),
    ),
    check=lambda parameters, drawn=True: None,
    read_initial=f"{__name__}:read",
)
