"""Claims on Theorem 4.2 in full training at feasible sizes: accuracy, groups, dispatch, and comparisons."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_law, break_measure, break_setting, grid, over, with_seeds
from derivations.chen.claims.tools import SETTINGS, claim
from derivations.claim import Grid, Variant
from derivations.laws import Bounded, Power, Probability, Tends, Typical

PAPER: dict[str, Any] = {"K": 4, "M": 8, "J": 16, "P": 4, "d": 50, "rho": 100.0, "sigma_0": 1e-3, "n_test": 4000}
"""The paper's sizes, with n = 2000 training examples and a step of 0.01 so that a run takes a second."""
STEP, EXAMPLES, UNTIL = 1e-2, 40, 2.0
"""The step, the training examples of a dimension (the theorem has n of order d), and the horizon.

On other seeds a step of 0.005 gave the same shares within their error in setting 3, but for the router at d = 16, which
is purer.  The horizon is needed: routers become pure between 1.8 and 2.0.
"""
FINE: dict[str, Any] = {"step": 5e-3}
"""The step where the doubled one does not give the same: with setting 4's noise one run of 20 reaches zero error, where
with this one none does, and in setting 1 cubic mixtures lose half of their lead."""


def trained(lab: Any, point: Mapping[str, Any], seed: int) -> Any:
    """Run Algorithm 1 on its own training set; every seed has its own data.

    Both ends are saved, or `saves` states.
    """
    size = {
        **PAPER,
        **SETTINGS[point.get("setting", 3)],
        **{k: point[k] for k in ("M", "J", "activation", "d", "gamma") if k in point},
    }
    return lab.simulate(
        method="explicit", step_size=point.get("step", STEP), batch=point.get("n", EXAMPLES * size["d"]),
        until=point.get("until", UNTIL), save_points=point.get("saves", 2), seed=seed, data_seed=seed, **size,
    )  # fmt: skip


def final(name: str) -> Any:
    """Return a measurement of the last value of a scalar of the standard run."""

    def measure(lab: Any, point: Mapping[str, Any], seed: int) -> float:
        if point.get("single"):
            return single(lab, point, seed)
        if point.get("lag"):
            kinds = ("linear", "cubic") if point.get("exchanged") else ("cubic", "linear")
            both = [trained(lab, {**point, "activation": kind}, seed)["accuracy"][0, -1] for kind in kinds]
            return float(both[0] - both[1])
        return float(trained(lab, point, seed)[name][0, -1])

    return measure


def at_start(name: str) -> Any:
    """Return a measurement of the first value of the scalar, before training."""
    return lambda lab, point, seed: float(trained(lab, point, seed)[name][0, 0])


def happens(measure: Any, low: float = -math.inf, high: float = math.inf) -> Any:
    """Return a measurement that is 1 if another one lies between two bounds in a run, else 0.

    This is the event of a statement "with high probability".
    """
    return lambda lab, point, seed: float(low <= measure(lab, point, seed) <= high)


def own_error(lab: Any, point: Mapping[str, Any], seed: int, shift: int = 0) -> float:
    """Return the largest error of a live expert on its own cluster, with signals only.

    The own cluster is k*_m of the paper, the cluster of the largest overlap at the start. With `by` "load" it is the
    cluster of which the expert gets most examples. With `shift` another cluster is used.
    """
    run = trained(lab, point, seed)
    dispatch, feat = run["dispatch"][0, -1], run["feat"][0, -1]
    laws = SETTINGS[point.get("setting", 3)]
    rng, worst = np.random.default_rng(seed), 0.0
    for m in np.flatnonzero(dispatch.sum(axis=0) > 0.01):
        k = (int(dispatch[:, m].argmax() if point.get("by") == "load" else profession(run)[m]) + shift) % 4
        other = (k + rng.integers(1, 4, 4000)) % 4
        alpha, gamma = rng.uniform(0.5, 2, 4000), rng.uniform(laws["gamma"][0], laws["gamma"][1], 4000)
        cubes = (feat[m] ** 3).sum(axis=0)
        margin = alpha**3 * cubes[k] + rng.choice([-1, 1], 4000) * gamma**3 * cubes[other]
        worst = max(worst, float((margin <= 0).mean()))
    return worst


def without_error(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return 1 if at most a share `wrong` of the training examples (default none) is wrong at the end, else 0."""
    return float(trained(lab, point, seed)["train_accuracy"][0, -1] >= 1 - point.get("wrong", 0.0))


def profession(run: Any) -> np.ndarray:
    """Return k*_m (M,): the cluster of the largest overlap of each expert at the start (Definition D.3)."""
    return run["feat"][0, 0].max(axis=1).argmax(axis=1)


def purity(lab: Any, point: Mapping[str, Any], seed: int, at: int = -1) -> float:
    """Return the share of the examples of covered clusters that are routed to experts of their group.

    A cluster is covered if it is k*_m of some expert. `by` "load" has the meaning of `own_error`.
    """
    run = trained(lab, point, seed)
    dispatch = run["dispatch"][0, at]
    if point.get("by") == "load":
        return float(dispatch.max(axis=0).sum())
    group = profession(run)
    covered = np.unique(group)
    return float(dispatch[group, np.arange(len(group))].sum() / dispatch[covered].sum())


def steps_needed(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the number of steps until the noiseless test accuracy passes 0.97, K = 2, three patches.

    It is infinite if the accuracy does not pass by t = 0.48. In 50 runs at five steps the latest time was t = 0.4.
    """
    eta = point["eta"]
    run = lab.simulate(
        method="compressed", step_size=eta, batch=1000, until=0.48, save_points=61, seed=seed, data_seed=seed, K=2, M=6,
        J=8, d=4, rho=36.0, sigma_0=0.02, n_test=1000,
    )  # fmt: skip
    passed = np.flatnonzero(run["accuracy"][0] > 0.97)
    return float(run.time[passed[0]] / eta) if passed.size else math.inf


def single(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the best test accuracy during training of one expert with 32 filters."""
    run = trained(lab, {**point, "M": 1, "J": 32, "until": 0.6, "saves": 11}, seed)
    return float(run["accuracy"][0].max())


def with_balance(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the test accuracy of the released protocol: linear experts with load balancing, or cubic ones without."""
    size = {**PAPER, **SETTINGS[point["setting"]], "activation": point["activation"], "variant": "released"}
    run = lab.simulate(
        method="explicit", step_size=1e-3, batch=2000, until=0.5, save_points=3, seed=seed, data_seed=seed,
        balance=1e-4 if point["activation"] == "linear" else 0.0, **size,
    )  # fmt: skip
    return float(run["accuracy_noisy"][0, -1])


def speeds(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest over the smallest strength of the experts when the largest passes 0.3, three patches."""
    size = {"K": 4, "M": 8, "J": 8, "d": 8, "sigma_0": 0.02, "rho": 0.0, "n_test": 2, "normalise": point["normalise"]}
    step, until, saved = (0.01, 0.5, 51) if point["normalise"] else (8.0, 2400.0, 31)
    run = lab.simulate(
        method="compressed", step_size=step, batch=1000, until=until, save_points=saved, seed=seed, data_seed=seed,
        **size,
    )  # fmt: skip
    s = run["feat"][0].max(axis=(2, 3))
    at = int((s.max(axis=1) > 0.3).argmax())
    return float(s[at].max() / s[at].min())


TABLE: Grid = grid(seeds=8)
"""Comparisons in a table of the paper are statements about its typical runs."""
OFTEN = 0.9
"""What the last of the sizes is held against; "with probability 1 - o(1)" is a trend over the sizes."""
SIZES: Grid = over("d", 16, 25, 40, 64, seeds=40)
LARGER: Grid = over("d", 16, 25, 40, 64, 100, seeds=60)
"""n = 40 d examples.  One run in twenty fails at d = 50 and 24 experts: five or twenty runs do not decide.  All four
clusters are some expert's k*_m with probability 0.996 there, with 8 experts with 0.6 (claim lem-D.4c)."""
SOME = {"quick": over("d", 16, 25, 40, 64, seeds=20), "full": LARGER}
"""Forms whose shares lie far from 0.9 need fewer runs; with 16 not even perfect runs would be enough to confirm."""
FEW = Variant(
    "M = 8",
    {"M": 8},
    "With 8 experts, fewer than the theorem requires, at most four of five runs have a test error below 1 %, "
    "because some clusters have no expert.",
    law=Probability(
        high=0.8,
        meaning="test error below 1 %",
        visible=0.05,
        because="half-way from the 0.6 of covered clusters to certainty",
    ),
    sweep={"quick": grid(seeds=60)},
    control=break_setting(M=24),
)
NAMED = Variant("M = 24", {"M": 24}, expected="inconclusive")
LOADED = Variant(
    "M = 24, by load",
    {"M": 24, "by": "load"},
    "99 % of the examples of covered clusters go to the "
    "experts of their group. Here experts are grouped "
    "by the examples that they get.",
)
SIDE = {"visible": math.inf, "because": "which side it is on"}
CLAIMS = (
    claim(
        "thm-4.2-train",
        "Algorithm 1 reaches zero training error with probability 1 - o(1) (n = 40 d, M = 16).",
        "Theorem 4.2",
        without_error,
        Tends(last=OFTEN, meaning="no training example wrong"),
        SIZES,
        break_setting(M=1),
        rungs=(7, 9),
        full=LARGER,
        variants=(
            Variant("setting 3", {"setting": 3, "M": 16}, expected="inconclusive", sweep=SOME),
            Variant("setting 4", {"setting": 4, "M": 16, **FINE}, expected="refuted", sweep=SOME),
            Variant(
                "M = 24, below 1 %",
                {"M": 24, "wrong": 0.01},
                "Algorithm 1 reaches a training error below 1 % with probability 1 - o(1), M = 24.",
                law=Tends(last=OFTEN, meaning="training error below 1 %"),
            ),
        ),
        control_variant="M = 24, below 1 %",
        erratum="improvement-5",
    ),
    claim(
        "thm-4.2-test",
        "The test error is o(1) with probability 1 - o(1): the share of runs with a test error below 1 % "
        "(without noise) grows with d.",
        "Theorem 4.2",
        happens(final("accuracy"), low=0.99),
        Tends(last=OFTEN, meaning="test error below 1 %"),
        SIZES,
        break_measure(happens(at_start("accuracy"), low=0.99)),
        rungs=(7, 9),
        full=LARGER,
        variants=(Variant("M = 24", {"M": 24}), FEW),
        control_variant="M = 24",
    ),
    claim(
        "thm-4.2-groups",
        "Every expert that gets examples classifies its own cluster with at most 1 % of errors. The share of "
        "such runs grows with d. In the proof the own cluster of an expert is that of its largest initial "
        "overlap.",
        "Theorem 4.2",
        happens(own_error, high=0.01),
        Tends(last=OFTEN, meaning="no expert worse than 1 %"),
        SIZES,
        break_measure(happens(lambda *a: own_error(*a, shift=1), high=0.01)),
        rungs=(7, 9),
        full=LARGER,
        # By load 37, 39, 38 and 39 of 40 runs: so high from the start that no rise is seen, and 40 runs at d = 16 do
        # not exclude a share below 0.8.
        variants=(NAMED, dataclasses.replace(LOADED, expected="inconclusive")),
        control_variant="M = 24, by load",
        erratum="improvement-5",
    ),
    claim(
        "thm-4.2-router",
        "99 % of the examples of covered clusters go to the experts of their group. The share of such runs grows "
        "with d. In the proof the group of a cluster has the experts whose largest initial overlap is with this "
        "cluster.",
        "Theorem 4.2",
        happens(purity, low=0.99),
        Tends(last=OFTEN, meaning="99 % of the examples at their group"),
        SIZES,
        break_measure(happens(lambda *a: purity(*a, at=0), low=0.99)),
        rungs=(7, 9),
        full=LARGER,
        variants=(NAMED, LOADED),
        control_variant="M = 24, by load",
        erratum="improvement-5",
    ),
    claim(
        "thm-4.2-T",
        "The number of steps is of order 1/eta.",
        "Theorem 4.2",
        steps_needed,
        Power(
            -1.0,
            over="eta",
            margin=0.1,
            reached=0.8,
            meaning="steps to 97 % accuracy",
            because="the next order of the step: eta/sigma_0 reaches 0.4",
            short="steps grow like 1/eta",
        ),
        over("eta", 0.001, 0.0017, 0.003, 0.005, 0.008, seeds=10),
        break_law(exponent=-0.7),
        rungs=(7, 8, 9),
        # The times of single runs spread by a third: a power with half a logarithm stays possible at quick effort.
        variants=(Variant("main", expected="inconclusive"),),
        seconds=20.0,
    ),
    claim(
        "moe-vs-single",
        "The accuracy of the mixture exceeds 7/8, the largest accuracy of a single expert.",
        "Section 6, Table 1",
        final("accuracy"),
        Typical(low=0.875, meaning="test accuracy", **SIDE),
        TABLE,
        break_setting(single=True),
        rungs=(7, 9),
        variants=(
            Variant("setting 3", {"setting": 3}),
            Variant("setting 4", {"setting": 4}),
            *(
                Variant(
                    f"single {name}",
                    {"single": True, "activation": name, "setting": 3},
                    f"The accuracy of a single {name} expert stays below 7/8.",
                    law=Typical(high=0.875, meaning="best test accuracy", **SIDE),
                    sweep={"quick": TABLE},
                    control=control,
                )
                # A linear mixture lies barely above 7/8; without feature noise a linear expert has no ceiling.
                for name, control in (
                    ("cubic", break_setting(single=False)),
                    ("linear", break_setting(gamma=(0.01, 0.1))),
                )
            ),
        ),
        control_variant="setting 3",
    ),
    claim(
        "lin-vs-nonlin",
        "Linear mixtures keep a high dispatch entropy. Cubic mixtures do not.",
        "Section 6, Table 1",
        final("entropy"),
        Typical(low=1.0, meaning="dispatch entropy"),
        grid({"activation": "linear", "setting": 1, **FINE}, seeds=8),
        break_setting(activation="cubic"),
        rungs=(7, 9),
        variants=(
            Variant("linear", expected="consistent"),
            Variant(
                "cubic",
                expected="consistent",
                law=Typical(high=0.3, meaning="dispatch entropy"),
                sweep={"quick": grid(seeds=20)},
                control=break_setting(activation="linear"),
            ),
            Variant(
                "accuracy",
                {"lag": True},
                "In the typical run linear mixtures are less accurate than cubic mixtures.",
                law=Typical(low=0.0, meaning="accuracy of cubic minus linear", **SIDE),
                control=break_setting(exchanged=True),
                sweep={"quick": grid({"activation": "linear", "setting": 1, **FINE}, seeds=15)},
            ),
        ),
    ),
    claim(
        "lb-not-key",
        "Load balancing does not raise the accuracy of linear mixtures to that of cubic mixtures.",
        "Section 6, Table 9",
        with_balance,
        Typical(high=0.97, meaning="accuracy of balanced linear mixtures"),
        grid({"setting": 1, "activation": "linear"}, seeds=8),
        # One cubic run in six ends at 0.97: the interval of eight runs, their range, does not exclude it.
        with_seeds(16, break_setting(activation="cubic")),
        rungs=(7, 9),
        full=grid({"setting": 1, "activation": "linear"}, {"setting": 3, "activation": "linear"}, seeds=8),
        seconds=11.0,
    ),
    claim(
        "ngd-key",
        "With normalised gradients the strengths of the experts stay similar. With plain gradient descent they "
        "become different.",
        "Section 4.2, Key technique 3",
        speeds,
        Bounded(high=2.0, meaning="largest over smallest strength"),
        grid({"normalise": True}, seeds=60),
        break_setting(normalise=False),
        rungs=(7, 9),
        variants=(
            Variant("normalised"),
            Variant(
                "plain",
                {"normalise": False},
                control=break_setting(normalise=True),
                expected="consistent",
                law=Bounded(low=2.0, meaning="largest over smallest strength"),
            ),
        ),
        seconds=22.0,
    ),
)
