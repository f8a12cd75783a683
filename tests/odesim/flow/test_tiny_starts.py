"""Escape times from starts far below 1/sqrt(d), against the integrals of the flow in closed form."""

import mpmath
import numpy as np
import pytest

import odesim
from derivations.contract import Dense, Layout
from odesim.errors import UsageError
from odesim.flow.resolution import tiny_components, tiny_start

RTOL = 1e-8
"""The default relative tolerance; times may be off by ten of it."""


def model(order):
    """dm/dt = k k! m^(k-1) (1 - m^2): one unit He_k on the sphere, with correlation loss."""
    return odesim.declare(
        student={"unit": f"He({order}, w)"}, teacher={}, training={"loss": "correlation", "weights": "sphere"},
        start={"overlap": 0.01}, event=[{"name": "T", "of": "M_ww"}],
    )  # fmt: skip


def exact_time(order, start):
    """The time from m = start to 1/2, by the primitive of 1 / (m^(k-1) (1 - m^2)) in 60 digits."""
    with mpmath.workdps(60):
        primitive = {
            2: lambda m: mpmath.log(m**2 / (1 - m**2)) / 2,
            3: lambda m: -1 / m + mpmath.atanh(m),
            4: lambda m: -1 / (2 * m**2) + mpmath.log(m**2 / (1 - m**2)) / 2,
        }[order]
        return float((primitive(mpmath.mpf("0.5")) - primitive(mpmath.mpf(start))) / (order * mpmath.factorial(order)))


SMALLEST = {2: 1e-300, 3: 1e-153, 4: 1e-102}
"""The start whose derivative m^(k-1) float64 still holds."""


@pytest.mark.parametrize("order", [2, 3, 4])
def test_escape_times_of_hermite_units_from_any_start(order):
    declared = model(order)
    for start in (1e-3, 1e-5, 1e-8, 1e-10, 1e-14, 1e-20, 1e-40, 1e-80, 1e-100, SMALLEST[order]):
        exact = exact_time(order, start)
        run = odesim.integrate(declared, overlap=start, until=3 * exact, save_points=3)
        assert run.outcome.kind == "completed", (start, run.outcome)
        assert float(run.extras["T"].values.ravel()[0]) == pytest.approx(exact, rel=10 * RTOL), start
        assert float(run["M_ww"].ravel()[-1]) == pytest.approx(1.0, abs=1e-6)
        assert run.origin.options["atol"] <= 1e-2 * RTOL * max(start, 1.01 * 1000**-0.5)


@pytest.mark.parametrize(("order", "starts"), [(2, (1e-3, 1e-20, 1e-100)), (3, (1e-3, 1e-8))])
def test_escape_times_of_hermite_units_by_jax(order, starts):
    """Its default method is explicit, so that the horizon lies close behind the escape."""
    declared = model(order)
    for start in starts:
        exact = exact_time(order, start)
        run = odesim.integrate(declared, overlap=start, until=exact * 1.00001, save_points=3, backend="jax")
        assert float(run.extras["T"].values.ravel()[0]) == pytest.approx(exact, rel=10 * RTOL), start


def test_a_start_whose_derivative_underflows_is_refused():
    with pytest.raises(UsageError, match=r"entries of 1e-200, so small that their derivatives underflow"):
        odesim.integrate(model(3), overlap=1e-200, until=1e199, save_points=3)


def test_an_ordinary_start_keeps_its_tolerance():
    run = odesim.integrate(model(3), overlap=1e-3, until=1.0, save_points=3)
    assert run.origin.options["atol"] == pytest.approx(1e-2 * RTOL * 1000**-0.5, rel=1e-14)


def test_an_absolute_tolerance_of_zero_is_taken_where_every_entry_has_a_size():
    exact = exact_time(3, 1e-12)
    run = odesim.integrate(model(3), overlap=1e-12, until=1.01 * exact, save_points=3, atol=0.0)
    assert run.origin.options["atol"] == 0.0
    assert float(run.extras["T"].values.ravel()[0]) == pytest.approx(exact, rel=10 * RTOL)
    with pytest.raises(UsageError, match="atol=0 gives no scale for the errors of M_ww"):
        odesim.integrate(model(3), overlap=0.0, until=1.0, save_points=3, atol=0.0)
    with pytest.raises(UsageError, match="atol= must be at least 0"):
        odesim.integrate(model(3), until=1.0, atol=-1e-9)


LAYOUT = Layout((Dense("M", (2,)), Dense("Q", (1,))))
Y = np.array([1e-9, -2e-9, 1.0])


def test_only_entries_that_grow_from_themselves_alone_are_tiny():
    """A drive of the size of the typical entries, or rounding of 1e-12, hides what is below them."""
    rates = np.array([1.0, 2.0, 0.0])
    found = tiny_start(LAYOUT, Y, lambda y: rates * y, 0.1, True, 1e-9)
    assert found is not None and found.scale == 2e-9 and found.places[0].tolist() == [0, 1]
    assert tiny_start(LAYOUT, Y, lambda y: rates * y + 0.1, 0.1, True, 1e-9) is None

    def rounded(y):
        return np.round(rates * y / 3.3e-13) * 3.3e-13

    noisy = tiny_start(LAYOUT, Y, rounded, 0.1, True, 1e-9)
    assert noisy is not None and 1e-7 < noisy.scale < 1e-3


def test_the_rounding_of_products_of_vectors_is_no_start():
    y = np.array([1e-17, -3e-17, 1.0])
    assert tiny_components(LAYOUT, y, 0.1, exact=False) == []
    assert len(tiny_components(LAYOUT, y, 0.1, exact=True)) == 1


def test_few_random_starts_have_entries_that_count_as_tiny():
    rng, layout = np.random.default_rng(0), Layout((Dense("M", (50,)),))
    counts = sum(bool(tiny_components(layout, rng.normal(size=50), 1.0, exact=False)) for _ in range(2000))
    assert counts < 10  # the smallest of n entries lies below x / n with probability .8 x: here x = 1e-4
