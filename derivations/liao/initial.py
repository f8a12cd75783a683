"""Initial conditions of system `liao`: random at any dimension without d-vectors, or from weights.

The state is the Gram matrix of the unit vectors [v_1..v_m, w_1..w_m, v*_1.., w*_1..], together with the conserved norms
a_i = |v_i|, b_i = |w_i|.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from derivations.contract import Initial, UsageError
from derivations.liao import overlaps
from derivations.liao.parameters import Parameters, check

ARRAYS = ("V", "W", "V_star", "W_star")
UNIT = 1e-8
"""Largest distance of the norm of a teacher row from 1; weights stored with eight digits pass."""


def enter(parameters: Parameters, previous: Mapping[str, np.ndarray] | None, rng: np.random.Generator) -> Initial:
    """The initial condition of a run: drawn with `rng`, or from `previous`.

    `previous` contains the weights of a file (V, W, V_star, W_star), its overlaps, or the components and constants of
    an earlier stage.
    """
    if previous is not None:
        return from_state(parameters, previous) if "gamma1" in previous else from_weights(parameters, previous)
    draw = {"random": draw_random, "orthogonal": draw_orthogonal}[parameters.init]
    coordinates, a, b = draw(parameters.m, parameters.m_star, parameters.d, rng)
    return from_coordinates(parameters, coordinates, a, b)


def draw_rows(m: int, m_star: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Coordinates of 2m rows N(0, I_d/d) in the basis [teachers (2 m_star), an adapted basis of the rest (2m)].

    The components along the teachers are Gaussian; the Gram matrix of the rest is Wishart with d - 2 m_star
    degrees of freedom, drawn by Bartlett's lower triangular factor.  Cost independent of d.
    """
    k, freedom = 2 * m, d - 2 * m_star
    factor = np.zeros((k, k))
    along = rng.normal(size=(k, 2 * m_star))
    factor[np.tril_indices(k, -1)] = rng.normal(size=k * (k - 1) // 2)
    factor[np.diag_indices(k)] = np.sqrt(rng.chisquare(freedom - np.arange(k)))
    return np.hstack([along, factor]) / np.sqrt(d)


def draw_random(m: int, m_star: int, d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The paper's initial condition: w_i ~ N(0, I_d/d), v_i = vhat_i minus its projection on w_i.

    Returns coordinates (2m, 2 m_star + 2m) of the unit vectors and the norms a (m,), b (m,). Source: Liao & Kyrillidis
    2026, Assumption 2.
    """
    rows = draw_rows(m, m_star, d, rng)
    v, w = rows[:m], rows[m:]
    v = v - ((v * w).sum(1) / (w * w).sum(1))[:, None] * w
    a, b = np.linalg.norm(v, axis=1), np.linalg.norm(w, axis=1)
    return np.vstack([v / a[:, None], w / b[:, None]]), a, b


def draw_orthogonal(m: int, m_star: int, d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A uniformly random orthonormal frame of 2m student vectors: every student overlap is zero, norms are one.

    The Gaussian rows of `draw_random`, orthonormalised by the Cholesky factor of their Gram matrix, are Haar
    distributed at every d, and their overlaps with the teachers tend to N(0, 1/d).
    """
    rows = draw_rows(m, m_star, d, rng)
    frame = np.linalg.solve(np.linalg.cholesky(rows @ rows.T), rows)
    return frame, np.ones(m), np.ones(m)


def from_coordinates(parameters: Parameters, coordinates: np.ndarray, a: np.ndarray, b: np.ndarray) -> Initial:
    """The initial condition of students with the given coordinates and an orthonormal teacher."""
    students, teachers = 2 * parameters.m, 2 * parameters.m_star
    unit = np.vstack([coordinates, np.eye(teachers, coordinates.shape[1])])
    gram = unit @ unit.T
    if parameters.init == "orthogonal":
        gram[:students, :students] = np.eye(students)
    return from_gram(parameters, gram, a, b)


def from_gram(parameters: Parameters, gram: np.ndarray, a: np.ndarray, b: np.ndarray) -> Initial:
    """The initial condition with a given Gram matrix (n, n), n = 2m + 2 m_star, and norms a, b (m,)."""
    gram = (gram + gram.T) / 2
    np.fill_diagonal(gram, 1.0)
    constants = {"norm_v": np.asarray(a, float), "norm_w": np.asarray(b, float)}
    constants["teacher_gram"] = gram[2 * parameters.m :, 2 * parameters.m :].copy()
    return Initial(parameters, components(gram, parameters.m, parameters.m_star), constants, parameters.d**-0.5)


def components(gram: np.ndarray, m: int, m_star: int) -> dict[str, np.ndarray]:
    """The seven blocks of overlaps of a Gram matrix (..., n, n): gamma, zeta (m, m_star) and I (m, m)."""
    v, w = slice(0, m), slice(m, 2 * m)
    v_star, w_star = slice(2 * m, 2 * m + m_star), slice(2 * m + m_star, 2 * m + 2 * m_star)
    blocks = {
        "gamma1": (v, v_star),
        "gamma2": (w, w_star),
        "zeta1": (v, w_star),
        "zeta2": (w, v_star),
        "I1": (v, v),
        "I2": (w, w),
        "I3": (v, w),
    }
    return {name: gram[..., rows, columns].copy() for name, (rows, columns) in blocks.items()}


def read(
    arrays: Mapping[str, np.ndarray], parameters: Parameters, explicit: frozenset[str] = frozenset()
) -> Parameters:
    """Check the weights or overlaps of an initial file and return the parameters with the sizes they imply.

    Overlaps are the blocks of a Gram matrix (`overlaps.read`).  `V`, `W` (m, d) are student rows of any positive norm,
    `V_star`, `W_star` (m_star, d) teacher rows of unit norm.  Raises `UsageError` for a missing array, a shape or size
    that disagrees, or a row that is zero or not finite.
    """
    if overlaps.given(arrays) and not any(name in arrays for name in ARRAYS):
        return overlaps.read(arrays, parameters, explicit)
    missing = [name for name in ARRAYS if name not in arrays]
    if missing:
        raise UsageError(
            f"the initial file lacks {', '.join(missing)}; system liao needs the arrays {', '.join(ARRAYS)}, "
            f"or the overlaps {', '.join(overlaps.BLOCKS)}"
        )
    extra = sorted(set(arrays) - set(ARRAYS))
    if extra:
        raise UsageError(f"the initial file has unknown arrays {', '.join(extra)}; expected {', '.join(ARRAYS)}")
    for name in ARRAYS:
        _check_rows(name, np.asarray(arrays[name]))
    sizes = _sizes({name: np.asarray(arrays[name]) for name in ARRAYS})
    for name, value in sizes.items():
        if name in explicit and getattr(parameters, name) != value:
            raise UsageError(
                f"-p {name}={getattr(parameters, name)} disagrees with the initial file, whose weights have "
                f"{name} = {value}; leave the option out or change the file"
            )
    resized = dataclasses.replace(parameters, **sizes)
    check(resized, drawn=False)
    return resized


def _check_rows(name: str, rows: np.ndarray) -> None:
    if rows.ndim != 2 or rows.dtype.kind not in "fiu":
        raise UsageError(
            f"{name} must be a real matrix of row vectors, but has shape {rows.shape} and type {rows.dtype}"
        )
    if not np.isfinite(rows).all():
        bad = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise UsageError(f"row {bad} of {name} is not finite: give finite weights")
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(rows.astype(float), axis=1)
    if not np.isfinite(norms).all():
        bad = int(np.flatnonzero(~np.isfinite(norms))[0])
        raise UsageError(f"row {bad} of {name} is too large: its squared norm overflows; rescale the weights")
    if (norms == 0).any():
        raise UsageError(
            f"row {int(np.flatnonzero(norms == 0)[0])} of {name} is zero: a direction needs a nonzero vector"
        )
    if name.endswith("_star") and (abs(norms - 1) > UNIT).any():
        bad = int(np.argmax(abs(norms - 1)))
        raise UsageError(
            f"row {bad} of {name} has norm {norms[bad]:.10g}, but teacher rows must have norm 1 within {UNIT:g}: "
            "normalise the teacher"
        )


def _sizes(arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
    for first, second in (("V", "W"), ("V_star", "W_star")):
        if arrays[first].shape != arrays[second].shape:
            raise UsageError(
                f"{first} and {second} must have the same shape, but have {arrays[first].shape} and "
                f"{arrays[second].shape}"
            )
    (m, d), (m_star, d_star) = arrays["V"].shape, arrays["V_star"].shape
    if d != d_star:
        raise UsageError(f"student rows have {d} entries but teacher rows have {d_star}: both live in dimension d")
    if m < 1:
        raise UsageError("V has no rows: at least one student expert is needed")
    return {"m": m, "m_star": m_star, "d": d}


def from_weights(parameters: Parameters, arrays: Mapping[str, np.ndarray]) -> Initial:
    """The initial condition of explicit weights V, W (m, d) and V_star, W_star (m_star, d)."""
    rows = np.vstack([np.asarray(arrays[name], float) for name in ARRAYS])
    norms = np.linalg.norm(rows, axis=1)
    unit = rows / norms[:, None]
    return from_gram(parameters, unit @ unit.T, norms[: parameters.m], norms[parameters.m : 2 * parameters.m])


def from_state(parameters: Parameters, previous: Mapping[str, np.ndarray]) -> Initial:
    """The initial condition with given overlaps and constants: those of a file or of an earlier stage."""
    names = overlaps.BLOCKS
    missing = [name for name in names if name not in previous]
    if missing:
        raise UsageError(f"the earlier run lacks {', '.join(missing)}: a stage continues a run of tier exact")
    previous = overlaps.completed({name: previous[name] for name in (*names, *overlaps.OPTIONAL) if name in previous})
    m, m_star = previous["gamma1"].shape
    resized = dataclasses.replace(parameters, m=m, m_star=m_star)
    constants = {name: previous[name] for name in ("norm_v", "norm_w", "teacher_gram")}
    return Initial(resized, {name: previous[name] for name in names}, constants, parameters.d**-0.5)


def greedy_matching(overlap: np.ndarray) -> np.ndarray:
    """The expert matched to each teacher (m_star,): repeatedly the largest entry of `overlap` (m, m_star).

    A teacher without a remaining expert has -1.

    Source: Liao & Kyrillidis 2026, target assignment (I(j_l*) = i_l*), on the signed raw overlaps w_i(0).w*_j.
    """
    remaining = np.array(overlap, float)
    expert = np.full(remaining.shape[1], -1)
    for _ in range(min(remaining.shape)):
        i, j = np.unravel_index(np.argmax(remaining), remaining.shape)
        expert[j] = i
        remaining[i, :] = -np.inf
        remaining[:, j] = -np.inf
    return expert
