"""Kernels: the logistic loss, arc-cosine kernels by quadrature and Hermite series, the Gram matrix of infinite
width.
"""

import math
from typing import Any

import numpy as np
import pytest
import sympy
from scipy import integrate, stats

from derivations.equations.arrays import Arrays
from derivations.equations.program import Ranges
from derivations.pmoe import kernels, signal
from derivations.pmoe.tiers.parts import LOSS, SLOPE
from derivations.statement import sp


def test_the_loss_and_its_slope():
    u = kernels.U
    cost, slope = LOSS.values["cost"], SLOPE.values["v"]
    assert sympy.simplify(LOSS.means["cost"][0].diff(u) + slope) == 0
    for x in (-3, -1, 2, 5):
        assert float(cost.subs(u, x)) == pytest.approx(math.log(1 + math.exp(-x)), rel=1e-14)
        assert float(cost.subs(u, x)) == pytest.approx(float(LOSS.means["cost"][0].subs(u, x)), rel=1e-14)


def test_the_loss_does_not_overflow():
    x: Any = sp.IndexedBase("x")[sp.Idx("i", 3)]
    arrays = Arrays(Ranges({}, {}), {"x": np.array([-2000.0, 0.0, 2000.0])})
    with np.errstate(over="ignore"):
        value, slope = (
            arrays.value(kernel.values[name].subs(kernels.U, x), x.indices)
            for kernel, name in ((LOSS, "cost"), (SLOPE, "v"))
        )
    assert np.allclose(value, [2000, math.log(2), 0])
    assert np.allclose(slope, [1, 0.5, 0])


@pytest.mark.parametrize("rho", [-0.9, -0.3, 0.0, 0.5, 0.95])
def test_kappa_is_the_probability_that_both_units_are_active(rho):
    law = stats.multivariate_normal(mean=[0, 0], cov=np.array([[1, rho], [rho, 1]]))  # type: ignore[arg-type]
    assert float(kernels.kappa0().subs(kernels.RHO, rho)) == pytest.approx(law.cdf([0, 0]), abs=1e-8)

    def product(b: float, a: float) -> float:
        return a * b * float(law.pdf([a, b]))

    exact = integrate.dblquad(product, 0, 9, 0, 9, epsabs=1e-9)[0]
    assert float(kernels.kappa1().subs(kernels.RHO, rho)) == pytest.approx(exact, abs=1e-7)


def test_step_coefficients_against_quadrature():
    from numpy.polynomial.hermite_e import hermeval

    for j in range(6):
        exact = integrate.quad(lambda u, j=j: hermeval(u, np.eye(6)[j]) * math.exp(-u * u / 2), 0, 12)[0]
        assert float(kernels.step_coefficient(j)) == pytest.approx(exact / math.sqrt(2 * math.pi), abs=1e-10)


def test_the_series_sums_to_the_arcsine():
    rest = sympy.series(kernels.kappa0(), kernels.RHO, 0, 16).removeO() - kernels.series(15)
    assert sympy.simplify(rest) == 0


def test_limits_of_the_kernel():
    assert signal.kappa0(1.0) == 0.5
    assert signal.kappa0(0.0) == 0.25
    assert signal.kappa0(-1.0) == 0.0
    gram = np.array([[4.0, 2.0], [2.0, 4.0]])  # lengths 2, cosine 1/2
    assert np.allclose(signal.kernel(gram), [[2.0, 2 * (0.25 + 1 / 12)], [2 * (0.25 + 1 / 12), 2.0]])


def test_kappa_is_exact_on_a_diagonal_of_rounded_ones():
    """arcsin near 1 loses half of the digits: 1 - 1e-16 would give an error of 2e-9."""
    x = np.random.default_rng(0).standard_normal((6, 9))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    gram = x @ x.T
    assert np.abs(np.diag(signal.kernel(gram)) - np.diag(gram) / 2).max() < 1e-15


def test_random_units_have_the_kernel():
    """sum_r a^2 1(h >= 0) 1(h' >= 0)/M at M = 2e5, rho = 1/2; its relative spread is sqrt((3/kappa0 - 1)/M)."""
    rng, rho, size = np.random.default_rng(1), 0.5, 200_000
    a, u, w = rng.standard_normal((3, size))
    found = (a**2 * (u >= 0) * (rho * u + math.sqrt(1 - rho**2) * w >= 0)).mean()
    kappa = float(signal.kappa0(rho))
    assert abs(found / kappa - 1) < 4 * math.sqrt((3 / kappa - 1) / size)
    assert math.sqrt((3 / kappa - 1) / 200) == pytest.approx(0.2, abs=1e-12)


def test_a_normal_number_exceeds_one_less_often_than_one_in_e():
    """Erratum 11: the lemma uses P(|a| >= 1) >= 1/e."""
    assert 2 * stats.norm.sf(1) == pytest.approx(0.3173, abs=1e-4)
    assert 2 * stats.norm.sf(1) < 1 / math.e
