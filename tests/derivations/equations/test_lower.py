"""Every pass of the lowering keeps the values of a statement: programs beside the interpreter, at random states."""

import dataclasses

import numpy as np
import pytest

from derivations.contract.layout import Dense, Layout
from derivations.equations import arrays
from derivations.equations.interpreter import Evaluator
from derivations.equations.lower import lower, pairs, products, simplify
from derivations.equations.lower.lift import Lift
from derivations.equations.program import Define, Pairs, Product
from derivations.equations.text import passes
from derivations.statement import Named, Statement, Watched, key_of, sp
from odesim.code.prepared import fillings
from tests.odesim.show.page.test_statements import VARIANTS, distance, label
from tests.odesim.show.page.tiers import Compiled, parameters, scan

TIERS = list(scan())
CLOSE = 1e-12
"""Of the largest entry of an array: sums of up to 1e5 terms in another order."""


def tier(system, stage, name, given):
    return Compiled(system, stage, name, given, backend="numpy")


def stages_of(run, what="rates"):
    symmetric = run.equations.layout.symmetric
    return lower(run.statement, run.constants, symmetric, what)


def gap(program, run, state):
    """The difference of a program from the interpreter, relative to the largest entry of a component."""
    wanted = Evaluator(run.statement, {**run.constants, **state}).rates()
    return distance(arrays.evaluate(program, run.constants, state), wanted, run.statement)


@pytest.mark.parametrize(("system", "stage", "name"), TIERS, ids=["-".join(one) for one in TIERS])
def test_every_pass_keeps_the_values(system, stage, name):
    for seed, given in enumerate(parameters(system, stage, name)[:2]):
        run = tier(system, stage, name, given)
        programs = list(stages_of(run).values())
        rng = np.random.default_rng(seed)
        state = run.state(rng)[1]
        assert all(gap(program, run, state) < CLOSE for program in programs)
        for _ in range(3):
            assert gap(programs[-1], run, run.state(rng)[1]) < CLOSE
        if run.statement.loss is not None:
            found = arrays.evaluate(list(stages_of(run, "loss").values())[-1], run.constants, state)["loss"]
            wanted = Evaluator(run.statement, {**run.constants, **state}).loss()
            assert float(found) == pytest.approx(wanted, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize(("system", "stage", "name", "given"), VARIANTS, ids=map(label, VARIANTS))
def test_the_passes_follow_the_parameters(system, stage, name, given):
    run = tier(system, stage, name, given)
    state = run.state(np.random.default_rng(3))[1]
    assert gap(list(stages_of(run).values())[-1], run, state) < CLOSE


def dropped_term(program):
    """The program without one term of its longest sum of terms."""
    items = [i for i in program.body if isinstance(i, Define) and isinstance(i.value, sp.Add)]
    longest = max(items, key=lambda i: len(i.value.args))
    return replaced(program, longest, dataclasses.replace(longest, value=sp.Add(*longest.value.args[1:])))


def replaced(program, old, new):
    return dataclasses.replace(program, body=tuple(new if item is old else item for item in program.body))


def sums(program):
    return [i for i in program.body if isinstance(i, Define) and i.over]


def matrices(program):
    return next(i for i in program.body if isinstance(i, Product))


def kernels(program):
    return next(i for i in program.body if isinstance(i, Pairs))


def doubled(program):
    """The largest sum with a factor 1.001."""
    item = max(sums(program), key=lambda i: program.ranges.volume(i.domain))
    return replaced(program, item, dataclasses.replace(item, value=item.value * sp.Rational(1001, 1000)))


def transposed(program):
    """A matrix of a product with its subscripts exchanged."""
    item = matrices(program)
    right = [list(block) for block in item.right]
    k, x = next((k, x) for k, x in enumerate(right[0]) if x is not None and key_of(x) == "I3")
    right[0][k] = x.base[tuple(reversed(x.indices))]
    return replaced(program, item, dataclasses.replace(item, right=tuple(map(tuple, right))))


def scaled_block(program):
    item = matrices(program)
    rows = item.rows[0]
    (number, x), *rest = rows.left
    rows = dataclasses.replace(rows, left=((number * 2, x), *rest))
    return replaced(program, item, dataclasses.replace(item, rows=(rows, *item.rows[1:])))


def lost_block(program):
    item = matrices(program)
    right = ((None, *item.right[0][1:]), *item.right[1:])
    return replaced(program, item, dataclasses.replace(item, right=right))


def swapped_functions(program):
    item = kernels(program)
    values = (item.values[1], item.values[0], *item.values[2:])
    return replaced(program, item, dataclasses.replace(item, values=values))


def wrong_argument(program):
    item = kernels(program)
    use = item.uses[0]
    arguments = (use.arguments[1], use.arguments[0], *use.arguments[2:])
    return replaced(
        program, item, dataclasses.replace(item, uses=(dataclasses.replace(use, arguments=arguments), *item.uses[1:]))
    )


def wrong_order(program):
    """A correlation function of a series with the coefficients of another."""
    first, second = [i for i in program.setup if i.name.startswith("S_")][:2]
    setup = tuple(dataclasses.replace(second, name=first.name) if i is first else i for i in program.setup)
    return dataclasses.replace(program, setup=setup)


def wrong_constant(program):
    item = next(i for i in program.setup if i.name.startswith("part_"))
    setup = tuple(dataclasses.replace(i, value=i.value + 1) if i is item else i for i in program.setup)
    return dataclasses.replace(program, setup=setup)


def maximum_for_sum(program):
    item = sums(program)[0]
    return replaced(program, item, dataclasses.replace(item, reduction="max"))


def exchanged_outputs(program):
    one, two = program.outputs[:2]
    outputs = (dataclasses.replace(one, name=two.name), dataclasses.replace(two, name=one.name), *program.outputs[2:])
    return dataclasses.replace(program, outputs=outputs)


PLANTED = [dropped_term, doubled, transposed, scaled_block, lost_block, swapped_functions, wrong_argument, wrong_order,
           wrong_constant, maximum_for_sum, exchanged_outputs]  # fmt: skip


@pytest.mark.parametrize("plant", PLANTED, ids=lambda f: f.__name__)
def test_a_planted_error_is_noticed(plant):
    run = tier("liao", "train", "exact", {"m": 5, "m_star": 5, "d": 40})
    program = stages_of(run)["narrow"]
    state = run.state(np.random.default_rng(0))[1]
    assert gap(program, run, state) < CLOSE
    assert gap(plant(program), run, state) > 1e-6


def softmax(weighted):
    """A statement without equations that watches a softmax, with weights or without."""
    i, j = sp.Idx("i", 3), sp.Idx("j", 3)
    x, w, y = map(sp.IndexedBase, "xwy")
    weight = {i: w[i], j: w[j]} if weighted else {i: 1, j: 1}
    value = weight[i] * sp.exp(x[i]) / sp.Sum(weight[j] * sp.exp(x[j]), j)
    return Statement(
        name="softmax", title="", source="", clock="", validity="", neglects="", indices=[((i, j), "members")],
        state=(Named(x[i], "logits"),), constants=(Named(w[i], "weights"),), equations=(), bind=lambda initial: {},
        watched=(Watched(y[i], value, "shares"),),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("logits", "weights", "wanted"),
    [
        ([2000.0, 0.0, -2000.0], None, [1.0, 0.0, 0.0]),
        ([2000.0, 0.0, -2000.0], [0.0, 2.0, 1.0], [0.0, 1.0, 0.0]),
        ([2000.0, -2000.0, -2000.0], [0.0, 3.0, 1.0], [0.0, 0.75, 0.25]),
    ],
)
def test_a_softmax_subtracts_the_largest_logit_that_counts(logits, weights, wanted):
    numbers = {"w": np.array(weights or np.ones(3))}
    stated = softmax(weights is not None)
    assert np.isnan(Evaluator(stated, {**numbers, "x": np.array(logits)}).watched()["y"]).any()  # as it is written
    program = lower(stated, numbers, what="watch")["narrow"]
    assert np.array_equal(arrays.evaluate(program, numbers, {"x": np.array(logits)})["y"], wanted)
    layout = Layout((Dense("x", (3,)),))
    compiled = fillings(stated, layout, numbers, ("watch",))["watch"]
    assert np.array_equal(compiled.new(np.array(logits)), wanted)


def test_the_generator_finds_the_one_product_of_liao():
    run = tier("liao", "train", "exact", {"m": 25, "m_star": 5, "d": 1000})
    found = [i for i in stages_of(run)["narrow"].body if isinstance(i, Product)]
    assert len(found) == 1
    assert [len(rows.names) for rows in found[0].rows] == [4, 4]


def test_half_of_the_pairs_are_enough_where_both_exchange_their_roles():
    run = tier("liao", "train", "exact", {"m": 4, "m_star": 2, "d": 100})
    students, teachers = kernels(stages_of(run)["narrow"]).uses
    assert students.mirrored == (0, 5, 3, 2, 4)
    assert teachers.mirrored is None


def test_passes_are_printed_one_by_one():
    text = passes(tier("pruning", "tune", "homogeneous", {}).statement)
    assert "exp_d_x[s] = exp(-x[s])" in text
    assert "after pass inline: nothing changed" in text


def test_the_modules_of_the_passes_say_what_they_are():
    for module in (pairs, products, simplify, Lift):
        assert module.__doc__
