"""Stage prune as a statement: the loss of the remaining experts, and its change by the removal of one more."""

from derivations.indexed import nested
from derivations.liao.parameters import Parameters
from derivations.liao.tiers.exact import K_SS, K_ST, K_TT, KL, products
from derivations.liao.tiers.kernels import S_INDEX, N, notation, pair_kernels, terms
from derivations.liao.tiers.parts import SIZES, STATE, TEACHERS, I, J, L, R, bind
from derivations.statement import Base, Definition, Named, Statement, sp

KEPT, CHANGE = map(Base, ("kept", "Delta"))
RULE = (
    "Starting with all experts, the expert of the least change is removed as long as that change is negative; "
    "changes are computed anew after each removal (equation (8)). The stage does not change the overlaps and "
    "norms of the remaining experts."
)


def statement(parameters: Parameters, tier: str) -> Statement:
    """Greedy removal of experts while the squared error decreases."""
    coefficients, correlation, energy, _ = pair_kernels(parameters)
    own = KEPT[I] * KEPT[R] * K_SS[I, R]
    squared = nested(own, I, R) - 2 * nested(KEPT[I] * K_ST[I, L], I, L)
    residual = sp.Sum(KEPT[R] * K_SS[I, R], R) - sp.Sum(K_ST[I, L], L)
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
            *products(energy),
            Definition((CHANGE[I],), K_SS[I, I] - 2 * residual, "change of the squared error by removing expert i"),
        ),
        equations=(),
        loss=squared + nested(K_TT[KL], *KL),
        notation={
            **notation(),
            "kept": ("\\chi", "χ"),
            "Delta": ("\\Delta", "Δ"),
        },
        terms=terms(parameters),
        kind="map",
        rules=(RULE,),
    )
