"""Claims on the gradient and its inner products: equations (4), (10), the eight of Appendix A.3, and the norms.

The lambdas are computed by quadrature. The reference is the program: finite differences of its closed-form loss in
weight space, its compiled flow, and the mean drift of the simulation.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.broken import break_measure
from derivations.claim import Claim, Grid, Variant
from derivations.contract import Initial
from derivations.laws import Agrees, All, Power, Vanishes
from derivations.laws.agreement import score
from derivations.liao import initial, model
from derivations.liao.claims import expectations, tools
from derivations.liao.claims.algebra import draw
from derivations.liao.claims.tools import at

M, M_STAR, D = 3, 2, 7
STENCIL = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
"""Central differences of eighth order."""
Matrix = np.ndarray


@dataclasses.dataclass(frozen=True)
class Geometry:
    """Random state: explicit rows, norms of the students, lambdas (5, m, m), and lambda hats (5, m, m_star)."""

    rows: Matrix
    a: Matrix
    b: Matrix
    lam: Matrix
    hat: Matrix

    @property
    def unit(self) -> Matrix:
        """Rows divided by their lengths."""
        return self.rows / np.linalg.norm(self.rows, axis=1, keepdims=True)

    @property
    def overlaps(self) -> dict[str, Matrix]:
        """Overlaps gamma, zeta (m, m_star) and I (m, m)."""
        return initial.components(self.unit @ self.unit.T, M, M_STAR)

    @property
    def start(self) -> Initial:
        """Initial condition of the program."""
        return tools.from_rows(self.rows, M, M_STAR)


@functools.lru_cache(maxsize=32)
def geometry(seed: int, lab_seed: int) -> Geometry:
    """Return students of norms between 0.6 and 1.5 in general position, with an orthonormal teacher."""
    rows = tools.random_rows(np.random.default_rng([seed, lab_seed]), M, M_STAR, D, (0.6, 1.5))
    norms = np.linalg.norm(rows, axis=1)
    unit = rows / norms[:, None]
    lam, hat = expectations.tensor(unit @ unit.T, M, M_STAR)
    return Geometry(rows, norms[:M], norms[M : 2 * M], lam, hat)


def loss_gradient(lab: Any, rows: Matrix, step: float = 4e-3) -> Matrix:
    """Return the gradient (2m, d) of the loss of the program with respect to the raw student rows."""
    gradient = np.zeros((2 * M, D))
    evaluate = lab.functions(tools.from_rows(rows, M, M_STAR)).loss
    for index in np.ndindex(gradient.shape):
        for k, weight in STENCIL.items():
            for sign in (1, -1):
                moved = rows.copy()
                moved[index] += sign * k * step
                gradient[index] += sign * weight * evaluate(tools.from_rows(moved, M, M_STAR).state) / step
    return gradient


def formula(x: Geometry, form: str, keep: float = 1.0) -> Matrix:
    """Return equation (10): gradients of routers and experts (2m, d); `keep` scales the lambda_4 terms (control)."""
    u = x.unit
    v, w, v_star, w_star = np.split(u, np.cumsum([M, M, M_STAR]))
    lam, hat = x.lam, x.hat
    own = (lam[1].sum(axis=1) - hat[1].sum(axis=1))[:, None]
    to_v = lam[0] @ v - hat[0] @ v_star + 3 * own * w + 3 * keep * (lam[3] @ w - hat[3] @ w_star)
    divisor = {"printed": x.a, "corrected": x.b}[form][:, None]
    b = x.b[:, None]
    second = 3 * (lam[2] @ v - hat[2] @ v_star) / divisor
    to_w = 3 * own * v / b + second + 9 * (lam[4] @ w - hat[4] @ w_star) / b
    raw = np.vstack([to_v / x.a[:, None], to_w])
    students = u[: 2 * M]
    return raw - (raw * students).sum(axis=1, keepdims=True) * students


def pushed(x: Geometry, gradient: Matrix) -> Matrix:
    """Return d(unit Gram)/dt if the raw rows move along -gradient, which is tangent."""
    rate = np.zeros((len(x.rows), len(x.rows)))
    norms = np.concatenate([x.a, x.b])[:, None]
    rate[: 2 * M] = -(gradient / norms) @ x.unit.T
    return rate + rate.T


def equation_10(lab: Any, point: Mapping[str, Any], seed: int, keep: float = 1.0) -> dict[str, Any]:
    """Compare equation (10) with differences of the loss, with the compiled flow, and with the drift of the model.

    The loss itself is compared as well.
    """
    x = geometry(seed, lab.seed)
    found = formula(x, point["form"], keep)
    functions = lab.functions(x.start)
    flow = functions.flow(x.start.state)
    expected = initial.components(pushed(x, found), M, M_STAR)
    eye = np.eye(M)
    moving = {name: flow[name] - eye if name in ("I1", "I2") else flow[name] for name in expected}
    mean, error = lab.drift(x.start, point["samples"], seed=seed)
    raw = np.zeros_like(mean)
    raw[: 2 * M] = -found @ x.rows.T
    spread = error > 1e-9  # the norms of the rows do not move to first order and have no spread
    return {
        "gradient": float(np.abs(found - loss_gradient(lab, x.rows)).max()),
        "flow": max(float(np.abs(moving[name] - expected[name]).max()) for name in expected),
        "drift": score(mean[spread], error[spread], (raw + raw.T)[spread]),
        "loss": abs(functions.loss(x.start.state) - expectations.loss(x.unit @ x.unit.T, M, M_STAR)),
    }


def self_router(x: Geometry) -> Matrix:
    """Return the factor (m,) of the projection on v_i in the equations for routers."""
    o, lam, hat = x.overlaps, x.lam, x.hat
    own = np.diag(o["I3"])
    students = (lam[0] * o["I1"] + 3 * lam[3] * o["I3"]).sum(axis=1) + 3 * lam[1].sum(axis=1) * own
    teachers = (hat[0] * o["gamma1"] + 3 * hat[3] * o["zeta1"]).sum(axis=1) + 3 * hat[1].sum(axis=1) * own
    return (students - teachers)[:, None]


def self_expert(x: Geometry) -> Matrix:
    """Return the factor (m,) of the projection on w_i in the equations for experts, without the factor 3."""
    o, lam, hat = x.overlaps, x.lam, x.hat
    own = np.diag(o["I3"])
    students = (lam[2] * o["I3"].T + 3 * lam[4] * o["I2"]).sum(axis=1) + lam[1].sum(axis=1) * own
    teachers = (hat[2] * o["zeta2"] + 3 * hat[4] * o["gamma2"]).sum(axis=1) + hat[1].sum(axis=1) * own
    return (students - teachers)[:, None]


def second(x: Geometry) -> Matrix:
    """Return sum_r lambda_{ir,2} - sum_r lambda hat_{ir,2}, (m, 1)."""
    return (x.lam[1].sum(axis=1) - x.hat[1].sum(axis=1))[:, None]


def a3_1(x: Geometry, form: str) -> Matrix:
    """Inner product -(1/a_i) grad_{v_i} L . v*_j."""
    o, lam, hat = x.overlaps, x.lam, x.hat
    first = hat[0] - lam[0] @ o["gamma1"] - 3 * (second(x) * o["zeta2"] + lam[3] @ o["zeta2"])
    return (first + self_router(x) * o["gamma1"]) / x.a[:, None] ** 2


def a3_2(x: Geometry, form: str) -> Matrix:
    """Inner product -(1/a_i) grad_{v_i} L . w*_j."""
    o, lam, hat = x.overlaps, x.lam, x.hat
    first = 3 * (hat[3] - lam[3] @ o["gamma2"]) - lam[0] @ o["zeta1"] - 3 * second(x) * o["gamma2"]
    return (first + self_router(x) * o["zeta1"]) / x.a[:, None] ** 2


def a3_3(x: Geometry, form: str) -> Matrix:
    """Inner product -(1/b_i) grad_{w_i} L . w*_j."""
    o, lam, hat = x.overlaps, x.lam, x.hat
    first = 3 * (hat[4] - lam[4] @ o["gamma2"]) - second(x) * o["zeta1"] - lam[2] @ o["zeta1"]
    return 3 * (first + self_expert(x) * o["gamma2"]) / x.b[:, None] ** 2


def a3_4(x: Geometry, form: str) -> Matrix:
    """Inner product -(1/b_i) grad_{w_i} L . v*_j."""
    o, lam, hat = x.overlaps, x.lam, x.hat
    first = hat[2] - lam[2] @ o["gamma1"] - second(x) * o["gamma1"] - 3 * lam[4] @ o["zeta2"]
    return 3 * (first + self_expert(x) * o["zeta2"]) / x.b[:, None] ** 2


def a3_5(x: Geometry, form: str) -> Matrix:
    """Inner product -(1/a_i) grad_{v_i} L . v_j."""
    o, lam, hat = x.overlaps, x.lam, x.hat
    teachers = hat[0] @ o["gamma1"].T + 3 * hat[3] @ o["zeta1"].T
    students = lam[0] @ o["I1"] + 3 * lam[3] @ o["I3"].T
    first = teachers - students - 3 * second(x) * o["I3"].T
    return (first + self_router(x) * o["I1"]) / x.a[:, None] ** 2


def a3_6(x: Geometry, form: str) -> Matrix:
    """Inner product -(1/a_i) grad_{v_i} L . w_j."""
    o, lam, hat = x.overlaps, x.lam, x.hat
    teachers = hat[0] @ o["zeta2"].T + 3 * hat[3] @ o["gamma2"].T
    students = lam[0] @ o["I3"] + 3 * lam[3] @ o["I2"]
    first = teachers - students - 3 * second(x) * o["I2"]
    return (first + self_router(x) * o["I3"]) / x.a[:, None] ** 2


def a3_7(x: Geometry, form: str) -> Matrix:
    """Inner product -(1/b_i) grad_{w_i} L . v_j.

    The printed form has b_j for b_i, and I3_ij for I3_ji in the projection.
    """
    o, lam, hat = x.overlaps, x.lam, x.hat
    teachers = hat[2] @ o["gamma1"].T + 3 * hat[4] @ o["zeta1"].T
    students = lam[2] @ o["I1"] + 3 * lam[4] @ o["I3"].T
    first = teachers - students - second(x) * o["I1"]
    if form == "printed":
        return 3 * (first + self_expert(x) * o["I3"]) / x.b**2
    return 3 * (first + self_expert(x) * o["I3"].T) / x.b[:, None] ** 2


def a3_8(x: Geometry, form: str) -> Matrix:
    """Inner product -(1/b_i) grad_{w_i} L . w_j."""
    o, lam, hat = x.overlaps, x.lam, x.hat
    teachers = hat[2] @ o["zeta2"].T + 3 * hat[4] @ o["gamma2"].T
    students = lam[2] @ o["I3"] + 3 * lam[4] @ o["I2"]
    first = teachers - students - second(x) * o["I3"]
    return 3 * (first + self_expert(x) * o["I2"]) / x.b[:, None] ** 2


EQUATIONS: dict[int, tuple[Callable[[Geometry, str], Matrix], str, str]] = {
    1: (a3_1, "v", "v*"),
    2: (a3_2, "v", "w*"),
    3: (a3_3, "w", "w*"),
    4: (a3_4, "w", "v*"),
    5: (a3_5, "v", "v"),
    6: (a3_6, "v", "w"),
    7: (a3_7, "w", "v"),
    8: (a3_8, "w", "w"),
}
"""Number in the order of Appendix A.3 -> right-hand side, gradient of, along."""


def inner_product(lab: Any, point: Mapping[str, Any], seed: int, number: int, keep: float = 1.0) -> float:
    """Return the largest difference between equation `number` and the gradient of the loss.

    `keep` scales lambda_2 (control).
    """
    x = geometry(seed, lab.seed)
    scale = np.array([1.0, keep, 1.0, 1.0, 1.0])[:, None, None]
    scaled = dataclasses.replace(x, lam=scale * x.lam, hat=scale * x.hat)
    equation, of, along = EQUATIONS[number]
    blocks: dict[str, np.ndarray] = dict(
        zip(("v", "w", "v*", "w*"), np.split(x.unit, np.cumsum([M, M, M_STAR])), strict=True)
    )
    rows = slice(0, M) if of == "v" else slice(M, 2 * M)
    norm = x.a if of == "v" else x.b
    reference = -(loss_gradient(lab, x.rows)[rows] @ blocks[along].T) / norm[:, None]
    difference = equation(scaled, point.get("form", "corrected")) - reference
    return float(np.abs(difference).max())


def norm_drift(lab: Any, point: Mapping[str, Any], seed: int, decay: float = 0.0) -> float:
    """Return the drift of the norms.

    For the flow it is max |grad . row|, half the derivative of the squared norms. For SGD it is their relative change
    in one step.
    """
    x = geometry(seed, lab.seed)
    if point["what"] == "flow":
        gradient = loss_gradient(lab, x.rows) + decay * x.rows[: 2 * M]
        return float(np.abs((gradient * x.rows[: 2 * M]).sum(axis=1)).max())
    samples = draw(seed, lab).normal(size=(D, 500))
    numbers = model.numbers(x.start.parameters, x.rows @ x.rows.T)
    scale = np.concatenate([x.a, x.b])
    coefficient = model.coefficients(x.unit @ samples, np.empty((0, 500)), *numbers)
    g = coefficient @ samples.T / 500
    students = x.rows[: 2 * M]
    vg = (students * g).sum(axis=1)
    a, b = model.update(scale**2, vg, (g * g).sum(axis=1), point["step"], *numbers)
    after = (a[:, None] * students) + b[:, None] * g + decay * point["step"] * students
    return float(np.abs(((after**2).sum(axis=1) / scale**2) - 1).max())


def equation_4(lab: Any, point: Mapping[str, Any], seed: int, swap: bool = False) -> float:
    """Compare d gamma/dt of the compiled flow with -(1/norm) grad L . teacher.

    The gradient is computed by differences of the loss.
    """
    x = geometry(seed, lab.seed)
    flow, gradient = lab.functions(x.start).flow(x.start.state), loss_gradient(lab, x.rows)
    v_star, w_star = np.split(x.unit[2 * M :], 2)
    a, b = (x.b, x.a) if swap else (x.a, x.b)
    first = flow["gamma1"] + gradient[:M] @ v_star.T / a[:, None]
    last = flow["gamma2"] + gradient[M:] @ w_star.T / b[:, None]
    return float(max(np.abs(first).max(), np.abs(last).max()))


SEEDS: Mapping[str, Grid | None] = {"quick": Grid(seeds=5), "full": Grid(seeds=12)}
SAMPLES: Mapping[str, Grid | None] = {
    "quick": Grid(({"samples": 2_000_000},), 5),
    "full": Grid(({"samples": 4_000_000},), 6),
}
STEPS: Mapping[str, Grid | None] = {"quick": Grid(tuple({"step": s} for s in (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)), 6)}
SECOND_ORDER = Power(2.0, over="step", margin=0.02, meaning="relative change of squared norms")
AGREE = Vanishes(1e-9, meaning="difference from the gradient of the loss")
FORMS = (Variant("printed", {"form": "printed"}, expected="refuted"), Variant("corrected", {"form": "corrected"}))


def inner_claim(number: int) -> Claim:
    """Return the claim on one of the eight displayed inner products."""
    _, of, along = EQUATIONS[number]
    wrong = number == 7
    return Claim(
        id=f"eq-A3-{number}",
        statement=f"The display for the inner product of grad_{of}_i L with {along}_j (equation {number} of eight)"
        + (". As printed it has 1/b_j^2, I3_ij instead of 1/b_i^2, I3_ji." if wrong else " is exact as printed."),
        source=at(f"Appendix A.3, inner product {number}"),
        measure=functools.partial(inner_product, number=number),
        law=AGREE,
        sweep=SEEDS,
        control=break_measure(functools.partial(inner_product, number=number, keep=0.0)),
        rungs=(1, 2, 9),
        variants=FORMS if wrong else (Variant("printed"),),
        control_variant="corrected" if wrong else "",
        erratum="errata-3" if wrong else "",
    )


CLAIMS = (
    Claim(
        id="eq-10",
        statement="The gradient of the population loss, expressed by the lambdas. As printed, the v_r term of "
        "grad_w has the factor 1/|v_i| instead of 1/|w_i|.",
        source=at("equation (10)"),
        measure=equation_10,
        law=All(
            {
                "gradient": AGREE,
                "flow": Vanishes(1e-11, meaning="difference from the compiled flow"),
                "drift": Agrees(0.25, "mean drift of the model", "below a factor of two or a wrong sign"),
                "loss": Vanishes(1e-11, meaning="difference of the closed-form loss from quadrature"),
            }
        ),
        sweep=SAMPLES,
        control=break_measure(functools.partial(equation_10, keep=0.0)),
        rungs=(1, 2, 3, 6, 9),
        variants=FORMS,
        control_variant="corrected",
        erratum="errata-3",
    ),
    *(inner_claim(number) for number in EQUATIONS),
    Claim(
        id="norm",
        statement="|v_i| and |w_i| are constants of the gradient flow. One SGD step changes them only at second "
        "order in the step.",
        source=at("Section 4.1, equation (4)"),
        measure=norm_drift,
        law=Vanishes(1e-9, meaning="gradient along the row"),
        sweep=STEPS,
        control=break_measure(functools.partial(norm_drift, decay=0.01)),
        rungs=(1, 5, 9),
        variants=(
            Variant("flow", {"what": "flow"}),
            Variant(
                "sgd",
                {"what": "sgd"},
                "One step changes the squared norms by O(step^2).",
                law=SECOND_ORDER,
                control=break_measure(functools.partial(norm_drift, decay=10.0)),
            ),
        ),
    ),
    Claim(
        id="eq-4",
        statement="d(v_i.v*_j)/dt = -|v_i|^-1 grad_v L . v*_j, and likewise for experts.",
        source=at("equation (4)"),
        measure=equation_4,
        law=Vanishes(1e-9, meaning="difference between flow and gradient"),
        sweep=SEEDS,
        control=break_measure(functools.partial(equation_4, swap=True)),
        rungs=(1, 3, 9),
    ),
)
