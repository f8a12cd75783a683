"""The arcsine of the tilted covariances, against the C library's."""

import math

import numpy as np

from derivations.declare.tilt import add_arcsines, half_arcsine


def test_the_polynomial_is_the_arcsine_to_the_last_place():
    x = np.concatenate([np.linspace(-0.5, 0.5, 20_001), np.geomspace(1e-300, 0.5, 1000)])
    exact = np.array([math.asin(value) for value in x])
    assert (np.abs(half_arcsine(x, x * x) - exact) <= np.spacing(np.abs(exact))).all()


def test_arcsines_of_all_arguments_are_added():
    # Without tilt (no coefficients, sizes 1) the argument is r itself; beyond 1, which rounding makes, it is pi/2.
    work = np.zeros((5, 2, 1))
    work[4] = 1.0
    for r in (*np.linspace(-1, 1, 2001), 1 + 1e-15, -1 - 1e-15):
        value = np.full(1, 0.25)
        add_arcsines(work, 1, 0, r, 3.0, False, value)
        assert abs(value[0] - 0.25 - 3 * math.asin(max(-1.0, min(1.0, r)))) < 2e-15
