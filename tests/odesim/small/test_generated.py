"""The modules that are written for a small flow."""

import sympy

from odesim.flow.tableau import weights
from odesim.small import generated
from odesim.small.hitting import Flow

m = sympy.Symbol("m")
ESCAPE = Flow({"m": m**2 * (1 - m**2)})


def test_other_coefficients_are_another_module(monkeypatch):
    before = generated._stem("lanes", ESCAPE._kernels)
    monkeypatch.setattr(generated, "weights", lambda: weights() * (1 + 1e-9))
    assert generated._stem("lanes", ESCAPE._kernels) != before
