"""Means of products of two gates and of their derivatives, as closed forms in the covariance, for every pair that has
one.

    S_ab = E[F^(a)(z1) G^(b)(z2)],   (z1, z2) ~ N(0, [[x, t], [t, y]])

All gates belong to the ladder R_0 = relu, R_1 = step, R_2 = delta, ... Pairs with indices below 2 are classical
(arc-cosine kernels), or orthant probabilities with biases. Other pairs are derivatives of the Gaussian density, or of a
conditional mean. Smoothing increases a variance. Sources: Price 1958; Cho & Saul 2009; Saad & Solla 1995 (erf).
"""

from typing import Any

from derivations.declare import symbols
from derivations.declare.gates import LADDER, Gate, Open


def pair(first: Gate, a: int, second: Gate, b: int, same_field: bool) -> Any:
    """S_ab of two gates as a SymPy expression in x, y, t; with `same_field` of one field with itself, in x.

    Raises `Open` for two gates of different families, and if the mean diverges (the derivative of a step with itself).
    """
    import sympy

    x, y, t = covariance(same_field)
    if first.kind in LADDER and second.kind in LADDER:
        return _ladders(first, a, second, b, same_field)
    if first.kind == "exp" and second.kind == "exp":
        exponent = (first.slope**2 * x + second.slope**2 * y) / 2 + first.slope * second.slope * t
        return first.slope**a * second.slope**b * sympy.exp(exponent + first.bias + second.bias)
    if first.kind == "cos" and second.kind == "cos":
        first_phase, second_phase = first.bias + a * sympy.pi / 2, second.bias + b * sympy.pi / 2
        spread = sympy.exp(-(first.slope**2 * x + second.slope**2 * y) / 2)
        cross = first.slope * second.slope * t
        cosines = sympy.cos(first_phase + second_phase) * sympy.exp(-cross) + sympy.cos(
            first_phase - second_phase
        ) * sympy.exp(cross)
        return first.slope**a * second.slope**b * spread * cosines / 2
    raise Open(f"the mean of {first.kind} times {second.kind} has no closed form here")


def single(gate: Gate, a: int, variance: Any) -> Any:
    """E[F^(a)(z)] at a variance."""
    import sympy

    if gate.kind in LADDER:
        level, front, constant, extra = _step(gate, a)
        return front * _rung(level, variance + extra, gate.bias / gate.slope) + constant
    if gate.kind == "exp":
        return gate.slope**a * sympy.exp(gate.slope**2 * variance / 2 + gate.bias)
    if gate.kind == "cos":
        phase = gate.bias + a * sympy.pi / 2
        return gate.slope**a * sympy.exp(-(gate.slope**2) * variance / 2) * sympy.cos(phase)
    raise Open(f"the mean of {gate.kind} has only a series")


def covariance(same_field: bool) -> tuple[Any, Any, Any]:
    """The symbols x, y, t of two fields, or of one with itself."""
    import sympy

    x, y = sympy.symbols("x y", positive=True)
    return (x, x, x) if same_field else (x, y, sympy.Symbol("t", real=True))


def _step(gate: Gate, a: int) -> tuple[int, Any, Any, Any]:
    """(rung, factor, constant, s): F^(a)(z) = factor E R_rung(z + bias/slope + n) + constant, n ~ N(0, s)."""
    import sympy

    if gate.kind == "relu":
        return a, gate.slope, sympy.S.Zero, sympy.S.Zero
    if gate.kind == "step":
        return 1 + a, sympy.S.One, sympy.S.Zero, sympy.S.Zero
    return 1 + a, sympy.Integer(2), sympy.Integer(-1 if a == 0 else 0), 1 / (2 * gate.slope**2)


def _rung(level: int, variance: Any, shift: Any) -> Any:
    """E[R_level(z + shift)], z ~ N(0, variance)."""
    import sympy

    if level == 0:
        return shift * _below(shift, variance) + variance * _rung(2, variance, shift)
    if level == 1:
        return _below(shift, variance)
    u, v = sympy.Symbol("u", real=True), sympy.Symbol("v", positive=True)
    density = sympy.exp(-(u**2) / (2 * v)) / sympy.sqrt(2 * sympy.pi * v)
    return ((-1) ** level * sympy.diff(density, u, level - 2)).subs(u, -shift).subs(v, variance)


def _below(x: Any, variance: Any) -> Any:
    """P(z < x), z ~ N(0, variance)."""
    import sympy

    return (1 + sympy.erf(x / sympy.sqrt(2 * variance))) / 2


def _ladders(first: Gate, a: int, second: Gate, b: int, same_field: bool) -> Any:
    import sympy

    x, y, t = covariance(same_field)
    level, front, offset, extra = _step(first, a)
    second_level, factor, constant, second_extra = _step(second, b)
    shifts = first.bias / first.slope, second.bias / second.slope
    # For a field with itself x y - t^2 would be rounding.
    room = x * (extra + second_extra) + extra * second_extra if same_field else (x + extra) * (y + second_extra) - t**2
    if same_field and room == 0:
        placed = _itself(level, second_level, x, *shifts)
    else:
        X, Y = sympy.symbols("X Y", positive=True)
        T, D = sympy.Symbol("T", real=True), sympy.Symbol("D", positive=True)
        form = _joint(level, second_level, X, Y, T, D, *shifts)
        placed = form.subs({X: x + extra, Y: y + second_extra, T: t, D: room}, simultaneous=True)
    single_terms = offset * factor * _rung(second_level, y + second_extra, shifts[1]) + constant * front * _rung(
        level, x + extra, shifts[0]
    )
    return front * factor * placed + single_terms + offset * constant


def _itself(a: int, b: int, X: Any, left: Any, right: Any) -> Any:
    """E[R_a(z + left) R_b(z + right)]: both are one or linear above the later threshold.

    Raises `Open` if the mean diverges, or diverges at equal thresholds.
    """
    import sympy

    if a > b:
        return _itself(b, a, X, right, left)
    if left == right:
        return _square(a, b, X, left)
    low = (left + right - sympy.Abs(left - right)) / 2
    if b < 2:
        ramps = [shift for shift, level in ((left, a), (right, b)) if level == 0]
        mean = _square(int(not ramps), 2 - max(len(ramps), 1), X, low)
        if len(ramps) == 2:
            return mean + (left + right - 2 * low) * _rung(0, X, low) + (left - low) * (right - low) * _below(low, X)
        return mean + sum((shift - low) * _below(low, X) for shift in ramps)
    if a < 2:
        x = sympy.Symbol("x_", real=True)
        density = sympy.exp(-(x**2) / (2 * X)) / sympy.sqrt(2 * sympy.pi * X)
        slope = sympy.diff((x + left if a == 0 else 1) * density, x, b - 2).subs(x, -right)
        return (-1) ** b * symbols.own()["step"](left - right) * slope
    raise Open("the product of the derivatives of two steps of the same field has no finite mean")


def _square(a: int, b: int, X: Any, shift: Any) -> Any:
    """Return E[R_a(z + u) R_b(z + u)], a <= b: products of a ramp or a step with another function."""
    import sympy

    if (a, b) == (0, 0):  # E[(z + u)^2; z > -u], by Stein's lemma
        return shift * _rung(0, X, shift) + X * _rung(1, X, shift)
    if b == 1:
        return _rung(a, X, shift)
    if (a, b) == (0, 2):
        return sympy.S.Zero
    if (a, b) == (1, 2):
        return _rung(2, X, shift) / 2
    if (a, b) == (0, 3):  # x delta'(x) = -delta(x), of which the ramp has half
        return -_rung(2, X, shift) / 2
    raise Open("the squared derivative of a step has no finite mean")


def _joint(a: int, b: int, X: Any, Y: Any, T: Any, D: Any, left: Any, right: Any) -> Any:
    """E[R_a(z1 + left) R_b(z2 + right)] of variances X, Y, covariance T, D = X Y - T^2."""
    import sympy

    if a > b:
        return _joint(b, a, Y, X, T, D, right, left)
    pi, root = sympy.pi, sympy.sqrt(D)
    if b < 2:
        return _classical(a, b, X, Y, T, D, left, right)
    u, v = sympy.symbols("u v", real=True)
    if a >= 2:
        density = sympy.exp(-(Y * u**2 - 2 * T * u * v + X * v**2) / (2 * D)) / (2 * pi * root)
        return ((-1) ** (a + b) * sympy.diff(density, u, a - 2, v, b - 2)).subs({u: -left, v: -right})
    # Given z2 = v the first field is N(T v / Y, D / Y).
    mean, spread = T * v / Y + left, sympy.sqrt(D / Y)
    probability = (1 + sympy.erf(mean / spread / sympy.sqrt(2))) / 2
    inner_mean = (
        probability
        if a == 1
        else mean * probability + spread * sympy.exp(-(mean**2) / spread**2 / 2) / sympy.sqrt(2 * pi)
    )
    density = sympy.exp(-(v**2) / (2 * Y)) / sympy.sqrt(2 * pi * Y)
    return ((-1) ** b * sympy.diff(density * inner_mean, v, b - 2)).subs(v, -right)


def _classical(a: int, b: int, X: Any, Y: Any, T: Any, D: Any, left: Any, right: Any) -> Any:
    """Ramps and steps alone, a <= b: the orthant probability, and by Stein's lemma what lies above it."""
    import sympy

    pi, root = sympy.pi, sympy.sqrt(D)
    biased = left != 0 or right != 0
    if not biased:
        angle = sympy.Function("angle")(T, root)  # arcsin(T / sqrt(X Y)), accurate near 1 too
        if (a, b) == (0, 0):
            return (root + T * (pi / 2 + angle)) / (2 * pi)
        if (a, b) == (0, 1):
            return (sympy.sqrt(X) + T / sympy.sqrt(Y)) / (2 * sympy.sqrt(2 * pi))
        return sympy.Rational(1, 4) + angle / (2 * pi)
    orthant = sympy.Function("orthant")(left, right, X, Y, T, root)

    def joint(i: int, j: int) -> Any:
        return _joint(i, j, X, Y, T, D, left, right)

    if (a, b) == (1, 1):
        return orthant
    if (a, b) == (0, 1):
        return left * orthant + X * joint(2, 1) + T * joint(1, 2)
    return left * joint(1, 0) + X * joint(2, 0) + T * orthant
