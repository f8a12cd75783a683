"""Tier `leading`: the lowest order in small overlaps, its information exponent, and the predicted time.

For units of one slot and unit vectors the kernel of a student and a teacher is K(m) = sum_k c_k c*_k m^k / k!, with the
derivative means c_k = E[phi^(k)(z)], so that before students meet each other

    dM_ij/dt = a_i sum_l b_l g M_il^(k-1) P_lj,   g = c_k c*_k / (k - 1)!

Here the information exponent k is the first degree from 1 on that both sides have. From m0 to m the growth takes (m -
m0)/g, log(m/m0)/g or (m0^(2-k) - m^(2-k))/((k - 2) g) for k = 1, 2, > 2, and m0 = O(1/sqrt(d)) makes that O(1), O(log
d) and O(d^(k/2-1)). Source: Ben Arous, Gheissari & Jagannath 2021.
"""

import functools
import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.contract import (
    Code,
    Component,
    Crossing,
    Dense,
    Equations,
    Initial,
    Layout,
    Observables,
    Smooth,
    Tier,
    UsageError,
    Written,
)
from derivations.declare import population, schedules
from derivations.declare.declaration import Declaration, Group
from derivations.declare.grammar import number, without_wick
from derivations.declare.kernels import values
from derivations.declare.parameter_class import numbers, rows
from derivations.declare.rows import cosines
from derivations.declare.speeds import speed

HIGHEST = 12
"""Largest degree up to which the information exponent is searched."""
ZERO = 1e-12
"""Size below which a derivative mean is 0; they are numbers of order 1 from closed forms."""
END = "an overlap has reached 1, beyond which the lowest order is not valid"
NEGLECTED = "overlaps among students, and higher powers of the overlaps with the teachers"
LEVEL = 0.5
"""Overlap up to which times are predicted, unless an event has another level."""


def derivative_means(group: Group, namespace: Mapping[str, float], highest: int = HIGHEST) -> np.ndarray:
    """c_0 .. c_highest of a unit of one slot at unit variance, E[phi(z) He_k(z)], by Gauss-Hermite on both half lines.

    Raises `UsageError` for a unit with several slots or a share.
    """
    if len(group.slots) != 1 or group.share is not None or group.scalars:
        raise UsageError(f"tier leading: {group.text!r} is not a function of a single field; use -p tier=auto")
    # Kinks are at 0, where the two half lines meet; Gauss-Legendre panels integrate both to round-off.
    nodes, weights = np.polynomial.legendre.leggauss(40)
    edges = np.linspace(0.0, 14.0, 29)
    x = np.concatenate([(a + b) / 2 + (b - a) / 2 * nodes for a, b in itertools.pairwise(edges)])
    w = np.concatenate([(b - a) / 2 * weights for a, b in itertools.pairwise(edges)])
    x, w = np.concatenate([-x[::-1], x]), np.concatenate([w[::-1], w]) * np.exp(-(np.r_[-x[::-1], x] ** 2) / 2)
    tree, slot = without_wick(group.unit), group.slots[0]
    phi = np.array([number(tree, {**namespace, slot: float(value)}) for value in x]) * w / math.sqrt(2 * math.pi)
    previous, current, means = np.ones_like(x), x, [phi.sum(), (phi * x).sum()]
    for k in range(1, highest):
        previous, current = current, x * current - k * previous
        means.append((phi * current).sum())
    return np.array(means[: highest + 1])


def growth(parameters: Any) -> tuple[int, float]:
    """Return (information exponent k, g) of a declaration.

    Raises `UsageError` if the lowest order is not that of independent unit vectors.
    """
    declared: Declaration = parameters.declaration
    if declared.predicted:
        raise UsageError("tier leading: it supports only outputs that are sums of units; use -p tier=auto")
    if declared.several:
        raise UsageError("tier leading: it supports only one output, but this network has heads; use -p tier=auto")
    if declared.momentum is not None:
        raise UsageError("tier leading: it is derived without momentum; use -p tier=auto")
    if declared.look is not None:
        raise UsageError("tier leading: it is derived for the gradient, not for virtual steps (look); use -p tier=auto")
    if declared.weights == "free" or declared.limit != "flow" or declared.loss not in ("squared", "correlation"):
        raise UsageError(
            "tier leading: the lowest order is derived for the flow of vectors of fixed norm (weights = "
            "'sphere' or 'normalised') under the squared or correlation loss; free norms change at the same "
            "order; use -p tier=auto"
        )
    if schedules.active(parameters):
        raise UsageError("tier leading: its escape time is derived for constant values; use -p tier=auto")
    if declared.rules:
        raise UsageError("tier leading: it is derived for the gradient of the loss, not for rules; use -p tier=auto")
    k, gain = shared_degree(parameters)
    (student,) = declared.students
    return k, gain * speed(parameters, student, student.slots[0])


def shared_degree(parameters: Any) -> tuple[int, float]:
    """Return (information exponent k, g) of units that are functions of one field of unit vectors, in either limit.

    Raises `UsageError` for other units, and if student and teacher share no degree.
    """
    declared: Declaration = parameters.declaration
    if declared.inputs is not None:
        raise UsageError(
            "tier leading: on [inputs] the variance of a field is not 1, so the Hermite coefficients of a "
            "unit do not determine its exponent; use -p tier=auto"
        )
    if len(declared.students) != 1 or len(declared.teachers) != 1:
        raise UsageError("tier leading: several groups of units have several exponents; use -p tier=exact")
    population.require_unit(parameters)
    return _shared(declared, tuple(numbers(parameters)))


@functools.lru_cache(maxsize=64)
def _shared(declared: Declaration, number_values: tuple[float, ...]) -> tuple[int, float]:
    (student,), (teacher,) = declared.students, declared.teachers
    namespace = values(declared, number_values)
    product = derivative_means(student, namespace) * derivative_means(teacher, namespace)
    scale = max(float(np.abs(product).max()), 1e-300)
    k = next((k for k in range(1, len(product)) if abs(product[k]) > ZERO * scale), 0)
    if k == 0:
        raise UsageError(f"tier leading: student and teacher share no degree up to {HIGHEST}, so nothing is learned")
    return k, float(product[k]) / math.factorial(k - 1)


def time_of(k: int, rate: float, start: float, level: float) -> float:
    """Return the time in which m' = rate m^(k-1) takes m from `start` to `level`; infinite if m does not grow.

    >>> round(time_of(2, 1.0, 0.01, 0.5), 6)
    3.912023
    """
    if (start <= 0 and k > 1) or rate * (start ** (k - 2) if k > 1 else 1.0) <= 0:
        return math.inf if start < level else 0.0
    if start >= level:
        return 0.0
    if k == 1:
        return (level - start) / rate
    if k == 2:
        return math.log(level / start) / rate
    return (start ** (2 - k) - level ** (2 - k)) / ((k - 2) * rate)


def equations(parameters: Any) -> Equations:
    """Return the flow of the lowest order. Raises `UsageError` if there is none."""
    k, gain = growth(parameters)
    layout = rows(parameters)
    (block,) = [b for b in layout.moving if b.columns.start >= layout.students]
    return Equations(
        about=Tier(
            name="leading",
            validity="valid while all overlaps are small; from the first escape on it is ahead of the exact flow",
            neglects=NEGLECTED,
        ),
        advance=Smooth(),
        code=Code(
            structure="declared_leading",
            kernels=lambda: {"growth": Written("def growth(m):\n    return m\n", "arrays")},
            loops=(),
            roles={"flow": "flow"},
            arrays=build,
        ),
        state=(Component(block.name, block.dims, (-np.inf, np.inf), block.name, block.meaning),),
        layout=Layout((Dense(block.name, block.shape),)),
        arguments=functools.partial(arguments, k, gain),
        crossings=(
            *(c for c in population.crossings(parameters.declaration, layout) if c.component == block.name),
            Crossing("T_end", block.name, 1.0, absolute=True, terminal=True, reason=END, meaning="end of the tier"),
        ),
        observables=Observables(constants=population.constants, summary=functools.partial(told, k, gain, block.name)),
    )


def build(xp: Any, functions: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """`flow` of (exponent k, a, b, g, P)."""

    def flow(t: Any, y: Any, k: int, a: Any, b: Any, gain: Any, gram: Any) -> Any:
        m = y.reshape(a.shape[0], b.shape[0])
        return ((a[:, None] * b * gain * m ** (k - 1)) @ gram).reshape(-1)

    return {"flow": flow}


def arguments(k: int, gain: float, initial: Initial) -> tuple[Any, ...]:
    """The run-time arguments of the flow."""
    layout = rows(initial.parameters)
    (fixed,) = layout.fixed
    arrays = {**initial.constants, **initial.state}
    declared = initial.parameters.declaration
    a, b = arrays[declared.students[0].named("a")], arrays[declared.teachers[0].named("a_star")]
    return k, np.asarray(a, float), np.asarray(b, float), np.array(gain), np.asarray(arrays[fixed.name], float)


def scaling(k: int) -> str:
    """Growth of the escape time from a random start with d."""
    return {1: "O(1)", 2: "O(log d)"}.get(k, f"O(d^{k / 2 - 1:g})")


def law(k: int) -> str:
    """Return a sentence on the growth of the escape time from a random start with d.

    >>> law(2)
    'information exponent 2: from a random start the time to escape grows like log d'
    """
    grows = {1: "does not grow with d", 2: "grows like log d"}.get(k, f"grows like d^{k / 2 - 1:g}")
    return f"information exponent {k}: from a random start the time to escape {grows}"


def formula(k: int) -> str:
    """The time from an overlap m0 to m at the rate r = a b g, as a formula.

    >>> formula(2)
    't = log(m/m0) / r, r = a b rate'
    """
    times = {1: "(m - m0) / r", 2: "log(m/m0) / r", 3: "(1/m0 - 1/m) / r"}
    return f"t = {times.get(k, f'(1/m0^{k - 2} - 1/m^{k - 2}) / ({k - 2} r)')}, r = a b rate"


RANDOM = 6.0
"""Approximate largest overlap of a random start with the teacher, in units of 1/sqrt(d)."""


def warning(initial: Initial) -> str:
    """Return a warning that SGD may not follow the flow from this start, with an alternative, or "".

    From a random start at information exponent 3 and more the escape takes longer than times of order log d. Only up to
    such times the distance between SGD and its flow is controlled. Source: Ben Arous, Gheissari & Jagannath 2021.
    """
    p = initial.parameters
    isotropic = p.declaration.inputs is None
    if p.declaration.weights == "free" or p.declaration.loss not in ("squared", "correlation") or not isotropic:
        return ""
    if p.declaration.look is not None:  # with a second look the order of the escape from such a start is another one
        return ""
    nearest = cosines(rows(p), rows(p).gram({**initial.constants, **initial.state}))
    if nearest is None or nearest.max(initial=0.0) > RANDOM / math.sqrt(p.d):
        return ""
    try:
        k, _ = shared_degree(p)
    except UsageError:
        return ""
    if k < 3:
        return ""
    return (
        f"information exponent {k} from a random start: SGD is known to follow this dynamics for times of order "
        f"log d, but the escape takes {scaling(k)}; use compressed SGD for it (odesim simulate --method "
        "compressed)"
    )


def formulas(k: int) -> tuple[str, ...]:
    """The time from an overlap m_0 to m at rate r = a b g, and its scaling, in LaTeX."""
    times = {1: r"(m - m_0)/r", 2: r"\log(m/m_0)/r", 3: r"(1/m_0 - 1/m)/r"}
    time = times.get(k, rf"(m_0^{{{2 - k}}} - m^{{{2 - k}}})/({k - 2} r)")
    power = {1: "O(1)", 2: r"O(\log d)"}.get(k, rf"O(d^{{{k / 2 - 1:g}}})")
    return (rf"t(m_0 \to m) = {time},\quad r = a_i b_j g,\quad m_0 = O(d^{{-1/2}}):\quad t = {power}",)


def told(k: int, gain: float, name: str, initial: Initial, run: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return information exponent, growth law, and the predicted time of every teacher, as a sentence and as
    numbers.
    """
    declared = initial.parameters.declaration
    level = next((e.threshold for e in declared.events if e.of == name), LEVEL)
    _, a, b, _, gram = arguments(k, gain, initial)
    orthonormal = np.allclose(gram, np.eye(len(gram)))
    m = np.asarray(initial.state[name])
    times = [
        min(time_of(k, a[i] * b[j] * gain, float(m[i, j]), level) for i in range(len(a))) for j in range(len(b))
    ] if orthonormal else []  # fmt: skip
    grows = "" if k == 1 else " m" if k == 2 else f" m^{k - 1}"
    sentence = f"dm/dt = {gain:.6g} a b{grows}: from a random start the time to escape is {scaling(k)}"
    return {
        "tier": "leading",
        "information_exponent": k,
        "rate": gain,
        "law": sentence,
        "time": formula(k),
        "predicted_times": [t if math.isfinite(t) else None for t in times],
        "predicted_level": level,
        **({"sgd": warned} if (warned := warning(initial)) else {}),
    }
