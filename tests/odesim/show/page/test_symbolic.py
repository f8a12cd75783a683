"""Equations as SymPy expressions: the function made of them is the compiled right-hand side."""

import numpy as np
import pytest
import sympy

import odesim
from derivations import outside
from derivations.declare.tiers import on_grid, settled
from odesim.flow.problem import prepare
from odesim.request.case import Case

from .test_statements import CLOSE, TIERS, distance
from .tiers import Compiled, parameters


def without(case):
    """Return True for a model without equations in SymPy: some of its means are sampled, or computed over a grid."""
    return settled(case.parameters) != "exact" or on_grid(case.parameters)


@pytest.mark.parametrize(("system", "stage", "tier"), TIERS, ids=["-".join(one) for one in TIERS])
def test_the_function_of_a_tier_is_its_compiled_right_hand_side(system, stage, tier):
    given = parameters(system, stage, tier)[0]
    run = Compiled(system, stage, tier, given, backend="numpy")
    equations = odesim.derive(system, "sympy", stage=stage, tier=tier, **given)
    y, state = run.state(np.random.default_rng(7))
    found = equations.lambdify(**run.constants)(state)
    assert distance(found, run.flow(y), run.statement) < CLOSE
    assert set(found) == set(equations.state)


@pytest.mark.parametrize("name", outside.gallery())
def test_the_function_of_a_declared_model_is_its_compiled_right_hand_side(name):
    """The interpreter evaluates the expressions as they are written, the engine what lowering makes of them."""
    case = Case.build(name)
    if without(case):
        with pytest.raises(odesim.UsageError, match="no equations in SymPy"):
            odesim.derive(name, "sympy")
        return
    problem = prepare(case)
    y = problem.start + np.random.default_rng(0).uniform(-0.05, 0.05, problem.start.size)
    wanted, state = (problem.equations.unpack(x) for x in (problem.slope()(0.0, y), y))
    found = odesim.derive(name, "sympy").lambdify()(state)
    scale = max(float(np.abs(value).max()) for value in wanted.values())
    for key, value in wanted.items():
        np.testing.assert_allclose(found[key], value, rtol=0, atol=CLOSE * scale, err_msg=key)


def test_models_with_several_teachers_and_other_conventions():
    system = odesim.declare(
        student={"unit": "He(2, w) + He(3, w)", "units": 3, "output": "mean"},
        teacher=[{"unit": "He(2, w)", "units": 2, "name": "one"}, {"unit": "He(3, w)", "units": 1, "name": "two"}],
        training={"decay": 0.3},
    )
    problem = prepare(Case.build(system))
    y = problem.start + np.random.default_rng(1).uniform(-0.2, 0.2, problem.start.size)
    wanted, state = (problem.equations.unpack(x) for x in (problem.slope()(0.0, y), y))
    found = odesim.derive(system, "sympy").lambdify()(state)
    for key, value in wanted.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-12, atol=1e-12, err_msg=key)


def test_expressions_are_those_of_sympy():
    equations = odesim.derive("saad_solla_1995", "sympy")
    assert all(isinstance(target, sympy.Indexed) for target in equations.rhs)
    shown = {str(target): value for target, value in equations.definitions.items()}
    called = shown["V_M_ww[i, j]"]  # a kernel of norms and overlap
    q, m, p = sympy.symbols("q m p", positive=True)
    plain = shown[f"{type(called).__name__}(c0_0, c0_1, c1_1)"]
    plain = plain.xreplace({a: {"c0_0": q, "c0_1": m, "c1_1": p}[a.name] for a in plain.free_symbols})
    assert [str(a) for a in called.args] == ["Q_ww[i, i]", "M_ww[i, j]", "P_ww[j, j]"]
    # Saad & Solla 1995: the derivative of (2/pi) asin(m/sqrt((1 + q)(1 + p))) in m
    wanted = sympy.diff(2 / sympy.pi * sympy.asin(m / sympy.sqrt((1 + q) * (1 + p))), m)
    assert sympy.simplify(plain - wanted) == 0
    assert "d/dt M_ww[i, j]" in repr(equations) and equations._repr_latex_().startswith(r"\begin{align}")


def test_a_state_of_a_run_is_a_state_and_constants_can_be_changed():
    run = odesim.integrate("saad_solla_1995", until=2.0, save_points=3, rtol=1e-11)
    rates = odesim.derive("saad_solla_1995", "sympy").lambdify()
    h = 1e-3
    difference = (run(1.0 + h)["M_ww"] - run(1.0 - h)["M_ww"]) / (2 * h)  # to h^2
    np.testing.assert_allclose(rates(run(1.0))["M_ww"], difference, rtol=0, atol=1e-6)
    equations = odesim.derive("saad_solla_1995", "sympy")
    moved = equations.lambdify(decay=1.0)(run(1.0))["M_ww"]
    np.testing.assert_allclose(moved, rates(run(1.0))["M_ww"] - run(1.0)["M_ww"], rtol=1e-12)
    with pytest.raises(odesim.UsageError, match="'step' is not a constant of these equations"):
        equations.lambdify(step=1.0)
    with pytest.raises(odesim.UsageError, match="the state lacks M_ww"):
        rates({"Q_ww": np.eye(2)})


@pytest.mark.parametrize("name", ["saad_solla_1995", "ren_2025", "ben_arous_2021"])
def test_an_entry_is_an_expression_in_the_state_alone(name):
    equations = odesim.derive(name, "sympy")
    state = odesim.integrate(name, until=0.5, save_points=2)(0.3)
    rates = equations.lambdify()(state)
    for key, place in [(key, tuple(n - 1 for n in np.shape(rates[key]))) for key in equations.state]:
        place = (0, *place[1:])  # the diagonal of a matrix may be fixed
        found = equations.entry(key, *place)
        values = {a: state[str(a.base)][tuple(int(k) for k in a.indices)] for a in found.atoms(sympy.Indexed)}
        assert not found.has(sympy.Sum) and all(str(a.base) in equations.state for a in values)
        np.testing.assert_allclose(float(found.xreplace(values)), rates[key][place], rtol=1e-9, atol=1e-12)


PAPERS = {
    "kawata": ({"neurons": 3}, {"kappa": (2, 1), "xi": (0,), "nu": (1, 1)}),  # Hermite polynomials
    "pmoe": ({"preset": "tiny-separate"}, {"response": (1, 1), "route": (0, 2)}),  # indicators
    "pruning": (
        {"d": 12, "n": 6, "k": 4, "l": 3, "m": 2, "important": 1, "weak": 1, "missigned": 0},
        {"h": (2, 3), "u": (1, 1, 0)},  # an equation for each range of indices
    ),
}


@pytest.mark.parametrize("name", PAPERS)
def test_an_entry_of_a_paper_without_series_is_written_out(name):
    given, wanted = PAPERS[name]
    equations = odesim.derive(name, "sympy", **given)
    run = odesim.integrate(name, until=3, save_points=2, **given)
    state = {key: np.asarray(run[key][-1]) for key in equations.state}
    rates = equations.lambdify()(state)
    for key, place in wanted.items():
        found = equations.entry(key, *place)
        values = {a: state[str(a.base)][tuple(int(k) for k in a.indices)] for a in found.atoms(sympy.Indexed)}
        np.testing.assert_allclose(float(found.subs(values)), rates[key][place], rtol=1e-9, atol=1e-15, err_msg=key)
    assert any(np.abs(rates[key][place]) > 0 for key, place in wanted.items())


def test_a_refusal_names_the_formats_that_a_model_has():
    with pytest.raises(odesim.UsageError, match=r'has no equations in SymPy; use format="text"$'):
        odesim.derive("tanh_network", "sympy")


def test_an_entry_with_a_series_is_refused():
    with pytest.raises(odesim.UsageError, match=r"a kernel is an infinite series; lambdify\(\) evaluates"):
        odesim.derive("liao", "sympy", m=3, m_star=2, d=100).entry("gamma1", 0, 0)


def test_an_entry_has_numbers_or_symbols_for_constants_and_a_place_in_the_state():
    equations = odesim.derive("saad_solla_1995", "sympy")
    decay = sympy.Symbol("decay")
    assert equations.entry(equations.state["M_ww"], 0, 1, decay=decay).has(decay)
    assert not equations.entry("M_ww", 0, 1).has(decay)
    with pytest.raises(odesim.UsageError, match="the state has no variable 'X'; it has Q_ww, M_ww"):
        equations.entry("X", 0)
    with pytest.raises(odesim.UsageError, match="has 2 indices, but 1 were given"):
        equations.entry("M_ww", 0)
    with pytest.raises(odesim.UsageError, match="counted from 0, but the entry"):
        equations.entry("M_ww", 0, 9)
    with pytest.raises(odesim.UsageError, match="'step' is not a constant"):
        equations.entry("M_ww", 0, 0, step=1.0)


@pytest.mark.parametrize(("system", "stage"), [("liao", "prune"), ("kawata", "phase2")])
def test_a_stage_without_a_right_hand_side_has_no_function(system, stage):
    with pytest.raises(odesim.UsageError, match=r"without a right-hand side|has no equations of motion"):
        odesim.derive(system, "sympy", stage=stage)
