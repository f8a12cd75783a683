"""The microscopic model of system `liao`, from the paper's set-up alone: student, teacher, loss, one SGD step.

    f(x) = sum_i pi(beta vbar_i.x) He_p(wbar_i.x)      the teacher is the same with orthonormal rows, no noise
    loss = (f(x) - f*(x))^2 / 2, averaged over a batch of fresh x ~ N(0, I_d)

Rows are normalised inside the model; the step moves the raw rows. This module contains no Hermite expansion. Source:
Liao & Kyrillidis 2026, Section 3, equations (1) to (3).
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from derivations.contract import Initial, Labelled, Model
from derivations.liao.initial import ARRAYS, components
from derivations.liao.overlaps import assemble_gram
from derivations.liao.parameters import Parameters

erf = np.vectorize(math.erf)  # bound to the compiled or traced function of the array library

KINDS = {"logistic": 0, "probit": 1}


class Numbers(NamedTuple):
    """The run-time arguments: sizes, degree, gate and its temperature, whether norms are kept, and the first norms."""

    m: int
    m_star: int
    degree: int
    kind: int
    temperature: float
    keep: int
    first: Any


def gate(z, kind, temperature):
    """pi(beta z): logistic (kind 0) or normal distribution function (kind 1)."""
    if kind == 0:
        return 1.0 / (1.0 + np.exp(-temperature * z))
    return 0.5 + 0.5 * erf(temperature * z / math.sqrt(2.0))


def gate_slope(z, value, kind, temperature):
    """d/dz pi(beta z), given its value."""
    if kind == 0:
        return temperature * value * (1.0 - value)
    return temperature * np.exp(-0.5 * (temperature * z) ** 2) / math.sqrt(2.0 * math.pi)


def nonlinearity(z, degree):
    """(He_p(z), He_p'(z)) by the three-term recurrence; He_p' = p He_{p-1}."""
    below = 1.0 + 0.0 * z
    value = 1.0 * z
    for k in range(1, degree):
        above = z * value - k * below
        below = value
        value = above
    return value, degree * below


def rows_added(x):
    """The sum of the rows (m, ...)."""
    return x.sum(0)


def coefficients(fields, labels, given):
    """The gradient of the squared error along x: r pi'(v.x) He(w.x) for routers, r pi(v.x) He'(w.x) for experts.

    `fields` (2m + 2 m_star, ...) are inner products of x with [vbar, wbar, v*, w*].
    """
    m, m_star, degree, kind, temperature = given.m, given.m_star, given.degree, given.kind, given.temperature
    v, w = fields[:m], fields[m : 2 * m]
    p = gate(v, kind, temperature)
    h, slope = nonlinearity(w, degree)
    teacher_p = gate(fields[2 * m : 2 * m + m_star], kind, temperature)
    teacher_h, _ = nonlinearity(fields[2 * m + m_star :], degree)
    residual = rows_added(p * h) - rows_added(teacher_p * teacher_h)
    return np.concatenate((residual * gate_slope(v, p, kind, temperature) * h, residual * p * slope))


def update(vv, vg, gg, step_size, given):
    """Tangent step of the raw rows: v - step/|v| (I - vbar vbar^T) g; with `keep` the first norms are restored."""
    keep, first = given.keep, given.first
    length = np.sqrt(vv)
    b = -step_size / length
    a = 1.0 - b * vg / vv
    if keep == 1:
        after = np.sqrt(a * a * vv + 2.0 * a * b * vg + b * b * gg)
        return a * first / after, b * first / after
    return a, b


def sizes(parameters: Parameters) -> tuple[int, int]:
    """2m trained vectors, 2 m_star fixed ones."""
    return 2 * parameters.m, 2 * parameters.m_star


def numbers(parameters: Parameters, gram: np.ndarray) -> tuple[object, ...]:
    """Run-time arguments of the functions above, in the order of `Numbers`."""
    p = parameters
    kind = KINDS[p.gate]
    first = np.sqrt(np.diag(gram)[: 2 * p.m]).copy()
    return (Numbers(p.m, p.m_star, p.degree, kind, p.temperature, int(p.renormalise), first),)


def place(initial: Initial) -> np.ndarray:
    """The Gram matrix (n, n) of the raw rows [v, w, v*, w*]."""
    unit = assemble_gram(initial.state, initial.constants["teacher_gram"])
    fixed = np.ones(2 * initial.parameters.m_star)
    norms = np.concatenate([initial.constants["norm_v"], initial.constants["norm_w"], fixed])
    return norms[:, None] * unit * norms


def weights(arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """The raw rows [v, w, v*, w*] (n, d) of an initial file, teacher rows as unit vectors; None for overlaps."""
    if ARRAYS[0] not in arrays:
        return None
    rows = [np.asarray(arrays[name], float) for name in ARRAYS]
    return np.vstack(rows[:2] + [row / np.linalg.norm(row, axis=1, keepdims=True) for row in rows[2:]])


def observe(parameters: Parameters, gram: np.ndarray) -> Labelled:
    """The overlaps of the unit vectors and the norms of the raw ones, from raw Gram matrices (..., n, n)."""
    norms = np.sqrt(np.diagonal(gram, axis1=-2, axis2=-1))
    unit = gram / (norms[..., :, None] * norms[..., None, :])
    index = np.arange(unit.shape[-1])
    unit[..., index, index] = 1.0
    m = parameters.m
    dims = {"gamma": ("expert", "teacher"), "zeta": ("expert", "teacher"), "I": ("expert", "expert_")}
    observed = {}
    for name, values in components(unit, m, parameters.m_star).items():
        observed[name] = (dims[name[:-1]], values, f"overlap {name} of the unit vectors")
    observed["norm_v"] = (("expert",), norms[..., :m], "norm of router i")
    observed["norm_w"] = (("expert",), norms[..., m : 2 * m], "norm of expert i")
    return observed


MODEL = Model(
    module="derivations.liao.model",
    helpers=("gate", "gate_slope", "nonlinearity", "rows_added"),
    normalised=True,
    noise=(0, 0),
    sizes=sizes,
    numbers=numbers,
    place=place,
    weights=weights,
    observe=observe,
)
