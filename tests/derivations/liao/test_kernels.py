"""The pair kernel and its derivatives: against quadrature, the paper's displayed formulas, and each other."""

import itertools
import math

import numpy as np
import pytest
import sympy

from derivations.liao.pairs import correlation_pairs
from hermite import polynomials
from hermite.correlation import for_gate
from hermite.quadrature import expectation
from tests.derivations.liao import pair_polynomials as kernels

# The six functions as displayed in the paper's notation, typed from its formulas (Sab = S_ab(rho)); the derived
# expressions never see this text.
DISPLAYED = {
    "lam1_hat": """6*S11*g**3 + 18*S22*g**2*z12*z21 + 18*S31*g**2*z11*z12 + 9*S33*g*z12**2*z21**2
        + 18*S42*g*z11*z12**2*z21 + 9*S51*g*z11**2*z12**2 + S44*z12**3*z21**3 + 3*S53*z11*z12**3*z21**2
        + 3*S62*z11**2*z12**3*z21 + S71*z11**3*z12**3""",
    "lam2_hat": """6*S20*g**2*z12 + 6*S31*g*z12**2*z21 + 6*S40*g*z11*z12**2 + S42*z12**3*z21**2
        + 2*S51*z11*z12**3*z21 + S60*z11**2*z12**3""",
    "lam3_hat": """6*S11*g**2*z12 + 6*S22*g*z12**2*z21 + 6*S31*g*z11*z12**2 + S33*z12**3*z21**2
        + 2*S42*z11*z12**3*z21 + S51*z11**2*z12**3""",
    "lam4_hat": """6*S20*g**2*z11 + 6*S11*g**2*z21 + 6*S22*g*z12*z21**2 + 12*S31*g*z11*z12*z21
        + 6*S40*g*z11**2*z12 + S33*z12**2*z21**3 + 3*S42*z11*z12**2*z21**2 + 3*S51*z11**2*z12**2*z21
        + S60*z11**3*z12**2""",
    "lam5_hat": """2*S00*g**2 + 4*S11*g*z12*z21 + 4*S20*g*z11*z12 + S22*z12**2*z21**2 + 2*S31*z11*z12**2*z21
        + S40*z11**2*z12**2""",
    "lam5": """2*S00*g**2 + g*(4*S11*(z11*z22 + z12*z21) + 4*S20*z11*z12 + 4*S02*z21*z22)
        + S22*(z11**2*z22**2 + 4*z11*z12*z21*z22 + z12**2*z21**2) + 2*S31*z11*z12*(z11*z22 + z12*z21)
        + 2*S13*z21*z22*(z11*z22 + z12*z21) + S40*z11**2*z12**2 + S04*z21**2*z22**2""",
    "K": """6*S00*g**3 + g**2*(18*S11*(z11*z22 + z12*z21) + 18*S20*z11*z12 + 18*S02*z21*z22)
        + g*(9*S22*(z11**2*z22**2 + 4*z11*z12*z21*z22 + z12**2*z21**2) + 18*S31*z11*z12*(z11*z22 + z12*z21)
        + 18*S13*z21*z22*(z11*z22 + z12*z21) + 9*S40*z11**2*z12**2 + 9*S04*z21**2*z22**2)
        + S33*(z11**3*z22**3 + 9*z11**2*z12*z21*z22**2 + 9*z11*z12**2*z21**2*z22 + z12**3*z21**3)
        + 3*S42*z11*z12*(z11**2*z22**2 + 3*z11*z12*z21*z22 + z12**2*z21**2)
        + 3*S24*z21*z22*(z11**2*z22**2 + 3*z11*z12*z21*z22 + z12**2*z21**2)
        + 3*S51*z11**2*z12**2*(z11*z22 + z12*z21) + 3*S15*z21**2*z22**2*(z11*z22 + z12*z21)
        + S60*z11**3*z12**3 + S06*z21**3*z22**3""",
}
DEFINITIONS = {
    "lam1": ("rho", 1, (1, 1, 3, 3)),
    "lam2": ("z11", 3, (1, 0, 2, 3)),
    "lam3": ("z21", 3, (0, 1, 2, 3)),
    "lam4": ("z12", 3, (1, 0, 3, 2)),
    "lam5": ("g", 9, (0, 0, 2, 2)),
}


def displayed(name: str) -> sympy.Expr:
    """A displayed formula with its correlation symbols renamed to ours."""
    symbols = {f"S{a}{b}": kernels.correlation_symbol(a, b) for a in range(9) for b in range(9)}
    return sympy.sympify(DISPLAYED[name], locals=symbols)


def test_kernel_has_thirty_terms_and_equals_the_displayed_polynomial():
    derived = sympy.expand(kernels.kernel(3))
    assert sympy.expand(derived - displayed("K")) == 0
    from hermite.gaussian import pair_terms

    assert len(pair_terms(3, 3)) == 30


def test_lambda5_between_students_equals_the_displayed_polynomial():
    assert sympy.expand(kernels.kernel(3, *DEFINITIONS["lam5"][2]) - displayed("lam5")) == 0


@pytest.mark.parametrize("name", sorted(DEFINITIONS))
def test_teacher_lambda_equals_the_displayed_polynomial(name):
    derived = kernels.kernel(3, *DEFINITIONS[name][2]).subs(sympy.Symbol("z22"), 0)
    assert sympy.expand(derived - displayed(f"{name}_hat")) == 0


@pytest.mark.parametrize("name", sorted(DEFINITIONS))
def test_derivative_of_the_kernel_is_the_lambda_of_the_paper(name):
    variable, factor, definition = DEFINITIONS[name]
    assert sympy.expand(kernels.partial(3, variable) - factor * kernels.kernel(3, *definition)) == 0


def swap(expression: sympy.Expr) -> sympy.Expr:
    """Exchange the two experts: z11 <-> z22, z12 <-> z21 (S_ab is symmetric already)."""
    names = {"z11": "z22", "z22": "z11", "z12": "z21", "z21": "z12"}
    return expression.subs({sympy.Symbol(a): sympy.Symbol(b) for a, b in names.items()}, simultaneous=True)


def test_lambda3_is_lambda4_of_the_exchanged_pair():
    lam3, lam4 = (kernels.kernel(3, *DEFINITIONS[name][2]) for name in ("lam3", "lam4"))
    assert sympy.expand(lam3 - swap(lam4)) == 0


def test_kernel_is_odd_in_one_expert_vector_and_even_in_both():
    flip = {name: -sympy.Symbol(name) for name in ("g", "z12", "z22")}
    assert sympy.expand(kernels.kernel(3).subs(flip, simultaneous=True) + kernels.kernel(3)) == 0
    both = {name: -sympy.Symbol(name) for name in ("z11", "z12", "z21", "z22")}
    assert sympy.expand(kernels.kernel(3).subs(both, simultaneous=True) - kernels.kernel(3)) == 0


def gate_derivative(gate: str, temperature: float, order: int, x: np.ndarray) -> np.ndarray:
    """The gate's derivatives of order 0 and 1, in closed form."""
    if gate == "logistic":
        value = 1 / (1 + np.exp(-temperature * x))
        return value if order == 0 else temperature * value * (1 - value)
    from scipy.stats import norm

    return norm.cdf(temperature * x) if order == 0 else temperature * norm.pdf(temperature * x)


def numeric(expression: sympy.Expr, G: np.ndarray, gate: str, temperature: float) -> float:
    """A kernel expression at a correlation matrix of (v1, v2, w1, w2)."""
    values = {"g": G[2, 3], "z11": G[0, 2], "z12": G[0, 3], "z21": G[1, 2], "z22": G[1, 3]}
    symbols = [s for s in expression.free_symbols if s.name.startswith("S_")]
    pairs = [kernels.orders(s) for s in symbols]
    table = for_gate(gate, temperature, pairs, 1e-13).evaluate_numpy(np.array(G[0, 1]))
    values |= {s.name: float(v) for s, v in zip(symbols, np.ravel(table), strict=True)}
    return float(expression.subs(values))


CASES = [("logistic", 1.0, 3), ("probit", 1.0, 3), ("logistic", 1.0, 2), ("logistic", 0.7, 4)]


@pytest.mark.parametrize(("gate", "temperature", "degree"), CASES)
def test_kernel_and_lambdas_equal_four_dimensional_quadrature(random_overlaps, gate, temperature, degree):
    G = random_overlaps(5)
    p = degree
    definitions = [
        (0, 0, p, p),
        (1, 1, p, p),
        (1, 0, p - 1, p),
        (0, 1, p - 1, p),
        (1, 0, p, p - 1),
        (0, 0, p - 1, p - 1),
    ]
    for a, b, q, r in definitions:

        def integrand(x, a=a, b=b, q=q, r=r):
            v1, v2, w1, w2 = x
            gates = gate_derivative(gate, temperature, a, v1) * gate_derivative(gate, temperature, b, v2)
            return gates * polynomials.evaluate(q, w1) * polynomials.evaluate(r, w2)

        expected = expectation(integrand, G, nodes=40)
        found = numeric(kernels.kernel(degree, a, b, q, r), G, gate, temperature)
        assert found == pytest.approx(expected, abs=1e-12 * math.factorial(p)), (a, b, q, r)


def test_diagonal_has_the_closed_form_in_the_gate_coefficients():
    c = {1: 0.20662096414190704, 3: -0.06239648395925919, 5: 0.06437997324904412, 7: -0.12258043626292643}
    for p in (0.0, 0.3, 0.8):
        G = np.array([[1, 1, p, p], [1, 1, p, p], [p, p, 1, 1], [p, p, 1, 1]], float)
        expected = 3 - 6 * c[1] - 18 * c[3] * p**2 - 9 * c[5] * p**4 - c[7] * p**6
        assert numeric(kernels.kernel(3), G, "logistic", 1.0) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("degree", [2, 3, 4, 5])
def test_correlation_pairs_are_those_of_the_derived_expressions(degree):
    found = set()
    for expression in (kernels.kernel(degree), *(kernels.partial(degree, v) for v in ("rho", "z11", "z12", "g"))):
        found |= {kernels.orders(symbol) for symbol in kernels.symbols_of(expression)}
    assert set(correlation_pairs(degree)) == found


def test_correlation_table_covers_the_fourteen_functions_of_degree_three():
    pairs = correlation_pairs(3)
    expected = {(a, b) for a, b in itertools.product(range(8), repeat=2) if a <= b and a + b in (0, 2, 4, 6, 8)}
    assert set(pairs) == expected - {(0, 8)}
    assert len(pairs) == 14
