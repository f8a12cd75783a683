"""The measures that the claims of `liao` share, against what is known otherwise."""

import numpy as np
import pytest

from derivations.liao.claims import pruning, tools
from odesim.evidence.laboratory import Laboratory
from odesim.request.case import find_system

POINT = {"d": 10**6, "init": "orthogonal"}


@pytest.fixture(scope="module")
def lab():
    return Laboratory(find_system("liao"), "quick")


def test_the_distance_of_a_settled_pair_is_one_minus_its_overlap(lab):
    # The plain difference of two numbers near 1 keeps what is above their round-off: that of some hundred steps, which
    # differs between processors (5e-15 was seen).
    run = tools.settled(lab, POINT, 0)
    assert run is not None
    for j, i in enumerate(tools.used(tools.recovery(lab, POINT, 0))):
        plain = 1 - float(run["gamma2"][-1][i, j])
        assert tools.shortfall(lab, run, "gamma2", int(i), j) == pytest.approx(plain, rel=1e-4, abs=2e-14)


def test_every_stage_ends_where_a_teacher_is_recovered(lab):
    # The recovery times come from a run at a tolerance of 1e-6: overlaps of .9 are met to a few of its errors.
    run = tools.recovery(lab, POINT, 0)
    stages = tools.staged(lab, POINT, 0)
    assert len(stages) == 3
    for (time, end), j in zip(stages, np.argsort(run["T_gamma2"].min(axis=0)), strict=True):
        assert time == run["T_gamma2"].min(axis=0)[j]
        assert end["gamma2"][-1][:, j].max() == pytest.approx(0.9, abs=1e-3)


def test_the_hessian_at_the_optimum_has_the_exact_spectrum(lab):
    # c_1 - c_3 for directions of routers out of the plane of a pair, 9 - 18 c_1 for those of experts, and the block.
    rows = np.vstack([np.eye(2, 3)] * 2)
    evaluate = lab.functions(tools.from_rows(rows, 1, 1)).loss
    found = pruning.hessian(lambda x: evaluate(tools.from_rows(x, 1, 1).state), rows, 2)
    # Second differences at steps of 1e-3: relative errors of 1e-6.
    exact = [0.26901745, 1.81440973, 5.28082265, 6.47267177]
    np.testing.assert_allclose(np.linalg.eigvalsh(found), exact, rtol=1e-5)
