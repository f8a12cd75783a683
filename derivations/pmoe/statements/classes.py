"""Levels L0, L1 and L2 with an output per class, and the routers of pairs of classes, as statements.

Routing and gates are those of `derivations.pmoe.statements.levels`; in place of y v stands e_i = 1(y = i) - softmax_i.
"""

from typing import Any

import numpy as np

from derivations.contract import Initial
from derivations.indexed import nested
from derivations.pmoe.parameters import Parameters, require_outputs
from derivations.pmoe.population import NEGLECTS, recursive, validity
from derivations.pmoe.statements import levels
from derivations.pmoe.statements.levels import (
    COPIES,
    COUNT,
    LAM,
    MEAN,
    PRE,
    PULL,
    ROUTE,
    SHARE,
    STEP,
    WEIGHT,
    J,
    R,
    X,
)
from derivations.pmoe.statements.parts import (
    GRAM,
    METRIC,
    NOTATION,
    SAMPLES,
    TOKENS,
    WIDTH,
    K,
    P,
    S,
    W,
    Z,
    infinite_width,
)
from derivations.statement import Base, Definition, Equation, Example, Indicator, Named, Statement, key_of, sp

CLASSES = sp.Symbol("classes", integer=True, positive=True)
I, B = (sp.Idx(n, CLASSES) for n in "ib")
PHI, OUT, ACT, OWN, OUTPUT, PUSH, DRIVE, MEAN_COUNT = map(
    Base, ("response", "out", "act", "own", "f", "push", "c", "mean_count")
)
NAMES = {
    **NOTATION,
    "lambda_r": ("\\lambda", "λ"),
    "raised": ("\\rho", "ρ"),
    "push": ("e", "e"),
    "own": ("y", "y"),
    "classes": ("C", "C"),
}
PATTERNS = "patterns o_1, o_2, ... of the classes, then q_1, q_2, ..."
SOURCE = "Chowdhury et al. 2023, Appendix M and equations (23) to (25); the reduction to pattern space is ours"
SAMPLE = """np.array([
    [y == c for c in range(classes)] + [q == b for q in range(P - classes)]
    for y in range(classes) for b in range(P - classes)], float)"""


def drives(p: Parameters) -> list[Any]:
    """What samples do: the experts' drive of every output, and the routers' drive."""
    i = levels.axes(p)
    look = (J,) if levels.jittered(p) else ()
    over: tuple[Any, ...] = (J, X) if levels.jittered(p) else (X,)
    scale = (1 / COPIES if levels.jittered(p) else sp.Integer(1)) / TOKENS
    share, push = SHARE[(*i, Z)], WEIGHT[X] * PUSH[(*look, I, X)]
    output = nested(SHARE[(*i, W)] * PHI[S, I, W], S, W) / TOKENS
    softmax = 1 / sp.Sum(sp.exp(OUTPUT[(*look, B, X)] - OUTPUT[(*look, I, X)]), B)
    found = [
        Definition((OUTPUT[(*look, I, X)],), output, "outputs of the network, equation (23)"),
        Definition(
            (PUSH[(*look, I, X)],), sp.KroneckerDelta(OWN[X], I) - softmax, "equation (25): minus the slope of the loss"
        ),
        Definition((DRIVE[S, I, Z],), scale * nested(push * share, *over), "drive of the experts"),
    ]
    if p.lam > 0:
        mean = sp.Sum(SHARE[(*i, W)] * PHI[S, I, W], W)
        pull = scale * nested(push * share * (PHI[S, I, Z] - MEAN[(*i, I)]), *over, I)
        found += [
            Definition((MEAN[(*i, I)],), mean, "mean response behind the gate"),
            Definition((PULL[S, Z],), pull, "drive of the routers"),
        ]
    return found


def motion(p: Parameters, tier: str) -> tuple[list[Any], list[Equation]]:
    """Definitions and equations of what moves in the experts, and of the routers."""
    first: list[Any] = []
    if tier == "L0":
        response = sp.Sum(OUT[S, R, I] * sp.Max(0, PRE[S, R, Z]), R)
        first = [Definition((PHI[S, I, Z],), response, "response of an expert to a pattern, for a class")]
        active = Indicator(sp.Ge(PRE[S, R, W], 0))
        rate = nested(GRAM[Z, W] * active * OUT[S, R, I] * DRIVE[S, I, W], W, I) / (K * WIDTH)
        equations = [Equation(PRE[S, R, Z], rate, "equations (23), (24), in pattern space")]
    elif tier == "L1":
        rate = nested(GRAM[Z, W] * ACT[S, I, B, Z, W] * DRIVE[S, B, W], B, W) / (K * WIDTH)
        equations = [Equation(PHI[S, I, Z], rate, "the pseudo network of the proofs: activation pattern frozen")]
    else:
        first = [*infinite_width()]
        rate = sp.Sum(METRIC[Z, W] * DRIVE[S, I, W], W) / K
        about = "infinite width, where the output weights of different classes are independent; the reduction is ours"
        equations = [Equation(PHI[S, I, Z], rate, about)]
    pull = LAM * sp.Sum(GRAM[Z, W] * PULL[S, W], W) if p.lam > 0 else sp.Integer(0)
    about = "routers: softmax gate" if p.lam > 0 else "routers are frozen"
    return first, [*equations, Equation(ROUTE[S, Z], pull, about)]


def constants(p: Parameters, tier: str) -> tuple[Named, ...]:
    """Sizes, rates, patterns and the law of a sample as its compositions with their chances."""
    own = {
        "out": Named(
            OUT[S, R, I], "output weights of the classes", "np.random.default_rng(2).standard_normal((k, M, classes))"
        ),
        "act": Named(
            ACT[S, I, B, Z, W],
            "sum over neurons of the products of two classes' output weights where both patterns are active",
            "0.5 * M * np.eye(classes)[:, :, None, None] * np.ones((k, 1, 1, P, P))",
        ),
        "P": Named(P, "patterns", 6),
        "count": Named(COUNT[X, Z], "copies of a pattern in a composition", SAMPLE),
        "label": Named(
            OWN[X], "class of a composition (in code from 0)", "np.arange(n_x) * classes // n_x", whole=True
        ),
        "n_x": Named(SAMPLES, "compositions of a sample that there are", 9),
    }
    found = [own.get(key_of(c.target), c) for c in levels.constants(p, tier)]
    return (Named(CLASSES, "classes", 3), *found)


def bind_to(p: Parameters, tier: str) -> Any:
    """The numbers of the constants in a run."""

    def bind(initial: Initial) -> dict[str, Any]:
        own = np.asarray(initial.constants["label"]).astype(int) - 1
        return {**levels.bind_to(p, tier)(initial), "classes": p.classes, "own": own}

    return bind


def start_of(tier: str) -> str:
    """The example's initial state: routers that rank the pattern of one class first each."""
    first = (
        '"pre": 0.1 * np.random.default_rng(1).standard_normal((k, M, P))'
        if tier == "L0"
        else '"response": np.zeros((k, classes, P))'
    )
    turns = "np.arange(k)[:, None] % classes == np.arange(P)"
    return f'start = {{{first}, "route": np.where({turns}, 1.0, np.where(np.arange(P) < classes, -1.0, 0.0))}}'


def statement(p: Parameters, tier: str, stage: str) -> Statement:
    """The statement of level L0, L1 or L2.  Raises `UsageError` for L3."""
    require_outputs(p, tier)
    first, equations = motion(p, tier)
    step = recursive(p, tier)
    shifted = levels.jittered(p)
    look = (J,) if shifted else ()
    moving = (
        Named(PRE[S, R, Z], "pre-activation of a neuron on a pattern")
        if tier == "L0"
        else Named(PHI[S, I, Z], "response of an expert to a pattern, for a class")
    )
    behind = sp.Sum(sp.exp(OUTPUT[(*look, B, X)] - OUTPUT[(*look, OWN[X], X)]), B)
    indices = [((S,), "experts"), ((I, B), "classes"), ((Z, W), PATTERNS), ((X,), "compositions of a sample")]
    indices += [((R,), "neurons of an expert")] * (tier == "L0") + [((J,), "shifts")] * shifted
    return Statement(
        name=f"pmoe, {stage}, {tier}, an output per class",
        title="mixture of two-layer CNNs on patterns, several classes: " + levels.TITLES[tier],
        source=SOURCE,
        clock="one step of size eta advances t by eta times the number of neurons; softmax loss (24)",
        validity=validity(p, tier, step),
        neglects=NEGLECTS[tier],
        indices=indices,
        state=(moving, Named(ROUTE[S, Z], "route value of a pattern")),
        constants=constants(p, tier),
        bind=bind_to(p, tier),
        definitions=(*first, *levels.routing(p), *drives(p)),
        equations=tuple(equations),
        loss=(1 / COPIES if shifted else 1) * nested(WEIGHT[X] * sp.log(behind), *look, X),
        kind="recursion" if step else "flow",
        step=STEP if step else None,
        notation=NAMES,
        rules=levels.jumps(p, step),
        example=Example(start_of(tier), "response" if tier != "L0" else "pre", 0.4, 200.0),
    )
