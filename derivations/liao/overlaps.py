"""A start of system `liao` given by overlaps: the Gram matrix of the unit vectors by blocks, at any dimension."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from derivations.contract import UsageError
from derivations.liao.parameters import Parameters, check

CROSS = ("gamma1", "gamma2", "zeta1", "zeta2")
SQUARE = ("I1", "I2", "I3")
BLOCKS = (*CROSS, *SQUARE)
OPTIONAL = ("norm_v", "norm_w", "teacher_gram")
UNIT = 1e-8
"""Largest distance of a diagonal entry from 1 and of a block from symmetry; overlaps with eight digits pass."""


def assemble_gram(state: Mapping[str, np.ndarray], teachers: np.ndarray) -> np.ndarray:
    """The Gram matrix (..., n, n) of the components, the inverse of `components`."""
    upper = np.concatenate([state["I1"], state["I3"], state["gamma1"], state["zeta1"]], axis=-1)
    lower = np.concatenate([np.swapaxes(state["I3"], -1, -2), state["I2"], state["zeta2"], state["gamma2"]], axis=-1)
    students = np.concatenate([upper, lower], axis=-2)
    m2 = state["I1"].shape[-1] * 2
    fixed = np.broadcast_to(teachers, (*students.shape[:-2], *teachers.shape))
    below = np.concatenate([np.swapaxes(students[..., m2:], -1, -2), fixed], axis=-1)
    return np.concatenate([students, below], axis=-2)


def given(arrays: Mapping[str, np.ndarray]) -> bool:
    """Return True if the arrays are overlaps."""
    return any(name in arrays for name in (*BLOCKS, *OPTIONAL))


def read(arrays: Mapping[str, np.ndarray], parameters: Parameters, explicit: frozenset[str]) -> Parameters:
    """Check a start by overlaps and return the parameters with the sizes it implies.

    `gamma1`, `gamma2`, `zeta1`, `zeta2` (m, m_star) and `I1`, `I2`, `I3` (m, m) are the blocks of the Gram matrix of
    the unit vectors; optional are the norms `norm_v`, `norm_w` (m,) (by default 1) and `teacher_gram` (2 m_star, 2
    m_star) of v*_1.., w*_1.. (by default the identity). Raises `UsageError` for blocks that are missing or do not fit,
    for diagonals that are not 1, and for overlaps that no vectors in dimension d have.
    """
    missing = [name for name in BLOCKS if name not in arrays]
    if missing:
        raise UsageError(
            f"the initial file lacks {', '.join(missing)}; a start by overlaps needs the blocks {', '.join(BLOCKS)}"
        )
    extra = sorted(set(arrays) - {*BLOCKS, *OPTIONAL})
    if extra:
        raise UsageError(
            f"the initial file has unknown arrays {', '.join(extra)}; overlaps are {', '.join(BLOCKS)} and optionally "
            f"{', '.join(OPTIONAL)}"
        )
    arrays = {name: np.asarray(values) for name, values in arrays.items()}
    m, m_star = _sizes(arrays)
    for name, value in (("m", m), ("m_star", m_star)):
        if name in explicit and getattr(parameters, name) != value:
            raise UsageError(
                f"-p {name}={getattr(parameters, name)} disagrees with the initial file, whose overlaps have "
                f"{name} = {value}; leave the option out or change the file"
            )
    resized = dataclasses.replace(parameters, m=m, m_star=m_star)
    check(resized, drawn=False)
    _check_values(arrays, m_star)
    _check_vectors(arrays, m_star, parameters.d)
    return resized


def completed(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The blocks as numbers, with norms of 1 and an orthonormal teacher as defaults."""
    m, m_star = np.asarray(arrays["gamma1"]).shape
    standard = {"norm_v": np.ones(m), "norm_w": np.ones(m), "teacher_gram": np.eye(2 * m_star)}
    return standard | {name: np.array(values, float) for name, values in arrays.items()}


def _sizes(arrays: Mapping[str, np.ndarray]) -> tuple[int, int]:
    if arrays["gamma1"].ndim != 2 or len(arrays["gamma1"]) == 0:
        raise UsageError(f"gamma1 must have shape (experts, teachers), but has {arrays['gamma1'].shape}")
    m, m_star = arrays["gamma1"].shape
    wanted = dict.fromkeys(CROSS, (m, m_star)) | dict.fromkeys(SQUARE, (m, m))
    wanted |= {"norm_v": (m,), "norm_w": (m,), "teacher_gram": (2 * m_star, 2 * m_star)}
    for name, shape in wanted.items():
        if name in arrays and arrays[name].shape != shape:
            raise UsageError(
                f"expected shape {shape} for {name}, because gamma1 has shape {arrays['gamma1'].shape}, "
                f"got {arrays[name].shape}"
            )
    return m, m_star


def _check_values(arrays: Mapping[str, np.ndarray], m_star: int) -> None:
    for name, values in arrays.items():
        if not np.isfinite(values).all():
            raise UsageError(f"array {name} holds a number that is not finite")
    for name in ("norm_v", "norm_w"):
        if name in arrays and not (arrays[name] > 0).all():
            raise UsageError(f"{name} must be positive: a direction needs a nonzero vector")
    for name in ("I1", "I2", "teacher_gram"):
        block = arrays.get(name, np.eye(2 * m_star)).astype(float)
        off = np.abs(np.diag(block) - 1)
        if (off > UNIT).any():
            k = int(off.argmax())
            raise UsageError(
                f"entry {k} of the diagonal of {name} is {block[k, k]:.10g}, but overlaps are those of unit vectors: "
                "divide by the lengths, and give these as norm_v and norm_w"
            )
        if np.abs(block - block.T).max(initial=0.0) > UNIT:
            raise UsageError(f"{name} is not symmetric, as a matrix of inner products is")


def _check_vectors(arrays: Mapping[str, np.ndarray], m_star: int, d: int) -> None:
    """Raise an error if the Gram matrix is not positive semi-definite, or has a higher rank than d."""
    whole = completed(arrays)
    values = np.linalg.eigvalsh(assemble_gram(whole, whole["teacher_gram"]))
    if values[0] < -UNIT:
        raise UsageError(
            f"no vectors have these overlaps: the smallest eigenvalue of their Gram matrix is {values[0]:.3g}, and "
            "must not be negative"
        )
    rank = int((values > UNIT).sum())
    if rank > d:
        raise UsageError(f"vectors with these overlaps span {rank} dimensions, but d = {d}: give a larger -p d=")
