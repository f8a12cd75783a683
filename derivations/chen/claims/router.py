"""The router stage: contrast, plateau, instability inside a group (Proposition E.9, Lemmas E.10 to E.18)."""

import math

from derivations.broken import break_law, break_measure, grid, over
from derivations.chen.claims.stage import (
    centre_output,
    closure,
    contamination,
    contrast_at_end,
    early_contrast,
    growth_rate,
    half_time,
    loads,
    outer_drift,
    output_size,
    plateau,
    specialist_lead,
    starving,
    training_against_pair,
)
from derivations.chen.claims.tools import claim
from derivations.claim import Variant
from derivations.laws import All, Bounded, Equals, Power, Proven

CLAIMS = (
    claim(
        "router-s4",
        "The router's contrast grows as D = rho E[beta] E[alpha^3] (s^4 - s_0^4)/(8 K M^2) (ours).",
        "Lemma E.17",
        early_contrast,
        Power(4.0, over="s", margin=0.03, error=1e-6, meaning="D", because="(s_0/s)^4 and q - 1/2"),
        over("s", 0.08, 0.1, 0.13, 0.16, 0.2),
        break_law(exponent=4.06),
        (4, 7, 8, 9),
        variants=(
            Variant("exponent"),
            Variant(
                "prefactor",
                {"ratio": True},
                law=Equals(1.0, absolute=0.03, error=1e-6, meaning="D over its law"),
                sweep={"quick": over("s", 0.1, 0.2, 0.3)},
            ),
            Variant(
                "training",
                {"ratio": True, "training": True},
                law=Equals(1.0, absolute=0.05, meaning="D over its law"),
                sweep={"quick": over("s", 0.42, seeds=8)},
            ),
        ),
    ),
    claim(
        "group2",
        "The two-variable reduction follows training on 8000 examples: D within 8 % up to 0.6 (ours).",
        "Lemma E.17",
        training_against_pair,
        Bounded(high=0.08, meaning="largest relative difference of D"),
        grid(seeds=6),
        break_measure(lambda lab, point, seed: training_against_pair(lab, {"rho": 77.0}, seed)),
        (7, 9),
        variants=(Variant("main", expected="consistent"),),
    ),
    claim(
        "sstar",
        "With a frozen router specialists stop at s* = c* M^(1/3) (ours).",
        "Lemma E.12",
        plateau,
        Power(1 / 3, over="M", margin=0.01, error=1e-5, meaning="s*"),
        over("M", 4, 8, 16, 32),
        break_law(exponent=1 / 3 + 0.02),
        (4, 7, 8, 9),
        variants=(
            Variant("flow"),
            Variant(
                "constant",
                {"ratio": True},
                law=Equals(2.0, relative=0.002, error=1e-5, meaning="s*/c*"),
                sweep={"quick": over("M", 8)},
            ),
            Variant(
                "training",
                {"training": True},
                law=Power(1 / 3, over="M", margin=0.04, meaning="s*"),
                sweep={"quick": over("M", 4, 8, 16, 32, seeds=6)},
            ),
        ),
    ),
    claim(
        "rho-law",
        "The contrast reaches 1/2 at a time ~ c^(-1/4), rho = c M^2 (ours); a router that is too slow lets the "
        "specialists stall at s*.",
        "Section 5.2",
        half_time,
        Power(-0.25, over="c", margin=0.01, error=1e-6, meaning="time of D = 1/2", because="s_0 and q - 1/2"),
        over("c", 1e2, 1e3, 1e4, 1e5, 1e6),
        break_law(exponent=-0.27),
        (4, 8, 9),
        variants=(
            Variant("rate"),
            Variant(
                "stall",
                {"stall": True},
                law=Equals(1.0, absolute=0.02, error=1e-6, meaning="s/s*"),
                sweep={"quick": over("c", 0.004)},
            ),
        ),
    ),
    claim(
        "prop-E.9",
        "Until T_2 outputs depend on features, logits on centres, and every group gets its share.",
        "Proposition E.9",
        centre_output,
        Power(3.0, over="sigma_0", margin=0.1, meaning="output from centres", because="drift of the centres, n^(-1/2)"),
        over("sigma_0", 0.005, 0.01, 0.02, 0.04, seeds=40),
        break_law(exponent=2.8),
        (7, 8, 9),
        variants=(
            Variant("experts"),
            Variant(
                "share",
                {"share": True},
                statement="Until D = .05 every expert keeps nine tenths of its share 1/M of the own cluster.",
                expected="consistent",
                law=Bounded(low=0.9, meaning="M p on the own cluster"),
                sweep={"quick": grid()},
            ),
        ),
    ),
    claim(
        "lem-E.10a",
        "Outputs are O(1) until T_2: of size (2 s)^3.",
        "Lemma E.10",
        output_size,
        Equals(1.0, absolute=0.05, meaning="output over (2 T_2)^3", because="3 (s - tau)/tau at sigma_0 = 1e-4"),
        grid(seeds=6),
        break_law(value=1.1),
        (4, 9),
    ),
    claim(
        "lem-E.12",
        "Until T_2 specialists follow s = tau + O(sigma_0).",
        "Lemma E.12",
        specialist_lead,
        Power(1.0, over="sigma_0", margin=0.06, meaning="|s - tau|"),
        over("sigma_0", 1e-8, 1e-7, 1e-6, 1e-5, seeds=5),
        break_law(exponent=0.88),
        (4, 8, 9),
        variants=(
            Variant("window"),
            Variant(
                "beyond it",
                {"frozen": True},
                "The same at every time.",
                "refuted",
                law=Bounded(low=0.9, meaning="s/tau"),
                sweep={"quick": grid()},
            ),
        ),
    ),
    claim(
        "lem-E.14",
        "Routers pick up features only through sampling noise: max <theta, v>/D ~ n^(-1/2).",
        "Lemma E.14",
        contamination,
        Power(-0.5, over="n", margin=0.1, meaning="max <theta, v>/D", because="largest of 32, noise of D"),
        over("n", 500, 2000, 8000, 32000, seeds=16),
        break_law(exponent=-0.7),
        (7, 8, 9),
        erratum="errata-2",
    ),
    claim(
        "lem-E.16",
        "Within a group differences grow as exp(kappa D), kappa = (M^2/(M-1) + 1 - |M_k|/M) E[beta^2]/E[beta] "
        "(the constant is ours): they stay small until T_2, not to the end of training.",
        "Lemma E.16",
        growth_rate,
        Equals(1.0, absolute=0.05, error=1e-3, meaning="growth rate over kappa", because="terms of order D"),
        grid({"M": 8, "K": 4}, {"M": 6, "K": 3}, {"M": 12, "K": 4}),
        break_law(value=1.1),
        (4, 8, 9),
        erratum="errata-3",
        variants=(
            Variant("rate"),
            Variant(
                "early",
                {"when": "early"},
                "Until D = .05 a planted imbalance of .001 stays below .05.",
                "consistent",
                law=Bounded(high=0.05, meaning="imbalance"),
                sweep={"quick": grid()},
            ),
            Variant(
                "to the end",
                {"when": "end"},
                "The imbalance stays small to the end of training.",
                "refuted",
                law=Bounded(high=0.05, meaning="imbalance"),
                sweep={"quick": grid()},
            ),
        ),
    ),
    claim(
        "lem-E.17",
        "Outside its group an expert's router falls at the rate E[beta] E[alpha^3] tau^3 |M_k|/(2 K M^3) (the "
        "constant is ours).",
        "Lemma E.17",
        outer_drift,
        Power(3.0, over="s", margin=0.01, error=1e-9, meaning="drift", because="q - 1/2 ~ s^3"),
        over("s", 0.01, 0.02, 0.04, 0.08),
        break_law(exponent=3.02),
        (4, 8, 9),
        variants=(
            Variant("time"),
            Variant(
                "K",
                law=Power(-1.0, over="K", margin=0.01, error=1e-9, meaning="drift"),
                sweep={"quick": over("K", 3, 4, 6, 8, M=12)},
            ),
            Variant(
                "M",
                law=Power(-3.0, over="M", margin=0.01, error=1e-9, meaning="drift"),
                sweep={"quick": over("M", 6, 12, 24, 48)},
            ),
            Variant(
                "group",
                statement="The drift is proportional to the size of the group, |M_k| = 1, 2, 4, 8 of 16.",
                law=Power(1.0, over="group", margin=0.01, error=1e-9, meaning="drift"),
                sweep={"quick": over("group", 1, 2, 4, 8, M=16)},
            ),
            Variant(
                "constant",
                {"ratio": True},
                law=Equals(1.0, absolute=0.01, error=1e-9, because="q - 1/2"),
                sweep={
                    "quick": grid(
                        {"s": 0.05}, {"s": 0.05, "M": 16, "group": 5}, {"s": 0.05, "K": 7, "M": 14, "group": 2}
                    )
                },
            ),
        ),
    ),
    claim(
        "lem-E.18",
        "At T_2 the contrast is E[beta] E[alpha^3] M^-8/(8 K) at rho = M^2, so that routers outside the group "
        "lie below by Omega(K^-1 M^-9) |M_k|.",
        "Lemma E.18",
        contrast_at_end,
        Equals(1.0, absolute=0.01, error=1e-3, meaning="D over its law", because="q - 1/2 of order M^-6"),
        grid(*({"M": m, "K": k} for m in (4, 8, 16) for k in (2, 4)), {"M": 16, "K": 8}),
        break_law(value=1.02),
        (4, 8, 9),
        variants=(
            Variant("constant"),
            Variant(
                "rate",
                {"raw": True, "K": 4},
                law=Power(-8.0, over="M", margin=0.05, error=1e-3, meaning="D"),
                sweep={"quick": over("M", 4, 6, 9, 13)},
            ),
            Variant(
                "K",
                {"raw": True},
                law=Power(-1.0, over="K", margin=0.01, error=1e-3, meaning="D"),
                sweep={"quick": over("K", 2, 4, 8, 16, M=16)},
            ),
        ),
    ),
    claim(
        "p3-closure",
        "Training on three patches approaches the exact flow's recursion like n^(-1/2) (ours).",
        "Algorithm 1",
        closure,
        Power(-0.5, over="n", margin=0.08, meaning="relative distance"),
        over("n", 500, 2000, 8000, 32000, seeds=16),
        break_measure(lambda lab, point, seed: closure(lab, {**point, "stretch": 1.1}, seed)),
        (6, 7, 8, 9),
    ),
    claim(
        "starve",
        "Experts out of reach of every example stay exactly where they are, and their number only grows (ours).",
        "Lemma C.4",
        starving,
        All(
            {
                "moved": Proven("starved experts rest"),
                "rise": Bounded(high=0, visible=math.inf, because="a sign", meaning="rise of the live experts"),
            }
        ),
        grid(seeds=6),
        break_measure(lambda lab, point, seed: starving(lab, {"gap": 0.2}, seed)),
        (7, 9),
    ),
    claim(
        "load",
        "Experts of a group share their load early; later one of them takes it all (ours).",
        "Lemma E.16",
        loads,
        Bounded(high=0.05, meaning="relative difference of loads"),
        grid({"when": "early"}),
        break_measure(lambda lab, point, seed: loads(lab, {"when": "end"}, seed)),
        (4, 9),
        variants=(
            Variant("early", expected="consistent"),
            Variant(
                "late",
                {"when": "end"},
                "At time 2 one of the two takes it all.",
                law=Equals(1.0, absolute=0.01, error=1e-6, meaning="relative difference of loads"),
                sweep={"quick": grid()},
            ),
        ),
    ),
)
