"""Exponents, separability and the multi-class flow: what has no dynamics of its own, or little."""

import math

import numpy as np
import pytest

from derivations.pmoe import closed, exponents, multiclass, separability
from derivations.pmoe.claims.gating import at_start


@pytest.mark.parametrize("name", exponents.CHAINS)
def test_every_reading_gives_its_exponents(name):
    assert all(exponents.agrees(name, exponents.EXPECTED[name]))


def test_a_chain_by_hand():
    """Separate: T = (l^2/(g^3 e^4))^2 = l^4 p^6 delta^3/e^8 with g = p^-1 delta^-1/2."""
    p, d, e = exponents.p, exponents.delta, exponents.eps
    values = {exponents.l: 3.0, p: 5.0, d: 1.7, e: 0.2}
    found = float(exponents.CHAINS["separate"].steps.subs(values))
    assert found == pytest.approx(3.0**4 * 5.0**6 * 1.7**3 / 0.2**8)


def test_no_reading_of_the_joint_proof_gives_the_printed_theorem():
    joint = [name for name in exponents.CHAINS if name.startswith("joint")]
    assert len(joint) == 4
    for name in joint:
        assert not exponents.agrees(name, exponents.PRINTED["joint"])[2]


@pytest.mark.parametrize(("angle", "expected"), [(0.05, 14.15), (0.1, 7.08), (0.3, 2.39)])
def test_beta_star_of_tilted_patterns(angle, expected):
    o, q = separability.tilted(angle)
    assert separability.beta_star(o, q) == pytest.approx(math.sqrt(2) / (2 * math.sin(angle)), rel=1e-9)
    assert separability.beta_star(o, q) == pytest.approx(expected, abs=0.01)


def test_margins_vanish_where_the_criterion_says():
    """Positive at n = 12, zero at 16 for 0.05; positive at 8, zero at 9 for 0.1; positive at 3, zero at 5 for 0.3."""
    for angle, yes, no in ((0.05, 12, 16), (0.1, 8, 9), (0.3, 3, 5)):
        o, q = separability.tilted(angle)
        assert separability.margin(o, q, yes) > 1e-6
        assert separability.margin(o, q, no) < 1e-9


def test_independent_patterns_are_always_separable():
    o, q = np.eye(5)[:2], np.eye(5)[2:]
    assert separability.beta_star(o, q) == math.inf
    assert separability.margin(o, q, 50) > 0.5


def test_margins_against_all_compositions():
    """The extreme compositions decide: brute force over all multisets gives the same margin."""
    from scipy.optimize import linprog

    from derivations.pmoe import world

    rng = np.random.default_rng(4)
    o, q = rng.standard_normal((2, 3)), rng.standard_normal((3, 3))
    sums = world.multisets(3, 3) @ q
    rows = np.vstack([np.hstack([-(o[0] + s), -1, 1]) for s in sums] + [np.hstack([o[1] + s, 1, 1]) for s in sums])
    bounds = [(-1, 1)] * 3 + [(None, None), (0, None)]
    brute = linprog([0, 0, 0, 0, -1], A_ub=rows, b_ub=np.zeros(len(rows)), bounds=bounds, method="highs")
    assert separability.margin(o, q, 4) == pytest.approx(-brute.fun, abs=1e-9)


def test_two_classes_are_the_separate_closed_form():
    """c = 2 with softmax: f_1 - f_2 = u moves twice as fast as one output, R = 1/(2 l^2)."""
    l = 3  # noqa: E741
    found = multiclass.flow_to(0.1, 2, l)
    assert found == pytest.approx(closed.time_to(0.1, 0.0, 2 / (4 * l**2)), rel=1e-5)


@pytest.mark.parametrize(("p", "k", "seen"), [(8, 8, 0.388), (4, 8, 0.703), (8, 32, 0.955), (0, 3, 1.0)])
def test_assumption_at_the_start_against_another_program(p, k, seen):
    assert at_start(p, k) == pytest.approx(seen, abs=0.006)
