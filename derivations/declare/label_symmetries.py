"""Symmetries of a label, and the least order that they allow for any transform of it.

A rotation g of the r directions with F(g z) = F(z) is a symmetry of every transform T(F). The tensors

    E[T(F) h_alpha(z_U) z_perp],   |alpha| = a,

of order 1 in the directions outside of the known ones U are therefore invariant under g, as elements of Sym^a(U) x
perp. There are

    c_a = 1/|G| sum_g chi_a(g) chi_perp(g),   sum_a chi_a(g) t^a = 1/det(1 - t g_U)

independent invariants. If all c_a vanish, no transform has the directions at order 1. Invariants are generated in
degrees up to |G| (Noether), so that finitely many c_a are enough. At order 2 there is always |z_perp|^2.
"""

import itertools
from collections.abc import Sequence

import numpy as np

from derivations.declare.teacher_label import Label

POINTS = 400
"""Number of random points at which a symmetry is tested."""
SAME = 1e-10
"""Largest relative difference of equal labels, and of equal rotations."""
VECTORS = 4
"""Largest number of vectors of the teacher for which all permutations with signs are tried (384 for four)."""


def symmetries(label: Label) -> list[np.ndarray]:
    """Return the rotations (r, r) that permute the teacher's vectors, up to signs, and leave the label unchanged.

    They are a group. With more than four vectors, or with dependent ones, sign changes of axes are tried.
    """
    vectors = label.frame @ label.basis.T
    n, r = vectors.shape
    z = np.random.default_rng(0).normal(size=(POINTS, r))
    label_values = _values(label, z)
    maps = (
        _permutations(vectors) if n == r <= VECTORS else [np.diag(s) for s in itertools.product((1.0, -1.0), repeat=r)]
    )
    return [
        g for g in maps if np.abs(_values(label, z @ g.T) - label_values).max() <= SAME * np.abs(label_values).max()
    ]


def _permutations(vectors: np.ndarray) -> list[np.ndarray]:
    """The rotations that take every vector to another one or its negative."""
    inverse = np.linalg.inv(vectors)
    maps = []
    for order in itertools.permutations(range(len(vectors))):
        for signs in itertools.product((1.0, -1.0), repeat=len(vectors)):
            g = (inverse @ (np.array(signs)[:, None] * vectors[list(order)])).T
            if np.abs(g @ g.T - np.eye(len(g))).max() < SAME:
                maps.append(g)
    return maps


def _values(label: Label, z: np.ndarray) -> np.ndarray:
    return np.asarray(label.function(*z.T), float)


def least_orders(label: Label, steps: Sequence[np.ndarray]) -> list[int]:
    """Return the least order, 1 or 2, that any transform can have at each step; `steps` are the bases (m, r).

    >>> from derivations.declare import reading, system
    >>> from derivations.declare.teacher_label import labels
    >>> plain = {"student": {"unit": "w"}, "teacher": {"unit": "u*v*w"}}
    >>> (label,) = labels(system.system(reading.declaration(plain)).parameters())
    >>> len(symmetries(label)), least_orders(label, [np.eye(3)])  # 6 permutations, 4 even sign changes
    (24, [2])
    """
    group = symmetries(label)
    orders, known_directions = [], np.zeros((0, label.directions))
    for basis in steps:
        complement = (
            np.linalg.svd(known_directions)[2][len(known_directions) :]
            if len(known_directions)
            else np.eye(label.directions)
        )
        orders.append(1 if _has_invariant(group, known_directions, complement) else 2)
        known_directions = np.vstack([known_directions, basis])
    return orders


def _has_invariant(group: Sequence[np.ndarray], U: np.ndarray, perp: np.ndarray) -> bool:
    """Return True if Sym^a(U) x perp has an invariant vector for some a, under the symmetries that keep U."""
    stabiliser = [g for g in group if np.abs(perp @ g @ U.T).max(initial=0.0) < 1e-7]
    counts = np.zeros(len(stabiliser) + 1)
    for g in stabiliser:
        counts += np.trace(perp @ g @ perp.T) * _symmetric_characters(U @ g @ U.T, len(stabiliser))
    return bool((counts > 0.5 * len(stabiliser)).any())


def _symmetric_characters(g: np.ndarray, highest: int) -> np.ndarray:
    """The traces of Sym^a(g), a = 0 .. highest: the power series of 1/det(1 - t g)."""
    det = np.poly(g) if len(g) else np.ones(1)  # det(s - g) in decreasing powers is det(1 - t g) in increasing ones
    series = np.zeros(highest + 1)
    series[0] = 1.0
    for a in range(1, highest + 1):
        terms = min(a, len(det) - 1)
        series[a] = -sum(det[i] * series[a - i] for i in range(1, terms + 1))
    return series
