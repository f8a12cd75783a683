"""Every term of the population flow matters: each mutation of the statement is refuted by the model's mean, and each of
the loops that stand for its sums by the statement.
"""

import itertools

import numpy as np
import pytest

from derivations.chen import initial, tiers
from derivations.chen.parameters import Parameters
from derivations.claim import Evaluator
from derivations.equations.interpreter import Evaluator as Interpreter
from derivations.equations.tier import equations_of
from derivations.statement import key_of
from odesim.evidence import verification
from odesim.evidence.laboratory import Laboratory
from odesim.request.case import find_system
from tests.controls.stated import flow_of, namespace

TIER = ("derivations.chen.tiers.example_types", "derivations.chen.tiers.exact")
LOOPS = ("derivations.chen.routing_loops", "derivations.chen.example_loops")
MUTATIONS = {
    "margin without the gate": ("margin = label * PI[at] * OUTPUT[at]", "margin = label * OUTPUT[at]"),
    "gradient without the gate": ('Q["q"](margin) * PI[at] * label', 'Q["q"](margin) * label'),
    "gradient without the multiplier": ('CHANCE_WINS[at] * Q["q"](margin)', "CHANCE_WINS[at] / 2"),
    "routing by the softmax": ("weight = chance * CHANCE_WINS[at] * Q", "weight = chance * PI[at] * Q"),
    "no label": ('Q["q"](margin) * PI[at] * label', 'Q["q"](margin) * PI[at]'),
    "no softmax coupling": ("WEIGH[at] * OUTPUT[at] - PI[at] * gathered", "WEIGH[at] * OUTPUT[at]"),
    "router blind to feature signals": ("logits = a * GFEAT[M, K] + ", "logits = "),
    "router blind to feature noise": (" + c * GFEAT[M, E]", ""),
    "router blind to centres": (" + b * GCEN[M, K]", ""),
    "experts blind to centres": ('sp.Add(*nodes.tables("F"))', 'sp.Add(*nodes.tables("F")[::2])'),
    "experts blind to feature noise": ('sp.Add(*nodes.tables("F"))', 'sp.Add(*nodes.tables("F")[:2])'),
    "feature noise in the wrong place": ("nested(weight, K, i, n)", "nested(WEIGH[M, E, K, i, n, r], K, i, n)"),
    "no drift along the centres": ("Definition((G_CEN[M, J, K],), b,", "Definition((G_CEN[M, J, K],), 0 * b,"),
    "no router drift from feature noise": (" + nested(other * c, E, i, n, r)", ""),
    "no router drift from feature signals": ("nested(own * a, E, i, n, r) + ", ""),
    "router drift a fifth too large": ("RHO * ALONG_CEN", "sp.Rational(6, 5) * RHO * ALONG_CEN"),
    "slope of another activation": ("* x * slope(x * rows), i)", "* x * x * rows, i)"),
}
LOOP_MUTATIONS = {
    "a piece of the routing law less": (
        "    for i in range(M):\n        if sizes",
        "    for i in range(M - 1):\n        if sizes",
    ),
    "pieces from the second expert on": ("values[first - 1] + 1.0 > values", "values[first - 1] + 0.5 > values"),
    "experts of another example": ("won[r, places[c]]", "won[r, c]"),
    "a factor less in the products": ("product[c] *= first * second", "product[c] *= first"),
    "margin without the label": ("margin[c] = label[c] * h[m, c]", "margin[c] = h[m, c]"),
    "multiplier of the wrong sign": (
        "(small[c] if margin[c] > 0.0 else 1.0)",
        "(1.0 if margin[c] > 0.0 else small[c])",
    ),
    "no softmax coupling": (" - push[c] * h[m, c]", ""),
    "a loss without its linear part": (" + max(-margin[c], 0.0)", ""),
    "errors count as correct": ("right += p[m, c] if margin[c] > 0.0", "right += p[m, c] if margin[c] < 0.0"),
    "feature noise at the own cluster": ("along_features[m, e] += third", "along_features[m, k] += third"),
    "sums along the noise of the wrong cluster": ("along_c[m, e * nc + r] += terms", "along_c[m, k * nc + r] += terms"),
    "weights of the centre left out": ("share = wa[i, 0] * wb[n, 0] /", "share = wa[i, 0] /"),
    "an exponential without powers from six on": ("s * s * s * tail", "0.0 * tail"),
    "a logarithm with fewer terms": ("s4 * (second + ", "s4 * (0.0 * second + "),
    "the last of the largest logits": ("if h > top:", "if h >= top:"),
}


def answer(old: str, new: str) -> str:
    """The verdict on a flow whose statement has one text replaced, by the claim that compares flow and model."""
    laboratory = Laboratory(find_system("chen"))
    make = namespace(TIER, old, new)["statement"]

    def functions(start, tier=None):
        statement = make(start.parameters)
        equations, flow, arguments = equations_of(statement), flow_of(statement), statement.arguments(start)
        return Evaluator(
            lambda state: equations.unpack(flow(0.0, equations.layout.pack(state), *arguments)), lambda state: 0.0
        )

    laboratory.functions = functions  # type: ignore[method-assign]
    (claim,) = verification.claims_of(laboratory.system, ["p3-drift"])
    return claim.law.judge([({}, 0, claim.measure(laboratory, {}, 0))]).answer


def test_the_flow_itself_agrees_with_the_model():
    assert answer("np", "np") == "confirmed"


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_refuted(name):
    assert answer(*MUTATIONS[name]) == "refuted"


@pytest.fixture(scope="module")
def case():
    """The values of all arrays of the statement at a random state, by the interpreter; two experts are alike."""
    p = Parameters(M=4, J=2, K=3, nodes=2, d=10, beta=(1.0, 2.0))
    rng = np.random.default_rng(2)
    filters, routers = 0.6 * rng.standard_normal((2, 4, 2, 3)), 0.5 * rng.standard_normal((2, 4, 3))
    routers[:, 2] = routers[:, 0]
    start = initial.from_overlaps(p, *filters, *routers)
    statement = tiers.statement(p, "p3")
    return statement, Interpreter(statement, {**statement.numbers(start), **start.state}).values


def gap_of_loops(case, old: str, new: str) -> float:
    """The largest relative difference of the arrays that the mutated loops fill, uncompiled, from their formulas."""
    statement, values = case
    found = namespace(LOOPS, old, new)
    for name, loops in list(found.items()):  # so that they call each other as plain Python
        if hasattr(loops, "py_func"):
            found[name] = loops.py_func
    gaps = []
    for definition in statement.arrays:
        shortcut = definition.shortcut
        if shortcut is None:
            continue
        names = [key_of(x) for x in (*shortcut.arguments, *definition.targets, *shortcut.also)]
        arrays = [np.array(values[name], float).reshape(len(values[name]), -1) for name in names]
        for filled in arrays[len(shortcut.arguments) :]:
            filled[:] = np.nan
        ends = np.cumsum([0, *shortcut.groups])
        groups = [tuple(arrays[a:b]) if b - a > 1 else arrays[a] for a, b in itertools.pairwise(ends)]
        found[shortcut.name](*groups)
        for name, array in zip(names[len(shortcut.arguments) :], arrays[len(shortcut.arguments) :], strict=True):
            wanted = values[name].reshape(array.shape)
            gaps.append(np.abs(array - wanted).max() / np.abs(wanted).max())
    return float(np.max(gaps))


def test_the_loops_fill_what_the_formulas_say(case):
    assert gap_of_loops(case, "np", "np") < 1e-13


@pytest.mark.parametrize("name", LOOP_MUTATIONS)
def test_a_mutation_of_the_loops_is_refuted(case, name):
    assert not gap_of_loops(case, *LOOP_MUTATIONS[name]) < 1e-7
