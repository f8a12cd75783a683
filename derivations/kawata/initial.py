"""Initial conditions of system `kawata`: random at any dimension without d-vectors, or from given overlaps.

The state of a neuron w is m = (kappa_1..kappa_C, xi, nu_1..nu_C), its overlaps with the frame (w*_1..w*_C, w*_g,
v_1..v_C) of Gram matrix G. The neurons also have constants: a, b, the coefficients of a polynomial activation, the
share of each cluster's samples that updates the neuron, and the direction outside the frame.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, UsageError
from derivations.kawata.parameters import Parameters, activation_series, check, count
from derivations.vectors import root

ARRAYS = ("kappa", "xi", "nu", "a", "b")
OPTIONAL = ("gram", "theta", "sigma", "gate_gram", "gate_direction", "directions")
UNIT = 1e-8
"""Largest distance of a diagonal entry of a given Gram matrix from 1; vectors stored with eight digits pass."""
PAIRS = 300
"""Up to this number of neurons their mutual overlaps are drawn too (SGD and ridge regression need them)."""


def enter(parameters: Parameters, previous: Mapping[str, np.ndarray] | None, rng: np.random.Generator) -> Initial:
    """The initial condition of Phase I: drawn with `rng`, or from the overlaps of a file or of an earlier run."""
    if previous is None:
        return draw(parameters, rng)
    share = previous["share"] if "share" in previous else None
    return from_arrays(parameters, previous, share)


def size_of(p: Parameters) -> int:
    """The number of frame vectors, 2C + 1."""
    return 2 * p.C + 1


def expert_of(p: Parameters, neurons: int) -> np.ndarray:
    """The expert of each neuron: the neurons in the computation are divided as evenly as possible among the M
    experts.
    """
    return (np.arange(neurons) * p.M) // max(neurons, 1)


def draw(p: Parameters, rng: np.random.Generator) -> Initial:
    """w uniform on the sphere, a = +-1, b uniform; m = L g / |w| with G = L L^T, so no array has d entries.

    Source: Kawata et al. 2025, Section 3.1 and Remark 4.2.
    """
    gram = draw_gram(p, rng)
    state = draw_overlaps(p, count(p), gram, rng)
    constants = draw_neurons(p, count(p), rng)
    constants["gram"], constants["share"] = gram, np.full((count(p), p.C), 1.0 / p.M**2)
    if count(p) <= PAIRS:
        constants["directions"] = draw_directions(count(p), p.d - size_of(p), rng)
    return Initial(dataclasses.replace(p, neurons=count(p)), state, constants, p.d**-0.5)


def draw_overlaps(p: Parameters, neurons: int, gram: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The overlaps of uniformly random unit vectors with the frame."""
    n = len(gram)
    g = rng.standard_normal((neurons, n))
    rest = rng.chisquare(p.d - n, neurons) if p.d > n else np.zeros(neurons)
    m = (g / np.sqrt((g * g).sum(1) + rest)[:, None]) @ root(gram).T
    return split(m, p.C)


def draw_gram(p: Parameters, rng: np.random.Generator) -> np.ndarray:
    """The Gram matrix of the frame: the identity, or that of independent uniformly random directions."""
    n = size_of(p)
    if p.orthogonal:
        return np.eye(n)
    factor = np.zeros((n, n))
    factor[np.tril_indices(n, -1)] = rng.standard_normal(n * (n - 1) // 2)
    factor[np.diag_indices(n)] = np.sqrt(rng.chisquare(p.d - np.arange(n)))
    factor /= np.linalg.norm(factor, axis=1, keepdims=True)
    return factor @ factor.T


def draw_neurons(p: Parameters, neurons: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Second-layer signs a (N,), biases b (N,) and the coefficients of a polynomial activation (1 or N, degrees)."""
    a = rng.choice([-1.0, 1.0], neurons)
    b = rng.uniform(p.bias[0], p.bias[-1], neurons)
    return {"a": a, "b": b, "sigma": draw_series(p, neurons, rng)}


def draw_series(p: Parameters, neurons: int, rng: np.random.Generator) -> np.ndarray:
    """Coefficients of a polynomial activation: one row for all neurons, or one row each with random signs."""
    if p.activation != "polynomial":
        return np.zeros((1, 1))
    row = np.array([activation_series(p)], float)
    return row * rng.choice([-1.0, 1.0], (neurons, row.size)) if p.signs else row


def draw_directions(neurons: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """The Gram matrix of independent uniformly random unit vectors in dimension d, at a cost independent of d."""
    if d >= neurons:  # Bartlett's factor of a Wishart matrix
        rows = np.zeros((neurons, neurons))
        rows[np.tril_indices(neurons, -1)] = rng.standard_normal(neurons * (neurons - 1) // 2)
        rows[np.diag_indices(neurons)] = np.sqrt(rng.chisquare(d - np.arange(neurons)))
    else:
        rows = rng.standard_normal((neurons, max(d, 1)))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    gram = rows @ rows.T
    np.fill_diagonal(gram, 1.0)
    return gram


def split(m: np.ndarray, C: int) -> dict[str, np.ndarray]:
    """kappa (..., C), xi (...), nu (..., C) of stacked overlaps (..., 2C + 1)."""
    return {"kappa": m[..., :C].copy(), "xi": m[..., C].copy(), "nu": m[..., C + 1 :].copy()}


def join(state: Mapping[str, Any]) -> np.ndarray:
    """Stacked overlaps (..., N, 2C + 1), the inverse of `split`."""
    kappa, nu = np.asarray(state["kappa"], float), np.asarray(state["nu"], float)
    return np.concatenate([kappa, np.asarray(state["xi"], float)[..., None], nu], axis=-1)


def outside(state: Mapping[str, Any], gram: np.ndarray) -> np.ndarray:
    """q = 1 - m^T G^{-1} m, the squared length of each neuron's part outside the frame (..., N)."""
    m = join(state)
    return 1.0 - ((m @ np.linalg.pinv(gram, hermitian=True)) * m).sum(-1)


def from_arrays(p: Parameters, arrays: Mapping[str, np.ndarray], share: np.ndarray | None = None) -> Initial:
    """The initial condition with given overlaps and neurons; by default directions outside the frame are orthogonal."""
    state = {name: np.array(arrays[name], float) for name in ("kappa", "xi", "nu")}
    neurons = len(state["xi"])
    constants = {name: np.array(arrays[name], float) for name in ("a", "b")}
    if "sigma" in arrays:
        constants["sigma"] = np.atleast_2d(np.array(arrays["sigma"], float))
    else:
        constants["sigma"] = draw_series(dataclasses.replace(p, signs=False), neurons, np.random.default_rng(0))
    constants["gram"] = np.array(arrays["gram"], float) if "gram" in arrays else np.eye(size_of(p))
    constants["share"] = np.full((neurons, p.C), 1.0 / p.M**2) if share is None else np.array(share, float)
    if "directions" in arrays:
        constants["directions"] = np.array(arrays["directions"], float)
    elif neurons <= PAIRS:
        constants["directions"] = np.eye(neurons)
    if "theta" in arrays:
        constants |= gates_of(arrays, constants["gram"], neurons)
    orthogonal = p.orthogonal and bool(np.abs(constants["gram"] - np.eye(size_of(p))).max() < 1e-14)
    signs = p.activation == "polynomial" and len(constants["sigma"]) > 1
    p = dataclasses.replace(p, neurons=neurons, orthogonal=orthogonal, signs=signs)
    return Initial(p, state, constants, p.d**-0.5)


def gates_of(arrays: Mapping[str, np.ndarray], gram: np.ndarray, neurons: int) -> dict[str, np.ndarray]:
    """Overlaps of the gates with the frame, each other and the neurons' directions; by default gates lie in the
    frame.
    """
    theta = np.atleast_2d(np.array(arrays["theta"], float))
    inside = theta @ np.linalg.pinv(gram, hermitian=True) @ theta.T
    found = {"theta": theta, "gate_gram": inside, "gate_direction": np.zeros((len(theta), neurons))}
    return {name: np.array(arrays.get(name, value), float) for name, value in found.items()}


def full_gram(state: Mapping[str, Any], constants: Mapping[str, np.ndarray]) -> np.ndarray:
    """The Gram matrix of [neurons, frame, gates].

    A neuron is its part in the frame plus sqrt(q) times a unit vector outside it, which the flow does not change; the
    inner products of those vectors (`directions`, with the gates `gate_direction`) are constants. Raises `UsageError`
    for too many neurons to store these products.
    """
    m, frame = join(state), np.asarray(constants["gram"], float)
    if "directions" not in constants:
        raise UsageError(
            f"the mutual overlaps of all {len(m)} neurons are needed here, which is too many: compute a "
            "subset, which is exact in law, with -p neurons=N"
        )
    inverse = np.linalg.pinv(frame, hermitian=True)
    far = length_outside(m, inverse)
    inner = m @ inverse @ m.T + far[:, None] * constants["directions"] * far
    np.fill_diagonal(inner, 1.0)
    if "theta" not in constants:
        return np.block([[inner, m], [m.T, frame]])
    theta = constants["theta"]
    gates = m @ inverse @ theta.T + far[:, None] * constants["gate_direction"].T
    return np.block([[inner, m, gates], [m.T, frame, theta.T], [gates.T, theta, constants["gate_gram"]]])


def length_outside(m: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """sqrt(q); for a neuron inside the frame it is 0 up to rounding errors of either sign."""
    return np.sqrt(np.maximum(1.0 - ((m @ inverse) * m).sum(1), 0.0))


def directions_of(overlap: np.ndarray, m: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """The inner products of the neurons' directions outside the frame, from their mutual overlaps (SGD changes
    them).
    """
    inverse = np.linalg.pinv(frame, hermitian=True)
    far = np.maximum(length_outside(m, inverse), 1e-12)
    found = (overlap - m @ inverse @ m.T) / (far[:, None] * far)
    np.fill_diagonal(found, 1.0)
    return found


def read(
    arrays: Mapping[str, np.ndarray], parameters: Parameters, explicit: frozenset[str] = frozenset()
) -> Parameters:
    """Check the arrays of an initial file and return the parameters with the sizes they imply.

    `kappa`, `nu` (N, C), `xi`, `a`, `b` (N,), optional `gram` (2C+1, 2C+1) of (w*_1..w*_C, w*_g, v_1..v_C), `theta`
    (M, 2C+1), the gate's overlaps with that frame, and `sigma` (N, degrees).  Raises `UsageError` for a missing array,
    a shape that disagrees, a number that is not finite, or overlaps that no unit vector has.
    """
    missing = [name for name in ARRAYS if name not in arrays]
    if missing:
        raise UsageError(f"the initial file lacks {', '.join(missing)}; system kawata needs {', '.join(ARRAYS)}")
    extra = sorted(set(arrays) - set(ARRAYS) - set(OPTIONAL))
    if extra:
        raise UsageError(f"the initial file has unknown arrays {', '.join(extra)}; expected {', '.join(ARRAYS)}")
    kappa = np.asarray(arrays["kappa"])
    if kappa.ndim != 2 or 0 in kappa.shape:
        raise UsageError(f"kappa must have shape (neurons, clusters), but has {kappa.shape}")
    neurons, C = kappa.shape
    shapes = {"nu": (neurons, C), "xi": (neurons,), "a": (neurons,), "b": (neurons,), "gram": (2 * C + 1, 2 * C + 1)}
    for name, shape in shapes.items():
        if name in arrays and np.asarray(arrays[name]).shape != shape:
            raise UsageError(
                f"{name} must have shape {shape}, as kappa has {kappa.shape}, but has {arrays[name].shape}"
            )
    for name, values in arrays.items():
        if not np.isfinite(values).all():
            raise UsageError(f"array {name} contains a number that is not finite")
    sizes = {"C": C, "neurons": neurons}
    for name, value in sizes.items():
        given = getattr(parameters, name)
        if name in explicit and given != value and not (name == "neurons" and given == 0):
            raise UsageError(
                f"-p {name}={given} disagrees with the initial file, which has {name} = {value}; "
                "leave the option out or change the file"
            )
    _check_gram(np.asarray(arrays.get("gram", np.eye(2 * C + 1)), float))
    _check_ball(arrays)
    resized = dataclasses.replace(parameters, **sizes)
    check(resized, drawn=False)
    return resized


def _check_gram(gram: np.ndarray) -> None:
    if abs(gram - gram.T).max() > UNIT or abs(np.diag(gram) - 1).max() > UNIT:
        bad = int(np.argmax(abs(np.diag(gram) - 1)))
        raise UsageError(
            f"gram must be symmetric with ones on its diagonal (teacher vectors and means are unit vectors), but entry "
            f"{bad} of the diagonal is {gram[bad, bad]:.10g}: normalise the vectors"
        )
    if np.linalg.eigvalsh(gram).min() < -UNIT:
        raise UsageError("gram is not positive semi-definite: no vectors have these inner products")


def _check_ball(arrays: Mapping[str, np.ndarray]) -> None:
    gram = np.asarray(arrays.get("gram", np.eye(2 * np.asarray(arrays["kappa"]).shape[1] + 1)), float)
    m = join(arrays)
    inverse = np.linalg.pinv(gram, hermitian=True)
    squares = ((m @ inverse) * m).sum(1)
    off = np.abs(m @ inverse @ gram - m).max()
    worst = int(np.argmax(squares))
    if squares[worst] > 1 + UNIT or off > UNIT:
        raise UsageError(
            f"the overlaps of neuron {worst} are those of no unit vector: m^T G^-1 m = {squares[worst]:.10g} "
            "must be at most 1 (and m in the range of the Gram matrix)"
        )
