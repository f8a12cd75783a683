"""Hermite tensors and level sets against closed forms, samples, SciPy's quadrature, and coefficients of hermite."""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, special

import hermite.activations
import hermite.functions
import odesim
from derivations.declare import array_values, exponents, level_sets, teacher_label
from derivations.declare.grammar import read
from derivations.declare.hermite_tensors import of_function, of_polynomial
from hermite.polynomials import evaluate
from odesim.request.case import Case


def normal(z):
    return np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)


@pytest.mark.parametrize(
    ("text", "expansion"),
    [
        ("erf(w)", hermite.functions.erf(12)), ("relu(w)", hermite.functions.relu(12)),
        ("tanh(w)", hermite.functions.tanh(12)), ("logistic(w)", hermite.functions.logistic(12)),
        ("probit(w)", hermite.functions.probit(12)), ("exp(w)", hermite.functions.exponential(12)),
        ("cos(w)", hermite.functions.cosine(12)), ("relu(w + 0.4)", hermite.functions.relu(12, shift=0.4)),
    ],
)  # fmt: skip
def test_coefficients_of_one_direction_are_those_of_hermite(text, expansion):
    tree = read(text)
    breaks = (tuple(array_values.kinks(tree, "w", {})),)
    found = of_function(lambda w: array_values.value(tree, {"w": w}), breaks, 12)
    values = np.array([float(array.reshape(-1)[0]) for array in found.arrays])
    assert values == pytest.approx(expansion.orthonormal[:13], abs=1e-12 * math.sqrt(expansion.second_moment))
    assert found.error < 1e-12 * math.sqrt(expansion.second_moment)


def test_tensors_of_products_are_products():
    a, b = hermite.functions.relu(8).orthonormal, hermite.functions.erf(8).orthonormal
    found = of_function(lambda u, v: np.maximum(u, 0) * special.erf(v), [(0.0,), ()], 8)
    for n in range(9):
        for axes in itertools.product(range(2), repeat=n):
            i, j = axes.count(0), axes.count(1)
            expected = a[i] * b[j] * math.sqrt(math.factorial(i) * math.factorial(j) / math.factorial(n))
            assert found.arrays[n][axes] == pytest.approx(expected, abs=1e-13)


def test_polynomials_are_exact_and_their_tensors_have_all_of_the_variance():
    powers, exact = array_values.polynomial(read("He(3, u)*He(2, v) + u/3"), ("u", "v"), {})
    assert exact and powers[1, 0] == Fraction(1, 3) + 3
    found = of_polynomial(powers, 2, 6)
    assert [float((array**2).sum()) for array in found.arrays] == pytest.approx([0, 1 / 9, 0, 0, 0, 12, 0], abs=1e-14)
    assert not array_values.polynomial(read("w^2/sqrt(2)"), ("w",), {})[1]
    assert array_values.polynomial(read("w/(1 + w)"), ("w",), {}) is None
    assert array_values.polynomial(read("a*w^b"), ("w",), {"a": 0.1, "b": 2.0}) == ({(2,): Fraction(1, 10)}, True)


@pytest.mark.parametrize("directions", [1, 2, 3, 4])
def test_quadrature_of_polynomials_is_that_of_their_moments(directions):
    powers = {tuple(p): Fraction(sum(p) + 1, 3) for p in itertools.product(range(3), repeat=directions) if sum(p) < 5}

    def function(*z):
        return sum(float(c) * np.prod([x**k for x, k in zip(np.broadcast_arrays(*z), p, strict=True)], axis=0)
                   for p, c in powers.items())  # fmt: skip

    exact = of_polynomial(powers, directions, 5)
    for found in (of_function(function, [()] * directions, 5, 4), of_function(function, [()] * directions, 5)):
        for one, two in zip(found.arrays, exact.arrays, strict=True):
            assert one == pytest.approx(two, abs=1e-10 * exact.size)


def committee(kind, count, gram):
    """An own committee: its function of z and its rows, by Cholesky."""
    rows = np.linalg.cholesky(np.full((count, count), gram) + (1 - gram) * np.eye(count))
    return rows, lambda z: kind(z @ rows.T).sum(axis=1)


@pytest.mark.parametrize("case", ["tanh", "relu", "product", "softmax"])
def test_tensors_of_labels_against_samples(case):
    # Every entry up to order 3 of the tensors of a label, on a million samples: own formulas, z-scores.
    rng = np.random.default_rng(11)
    if case in ("tanh", "relu"):
        kind = np.tanh if case == "tanh" else lambda x: np.maximum(x, 0)
        rows, function = committee(kind, 3, 0.3)
        system = odesim.declare(student={"unit": f"{case}(w)"}, teacher={"units": 3, "gram": 0.3})
    elif case == "product":
        rows = np.array([[1.0, 0.0], [0.6, 0.8]])
        system = odesim.declare(student={"unit": "relu(u)*tanh(v)"}, teacher={"gram": rows @ rows.T})

        def function(z):
            return np.maximum(z @ rows[0], 0) * np.tanh(z @ rows[1])
    else:
        rows = np.eye(4)
        system = odesim.system("softmax_mixture")

        def function(z):  # rows are v_1, v_2, w_1, w_2
            share = 1 / (1 + np.exp(z[:, 1] - z[:, 0]))
            return share * np.tanh(z[:, 2]) + (1 - share) * np.tanh(z[:, 3])

    (label,) = teacher_label.labels(Case.build(system, {}).parameters)
    assert label.frame == pytest.approx(rows, abs=1e-9)
    tensors = exponents.of_label(label)
    z = rng.normal(size=(1_000_000, rows.shape[1]))
    y, scores = function(z), []
    for n in (1, 2, 3):
        for axes in itertools.combinations_with_replacement(range(z.shape[1]), n):
            sample = (
                y * np.prod([evaluate(axes.count(i), z[:, i]) for i in set(axes)], axis=0) / math.factorial(n) ** 0.5
            )
            scores.append((sample.mean() - tensors.arrays[n][axes]) / sample.std() * 1e3)
    assert np.abs(scores).max() < 4.5 and np.mean(np.square(scores)) < 2.0


@pytest.mark.parametrize(("kind", "coefficients"), [(np.abs, 2.0), (np.sign, 1.0)])
def test_the_error_of_a_quadrature_covers_kinks_across_no_axis(kind, coefficients):
    # abs and sign along a direction have tensors in closed form; the distance of two rules must cover the true error.
    even, odd = hermite.functions.relu(4).orthonormal, hermite.activations.sign(4).orthonormal
    exact_of = {2.0: [0, 0, *(2 * even[2:])], 1.0: odd}[coefficients]
    for direction in ([1.0, 1.0], [3.0, 4.0, 5.0], [1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0]):
        axis = np.array(direction) / np.linalg.norm(direction)
        tensors = of_function(
            lambda *z, a=axis: kind(sum(c * x for c, x in zip(a, z, strict=True))), [()] * len(axis), 4
        )
        for n, array in enumerate(tensors.arrays[1:], 1):
            exact = exact_of[n] * functools.reduce(np.multiply.outer, [axis] * n)
            assert float(np.linalg.norm(array - exact)) <= 2 * tensors.error, (direction, n)
        assert 1e-7 < tensors.error < 0.02


def test_the_shares_of_level_sets_are_those_of_scipy():
    # v_k = int A_k(y)^2 / A_0(y) dy / k! of He_3, the roots by NumPy's companion matrix, split at the turning values.
    def levels(y, k):
        roots = np.roots([1, 0, -3, -y])
        z = roots[np.abs(roots.imag) < 1e-9].real
        w = normal(z) / np.abs(3 * z**2 - 3)
        return float((w * evaluate(k, z)).sum() ** 2 / w.sum()) / math.factorial(k)

    found = level_sets.shares(lambda z: z**3 - 3 * z, order=3)
    for k in (1, 2, 3):
        parts = [(-700.0, -20.0), (-20.0, -2.0), (-2.0, 2.0), (2.0, 20.0), (20.0, 700.0)]
        expected = sum(integrate.quad(levels, a, b, args=(k,), limit=400)[0] for a, b in parts)
        assert found[k - 1] == pytest.approx(expected, abs=3e-3)


def test_atoms_and_kinks_of_level_sets_in_closed_form():
    relu = level_sets.shares(lambda z: np.maximum(z, 0), [0.0], 2)
    assert relu == pytest.approx([0.5 + 1 / math.pi, 0.5], abs=1e-6)  # the atom has (phi(0))^2/(1/2) and 0
    sign = level_sets.shares(np.sign, [0.0], 3)
    assert sign == pytest.approx([2 / math.pi, 0.0, 1 / (3 * math.pi)], abs=1e-12)
    even = level_sets.shares(np.abs, [0.0], 4)
    assert even == pytest.approx([0.0, 1.0, 0.0, 1.0], abs=2e-5) and (even[::2] < 1e-28).all()
    step = level_sets.shares(lambda z: np.where(z > 0.5, 1.0, 0.0), [0.5], 1)
    p = 0.5 * math.erfc(0.5 / math.sqrt(2))
    assert step == pytest.approx([normal(0.5) ** 2 / (p * (1 - p))], rel=1e-12)


def test_level_sets_see_an_exponent_of_three():
    c = math.sqrt(2 * math.log(2))
    found = level_sets.shares(lambda z: np.sign(z**3 - c * c * z), [-c, 0.0, c])
    mean = sum(s * integrate.quad(lambda z: evaluate(3, z) * normal(z), a, b, epsabs=1e-13)[0]
               for s, a, b in ((-1, -12, -c), (1, -c, 0), (-1, 0, c), (1, c, 12)))  # fmt: skip
    assert found[:3] == pytest.approx([0.0, 0.0, mean**2 / 6], abs=1e-12)
    assert level_sets.exponent(found) == 3
    nearly = level_sets.shares(
        lambda z: np.sign(z**3 - (c * c + 1e-3) * z), [-math.sqrt(c * c + 1e-3), 0.0, math.sqrt(c * c + 1e-3)]
    )
    assert level_sets.exponent(nearly) == 1


def test_kinks_are_found_where_they_are():
    assert array_values.kinks(read("relu(w - 0.5) + abs(w^2 - 2)"), "w", {}) == pytest.approx([-(2**0.5), 0.5, 2**0.5])
    assert array_values.kinks(read("clip(2*w, k)"), "w", {"k": 3.0}) == pytest.approx([-1.5, 1.5])
    assert array_values.kinks(read("relu(u + v)"), "u", {}) == []
    assert array_values.kinks(read("step(w)"), "w", {}, 0.5) == [0.0]
