"""The exact Gram flow as a statement: gradients in vectors, their projections by a table of inner products.

Two gradient vectors and the table are typed; the seven equations follow (`derivations.indexed.dot`).
"""

from collections.abc import Mapping
from typing import Any

from derivations.contract import Initial
from derivations.indexed import dot
from derivations.liao.parameters import Parameters
from derivations.liao.statements.kernels import S_INDEX, N, neglected, notation, pair_kernels, terms
from derivations.statement import HALF, Base, Definition, Equation, Example, Named, Rate, Statement, Step, sp

M, M_STAR = sp.symbols("m m_star", integer=True)
I, J, R = (sp.Idx(n, M) for n in "ijr")
TEACHER_K, L = (sp.Idx(n, M_STAR) for n in "kl")
NORMS = {"v": Base("a"), "w": Base("b")}
GAMMA1, GAMMA2, ZETA1, ZETA2, I1, I2, I3, A = map(Base, "gamma1 gamma2 zeta1 zeta2 I1 I2 I3 A".split())
V, W, V_STAR, W_STAR = map(Base, ("v", "w", "v_star", "w_star"))
LAM, HAT = [Base(f"lam{x}") for x in range(1, 6)], [Base(f"hat{x}") for x in range(1, 6)]
P = {x + y: Base(f"P_{x}{y}") for x in "vw" for y in "vw"}
PRODUCTS: Mapping[tuple[str, str], Any] = {
    ("v", "v"): lambda x, y: I1[x, y],
    ("w", "w"): lambda x, y: I2[x, y],
    ("v", "w"): lambda x, y: I3[x, y],
    ("v", "v_star"): lambda x, y: GAMMA1[x, y],
    ("w", "w_star"): lambda x, y: GAMMA2[x, y],
    ("v", "w_star"): lambda x, y: ZETA1[x, y],
    ("w", "v_star"): lambda x, y: ZETA2[x, y],
    ("v_star", "v_star"): sp.KroneckerDelta,
    ("w_star", "w_star"): sp.KroneckerDelta,
    ("v_star", "w_star"): lambda x, y: sp.Integer(0),
}
STUDENT = (I1[I, R], I2[I, R], I3[I, I], I3[I, R], I3[R, I], I3[R, R])
TEACHER = (GAMMA1[I, L], GAMMA2[I, L], I3[I, I], ZETA1[I, L], ZETA2[I, L], sp.Integer(0))
START = """d, rng = 400, np.random.default_rng(3)
U = np.linalg.qr(rng.standard_normal((d, 2 * m)))[0].T  # mutually orthogonal students
v, w, v_star, w_star = U[:m], U[m:], np.eye(d)[:m_star], np.eye(d)[m_star : 2 * m_star]
start = {"gamma1": v @ v_star.T, "gamma2": w @ w_star.T, "zeta1": v @ w_star.T, "zeta2": w @ v_star.T}
start |= {"I1": v @ v.T, "I2": w @ w.T, "I3": v @ w.T}"""
STATE = (
    Named(GAMMA1[I, TEACHER_K], "router alignment v_i.v*_k"),
    Named(GAMMA2[I, TEACHER_K], "expert alignment w_i.w*_k"),
    Named(ZETA1[I, TEACHER_K], "mis-alignment v_i.w*_k"),
    Named(ZETA2[I, TEACHER_K], "mis-alignment w_i.v*_k"),
    Named(I1[I, J], "router-router overlap v_i.v_j", unit=True),
    Named(I2[I, J], "expert-expert overlap w_i.w_j", unit=True),
    Named(I3[I, J], "router-expert overlap v_i.w_j (not symmetric)"),
)
CONSTANTS = (
    Named(M, "student experts", 6),
    Named(M_STAR, "teacher experts", 2),
    Named(NORMS["v"][I], "norm of router `i`, conserved", "np.ones(m)"),
    Named(NORMS["w"][I], "norm of expert `i`, conserved", "np.ones(m)"),
)


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    p, c = initial.parameters, initial.constants
    return {"m": p.m, "m_star": p.m_star, "a": c["norm_v"], "b": c["norm_w"]}


def gradients(p: int) -> dict[str, Any]:
    """The gradients of the loss by the unit vectors v_i and w_i, as combinations of vectors."""
    lam, hat = [x[I, R] for x in LAM], [x[I, L] for x in HAT]

    def by(own: Any, first: Any, second: Any) -> Any:
        (f, n), (g, o) = first, second
        students = sp.Sum(f * lam[n] * V[R] + g * lam[o] * W[R], R)
        return A[I] * own + students - sp.Sum(f * hat[n] * V_STAR[L] + g * hat[o] * W_STAR[L], L)

    return {"v": by(W[I], (1, 0), (p, 3)), "w": by(V[I], (p, 2), (p**2, 4))}


def own(x: str, other: Any, overlap: Any) -> Any:
    """-(P_x . other - (P_x . x) overlap)/norm^2, the motion of vector x_i seen from another vector."""
    return -(other - P[x + x][I, I] * overlap) / NORMS[x][I] ** 2


def moved(x: str, y: str, overlap: Any) -> Any:
    """d(x_i . y_j)/dt: both vectors move."""
    swap = {I: J, J: I}
    second = own(y, P[y + x][I, J], overlap).xreplace(swap)
    return own(x, P[x + y][I, J], overlap) + second.xreplace({overlap.xreplace(swap): overlap})


def equations_of_motion(grad: Mapping[str, Any]) -> tuple[Equation, ...]:
    """The seven equations of Appendix A.3, from the projections of the gradients."""
    at = "App. A.3, eq. (10)"
    fixed = ((GAMMA1, "v", V_STAR), (GAMMA2, "w", W_STAR), (ZETA1, "v", W_STAR), (ZETA2, "w", V_STAR))
    found = [
        Equation(x[I, TEACHER_K], own(y, dot(grad[y], t[TEACHER_K], PRODUCTS), x[I, TEACHER_K]), at)
        for x, y, t in fixed
    ]
    found += [Equation(I1[I, J], moved("v", "v", I1[I, J]), at), Equation(I2[I, J], moved("w", "w", I2[I, J]), at)]
    return (*found, Equation(I3[I, J], moved("v", "w", I3[I, J]), at + ", corrected (errata-3)"))


def shown_steps(grad: Mapping[str, Any]) -> tuple[Step, ...]:
    """The gradients in vectors, and the motion of the unit vectors."""
    nabla, vectors = {x: Base(f"grad_{x}") for x in "vw"}, {"v": V[I], "w": W[I]}
    steps = [Step(nabla[x][I], grad[x], "gradient of the loss by the unit vector") for x in "vw"]
    for x, y in vectors.items():
        velocity = -(nabla[x][I] - P[x + x][I, I] * y) / NORMS[x][I] ** 2
        steps.append(Step(Rate(y), velocity, "its part tangent to the sphere, at the rate of the norm"))
    return tuple(steps)


def statement(parameters: Parameters) -> Statement:
    """The gradient flow of gated experts He_p against orthonormal teachers, on all overlaps."""
    p = parameters.degree
    kernels, grad = pair_kernels(parameters), gradients(p)
    K = kernels.energy["K"]
    loss = HALF * sp.Sum(sp.Sum(K(*STUDENT), R), I) - sp.Sum(sp.Sum(K(*TEACHER), L), I)
    push = p * sp.Sum(LAM[1][I, R], R) - p * sp.Sum(HAT[1][I, L], L)
    vectors = {"v": V[J], "w": W[J]}
    projections = (
        Definition((P[x + y][I, J],), dot(grad[x], vectors[y], PRODUCTS), "gradients seen from the vectors")
        for x in "vw"
        for y in "vw"
    )
    gate = "logistic function" if parameters.gate == "logistic" else "normal distribution function"
    beta = "" if parameters.temperature == 1 else f" of {parameters.temperature:g} times its argument"
    return Statement(
        name="liao, exact",
        title="gradient flow of a soft-routed mixture of experts on its overlaps",
        source="Liao & Kyrillidis 2026, Section 3 and Appendix A.3",
        clock="one step of SGD of size eta advances `t` by eta; the loss has the factor 1/2 of its definition below",
        validity=f"exact for Gaussian inputs at every `d`, gate pi the {gate}{beta}, experts He_{p}, "
        "orthonormal teachers",
        neglects=neglected(parameters),
        indices=[((I, J, R), "students"), ((TEACHER_K, L), "teachers"), ((N, S_INDEX), "degrees")],
        state=STATE,
        constants=CONSTANTS,
        bind=bind,
        definitions=(
            *kernels,
            Definition(tuple(x[I, R] for x in LAM), STUDENT, "pairs of students", kernels.slopes),
            Definition(tuple(x[I, L] for x in HAT), TEACHER, "a student and a teacher", kernels.slopes),
            Definition((A[I],), push, "how an expert's own two vectors push each other"),
            *projections,
        ),
        steps=shown_steps(grad),
        loss=loss + M_STAR * K(1, 1, 0, 0, 0, 0) / 2,
        equations=equations_of_motion(grad),
        notation=notation(),
        terms=terms(parameters),
        example=Example(START, "gamma2", 0.9, 40.0),
    )
