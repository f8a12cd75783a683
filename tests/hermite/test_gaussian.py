"""The lemma for products against pairings enumerated one by one, hafnians and quadrature."""

from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from hermite import gaussian, quadrature
from hermite.errors import DegreeError, ShapeError
from hermite.polynomials import evaluate


def pairings(items):
    """Yield every perfect matching of a list."""
    if not items:
        yield []
        return
    for i in range(1, len(items)):
        for rest in pairings(items[1:i] + items[i + 1 :]):
            yield [(items[0], items[i]), *rest]


def isserlis(powers, covariance):
    """E[prod x_i^n_i] by enumerating pairings."""
    items = [i for i, n in enumerate(powers) for _ in range(n)]
    if len(items) % 2:
        return 0
    return sum(prod(covariance[i][j] for i, j in matching) for matching in pairings(items))


def by_powers(degrees, covariance):
    """E[prod He_{k_i}(x_i)] by writing each He_k in powers and Isserlis on each."""
    explicit = {0: {0: 1}, 1: {1: 1}, 2: {2: 1, 0: -1}, 3: {3: 1, 1: -3}, 4: {4: 1, 2: -6, 0: 3}}
    explicit |= {5: {5: 1, 3: -10, 1: 15}, 6: {6: 1, 4: -15, 2: 45, 0: -15}}
    total = 0
    for choice in product(*(explicit[k].items() for k in degrees)):
        total += prod(c for _, c in choice) * isserlis([n for n, _ in choice], covariance)
    return total


def rational_covariance(n, unit, seed):
    """A symmetric matrix of small fractions; the lemma is a polynomial identity and needs no positivity."""
    rng = np.random.default_rng(seed)
    matrix = [[Fraction(0)] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            value = Fraction(int(rng.integers(-6, 7)), 7)
            matrix[i][j] = matrix[j][i] = Fraction(1) if unit and i == j else value + 2 * (i == j)
    return matrix


def floats(n, seed, unit=True):
    """A positive definite covariance."""
    a = np.random.default_rng(seed).normal(size=(n, n + 2))
    matrix = a @ a.T / (n + 2)
    d = np.sqrt(np.diag(matrix))
    return matrix / np.outer(d, d) if unit else matrix


CASES = [d for n in (1, 2, 3, 4) for d in product(range(5), repeat=n) if sum(d) <= 8 and list(d) == sorted(d)]


@pytest.mark.parametrize("unit", [True, False])
def test_expectations_are_the_sum_over_all_pairings(unit):
    for degrees in CASES:
        covariance = rational_covariance(len(degrees), unit, seed=sum(degrees))
        assert gaussian.expectation(degrees, covariance) == by_powers(degrees, covariance), degrees


def test_symbolic_expectation_is_the_sum_over_all_pairings():
    for degrees in [(2, 2), (1, 1, 2), (3, 2, 1), (1, 1, 1, 1), (2, 2, 1, 1)]:
        free = gaussian.correlation_symbols(len(degrees))
        difference = gaussian.expectation_symbolic(degrees) - by_powers(degrees, free.tolist())
        assert sympy.expand(difference) == 0, degrees
        general = sympy.Matrix(len(degrees), len(degrees), lambda i, j: sympy.Symbol(f"c{min(i, j)}{max(i, j)}"))
        difference = gaussian.expectation_symbolic(degrees, general) - by_powers(degrees, general.tolist())
        assert sympy.expand(difference) == 0, degrees


@pytest.mark.slow  # half a minute in which that library compiles itself; the sums over multigraphs stay
@pytest.mark.slow  # the library compiles for half a minute
def test_unit_variance_products_are_hafnians_without_loops():
    walrus = pytest.importorskip("thewalrus")
    for degrees in [(2, 2), (3, 1, 2), (2, 2, 2, 2), (3, 3, 2, 4)]:
        covariance = floats(len(degrees), seed=3)
        # Wick: no pairing inside one polynomial, a zero diagonal for the hafnian
        repeated = np.repeat(np.arange(len(degrees)), degrees)
        hafnian = walrus.hafnian((covariance - np.eye(len(degrees)))[np.ix_(repeated, repeated)])
        assert gaussian.expectation(degrees, covariance) == pytest.approx(hafnian, rel=1e-11, abs=1e-11)


@pytest.mark.slow  # the library compiles for half a minute
def test_general_variance_products_are_hafnians_of_the_covariance_less_the_identity():
    walrus = pytest.importorskip("thewalrus")
    for degrees in [(4,), (2, 2), (3, 1, 2), (2, 4, 2, 2)]:
        covariance = floats(len(degrees), seed=5, unit=False)
        repeated = np.repeat(np.arange(len(degrees)), degrees)
        matrix = (covariance - np.eye(len(degrees)))[np.ix_(repeated, repeated)]
        assert gaussian.expectation(degrees, covariance) == pytest.approx(walrus.hafnian(matrix), rel=1e-10, abs=1e-11)


@pytest.mark.parametrize("degrees", [(3, 5), (2, 3, 3), (2, 1, 3, 2)])
def test_expectations_agree_with_quadrature(degrees):
    covariance = floats(len(degrees), seed=11, unit=False)

    def integrand(x):
        return prod(evaluate(k, row) for k, row in zip(degrees, x, strict=True))

    # 12 nodes are exact for these degrees; rounding over the grid is what remains
    assert gaussian.expectation(degrees, covariance) == pytest.approx(
        quadrature.expectation(integrand, covariance, nodes=12), rel=1e-10, abs=1e-10
    )


def test_two_factors_are_orthogonal_and_give_mehlers_power():
    rho = Fraction(2, 5)
    for j, k in product(range(6), repeat=2):
        expected = sympy.factorial(k) * sympy.Rational(2, 5) ** k if j == k else 0
        assert gaussian.expectation((j, k), [[1, rho], [rho, 1]]) == expected


@settings(derandomize=True, max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=4).filter(lambda k: sum(k) <= 10), st.booleans())
def test_multigraphs_have_the_degrees_asked_and_are_all_of_them(degrees, loops):
    n = len(degrees)
    found = set()
    for edges, own in gaussian.multigraphs(degrees, loops):
        used = [2 * x for x in own]
        for (i, j), m in edges.items():
            assert i < j and m > 0
            used[i] += m
            used[j] += m
        assert used == degrees
        found.add((tuple(sorted(edges.items())), own))
    assert found == brute_multigraphs(degrees, loops, n)


def brute_multigraphs(degrees, loops, n):
    """Every labelled matching of half-edges, reduced to its multiplicities."""
    items = [i for i, k in enumerate(degrees) for _ in range(k)]
    found = set()
    for matching in pairings(items) if len(items) % 2 == 0 else ():
        own, edges = [0] * n, {}
        for i, j in matching:
            if i == j:
                own[i] += 1
            else:
                edges[min(i, j), max(i, j)] = edges.get((min(i, j), max(i, j)), 0) + 1
        if loops or not any(own):
            found.add((tuple(sorted(edges.items())), tuple(own)))
    return found


def test_two_cubic_factors_have_thirty_pair_terms():
    assert len(gaussian.pair_terms(3, 3)) == 30
    # setting every correlation to 1 counts the maps: 3 ends to {1, 2, 4}, paired with 4 where they meet
    for p, q in product(range(5), repeat=2):
        x, y, g = sympy.symbols("x y g")
        series = sympy.exp(x * 2 + y * 2 + g * x * y)
        taylor = sympy.diff(series, (x, p), (y, q)) if p or q else series
        expected = taylor.subs({x: 0, y: 0, g: 1})
        assert sum(term[0] for term in gaussian.pair_terms(p, q)) == expected


def test_pair_kernel_on_polynomial_activations_is_the_lemma_for_four_factors():
    rows = rational_covariance(4, True, seed=2)
    rho = rows[0][1]

    def falling(n, a):
        return prod(range(n - a + 1, n + 1))

    for m, n, p, q in [(2, 2, 2, 2), (3, 1, 1, 3), (3, 3, 2, 2), (2, 3, 3, 2)]:

        def s(a, b, m=m, n=n):
            # He_m^(a) = m!/(m-a)! He_{m-a}, and two factors pair only at equal degree
            if a > m or b > n or m - a != n - b:
                return 0
            return falling(m, a) * falling(n, b) * prod(range(1, m - a + 1)) * rho ** (m - a)

        kernel = gaussian.pair_kernel(0, 0, p, q, rows[2][3], rows[0][2], rows[0][3], rows[1][2], rows[1][3], s)
        assert kernel == by_powers((m, n, p, q), rows)


def test_pair_kernel_starts_from_the_derivatives_asked():
    g, z11, z12, z21, z22 = sympy.symbols("g z11 z12 z21 z22")
    s = sympy.Function("S")
    kernel = gaussian.pair_kernel(1, 2, 0, 1, g, z11, z12, z21, z22, s)
    assert sympy.expand(kernel - z12 * s(2, 2) - z22 * s(1, 3)) == 0


def test_exact_entries_give_exact_answers():
    assert gaussian.expectation((1, 1), [[1, Fraction(1, 3)], [Fraction(1, 3), 1]]) == Fraction(1, 3)
    assert isinstance(gaussian.expectation((2, 2), [[2, 1], [1, 2]]), int)
    assert isinstance(gaussian.expectation((2, 2), [[1.0, 0.5], [0.5, 1.0]]), float)
    assert gaussian.expectation((), []) == 1
    assert gaussian.expectation((1, 2), [[1, 0], [0, 1]]) == 0


def test_wrong_covariances_and_degrees_are_refused():
    with pytest.raises(ShapeError, match="rows"):
        gaussian.expectation((1, 1), [[1.0]])
    with pytest.raises(ShapeError, match="got"):
        gaussian.expectation((1, 1), [[1.0, 0.5], [0.4, 1.0]])
    with pytest.raises(ShapeError):
        gaussian.expectation_symbolic((1, 1), sympy.eye(3))
    with pytest.raises(ShapeError):
        gaussian.expectation_symbolic((1, 1), sympy.Matrix([[1, 2], [3, 1]]))
    with pytest.raises(DegreeError):
        gaussian.expectation((1, -1), [[1.0, 0.5], [0.5, 1.0]])
    with pytest.raises(ShapeError):
        list(gaussian.multigraphs((1, 1), loops=[True]))
