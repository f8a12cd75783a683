"""Error messages about invalid mixtures of inputs; mixtures in starts and in files of weights."""

import numpy as np
import pytest

import odesim
from derivations.declare import initial
from tests.derivations.declare.test_inputs import parameters_of
from tests.derivations.declare.test_mixtures import TEACHER

# -- what is refused

ONE = {"means": {"mu": 1.0}, "cluster": [{"mean": "mu"}]}
HALVES = [{"p": 0.5, "mean": "mu"}, {"p": 0.5}]
REFUSED = {
    "probabilities": ({"means": {"mu": 1.0}, "cluster": [{"p": 0.5, "mean": "mu"}, {"p": 0.4}]}, "sum to 0.9"),
    "negative": ({"cluster": [{"p": 1.5}, {"p": -0.5}]}, "must be above 0"),
    "means alone": ({"blocks": [[1.0, 1.0]], "means": {"mu": 1.0}}, "means are only for clusters"),
    "unused": ({"means": {"mu": 1.0, "nu": 1.0}, "cluster": HALVES}, "no cluster has the mean nu"),
    "unknown": ({"means": {"mu": 1.0}, "cluster": [{"mean": "mue"}]}, "mu"),
    "square": ({"means": {"mu": 1.0}, "cluster": [{"mean": "mu^2"}]}, "a sum of multiples of mu"),
    "constant": ({"means": {"mu": 1.0}, "cluster": [{"mean": "mu + 1"}]}, "a sum of multiples of mu"),
    "norm": ({"means": {"mu": 0.0}, "cluster": [{"mean": "mu"}]}, "norm of the mean mu must be above 0"),
    "no norm": ({"means": {"mu": {"teacher": [0.1]}}, "cluster": [{"mean": "mu"}]}, "has no norm"),
    "cosines": (
        {"means": {"mu": {"norm": 1.0, "teacher": [0.1, 0.2]}}, "cluster": [{"mean": "mu"}]}, "2 teacher vectors",
    ),
    "shares": ({"means": {"mu": {"norm": 1.0, "spread": [0.5, 0.4]}}, "cluster": [{"mean": "mu"}]}, "sum to 0.9"),
    "number of shares": (
        {"means": {"mu": {"norm": 1.0, "spread": [0.5, 0.5]}}, "cluster": [{"mean": "mu"}]}, "1 blocks",
    ),
    "some labels": ({"cluster": [{"p": 0.5, "label": 1.0}, {"p": 0.5}]}, "give all clusters a label, or none"),
    "label and teacher": ({"cluster": [{"label": 1.0}]}, "replace a teacher"),
    "eigenvalues": ({"blocks": [[1.0, 0.5], [2.0, 0.5]], "cluster": [{"eigenvalues": [1.0]}]}, "has 1 eigenvalues"),
    "of a spectrum": ({"spectrum": "1/j", "cluster": [{"eigenvalues": [1.0]}]}, "takes scale"),
    "twice": ({"cluster": [{"eigenvalues": [1.0], "scale": 2.0}]}, "give only one of the two"),
    "negative eigenvalue": ({"cluster": [{"eigenvalues": [-1.0]}]}, "at least 0"),
    "key": ({"cluster": [{"probability": 1.0}]}, "probability"),
    "table": ({"cluster": {"p": 1.0}}, r"write \[\[inputs.cluster\]\]"),
    "name": ({"means": {"mean": 1.0}, "cluster": [{"mean": "mean"}]}, "cannot be the name"),
    "too many": ({"cluster": [{"p": 1 / 65}] * 65}, "at most 64"),
    "too many means": ({"means": {f"m{k}": 1.0 for k in range(17)}, "cluster": [{"mean": "m1"}]}, "at most 16"),
}  # fmt: skip


def run(tables):
    """A short run of a declaration."""
    return odesim.integrate(odesim.declare(**tables), until=0.1, save_points=2)


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_is_no_mixture_is_refused_in_a_sentence(name):
    inputs, said = REFUSED[name]
    tables = {"student": {"unit": "w"}, "teacher": {"unit": "w"}, "inputs": inputs}
    with pytest.raises(odesim.UsageError, match=said):
        run(tables)


def test_numbers_of_a_mixture_cannot_have_names_of_a_run():
    with pytest.raises(odesim.UsageError, match="'label' is already the name"):
        odesim.declare(student={"unit": "w"}, inputs=ONE, parameters={"label": 1.0})


def test_the_online_limit_refuses_means_as_long_as_the_inputs():
    made = odesim.declare(student={"unit": "w"}, inputs={**ONE, "means": {"mu": 30.0}}, training={"limit": "online"})
    odesim.integrate(made, d=1000, until=0.1, save_points=2)
    with pytest.raises(odesim.UsageError, match="longer than the deviations of the inputs from it"):
        odesim.integrate(made, d=800, until=0.1, save_points=2)


def test_given_weights_have_a_vector_for_every_mean():
    p = parameters_of(TEACHER, d=20)
    rng = np.random.default_rng(1)
    arrays = {
        "w": rng.normal(size=(2, 20)),
        "w_star": rng.normal(size=(1, 20)),
        "mean_m_star": rng.normal(size=(2, 20)),
    }
    start = initial.enter(initial.read(arrays, p), arrays, rng)
    assert start.state["mean_M_wm"][0] == pytest.approx(arrays["w"][:, :6] @ arrays["mean_m_star"][:, :6].T)
    with pytest.raises(odesim.UsageError, match="2 named means"):
        initial.read({**arrays, "mean_m_star": arrays["mean_m_star"][:1]}, p)


def test_a_start_has_the_declared_cosines_and_shares():
    tables = {**TEACHER, "inputs": {**TEACHER["inputs"], "means": {
        "mu": {"norm": 1.5, "teacher": [0.5], "spread": [0.4, 0.6]}, "nu": 1.0}}}  # fmt: skip
    start = initial.enter(parameters_of(tables), None, np.random.default_rng(2))
    among, along = start.constants["mean_P_mm"], start.constants["mean_P_wm"]
    assert np.diagonal(among, axis1=1, axis2=2) == pytest.approx(np.array([[0.9, 0.3], [1.35, 0.7]]))
    assert along.sum(0) == pytest.approx(np.array([[0.75, 0.0]])) and among.sum(0)[0, 1] == pytest.approx(0)
    assert start.state["M_ww"].sum(0) == pytest.approx(np.full((2, 1), 0.21))
