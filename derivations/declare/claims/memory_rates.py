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
    law = All(
        {
            memory_variable.name: Agrees(MARGIN, because="far below any wrong factor")
            for memory_variable in declared.memories
        }
    )
    return (generated_claim(system, "memories", text, motion, law, once({}, seeds=2), 2 * MARGIN, (2, 6)),)


def motion(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> dict[str, Score]:
    """Compare the rate of every memory with its expression at independent samples."""
    kind = lab.system.parameters
    initial = state(kind, seed)
    flow_rates, errors, freedom = rates(lab, initial, settled(initial.parameters))
    estimates = of_samples(moments(kind, seed), initial)
    expected = {name: np.atleast_1d(flow_rates[name]) for name in estimates}
    return compared(
        estimates, scaled(expected, 1 + twist), {name: np.atleast_1d(errors[name]) for name in estimates}, freedom
    )


def of_samples(estimates: sample_gradient.Moments, initial: Initial) -> Rates:
    """Return the rates (batches, 1) of all memories by the means over every batch of samples."""
    p, layout = schedules.now(initial), rows(initial.parameters)
    entries, declared = {**initial.constants, **initial.state}, layout.declaration
    squares_by_batch = _squares(estimates, initial)
    memory_rates: dict[str, list[float]] = {memory_variable.name: [] for memory_variable in declared.memories}
    namespace = {**schedules.shared(p), TIME: float(initial.state.get(TIME, 0.0))}
    for squares in squares_by_batch:
        sums = {
            name: float(sum(squares[layout.of(*vector)].sum() for vector in memory.vectors_of(declared, name)))
            for name in memory.of_squares(declared)
        }
        for memory_variable in declared.memories:
            inputs = {name: schedules.entry_of(entries, name) for name in memory_variable.seen if name not in sums}
            memory_rates[memory_variable.name].append(number(memory_variable.rate, {**namespace, **inputs, **sums}))
    return {name: np.array(values)[:, None] for name, values in memory_rates.items()}


def _squares(estimates: sample_gradient.Moments, initial: Initial) -> np.ndarray:
    """The squared gradient (batches, S) of every vector, |g_a|^2, divided by d in an online limit."""
    p, layout = schedules.now(initial), rows(initial.parameters)
    if p.declaration.limit == "online":
        second_moments, blocks = estimates.second, spectra.blocks(p)
        if blocks is not None and layout.stack:
            second_moments = (blocks.share[:, None, None] * second_moments).sum(1)
        return np.diagonal(second_moments, axis1=-2, axis2=-1) / (episodes.samples(p) * p.batch)
    gram = np.linalg.pinv(layout.gram(initial.state | initial.constants), hermitian=True)
    parts = estimates.drift @ gram * estimates.drift
    return parts.sum(-1).sum(1) if layout.stack else parts.sum(-1)
