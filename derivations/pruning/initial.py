"""Initial condition of a run: alignments with the patterns, random, from weights, or from a stage."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, UsageError
from derivations.pruning.parameters import Parameters, check

ARRAYS = ("w", "W", "a")
OPTIONAL = ("P", "pi", "tokens", "y")
ORTHONORMAL = 1e-8
"""Largest distance of the Gram matrix of the patterns in a file from the identity."""
KINDS = ("important", "missigned", "weak", "neutral")


def enter(parameters: Parameters, previous: Mapping[str, np.ndarray] | None, rng: np.random.Generator) -> Initial:
    """The initial condition: random (`previous` is None), from weights, or from the end of an earlier stage."""
    if previous is None:
        return pretrained(parameters, rng) if parameters.init == "pretrained" else random(parameters, rng)
    if "w" in previous:
        return from_weights(parameters, previous)
    return from_stage(parameters, previous)


def signs(k: int) -> np.ndarray:
    """Head signs: +1 for the first half of the experts, -1 for the second."""
    return np.where(np.arange(k) < k // 2, 1.0, -1.0)


def law(parameters: Parameters) -> np.ndarray:
    """pi (N,): the probability of every irrelevant pattern."""
    weight = np.arange(1, parameters.N + 1, dtype=float) ** -parameters.zipf
    return weight / weight.sum()


def random(parameters: Parameters, rng: np.random.Generator) -> Initial:
    """Gaussian weights: routers N(0, router_std^2), neurons N(0, neuron_std^2), as in the synthetic experiment.

    Source: Chowdhury et al. 2024, section 5.1.
    """
    p = parameters
    h = p.router_std * rng.standard_normal((p.k, p.d))
    u = p.neuron_std * rng.standard_normal((p.k, p.m, p.d))
    return from_alignments(p, h, u, signs(p.k))


def kinds(parameters: Parameters) -> list[str]:
    """The kind of every expert of one sign group: important, then mis-signed, weak, and neutral ones."""
    p = parameters
    given = [KINDS[0]] * p.important + [KINDS[1]] * p.missigned + [KINDS[2]] * p.weak
    return given + [KINDS[3]] * (p.k // 2 - len(given))


def pretrained(parameters: Parameters, rng: np.random.Generator) -> Initial:
    """Experts of given proficiency: those of Theorem 4.3's assumptions.

    Router logits of irrelevant patterns are N(0, r^2/d), r = router_norm log l; a task logit is the quantile with the
    requested proficiency, at least C_p away from every irrelevant one. An important expert selects the task token of
    its class, a mis-signed one that of the other class, a neutral one none. Neurons are N(0, C_2^2/d).
    """
    p, pi = parameters, law(parameters)
    h = np.empty((p.k, p.d))
    for s in range(p.k):
        own, kind = int(s >= p.k // 2), kinds(p)[s % (p.k // 2)]
        chance = {"important": p.p_important, "missigned": p.p_important, "weak": p.c0 / p.d, "neutral": 0.0}[kind]
        task = 1 - own if kind == "missigned" else own
        h[s] = router(p, pi, task, min(1.0, chance), rng)
    u = p.C2 / np.sqrt(p.d) * rng.standard_normal((p.k, p.m, p.d))
    return from_alignments(p, h, u, signs(p.k))


def router(
    parameters: Parameters, pi: np.ndarray, task: int, proficiency: float, rng: np.random.Generator
) -> np.ndarray:
    """One router (d,): logit `task` beats irrelevant patterns of total probability `proficiency`, the other task
    none.
    """
    p = parameters
    scale = p.router_norm * np.log(p.l) / np.sqrt(p.d)
    hq = scale * rng.standard_normal(p.N)
    order = np.argsort(hq)
    level = np.concatenate([[hq[order[0]] - scale], hq[order], [hq[order[-1]] + scale]])
    beaten = int(np.argmin(np.abs(np.concatenate([[0.0], np.cumsum(pi[order])]) - proficiency)))
    at = 0.5 * (level[beaten] + level[beaten + 1])
    low = hq[order[:beaten]]
    high = hq[order[beaten:]]
    hq[order[:beaten]] = np.minimum(low, at - p.separation)
    hq[order[beaten:]] = np.maximum(high, at + p.separation)
    h = np.empty(p.d)
    h[2:] = hq
    h[task] = at
    h[1 - task] = min(hq.min(), at) - p.separation
    return h


def from_alignments(parameters: Parameters, h: np.ndarray, u: np.ndarray, a: np.ndarray, **more: np.ndarray) -> Initial:
    """The initial condition with alignments h (k, d), u (k, m, d) and head signs a (k,).

    `more` may contain `pi` (N,), `tokens` and `labels` of a table, and the squared norms `router_rest` (k,),
    `neuron_rest` (k, m) of the parts outside the span of the patterns.
    """
    h, u = np.array(h, float), np.array(u, float)
    k, m, _ = u.shape
    constants = {
        "a": np.array(a, float),
        "pi": law(parameters),
        "tokens": np.zeros((0, 1), np.int64),
        "labels": np.zeros(0),
        "router_rest": np.zeros(k),
        "neuron_rest": np.zeros((k, m)),
        "h_start": h.copy(),
        "u_start": u.copy(),
        **more,
    }
    state = {"h": h, "u": u, "D": np.zeros_like(h), "D_min": np.zeros_like(h)}
    size = float(np.sqrt(np.mean(h**2)))
    return Initial(parameters, state, constants, size if size > 0 else 1.0)


def from_weights(parameters: Parameters, arrays: Mapping[str, np.ndarray]) -> Initial:
    """The alignments of explicit weights w (k, D), W (k, m, D) with patterns P (d, D), by default the identity."""
    w, neurons, a = (np.asarray(arrays[name], float) for name in ARRAYS)
    patterns = np.asarray(arrays["P"], float) if "P" in arrays else np.eye(w.shape[1])
    more: dict[str, Any] = {}
    if "pi" in arrays:
        more["pi"] = np.array(arrays["pi"], float)
    if "tokens" in arrays:
        more["tokens"] = np.array(arrays["tokens"], np.int64)
        more["labels"] = np.array(arrays["y"], float)
    h, u = w @ patterns.T, neurons @ patterns.T
    if len(patterns) < patterns.shape[1]:
        more["router_rest"] = np.maximum((w**2).sum(-1) - (h**2).sum(-1), 0.0)
        more["neuron_rest"] = np.maximum((neurons**2).sum(-1) - (u**2).sum(-1), 0.0)
    return from_alignments(parameters, h, u, a, **more)


def from_stage(parameters: Parameters, previous: Mapping[str, np.ndarray]) -> Initial:
    """Return the initial state at the end of an earlier stage; norm changes still refer to the start of fine-tuning."""
    missing = [name for name in ("h", "u", "a") if name not in previous]
    if missing:
        raise UsageError(
            f"the earlier run lacks {', '.join(missing)}: a run of tier recursion or flow with keep_u=true can be "
            "continued"
        )
    h, u = np.asarray(previous["h"], float), np.asarray(previous["u"], float)
    names = ("pi", "tokens", "labels", "router_rest", "neuron_rest", "h_start", "u_start")
    carried = [name for name in previous if name == "expert_number" or name.startswith("score_")]
    more = {name: np.asarray(previous[name]) for name in (*names, *carried) if name in previous}
    k, m, d = u.shape
    return from_alignments(dataclasses.replace(parameters, k=k, m=m, d=d), h, u, previous["a"], **more)


def read(
    arrays: Mapping[str, np.ndarray], parameters: Parameters, explicit: frozenset[str] = frozenset()
) -> Parameters:
    """Check the arrays of an initial file and return the parameters with the sizes they imply.

    `w` (k, D) routers, `W` (k, m, D) neurons, `a` (k,) head signs; optionally `P` (d, D) orthonormal patterns in the
    order o1, o2, q_1, .. (the identity unless given), `pi` (d - 2,) chances of the irrelevant ones, and a table of
    inputs `tokens` (S, n) of pattern numbers with labels `y` (S,) for data=empirical.  Raises `UsageError`.
    """
    missing = [name for name in ARRAYS if name not in arrays]
    if missing:
        raise UsageError(
            f"the initial file lacks {', '.join(missing)}; system pruning needs the arrays {', '.join(ARRAYS)}"
        )
    extra = sorted(set(arrays) - {*ARRAYS, *OPTIONAL})
    if extra:
        raise UsageError(
            f"the initial file has unknown arrays {', '.join(extra)}; expected {', '.join(ARRAYS)} and optionally "
            f"{', '.join(OPTIONAL)}"
        )
    shapes = {"w": 2, "W": 3, "a": 1, "P": 2, "pi": 1, "tokens": 2, "y": 1}
    for name, values in arrays.items():
        _check_array(name, np.asarray(values), shapes[name])
    sizes = _sizes({name: np.asarray(values) for name, values in arrays.items()})
    for name, value in sizes.items():
        if name in explicit and getattr(parameters, name) != value:
            raise UsageError(
                f"-p {name}={getattr(parameters, name)} disagrees with the initial file, whose arrays have "
                f"{name} = {value}; leave the option out or change the file"
            )
    resized = dataclasses.replace(parameters, **sizes)
    if "pi" in arrays and parameters.zipf != 0:
        raise UsageError(
            "the initial file gives pi, but zipf also defines the probabilities of the patterns: give one of the two"
        )
    if "tokens" in arrays and resized.data != "empirical":
        raise UsageError(f"a table of tokens is for data=empirical, but data={resized.data}")
    if resized.data == "empirical" and "tokens" not in arrays:
        raise UsageError("data=empirical needs the arrays tokens (S, n) and y (S,) in the initial file")
    check(resized, drawn=False)
    return resized


def _check_array(name: str, values: np.ndarray, dimensions: int) -> None:
    if values.ndim != dimensions or values.dtype.kind not in "fiu":
        raise UsageError(
            f"{name} must be a real array with {dimensions} dimensions, but has shape {values.shape} and type "
            f"{values.dtype}"
        )
    if values.size == 0:
        raise UsageError(f"{name} is empty, with shape {values.shape}: every size must be at least 1")
    if not np.isfinite(values).all():
        raise UsageError(f"{name} has an entry that is not finite")
    if name in ("a", "y") and not (np.abs(values) == 1).all():
        raise UsageError(f"the entries of {name} must be +1 or -1")
    if name == "pi" and ((values < 0).any() or abs(float(values.sum()) - 1) > ORTHONORMAL):
        raise UsageError(f"pi must be chances that sum to 1, but sums to {float(values.sum()):.6g}")


def _sizes(arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
    k, m, width = arrays["W"].shape
    if arrays["w"].shape != (k, width) or arrays["a"].shape != (k,):
        raise UsageError(
            f"W {arrays['W'].shape} has k = {k} experts in {width} dimensions, but w has shape {arrays['w'].shape} "
            f"and a {arrays['a'].shape}: expected w (k, D), W (k, m, D), a (k,)"
        )
    d = width
    if "P" in arrays:
        patterns = np.asarray(arrays["P"], float)
        d = len(patterns)
        if patterns.shape[1] != width:
            raise UsageError(f"the patterns P have {patterns.shape[1]} dimensions, but the weights {width}")
        error = float(np.abs(patterns @ patterns.T - np.eye(d)).max())
        if error > ORTHONORMAL:
            raise UsageError(f"the rows of P must be orthonormal within {ORTHONORMAL:g}, but are off by {error:.3g}")
    if d < 3:
        raise UsageError(f"there are {d} patterns: two task patterns and at least one irrelevant one are needed")
    if "pi" in arrays and arrays["pi"].shape != (d - 2,):
        raise UsageError(f"pi must give the chances of the d - 2 = {d - 2} irrelevant patterns, but has shape "
                         f"{arrays['pi'].shape}")  # fmt: skip
    sizes = {"k": k, "m": m, "d": d}
    if ("tokens" in arrays) != ("y" in arrays):
        raise UsageError("tokens (S, n) and y (S,) describe inputs together: give both or none")
    if "tokens" in arrays:
        tokens = arrays["tokens"]
        if tokens.dtype.kind == "f" or tokens.min() < 0 or tokens.max() >= d:
            raise UsageError(f"tokens must be whole numbers from 0 to d - 1 = {d - 1}")
        if arrays["y"].shape != (len(tokens),):
            raise UsageError(f"y must have one label for each of the {len(tokens)} rows of tokens")
        sizes["n"] = tokens.shape[1]
    return sizes
