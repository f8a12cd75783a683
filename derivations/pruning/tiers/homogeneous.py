"""Tier homogeneous: all irrelevant patterns equal, two numbers per expert, with a first integral.

    dx/dt = (eta_r/2) (1 + 1/N) G (1 - G) (delta_0 + m_eff D),   dD/dt = (eta_e/2) G,   G = 1/(1 + (l - 1) e^-x)

for every expert s. x is the gap of the expert's task token over the irrelevant ones, delta_0 the initial difference of
activations, and m_eff = m_plus(own) + m_plus(q)/N counts active neurons.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Crossing, Equations, Initial, Labelled, Observables
from derivations.equations.tier import equations_of
from derivations.pruning.parameters import Parameters
from derivations.pruning.statements.parts import CLOCK, ETA_E, ETA_R, GATE, NOTATION, PAPER, TOKENS, K, S
from derivations.statement import Base, Equation, Example, Named, Statement, Step, sp

N = sp.Symbol("N", integer=True, positive=True)
X, D, DELTA, ACTIVE = map(Base, ("x", "D_own", "delta_0", "m_eff"))
AT = "equations (14) to (19); the reduction is ours"
ANY = (-np.inf, np.inf)


def equations(p: Parameters) -> Equations:
    """The equations of the tier, generated from its statement."""
    return equations_of(statement(p, "tune"))


def statement(p: Parameters, stage: str) -> Statement:
    """State the tier of a stage; experts have the index `S`, of `K` values."""
    mass = GATE["G"](X[S], TOKENS)
    pull = DELTA[S] + ACTIVE[S] * D[S]
    kept = X[S] + sp.exp(X[S]) / (TOKENS - 1)
    kept -= ETA_R * (1 + 1 / N) / ETA_E * (DELTA[S] * D[S] + ACTIVE[S] * D[S] ** 2 / 2)
    return Statement(
        tier="homogeneous",
        name=f"pruning, {stage}, homogeneous",
        title="all irrelevant patterns alike, two numbers per expert",
        source=f"{PAPER}, {AT}",
        clock=CLOCK + "; linear loss 1 - y f",
        validity="exact where all irrelevant patterns have the same logits and activations, the other task token is "
        "never selected, no neuron is switched off, and until the gap falls below 0",
        neglects="differences between irrelevant patterns, and neurons that are switched off",
        indices=[((S,), "experts")],
        sizes={"k": p.k},
        state=(
            Named(
                X[S],
                "gap of the own task logit over the mean irrelevant one",
                dims=("expert",),
                bounds=ANY,
                symbol="<w_s, o - q>",
            ),
            Named(D[S], "displacement of the active neurons at the own task pattern", dims=("expert",), bounds=ANY),
        ),
        constants=(
            Named(K, "experts", 2),
            Named(N, "irrelevant patterns", p.N),
            Named(TOKENS, "tokens kept", p.l),
            Named(ETA_R, "rate of the routers", 0.01 if p.eta_r < 0 else p.eta_r),
            Named(ETA_E, "rate of the experts", p.eta_e),
            Named(DELTA[S], "initial difference of activations", "np.full(k, 0.1)"),
            Named(ACTIVE[S], "active neurons; those of irrelevant patterns are weighted by 1/N", "np.full(k, 10.0)"),
        ),
        bind=bind,
        begin=begin,
        definitions=(GATE,),
        equations=(
            Equation(X[S], ETA_R / 2 * (1 + 1 / N) * mass * (1 - mass) * pull, AT),
            Equation(D[S], ETA_E / 2 * mass, AT),
        ),
        conserved=(Step(Base("Q")[S], kept, "along every solution"),),
        crossings=(
            Crossing("T_gap", "x", float(np.log(p.l)), meaning="first time the gap reaches log l"),
            Crossing("T_death", "x", 0.0, -1, meaning="time at which the task token becomes unselected for ever"),
        ),
        observables=Observables(observe=observe, constants=constants, invariants=invariants, summary=summarise),
        notation=NOTATION,
        example=Example('start = {"x": np.linspace(0.1, 0.3, k), "D_own": np.zeros(k)}', "x", 1.6, 2000.0),
    )


def reduce(initial: Initial) -> dict[str, np.ndarray]:
    """x, delta_0 and m_eff (k,) of an initial condition, the irrelevant patterns averaged with their probabilities."""
    p, c, s = initial.parameters, initial.constants, initial.state
    own = np.where(np.asarray(c["a"]) > 0, 0, 1)
    row, pi = np.arange(p.k), np.asarray(c["pi"])
    sigma, active = np.maximum(s["u"], 0.0).sum(1), (s["u"] >= 0).sum(1)
    return {
        "x": s["h"][row, own] - s["h"][:, 2:] @ pi,
        "delta": sigma[row, own] - sigma[:, 2:] @ pi,
        "m_eff": active[row, own] + active[:, 2:] @ pi / p.N,
    }


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    p, reduced = initial.parameters, reduce(initial)
    numbers = {"k": p.k, "N": p.N, "l": p.l, "eta_r": p.router_rate, "eta_e": p.eta_e}
    return {**numbers, "delta_0": reduced["delta"], "m_eff": reduced["m_eff"]}


def begin(initial: Initial) -> Mapping[str, np.ndarray]:
    """The initial gap x, and D = 0.  A state of this tier is returned unchanged."""
    if "x" in initial.state:
        return initial.state
    return {"x": reduce(initial)["x"], "D_own": np.zeros(initial.parameters.k)}


def first_integral(initial: Initial, x: np.ndarray, D: np.ndarray) -> np.ndarray:
    """x + e^x/(l - 1) - (eta_r (1 + 1/N)/eta_e) (delta_0 D + m_eff D^2/2), per expert (the last axis)."""
    p, reduced = initial.parameters, reduce(initial)
    factor = float(p.router_rate) * (1.0 + 1.0 / p.N) / float(p.eta_e)
    return x + np.exp(x) / (p.l - 1) - factor * (reduced["delta"] * D + reduced["m_eff"] * D**2 / 2)


def observe(initial: Initial, state: Mapping[str, np.ndarray]) -> Labelled:
    """The gate of the expert's task token."""
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
    """The largest change of the first integral before any gap has closed (the reduction ends there)."""
    if initial.parameters.eta_e <= 0:
        return {}
    values = first_integral(initial, state["x"], state["D_own"])
    alive = (state["x"] >= 0).all(axis=0)
    return {"first_integral": float(np.abs(values - values[0])[:, alive].max(initial=0.0))}


def summarise(initial: Initial, run: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Gaps at the end and the times at which they reached log l."""
    return {"x_final": [float(v) for v in run["x"][-1]], "T_gap": [float(v) for v in run["T_gap"]]}
