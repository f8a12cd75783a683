"""The arcsine of the tilted correlations, against the C library's."""

import math

import numpy as np

from derivations.declare.arcsine_loops import add_arcsines, half_arcsine


def test_the_polynomial_is_the_arcsine_to_the_last_place():
    x = np.concatenate([np.linspace(-0.5, 0.5, 20_001), np.geomspace(1e-300, 0.5, 1000)])
    exact = np.array([math.asin(value) for value in x])
    found = np.array([half_arcsine(value, value * value) for value in x])
    assert (np.abs(found - exact) <= np.spacing(np.abs(exact))).all()


def test_arcsines_of_all_arguments_are_added():
    # Without tilt (no coefficients, sizes 1) the argument is r itself; beyond 1, which rounding makes, it is pi/2.
    one, two = np.zeros((5, 1)), np.zeros((5, 1))
    one[4] = two[4] = 1.0
    for r in (*np.linspace(-1, 1, 2001), 1 + 1e-15, -1 - 1e-15):
        value = np.full(1, 0.25)
        add_arcsines(one, two, r, 3.0, False, value)
        assert abs(value[0] - 0.25 - 3 * math.asin(max(-1.0, min(1.0, r)))) < 2e-15
