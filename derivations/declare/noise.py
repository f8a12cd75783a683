"""Label noise with any distribution: an expression in xi, one standard normal number for every sample.

    y = f*(x) + n(xi),   xi ~ N(0, 1)

The distribution function is F if n(xi) = F^(-1)(Phi(xi)): a Laplace distribution of scale b is -b sign(xi) log(2
probit(-abs(xi))). Closed forms need only its variance; its mean is 0.
"""

import dataclasses
import functools
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import UsageError
from derivations.declare import episodes, fields, growth, schedules, symbols
from derivations.declare.declaration import Declaration, Law
from derivations.declare.grammar import OF_SAMPLES, number

XI = "xi"
"""Name of the standard normal number."""
REACHES = (6.0, 9.0, 12.0)
"""Bounds of xi. A variance that still grows by `GROWTH` from each bound to the next is infinite."""
GROWTH = 0.01
NODES = 24_001
"""Number of nodes of the trapezoidal rule, which is exact to rounding for smooth functions on this interval."""
CENTRED = 1e-9
"""Largest mean of a noise, relative to its mean size."""


def law(teacher: Mapping[str, Any], namespace: Mapping[str, float]) -> Law | None:
    """Return the distribution in [teacher] noise; None for a number or values in time.

    `namespace` are the defaults of the user's numbers. Raises `fields.Mistake` if its mean is not 0.
    """
    law_text = teacher.get("noise")
    if not isinstance(law_text, str) or XI not in fields.expression(law_text, "teacher", "noise", entries=True).names():
        return None
    tree = fields.expression(law_text, "teacher", "noise")
    if "t" in tree.names() and "t" not in namespace:
        message = (
            "noise is either a distribution (an expression in xi) or a time-dependent standard deviation (an "
            "expression in t), but not both"
        )
        raise fields.Mistake(message, "teacher", "noise")
    tree = fields.expression(law_text, "teacher", "noise", (XI, *namespace))
    wrong = [call.word for call in tree.walk() if call.kind == "call" and call.word not in OF_SAMPLES]
    if wrong:
        message = f"{wrong[0]} has no meaning in a law of noise; its functions are {', '.join(OF_SAMPLES)}"
        raise fields.Mistake(message, "teacher", "noise")
    noise_law = Law(law_text.strip(), tree)
    try:
        require(noise_law, namespace)
    except UsageError as error:
        raise fields.Mistake(str(error), "teacher", "noise") from None
    return noise_law


@functools.lru_cache(maxsize=64)
def in_force(parameters: Any) -> Declaration:
    """Return the declaration without its distribution of noise if a number replaces it.

    The number of samples of an episode is that of the parameters.
    """
    declared: Declaration = episodes.in_force(parameters)
    if declared.law is None:
        return declared
    if parameters.noise is not None:
        return dataclasses.replace(declared, law=None)
    heavy = not np.isfinite(moment(declared.law, schedules.shared(parameters), 2))
    return dataclasses.replace(declared, law=dataclasses.replace(declared.law, heavy=heavy))


def require(noise_law: Law, namespace: Mapping[str, float]) -> None:
    """Raise `UsageError` for noise that is not defined somewhere, or has another mean than 0."""
    values, weights, x = _values(noise_law, namespace)
    wrong = ~np.isfinite(values)
    if wrong.any():
        raise UsageError(f"the noise {noise_law.text!r} is not a number at xi = {x[wrong][0]:.3g}")
    size, mean = float(np.abs(values) @ weights), float(values @ weights)
    if abs(mean) > CENTRED * size:
        raise UsageError(
            f"the noise {noise_law.text!r} has the mean {mean:.4g}: subtract it, because noise must have mean 0"
        )


def moment(noise_law: Law, namespace: Mapping[str, float], power: int) -> float:
    """Return E|n|^power; infinite if it grows with the bound of xi."""
    values, weights, x = _values(noise_law, namespace)
    parts = [float((np.abs(values) ** power * weights)[np.abs(x) <= reach].sum()) for reach in REACHES]
    grows = all(current > (1 + GROWTH) * previous for previous, current in itertools.pairwise(parts))
    return float("inf") if grows else parts[-1]


def check(parameters: Any) -> None:
    """Raise `UsageError` if noise is invalid at the numbers, or has no moment that the motion needs.

    E[c c] needs the variance and E[c z] the mean size of the noise, except for rules that are bounded in the label.
    """
    law = in_force(parameters).law
    if law is None:
        return
    namespace, declared = schedules.shared(parameters), parameters.declaration
    require(law, namespace)
    power = 2 if declared.noisy else 1
    if np.isfinite(moment(law, namespace, power)) or growth.bounded_in_label(declared, namespace):
        return
    missing = "variance" if power == 2 else "mean size"
    raise UsageError(f"the label noise {law.text!r} has no {missing}: clip the error, as in rule = 'clip(dl, 1)*df'")


def deviation(parameters: Any) -> float:
    """Return the standard deviation of label noise, 0 if it does not exist; at time 0 if it is time-dependent."""
    declared = in_force(parameters)
    if declared.law is None:
        return float(schedules.begun(parameters).noise)
    return 0.0 if declared.law.heavy else moment(declared.law, schedules.shared(parameters), 2) ** 0.5


def scale(parameters: Any) -> float:
    """Return the factor of random numbers: 1 for a distribution, else the standard deviation; at time 0 if it is
    time-dependent.
    """
    return 1.0 if in_force(parameters).law is not None else deviation(parameters)


def _values(noise_law: Law, namespace: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the noise at xi from -12 to 12, weights of the normal distribution, and xi."""
    x = np.linspace(-REACHES[-1], REACHES[-1], NODES)
    weights = np.exp(-0.5 * x**2)
    return _curve(noise_law, tuple(namespace.items())), weights / weights.sum(), x


@functools.lru_cache(maxsize=32)
def _curve(noise_law: Law, namespace: tuple[tuple[str, float], ...]) -> np.ndarray:
    values = np.empty(NODES)
    for k, xi in enumerate(np.linspace(-REACHES[-1], REACHES[-1], NODES).tolist()):
        try:
            values[k] = number(noise_law.tree, {**dict(namespace), XI: xi})
        except UsageError:
            values[k] = np.nan
    return values


def text(declared: Declaration) -> str:
    """Return the function noise_of(xi, numbers..) of a distribution."""
    import sympy

    assert declared.law is not None
    expression = symbols.build(declared.law.tree, ())
    expression = expression.replace(symbols.own()["probit"], sympy.Function("below"))  # accurate far out
    arguments = [sympy.Symbol(name, real=True) for name in (XI, *declared.names)]
    return symbols.function("noise_of", arguments, [expression])
