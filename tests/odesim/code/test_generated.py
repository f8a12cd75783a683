"""Generated functions beside the interpreter: numba for every tier, JAX for every tier, at random states."""

import numpy as np
import pytest

from derivations.equations import arrays
from derivations.equations.interpreter import Evaluator
from derivations.equations.lower import lower
from derivations.statement import key_of
from odesim.code import prepared as prepared_module
from odesim.code.formulas import Unsupported
from odesim.code.generated import Generated
from odesim.code.prepared import fillings, prepare_tables, tables_of
from odesim.machine import device
from tests.odesim.show.page.test_statements import distance
from tests.odesim.show.page.tiers import Compiled, parameters, scan

TIERS = [one for one in scan() if one[1] not in ("phase3", "post-tune")]
"""Two stages repeat the tiers of the stage before them."""
CLOSE = 1e-12
LONG = {
    ("chen", "p3"),
    ("chen", "full"),
    ("chen", "specnoise"),
    ("kawata", "effective"),
    ("pmoe", "L0"),
    ("pmoe", "L2"),
}
"""Tiers whose kernel takes more than two seconds to compile, or that are like a shorter one."""


SMALL = {"homogeneous", "riccati", "cascade", "linear", "R3", "L3", "explore", "group2", "flow"}
"""Tiers that JAX compiles in a second."""


def traced(tier):
    return pytest.param(*tier, id="-".join(tier), marks=[] if tier[2] in SMALL else [pytest.mark.slow])


def marked(tier):
    system, _, name = tier
    return pytest.param(*tier, id="-".join(tier), marks=[pytest.mark.slow] if (system, name) in LONG else [])


def prepared(system, stage, name, given):
    return Compiled(system, stage, name, given, backend="numpy")


def fresh(statement, layout, numbers, what="rates"):
    """The filling of new tables, which nothing has kept."""
    tables = tables_of(statement, layout, numbers, what)
    made = prepare_tables({what: tables})
    return made.parts[what].bound(tables.places.constants, made.kernel)


def compiled(run, what="rates"):
    """evaluate(y) of the tables of a tier."""
    return fresh(run.statement, run.equations.layout, run.constants, what).new


@pytest.mark.parametrize(("system", "stage", "name"), list(map(marked, TIERS)))
def test_compiled_rates_are_those_of_the_interpreter(system, stage, name):
    for seed, given in enumerate(parameters(system, stage, name)[:2]):
        run, rng = prepared(system, stage, name, given), np.random.default_rng(seed)
        evaluate = compiled(run)
        for _ in range(10):
            y, state = run.state(rng)
            wanted = Evaluator(run.statement, {**run.constants, **state}).rates()
            assert distance(run.equations.unpack(evaluate(y)), wanted, run.statement) < CLOSE


@pytest.mark.parametrize("activation", ["celu", "power"])
def test_the_race_of_any_activation_is_compiled(activation):
    """The activation CELU has sign(z): the one function that is not of Python's `math`."""
    run = prepared("chen", "train", "explore", {"M": 3, "J": 2, "K": 2, "d": 20, "activation": activation})
    y, state = run.state(np.random.default_rng(2))
    wanted = Evaluator(run.statement, {**run.constants, **state}).rates()
    assert distance(run.equations.unpack(compiled(run)(y)), wanted, run.statement) < CLOSE


@pytest.mark.parametrize(("system", "stage", "name"), list(map(marked, TIERS)))
def test_compiled_losses_are_those_of_the_interpreter(system, stage, name):
    run = prepared(system, stage, name, parameters(system, stage, name)[1])
    if run.statement.loss is None:
        pytest.skip("the statement has no loss")
    y, state = run.state(np.random.default_rng(3))
    wanted = Evaluator(run.statement, {**run.constants, **state}).loss()
    assert compiled(run, "loss")(y)[0] == pytest.approx(wanted, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize(
    "given", [{}, {"tie_rule": "jitter", "jitters": 2, "softness": 0.3}, {"gate": "sharp"}, {"classes": 3}]
)
def test_compiled_observables_are_those_of_the_interpreter(given):
    run = prepared("pmoe", "joint", "L1", {"k": 3, "l": 2, "n": 5, "p": 3, "m": 12, **given})
    whole = Generated(run.statement, run.arguments)
    for seed in range(5):
        y, state = run.state(np.random.default_rng(seed))
        evaluator = Evaluator(run.statement, {**run.constants, **state})
        flat = np.concatenate([value.ravel() for value in evaluator.watched().values()])
        assert np.abs(whole.watch(y) - flat).max() < CLOSE
        assert np.abs(whole.watch(y) - run.functions["watch"](y, *run.arguments)).max() < CLOSE
        assert whole.loss(y) == pytest.approx(evaluator.loss(), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["p3", "full"])
def test_compiled_observables_of_chen_are_those_of_the_interpreter(name):
    run = prepared("chen", "train", name, parameters("chen", "train", name)[1])
    whole = Generated(run.statement, run.arguments)
    for seed in range(3):
        y, state = run.state(np.random.default_rng(seed))
        if seed == 0:  # all logits tie: the first expert is chosen
            state |= {"gcen": 0 * state["gcen"], "gfeat": 0 * state["gfeat"]}
            state |= {"rest": 0 * state["rest"]} if name == "full" else {}
            y = run.equations.layout.pack(state)
        evaluator = Evaluator(run.statement, {**run.constants, **state})
        flat = np.concatenate([value.ravel() for value in evaluator.watched().values()])
        assert np.abs(whole.watch(y) - flat).max() < CLOSE
        assert whole.loss(y) == pytest.approx(evaluator.loss(), rel=1e-12)


def test_rates_loss_and_observables_are_one_kernel():
    run = prepared("pmoe", "joint", "L1", {"n": 4, "p": 2, "m": 8})
    layout = run.equations.layout
    rates = tables_of(run.statement, layout, run.constants, "rates")
    alone = tables_of(run.statement, layout, run.constants, "loss")
    both = tables_of(run.statement, layout, run.constants, "loss", beside=rates)
    assert both.kernel_text() == rates.kernel_text()
    assert 0 < len(both.steps.texts) - len(alone.steps.texts) < len(rates.steps.texts)


@pytest.mark.parametrize(("system", "stage", "name"), list(map(traced, TIERS)))
def test_traced_rates_are_those_of_the_interpreter(system, stage, name):
    import jax

    run = prepared(system, stage, name, parameters(system, stage, name)[1])
    symmetric = run.equations.layout.symmetric
    program = lower(run.statement, run.constants, symmetric)["narrow"]
    device.configure("cpu")
    library, special = arrays.libraries("jax")
    rates = jax.jit(lambda state: arrays.evaluate(program, run.constants, state, library, special))
    rng = np.random.default_rng(1)
    for _ in range(10):
        state = run.state(rng)[1]
        wanted = Evaluator(run.statement, {**run.constants, **state}).rates()
        found = {name: np.asarray(value) for name, value in rates(state).items()}
        assert distance(found, wanted, run.statement) < CLOSE


def test_the_kernel_knows_no_sizes():
    texts = set()
    for given in ({"m": 6, "m_star": 5, "d": 40}, {"m": 8, "m_star": 6, "d": 100}):
        run = prepared("liao", "train", "exact", given)
        texts.add(tables_of(run.statement, run.equations.layout, run.constants, "rates").kernel_text())
    assert len(texts) == 1


def test_a_rule_without_a_compiled_form_is_named():
    given = {**parameters("pruning", "tune", "recursion")[0], "data": "iid"}
    run = Compiled("pruning", "tune", "recursion", given)
    with pytest.raises(Unsupported, match="the rule potential"):
        tables_of(run.statement, run.equations.layout, run.constants, "rates")


def test_a_state_that_is_not_finite_is_seen():
    run = prepared("kawata", "phase1", "exact", parameters("kawata", "phase1", "exact")[0])
    y, _ = run.state(np.random.default_rng(0))
    y[0] = np.nan
    assert not np.isfinite(compiled(run)(y)).all()


def test_overlaps_near_one_take_more_terms_of_the_series():
    run = prepared("liao", "train", "exact", {"m": 3, "m_star": 2, "d": 30})
    y, _ = run.state(np.random.default_rng(0))
    y = 0.99 * np.sign(y)
    wanted = Evaluator(run.statement, {**run.constants, **run.equations.unpack(y)}).rates()
    assert distance(run.equations.unpack(compiled(run)(y)), wanted, run.statement) < 1e-11
    assert {key_of(v.target) for v in run.statement.state} == set(wanted)


@pytest.mark.parametrize(("system", "stage", "name", "changed"), [
    ("liao", "train", "exact", "a"),
    ("pruning", "tune", "homogeneous", "delta_0"),
    ("pmoe", "joint", "L1", "gram"),
])  # fmt: skip
def test_kept_tables_serve_other_numbers(system, stage, name, changed, monkeypatch, tmp_path):
    monkeypatch.setenv("ODESIM_CACHE", str(tmp_path))
    run = prepared(system, stage, name, parameters(system, stage, name)[0])
    y, layout = run.state(np.random.default_rng(0))[0], run.equations.layout
    other = {**run.constants, changed: 1.5 * np.asarray(run.constants[changed])}
    wanted = [fresh(run.statement, layout, numbers).new(y) for numbers in (run.constants, other)]
    assert not np.array_equal(*wanted)
    for memory in ({}, prepared_module._memory, {}):  # made; from memory; from the file that the first one wrote
        monkeypatch.setattr(prepared_module, "_memory", memory)
        for numbers, right in zip((run.constants, other), wanted, strict=True):
            found = fillings(run.statement, layout, numbers, ("rates",))["rates"]
            assert np.array_equal(found.new(y), right)
            monkeypatch.setattr(prepared_module, "tables_of", None)  # not called again


def test_tables_of_other_loops_are_not_found(monkeypatch):
    run = prepared("pmoe", "joint", "L1", {"n": 4, "p": 2, "m": 8})
    digests, modules = [], []
    monkeypatch.setattr(prepared_module, "_texts", lambda names: modules.extend(names) or str(len(digests)))
    for _ in range(2):  # the same statement, when a file has changed
        prepared_module._sources.cache_clear()
        digests.append(prepared_module._key(run.statement, run.equations.layout, run.constants, ("rates",), {}))
    prepared_module._sources.cache_clear()
    assert "derivations.pmoe.routing_loops" in modules
    assert digests[0] != digests[1]
