"""Initial condition of a run: overlaps with the signals, random, on the specialised manifold, or from weights."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from derivations.chen.parameters import Parameters, check
from derivations.contract import Initial, UsageError

ARRAYS = ("W", "Theta", "V", "C")
DATA = ("X", "y", "cluster")
OWN = ("bias", "noise")
ORTHONORMAL = 1e-8
"""Largest distance of the Gram matrix of the signals in a file from the identity."""
RANK = 1e-13
"""Singular values of the residual weights below this part of the largest are rounding errors."""
RELEASED_SCALE = 1e-3
"""The released code shrinks PyTorch's uniform initial weights, of bound 1/sqrt(d), by this factor."""


def enter(parameters: Parameters, previous: Mapping[str, np.ndarray] | None, rng: np.random.Generator) -> Initial:
    """The initial condition: random (`previous` is None), from weights, or from the end of an earlier run."""
    if previous is None:
        return specialised(parameters) if parameters.init == "specialised" else random(parameters, rng)
    if "W" in previous:
        return from_weights(parameters, previous)
    return from_state(parameters, previous)


def draw_entries(parameters: Parameters, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Initial entries of filters: N(0, sigma_0^2), or the uniform distribution of the released code."""
    if parameters.variant == "released":
        bound = RELEASED_SCALE / np.sqrt(parameters.d)
        return rng.uniform(-bound, bound, shape)
    return parameters.sigma_0 * rng.standard_normal(shape)


def random(parameters: Parameters, rng: np.random.Generator) -> Initial:
    """The paper's start: w_mj ~ N(0, sigma_0^2 I), Theta = 0; only the overlaps with the signals are drawn here.

    Source: Chen et al. 2022, Algorithm 1.
    """
    p = parameters
    both = draw_entries(p, rng, (2, p.M, p.J, p.K))
    router = np.zeros((p.M, p.K))
    return from_overlaps(p, both[0], both[1], router, router.copy(), draw_residual(p, rng))


def beyond_signals(parameters: Parameters) -> bool:
    """Return True if the weights' parts outside the signals belong to the state: with noise patches, in tier full."""
    return parameters.tier == "full" and parameters.P > 3 and parameters.variant == "paper"


def draw_residual(parameters: Parameters, rng: np.random.Generator) -> np.ndarray | None:
    """Filters N(0, sigma_0^2 I) outside the signals in a basis of their span (M J + M, R), routers 0; None if unused.

    By Bartlett's decomposition: in the Gram-Schmidt basis the coordinates below the diagonal are normal and those on it
    chi with d - 2 K - i degrees of freedom, i = 0, 1, ..; so the cost is independent of d.
    """
    p = parameters
    if not beyond_signals(p):
        return None
    count, beyond = p.M * p.J, p.d - 2 * p.K
    rows = np.tril(rng.standard_normal((count, min(count, beyond))), -1)
    diagonal = np.arange(min(count, beyond))
    rows[diagonal, diagonal] = np.sqrt(rng.chisquare(beyond - diagonal))
    return np.concatenate([p.sigma_0 * rows, np.zeros((p.M, rows.shape[1]))])


def specialised(parameters: Parameters) -> Initial:
    """On the specialised manifold: filter 0 of expert m has overlap `strength` with feature m mod K, all other overlaps
    are 0.

    The router has contrast D: gcen = D (1 - |M_k|/M) for experts of group k and -D |M_k|/M for the others, so that the
    logits of every centre sum to zero.
    """
    p = parameters
    feat = np.zeros((p.M, p.J, p.K))
    own = np.arange(p.M) % p.K
    feat[np.arange(p.M), 0, own] = p.strength
    member = own[:, None] == np.arange(p.K)
    gcen = p.contrast * (member - member.mean(axis=0))
    return from_overlaps(p, feat, np.zeros_like(feat), gcen, np.zeros((p.M, p.K)))


def from_overlaps(
    parameters: Parameters, feat: np.ndarray, cen: np.ndarray, gcen: np.ndarray, gfeat: np.ndarray,
    rest: np.ndarray | None = None,
) -> Initial:  # fmt: skip
    """The initial condition with given overlaps feat, cen (M, J, K) and gcen, gfeat (M, K).

    `rest` (M J + M, R) are coordinates of the filters, then the routers, outside the signals, for tier full.
    """
    state = {"feat": feat, "cen": cen, "gcen": gcen, "gfeat": gfeat}
    if rest is not None:
        state["rest"] = rest
    state = {name: np.array(values, float) for name, values in state.items()}
    size = float(np.sqrt(np.mean(state["feat"] ** 2 + state["cen"] ** 2)))
    kstar, jstar = professions(state["feat"])
    return Initial(parameters, state, {"kstar": kstar, "jstar": jstar}, size if size > 0 else 1.0)


def professions(feat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(kstar, jstar), each (M,): feature and filter of the largest (signed) overlap of every expert."""
    m, _, k = feat.shape
    best = feat.reshape(m, -1).argmax(axis=1)
    return best % k, best // k


def from_weights(parameters: Parameters, arrays: Mapping[str, np.ndarray]) -> Initial:
    """The overlaps of explicit weights W (M, J, d), Theta (d, M) with signals V, C (K, d)."""
    w, theta, v, c = (np.asarray(arrays[name], float) for name in ARRAYS)
    rest = residual_of(w, theta, np.vstack([v, c])) if beyond_signals(parameters) else None
    return from_overlaps(parameters, w @ v.T, w @ c.T, (c @ theta).T, (v @ theta).T, rest)


def residual_of(w: np.ndarray, theta: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """Coordinates (M J + M, R) of filters (M, J, d) and routers (d, M) outside the frame, in a basis of their span."""
    rows = np.concatenate([w.reshape(-1, w.shape[-1]), theta.T])
    rows = rows - (rows @ frame.T) @ frame
    left, sizes, _ = np.linalg.svd(rows, full_matrices=False)
    rank = int((sizes > RANK * np.abs(rows).max(initial=1e-300) * np.sqrt(rows.size)).sum())
    return left[:, :rank] * sizes[:rank]


def from_state(parameters: Parameters, previous: Mapping[str, np.ndarray]) -> Initial:
    """The initial condition that continues an earlier run of tier p3 or full."""
    names = ("feat", "cen", "gcen", "gfeat")
    missing = [name for name in names if name not in previous]
    if missing:
        raise UsageError(f"the earlier run lacks {', '.join(missing)}: a run of tier p3 or full can be continued")
    if beyond_signals(parameters) and "rest" not in previous:
        raise UsageError("the earlier run has no weights outside the signals: tier full continues a run of tier full")
    m, j, k = previous["feat"].shape
    resized = dataclasses.replace(parameters, M=m, J=j, K=k)
    rest = previous["rest"] if beyond_signals(parameters) else None
    return from_overlaps(resized, *(previous[name] for name in names), rest=rest)


def read(
    arrays: Mapping[str, np.ndarray], parameters: Parameters, explicit: frozenset[str] = frozenset()
) -> Parameters:
    """Check the arrays of an initial file and return the parameters with the sizes they imply.

    `W` (M, J, d) filters, `Theta` (d, M) routers, `V`, `C` (K, d) orthonormal features and centres; optionally a
    training set `X` (n, P, d) with labels `y` (n,) of +-1 and the examples' `cluster` (n,), whole numbers from 0 to
    K - 1 that count the rows of V and C; for training also the filters' `bias` (M, J) of
    variant=released and the routing `noise` (steps, M, n), what is added to the logits of every training example in
    every step.  Raises `UsageError` for anything that does not fit.
    """
    missing = [name for name in ARRAYS if name not in arrays]
    if missing:
        raise UsageError(
            f"the initial file lacks {', '.join(missing)}; system chen needs the arrays {', '.join(ARRAYS)}"
        )
    extra = sorted(set(arrays) - {*ARRAYS, *DATA, *OWN})
    if extra:
        raise UsageError(
            f"the initial file has unknown arrays {', '.join(extra)}; expected {', '.join(ARRAYS)} and optionally X, "
            "y, cluster, bias, noise"
        )
    shapes = {"W": 3, "Theta": 2, "V": 2, "C": 2, "X": 3, "y": 1, "cluster": 1, "bias": 2, "noise": 3}
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
    check(resized, drawn=False)
    _check_own(arrays, resized)
    frame = np.vstack([np.asarray(arrays["V"], float), np.asarray(arrays["C"], float)])
    error = float(np.abs(frame @ frame.T - np.eye(len(frame))).max())
    if error > ORTHONORMAL:
        raise UsageError(
            f"the rows of V and C must be orthonormal within {ORTHONORMAL:g}, but their Gram matrix is off by "
            f"{error:.3g}"
        )
    return resized


def _check_own(arrays: Mapping[str, np.ndarray], p: Parameters) -> None:
    """Raise `UsageError` if the user's biases or routing noise cannot be used."""
    if "bias" in arrays:
        if p.variant != "released":
            raise UsageError(
                "bias has the biases of the filters in the released protocol: give -p variant=released too"
            )
        if arrays["bias"].shape != (p.M, p.J):
            raise UsageError(f"bias must have shape (M, J) = {(p.M, p.J)}, but has {arrays['bias'].shape}")
    if "noise" in arrays:
        if not p.noise or p.data != "fixed":
            raise UsageError(
                "noise is the routing noise of every step and training example: it needs noise=true, data=fixed"
            )
        if arrays["noise"].shape[1] != p.M:
            raise UsageError(f"noise must have shape (steps, M = {p.M}, n), but has {arrays['noise'].shape}")
    if "X" in arrays and p.sets == "own":
        raise UsageError("sets=own draws a training set for every replica, but the file contains one: omit one of them")


def _check_array(name: str, values: np.ndarray, dimensions: int) -> None:
    if values.ndim != dimensions or values.dtype.kind not in "fiu":
        raise UsageError(
            f"{name} must be a real array with {dimensions} dimensions, but has shape {values.shape} and type "
            f"{values.dtype}"
        )
    if not np.isfinite(values).all():
        raise UsageError(f"{name} has an entry that is not finite: give finite weights")
    if values.size == 0:
        raise UsageError(f"{name} is empty, with shape {values.shape}: every size must be at least 1")
    if name == "y" and not (np.abs(values) == 1).all():
        raise UsageError("the labels y must be +1 or -1")


def _sizes(arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
    m, j, d = arrays["W"].shape
    if arrays["Theta"].shape != (d, m):
        raise UsageError(
            f"Theta must have shape (d, M) = {(d, m)} to fit W of shape (M, J, d) = {(m, j, d)}, but has "
            f"{arrays['Theta'].shape}"
        )
    if arrays["V"].shape != arrays["C"].shape or arrays["V"].shape[1] != d:
        raise UsageError(f"V and C must both have shape (K, {d}), but have {arrays['V'].shape} and {arrays['C'].shape}")
    sizes = {"M": m, "J": j, "d": d, "K": arrays["V"].shape[0]}
    if sizes["K"] < 2:
        raise UsageError("V has one row: at least K = 2 clusters are needed for a feature noise")
    if ("X" in arrays) != ("y" in arrays):
        raise UsageError("a training set needs both X (n, P, d) and y (n,), but only one of them is in the file")
    if "cluster" in arrays and "X" not in arrays:
        raise UsageError("cluster names the clusters of a training set, but the file has no X and y")
    if "X" in arrays:
        n, patches, width = arrays["X"].shape
        if width != d or arrays["y"].shape != (n,):
            raise UsageError(
                f"X must have shape (n, P, {d}) with y of shape (n,), but they have {arrays['X'].shape} and "
                f"{arrays['y'].shape}"
            )
        _check_cluster(arrays, n, sizes["K"])
        if patches < 3:
            raise UsageError(f"X has {patches} patches, but an example has at least 3: feature, centre, feature noise")
        sizes |= {"P": patches, "n": n}
    return sizes


def _check_cluster(arrays: Mapping[str, np.ndarray], n: int, K: int) -> None:
    """Raise `UsageError` unless the clusters of the training set are n whole numbers from 0 to K - 1."""
    if "cluster" not in arrays:
        return
    cluster = arrays["cluster"]
    if cluster.shape != (n,):
        raise UsageError(f"cluster must have shape (n,) = ({n},), one for each example, but has {cluster.shape}")
    wrong = cluster[(cluster != np.round(cluster)) | (cluster < 0) | (cluster >= K)]
    if wrong.size:
        raise UsageError(f"cluster must hold whole numbers from 0 to K - 1 = {K - 1}, but has {wrong[0]:g}")
