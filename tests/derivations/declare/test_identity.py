"""Keys of compiled and traced functions: two models that differ in any respect do not share functions."""

import numpy as np
import pytest

import odesim
from derivations.declare import exact, sampled

BASE = {"student": {"unit": "He(2, w)", "units": 2}, "teacher": {"units": 2}}


def structure(tier, **tables):
    parameters = odesim.declare(**{**BASE, **tables}).parameters()
    found = exact.equations(parameters) if tier == "exact" else sampled.equations(parameters, "sampled")
    return found.code.structure


@pytest.mark.parametrize("tier", ["exact", "sampled"])
def test_the_constraint_and_the_loss_are_part_of_it(tier):
    kinds = [{}, {"training": {"weights": "sphere"}}, {"training": {"loss": "correlation"}}]
    assert len({structure(tier, **tables) for tables in kinds}) == len(kinds)


def test_the_order_of_the_numbers_is_part_of_it():
    student = {"unit": "tanh(c1*w) + c2*w", "units": 2}
    one = structure("sampled", student=student, parameters={"c1": 1.0, "c2": 2.0})
    assert one != structure("sampled", student=student, parameters={"c2": 2.0, "c1": 1.0})


def test_traced_flows_of_one_process_are_each_their_own():
    # The kernels of the two are one text; the constraint is not in it.
    for weights in ("free", "sphere"):
        system = odesim.declare(**BASE, training={"weights": weights}, start={"norm": 0.8})
        runs = [odesim.integrate(system, d=20, until=0.2, save_points=2, backend=b) for b in ("numba", "jax")]
        assert np.abs(runs[0]["Q_ww"] - runs[1]["Q_ww"]).max() < 1e-7, weights
