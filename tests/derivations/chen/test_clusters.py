"""The clusters of examples given in a file: those that the file names, and a guess where it names none."""

import numpy as np
import pytest

import odesim

# Two experts, two clusters in d = 8: the frame is v1, v2, c1, c2.  The routers send an example by its noise patch:
# expert 0 by coordinate 4 (outside the signals), expert 1 by coordinate 5.
FRAME = np.eye(8)
CLUSTER = np.array([0, 0, 0, 1, 1, 1, 1, 1])
EXPERT = np.array([0, 0, 1, 1, 1, 1, 0, 0])
# The noise patch of examples 2 and 6 has a larger component along the other cluster's centre than the centre has.
WRONG = [2, 6]


def start():
    rng = np.random.default_rng(3)
    theta = np.zeros((8, 2))
    theta[4, 0] = theta[5, 1] = 1.0
    x = np.zeros((8, 4, 8))
    for i, (k, m) in enumerate(zip(CLUSTER, EXPERT, strict=True)):
        x[i, 0, k] = x[i, 1, 2 + k] = 1.0
        x[i, 2, 1 - k] = 0.5
        x[i, 3, 4 + m] = 1.0
        if i in WRONG:
            x[i, 3, 2 + (1 - k)] = 1.5
    arrays = {"W": 0.1 * rng.normal(size=(2, 2, 8)), "Theta": theta, "V": FRAME[:2], "C": FRAME[2:4]}
    return {**arrays, "X": x, "y": np.ones(8)}


def trained(initial):
    run = odesim.simulate(
        "chen", method="explicit", step_size=1e-3, batch=8, until=1e-3, save_points=2, initial=initial
    )
    return run["train_entropy"][0, 0]


def entropy(*experts):
    """- sum over experts of their share times sum_k p log p of their clusters; counts by expert."""
    total = sum(map(sum, experts))
    return -sum(n / total * np.log(n / sum(counts)) for counts in experts for n in counts if n)


def test_clusters_that_are_given_are_used():
    # By hand: expert 0 gets examples 0, 1 of cluster 0 and 6, 7 of cluster 1; expert 1 gets 2 of 0 and 3, 4, 5 of 1.
    right = entropy((2, 2), (1, 3))
    guessed = entropy((3, 1), (0, 4))  # examples 2 and 6 change sides
    assert abs(right - guessed) > 0.1
    assert trained({**start(), "cluster": CLUSTER}) == pytest.approx(right, abs=1e-12)
    assert trained({**start(), "cluster": CLUSTER.astype(float)}) == pytest.approx(right, abs=1e-12)
    assert trained(start()) == pytest.approx(guessed, abs=1e-12)


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        (CLUSTER + 1, "from 0 to K - 1 = 1, but has 2"),
        (CLUSTER - 1, "but has -1"),
        (CLUSTER + 0.5, "whole numbers"),
        (CLUSTER[:7], r"shape \(n,\) = \(8,\)"),
    ],
)
def test_clusters_that_are_none_are_refused(cluster, said):
    with pytest.raises(odesim.UsageError, match=said):
        trained({**start(), "cluster": cluster})


def test_clusters_without_examples_are_refused():
    arrays = {name: values for name, values in start().items() if name not in ("X", "y")}
    with pytest.raises(odesim.UsageError, match="no X and y"):
        trained({**arrays, "cluster": CLUSTER})


def test_dispatch_is_a_joint_share():
    run = odesim.simulate(
        "chen", method="explicit", step_size=1e-3, batch=8, until=1e-3, save_points=2, initial=start(), n_test=50
    )
    assert run["dispatch"].sum(axis=(-2, -1)) == pytest.approx(1.0)
    assert "joint share" in run.state["dispatch"].meaning
