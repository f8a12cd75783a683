"""Training on tokens in JAX, all replicas in one program: for many seeds at once, and for GPUs."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial
from derivations.tokens import TokenModel
from odesim.sgd.bind import bind_jax
from odesim.sgd.replicas import keys, over_replicas
from odesim.sgd.tokens import ROLES, TokenChains


class TokenReplicas(TokenChains):
    """The same replicas as `TokenChains` on drawn batches, advanced by one traced program."""

    def __init__(
        self, model: TokenModel, initials: list[Initial], arrays: Mapping[str, np.ndarray] | None, *,
        compressed: bool, batch: int, step_size: float, seed: int, dtype: str = "float64",
    ) -> None:  # fmt: skip
        import jax
        import jax.numpy as jnp

        super().__init__(
            model, initials, arrays, compressed=compressed, batch=batch, step_size=step_size, seed=seed
        )  # fmt: skip
        self.dtype = dtype
        self.keys = keys(seed, len(initials))
        self.traced = bind_jax(model, ROLES)
        kinds = {"f": dtype, "i": "int64"}
        self.constants = tuple(
            jnp.asarray(value, kinds[value.dtype.kind]) if isinstance(value, np.ndarray) else value
            for value in self.numbers
        )
        self.run = jax.jit(self._advance)

    def _advance(self, state: Any, keys: Any, patterns: Any, first: Any, steps: Any) -> Any:
        """`steps` steps of all replicas; `state` = (routers, neurons), replicas first."""
        import jax
        import jax.numpy as jnp

        f, count = self.traced, self.model.uniforms(self.initials[0])
        router_rate, neuron_rate = f["rates"](self.step_size, *self.constants)

        def on_patterns(x: Any) -> Any:
            return x if self.compressed else jnp.matmul(x, patterns.T, precision="highest")

        def back(x: Any) -> Any:
            return x if self.compressed else jnp.matmul(x, patterns, precision="highest")

        def step(i: Any, key: Any, state: Any) -> Any:
            routers, neurons = state
            uniform = jax.random.uniform(jax.random.fold_in(key, i), (count, self.batch), self.dtype)
            tokens, copies, labels = f["draw"](uniform, *self.constants)
            h, u = on_patterns(routers), on_patterns(neurons)
            value, slope = f["activate"](u)
            sigma = value.sum(axis=1)
            r, g, _ = f["coefficients"](h[:, tokens], sigma[:, tokens], copies, labels, *self.constants)
            zero = jnp.zeros_like(h)
            on_routers = zero.at[:, tokens].add(r.astype(h.dtype)) / self.batch
            on_neurons = (zero.at[:, tokens].add(g.astype(h.dtype)) / self.batch)[:, None] * slope
            moved = routers + router_rate * back(on_routers), neurons + neuron_rate * back(on_neurons)
            return tuple(new.astype(old.dtype) for new, old in zip(moved, state, strict=True))

        def one(replica: Any) -> Any:
            state, key = replica
            return jax.lax.fori_loop(0, steps, lambda i, inner: step(first + i, key, inner), state)

        return over_replicas(one, (state, keys))

    def advance(self, steps: int) -> bool:
        """Take steps in every replica; False where a weight stopped being finite."""
        import jax.numpy as jnp

        parts = [np.array(part) for part in zip(*self.moving, strict=True)]
        patterns = jnp.asarray(self.patterns, self.dtype)
        moved = self.run(
            tuple(jnp.asarray(part, self.dtype) for part in parts), self.keys, patterns, self.steps, steps
        )  # fmt: skip
        routers, neurons = (np.asarray(part, float) for part in moved)
        self.moving = list(zip(routers, neurons, strict=True))
        self.steps += steps
        return self.finite()
