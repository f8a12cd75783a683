"""Training on counted batches of pattern data. The cost of a step does not depend on the number of examples.

If `Counting` of a model reports no obstacle, a batch is a vector of counts. It is multinomial for fresh data, the
counts of the training set for full batches, and multivariate hypergeometric for a part of the training set. The routing
noise of every example is fresh in every step. The numbers of examples of one configuration at the experts are therefore
multinomial too.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.alphabet.patterns import Counting, Examples, PatternModel, Weights
from derivations.contract import Initial, load
from odesim.sgd.patterns import PatternChains, entropy, examples_because


def chains(
    model: PatternModel, initials: list[Initial], arrays: Mapping[str, np.ndarray] | None, *, compressed: bool,
    batch: int, **options: Any,
) -> PatternChains:  # fmt: skip
    """Return the engine in numba: with counted batches if possible, otherwise with the reason why not."""
    reason = examples_because(model, initials[0].parameters, batch) if compressed else ""
    if compressed and not reason and arrays is not None and "noise" in arrays:
        reason = "every training example has the routing noise of the initial file"
    kind = CountedChains if compressed and not reason else PatternChains
    engine = kind(model, initials, arrays, compressed=compressed, batch=batch, **options)
    if reason:
        engine.batches = f"examples: {reason}"
    return engine


def replicas(*arguments: Any, compressed: bool, **options: Any) -> PatternChains:
    """Return the engine in JAX, which draws examples."""
    from odesim.sgd.pattern_traced import PatternReplicas

    engine = PatternReplicas(*arguments, compressed=compressed, **options)
    if compressed:
        engine.batches = "examples: back end jax draws them (--backend numba counts them where laws are discrete)"
    return engine


def distinct(examples: Examples) -> tuple[Examples, np.ndarray]:
    """Return the distinct examples without dense patches, and the number of occurrences of each."""
    rows = np.concatenate([examples.atoms, examples.amplitudes, examples.labels[None], examples.cluster[None]])
    _, first, counts = np.unique(rows, axis=1, return_index=True, return_counts=True)
    return examples.take(first), counts


class CountedChains(PatternChains):
    """The replicas of `PatternChains` in the coordinates of the frame, with counts instead of examples."""

    def __init__(
        self, model: PatternModel, initials: list[Initial], arrays: Mapping[str, np.ndarray] | None, **options: Any
    ) -> None:
        super().__init__(model, initials, arrays, **options)
        self.counting: Counting = load(model.counting)
        self.chance: np.ndarray | None = None
        if self.training is None:
            listed, self.chance = self.counting.configurations(self.parameters)
            self.lists = [(listed, np.zeros(len(listed), int))]
        else:
            self.lists = [distinct(training) for training in self.sets if training is not None]
            self.sets, self.totals = [None], [None]  # the counts are the complete training set
        self.batches = f"counts of {len(self.lists[0][0])} configurations"

    @property
    def listed(self) -> Examples:
        """Configurations of the first replica's data, which all replicas share unless each has a training set."""
        return self.lists[0][0]

    def held(self, k: int) -> tuple[Examples, np.ndarray]:
        """Return the configurations of a replica's data, and the number of occurrences of each in its training set."""
        return self.lists[k if len(self.lists) > 1 else 0]

    def composition(self, k: int, rng: np.random.Generator) -> np.ndarray:
        """Return the number of examples of every configuration (C,) in a batch of a replica."""
        counts = self.held(k)[1]
        if self.chance is not None:
            return rng.multinomial(self.batch, self.chance)
        if self.batch == counts.sum():
            return counts
        return rng.multivariate_hypergeometric(counts, self.batch)

    def dispatched(self, logits: np.ndarray, counts: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
        """Return the counts (M, C) at every expert: drawn, or at the largest logit without noise (`rng` is None)."""
        if rng is not None:
            chances = np.maximum(self.counting.routing(logits), 0.0)
            return rng.multinomial(counts, (chances / chances.sum(axis=0)).T).T
        found = np.zeros(logits.shape, int)
        expert = self.functions.dispatch(logits, np.zeros(logits.shape), *self.numbers)
        found[expert, np.arange(counts.size)] = counts
        return found

    def logits(self, w: Weights, e: Examples) -> np.ndarray:
        """Return the routers' fields (M, C) of configurations."""
        table = w.routers @ w.frame.T
        return (table[:, e.atoms] * e.amplitudes).sum(axis=1)

    def counted(self, w: Weights, e: Examples, logits: np.ndarray, counts: np.ndarray) -> tuple[Any, ...]:
        """Return minus the mean gradients (filters, bias, routers) and the loss for counts (M, C)."""
        weights, configurations = (w.filters, w.bias, w.routers, w.frame), (e.atoms, e.amplitudes, e.labels)
        counts = np.ascontiguousarray(counts)
        return self.compiled.descend_counted(weights, configurations, logits, counts)

    def descent(self, k: int, step: int = 0) -> tuple[Any, ...]:
        """Return minus the mean gradients (filters, bias, routers) and the loss of a replica on a counted batch."""
        w, rng, listed = self.weights[k], self.rngs[k], self.held(k)[0]
        logits, counts = self.logits(w, listed), self.composition(k, rng)
        return self.counted(w, listed, logits, self.dispatched(logits, counts, rng if self.plan.noise else None))

    def on_training(self, replica: int, w: Weights) -> tuple[float, float, float] | None:
        """Return loss, accuracy and dispatch entropy on the fixed training set without routing noise; None for fresh
        data.
        """
        if self.chance is not None:
            return None
        e, counts = self.held(replica)
        silent = np.zeros((self.experts, len(e)))
        *_, expert, margin = self.pass_over(w, e, e.dense.sum(axis=1), silent)
        share = counts / counts.sum()
        loss = self.functions.losses(margin, *self.numbers)
        table = self.dispatch(e.cluster, expert, share)
        return float(share @ loss), float(share @ (margin > 0)), entropy(table)
