"""Derivatives from statements: finite differences, JAX, and what has none."""

import dataclasses

import numpy as np
import pytest

import odesim
from derivations.equations import arrays
from derivations.equations.interpreter import Evaluator
from derivations.equations.lower import lower
from derivations.equations.tier import layout_of
from odesim.machine import device
from odesim.study.derivatives import Derivatives
from tests.odesim.show.page.tiers import Compiled, parameters, scan

RULED = {("chen", "p3"), ("chen", "full"), ("chen", "spec"), ("chen", "specnoise"), ("chen", "group2")}
"""Tiers with a rule, of which no derivative is known."""
TIERS = [
    one
    for one in scan()
    if one[1] not in ("phase3", "post-tune")
    and (one[0], one[2]) not in RULED
    and one[2] != "gated"  # its own only behind a gate, which phase1 does not have
]
SHORT = [one for one in TIERS if one[2] in ("homogeneous", "riccati", "cascade", "R3", "L3", "explore")]


def taken(system, stage, tier):
    """The derivatives of a tier at small parameters, its right-hand side by the interpreter, and a state."""
    run = Compiled(system, stage, tier, parameters(system, stage, tier)[0], backend="numpy")
    s = dataclasses.replace(run.statement, rows=None)
    layout = run.equations.layout if run.statement.rows is None else layout_of(s, run.constants)
    constants = s.named(s.arguments(run.initial))
    found = Derivatives(s, layout, layout.pack(run.equations.begin(run.initial)), constants)

    def rates(y, changed=None):
        values = {**constants, **(changed or {}), **layout.unpack(y)}
        return layout.pack(Evaluator(s, values).rates())

    return found, rates, layout.pack(run.state(np.random.default_rng(1))[1])


@pytest.mark.parametrize(
    ("system", "stage", "tier"),
    [pytest.param(*one, id="-".join(one), marks=[] if one in SHORT else [pytest.mark.slow]) for one in TIERS],
)
def test_the_jacobian_is_that_of_differences_and_of_jax(system, stage, tier):
    import jax

    found, rates, y = taken(system, stage, tier)
    jacobian = found.jacobian(y)
    size = max(np.abs(jacobian).max(), np.abs(rates(y)).max())
    rng, h = np.random.default_rng(0), 1e-5
    for _ in range(3):
        u = rng.standard_normal(y.size) / np.sqrt(y.size)
        quotient = (rates(y + h * u) - rates(y - h * u)) / (2 * h)
        assert np.abs(jacobian @ u - quotient).max() < 1e-7 * size  # h^2 times third derivatives
    symmetric = found.layout.symmetric
    program = lower(found.statement, found.constants, symmetric)["narrow"]
    device.configure("cpu")
    library, special = arrays.libraries("jax")

    def traced(flat):
        state = arrays.unpacked(found.layout, flat, library)
        return arrays.packed(found.layout, arrays.evaluate(program, found.constants, state, library, special), library)

    u = rng.standard_normal(y.size)
    _, along = jax.jvp(traced, (library.asarray(y),), (library.asarray(u),))
    assert np.abs(jacobian @ u - np.asarray(along)).max() < 1e-12 * size * np.sqrt(y.size)


@pytest.mark.parametrize(("system", "stage", "tier"), SHORT, ids=["-".join(one) for one in SHORT])
def test_the_derivatives_by_constants_are_those_of_differences(system, stage, tier):
    found, rates, y = taken(system, stage, tier)
    for name, gradient in found.by_constants(y).items():
        value = np.asarray(found.constants[name], float)
        rng, h = np.random.default_rng(2), 1e-6
        u = rng.standard_normal(value.shape)
        quotient = (rates(y, {name: value + h * u}) - rates(y, {name: value - h * u})) / (2 * h)
        taken_along = gradient.reshape(y.size, -1) @ np.ravel(u)
        round_off = 1e-15 * np.abs(rates(y)).max() / h
        assert np.abs(taken_along - quotient).max() < 1e-6 * np.abs(gradient).max() + round_off, name


@pytest.mark.parametrize(("system", "stage", "tier"), SHORT, ids=["-".join(one) for one in SHORT])
def test_second_derivatives_are_differences_of_jacobians(system, stage, tier):
    found, _, y = taken(system, stage, tier)
    rng, h = np.random.default_rng(3), 1e-5
    half = rng.standard_normal((y.size, y.size))
    matrix = half + half.T
    units = np.eye(y.size)
    slopes = np.array([(found.jacobian(y + h * e) - found.jacobian(y - h * e)) / (2 * h) for e in units])
    expected = np.einsum("kil,kl->i", slopes, matrix)
    assert np.abs(found.second(y, matrix) - expected).max() < 1e-6 * max(1.0, np.abs(slopes).max() * y.size)


def test_a_wrong_derivative_would_be_seen(monkeypatch, tmp_path):
    from derivations.equations import tangent
    from odesim.code import prepared

    monkeypatch.setenv("ODESIM_CACHE", str(tmp_path))  # or wrong tables would be kept for others
    monkeypatch.setattr(prepared, "_memory", {})
    right = tangent.derivative
    monkeypatch.setattr(tangent, "derivative", lambda *given: 1.001 * right(*given))
    found, rates, y = taken("pruning", "tune", "homogeneous")
    u, h = np.ones(y.size), 1e-5
    quotient = (rates(y + h * u) - rates(y - h * u)) / (2 * h)
    assert np.abs(found.jacobian(y) @ u - quotient).max() > 1e-4 * np.abs(quotient).max()


def test_neurons_that_do_not_act_on_each_other_have_a_jacobian_of_blocks():
    found = odesim.derivatives("kawata", C=2, J=2, M=1, d=100)
    sizes = [values.size for values in found.layout.unpack(found.start).values()]
    owner = np.concatenate([np.arange(size) // (size // 2) for size in sizes])
    jacobian = found.jacobian(found.start)
    assert not jacobian[owner[:, None] != owner].any() and jacobian.any()


def test_what_has_no_derivative_is_refused():
    found = odesim.derivatives("chen", M=2, J=2, K=2, nodes=2, d=10)
    with pytest.raises(odesim.UsageError, match="the rule winning has no derivative"):
        found.jacobian(found.start)
    found = odesim.derivatives("pruning", tier="homogeneous")
    with pytest.raises(odesim.UsageError, match="k is not a constant that can change"):
        found.along(found.start, found.start, {"k": 1.0})
