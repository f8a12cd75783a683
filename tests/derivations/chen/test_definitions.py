"""Variables of a start of `chen`, each against its explicit definition."""

import numpy as np

from derivations.chen import initial
from derivations.chen.parameters import Parameters


def test_a_profession_is_the_largest_overlap_with_its_sign():
    feat = np.zeros((2, 3, 4))
    feat[0, 1, 2], feat[0, 2, 0] = 0.3, -0.9  # a cubic filter grows where its overlap is positive
    feat[1, 0, 3], feat[1, 2, 1] = 0.2, 0.1
    kstar, jstar = initial.professions(feat)
    assert kstar.tolist() == [2, 3] and jstar.tolist() == [1, 0]


def test_the_overlaps_of_a_file_are_inner_products_of_its_rows():
    rng = np.random.default_rng(0)
    p = Parameters(M=3, J=2, K=2, d=7)
    frame = np.linalg.qr(rng.standard_normal((7, 7)))[0]
    arrays = {
        "V": frame[:2],
        "C": frame[2:4],
        "W": rng.standard_normal((3, 2, 7)),
        "Theta": rng.standard_normal((7, 3)),
    }
    state = initial.from_weights(p, arrays).state
    for m in range(3):
        for k in range(2):
            assert np.isclose(state["gcen"][m, k], arrays["Theta"][:, m] @ arrays["C"][k], rtol=1e-14)
            assert np.isclose(state["gfeat"][m, k], arrays["Theta"][:, m] @ arrays["V"][k], rtol=1e-14)
            for j in range(2):
                assert np.isclose(state["feat"][m, j, k], arrays["W"][m, j] @ arrays["V"][k], rtol=1e-14)
                assert np.isclose(state["cen"][m, j, k], arrays["W"][m, j] @ arrays["C"][k], rtol=1e-14)
