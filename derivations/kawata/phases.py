"""Phases II to IV of Algorithm 1 as stages: the gate step, retraining behind the gate, the second layer.

Source: Kawata et al. 2025, Algorithm 1 and Sections 3.2 and 4.3.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, Labelled, MapResult, UsageError
from derivations.kawata import gate, ridge
from derivations.kawata.initial import (
    draw_directions,
    draw_neurons,
    draw_overlaps,
    expert_of,
    from_arrays,
    full_gram,
    join,
    size_of,
    split,
)
from derivations.kawata.parameters import Parameters, count
from derivations.kawata.summary import LABELS

GATES = ("theta", "gate_gram", "gate_direction")
CARRIED = ("iota", "strength", "routing", "gate_norm")


def enter_gate(p: Parameters, previous: Mapping[str, np.ndarray] | None, rng: np.random.Generator) -> Initial:
    """The neurons at the end of Phase I; their directions are drawn at random if they were too many to store."""
    if previous is None:
        raise UsageError("stage phase2 starts from trained experts: give --from RUN_DIR, or run phase1,phase2")
    start = from_arrays(p, previous, previous["share"] if "share" in previous else None)
    gate.require_all(start.parameters)
    if "directions" not in start.constants:
        # The flow does not change the direction of a neuron outside the frame, so this is still uniform.
        directions = draw_directions(count(start.parameters), p.d - size_of(p), rng)
        start = dataclasses.replace(start, constants={**start.constants, "directions": directions})
    return start


def step_gate(initial: Initial, rng: np.random.Generator) -> MapResult:
    """One step of the gate from zero, by the population gradient or from `gate_samples` samples."""
    p = initial.parameters
    without = {name: value for name, value in initial.constants.items() if name not in (*LABELS, *GATES)}
    if p.gate_time:
        vectors = gate.follow_gate(initial)
    else:
        vectors = gate.gate_vectors(initial, full_gram(initial.state, without), rng)
    found = {**vectors, **gate.routing(p, vectors["theta"], vectors["gate_gram"]), "strength": gate.strengths(initial)}
    after = dataclasses.replace(initial, constants={**without, **found})
    chosen = gate.assigned(p, found["iota"])
    probability = found["routing"]
    right = probability[np.arange(p.M), chosen]
    wrong = np.where(np.arange(p.C)[None] == chosen[:, None], np.nan, probability)
    summary = {
        "experts": p.M,
        "experts_of_cluster": [int((chosen == c).sum()) for c in range(p.C)],
        "clusters_covered": len(set(chosen[right > 0.5].tolist())),
        "right_active": float(right.mean()),
        "wrong_active": float(np.nanmean(wrong)) if p.C > 1 else 0.0,
        "gate_samples": p.gate_samples,
    }
    return MapResult(after, {}, summary)


def enter_retraining(p: Parameters, previous: Mapping[str, np.ndarray] | None, rng: np.random.Generator) -> Initial:
    """Phase III: fresh directions and signs behind the constant gate (or perfect routing); a file's neurons are kept.

    A neuron gets samples of cluster c with the probability that its expert's gate is active there.
    """
    p = widened(p)
    kept = previous is not None and "kappa" in previous and "strength" not in previous
    if previous is None and p.routing == "gate":
        raise UsageError(
            "stage phase3 needs a gate: run phase1,phase2,phase3, give --from RUN_DIR, or -p routing=perfect"
        )
    if kept and previous is not None:
        start = from_arrays(p, previous)
        if p.routing == "gate" and "theta" not in start.constants:
            raise UsageError("the initial file lacks theta (M, 2C + 1), which stage phase3 with routing=gate needs")
    else:
        start = redraw(p, previous, rng)
    found = dict(start.constants)
    found["share"] = shares(start.parameters, found)
    return dataclasses.replace(start, constants=found)


def widened(p: Parameters) -> Parameters:
    """The parameters from Phase III on, with experts of possibly another width."""
    return dataclasses.replace(p, J=p.width3, neurons=0) if p.width3 else p


def redraw(p: Parameters, previous: Mapping[str, np.ndarray] | None, rng: np.random.Generator) -> Initial:
    """Uniformly random neurons for given frame and gates; biases are unchanged unless `redraw_bias`."""
    gram = np.asarray(previous["gram"], float) if previous is not None else np.eye(size_of(p))
    neurons = count(p)
    state = draw_overlaps(p, neurons, gram, rng)
    constants = {**draw_neurons(p, neurons, rng), "gram": gram}
    if previous is not None:
        if not p.redraw_bias and len(previous["b"]) == neurons:
            constants |= {name: np.array(previous[name], float) for name in ("b", "sigma")}
        constants |= {name: np.array(previous[name], float) for name in CARRIED if name in previous}
    if previous is not None and "theta" in previous and p.routing == "gate":
        constants |= {name: np.array(previous[name], float) for name in ("theta", "gate_gram")}
        constants |= draw_beside_gates(constants, neurons, p.d - len(gram), rng)
    else:
        constants["directions"] = draw_directions(neurons, p.d - len(gram), rng)
    return Initial(dataclasses.replace(p, neurons=neurons), state, constants, p.d**-0.5)


def draw_beside_gates(
    constants: Mapping[str, np.ndarray], neurons: int, d: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Uniformly random unit vectors in the d dimensions outside the frame, and their overlaps with the gates there."""
    theta = constants["theta"]
    outside = constants["gate_gram"] - theta @ np.linalg.pinv(constants["gram"], hermitian=True) @ theta.T
    values, vectors = np.linalg.eigh(outside)
    kept = values > 1e-10 * max(values.max(initial=0.0), 1e-300)  # the gates sum to zero: one direction fewer
    axes = vectors[:, kept] * np.sqrt(values[kept])
    rank = axes.shape[1]
    g = rng.standard_normal((neurons, rank))
    rest = np.sqrt(rng.chisquare(max(d - rank, 1), neurons))
    length = np.sqrt((g * g).sum(1) + rest**2)
    g, rest = g / length[:, None], rest / length
    directions = g @ g.T + rest[:, None] * draw_directions(neurons, d - rank, rng) * rest
    np.fill_diagonal(directions, 1.0)
    return {"directions": directions, "gate_direction": axes @ g.T}


def shares(p: Parameters, constants: Mapping[str, np.ndarray]) -> np.ndarray:
    """(N, C): the probability that a sample of cluster c reaches the neuron's expert."""
    expert = expert_of(p, p.neurons)
    if p.routing == "perfect":
        return np.eye(p.C)[expert % p.C]
    return gate.routing(p, constants["theta"], constants["gate_gram"])["routing"][expert]


def enter_ridge(p: Parameters, previous: Mapping[str, np.ndarray] | None, rng: np.random.Generator) -> Initial:
    """Phase IV: the trained neurons, flipped at random, with fresh biases."""
    if previous is None:
        raise UsageError("stage phase4 starts from trained experts: give --from RUN_DIR, or --stage all")
    p = p if p.M == 1 else widened(p)
    start = from_arrays(p, previous, previous["share"] if "share" in previous else None)
    gate.require_all(start.parameters)
    constants = {
        **start.constants,
        "b": rng.uniform((p.ridge_bias or p.bias)[0], (p.ridge_bias or p.bias)[-1], start.parameters.neurons),
    }
    constants |= {name: np.array(previous[name], float) for name in CARRIED if name in previous}
    if "directions" not in constants:
        constants["directions"] = draw_directions(start.parameters.neurons, p.d - size_of(p), rng)
    if p.routing == "perfect" or p.M == 1:
        constants = {n: v for n, v in constants.items() if n not in GATES}
    flip = rng.choice([-1.0, 1.0], start.parameters.neurons)
    state = split(flip[:, None] * join(start.state), p.C)
    constants["directions"] = flip[:, None] * constants["directions"] * flip
    if "gate_direction" in constants:
        constants["gate_direction"] = constants["gate_direction"] * flip
    return dataclasses.replace(start, state=state, constants=constants)


def fit_second_layer(initial: Initial, rng: np.random.Generator) -> MapResult:
    """Ridge regression of the labels on the routed features, and the error on fresh samples."""
    result: dict[str, Any] = ridge.fit(initial, rng)
    after = dataclasses.replace(initial, constants={**initial.constants, "a": result["weights"]})
    found: Labelled = {
        "error_by_cluster": (("cluster",), result["by_cluster"], "E |F - f*| on each cluster, without label noise"),
        "second_layer": (("neuron",), result["weights"], "second-layer weights found by ridge regression"),
    }
    return MapResult(after, found, result["summary"])
