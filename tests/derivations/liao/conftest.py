"""Random states and explicit vectors shared by the tests of system `liao`."""

import dataclasses

import numpy as np
import pytest

from derivations.liao import initial
from derivations.liao.parameters import Parameters


@dataclasses.dataclass(frozen=True)
class Vectors:
    """Explicit weights with their initial condition."""

    parameters: Parameters
    arrays: dict[str, np.ndarray]
    initial: object


def make_vectors(m=3, m_star=2, d=7, seed=0, norms=(0.6, 1.5), **parameters) -> Vectors:
    """Random student rows of unequal norms with v.w != 0, beside an orthonormal teacher, at small d."""
    rng = np.random.default_rng(seed)
    teacher = np.linalg.qr(rng.normal(size=(d, 2 * m_star)))[0].T
    students = rng.normal(size=(2 * m, d))
    students *= rng.uniform(*norms, size=(2 * m, 1)) / np.linalg.norm(students, axis=1, keepdims=True)
    arrays = {"V": students[:m], "W": students[m:], "V_star": teacher[:m_star], "W_star": teacher[m_star:]}
    resolved = Parameters(m=m, m_star=m_star, d=d, **parameters)
    return Vectors(resolved, arrays, initial.enter(resolved, arrays, np.random.default_rng(0)))


@pytest.fixture
def vectors():
    """A factory of explicit vectors."""
    return make_vectors


@pytest.fixture
def random_overlaps():
    """A correlation matrix (4, 4) of (v1, v2, w1, w2) with sizeable overlaps."""

    def make(seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(4, 5))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows @ rows.T

    return make
