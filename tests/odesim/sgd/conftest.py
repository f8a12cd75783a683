"""Samples of Gram matrices after a few steps: from our engines, and from plain NumPy written here."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).parent))  # bare_models is imported by name, by us and by compiled code


def liao_step(V, W, v_star, w_star, X, step):
    """One SGD step of the paper's model on replicas (R, m, d) and samples X (R, B, d), written from the set-up."""
    a, b = np.linalg.norm(V, axis=2, keepdims=True), np.linalg.norm(W, axis=2, keepdims=True)
    unit_v, unit_w = V / a, W / b
    gate = 1 / (1 + np.exp(-np.einsum("rbd,rmd->rbm", X, unit_v)))
    field = np.einsum("rbd,rmd->rbm", X, unit_w)
    cubic, slope = field**3 - 3 * field, 3 * field**2 - 3
    target = (1 / (1 + np.exp(-X @ v_star.T)) * ((X @ w_star.T) ** 3 - 3 * (X @ w_star.T))).sum(2)
    residual = ((gate * cubic).sum(2) - target)[:, :, None]
    grad_v = np.einsum("rbm,rbd->rmd", residual * gate * (1 - gate) * cubic, X) / X.shape[1]
    grad_w = np.einsum("rbm,rbd->rmd", residual * gate * slope, X) / X.shape[1]
    grad_v -= (grad_v * unit_v).sum(2, keepdims=True) * unit_v
    grad_w -= (grad_w * unit_w).sum(2, keepdims=True) * unit_w
    return V - step * grad_v / a, W - step * grad_w / b


def plain_liao(rows, m, m_star, d, batch, step, steps, replicas, *, seed):
    """Raw Gram matrices (R, n, n) after explicit SGD in plain NumPy from the given rows (n, d)."""
    rng = np.random.default_rng(seed)
    v_star, w_star = rows[2 * m : 2 * m + m_star], rows[2 * m + m_star :]
    grams = []
    chunk = max(1, int(2e6 // (batch * d)))
    for first in range(0, replicas, chunk):
        count = min(chunk, replicas - first)
        V, W = (np.tile(part, (count, 1, 1)) for part in (rows[:m], rows[m : 2 * m]))
        for _ in range(steps):
            V, W = liao_step(V, W, v_star, w_star, rng.standard_normal((count, batch, d)), step)
        everything = np.concatenate([V, W, np.tile(rows[2 * m :], (count, 1, 1))], axis=1)
        grams.append(everything @ np.swapaxes(everything, 1, 2))
    return np.concatenate(grams)


def start_rows(m, m_star, d, seed=0):
    """Students N(0, I/d), not orthogonal to each other, beside an orthonormal teacher (n, d)."""
    rng = np.random.default_rng(seed)
    teacher = np.linalg.qr(rng.normal(size=(d, 2 * m_star)))[0].T
    return np.vstack([rng.normal(size=(2 * m, d)) / math.sqrt(d), teacher])


def moving_entries(grams):
    """The entries of Gram matrices (R, n, n) that an SGD step can change: one triangle, no frame-frame block."""
    moves = np.ptp(grams, axis=0) > 0
    return grams[:, np.triu(moves)]


def smallest_p(first, second):
    """The smallest two-sample Kolmogorov-Smirnov p-value over entries, and Bonferroni's corrected one."""
    values = np.array([stats.ks_2samp(a, b).pvalue for a, b in zip(first.T, second.T, strict=True)])
    return float(values.min()), float(min(1.0, values.min() * values.size))


@pytest.fixture(scope="session")
def engine():
    """Gram matrices (R, n, n) after `steps` steps of one of our engines, all replicas from one Gram matrix."""

    def run(kind, gram, batch, step, steps, replicas, *, d, seed=1, freedom=None, **parameters):
        from derivations.liao.model import MODEL
        from derivations.liao.parameters import Parameters

        made = Parameters(d=d, **parameters)
        return run_engine(kind, MODEL, made, gram, batch, step, steps, replicas, seed=seed, freedom=freedom)

    return run


def run_engine(kind, model, parameters, gram, batch, step, steps, replicas, *, seed, freedom=None):
    """As the fixture, for any model; `freedom` is a wrong dimension for the orthogonal part (a control)."""
    from odesim.sgd.engines import NumbaChains, TracedReplicas
    from odesim.sgd.simulation import explicit_rows

    grams = np.tile(gram, (replicas, 1, 1))
    d = freedom or parameters.d
    if kind == "numba":
        made = NumbaChains(model, parameters, grams, d, batch, step, seed, threads=1)
    elif kind == "jax":
        made = TracedReplicas(model, parameters, grams, d, batch, step, seed)
    else:
        rows = explicit_rows(model, None, grams, d, model.sizes(parameters)[0])
        made = TracedReplicas(model, parameters, grams, d, batch, step, seed, rows=rows, dtype=kind)
    assert made.advance(steps)
    return made.grams()
