"""A system on a finite alphabet, outside the package: linear neurons learn the signs of single words.

    f(q) = sum_r u_rq      input: word q with chance pi_q ~ (q + 1)^-zipf, label y_q = +-1
    loss = E log(1 + exp(-y f))

The gradient flow u_rq' = pi_q y_q / (1 + exp(s_q)) is that of every word's margin s_q = y_q f(q) alone,
s_q' = m pi_q / (1 + exp(s_q)), so that s + e^s grows linearly: e^s = W(exp(s(0) + e^s(0) + m pi t)) with Lambert's W.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from derivations.alphabet.frame import FrameModel, FrameWeights, Samples
from derivations.alphabet.sizes import Sizes
from derivations.contract import (
    Code,
    Component,
    Crossing,
    Dense,
    Dynamics,
    Equations,
    Initial,
    Kernel,
    Labelled,
    Layout,
    Observables,
    Smooth,
    Source,
    System,
    Tier,
    UsageError,
    parameter,
)  # fmt: skip

SOURCE = Source("Nobody", "On Single Words", "Nowhere", 2026)
PLACE = ("neuron", "word")


@dataclasses.dataclass(frozen=True)
class Parameters:
    """The dictionary and the network."""

    N: int = parameter(6, "number of words", minimum=1)
    m: int = parameter(2, "number of neurons", minimum=1)
    zipf: float = parameter(1.0, "exponent of the law of words", minimum=0.0, maximum=10.0)
    level: float = parameter(0.5, "size of a weight that counts as learned", above=0.0)


class Arguments(NamedTuple):
    """The run-time arguments: chances and signs of the words, and the number of neurons."""

    chance: Any
    signs: Any
    m: int


def chances(parameters: Parameters) -> np.ndarray:
    """pi_q."""
    weights = np.arange(1.0, parameters.N + 1) ** -parameters.zipf
    return weights / weights.sum()


def equations(parameters: Parameters, tier: str | None = None) -> Equations:
    """The exact flow."""
    return Equations(
        about=Tier(name="exact", validity="always", neglects="nothing"),
        advance=Smooth(),
        code=Code(
            structure="outside_words",
            kernels=kernels,
            loops=(f"{__name__}:flow", f"{__name__}:loss"),
            roles={"flow": "flow", "loss": "loss"},
            arrays=arrays,
            takes=Arguments,
        ),
        state=(Component("u", PLACE, (-np.inf, np.inf), "u_rq", "weight of a neuron on a word"),),
        layout=Layout((Dense("u", (parameters.m, parameters.N)),)),
        arguments=lambda initial: Arguments(
            chances(initial.parameters), initial.constants["signs"], initial.parameters.m
        ),
        crossings=(
            Crossing("T_word", "u", parameters.level, absolute=True, meaning="time at which a word is learned"),
        ),
        observables=Observables(
            observe=lambda initial, state: {"margin": margin(initial, state["u"])},
            constants=lambda initial: {"signs": (("word",), initial.constants["signs"], "label of a word")},
            invariants=lambda initial, state: {"apart": float(np.ptp(state["u"] - initial.state["u"], axis=-2).max())},
            summary=lambda initial, trajectory: {"error": float((trajectory["margin"][-1] <= 0).mean())},
        ),
    )


def margin(initial: Initial, u: np.ndarray) -> tuple[tuple[str, ...], np.ndarray, str]:
    """s_q of weights (time, m, N)."""
    return ("time", "word"), u.sum(-2) * initial.constants["signs"], "margin of a word"


def kernels() -> dict[str, Kernel]:
    """The force of one word."""
    import sympy

    s = sympy.Symbol("s")
    return {"pull": Kernel((), ("s",), {"v": 1 / (1 + sympy.exp(s))})}


pull: Callable[..., tuple[float]]


def flow(t, y, p):
    """du/dt."""
    chance, signs, m = p.chance, p.signs, p.m
    N = chance.size
    out = np.empty(y.size)
    S = np.empty((1, 1))
    for q in range(N):
        s = 0.0
        for r in range(m):
            s += y[r * N + q]
        (v,) = pull(S, 0, signs[q] * s)
        for r in range(m):
            out[r * N + q] = chance[q] * signs[q] * v
    return out


def loss(y, p):
    """The population loss."""
    chance, signs, m = p.chance, p.signs, p.m
    N = chance.size
    total = 0.0
    for q in range(N):
        s = 0.0
        for r in range(m):
            s += y[r * N + q]
        total += chance[q] * np.log1p(np.exp(-signs[q] * s))
    return total


def arrays(xp: Any, kernels: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """The same from array operations."""

    def flow(t: Any, y: Any, p: Arguments) -> Any:
        (v,) = kernels["pull"]([], p.signs * y.reshape(p.m, -1).sum(0))
        return xp.concatenate([p.chance * p.signs * v] * p.m)

    def loss(y: Any, p: Arguments) -> Any:
        return (p.chance * xp.log1p(xp.exp(-p.signs * y.reshape(p.m, -1).sum(0)))).sum()

    return {"flow": flow, "loss": loss}


def enter(parameters: Parameters, previous: Mapping[str, np.ndarray] | None, rng: np.random.Generator) -> Initial:
    """Small random weights and random signs, or those of a file or an earlier run."""
    if previous is None:
        u = 0.1 * rng.normal(size=(parameters.m, parameters.N))
        previous = {"u": u, "signs": rng.choice([-1.0, 1.0], parameters.N)}
    given = {name: np.asarray(previous[name], float) for name in ("u", "signs")}
    return Initial(parameters, {"u": given["u"]}, {"signs": given["signs"]}, 0.1)


def read(arrays: Mapping[str, np.ndarray], parameters: Parameters, explicit: frozenset[str]) -> Parameters:
    """An initial file holds u and signs."""
    if set(arrays) != {"u", "signs"}:
        raise UsageError(f"the initial file must hold u and signs, but holds {', '.join(arrays)}")
    return dataclasses.replace(parameters, m=arrays["u"].shape[0], N=arrays["u"].shape[1])


def draw(uniform, cumulative, signs):
    """One word from one uniform number."""
    words = np.minimum(np.searchsorted(cumulative, uniform[0], side="right"), signs.size - 1)
    return words.reshape(1, -1), 1.0 + 0.0 * uniform, signs[words]


def activate(u):
    """The identity."""
    return u, 1.0 + 0.0 * u


def weigh(route, response, copies, labels):
    """Minus the gradient of log(1 + exp(-y f)) along the word; routers have none."""
    output = (copies * response[0]).sum(0)
    pushed = labels / (1.0 + np.exp(labels * output)) + 0.0 * response
    return pushed, 0.0 * pushed, output


def inputs(initial: Initial) -> Samples:
    """Every word once."""
    N = initial.parameters.N
    words = np.arange(N).reshape(1, N)
    return Samples(words, np.ones((1, N)), initial.constants["signs"], chances(initial.parameters))


def place(
    initial: Initial, arrays: Mapping[str, np.ndarray] | None, rng: np.random.Generator, compressed: bool
) -> FrameWeights:
    """One expert with a router that rests, in the coordinates of the words."""
    u = initial.state["u"][None].copy()
    return FrameWeights(u, np.zeros((1, u.shape[2])), np.ones(u.shape[:2]), None if compressed else np.eye(u.shape[2]))


MODEL = FrameModel(
    module=__name__,
    helpers=(),
    numbers=lambda initial: (),
    law=lambda initial: (np.cumsum(chances(initial.parameters)), initial.constants["signs"]),
    rates=lambda initial, step_size: (step_size, 0.0),
    uniforms=lambda initial: 1,
    inputs=inputs,
    place=place,
    sizes=lambda initial: Sizes(1, initial.parameters.m, 1, initial.parameters.N, initial.parameters.N, 1),
    measure=lambda initial, u, h: np.concatenate([u.ravel(), u[0].sum(0) * initial.constants["signs"]]),
    observe=lambda parameters, saved: observed(parameters, saved),
)


def observed(parameters: Parameters, saved: np.ndarray) -> Labelled:
    """Weights and margins of what was saved."""
    size = parameters.m * parameters.N
    u = saved[..., :size].reshape(*saved.shape[:-1], parameters.m, parameters.N)
    return {
        "u": (PLACE, u, "weight of a neuron on a word"),
        "margin": (("word",), saved[..., size:], "margin of a word"),
    }


def statement(parameters: Parameters, tier: str) -> Any:
    """The page of `odesim derive`."""
    from derivations.statement import Base, Equation, Named, Statement, sp

    m, N = sp.symbols("m N", integer=True)
    r, q = sp.Idx("r", m), sp.Idx("q", N)
    u, pi, y = Base("u")[r, q], Base("pi")[q], Base("y")[q]
    s = y * sp.Sum(Base("u")[r, q], r)
    return Statement(
        name="words",
        title="linear neurons learn the signs of single words",
        source=str(SOURCE),
        clock="t",
        validity="always",
        neglects="nothing",
        indices=[((r,), "neurons"), ((q,), "words")],
        state=(Named(u, "weight of a neuron on a word"),),
        constants=(Named(m, "number of neurons", 2), Named(N, "number of words", 3), Named(pi, "chance of a word", 0.3),
                   Named(y, "label of a word", 1.0)),
        equations=(Equation(u, pi * y / (1 + sp.exp(s)), "the gradient"),),
        loss=sp.Sum(pi * sp.log(1 + sp.exp(-s)), q),
        bind=lambda initial: {
            "m": initial.parameters.m, "N": initial.parameters.N, "pi": chances(initial.parameters),
            "y": initial.constants["signs"],
        },
    )  # fmt: skip


def predict(
    parameters: Parameters, arrays: Mapping[str, np.ndarray], inputs: Mapping[str, np.ndarray]
) -> Mapping[str, tuple[tuple[str, ...], np.ndarray, str]]:
    """The output on samples that are the words numbered `word` (B,)."""
    return {"output": (("sample",), arrays["u"].sum(0)[inputs["word"]], "f")}


SYSTEM = System(
    name="words",
    title="Linear neurons learn the signs of single words",
    source=SOURCE,
    parameters=Parameters,
    presets={},
    stages=(
        Dynamics(
            name="train",
            tiers=("exact",),
            equations=f"{__name__}:equations",
            statement=f"{__name__}:statement",
            enter=f"{__name__}:enter",
            model=f"{__name__}:MODEL",
            clock="time t of the gradient flow; one SGD step advances it by the step size",
            horizon=lambda parameters: 20.0,
            meaning="gradient flow on the population loss",
        ),
    ),
    check=lambda parameters, drawn=True: None,
    read_initial=f"{__name__}:read",
    predict=f"{__name__}:predict",
    claims=f"{__name__}.claims:CLAIMS",
    numbered=f"{__name__}.claims:STATEMENTS",
    sizes={"N": "N", "m": "m"},
)
