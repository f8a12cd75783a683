"""Initial condition of a run: inner products of neurons and routers with the patterns, random or from a file."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, UsageError
from derivations.pmoe import router, world
from derivations.pmoe.checks import check
from derivations.pmoe.parameters import Parameters, settle
from derivations.vectors import root

WEIGHTS = ("patterns", "hidden", "out", "router")
PRODUCTS = ("gram", "pre", "out", "route")
SAMPLES = ("index", "y")
LEFT_OPEN = {"k": 0, "loss": "auto"}
"""Values of a parameter that is taken from the file."""
LARGEST = 10**9
"""Maximal number of entries of an activity in memory: 8 GB."""
TIE = 0.01
"""Perfect routers rank the irrelevant patterns at random: by values of this size, between o1 at 1 and o2 at -1."""


def enter_router(
    parameters: Parameters, previous: Mapping[str, np.ndarray] | None, rng: np.random.Generator
) -> Initial:
    """The start of the training of routers."""
    return _enter(parameters, previous, rng, "router")


def enter_experts(
    parameters: Parameters, previous: Mapping[str, np.ndarray] | None, rng: np.random.Generator
) -> Initial:
    """The start of the training of experts with constant routers: separate training and the CNN."""
    return _enter(parameters, previous, rng, "experts")


def enter_joint(parameters: Parameters, previous: Mapping[str, np.ndarray] | None, rng: np.random.Generator) -> Initial:
    """The start of joint training."""
    return _enter(parameters, previous, rng, "joint")


def _enter(p: Parameters, previous: Mapping[str, np.ndarray] | None, rng: np.random.Generator, stage: str) -> Initial:
    p = settle(p, stage)
    if previous is None:
        check(p)  # parameters valid while the mode is open (two experts) may be invalid here (four)
        gram = world.gram_of(p)
        pre, out = neurons(p, gram, rng)
        return assemble(p, gram, pre, out, start_routers(p, gram, rng, stage))
    arrays = {name: np.asarray(values, float) for name, values in previous.items()}
    rows, samples = _rows(p, arrays)
    if "patterns" in arrays:
        x, hidden = arrays["patterns"], arrays["hidden"]
        route = arrays["router"] @ x.T if "router" in arrays else np.zeros((p.k, len(x)))
        gram = x @ x.T
        unit = np.abs(np.diag(gram) - 1) < 1e-12  # rounding of unit vectors, to which arcsines are sensitive
        gram[unit, unit] = 1.0
        return assemble(p, gram, hidden @ x.T, arrays["out"], route, rows, samples)
    gram = arrays["gram"]
    if "pre" in arrays and arrays["pre"].shape[:2] == (p.k, p.m // p.k):
        pre, out = arrays["pre"], arrays["out"]
    else:  # after the routers' stage the experts are random
        pre, out = neurons(p, gram, rng)
    return assemble(p, gram, pre, out, arrays["route"], rows, samples)


def neurons(p: Parameters, gram: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """<w, z> (k, M, P) of w ~ N(0, I/m), and output weights (k, M) ~ N(0, 1); in opposite pairs if requested.

    Under the softmax loss a neuron has one output weight per class, (k, M, c). Source: Chowdhury et al. 2023, equations
    (7) and (23).
    """
    each = p.m // p.k
    drawn = each // 2 if p.init == "paired" else each
    pre = rng.standard_normal((p.k, drawn, len(gram))) @ root(gram).T / np.sqrt(p.m)
    out = rng.standard_normal((p.k, drawn, p.classes) if p.softmax else (p.k, drawn))
    if p.init == "paired":
        return np.concatenate([pre, pre], axis=1), np.concatenate([out, -out], axis=1)
    return pre, out


def start_routers(p: Parameters, gram: np.ndarray, rng: np.random.Generator, stage: str) -> np.ndarray:
    """The route values (k, P) at the start: by the parameter `routers`, and always random if they are trained later."""
    size = len(gram)
    if p.mode == "cnn":
        return np.zeros((1, size))
    route = p.sigma_r * rng.standard_normal((p.k, size)) @ root(gram).T
    if stage == "router" or p.routers == "random":
        return route
    if p.routers == "trained":
        if p.k != p.classes:
            raise UsageError(
                f"routers=trained is the law of {p.classes} routers, one per class, but k = {p.k}: choose another start"
            )
        return router.trained(p, gram, route, rng)
    route, c = TIE * rng.uniform(-1, 1, (p.k, size)), p.classes
    route[:, :c] = np.where(np.arange(p.k)[:, None] % c == np.arange(c), 1.0, -1.0)
    if p.routers == "single":
        route[c:, :c] = -1.0 + route[c:, :c] * TIE
    return route


def assemble(
    p: Parameters,
    gram: np.ndarray,
    pre: np.ndarray,
    out: np.ndarray,
    route: np.ndarray,
    rows: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    samples: int = 0,
) -> Initial:
    """The initial condition with given inner products; `rows` of `samples` examples replace the population."""
    pre = np.ascontiguousarray(pre, float)
    counts, label, weight = rows if rows is not None else world.population(p)
    constants = {
        "gram": np.ascontiguousarray(gram, float),
        "out": np.ascontiguousarray(out, float),
        "counts": np.ascontiguousarray(counts, float),
        "label": label,
        "weight": weight,
        "given": np.array(samples),
        **({"act": activity(pre, out)} if out.ndim == 2 else {"begun": pre}),
    }
    state = {"pre": pre, "response": response(pre, out), "route": np.array(route, float)}
    return Initial(p, state, constants, float(np.sqrt(np.diag(gram).mean() / p.m)))


def activity(pre: np.ndarray, out: np.ndarray) -> np.ndarray:
    """A_s(z, z') = sum_r a_{r,s}^2 1(h(z) >= 0) 1(h(z') >= 0), (k, P, P).

    With an output per class, (k, c, c, P, P): a_{r,s,i} a_{r,s,j} in place of the square.
    """
    if out.ndim == 2:
        active = np.where(pre >= 0, out[..., None], 0.0)
        return np.einsum("smz,smw->szw", active, active)
    k, _, c = out.shape
    active = np.where(pre[:, :, None] >= 0, out[..., None], 0.0).reshape(k, len(out[0]), -1)
    both = np.swapaxes(active, 1, 2) @ active
    return np.ascontiguousarray(both.reshape(k, c, -1, c, pre.shape[-1]).transpose(0, 1, 3, 2, 4))


def act_of(initial: Initial) -> np.ndarray:
    """The activity of the neurons at the start; with an output per class computed on demand, for its size k c^2 P^2.

    Raises `UsageError` for more than `LARGEST` numbers.
    """
    c = initial.constants
    if "act" in c:
        return c["act"]
    pre, out = c["begun"], c["out"]
    size = len(out) * (out.shape[-1] * pre.shape[-1]) ** 2
    if size > LARGEST:
        raise UsageError(
            f"tier L1 couples every two outputs and patterns of an expert, k c^2 P^2 = {size:.2g} numbers: take L0 "
            "or L2, or fewer classes"
        )
    return activity(pre, out)


def response(pre: np.ndarray, out: np.ndarray) -> np.ndarray:
    """phi_s(z) = sum_r a_{r,s} ReLU(h_{r,s}(z)), (..., k, P) for pre (..., k, M, P); by class, (..., k, c, P).

    Source: Chowdhury et al. 2023, equations (1) and (23).
    """
    if out.ndim == 3:
        return np.einsum("smi,...smz->...siz", out, np.maximum(pre, 0.0), optimize=True)
    return np.einsum("sm,...smz->...sz", out, np.maximum(pre, 0.0))


def _rows(p: Parameters, arrays: Mapping[str, np.ndarray]) -> tuple[Any, int]:
    """The rows of a file or an earlier run, and their number of samples; (None, 0) for those of the population."""
    if "index" in arrays:
        size = len(arrays["patterns"] if "patterns" in arrays else arrays["gram"])
        return world.empirical(arrays["index"].astype(int), arrays["y"], size), len(arrays["y"])
    if "counts" in arrays:
        return (arrays["counts"], arrays["label"], arrays["weight"]), int(arrays["samples"])
    return None, 0


def read(
    arrays: Mapping[str, np.ndarray], parameters: Parameters, explicit: frozenset[str] = frozenset()
) -> Parameters:
    """Check the arrays of an initial file and return the parameters with the sizes they imply.

    `patterns` (P, d), `hidden` (k, M, d), `out` (k, M), `router` (k, d) (optional for k = 1); or, in inner products,
    `gram` (P, P), `pre` (k, M, P), `out` (k, M), `route` (k, P).  Optionally a training set: `index` (N, n) pattern
    numbers and labels `y` (N,) of +-1.  With `out` (k, M, c) there is an output for each of c classes, and labels are 1
    to c.  Raises `UsageError` for anything that does not fit.
    """
    arrays = {name: np.asarray(values) for name, values in arrays.items()}
    names = PRODUCTS if "gram" in arrays else WEIGHTS
    missing = [name for name in names if name not in arrays]
    if missing == ["router"] and np.ndim(arrays["hidden"]) == 3 and len(arrays["hidden"]) == 1:
        missing = []
    if missing:
        raise UsageError(
            f"the initial file lacks {', '.join(missing)}; system pmoe needs {', '.join(WEIGHTS)}, "
            f"or {', '.join(PRODUCTS)}"
        )
    extra = sorted(set(arrays) - {*names, *SAMPLES})
    if extra:
        raise UsageError(
            f"the initial file has unknown arrays {', '.join(extra)}; expected {', '.join(names)}, index, y"
        )
    shapes = {"hidden": 3, "pre": 3, "y": 1, "out": 3 if np.ndim(arrays["out"]) == 3 else 2}
    for name, values in arrays.items():
        _check_array(name, values, shapes.get(name, 2))
    sizes = _sizes(arrays)
    for name, value in sizes.items():
        given = getattr(parameters, name)
        if name in explicit and given not in (value, LEFT_OPEN.get(name, value)):
            raise UsageError(
                f"-p {name}={given} disagrees with the initial file, whose arrays have {name} = {value}; leave the "
                "option out or change the file"
            )
    resized = dataclasses.replace(parameters, **sizes)
    if resized.softmax != (arrays["out"].ndim == 3):
        raise UsageError(
            f"-p loss={parameters.loss} disagrees with the initial file: out is (k, M) for the logistic loss and "
            f"(k, M, c) for an output per class, but has shape {arrays['out'].shape}"
        )
    if "n" not in sizes and "n" not in explicit and resized.composition == "multinomial" and resized.p == 0:
        resized = dataclasses.replace(resized, n=1)
    check(resized, drawn=False)
    vectors = np.asarray(arrays.get("patterns", np.zeros((0, 0))), float)
    products = vectors @ vectors.T if "patterns" in arrays else np.asarray(arrays["gram"], float)
    world.require_gram(products, resized.classes)
    if "index" not in arrays and resized.p == 0 and resized.n > 1:
        only = " and ".join(f"o{i}" for i in range(1, resized.classes + 1))
        raise UsageError(f"n = {resized.n} patches need irrelevant patterns, but the file has {only} only: -p n=1")
    return resized


def _check_array(name: str, values: np.ndarray, dimensions: int) -> None:
    if values.ndim != dimensions or values.dtype.kind not in "fiu":
        raise UsageError(
            f"{name} must be a real array with {dimensions} dimensions, but has shape {values.shape} and type "
            f"{values.dtype}"
        )
    if values.size == 0 or not np.isfinite(values).all():
        raise UsageError(f"{name} must be finite and not empty, but has shape {values.shape}")
    if name == "index" and (values != np.round(values)).any():
        raise UsageError("index must hold whole numbers, those of the patterns")


def _check_labels(y: np.ndarray, classes: int) -> None:
    """Labels must be +-1, or 1 to c if every one of c classes has an output (`classes` = 0: the former)."""
    if not classes and not (np.abs(y) == 1).all():
        raise UsageError("the labels y must be +1 or -1")
    if classes and not np.isin(y, np.arange(1, classes + 1)).all():
        raise UsageError(f"the labels y must be whole numbers from 1 to {classes}, the numbers of the classes")


def _sizes(arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
    """The sizes of the arrays; raises `UsageError` if they contradict each other."""
    neurons_name, frame, route = ("hidden", "patterns", "router") if "patterns" in arrays else ("pre", "gram", "route")
    k, each, width = arrays[neurons_name].shape
    count, columns = arrays[frame].shape
    several = arrays["out"].ndim == 3
    classes = arrays["out"].shape[-1] if several else 2
    wanted = {"out": (k, each, classes) if several else (k, each), route: (k, width)}
    for name, shape in wanted.items():
        if name in arrays and arrays[name].shape != shape:
            raise UsageError(f"{name} must have shape {shape} if {neurons_name} is given, but has {arrays[name].shape}")
    if columns != width or count < classes:
        names = ", ".join(f"o{i}" for i in range(1, classes + 1))
        raise UsageError(
            f"{frame} must have shape (P, {width}) with {names} and the irrelevant patterns, but has "
            f"{arrays[frame].shape}"
        )
    sizes: dict[str, Any] = {"classes": classes, "k": k, "m": k * each, "p": count - classes}
    if several:
        sizes["loss"] = "softmax"
    if frame == "patterns":
        sizes["d"] = width
    if ("index" in arrays) != ("y" in arrays):
        raise UsageError("a training set needs both index (N, n) and y (N,)")
    if "index" in arrays:
        index = arrays["index"]
        _check_labels(arrays["y"], classes if several else 0)
        if len(index) != len(arrays["y"]):
            raise UsageError(f"index has {len(index)} samples, but y has {len(arrays['y'])}")
        if index.min() < 0 or index.max() >= count:
            raise UsageError(f"index must hold pattern numbers from 0 to {count - 1}")
        sizes |= {"n": index.shape[1]}
    return sizes
