"""The activations that SymPy differentiates: values from other libraries, slopes by central differences."""

import math

import numpy as np
import pytest
from scipy.special import erf

from derivations.chen import kernels
from derivations.chen.tiers import parts
from derivations.equations import arrays
from derivations.equations.program import Ranges

KNOWN = {
    "cubic": lambda z: z**3,
    "linear": lambda z: z,
    "relu": lambda z: np.maximum(z, 0),
    "celu": lambda z: np.where(z > 0, z, np.expm1(z)),
    "gelu": lambda z: z * (1 + erf(z / math.sqrt(2))) / 2,
    "silu": lambda z: z / (1 + np.exp(-z)),
    "tanh": np.tanh,
    "power": lambda z: np.sign(z) * np.abs(z) ** 2.5,
}
POINTS = np.array([-2.3, -0.7, -0.01, 0.02, 0.4, 1.9])


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_an_activation_and_its_slope(name, library):
    library, special = arrays.libraries(library)
    z, power = kernels.Z.name, kernels.POWER.name
    formulas = arrays.Arrays(Ranges({}, {}), {z: library.asarray(POINTS), power: 2.5}, library, special)
    value, slope = (0 * POINTS + formulas.value(of(name), ()) for of in (kernels.activation, kernels.slope))
    step = 1e-5
    numeric = (KNOWN[name](POINTS + step) - KNOWN[name](POINTS - step)) / (2 * step)
    assert np.allclose(value, KNOWN[name](POINTS), rtol=1e-12, atol=1e-15)
    assert np.allclose(slope, numeric, rtol=1e-7, atol=1e-8)  # step^2 times third derivatives, round-off over step


def test_the_weights_of_a_specialist_are_means_over_the_label_and_the_feature_noise():
    a, s, gate = 1.7, 0.9, 0.3
    u = gate * (a * s) ** 3

    def q(z):
        return 1 / (1 + math.exp(z))

    def at_one_node(definition):
        value = definition.value.function
        kernel = parts.Q.values["q"]
        value = value.replace(lambda e: type(e).__name__ == "q", lambda e: kernel.subs(parts.Q.arguments[0], e.args[0]))
        nodes = {parts.XA[parts.I]: a, parts.XC[parts.R]: a, parts.WA[parts.I]: 1, parts.WC[parts.R]: 1}
        return float(value.xreplace(nodes))

    own, other = parts.mean_weights(s, gate, parts.OWN[parts.M], parts.OTHER[parts.M])
    assert at_one_node(own) == pytest.approx(a**3 * q(u), rel=1e-14)
    assert at_one_node(other) == pytest.approx(-(a**3) * (q(u) - q(-u)) / 2, rel=1e-14)


def test_the_early_drift_has_the_coefficient_of_lemma_e5():
    import sympy

    feature, centre = kernels.early_drift()
    alpha, k, m = sympy.symbols("alpha K M", positive=True)
    assert sympy.simplify(feature - alpha**3 / (2 * k * m**2)) == 0 and centre == 0
