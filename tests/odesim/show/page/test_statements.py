"""The printed equations are those that run: every page is evaluated beside the compiled right-hand side."""

import dataclasses
import re

import numpy as np
import pytest
import sympy as sp

import derivations
import odesim
from derivations.equations.interpreter import Evaluator, evaluate
from odesim.evidence.laboratory import Laboratory
from odesim.flow.problem import prepare
from odesim.request.case import Case

from .tiers import Compiled, parameters, scan

TIERS = list(scan())
CLOSE = 1e-12
"""Of the largest entry of an array: sums of up to 1e5 terms in another order."""


def distance(found, wanted, statement):
    """The largest difference of an array over its largest entry; a diagonal that is 1 by definition is left out."""
    worst = 0.0
    units = {v.target.base.name for v in statement.state if v.unit}
    assert set(found) == set(wanted)
    for name, value in found.items():
        other = np.array(wanted[name], float)
        assert np.shape(value) == other.shape, name
        if name in units:
            np.fill_diagonal(other, 0.0)
            value = value - np.diag(np.diag(value))
        size = np.abs(other).max(initial=0.0)
        gap = np.abs(value - other).max(initial=0.0)
        worst = max(worst, gap / size if size else gap)
    return worst


@pytest.mark.parametrize(("system", "stage", "tier"), TIERS, ids=["-".join(one) for one in TIERS])
def test_a_page_says_what_the_program_does(system, stage, tier):
    for seed, given in enumerate(parameters(system, stage, tier)):
        run = Compiled(system, stage, tier, given)
        y, state = run.state(np.random.default_rng(seed))
        wanted = run.flow(y)
        evaluator = Evaluator(run.statement, {**run.constants, **state})
        assert distance(evaluator.rates(), wanted, run.statement) < CLOSE
        printed = run.printed(state)
        assert distance(printed, wanted, run.statement) < CLOSE
        if run.statement.loss is not None:
            assert evaluator.loss() == pytest.approx(run.loss(y), rel=1e-12, abs=1e-13)


def test_every_system_has_tiers_here():
    assert {system for system, _, _ in TIERS} == set(derivations.names())
    assert len(TIERS) > 40


JOINT = {"k": 3, "l": 2, "n": 5, "p": 3, "m": 12}
TOKENS = {"d": 7, "n": 6, "l": 3, "k": 6, "m": 4, "important": 1}
VARIANTS = [
    ("liao", "train", "exact", {"m": 3, "m_star": 2, "d": 30, "degree": 2}),
    ("liao", "train", "exact", {"m": 3, "m_star": 2, "d": 30, "degree": 4, "gate": "probit", "temperature": 0.7}),
    ("liao", "train", "riccati", {"m": 3, "m_star": 2, "d": 30, "degree": 5}),
    ("liao", "tune", "linear", {"m": 3, "m_star": 3, "d": 30, "degree": 2}),
    ("liao", "tune", "linear", {"m": 3, "m_star": 3, "d": 30, "gate": "probit"}),
    *(("kawata", "phase1", "exact", {"C": 2, "J": 5, "d": 50, "link": ((0, 0.3, 0, 0.5), (0, 0, 0.2), (0, 0, 1.0)),
                                     "activation": name, "orthogonal": frame})
      for name in ("relu", "erf", "exp", "cos", "probit", "polynomial") for frame in (True, False)),
    ("kawata", "phase1", "paper", {"C": 3, "J": 5, "d": 50, "orthogonal": False}),
    *(("kawata", "phase1", "effective", {"C": 2, "J": 2, "d": 50, "link": ((0, 0.3, 0, 0.5), (0, 0, 0.2), (0, 0, 1.0)),
                                         "activation": name, "orthogonal": frame, "eta": 0.4, "zeta": 0.2, "M": 2})
      for name in ("relu", "erf", "exp", "cos", "probit", "polynomial") for frame in (True, False)),
    *(("pmoe", "joint", "L1", {**JOINT, "gate": name})
      for name in ("one", "softmax", "uniform", "sharp", "frozen")),
    ("pmoe", "joint", "L2", {**JOINT, "tie_rule": "jitter", "jitters": 3, "softness": 0.3}),
    ("pmoe", "joint", "L0", {**JOINT, "tie_rule": "fractional", "softness": 0.1}),
    ("pmoe", "experts", "L1", {"mode": "cnn", "n": 5, "p": 3, "m": 12}),
    *(("pmoe", "joint", tier, {**JOINT, "classes": 4, "gate": name})
      for tier, name in (("L0", "softmax"), ("L1", "softmax"), ("L1", "sharp"), ("L2", "uniform"), ("L2", "softmax"))),
    ("pmoe", "joint", "L1", {**JOINT, "classes": 3, "tie_rule": "jitter", "jitters": 3, "softness": 0.3}),
    ("pmoe", "joint", "L0", {**JOINT, "classes": 3, "tie_rule": "fractional", "softness": 0.1}),
    ("pmoe", "joint", "L1", {**JOINT, "loss": "softmax"}),
    *(("pmoe", "experts", tier, {"classes": 4, "n": 5, "p": 3, "m": 24, "delta_d": 0.3, "d": 9})
      for tier in ("L0", "L2")),
    ("pmoe", "experts", "L1", {"mode": "cnn", "classes": 5, "n": 4, "p": 2, "m": 12}),
    ("pmoe", "router", "L1", {"classes": 6, "n": 4, "p": 2, "m": 12, "N_r": 30, "delta_d": 0.2}),
    ("pruning", "tune", "recursion", {**TOKENS, "loss": "hinge"}),
    ("pruning", "tune", "recursion", {**TOKENS, "data": "multi_copy", "copies": 3}),
    ("pruning", "tune", "flow", {"d": 7, "n": 6, "l": 6, "k": 6, "m": 4, "important": 1}),
    *(("chen", "train", "p3", {"M": 2, "J": 2, "K": 2, "nodes": 2, "d": 10, "activation": name})
      for name in ("linear", "relu", "celu", "gelu", "silu", "tanh", "power")),
]  # fmt: skip


def label(case):
    return "-".join([*case[:3], *(f"{k}={v}" for k, v in case[3].items() if isinstance(v, str | bool))])


@pytest.mark.parametrize(("system", "stage", "tier", "given"), VARIANTS, ids=map(label, VARIANTS))
def test_the_page_follows_the_parameters(system, stage, tier, given):
    # The array form of the same kernels, which other tests hold equal to the compiled one, needs no compilation.
    run = Compiled(system, stage, tier, given, backend="numpy")
    y, state = run.state(np.random.default_rng(3))
    evaluator = Evaluator(run.statement, {**run.constants, **state})
    wanted = run.flow(y)
    assert distance(evaluator.rates(), wanted, run.statement) < CLOSE
    assert distance(run.printed(state), wanted, run.statement) < CLOSE
    if run.statement.loss is not None:
        assert evaluator.loss() == pytest.approx(run.loss(y), rel=1e-12, abs=1e-13)
    if run.statement.watched:
        flat = np.concatenate([value.ravel() for value in evaluator.watched().values()])
        assert run.functions["watch"](y, *run.arguments) == pytest.approx(flat, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize(("gate", "temperature"), [("logistic", 1.7), ("probit", 1.7), ("logistic", 2.2)])
def test_a_page_of_a_steep_gate_is_off_by_what_it_says_at_most(gate, temperature):
    """The compiled flow takes more terms of the series than a page can evaluate, which says what is cut."""
    given = {"m": 3, "m_star": 2, "d": 30, "gate": gate, "temperature": temperature}
    run = Compiled("liao", "train", "exact", given, backend="numpy")
    y, state = run.state(np.random.default_rng(3))
    said = re.search("an error of at most (.+)$", run.statement.neglects)
    error = float(said[1]) if said else 1e-14
    assert 1e-12 < error < 1e-6 or not said
    wanted, off = run.flow(y), 100 * error  # a rate is a sum of some dozen of correlation functions
    assert distance(run.printed(state), wanted, run.statement) < max(off, CLOSE)
    assert distance(Evaluator(run.statement, {**run.constants, **state}).rates(), wanted, run.statement) < max(
        off, CLOSE
    )


@pytest.mark.parametrize(("stage", "tier"), [("joint", "L0"), ("joint", "L1"), ("joint", "L2"), ("router", "L0")])
def test_the_pages_of_several_classes_are_the_compiled_code(stage, tier):
    given = {"classes": 4, "n": 5, "p": 2, "m": 24, "delta_d": 0.2} | ({"k": 3, "l": 2} if stage == "joint" else {})
    run = Compiled("pmoe", stage, tier, given)
    y, state = run.state(np.random.default_rng(4))
    evaluator = Evaluator(run.statement, {**run.constants, **state})
    assert distance(evaluator.rates(), run.flow(y), run.statement) < CLOSE
    assert distance(run.printed(state), run.flow(y), run.statement) < CLOSE
    if run.statement.loss is not None:
        assert evaluator.loss() == pytest.approx(run.loss(y), rel=1e-12)


@pytest.mark.parametrize("law", ["iid", "distinct"])
def test_means_over_the_tokens_of_a_sample(law):
    given = {"d": 7, "n": 5, "l": 3, "k": 4, "m": 3, "important": 1, "missigned": 0, "weak": 0, "data": law}
    run = Compiled("pruning", "tune", "recursion", given)
    y, state = run.state(np.random.default_rng(5))
    evaluator = Evaluator(run.statement, {**run.constants, **state})
    assert distance(evaluator.rates(), run.flow(y), run.statement) < CLOSE
    assert distance(run.printed(state), run.flow(y), run.statement) < CLOSE
    assert evaluator.loss() == pytest.approx(run.loss(y), abs=1e-13)


def test_inputs_from_a_table():
    rng = np.random.default_rng(0)
    arrays = {"w": rng.standard_normal((4, 7)), "W": rng.standard_normal((4, 3, 7)), "a": np.array([1.0, -1, 1, -1])}
    arrays |= {"tokens": rng.integers(0, 7, (6, 5)), "y": np.repeat([1, -1], 3)}
    import derivations
    from derivations.pruning.initial import enter, read

    defaults = derivations.system("pruning").parameters(data="empirical", l=2, n=5, d=7, k=4, m=3)
    initial = enter(read(arrays, defaults), arrays, rng)
    run = Compiled("pruning", "tune", "recursion", {}, initial=initial)
    y, state = run.state(rng)
    evaluator = Evaluator(run.statement, {**run.constants, **state})
    assert distance(evaluator.rates(), run.flow(y), run.statement) < CLOSE
    assert evaluator.loss() == pytest.approx(run.loss(y), rel=1e-12)
    printed = run.printed(state)
    assert distance(printed, run.flow(y), run.statement) < CLOSE


@pytest.mark.parametrize("count", [50, "all"])
@pytest.mark.parametrize("law", ["multi_copy", "iid", "distinct"])
def test_the_hinge_masks_a_list_of_inputs(law, count):
    given = {**TOKENS, "n": 5, "missigned": 0, "weak": 0, "loss": "hinge", "data": law, "n_test": count}
    run = Compiled("pruning", "tune", "recursion", given | ({"copies": 2} if law == "multi_copy" else {}))
    y = 4 * run.state(np.random.default_rng(1))[0]
    state = run.equations.unpack(y)
    evaluator = Evaluator(run.statement, {**run.constants, **state})
    masked = evaluator.values["P_y"] == 0
    assert masked.any() and not masked.all()
    assert distance(evaluator.rates(), run.flow(y), run.statement) < CLOSE
    assert evaluator.loss() == pytest.approx(run.loss(y), rel=1e-12)
    printed = run.printed(state)
    assert distance(printed, run.flow(y), run.statement) < CLOSE


def behind_a_gate(activation, orthogonal, seed):
    """Neurons, frame and gates of explicit vectors, as overlaps; the second gate vanishes for one seed."""
    rng, C, d, n = np.random.default_rng(seed), 2 + seed % 2, 16, 4
    frame = rng.normal(size=(2 * C + 1, d))
    frame /= np.linalg.norm(frame, axis=1, keepdims=True)
    if orthogonal:
        frame = np.linalg.qr(frame.T)[0].T
    w = rng.normal(size=(n, d))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    theta = rng.normal(size=(2, d)) * ([[1.0], [0.0]] if seed == 2 else 1.0)
    m, inverse = w @ frame.T, np.linalg.inv(frame @ frame.T)
    far = w - m @ inverse @ frame
    far /= np.linalg.norm(far, axis=1, keepdims=True)
    arrays = {"kappa": m[:, :C], "xi": m[:, C], "nu": m[:, C + 1 :], "a": rng.normal(size=n), "b": rng.normal(size=n)}
    arrays |= {"theta": theta @ frame.T, "gate_gram": theta @ theta.T, "gate_direction": theta @ far.T}
    arrays |= {"directions": far @ far.T} | ({} if orthogonal else {"gram": frame @ frame.T})
    link = ((0, 0, 0, 1, 0.4), (0, 0, 0.5, 0.8, 0), (0, 0.3, 0, 0.6, 0.5), (0, 0, 0.2, 0, 0.7))
    request = {"C": C, "M": 2, "J": 2, "d": d, "rho": 1.5, "link": link[: C + 1], "tier": "gated"}
    request |= {"activation": activation, "orthogonal": orthogonal}
    if activation == "polynomial":
        request["sigma"] = (0.1, 0.3, 0.5, 0.4, 0.2)
    return Case.build("kawata", request, initial=arrays, stage="phase3")


@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("activation", ["relu", "erf", "exp", "cos", "probit", "polynomial"])
@pytest.mark.parametrize("seed", range(3))
def test_neurons_behind_a_gate(activation, orthogonal, seed):
    initial = prepare(behind_a_gate(activation, orthogonal, seed)).initial
    run = Compiled("kawata", "phase3", "gated", {}, initial=initial)
    assert run.equations.about.name == "gated"
    y, state = run.state(np.random.default_rng(seed))
    evaluator = Evaluator(run.statement, {**run.constants, **state})
    assert distance(evaluator.rates(), run.flow(y), run.statement) < CLOSE
    assert evaluator.loss() == pytest.approx(run.loss(y), rel=1e-12, abs=1e-13)
    printed = run.printed(state)
    assert distance(printed, run.flow(y), run.statement) < CLOSE


@pytest.mark.parametrize("degree", [2, 3])
def test_the_page_of_pruning_has_the_losses_of_the_stage(degree):
    from derivations.liao import pruning
    from derivations.liao.tiers.prune import statement

    initial = Laboratory(odesim.system("liao")).initial(m=5, m_star=2, d=30, degree=degree, seed=3)
    stated, matrix = statement(initial.parameters, "exact"), pruning.kernel_matrix(initial)
    found = pruning.greedy_prune(matrix, 5)
    kept = np.ones(5)
    for removed, before, after in zip(found.removed, found.losses, found.losses[1:], strict=False):
        run = Evaluator(stated, {**stated.numbers(initial), **initial.state, "kept": kept})
        assert run.loss() == pytest.approx(before, abs=1e-12)
        changes = np.where(kept > 0, run.values["Delta"], np.inf)
        assert changes.argmin() == removed
        assert changes.min() == pytest.approx(after - before, abs=1e-12)
        kept[removed] = 0
    assert found.removed.size > 1


def test_a_wrong_factor_or_a_transposed_index_is_seen():
    run = Compiled("liao", "train", "exact", {"m": 3, "m_star": 2, "d": 30}, backend="numpy")
    y, state = run.state(np.random.default_rng(0))
    equations = run.statement.equations
    first = dataclasses.replace(equations[0], rate=equations[0].rate * sp.Rational(1001, 1000))
    last = equations[-1]
    i, j = last.target.indices
    turned = dataclasses.replace(last, rate=last.rate.xreplace({last.target: last.target.base[j, i]}))
    for wrong in ((first, *equations[1:]), (*equations[:-1], turned)):
        found = evaluate(dataclasses.replace(run.statement, equations=wrong), {**run.constants, **state})
        assert distance(found, run.flow(y), run.statement) > 5e-4
