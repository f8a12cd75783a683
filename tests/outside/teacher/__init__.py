"""A sixth system, outside the package: linear students w_i learn a linear teacher v from Gaussian inputs, each alone.

    f_i(x) = w_i.x      y = v.x      loss = sum_i E (f_i - y)^2 / 2      |v| = 1

In rho_i = w_i.v and q_i = |w_i|^2 the gradient flow is rho' = 1 - rho, q' = 2 (rho - q), and the loss
sum (1 - 2 rho + q) / 2.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations import drawing
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
    Model,
    Observables,
    Smooth,
    Source,
    System,
    Tier,
    UsageError,
    parameter,
)  # fmt: skip

SOURCE = Source("Nobody", "On One Teacher", "Nowhere", 2026)


@dataclasses.dataclass(frozen=True)
class Parameters:
    """The input dimension, the number of students, and the level that counts as learned."""

    d: int = parameter(50, "input dimension", minimum=2)
    m: int = parameter(2, "number of students", minimum=1)
    level: float = parameter(0.9, "overlap that counts as learned", above=0.0, maximum=1.0)


def equations(parameters: Parameters, tier: str | None = None) -> Equations:
    """The exact flow."""
    return Equations(
        about=Tier(name="exact", validity="always", neglects=""),
        advance=Smooth(),
        code=Code(
            structure="outside_teacher",
            kernels=kernels,
            loops=(f"{__name__}:flow", f"{__name__}:loss"),
            roles={"flow": "flow", "loss": "loss"},
            arrays=arrays,
        ),
        state=(Component("rho", ("student",), meaning="w . v"), Component("q", ("student",), (0.0, 4.0))),
        layout=Layout((Dense("rho", (parameters.m,)), Dense("q", (parameters.m,)))),
        arguments=lambda initial: (1.0,),
        crossings=(Crossing("T_rho", "rho", parameters.level, meaning="time at which the teacher is found"),),
        observables=Observables(
            invariants=lambda initial, state: {
                "shortfall": float(np.max(np.maximum(state["rho"] ** 2 - state["q"], 0.0)))
            },
            summary=lambda initial, trajectory: {"final_rho": float(trajectory["rho"][-1].min())},
        ),
    )


def kernels() -> dict[str, Kernel]:
    """The functions that remain after the expectation over x."""
    import sympy

    rho, q = sympy.symbols("rho q")
    return {"pull": Kernel((), ("rho", "q"), {"d_rho": 1 - rho, "d_q": 2 * (rho - q)})}


pull: Callable[..., tuple[float, ...]]


def flow(t, y, speed):
    """dy/dt for y = (rho, q)."""
    m = y.size // 2
    out = np.empty(2 * m)
    S = np.empty((1, 1))
    for i in range(m):
        d_rho, d_q = pull(S, 0, y[i], y[m + i])
        out[i] = speed * d_rho
        out[m + i] = speed * d_q
    return out


def loss(y, speed):
    """The population loss."""
    m = y.size // 2
    return 0.5 * (m - 2.0 * y[:m].sum() + y[m:].sum())


def arrays(xp: Any, kernels: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """The same from array operations."""

    def halves(y: Any) -> tuple[Any, Any]:
        return y[: y.shape[0] // 2], y[y.shape[0] // 2 :]

    return {
        "flow": lambda t, y, speed: speed * xp.concatenate(kernels["pull"]([], *halves(y))),
        "loss": lambda y, speed: 0.5 * (1.0 - 2.0 * halves(y)[0] + halves(y)[1]).sum(),
    }


def enter(parameters: Parameters, previous: Mapping[str, np.ndarray] | None, rng: np.random.Generator) -> Initial:
    """Random directions, or the overlaps of a file or an earlier run."""
    if previous is None:
        w = rng.normal(size=(parameters.m, parameters.d))
        previous = {"rho": w[:, 0] / np.linalg.norm(w, axis=1), "q": np.ones(parameters.m)}
    state = {name: np.asarray(previous[name], float) for name in ("rho", "q")}
    return Initial(parameters, state, {}, parameters.d**-0.5)


def read(arrays: Mapping[str, np.ndarray], parameters: Parameters, explicit: frozenset[str]) -> Parameters:
    """An initial file holds rho and q."""
    if set(arrays) != {"rho", "q"}:
        raise UsageError(f"the initial file must hold rho and q, but holds {', '.join(arrays)}")
    return dataclasses.replace(parameters, m=len(arrays["rho"]))


def coefficients(fields, labels):
    """The gradients along x of (w.x - v.x)^2 / 2."""
    return fields[:-1] - fields[-1:]


def update(vv, vg, gg, step_size):
    """A plain step."""
    return 1.0 + 0.0 * vv, -step_size + 0.0 * vv


def place(initial: Initial) -> np.ndarray:
    """The Gram matrix of [w_1, .., w_m, v], the students orthogonal beside v."""
    rho = np.append(initial.state["rho"], 1.0)
    gram = np.outer(rho, rho)
    gram[np.diag_indices(len(rho) - 1)] = initial.state["q"]
    return gram


def observed(parameters: Parameters, gram: np.ndarray) -> Labelled:
    """rho and q."""
    squares = np.diagonal(gram, axis1=-2, axis2=-1)[..., :-1]
    return {"rho": (("student",), gram[..., :-1, -1], "w . v"), "q": (("student",), squares, "|w|^2")}


MODEL = Model(
    module=__name__,
    helpers=(),
    normalised=False,
    noise=(0, 0),
    sizes=lambda parameters: (parameters.m, 1),
    numbers=lambda parameters, gram: (),
    place=place,
    weights=None,
    observe=observed,
)


def statement(parameters: Parameters, tier: str) -> Any:
    """The page of `odesim derive`."""
    from derivations.statement import Base, Equation, Named, Statement, sp

    m = sp.Symbol("m", integer=True)
    i = sp.Idx("i", m)
    rho, q = Base("rho")[i], Base("q")[i]
    return Statement(
        name="teacher",
        title="linear students of one linear teacher",
        source=str(SOURCE),
        clock="t",
        validity="always",
        neglects="nothing",
        indices=[((i,), "students")],
        state=(Named(rho, "w . v"), Named(q, "squared length")),
        constants=(Named(m, "number of students", 2),),
        equations=(Equation(rho, 1 - rho, "Lemma 1"), Equation(q, 2 * (rho - q), "Lemma 1")),
        loss=sp.Sum((1 - 2 * rho + q) / 2, i),
        bind=lambda initial: {"m": initial.parameters.m},
    )


def picture(dataset: Any) -> dict[str, Any]:
    """The overlap against time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4, 3), layout="constrained")
    axis = figure.subplots()
    axis.set_label("rho")
    axis.plot(dataset["time"], dataset["rho"])
    return {"overlap": figure}


def theory(dataset: Any) -> list[drawing.Reference]:
    """The level that counts as learned, and the exact solution from rho = 0."""
    times = np.linspace(0, float(dataset["time"][-1]), 50)
    level = drawing.Reference("rho", "learned", level=drawing.parameters(dataset)["level"])
    return [level, drawing.Reference("rho", "from nothing", x=times.tolist(), y=(1 - np.exp(-times)).tolist())]


def predict(
    parameters: Parameters, arrays: Mapping[str, np.ndarray], inputs: Mapping[str, np.ndarray]
) -> Mapping[str, tuple[tuple[str, ...], np.ndarray, str]]:
    """The mean output on samples whose component along v is `t` (N,)."""
    means = np.outer(arrays["rho"], inputs["t"])
    return {"output": (("student", "sample"), means, "mean of w.x given v.x")}


SYSTEM = System(
    name="teacher",
    title="Linear students of one linear teacher",
    source=SOURCE,
    parameters=Parameters,
    presets={"wide": {"d": 1000}},
    stages=(
        Dynamics(
            name="train",
            tiers=("exact",),
            equations=f"{__name__}:equations",
            statement=f"{__name__}:statement",
            enter=f"{__name__}:enter",
            model=f"{__name__}:MODEL",
            clock="time t of the gradient flow; one SGD step advances it by the step size",
            horizon=lambda parameters: 5.0,
            meaning="gradient flow on the population loss",
        ),
    ),
    check=lambda parameters, drawn=True: None,
    read_initial=f"{__name__}:read",
    plot=f"{__name__}:picture",
    predict=f"{__name__}:predict",
    claims=f"{__name__}.claims:CLAIMS",
    numbered=f"{__name__}.claims:STATEMENTS",
    figures=f"{__name__}.figures",
    references=f"{__name__}:theory",
    sizes={"d": "d", "m": "m"},
)
