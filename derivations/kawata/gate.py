"""Phase II: the gate gradient at the zero gate, its population mean in closed form and its finite-sample version.

    E[Delta theta_m] = (eta / M^2) (V_m - mean V),  V_m = E[y f_m(x) x]
    V_m = (1/CJ) sum_c sum_j { sum_i sqrt(i) alpha_{i-1} (beta_i kappa^{i-1} w*_c + s_c gamma_i xi^{i-1} w*_g)
                             + sum_i sqrt(i+1) alpha_{i+1} (beta_i kappa^i + s_c gamma_i xi^i) w_mj
                             + rho sum_i alpha_i (beta_i kappa^i + s_c gamma_i xi^i) v_c }

coefficients at rho nu_c + b.  Source: Kawata et al. 2025, Lemma C.15, whose prefactors are corrected.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, UsageError
from derivations.kawata.initial import expert_of
from derivations.kawata.parameters import ACTIVATIONS, Parameters
from derivations.kawata.population import teacher_series
from derivations.kawata.shifted import shifted
from derivations.vectors import root


def require_all(p: Parameters) -> None:
    """Raise an error for a subset of the neurons: the output of an expert needs all of them."""
    if p.neurons != p.M * p.J:
        raise UsageError(
            f"this stage needs the whole experts, M J = {p.M * p.J} neurons, but only {p.neurons} are computed: "
            "omit -p neurons in all stages"
        )


def neuron_terms(initial: Initial) -> dict[str, np.ndarray]:
    """For every neuron and cluster: `local`, `remote` (I, II), `own` (III) and `value` (H_c, IV), all (N, C)."""
    p, c = initial.parameters, initial.constants
    local, remote = teacher_series(p, c["gram"])
    kappa, nu = initial.state["kappa"], initial.state["nu"]
    xi = initial.state["xi"][:, None]
    top = local.shape[1]
    t = p.rho * nu + c["b"][:, None]
    alpha = shifted(
        np, ACTIVATIONS.index(p.activation), c["a"][:, None] + 0.0 * t, t, np.asarray(c["sigma"])[:, None, :], top
    )
    found = {name: np.zeros_like(t) for name in ("local", "remote", "own", "value")}
    for i in range(top):
        both = local[:, i] * kappa**i + remote[:, i] * xi**i
        found["value"] += alpha[i] * both
        found["own"] += math.sqrt(i + 1) * alpha[i + 1] * both
        if i > 0:
            found["local"] += math.sqrt(i) * alpha[i - 1] * local[:, i] * kappa ** (i - 1)
            found["remote"] += math.sqrt(i) * alpha[i - 1] * remote[:, i] * xi ** (i - 1)
    return found


def strengths(initial: Initial) -> np.ndarray:
    """e[m, c] = E[y f_m | c] (M, C)."""
    return per_expert(initial.parameters, neuron_terms(initial)["value"]) / initial.parameters.J


def per_expert(p: Parameters, values: np.ndarray) -> np.ndarray:
    """Sums over the neurons of each expert (M, ...)."""
    return np.eye(p.M)[expert_of(p, len(values))].T @ values


def population_gradient(initial: Initial) -> np.ndarray:
    """V_m (M, 2C + 1 + N) as coefficients of the frame and of the neurons; see the docstring of this module."""
    p, terms = initial.parameters, neuron_terms(initial)
    N, C = terms["value"].shape
    V = np.zeros((p.M, 2 * C + 1 + N))
    V[:, :C] = per_expert(p, terms["local"])
    V[:, C] = per_expert(p, terms["remote"].sum(axis=1))
    V[:, C + 1 : 2 * C + 1] = p.rho * per_expert(p, terms["value"])
    V[expert_of(p, N), 2 * C + 1 + np.arange(N)] = terms["own"].sum(axis=1)
    return V / (C * p.J)


def sampled_gradient(initial: Initial, gram: np.ndarray, samples: int, rng: np.random.Generator) -> dict[str, Any]:
    """The batch mean of y pi_k (1[k = m] - pi_m) f_k(x) x at the zero gate, k a fair draw.

    `gram` is that of [neurons, frame]. Returns `span` (M, N + 2C + 1), inner products with those vectors, and `gram`
    (M, M) of the gradients: the parts outside the span are Gaussian given the coefficients. Their Gram matrix is
    therefore a Wishart matrix with d - n degrees of freedom, and no array has length d.
    """
    from derivations.kawata import model

    p, c = initial.parameters, initial.constants
    factor = root(gram)
    n = factor.shape[1]
    args: Any = (*model.numbers(p, gram), c["a"], c["b"], c["sigma"])
    expert = expert_of(p, p.neurons)
    inside, squares = np.zeros((p.M, n)), np.zeros((p.M, p.M))
    done = 0
    while done < samples:
        size = min(50_000, samples - done)
        labels = model.draw(rng.random((2, size)), rng.standard_normal((1, size)), *args)
        y = rng.standard_normal((n, size))
        # x = z + mean: its coordinates are those of z plus the factor's rows of the means.
        y += factor[p.neurons :].T @ model.mean(labels, *args)
        fields = factor @ y
        outputs = (
            c["a"][:, None] * model.activation(fields[: p.neurons] + c["b"][:, None], c["sigma"], args[0].kind) / p.J
        )
        experts = np.eye(p.M)[expert].T @ outputs
        target = model.label(fields, labels, p.neurons, p.C, args[0].links, args[0].s)
        chosen = np.minimum((p.M * labels[p.C]).astype(int), p.M - 1)
        weight = target * experts[chosen, np.arange(size)] / p.M
        coef = weight * (np.eye(p.M)[:, chosen] - 1.0 / p.M)
        inside += coef @ y.T
        squares += coef @ coef.T
        done += size
    half = root(squares)
    outside = half @ _wishart_root(p.M, p.d - n, rng) / samples
    inside /= samples
    return {"span": inside @ factor.T, "gram": inside @ inside.T + outside @ outside.T}


def _wishart_root(size: int, freedom: int, rng: np.random.Generator) -> np.ndarray:
    """Rows whose Gram matrix is Wishart with `freedom` degrees of freedom (Bartlett's factor if it exists)."""
    if freedom < size:
        return rng.standard_normal((size, max(freedom, 0)))
    rows = np.tril(rng.standard_normal((size, size)), -1)
    rows[np.diag_indices(size)] = np.sqrt(rng.chisquare(freedom - np.arange(size)))
    return rows


def gate_vectors(initial: Initial, gram: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """theta after one step from zero: overlaps with the frame, and the gates' Gram matrix."""
    p = initial.parameters
    N = p.neurons
    if p.gate_samples:
        found = sampled_gradient(initial, gram, p.gate_samples, rng)
        theta, gates = p.eta_gate * found["span"], p.eta_gate**2 * found["gram"]
    else:
        V = population_gradient(initial)
        step = p.eta_gate / p.M**2 * (V - V.mean(axis=0))
        step = np.concatenate([step[:, 2 * p.C + 1 :], step[:, : 2 * p.C + 1]], axis=1)
        theta, gates = step @ gram, step @ gram @ step.T
    return {"theta": theta[:, N:], "gate_gram": (gates + gates.T) / 2}


def routing(p: Parameters, theta: np.ndarray, gate_gram: np.ndarray) -> Mapping[str, np.ndarray]:
    """`iota` (M, C), `gate_norm` (M,), and P(theta_m . x >= 0 | c) = Phi(rho iota / |theta_m|) (M, C)."""
    from scipy.special import ndtr

    iota, norm = theta[:, p.C + 1 :], np.sqrt(np.maximum(np.diag(gate_gram), 0.0))
    # A zero gate (one expert, or equal experts) has score zero on every sample: it is always active.
    score = np.divide(p.rho * iota, norm[:, None], out=np.full_like(iota, np.inf), where=norm[:, None] > 0)
    return {"iota": iota, "gate_norm": norm, "routing": ndtr(score)}


def assigned(p: Parameters, iota: np.ndarray) -> np.ndarray:
    """The cluster of each expert: that of its largest gate overlap (M,)."""
    return iota.argmax(axis=1)


def follow_gate(initial: Initial) -> dict[str, Any]:
    """Many gate steps: the gate overlaps with the means after the time `gate_time`, with constant experts.

        d iota[a, m]/dt = (rho/C) sum_c (v_a . v_c) sum_k P_k(c) pi_k(c) (1[k = m] - pi_m(c)) e[k, c]

    with pi the softmax of the scores rho iota[c, .] and P_k(c) the probability that expert k is chosen if Gumbel noise
    of scale `gate_noise` is added to them. The scores are replaced by their means given the cluster, and the motion of
    the gate outside the span of the means is neglected.
    """
    from scipy.integrate import solve_ivp
    from scipy.special import softmax

    p = initial.parameters
    e = strengths(initial)
    means = np.asarray(initial.constants["gram"])[p.C + 1 :, p.C + 1 :]

    def slope(t: float, y: np.ndarray) -> np.ndarray:
        scores = p.rho * y.reshape(p.M, p.C)
        pi, chosen = softmax(scores, axis=0), softmax(scores / p.gate_noise, axis=0)
        gain = chosen * pi * e
        return (p.rho / p.C * (gain - pi * gain.sum(axis=0)) @ means).ravel()

    found = solve_ivp(slope, (0.0, p.gate_time), np.zeros(p.M * p.C), "LSODA", rtol=1e-9, atol=1e-13)
    iota = found.y[:, -1].reshape(p.M, p.C)
    theta = np.concatenate([np.zeros((p.M, p.C + 1)), iota], axis=1)
    return {"theta": theta, "gate_gram": iota @ np.linalg.pinv(means, hermitian=True) @ iota.T}
