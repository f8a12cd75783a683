"""The stages without a clock: scores of the experts, pruning, and evaluation of the remaining experts."""

import dataclasses
from typing import Any

import numpy as np

from derivations.contract import Initial, MapResult
from derivations.pruning import criteria
from derivations.pruning.parameters import CRITERIA

PER_EXPERT = ("a", "router_rest", "neuron_rest", "h_start", "u_start")


def with_constants(initial: Initial, **more: np.ndarray) -> Initial:
    """The same condition with further constants."""
    return dataclasses.replace(initial, constants={**initial.constants, **more})


def score(initial: Initial, rng: np.random.Generator) -> MapResult:
    """Score all experts by every criterion, and enumerate the errors after pruning to every size by each of them."""
    found = criteria.scores(initial, rng)
    curves = [
        criteria.error_curve(initial, None if name == "random" else found[name], rng) for name in CRITERIA
    ]  # fmt: skip
    after = with_constants(initial, **{f"score_{name}": values for name, values in found.items()})
    extras = {
        "criterion": (("criterion",), np.array(CRITERIA), "criteria by which experts are scored"),
        "pruned_error": (
            ("criterion", "kept"), np.array(curves),
            "test error with the best 1, 2, .. experts of each sign (random: mean over choices)",
        ),
    }  # fmt: skip
    summary: dict[str, Any] = {name: [float(v) for v in values] for name, values in found.items()}
    return MapResult(after, extras, summary)


def prune(initial: Initial, rng: np.random.Generator) -> MapResult:
    """Keep the best experts of each sign by the requested criterion. Source: Chowdhury et al. 2024, Algorithm 1."""
    p, c = initial.parameters, initial.constants
    known = c.get(f"score_{p.criterion}")
    ranks = np.asarray(known) if known is not None else criteria.scores(initial, rng)[p.criterion]
    kept = criteria.keep(np.asarray(c["a"]), ranks, p.rho)
    number = np.asarray(c.get("expert_number", np.arange(p.k)))
    before, after_error = criteria.error(initial, np.arange(p.k)), criteria.error(initial, kept)
    pruned = restrict(initial, kept, number)
    removed = np.setdiff1d(np.arange(p.k), kept)
    extras = {
        "kept": (("kept_expert",), number[kept], "experts kept, by their number before pruning"),
        "removed": (("removed_expert",), number[removed], "experts removed"),
    }
    summary = {
        "criterion": p.criterion,
        "experts_before": int(p.k),
        "kept": [int(s) for s in number[kept]],
        "kept_by_sign": {f"{int(sign):+d}": int((np.asarray(c["a"])[kept] == sign).sum()) for sign in (1.0, -1.0)},
        "scores": [float(v) for v in ranks],
        "f_error_before": before[0],
        "f_error_after": after_error[0],
        "margin_after": after_error[1],
        "broken_assumptions": criteria.assumptions(initial_of(initial)),
    }
    return MapResult(pruned, extras, summary, {"expert": kept})


def initial_of(initial: Initial) -> Initial:
    """The condition at the start of fine-tuning, for the present experts."""
    c = initial.constants
    return dataclasses.replace(initial, state={**initial.state, "h": c["h_start"], "u": c["u_start"]})


def restrict(initial: Initial, kept: np.ndarray, number: np.ndarray) -> Initial:
    """The condition of only some experts."""
    c = initial.constants
    constants = {
        name: values[kept] if name in PER_EXPERT or name.startswith("score_") else values for name, values in c.items()
    }
    constants["expert_number"] = number[kept]
    state = {name: values[kept] for name, values in initial.state.items()}
    return Initial(dataclasses.replace(initial.parameters, k=kept.size), state, constants, initial.scale)


def evaluate(initial: Initial, rng: np.random.Generator) -> MapResult:
    """The test error: over all inputs if they are a short list, else on a sample, with a Clopper-Pearson bound."""
    p = initial.parameters
    found, margin = criteria.error(initial, np.arange(p.k))
    summary: dict[str, Any] = {"experts": int(p.k), "f_error": found, "margin": margin}
    if p.data in ("single", "empirical") or isinstance(p.n_test, str):
        summary["inputs"] = "enumerated"
    else:
        from scipy.stats import beta

        wrong = round(found * p.n_test)
        upper = 1.0 if wrong == p.n_test else float(beta.ppf(0.95, wrong + 1, p.n_test - wrong))
        summary |= {"inputs": f"{p.n_test} drawn", "f_error_upper_95": upper}
    first, second = criteria.proficiency(initial)
    own = np.where(np.asarray(initial.constants["a"]) > 0, first, second)
    summary["own_proficiency"] = [float(v) for v in own]
    return MapResult(initial, {}, summary)
