"""Claims on the noise of finite batches, and on the true hinge loss."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import brentq

from derivations.broken import break_measure, break_number, break_setting, grid, over
from derivations.claim import Variant
from derivations.laws import Equals, Power, Vanishes
from derivations.pruning import initial
from derivations.pruning.claims.tools import claim, once_run
from derivations.pruning.parameters import Parameters


def neutral_drift(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest population slope of an expert that selects no task token.

    With `selects` the expert selects one (control).
    """
    rng = np.random.default_rng([seed, 51])
    p = Parameters(
        d=14, n=8, k=1, m=4, l=3, data=point["data"], copies=2 if point["data"] == "multi_copy" else 1, eta_r=1.0,
        eta_e=1.0, n_test=2,
    )  # fmt: skip
    h, u = rng.standard_normal((1, 14)), 0.3 * rng.standard_normal((1, 4, 14))
    h[0, :2] = h[0, 2:].min() - 1.0
    if p.data in ("iid", "distinct"):
        h[0, 2:] += 1.0
        h[0, 2:5] -= 60.0  # never selected, and below them the task tokens: seven tokens cannot all be of these
        h[0, :2] = h[0, 2:].min() - 60.0
    if point.get("selects"):
        h[0, 0] = h[0, 2:].max() + 0.1
    start = initial.from_alignments(p, h, u, np.array([1.0]))
    found = lab.functions(start, "recursion").flow(start.state)
    return float(max(np.abs(found["h"]).max(), np.abs(found["u"]).max()))


def neutral_noise(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the mean of |w(T) - w(0)|^2 over neutral experts and runs, over its law.

    The law is eta_r^2 (T/B) E[sum mass^2 (sigma - sbar)^2]. Its mean is taken over inputs at the start; routers and
    neurons are slow enough to stay there. With `of`, the result is not divided.
    """
    eta_r, batch, steps = float(point["eta_r"]), int(point["B"]), int(point["T"])
    rng = np.random.default_rng([seed, 52])
    p = Parameters(
        d=60, n=30, k=4, m=10, l=4, data="iid", init="random", eta_r=eta_r, eta_e=1e-7, n_test=4000, keep_u=False
    )  # fmt: skip
    h, u = 0.1 * rng.standard_normal((4, 60)), 0.3 * rng.standard_normal((4, 10, 60))
    h[:, :2] = -60.0
    start = initial.from_alignments(p, h, u, np.array([1.0, 1.0, -1.0, -1.0]))
    arrays = {"w": h, "W": u, "a": start.constants["a"]}
    run = lab.simulate(
        method="compressed", step_size=1e-7, batch=batch, until=steps, save_points=2, seed=seed,
        seeds=12 if point.get("of") else 24, initial=arrays, n=30, l=4, data="iid", eta_r=eta_r, n_test=2, keep_u=False,
    )  # fmt: skip
    if point.get("of"):
        return float((run["dw"][:, -1] ** 2).mean())
    from derivations.pruning.inputs import table

    rows, _, _ = table(start)
    sigma = np.maximum(u, 0).sum(axis=1)
    law = []
    for s in range(4):
        order = np.argsort(-h[s][rows], axis=1, kind="stable")[:, :4]
        kept = np.take_along_axis(rows, order, axis=1)
        gate = np.exp(h[s][kept])
        gate /= gate.sum(axis=1, keepdims=True)
        push = gate * (sigma[s][kept] - (gate * sigma[s][kept]).sum(axis=1, keepdims=True))
        same = kept[:, :, None] == kept[:, None, :]
        law.append(float((push[:, :, None] * push[:, None, :] * same).sum(axis=(1, 2)).mean()))
    found = (run["dw"][:, -1] ** 2).mean(axis=0) / (eta_r**2 * steps / batch * np.array(law))
    return float(found.mean())


def batch_error(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the relative error of Delta of an important expert against the population, for one batch size.

    `longer` multiplies the length of fine-tuning in the population (control). With `of` "spread", return the standard
    deviation of Delta over the runs, over its mean.
    """
    given = {"d": int(point.get("d", 100)), "k": 2, "important": 1, "missigned": 0, "weak": 0, "K": 6.0}
    run = lab.simulate(
        method="compressed", step_size=2.0, batch=int(point["B"]), seeds=12, seed=seed, save_points=2, **given
    )  # fmt: skip
    delta = run["Delta"][:, -1]
    if point.get("of") == "spread":
        return float((delta.std(axis=0, ddof=1) / delta.mean(axis=0)).mean())
    given["K"] = 6.0 * point.get("longer", 1.0)
    exact = lab.integrate(seed=seed, tier="recursion", eta_e=2.0, save_points=2, **given)
    return float(np.sqrt(((delta / exact["Delta"][-1] - 1) ** 2).mean()))


def stall(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the final gap under the hinge loss over the solution of the implicit equation.

    With `plain`, return the gap itself, for the law of small gaps.
    """
    l, m, N = 5, 10, 58
    eta_e = 1e-3
    ratio = float(point["ratio"]) if "ratio" in point else 1 / float(point["inverse"])
    eta_r = ratio * eta_e
    p = Parameters(d=N + 2, k=2, m=m, l=l, eta_r=eta_r, eta_e=eta_e, loss=point.get("loss", "hinge"), n_test=2)
    h = np.zeros((2, N + 2))
    h[0, 1], h[1, 0] = -60.0, -60.0
    u = np.full((2, m, N + 2), -1.0)
    u[0, :, 0], u[1, :, 1] = 0.0, 0.0
    start = initial.from_alignments(p, h, u, np.array([1.0, -1.0]))
    run = once_run(lab, start, 30000.0, "recursion", loss=p.loss)
    x = float(run["h"][-1, 0, 0] - run["h"][-1, 0, 2])
    if point.get("plain"):
        return x
    kappa = 1 + 1 / N

    def equation(gap: float) -> float:
        right = kappa * ratio * point.get("kappa", 1.0) * (1 + (l - 1) * np.exp(-gap)) ** 2 / (2 * m)
        return float(gap + np.expm1(gap) / (l - 1) - right)

    root: Any = brentq(equation, 1e-12, 20.0)
    return x / float(root)


CLAIMS = (
    claim(
        "neutral-zero",
        "An expert that selects no task token has no drift at all, for every distribution of the tokens.",
        "Lemma 4.2 (our sharpening)",
        neutral_drift,
        Vanishes(1e-14, meaning="drift"),
        grid(*({"data": data} for data in ("single", "multi_copy", "iid", "distinct")), seeds=3),
        break_measure(lambda lab, p, s: neutral_drift(lab, {**p, "selects": True}, s)),
        rungs=(1, 9),
    ),
    claim(
        "neutral-noise",
        "A neutral router diffuses: E|dw|^2 = eta_r^2 (T/B) E[sum mass^2 (sigma - sbar)^2].",
        "section 4.1 (our law)",
        neutral_noise,
        Equals(1.0, relative=0.15, meaning="variance over the law", because="the specification's figure"),
        # The scatter of |dw|^2 is one of runs and dimensions: longer runs do not lessen it.
        grid({"eta_r": 1e-3, "B": 8, "T": 40}, seeds=18),
        break_number(),
        rungs=(2, 7, 9),
        variants=(
            Variant("prefactor"),
            Variant(
                "in-T",
                {"of": "variance", "eta_r": 1e-3, "B": 8},
                "E|dw|^2 grows like T.",
                law=Power(1.0, over="T", margin=0.1, meaning="E|dw|^2"),
                sweep={"quick": over("T", 1, 3, 10, 32, 100, seeds=10)},
            ),
            Variant(
                "in-B",
                {"of": "variance", "eta_r": 1e-3, "T": 25},
                "E|dw|^2 falls like 1/B.",
                law=Power(-1.0, over="B", margin=0.1, meaning="E|dw|^2"),
                sweep={"quick": over("B", 1, 3, 10, 30, 100, seeds=10)},
            ),
            Variant(
                "in-eta_r",
                {"of": "variance", "T": 25, "B": 8},
                "E|dw|^2 grows like eta_r^2.",
                law=Power(2.0, over="eta_r", margin=0.1, meaning="E|dw|^2"),
                sweep={"quick": over("eta_r", 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, seeds=6)},
            ),
        ),
        control_variant="prefactor",
        seconds=30.0,
    ),
    claim(
        "B-needed",
        "A batch of l^2 d^2, as Theorem 4.3 requires, gives the Delta of the population within 5 %.",
        "Theorem 4.3 (batch size)",
        batch_error,
        Equals(0.0, absolute=0.05, meaning="relative error of Delta"),
        over("B", 250_000, seeds=6),
        break_number(),
        rungs=(7, 8, 9),
        variants=(
            Variant("printed", control=break_setting(longer=1.5)),
            Variant(
                "sufficient-one",
                {},
                "In the typical run a batch of one also gives this Delta, so the condition is far from necessary.",
                law=Equals(0.0, absolute=0.05, meaning="relative error of Delta"),
                sweep={"quick": over("B", 1, seeds=14)},
                control=break_setting(longer=1.5),
            ),
            Variant(
                "in-B",
                {"of": "spread", "d": 50},
                "The spread of Delta over runs falls like B^(-1/2).",
                law=Power(-0.5, over="B", margin=0.05, meaning="spread of Delta"),
                sweep={"quick": over("B", 1, 8, 64, 512, 4096, seeds=10)},
            ),
        ),
        control_variant="in-B",
        erratum="improvement-1",
        seconds=130.0,
    ),
    claim(
        "hinge-stall",
        "With the gradient of the hinge loss the gap stops at x + (e^x - 1)/(l - 1) = (1 + 1/N)(eta_r/eta_e)(1 + "
        "(l - 1) e^-x)^2/(2 m_+).",
        "section 4.1 (our law)",
        stall,
        Equals(1.0, relative=0.005, error=1e-4, meaning="gap over the law"),
        over("ratio", 1e-3, 1e-2, 1e-1, 1.0),
        # 1 + 1/N with N = 58 forgotten
        break_setting(kappa=58 / 59),
        rungs=(4, 8, 9),
        variants=(
            Variant("equation"),
            Variant(
                "small-gaps",
                {"plain": True},
                "Small gaps are proportional to eta_r/eta_e.",
                law=Power(
                    -1.0,
                    over="inverse",
                    margin=0.02,
                    error=1e-4,
                    correction=1.0,
                    meaning="gap",
                    because="the next order of the equation is linear in the gap",
                ),
                sweep={"quick": over("inverse", 10, 30, 100, 300, 1000)},
                control=break_number(),
            ),
        ),
        control_variant="equation",
        erratum="hinge",
    ),
)
