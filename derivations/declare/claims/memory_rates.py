"""Claim that memories change at their declared rates, which depend on the squared gradients of samples.

    online   g2 = sum_a E[c_a^2]/B          flow   g2 = sum_a |E[c_a x]|^2 = sum_a (D G^+ D^T)_aa

c_a x is the gradient of the loss of a sample in vector a, by automatic differentiation, and D = E[c_a z].
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import once
from derivations.claim import Claim
from derivations.contract import Initial, System
from derivations.declare import episodes, memory, schedules, spectra
from derivations.declare.claims import sample_gradient
from derivations.declare.claims.generated import moments
from derivations.declare.claims.rates import Rates, compared, rates, scaled
from derivations.declare.claims.states import generated_claim, state
from derivations.declare.grammar import number
from derivations.declare.parameter_class import rows
from derivations.declare.schedules import TIME
from derivations.declare.tiers import settled
from derivations.laws import Agrees, All
from derivations.laws.agreement import Score

MARGIN = 0.02
"""Margin of the second-order term, whose diagonal is the squared gradients online."""


def claims(system: System) -> tuple[Claim, ...]:
    """Return the claim of a model with memories, in a flow or an online limit; empty for any other."""
    declared = system.parameters().declaration
    if not declared.memories or declared.limit == "batch":  # the drift of giant steps includes their memories
        return ()
    text = "Memories change at their rates, where squared gradients come from automatic differentiation"
    law = All({one.name: Agrees(MARGIN, because="far below any wrong factor") for one in declared.memories})
    return (generated_claim(system, "memories", text, motion, law, once({}, seeds=2), 2 * MARGIN, (2, 6)),)


def motion(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> dict[str, Score]:
    """Compare the rate of every memory with its expression at independent samples."""
    kind = lab.system.parameters
    initial = state(kind, seed)
    found, errors, freedom = rates(lab, initial, settled(initial.parameters))
    made = of_samples(moments(kind, seed), initial)
    expected = {name: np.atleast_1d(found[name]) for name in made}
    return compared(made, scaled(expected, 1 + twist), {name: np.atleast_1d(errors[name]) for name in made}, freedom)


def of_samples(made: sample_gradient.Moments, initial: Initial) -> Rates:
    """Return the rates (batches, 1) of all memories by the means over every batch of samples."""
    p, at = schedules.now(initial), rows(initial.parameters)
    whole, declared = {**initial.constants, **initial.state}, at.declaration
    each = _squares(made, initial)
    found: dict[str, list[float]] = {one.name: [] for one in declared.memories}
    known = {**schedules.shared(p), TIME: float(initial.state.get(TIME, 0.0))}
    for squares in each:
        sums = {
            name: float(sum(squares[at.of(*vector)].sum() for vector in memory.vectors_of(declared, name)))
            for name in memory.of_squares(declared)
        }
        for one in declared.memories:
            seen = {name: schedules.entry_of(whole, name) for name in one.seen if name not in sums}
            found[one.name].append(number(one.rate, {**known, **seen, **sums}))
    return {name: np.array(values)[:, None] for name, values in found.items()}


def _squares(made: sample_gradient.Moments, initial: Initial) -> np.ndarray:
    """The squared gradient (batches, S) of every vector, |g_a|^2, divided by d in an online limit."""
    p, at = schedules.now(initial), rows(initial.parameters)
    if p.declaration.limit == "online":
        found, blocks = made.second, spectra.blocks(p)
        if blocks is not None and at.stack:
            found = (blocks.share[:, None, None] * found).sum(1)
        return np.diagonal(found, axis1=-2, axis2=-1) / (episodes.samples(p) * p.batch)
    gram = np.linalg.pinv(at.gram(initial.state | initial.constants), hermitian=True)
    parts = made.drift @ gram * made.drift
    return parts.sum(-1).sum(1) if at.stack else parts.sum(-1)
