"""Stage prune as a statement: the loss of the experts kept, and what the removal of one more would change."""

from derivations.indexed import nested
from derivations.liao.parameters import Parameters
from derivations.liao.tiers.exact import BOTH_TEACHERS, KL, STUDENT, TEACHER
from derivations.liao.tiers.kernels import S_INDEX, N, notation, pair_kernels, terms
from derivations.liao.tiers.parts import SIZES, STATE, TEACHERS, I, J, L, R, bind
from derivations.statement import Base, Definition, Named, Statement, sp

KEPT, K_STUDENTS, K_MIXED, K_TEACHERS, CHANGE = map(Base, ("kept", "K_ss", "K_st", "K_tt", "Delta"))
RULE = (
    "Starting with all experts, the expert of the least change is removed as long as that change is negative; changes "
    "are computed anew after each removal (equation (8)). The stage leaves the overlaps and norms of the experts kept."
)


def statement(parameters: Parameters, tier: str) -> Statement:
    """Greedy removal of experts while the squared error falls."""
    coefficients, correlation, energy, _ = pair_kernels(parameters)
    own = KEPT[I] * KEPT[R] * K_STUDENTS[I, R]
    squared = nested(own, I, R) - 2 * nested(KEPT[I] * K_MIXED[I, L], I, L)
    residual = sp.Sum(KEPT[R] * K_STUDENTS[I, R], R) - sp.Sum(K_MIXED[I, L], L)
    samples = parameters.prune_samples
    estimated = f"; here from {samples} samples instead of these means" if samples else ""
    return Statement(
        name="liao, prune",
        title="greedy removal of experts while the squared error falls",
        source="Liao & Kyrillidis 2026, Theorem 2 and equation (8)",
        clock="none: a stage without a clock; the squared error has no factor 1/2 here",
        validity=f"exact for Gaussian inputs at every `d`, experts He_{parameters.degree}, any teacher Gram matrix"
        + estimated,
        neglects="nothing",
        indices=[((I, J, R), "students"), (KL, "teachers"), ((N, S_INDEX), "degrees")],
        state=(*STATE, Named(KEPT[I], "1 for an expert that is kept, else 0")),
        constants=(*SIZES, *TEACHERS),
        bind=bind,
        definitions=(
            coefficients,
            correlation,
            energy,
            Definition((K_STUDENTS[I, R],), energy["K"](*STUDENT), "mean product of the outputs of two students"),
            Definition((K_MIXED[I, L],), energy["K"](*TEACHER), "of a student and a teacher"),
            Definition((K_TEACHERS[KL],), energy["K"](*BOTH_TEACHERS), "of two teachers"),
            Definition(
                (CHANGE[I],), K_STUDENTS[I, I] - 2 * residual, "change of the squared error by removing expert i"
            ),
        ),
        equations=(),
        loss=squared + nested(K_TEACHERS[KL], *KL),
        notation={
            **notation(),
            "K_ss": ("K^{ss}", "Kss"),
            "K_st": ("K^{st}", "Kst"),
            "K_tt": ("K^{tt}", "Ktt"),
            "kept": ("\\chi", "χ"),
            "Delta": ("\\Delta", "Δ"),
        },
        terms=terms(parameters),
        kind="map",
        rules=(RULE,),
    )
