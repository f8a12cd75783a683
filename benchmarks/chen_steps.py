"""chen without its d dimensions: the population flow at defaults, and SGD on examples and on counts of them."""

from typing import Any

from benchmarks.chen_training import make_engine
from benchmarks.measure import Row, compare

BATCH, COUNTED = 16000, 10**9
NODES, FINER = (8, 6), 16
"""Nodes of each law: the default of `-p nodes=`, and those of a command without any `-p`; and the ones they err by."""
POINTS: dict[str, Any] = {"laws": "points", "P": 3}
"""Two equally likely strengths of each signal: a batch is its counts of configurations."""


def rows(quick: bool) -> list[Row]:
    """Right-hand sides of tier p3 and two steps in the coordinates of the signals, on one core."""
    return [row for nodes in NODES for row in right_hand_sides(nodes, quick)] + steps(quick)


def right_hand_sides(nodes: int, quick: bool) -> list[Row]:
    """Tier p3 at its start, and beside routers with overlaps of 0.4, with the error of its nodes there.

    That is against 16 nodes of each law: at the start all experts are chosen alike, and the rule is exact.
    """
    import numpy as np

    case, problem = population({"nodes": nodes})
    flow, y, p = problem.functions["flow"], problem.start, case.parameters
    routed = y.copy()
    routed[-2 * p.M * p.K :] = 0.4 * np.random.default_rng(0).standard_normal(2 * p.M * p.K)
    finer = population({"nodes": FINER})[1]
    slope, finest = (one.functions["flow"](0.0, routed, *one.arguments) for one in (problem, finer))
    types = p.K * (p.K - 1) * 4 * p.nodes**3
    logits = np.random.default_rng(0).standard_normal((2 * p.M, types))
    functions = {
        "start": lambda: flow(0.0, y, *problem.arguments),
        "routers": lambda: flow(0.0, routed, *problem.arguments),
        "floor": lambda: np.exp(logits),
    }
    times = compare(functions, 5 if quick else 25, budget=5.0)
    name = f"right-hand side of chen's population, M = {p.M}, J = {p.J}, K = {p.K}, {nodes} nodes a law"
    note = f"{types:,} example types; floor: two exponentials of every type and expert, NumPy"
    return [
        Row(f"{name}, start", times["start"].median, times["start"].spread, floor_seconds=times["floor"].median,
            note=f"bar 1.5 ms; {note}"),
        Row(f"{name}, beside routers", times["routers"].median, times["routers"].spread,
            error=float(np.abs(slope - finest).max() / np.abs(finest).max()), floor_seconds=times["floor"].median,
            note=f"{note}; error of the nodes, against {FINER} a law"),
    ]  # fmt: skip


def population(parameters: dict[str, Any]) -> tuple[Any, Any]:
    """The case and its problem, compiled."""
    from odesim.flow.problem import prepare
    from odesim.request.case import Case

    case = Case.build("chen", parameters)
    return case, prepare(case)


def steps(quick: bool) -> list[Row]:
    """Compressed SGD on fresh examples, and on counts, with what drawing their numbers takes as floors."""
    import numpy as np

    examples = make_engine("compressed", BATCH, data="online", P=3)
    counts = make_engine("compressed", COUNTED, data="online", **POINTS)
    experts, chance = examples.experts, counts.chance
    rng, uniforms = np.random.default_rng(0), examples.model.uniforms
    even = np.full((chance.size, experts), 1.0 / experts)

    def numbers() -> None:
        rng.random((uniforms, BATCH))
        rng.random((experts, BATCH))

    functions: dict[str, Any] = {
        "examples": lambda: examples.advance(1),
        "their floor": numbers,
        "counts": lambda: counts.advance(10),
        "their draws": lambda: rng.multinomial(rng.multinomial(COUNTED, chance), even),
    }
    times = compare(functions, 5 if quick else 25, budget=5.0)
    return [
        Row(f"chen, compressed SGD, batch {BATCH} of fresh examples, per step", times["examples"].median,
            times["examples"].spread, floor_seconds=times["their floor"].median,
            note="M = 8, J = 16, P = 3; floor: the uniform numbers of examples and of their routing noise"),
        Row(f"chen, compressed SGD, batch {COUNTED:.0e} by counts, per step".replace("e+0", "e"),
            times["counts"].median / 10, times["counts"].spread / 10, floor_seconds=times["their draws"].median,
            note=f"{chance.size} configurations; floor: their multinomial numbers, and those of their experts"),
    ]  # fmt: skip
