"""Array forms of the tiers with steps of their own, which are generated from the statements, beside the loops."""

import numpy as np
import pytest

from derivations.contract import UsageError
from odesim.flow.problem import compile_functions, prepare
from odesim.machine import device
from odesim.request.case import Case

SMALL = {"k": 4, "m": 5, "d": 12, "n": 7, "l": 3, "important": 1, "missigned": 0, "weak": 0}
GIVEN = [
    {},
    {"n": 3},
    {"data": "multi_copy", "copies": 2, "zipf": 1.0},
    {"loss": "hinge", "stride": 2},
    {"tier": "flow"},
    {"tier": "flow", "n": 3},
    {"tier": "frozen"},
]


def problem(**given):
    return prepare(Case.build("pruning", {**SMALL, **given}, stage="tune"))


def gap(p, backend, y):
    """The largest difference of the slope from that of the loops, relative to its largest entry, and of the loss."""
    other = compile_functions(p.equations, backend)
    wanted = p.functions["flow"](0.0, y, *p.arguments)
    slope = np.abs(np.asarray(other["flow"](0.0, y, *p.arguments)) - wanted).max() / np.abs(wanted).max()
    if "loss" not in other:
        return slope
    return max(slope, abs(float(other["loss"](y, *p.arguments)) - p.functions["loss"](y, *p.arguments)))


@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_loops_have_the_slopes_and_losses_of_the_statement(given):
    p = problem(**given)
    rng = np.random.default_rng(0)
    assert gap(p, "numpy", p.start) < 1e-14
    for _ in range(3 if p.equations.about.name == "recursion" else 0):
        assert gap(p, "numpy", p.start * rng.uniform(-1.0, 2.0, p.start.size)) < 1e-14


def test_jax_has_them_too():
    p = problem(data="multi_copy", copies=2)
    with device.double():
        device.configure("cpu")
        assert gap(p, "jax", p.start) < 1e-14


def test_a_pattern_of_chance_0_has_no_part_in_the_mean():
    p = problem(data="multi_copy", copies=2)
    pi = np.array(p.arguments[p.equations.code.takes._fields.index("pi")])
    pi[0], pi[1] = 0.0, pi[0] + pi[1]
    arguments = p.equations.code.takes._make(p.arguments)._replace(pi=pi)
    found = compile_functions(p.equations, "numpy")["flow"](0.0, p.start, *arguments)
    wanted = p.functions["flow"](0.0, p.start, *arguments)
    assert np.abs(found - wanted).max() < 1e-14 * np.abs(wanted).max()


@pytest.mark.parametrize("data", ["iid", "distinct"])
def test_other_laws_of_the_tokens_are_for_the_loops(data):
    with pytest.raises(UsageError, match="numba back end"):
        compile_functions(problem(data=data).equations, "numpy")
