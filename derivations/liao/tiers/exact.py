"""Tier exact: the Gram flow, from gradients in vectors and a table of inner products.

Two gradient vectors and the table are written explicitly; the seven equations follow (`derivations.indexed.dot`). The
flow needs no approximation: it is exact at every d, for every teacher Gram matrix and all norms, and its cost does not
depend on d.

1. The pair kernel K of two experts is a polynomial in their overlaps (`kernels`; Lemma 1).
2. The loss is a sum of pair kernels, L = (1/2) sum K_ir - sum K_ij* + (1/2) sum K_j*l* (Section 3).
3. Its derivatives with respect to the overlaps are the five lambdas of Section 4 and Appendix A.3.
4. A unit vector moves along its gradient projected on the sphere, at the rate 1/norm^2 (equation (10), corrected).
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations import clusters
from derivations.contract import Initial, Observables, Smooth
from derivations.indexed import dot, nested
from derivations.liao.initial import components
from derivations.liao.overlaps import assemble_gram
from derivations.liao.parameters import Parameters
from derivations.liao.summary import observe, summarise
from derivations.liao.tiers import parts
from derivations.liao.tiers.kernels import S_INDEX, N, notation, pair_kernels, terms
from derivations.liao.tiers.parts import (
    GAMMA1,
    GAMMA2,
    I1,
    I2,
    I3,
    LENGTHS,
    NORMS,
    SIZES,
    STATE,
    T1,
    T2,
    T3,
    TEACHER_K,
    TEACHERS,
    ZETA1,
    ZETA2,
    A,
    I,
    J,
    L,
    R,
)
from derivations.statement import HALF, Base, Definition, Equation, Example, Kernel, Rate, Statement, Step, sp

V, W, V_STAR, W_STAR = map(Base, ("v", "w", "v_star", "w_star"))
LAM, HAT = [Base(f"lam{x}") for x in range(1, 6)], [Base(f"hat{x}") for x in range(1, 6)]
K_SS, K_ST, K_TT = map(Base, ("K_ss", "K_st", "K_tt"))
P = {x + y: Base(f"P_{x}{y}") for x in "vw" for y in "vw"}
PRODUCTS: Mapping[tuple[str, str], Any] = {
    ("v", "v"): lambda x, y: I1[x, y],
    ("w", "w"): lambda x, y: I2[x, y],
    ("v", "w"): lambda x, y: I3[x, y],
    ("v", "v_star"): lambda x, y: GAMMA1[x, y],
    ("w", "w_star"): lambda x, y: GAMMA2[x, y],
    ("v", "w_star"): lambda x, y: ZETA1[x, y],
    ("w", "v_star"): lambda x, y: ZETA2[x, y],
    ("v_star", "v_star"): lambda x, y: T1[x, y],
    ("w_star", "w_star"): lambda x, y: T2[x, y],
    ("v_star", "w_star"): lambda x, y: T3[x, y],
}
STUDENT = (I1[I, R], I2[I, R], I3[I, I], I3[I, R], I3[R, I], I3[R, R])
TEACHER = (GAMMA1[I, L], GAMMA2[I, L], I3[I, I], ZETA1[I, L], ZETA2[I, L], T3[L, L])
KL = (TEACHER_K, L)
BOTH_TEACHERS = (T1[KL], T2[KL], T3[TEACHER_K, TEACHER_K], T3[KL], T3[L, TEACHER_K], T3[L, L])
AT = "App. A.3, eq. (10)"
START = """d, rng = 400, np.random.default_rng(3)
U = np.linalg.qr(rng.standard_normal((d, 2 * m)))[0].T  # mutually orthogonal students
v, w, v_star, w_star = U[:m], U[m:], np.eye(d)[:m_star], np.eye(d)[m_star : 2 * m_star]
start = {"gamma1": v @ v_star.T, "gamma2": w @ w_star.T, "zeta1": v @ w_star.T, "zeta2": w @ v_star.T}
start |= {"I1": v @ v.T, "I2": w @ w.T, "I3": v @ w.T}"""


def statement(parameters: Parameters) -> Statement:
    """The gradient flow of gated experts He_p on all overlaps.  Source: Appendix A.3 (corrected, see the errata)."""
    p = parameters.degree
    kernels, grad = pair_kernels(parameters), gradients(p)
    gate = "logistic function" if parameters.gate == "logistic" else "normal distribution function"
    beta = "" if parameters.temperature == 1 else f" of {parameters.temperature:g} times its argument"
    return Statement(
        tier="exact",
        name="liao, exact",
        title="gradient flow of a soft-routed mixture of experts on its overlaps",
        source=f"{parts.PAPER}, Section 3 and Appendix A.3",
        clock=f"{parts.CLOCK}; the loss has the factor 1/2 of its definition below",
        validity=f"exact for Gaussian inputs at every `d`, any teacher Gram matrix and any norms, gate pi the {gate}"
        f"{beta}, experts He_{p}, in the limit of small step size and large batch",
        neglects="nothing",
        indices=[((I, J, R), "students"), (KL, "teachers"), ((N, S_INDEX), "degrees")],
        sizes=parts.sizes(parameters),
        state=STATE,
        constants=(*SIZES, *LENGTHS, *TEACHERS),
        bind=parts.bind,
        definitions=(*kernels, *products(kernels.energy), *definitions(p, kernels.slopes, grad)),
        steps=shown_steps(grad),
        loss=HALF * nested(K_SS[I, R], I, R) - nested(K_ST[I, L], I, L) + HALF * nested(K_TT[KL], *KL),
        loss_is_square=True,
        equations=equations_of_motion(grad),
        advance=Smooth(coupled=labels),
        crossings=parts.crossings(parameters),
        observables=Observables(
            observe=observe, constants=parts.constants, invariants=parts.invariants, summary=summarise
        ),
        notation=notation(),
        terms=terms(parameters),
        example=Example(START, "gamma2", 0.9, 40.0),
    )


def products(energy: Kernel) -> tuple[Definition, ...]:
    """The mean products of the outputs of two experts."""
    return (
        Definition((K_SS[I, R],), STUDENT, "mean product of the outputs of two students", energy),
        Definition((K_ST[I, L],), TEACHER, "of a student and a teacher", energy),
        Definition((K_TT[KL],), BOTH_TEACHERS, "of two teachers", energy),
    )


def gradients(p: int) -> dict[str, Any]:
    """The gradients of the loss with respect to the unit vectors v_i and w_i, as combinations of vectors."""
    lam, hat = [x[I, R] for x in LAM], [x[I, L] for x in HAT]

    def by(own: Any, first: Any, second: Any) -> Any:
        (f, n), (g, o) = first, second
        students = sp.Sum(f * lam[n] * V[R] + g * lam[o] * W[R], R)
        return A[I] * own + students - sp.Sum(f * hat[n] * V_STAR[L] + g * hat[o] * W_STAR[L], L)

    return {"v": by(W[I], (1, 0), (p, 3)), "w": by(V[I], (p, 2), (p**2, 4))}


def definitions(p: int, slopes: Any, grad: Mapping[str, Any]) -> tuple[Definition, ...]:
    """Lambdas of all pairs, interactions of the two vectors of an expert, and inner products of gradients with
    vectors.
    """
    push = p * sp.Sum(LAM[1][I, R], R) - p * sp.Sum(HAT[1][I, L], L)
    vectors = {"v": V[J], "w": W[J]}
    return (
        Definition(tuple(x[I, R] for x in LAM), STUDENT, "pairs of students", slopes),
        Definition(tuple(x[I, L] for x in HAT), TEACHER, "a student and a teacher", slopes),
        Definition((A[I],), push, "interaction of the two vectors of an expert"),
        *(
            Definition(
                (P[x + y][I, J],),
                dot(grad[x], vectors[y], PRODUCTS),
                "inner products of the gradients with the vectors",
            )
            for x in "vw"
            for y in "vw"
        ),
    )


def own(x: str, other: Any, overlap: Any) -> Any:
    """-(P_x . other - (P_x . x) overlap)/norm^2, the inner product of the motion of vector x_i with another vector."""
    return -(other - P[x + x][I, I] * overlap) / NORMS[x][I] ** 2


def moved(x: str, y: str, overlap: Any) -> Any:
    """d(x_i . y_j)/dt: both vectors move."""
    swap = {I: J, J: I}
    second = own(y, P[y + x][I, J], overlap).xreplace(swap)
    return own(x, P[x + y][I, J], overlap) + second.xreplace({overlap.xreplace(swap): overlap})


def equations_of_motion(grad: Mapping[str, Any]) -> tuple[Equation, ...]:
    """The seven equations of Appendix A.3, from the projections of the gradients."""
    fixed = ((GAMMA1, "v", V_STAR), (GAMMA2, "w", W_STAR), (ZETA1, "v", W_STAR), (ZETA2, "w", V_STAR))
    return (
        *(
            Equation(x[I, TEACHER_K], own(y, dot(grad[y], t[TEACHER_K], PRODUCTS), x[I, TEACHER_K]), AT)
            for x, y, t in fixed
        ),
        Equation(I1[I, J], moved("v", "v", I1[I, J]), AT),
        Equation(I2[I, J], moved("w", "w", I2[I, J]), AT),
        Equation(I3[I, J], moved("v", "w", I3[I, J]), f"{AT}, corrected (errata-3)"),
    )


def shown_steps(grad: Mapping[str, Any]) -> tuple[Step, ...]:
    """The gradients in vectors, and the motion of the unit vectors."""
    nabla, vectors = {x: Base(f"grad_{x}") for x in "vw"}, {"v": V[I], "w": W[I]}
    steps = [Step(nabla[x][I], grad[x], "gradient of the loss by the unit vector") for x in "vw"]
    for x, y in vectors.items():
        velocity = -(nabla[x][I] - P[x + x][I, I] * y) / NORMS[x][I] ** 2
        steps.append(Step(Rate(y), velocity, "its part tangent to the sphere, at the rate of the norm"))
    return tuple(steps)


def labels(initial: Initial) -> Callable[[np.ndarray], np.ndarray]:
    """Return the strongly coupled entries of the state: those between the same two clusters of vectors."""
    p, teachers = initial.parameters, initial.constants["teacher_gram"]
    layout, n = parts.flat(p.m, p.m_star), 2 * (p.m + p.m_star)
    first, second = (layout.pack(components(place, p.m, p.m_star)).astype(int) for place in np.indices((n, n)))
    return lambda y: clusters.labels(clusters.clusters(assemble_gram(layout.unpack(y), teachers)), first, second)
