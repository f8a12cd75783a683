"""Identities of inputs with eigenvalues and clusters, each to rounding, for constraints, limits and sampled means.

One block of 1, an eigenvalue as a scale, and blocks of one eigenvalue are tested in `test_inputs` for closed forms.
"""

import numpy as np
import pytest

from tests.derivations.declare.test_inputs import ERF, rates
from tests.derivations.declare.test_mixtures import LOGISTIC, TEACHER, XOR

TRAINING = {
    "flow": {"limit": "flow"},
    "online": {"limit": "online", "step": 0.3, "decay": 0.1},
    "sphere": {"limit": "online", "step": 0.3, "weights": "sphere"},
    "normalised": {"limit": "online", "step": 0.3, "weights": "normalised"},
}
ROUNDING = 1e-13
"""Of rates of order 1, sums of some hundred terms; relative to the largest, as `sampled` solves with a frame."""


def first_of(names):
    """Parameters of a test, of which all but the first are slow: every statement takes seconds to write."""
    return [name if k == 0 else pytest.param(name, marks=pytest.mark.slow) for k, name in enumerate(names)]


def assert_same(found, wanted, rounding=ROUNDING):
    """Two sets of rates are equal to rounding, relative to the largest rate."""
    size = max(1.0, *(float(np.abs(value).max()) for value in wanted.values()))
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        assert np.abs(found[name] - value).max() < rounding * size, name


@pytest.mark.parametrize("limit", first_of(["online", "sphere", "normalised"]))
@pytest.mark.parametrize("unit", [ERF, "w^2 + 0.3*w"])
def test_blocks_of_one_eigenvalue_add_up(unit, limit):
    """Trained readouts and noise besides; the parts of a block are its share of the whole."""
    tables = {"student": {"unit": unit, "units": 2, "output": "trained"}, "teacher": {"units": 2, "noise": 0.2},
              "training": TRAINING[limit]}  # fmt: skip
    share = np.array([0.1, 0.3, 0.6])
    plain, start = rates(tables)
    state = {name: share[:, None, None] * start.state[name] for name in ("Q_ww", "M_ww")} | {"a": start.state["a"]}
    blocks, _ = rates({**tables, "inputs": {"blocks": [[1.0, f] for f in share]}}, state)
    assert_same({name: value.sum(0) if name != "a" else value for name, value in blocks.items()}, plain)
    assert_same({**blocks, "a": plain["a"]}, {**{n: share[:, None, None] * plain[n] for n in blocks}, "a": plain["a"]})


@pytest.mark.parametrize("limit", first_of(["normalised", "sphere"]))
def test_one_eigenvalue_is_a_scale_of_the_fields_of_constrained_weights(limit):
    """A unit phi(w) on inputs of variance 9/4 is phi(3 w/2) on those of variance 1; of its norm nothing is seen."""
    training = {key: value for key, value in TRAINING[limit].items() if key != "decay"}
    block = {"student": {"unit": ERF, "units": 2}, "teacher": {"units": 2, "unit": ERF}, "training": training,
             "inputs": {"blocks": [[2.25, "rest"]]}}  # fmt: skip
    unit = "erf(1.5*w/sqrt(2))"
    scaled = {"student": {"unit": unit, "units": 2}, "teacher": {"units": 2, "unit": unit}, "training": training}
    assert_same(rates(block)[0], rates(scaled)[0])


PARTED = {
    "teacher, online": ({**TEACHER, "training": TRAINING["online"]}, {}),
    "teacher, normalised": ({**TEACHER, "training": TRAINING["normalised"]}, {}),
    "teacher, sphere, sampled": (
        {**TEACHER, "training": TRAINING["sphere"], "start": {"overlap": 0.3}}, {"tier": "sampled", "points": 1024},
    ),
    "labels, trained readouts": ({**XOR, "start": {"norm": 0.5}}, {}),
    "logistic, sampled": (LOGISTIC, {"points": 1024}),
}  # fmt: skip


@pytest.mark.parametrize("name", first_of(PARTED))
def test_a_cluster_parted_into_two_alike_changes_nothing(name):
    tables, numbers = PARTED[name]
    last = tables["inputs"]["cluster"][-1]
    parts = [*tables["inputs"]["cluster"][:-1], {**last, "p": last["p"] / 4}, {**last, "p": 3 * last["p"] / 4}]
    one, start = rates(tables, **numbers)
    two, _ = rates({**tables, "inputs": {**tables["inputs"], "cluster": parts}}, dict(start.state), **numbers)
    assert_same(two, one)


@pytest.mark.parametrize("name", first_of(PARTED))
def test_another_order_of_the_clusters_changes_nothing(name):
    tables, numbers = PARTED[name]
    one, start = rates(tables, **numbers)
    turned = {**tables["inputs"], "cluster": tables["inputs"]["cluster"][::-1]}
    assert_same(rates({**tables, "inputs": turned}, dict(start.state), **numbers)[0], one)


@pytest.mark.parametrize("limit", first_of(TRAINING))
def test_another_order_of_the_blocks_permutes_the_rates(limit):
    """Of three clusters whose covariances differ."""
    order, blocks = [2, 0, 1], [[1.5, 0.2], [0.3, 0.5], [0.9, 0.3]]
    own = [[1.0, 0.3, 2.0], None, [0.5, 0.5, 1.5]]

    def tables(at):
        clusters = [
            cluster if one is None else {**{k: v for k, v in cluster.items() if k != "scale"},
                                         "eigenvalues": [one[k] for k in at]}
            for cluster, one in zip(TEACHER["inputs"]["cluster"], own, strict=True)
        ]  # fmt: skip
        inputs = {**TEACHER["inputs"], "blocks": [blocks[k] for k in at], "cluster": clusters}
        start = {"overlap": 0.3} if limit == "sphere" else TEACHER["start"]
        return {**TEACHER, "inputs": inputs, "training": TRAINING[limit], "start": start}

    one, start = rates(tables([0, 1, 2]))
    state = {name: value[order] if np.ndim(value) == 3 else value for name, value in start.state.items()}
    two, _ = rates(tables(order), state)
    assert_same(two, {name: value[order] if value.ndim == 3 else value for name, value in one.items()})
