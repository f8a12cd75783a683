"""The exact population flow of system `chen` with noise patches, closed on overlaps and residual coordinates.

The derivation, beyond that of `population`:

1. A noise patch xi ~ N(0, sigma_p^2/d I) meets the weights through w_mj . xi and theta_m . xi alone, which are
   jointly Gaussian with covariance sigma_p^2/d times the weights' Gram matrix, the part outside the signals included.
2. By rotation about the weights' span the mean gradient lies in it.  So the overlaps and the residual Gram matrix are
   closed, and a weight's residual part never leaves the span of the residual parts at the start: its coordinates
   in an orthonormal basis of that span (`rest`) are a factor of the Gram matrix that stays one.  They are the state,
   since points of N(0, Gram) need a factor anyway; nothing depends on the basis, and `gram` is what is compared.
3. G_m and the router's drift are those of `population` with outputs and logits that include the noise patches, the
   gradient has sigma'(w_mj . xi) xi besides, and its norm includes its residual part.
4. The mean is a sum over pairs and signs at Sobol points of (alpha, beta, gamma) and the patches, each with both signs
   of the patches.  The points are the same at all times, and shifted to have the covariance of the law.
"""

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np

from derivations.chen import full_arrays
from derivations.chen.full_loops import Arguments
from derivations.chen.nodes import legendre_rows
from derivations.chen.parameters import Parameters
from derivations.chen.population import ANY, LOOPS, STATE, WATCHED, exact, flat, kernels
from derivations.chen.population import invariants as exact_invariants
from derivations.chen.summary import constants, summarise
from derivations.contract import (
    Code,
    Component,
    Crossing,
    Dense,
    Equations,
    Initial,
    Labelled,
    Layout,
    Observables,
    Smooth,
    Tier,
    UsageError,
)

REST = Component(
    "rest", ("weight", "direction"), ANY, "", "coordinates of a weight outside the signals; filters first, then routers"
)
HALF_CELL = 2.0**-31
"""Sobol points are multiples of 2^-30 in [0, 1): their cells' centres keep the normal quantile finite."""
ERROR = 5e-3
"""Measured with 1024 points over scramblings of the points; a test doubles them.  Along the noise patches alone Stein's
identity would be ten times as accurate, but that is not the largest error (the whole would gain a factor of two), it
costs the Jacobian of the routing law for every example type, and there is no such form for ReLU."""
MOST_NUMBERS = 2 * 10**8
"""The largest cloud of points that is held, in numbers (1.6 GB)."""
MOST_WORK = 3 * 10**10
"""The largest right-hand side, in elementary terms: a minute for one evaluation is half a day for a run."""


def full(parameters: Parameters) -> Equations:
    """The exact population flow with P - 3 noise patches; for P = 3 it is that of tier p3.

    Source: Chen et al. 2022, Algorithm 1 and Definition 3.1.
    """
    p = parameters
    if p.P == 3:
        exactly = exact(p)
        validity = f"{exactly.about.validity}; with noise patches (P > 3) {accuracy(p)}"
        return dataclasses.replace(exactly, about=dataclasses.replace(exactly.about, name="full", validity=validity))
    shared = [name for name in LOOPS if ":p3_" not in name]
    own = (
        "coordinates", "patch_fields", "patch_terms", "collect_patches", "assemble", "full_drift", "full_watch",
    )  # fmt: skip
    return Equations(
        about=Tier(
            name="full",
            validity=(
                "exact for any P and activation in the limit of many examples and a small step, where no expert's "
                f"gradient is incoherent (|E g| < {p.layer:g} E|g|), {accuracy(p)}"
            ),
            neglects="nothing beside that error",
        ),
        advance=Smooth(between="interpolant", kinks=True),
        code=Code(
            structure=f"chen_full_{p.activation}",
            kernels=functools.partial(kernels, p.activation),
            loops=(*shared, *(f"derivations.chen.full_loops:{name}" for name in own)),
            roles={"flow_priced": "full_drift", "watch": "full_watch"},
            arrays=full_arrays.build_full,
            takes=Arguments,
        ),
        state=(*STATE, REST),
        layout=Layout((*flat(p).parts, Dense("rest", (p.M * p.J + p.M, -1)))),
        arguments=arguments,
        begin=lambda initial: {**initial.state, "rest": residual(initial)},
        crossings=(Crossing("T_feat", "feat", 1.0, meaning="first time a filter's alignment reaches 1"),),
        watched=WATCHED,
        observables=Observables(observe=observe, constants=constants, invariants=invariants, summary=summarise),
    )


def stated_error(count: int) -> float:
    """The relative error of the right-hand side with `count` points at weights and noise fields of order one."""
    return ERROR * (1024 / count) ** 0.7


def accuracy(p: Parameters) -> str:
    """The error of the points, for the description of the tier."""
    return (
        f"up to the error of the mean over strengths and noise patches by {p.points} quasi-random points: the "
        f"right-hand side is off by {stated_error(p.points):.1g} of its size where noise moves margins and logits as "
        "much as signals do, by less where noise is weaker, and by points^(-0.7) as they grow"
    )


def residual(initial: Initial) -> np.ndarray:
    """The coordinates (M J + M, R) of the weights outside the signals; none where they lie in the signals' span."""
    p = initial.parameters
    return np.asarray(initial.state.get("rest", np.zeros((p.M * p.J + p.M, 0))), float)


def arguments(initial: Initial) -> Arguments:
    """The run-time arguments: sizes, rates, E|xi|^2, and the points of strengths and patches."""
    p = initial.parameters
    width = 2 * p.K + residual(initial).shape[1]
    require_size(p, width)
    strengths, patches = points(p, width)
    routing = legendre_rows(p.M // 2 + 1)
    rates = float(p.rho), float(p.layer), float(p.power)
    return Arguments._make((p.M, p.J, p.K, *rates, p.sigma_p**2, strengths, patches, *routing))


def require_size(p: Parameters, width: int) -> None:
    """Raise `UsageError` for clouds that are too small for their dimension, too large to hold, or endless to sum."""
    noise = (p.P - 3) * width
    weights = p.M * p.J + p.M
    work = 2 * p.points * (4 * p.K * (p.K - 1) * p.M**2 + 2 * noise * weights)
    if p.points < 2 * noise:
        raise UsageError(
            f"tier full has {p.P - 3} noise patches in {width} directions: points = {p.points} cannot have their "
            f"covariance, give -p points={2 ** int(np.ceil(np.log2(2 * noise)))} or more, or fewer weights or patches"
        )
    if p.points * noise > MOST_NUMBERS or work > MOST_WORK:
        raise UsageError(
            f"tier full with M = {p.M}, J = {p.J}, K = {p.K}, P = {p.P} and points = {p.points} needs {work:.2g} terms "
            f"and {p.points * noise:.2g} numbers for one right-hand side (at most {MOST_WORK:.0e} and "
            f"{MOST_NUMBERS:.0e}): lower a size or points, or choose -p tier=p3"
        )


@functools.lru_cache(maxsize=4)
def cloud(count: int, dimension: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """`count` Sobol points: three uniform coordinates (count, 3), and (count, dimension) standard normal ones.

    The normal ones are turned linearly so that their second moments are exactly the identity: with both signs of each,
    odd terms and the linear response to the patches, all that is left of weak noise, are exact at fixed strengths.
    """
    from scipy.special import ndtri
    from scipy.stats import qmc

    uniform = qmc.Sobol(3 + dimension, scramble=True, rng=np.random.default_rng(seed)).random(count) + HALF_CELL
    normal = ndtri(uniform[:, 3:])
    root = np.linalg.cholesky(normal.T @ normal / count)
    return uniform[:, :3], np.linalg.solve(root, normal.T).T


def points(p: Parameters, width: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Strengths (N, 3) of alpha, beta, gamma and noise patches (N, P - 3, width) of every point."""
    uniform, normal = cloud(p.points, (p.P - 3) * width, seed)
    strengths = np.stack([quantile(p, name, u) for name, u in zip(("alpha", "beta", "gamma"), uniform.T, strict=True)])
    patches = p.sigma_p / np.sqrt(p.d) * normal.reshape(p.points, p.P - 3, width)
    return np.ascontiguousarray(strengths.T), np.ascontiguousarray(patches)


def quantile(p: Parameters, name: str, u: np.ndarray) -> np.ndarray:
    """The strengths with law `name` at uniform numbers."""
    law = np.asarray(getattr(p, name), float)
    if p.laws == "points":
        return law[(u * law.size).astype(int)]
    return law[0] + (law[-1] - law[0]) * u


def observe(initial: Initial, state: Mapping[str, np.ndarray]) -> Labelled:
    """The residual Gram matrix of the weights, filters (m, j) first, then routers."""
    gram = state["rest"] @ np.swapaxes(state["rest"], 1, 2)
    return {"gram": (("time", "weight", "weight_"), gram, "Gram matrix of the weights' parts outside the signals")}


def invariants(initial: Initial, state: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Those of tier p3, with the routers' residual parts in `router_sum`."""
    found = exact_invariants(initial, state)
    p = initial.parameters
    total = state["rest"][:, p.M * p.J :].sum(axis=1)
    return {**found, "router_sum": max(found["router_sum"], float(np.abs(total - total[0]).max(initial=0.0)))}
