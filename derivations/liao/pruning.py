"""Greedy pruning after feature learning (Theorem 2): from the closed form of the loss, or from N samples.

    L_S = sum_{i, i' kept} K_ii' - 2 sum_{i kept, j} K_ij* + sum_{j, j'} K_j*j'*        (no factor 1/2 here)

Starting from all experts, the one whose removal gives the smallest loss is removed, as long as the loss decreases.
"""

import dataclasses

import numpy as np

from derivations.contract import Initial, MapResult
from derivations.equations.rounding import mean_square
from derivations.liao.overlaps import assemble_gram
from derivations.vectors import root


@dataclasses.dataclass(frozen=True)
class Pruning:
    """Result of greedy pruning: remaining experts, removed experts in order, and the loss at each removal."""

    kept: np.ndarray
    removed: np.ndarray
    losses: np.ndarray


def kernel_matrix(initial: Initial) -> np.ndarray:
    """K (m + m_star, m + m_star): E[h_a h_b] of all expert outputs, students first, in closed form."""
    from derivations.equations.interpreter import Evaluator  # this import loads SymPy
    from derivations.liao.tiers import prune

    stated = prune.statement(initial.parameters, "exact")
    kept = {"kept": np.ones(initial.parameters.m)}
    found = Evaluator(stated, {**stated.numbers(initial), **initial.state, **kept}).values
    return np.block([[found["K_ss"], found["K_st"]], [found["K_st"].T, found["K_tt"]]])


def sample_matrix(initial: Initial, samples: int, rng: np.random.Generator, block: int = 4096) -> np.ndarray:
    """The empirical K (m + m_star, m + m_star) from `samples` fresh inputs, through the model's own functions."""
    from derivations.liao import model

    p = initial.parameters
    kind = model.KINDS[p.gate]
    factor = root(assemble_gram(initial.state, initial.constants["teacher_gram"]))
    total = np.zeros((p.m + p.m_star, p.m + p.m_star))
    done = 0
    while done < samples:
        size = min(block, samples - done)
        fields = factor @ rng.standard_normal((len(factor), size))
        v = np.concatenate([fields[: p.m], fields[2 * p.m : 2 * p.m + p.m_star]])
        w = np.concatenate([fields[p.m : 2 * p.m], fields[2 * p.m + p.m_star :]])
        outputs = model.gate(v, kind, p.temperature) * model.nonlinearity(w, p.degree)[0]
        total += outputs @ outputs.T
        done += size
    return total / samples


def greedy_prune(matrix: np.ndarray, m: int) -> Pruning:
    """Remove experts one by one while the loss of the rest decreases. Source: Liao & Kyrillidis 2026, equation (8)."""
    signed = np.concatenate([np.ones(m), -np.ones(len(matrix) - m)])
    kept, removed = list(range(m)), []

    def loss() -> float:
        terms = signed[:, None] * matrix * signed
        return float(mean_square(terms.sum(), np.abs(terms).sum(), np.where))

    losses = [loss()]
    while kept:
        residual = matrix @ signed
        # Dropping expert r takes h_r out of the residual f_S - f*: L changes by K_rr - 2 (K signed)_r.
        change = np.array([matrix[r, r] - 2 * residual[r] for r in kept])
        best = int(np.argmin(change))
        if change[best] >= 0:
            break
        r = kept.pop(best)
        removed.append(r)
        signed[r] = 0.0
        losses.append(loss())
    return Pruning(np.array(kept, int), np.array(removed, int), np.array(losses))


def apply(initial: Initial, rng: np.random.Generator) -> MapResult:
    """Prune greedily: the state of the remaining experts, the removed experts, and the loss at each removal."""
    p = initial.parameters
    samples = p.prune_samples
    matrix = sample_matrix(initial, samples, rng) if samples else kernel_matrix(initial)
    pruning = greedy_prune(matrix, p.m)
    kept = pruning.kept
    state = {name: initial.state[name][kept] for name in ("gamma1", "gamma2", "zeta1", "zeta2")}
    state |= {name: initial.state[name][np.ix_(kept, kept)] for name in ("I1", "I2", "I3")}
    constants = {name: initial.constants[name][kept] for name in ("norm_v", "norm_w")}
    constants["teacher_gram"] = initial.constants["teacher_gram"]
    after = Initial(dataclasses.replace(p, m=int(kept.size)), state, constants, initial.scale)
    extras = {
        "kept": (("kept_expert",), kept, "experts kept, by their number before pruning"),
        "removed": (("removal",), pruning.removed, "experts removed, in order"),
        "pruning_loss": (("pruning_step",), pruning.losses, "E (f_S - f*)^2 before each removal and at the end"),
    }
    summary = {
        "experts_before": p.m,
        "removed": int(pruning.removed.size),
        "kept": [int(k) for k in kept],
        "squared_error_before": float(pruning.losses[0]),
        "squared_error_after": float(pruning.losses[-1]),
    }
    ended = "" if kept.size else "pruning removed every expert: each of them made the loss larger; none is left to tune"
    return MapResult(after, extras, summary, {"expert": kept, "expert_": kept}, ended)
