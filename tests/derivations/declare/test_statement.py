"""The statement of a declared model: interpreter, compiled functions, derivatives, and the page that runs."""

import numpy as np
import pytest

import odesim
from derivations.declare import exact, initial
from derivations.declare.parameter_class import rows
from derivations.declare.remembered import kernels
from derivations.equations.interpreter import Evaluator
from derivations.equations.tier import layout_of
from derivations.vectors import root
from odesim.code.generated import Generated
from odesim.show.page import python
from odesim.study.derivatives import Derivatives
from tests.derivations.declare.closed import EXACT, made

CLOSE = 1e-12
MOVE = 0.03
"""How far vectors are moved from a start along every axis."""
FEW = ("erf", "liao", "two groups", "phase retrieval", "erf with biases", "erf online")
SLOW = [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in EXACT]
"""Numba takes seconds for each."""


class Run:
    """The statement of a model of the table, its constants and layout, and states near a start."""

    def __init__(self, name, **sizes):
        parameters = made(EXACT[name]).parameters(d=60, **sizes)
        self.initial = initial.enter(parameters, None, np.random.default_rng(2))
        self.statement = exact.statement(parameters)
        self.constants = self.statement.numbers(self.initial)
        self.layout = layout_of(self.statement, self.constants)
        self.start = self.layout.pack(self.statement.begin(self.initial))
        # A series in a correlation is that of unit vectors, whose norms must not be moved.
        self.moves = self.layout.pack({part.name: self._free(part.name) for part in self.layout.parts})

    def _free(self, name):
        value = np.asarray(self.initial.state[name])
        fixed = self.statement.terms and value.ndim == 2 and name.startswith("Q")
        return 1.0 - np.eye(len(value)) if fixed else np.ones(value.shape)

    def states(self, count):
        """States near the start that vectors have: the students' vectors and numbers, moved a little.

        Overlaps that are moved one by one are soon those of no vectors, and fields on a spectrum, whose first
        eigenvalue is large, then have a negative variance: no number is the right answer there.
        """
        rng = np.random.default_rng(4)
        at, start = rows(self.initial.parameters), self.layout.unpack(self.start)
        gram = at.gram({**self.initial.constants, **start})
        vectors = np.array([root(one) for one in gram.reshape(-1, at.total, at.total)])
        held = np.einsum("...ii->...i", gram)[..., : at.students]
        for _ in range(count):
            near = vectors.copy()
            students = near[:, : at.students]
            students += MOVE * rng.normal(size=students.shape)
            if self.statement.terms:  # a series is that of vectors of these norms
                students *= np.sqrt(held / (students**2).sum(-1))[..., None]
            overlaps = at.components((near @ np.swapaxes(near, 1, 2)).reshape(gram.shape))
            numbers = {key: x + MOVE * rng.normal(size=x.shape) for key, x in start.items() if key not in overlaps}
            yield self.layout.pack({**overlaps, **numbers})

    def interpreted(self, y, changed=None):
        values = {**self.constants, **(changed or {}), **self.layout.unpack(y)}
        return Evaluator(self.statement, values)


@pytest.mark.parametrize("name", SLOW)
def test_the_compiled_functions_are_those_of_the_interpreter(name):
    for sizes in ({}, {"units": 4, "teachers": 3}) if "two groups" not in name else ({},):
        run = Run(name, **sizes)
        compiled = Generated(run.statement, run.statement.arguments(run.initial))
        for y in run.states(3):
            wanted = run.interpreted(y)
            rates = run.layout.pack(wanted.rates())
            assert np.abs(compiled(0.0, y) - rates).max() < CLOSE * max(1.0, np.abs(rates).max())
            assert compiled.loss(y) == pytest.approx(wanted.loss(), rel=CLOSE, abs=CLOSE)
            assert compiled.watch(y) == pytest.approx([float(wanted.watched()["error"])], rel=CLOSE, abs=CLOSE)


# "erf online" has every term of "erf", and more.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in ("liao", "erf") else name for name in SLOW]
)
def test_the_derivatives_are_those_of_differences(name):
    run = Run(name)
    found = Derivatives(run.statement, run.layout, run.start, run.statement.named(run.statement.arguments(run.initial)))
    rng, h = np.random.default_rng(0), 1e-5
    (y,) = run.states(1)
    jacobian = found.jacobian(y)
    size = max(np.abs(jacobian).max(), 1.0)

    def rates(state, changed=None):
        return run.layout.pack(run.interpreted(state, changed).rates())

    for _ in range(3):
        u = run.moves * rng.standard_normal(y.size) / np.sqrt(y.size)
        quotient = (rates(y + h * u) - rates(y - h * u)) / (2 * h)
        assert np.abs(jacobian @ u - quotient).max() < 1e-7 * size
    by_decay = found.by_constants(y, ["decay"])["decay"]
    quotient = (rates(y, {"decay": run.constants["decay"] + h}) - rates(y, {"decay": run.constants["decay"] - h})) / (
        2 * h
    )
    assert np.abs(by_decay - quotient).max() < 1e-7 * size


@pytest.mark.parametrize("name", ["erf with biases", "liao", "two groups", "two slots online", "erf sphere online"])
def test_the_printed_file_evaluates_the_same(name):
    parameters = made(EXACT[name]).parameters(d=60)
    stated = exact.printed(parameters)
    space = {}
    exec(python.page(stated), space)
    given = space["parameters"]()
    start = initial.enter(parameters, None, np.random.default_rng(0))
    numbers = stated.numbers(start)
    state = {key: np.asarray(value) for key, value in start.state.items()}
    wanted = Evaluator(stated, {**numbers, **state}).rates()
    for key, value in space["rates"](state, given).items():
        np.testing.assert_allclose(value, wanted[key], rtol=0, atol=1e-11 * max(1.0, np.abs(wanted[key]).max()))


def test_small_overlaps_keep_their_digits_on_the_sphere():
    # He_4/sqrt(24): the mean product is rho^4, so that dm/dt = 4 m^3 (1 - m^2) of one student and one teacher.
    unit = "He(4, w)/sqrt(24)"
    system = odesim.declare(student={"unit": unit}, teacher={"unit": unit}, training={"weights": "sphere"})
    parameters = system.parameters(d=100, overlap=1e-12)
    start = initial.enter(parameters, None, np.random.default_rng(0))
    stated = exact.statement(parameters)
    compiled = Generated(stated, stated.arguments(start))
    layout = layout_of(stated, stated.numbers(start))
    y = layout.pack(start.state)
    assert layout.unpack(compiled(0.0, y))["M_ww"][0, 0] == pytest.approx(4e-36, rel=1e-12)


def test_an_orthant_has_the_derivatives_of_differences():
    from derivations.declare.orthants import Orthant, orthant
    from derivations.statement import sp

    names = sp.symbols("u v X Y T", real=True)
    u, v, X, Y, T = names
    root = sp.sqrt(X * Y - T**2)
    whole, h = Orthant(u, v, X, Y, T, root), 1e-5

    def value(point):
        a, b, x, y, t = point
        return orthant(a, b, x, y, t, np.sqrt(x * y - t * t))

    for point in ([0.3, -0.7, 1.2, 0.8, 0.4], [-1.1, 0.2, 0.6, 1.5, -0.5], [0.5, 1.5, 1.0, 1.0, 0.9]):
        for k, name in enumerate(names):
            slope = sp.diff(whole, name)
            step = np.eye(5)[k] * h
            quotient = (value(np.add(point, step)) - value(np.subtract(point, step))) / (2 * h)
            places = dict(zip(names, point, strict=True))
            assert float(slope.xreplace(places).doit()) == pytest.approx(quotient, rel=1e-7, abs=1e-9), (point, name)


def test_a_model_without_closed_forms_has_no_statement_and_says_why():
    system = odesim.declare(student={"unit": "tanh(w)", "units": 2})
    with pytest.raises(odesim.UsageError, match=r"tier exact: the means of tanh .* use tier=sampled"):
        odesim.integrate(system, tier="exact", until=0.1)
    polynomial = odesim.declare(student={"unit": "exp(w/3)*w"}, training={"limit": "online"})
    with pytest.raises(odesim.UsageError, match="use tier=mixed"):
        odesim.integrate(polynomial, tier="exact", until=0.1)


def test_a_teacher_of_high_degree_has_an_online_limit():
    # Two of the four units of E[c c] are students: 2^2 x 13^2 cells are few, and 13^4 would be too many.
    for student, closed in (("w", True), ("w^12", False)):
        system = odesim.declare(student={"unit": student}, teacher={"unit": "w^12"}, training={"limit": "online"})
        found = kernels(system.parameters.declaration, ())
        assert (found.second == "") is closed
