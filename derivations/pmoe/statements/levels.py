"""Levels L0 (every neuron), L1 (frozen activation pattern) and L2 (infinite width) as statements in pattern space.

Routing by rank is a sum of indicators: of a pattern's copies as many are routed as the l places leave after those
ranked above it, n = min(N(z), max(0, l - copies ranked above)).
"""

from typing import Any

from derivations.contract import Initial
from derivations.indexed import nested
from derivations.pmoe.parameters import Parameters
from derivations.pmoe.population import NEGLECTS, recursive, validity
from derivations.pmoe.statements.parts import (
    GRAM,
    LOSS,
    METRIC,
    NOTATION,
    SAMPLES,
    SLOPE,
    TOKENS,
    WIDTH,
    K,
    P,
    S,
    W,
    Z,
    infinite_width,
)
from derivations.pmoe.statements.soft import soft_top
from derivations.statement import Base, Definition, Equation, Example, Indicator, Named, Rule, Statement, sp

LAM, STEP, SOFT, COPIES = *sp.symbols("lambda_r tau width", real=True), sp.Symbol("n_j", integer=True)
R, X, J = sp.Idx("r", WIDTH), sp.Idx("x", SAMPLES), sp.Idx("j", COPIES)
PRE, PHI, ROUTE, OUT, ACT = map(Base, ("pre", "response", "route", "out", "act"))
COUNT, LABEL, WEIGHT, JITTER, SHIFTED = map(Base, ("count", "label", "weight", "jitter", "g_j"))
ABOVE, ROUTED, SHARE, OUTPUT, V = map(Base, ("above", "routed", "share", "f", "V"))
DRIVE, PULL, MEAN, RAISED = map(Base, ("c", "d", "m", "raised"))
NOTE = {
    "one": "every routed patch counts as it is",
    "softmax": "softmax of the route values over the routed patches",
    "frozen": "softmax of the route values over the routed patches",
    "uniform": "every routed patch has the same weight",
    "sharp": "all weight on the largest route value",
}
TITLES = {"L0": "every neuron", "L1": "responses, activation pattern frozen", "L2": "responses at infinite width"}
SAMPLE = """np.array(
    [[y == c for c in (1, -1)] + [int(q == b) for q in range(P - 2)] for y in (1, -1) for b in range(P - 2)], float)"""


def jittered(p: Parameters) -> bool:
    """Whether drives are means over shifted route values."""
    return p.tie_rule == "jitter" and p.mode == "joint"


def axes(p: Parameters) -> tuple[Any, ...]:
    """The indices of an expert's look at a sample: with jitter also the shift."""
    return (J, S, X) if jittered(p) else (S, X)


def values(p: Parameters, z: Any) -> Any:
    """The route value that an expert ranks a pattern by."""
    return SHIFTED[J, S, z] if jittered(p) else ROUTE[S, z]


def routing(p: Parameters) -> list[Any]:
    """n_s(z; x) and the share n_s G_s of every pattern in a sample."""
    i = axes(p)
    higher, tied = sp.Gt(values(p, W), values(p, Z)), sp.And(sp.Eq(values(p, W), values(p, Z)), sp.Lt(W, Z))
    above = sp.Sum(COUNT[X, W] * Indicator(sp.Or(higher, tied)), W)
    found: list[Any] = []
    if jittered(p):
        found.append(Definition((SHIFTED[J, S, Z],), ROUTE[S, Z] + JITTER[J, S, Z], "route values, jittered"))
    if p.tie_rule == "fractional" and p.mode == "joint":
        arguments = (ROUTE, COUNT, TOKENS, SOFT)
        rule = Rule("soft top l", soft_top, compiled="derivations.pmoe.routing_loops:soft_top")
        threshold = sp.Symbol("theta")
        means = COUNT[X, Z] / (1 + sp.exp((threshold - ROUTE[S, Z]) / SOFT))
        found.append(
            Definition((ROUTED[(*i, Z)],), arguments, "with theta such that they sum to l", rule=rule, means=means)
        )
        above_any = sp.Sum(ROUTED[(*i, W)] * Indicator(sp.Gt(values(p, W), values(p, Z))), W)
    else:
        found.append(Definition((ABOVE[(*i, Z)],), above, "copies ranked above, ties in the order of the patterns"))
        left = sp.Max(0, TOKENS - ABOVE[(*i, Z)])
        found.append(Definition((ROUTED[(*i, Z)],), sp.Min(COUNT[X, Z], left), "copies routed: the top l patches"))
        above_any = ABOVE[(*i, Z)]
    return [*found, *shared(p, above_any)]


def shared(p: Parameters, above: Any) -> list[Any]:
    """The share n_s G_s by the gate of the parameters."""
    i, note = axes(p), NOTE[p.gate]
    routed = ROUTED[(*i, Z)]
    if p.gate in ("softmax", "frozen"):
        top = sp.exp(values(p, Z))
        raised = Definition((RAISED[(*i, Z)],), routed * top, "")
        return [raised, Definition((SHARE[(*i, Z)],), RAISED[(*i, Z)] / sp.Sum(RAISED[(*i, W)], W), note)]
    if p.gate == "sharp":
        first = Indicator(sp.And(sp.Gt(routed, 0), sp.Eq(above, 0)))
        return [Definition((SHARE[(*i, Z)],), first, note)]
    return [Definition((SHARE[(*i, Z)],), routed if p.gate == "one" else routed / TOKENS, note)]


def drives(p: Parameters) -> list[Any]:
    """What samples do: the experts' drive c and the routers' drive d."""
    i = axes(p)
    look = (J,) if jittered(p) else ()
    over: tuple[Any, ...] = (J, X) if jittered(p) else (X,)
    scale = 1 / COPIES if jittered(p) else sp.Integer(1)
    push, share = V[(*look, X)], SHARE[(*i, Z)]
    output = nested(SHARE[(*i, W)] * PHI[S, W], S, W) / TOKENS
    slope = WEIGHT[X] * LABEL[X] * SLOPE["v"](LABEL[X] * OUTPUT[(*look, X)]) / TOKENS
    found = [
        Definition((OUTPUT[(*look, X)],), output, "output of the network"),
        Definition((V[(*look, X)],), slope, "push of a sample"),
        Definition((DRIVE[S, Z],), scale * nested(push * share, *over), "drive of the experts, the mean of y v n G/l"),
    ]
    if p.lam > 0:
        mean = sp.Sum(SHARE[(*i, W)] * PHI[S, W], W)
        pull = scale * nested(push * share * (PHI[S, Z] - MEAN[i]), *over)
        found += [
            Definition((MEAN[i],), mean, "mean response behind the gate"),
            Definition((PULL[S, Z],), pull, "drive of the routers"),
        ]
    return found


def motion(p: Parameters, tier: str) -> tuple[list[Any], list[Equation]]:
    """Definitions and equations of what moves in the experts, and of the routers."""
    at = "equations (1), (4), (7), in pattern space (corrected)"
    first: list[Any] = []
    if tier == "L0":
        response = sp.Sum(OUT[S, R] * sp.Max(0, PRE[S, R, Z]), R)
        first = [Definition((PHI[S, Z],), response, "response of an expert to a pattern")]
        active = Indicator(sp.Ge(PRE[S, R, W], 0))
        rate = OUT[S, R] / (K * WIDTH) * sp.Sum(GRAM[Z, W] * active * DRIVE[S, W], W)
        equations = [Equation(PRE[S, R, Z], rate, at)]
    elif tier == "L1":
        rate = sp.Sum(GRAM[Z, W] * ACT[S, Z, W] * DRIVE[S, W], W) / (K * WIDTH)
        equations = [Equation(PHI[S, Z], rate, "the pseudo network of the proofs: activation pattern frozen")]
    else:
        first = [*infinite_width()]
        rate = sp.Sum(METRIC[Z, W] * DRIVE[S, W], W) / K
        equations = [Equation(PHI[S, Z], rate, "infinite width; the reduction is ours")]
    pull = LAM * sp.Sum(GRAM[Z, W] * PULL[S, W], W) if p.lam > 0 else sp.Integer(0)
    return first, [
        *equations,
        Equation(ROUTE[S, Z], pull, "routers: softmax gate" if p.lam > 0 else "routers are frozen"),
    ]


def constants(p: Parameters, tier: str) -> tuple[Named, ...]:
    """Sizes, rates, patterns and the law of a sample as its compositions with their chances."""
    sizes = [
        Named(K, "experts", p.k),
        Named(P, "patterns", 5),
        Named(TOKENS, "patches routed to an expert", 1 if p.k > 1 else 2),
    ]
    if tier != "L2":
        sizes.insert(1, Named(WIDTH, "neurons of an expert", 20))
    sizes.append(Named(SAMPLES, "compositions of a sample that there are", 6))
    found = [*sizes, Named(GRAM[Z, W], "Gram matrix of the patterns", "np.eye(P)")]
    if tier == "L0":
        found.append(Named(OUT[S, R], "output weights", "np.random.default_rng(2).standard_normal((k, M))"))
    if tier == "L1":
        default = "0.5 * M * np.ones((k, P, P))"
        found.append(Named(ACT[S, Z, W], "sum over neurons of a_r^2 where both patterns are active", default))
    found += [
        Named(COUNT[X, Z], "copies of a pattern in a composition", SAMPLE),
        Named(LABEL[X], "label of a composition", "np.repeat([1.0, -1.0], n_x // 2)"),
        Named(WEIGHT[X], "chance of a composition", "np.full(n_x, 1.0 / n_x)"),
    ]
    if p.lam > 0:
        found.append(Named(LAM, "speed of the routers", p.lam))
    if p.tie_rule == "fractional" and p.mode == "joint":
        found.append(Named(SOFT, "width of the soft top l", p.softness))
    if jittered(p):
        found += [
            Named(COPIES, "shifts of the route values", 4),
            Named(JITTER[J, S, Z], "shifts", "1e-3 * np.random.default_rng(4).standard_normal((n_j, k, P))"),
        ]
    if recursive(p, tier):
        found.append(Named(STEP, "flow per step, eta times the number of neurons", p.step))
    return tuple(found)


def bind_to(p: Parameters, tier: str) -> Any:
    """The numbers of the constants in a run."""

    def bind(initial: Initial) -> dict[str, Any]:
        from derivations.pmoe.initial import act_of
        from derivations.pmoe.population import jitter

        c = initial.constants
        found = {"k": p.k, "M": p.m // p.k, "P": p.width, "l": p.l, "n_x": len(c["label"]), "gram": c["gram"]}
        found |= {"out": c["out"], "count": c["counts"], "label": c["label"], "weight": c["weight"]}
        if tier == "L1":
            found["act"] = act_of(initial)
        shifts = jitter(p)
        found |= {"lambda_r": p.lam, "width": p.softness, "n_j": len(shifts), "jitter": shifts, "tau": p.step}
        return found

    return bind


def jumps(p: Parameters, step: bool) -> tuple[str, ...]:
    """What the page says of jumps: a recursion steps over them."""
    return () if step or p.lam == 0 else ("The right-hand side jumps where two route values change their order.",)


def statement(p: Parameters, tier: str, stage: str) -> Statement:
    """The statement of level L0, L1 or L2."""
    first, equations = motion(p, tier)
    step = recursive(p, tier)
    moving = (
        Named(PRE[S, R, Z], "pre-activation of a neuron on a pattern")
        if tier == "L0"
        else Named(PHI[S, Z], "response of an expert to a pattern")
    )
    look = (J,) if jittered(p) else ()
    scale = 1 / COPIES if jittered(p) else 1
    cost = scale * nested(WEIGHT[X] * LOSS["cost"](LABEL[X] * OUTPUT[(*look, X)]), *look, X)
    indices = [((S,), "experts"), ((Z, W), "patterns o_1, o_2, q_1, ..."), ((X,), "compositions of a sample")]
    indices += [((R,), "neurons of an expert")] * (tier == "L0") + [((J,), "shifts")] * jittered(p)
    start = (
        '"pre": 0.1 * np.random.default_rng(1).standard_normal((k, M, P))'
        if tier == "L0"
        else '"response": np.zeros((k, P))'
    )
    route = "np.zeros((k, P)) + [[1.0, -1.0] + [0.0] * (P - 2)] * np.where(np.arange(k) % 2, -1.0, 1.0)[:, None]"
    return Statement(
        name=f"pmoe, {stage}, {tier}",
        title="mixture of two-layer CNNs on patterns: " + TITLES[tier],
        source="Chowdhury et al. 2023, Section 4 and Appendices E to H; the reduction to pattern space is ours",
        clock="one step of size eta advances t by eta times the number of neurons; logistic loss",
        validity=validity(p, tier, step),
        neglects=NEGLECTS[tier],
        indices=indices,
        state=(moving, Named(ROUTE[S, Z], "route value of a pattern")),
        constants=constants(p, tier),
        bind=bind_to(p, tier),
        definitions=(SLOPE, LOSS, *first, *routing(p), *drives(p)),
        equations=tuple(equations),
        loss=cost,
        kind="recursion" if step else "flow",
        step=STEP if step else None,
        notation={**NOTATION, "lambda_r": ("\\lambda", "λ"), "raised": ("e", "e")},
        rules=jumps(p, step),
        example=Example(f'start = {{{start}, "route": {route}}}', "response" if tier != "L0" else "pre", 0.4, 200.0),
    )
