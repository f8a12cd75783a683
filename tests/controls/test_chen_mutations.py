"""Every term of the population flow matters: each mutation of the compiled loops is refuted by the model's mean."""

import inspect

import pytest

from derivations.chen import loops, population
from derivations.chen.claims.gradient import against_flow
from derivations.claim import Evaluator
from derivations.contract import load
from odesim.code import printer
from odesim.evidence.laboratory import Laboratory
from odesim.request.case import find_system

MUTATIONS = {
    "margin without the gate": ("margin = label * pi[m] * f\n", "margin = label * f\n"),
    "gradient without the gate": ("size = share * pi[m] * (", "size = share * ("),
    "gradient without the multiplier": ("(small if margin > 0.0 else 1.0) / (1.0 + small)", "0.5"),
    "routing by the softmax": ("chance * example[3, m]", "chance * pi[m]"),
    "no label": ("G[m] = size * label", "G[m] = size"),
    "no softmax coupling": ("drift[m] = G[m] * example[2, m] - pi[m] * push", "drift[m] = G[m] * example[2, m]"),
    "router blind to feature signals": ("h[m] = a[i] * gfeat[m, k] + b[n]", "h[m] = b[n]"),
    "router blind to feature noise": ("+ c[r] * gfeat[m, other]", ""),
    "router blind to centres": ("+ b[n] * gcen[m, k]", ""),
    "experts blind to centres": ("FA[m, k, i] + FB[m, k, n] + FC[m, other, r]", "FA[m, k, i] + FC[m, other, r]"),
    "experts blind to feature noise": ("FA[m, k, i] + FB[m, k, n] + FC[m, other, r]", "FA[m, k, i] + FB[m, k, n]"),
    "feature noise in the wrong place": ("G[2, m, other, r] += one[m]", "G[2, m, k, r] += one[m]"),
    "no drift along the centres": ("G[1, m, k, n] += one[m]", "pass"),
    "no router drift from feature noise": ("R[2, m, other, r] += drift[m]", "pass"),
    "no router drift from feature signals": ("R[0, m, k, i] += drift[m]", "pass"),
    "router drift 3 % too large": ("R[1, m, k, n] += drift[m]", "R[1, m, k, n] += 1.03 * drift[m]"),
    "slope of another activation": (
        "share * activation(S, 0, x[i] * rows[m, j, k], power)[1]",
        "share * rows[m, j, k]",
    ),
}


@pytest.fixture(scope="module")
def compiled():
    """A laboratory whose flow is compiled anew from the loops with one text replaced."""
    import numba

    def build(old: str, new: str) -> Laboratory:
        laboratory = Laboratory(find_system("chen"))
        equations = population.exact(laboratory.system.parameters())
        head = "import numpy as np\nfrom odesim.code.elementary import log_above_one, raised\n"
        kernel = printer.scalar_source("activation", equations.code.kernels()["activation"])
        names = [name for name in equations.code.loops if name.startswith(loops.__name__)]
        texts = [kernel, *(inspect.getsource(inspect.unwrap(load(name))) for name in names)]
        source = "\n\n".join(texts)
        assert old in source, "the mutation names a text that is no longer there"
        source = source.replace(old, new)
        namespace: dict = {}
        exec(head + source, namespace)
        for name in [text.split("(")[0].removeprefix("def ") for text in texts]:
            namespace[name] = numba.njit(namespace[name])
        made = namespace["p3_flow_loss"]

        def functions(initial, tier=None):
            chosen = population.exact(initial.parameters)
            arguments = chosen.arguments(initial)
            flow = lambda state: chosen.unpack(made(0.0, chosen.layout.pack(state), arguments)[0])  # noqa: E731
            return Evaluator(flow, lambda state: 0.0)

        laboratory.functions = functions  # type: ignore[method-assign]
        return laboratory

    return build


def test_the_flow_itself_agrees_with_the_model(compiled):
    assert against_flow(compiled("np", "np"), {}, 0) < 4.5


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_refuted(compiled, name):
    assert against_flow(compiled(*MUTATIONS[name]), {}, 0) > 5.5
