"""Two ways to run replicas: numba chains in threads, or one traced program over all replicas."""

import concurrent.futures
import json
import os
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from derivations.contract import Initial, Model, ScalarModel
from odesim.machine import streams
from odesim.sgd import momentum
from odesim.sgd.compressed import Chain, compile_numba, factor, require_room, samples_of


@runtime_checkable
class Engine(Protocol):
    """Replicas that advance together."""

    def advance(self, steps: int) -> bool:
        """Take steps in every replica. Return False if a state is no longer finite."""
        ...

    def grams(self) -> np.ndarray:
        """Return the saved variables: packed Gram matrices (R, n, n) and scalars, or a model's own vector."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """Return everything that is needed to continue from here."""
        ...

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore a stored state."""
        ...


class NumbaChains:
    """Compressed replicas, each with its own generator, run in threads."""

    def __init__(
        self, model: Model, parameters: Any, grams: np.ndarray, d: int, batch: int, step_size: float, seed: int, *,
        threads: int | None = None, initials: Sequence[Initial] | None = None,
    ) -> None:  # fmt: skip
        pushed = isinstance(model, ScalarModel) and model.velocities is not None
        if pushed:
            momentum.require_room(d, samples_of(model, batch), *model.sizes(parameters))
        functions = compile_numba(model)
        self.threads = min(threads or os.cpu_count() or 1, len(grams))
        self.chains = [
            Chain.start(
                model,
                parameters,
                gram,
                d,
                batch,
                step_size,
                streams.generator(seed, "samples", k),
                functions=functions,
                initial=initials[k] if initials is not None else None,
            )
            for k, gram in enumerate(grams)
        ]
        if pushed:
            for chain, initial in zip(self.chains, initials or (), strict=True):
                assert chain.scalars is not None and isinstance(model, ScalarModel)
                given = chain.factor[None], chain.scalars[None]
                (chain.factor,), (chain.scalars,) = momentum.start(model, [initial], *given, compressed=True)

    def advance(self, steps: int) -> bool:
        """Take steps in every replica. Return False if a state is no longer finite.

        An interruption restores all replicas to the state before, so that a checkpoint has one step count for all of
        them.
        """
        before = self.state()
        try:
            if self.threads == 1:
                return all([chain.advance(steps) for chain in self.chains])
            with concurrent.futures.ThreadPoolExecutor(self.threads) as pool:
                return all(list(pool.map(lambda chain: chain.advance(steps), self.chains)))
        except BaseException:
            self.restore(before)
            raise

    def grams(self) -> np.ndarray:
        """Return the raw Gram matrices (R, n, n), packed with the scalars if there are any."""
        return np.array([chain.saved for chain in self.chains])

    def state(self) -> dict[str, np.ndarray]:
        """Return factors, scalars if there are any, generators and step count."""
        scalars = [chain.scalars for chain in self.chains if chain.scalars is not None]
        return {
            **({"scalars": np.array(scalars)} if scalars else {}),
            "factors": np.array([chain.factor for chain in self.chains]),
            "generators": np.array([json.dumps(chain.rng.bit_generator.state) for chain in self.chains]),
            "steps": np.array(self.chains[0].steps),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore a stored state."""
        for chain, factors, generator in zip(self.chains, arrays["factors"], arrays["generators"], strict=True):
            chain.factor = np.ascontiguousarray(factors)
            chain.rng.bit_generator.state = json.loads(str(generator))
            chain.steps = int(arrays["steps"])
        for chain, scalars in zip(self.chains, arrays.get("scalars", ()), strict=False):
            chain.scalars = np.array(scalars)


class TracedReplicas:
    """Replicas as one JAX program: explicit weights (R, n, d) or compressed factors (R, n, n)."""

    def __init__(
        self, model: Model, parameters: Any, grams: np.ndarray, d: int, batch: int, step_size: float, seed: int,
        *, rows: np.ndarray | None = None, dtype: str = "float64", initials: Sequence[Initial] | None = None,
    ) -> None:  # fmt: skip
        import jax
        import jax.numpy as jnp

        from odesim.sgd import traced

        trained, fixed = model.sizes(parameters)
        numbers = [
            model.bound(initials[k], gram) if initials is not None else model.numbers(parameters, gram)
            for k, gram in enumerate(grams)
        ]
        if rows is None:
            require_room(d, batch, trained, fixed)
            start = np.array([factor(gram, trained) for gram in grams])
            self.run = traced.compressed(model, traced.constants_of(numbers[0]), trained, fixed, d, batch)
        else:
            start = rows
            self.run = traced.explicit(model, traced.constants_of(numbers[0]), trained, d, batch, dtype)
        self.at = (jnp.asarray(start, dtype), 0)
        self.arrays = [jnp.asarray(np.array(a), dtype) for a in zip(*map(traced.arrays_of, numbers), strict=True)]
        self.keys = jax.vmap(lambda k: jax.random.fold_in(jax.random.key(seed), k))(jnp.arange(len(grams)))
        self.step_size = step_size

    def advance(self, steps: int) -> bool:
        """Take steps in every replica. Return False if a state is no longer finite."""
        import jax.numpy as jnp

        values, taken = self.at
        values = self.run(values, self.keys, self.arrays, taken, steps, self.step_size)
        good = bool(jnp.isfinite(values).all())
        self.at = (values, taken + steps)  # one assignment: an interruption never leaves only one of both
        return good

    def grams(self) -> np.ndarray:
        """Return the raw Gram matrices (R, n, n), summed in float64."""
        values = np.asarray(self.at[0], float)
        return values @ np.swapaxes(values, 1, 2)

    def state(self) -> dict[str, np.ndarray]:
        """Return weights or factors, and the step count; the keys follow from the seed."""
        return {"values": np.asarray(self.at[0]), "steps": np.array(self.at[1])}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore a stored state."""
        import jax.numpy as jnp

        self.at = (jnp.asarray(arrays["values"]), int(arrays["steps"]))
