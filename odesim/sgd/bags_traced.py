"""Training on bags of patches in JAX, all replicas in one program: for many seeds at once, and for GPUs."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.bags import BagModel
from derivations.contract import Initial
from odesim.sgd import normals
from odesim.sgd.bags import BagChains, beside, pushed
from odesim.sgd.replicas import keys, over_replicas


class BagReplicas(BagChains):
    """The same replicas as `BagChains`, advanced together by one traced program; measured by the same code."""

    def __init__(
        self, model: BagModel, initials: list[Initial], arrays: Mapping[str, np.ndarray] | None, *,
        compressed: bool, batch: int, step_size: float, seed: int, dtype: str = "float64",
    ) -> None:  # fmt: skip
        super().__init__(model, initials, arrays, compressed=compressed, batch=batch, step_size=step_size, seed=seed)
        import jax

        from odesim.sgd.bind import bind_jax

        self.dtype = dtype
        self.traced = bind_jax(model, ("respond", "slope", model.weigh, "draw"))
        self.keys = keys(seed, len(initials))
        self.run = jax.jit(self._advance)

    def _fixed(self) -> tuple[Any, ...]:
        """The training set on the device, or nothing where samples are fresh."""
        import jax.numpy as jnp

        if self.training is None or self.atoms is None:
            return ()
        return jnp.asarray(self.atoms), jnp.asarray(self.training.labels, self.dtype)

    def _draw(self, key: Any, fixed: tuple[Any, ...]) -> tuple[Any, Any]:
        """Patches (n, B) and labels (B,) of one step."""
        import jax
        import jax.numpy as jnp

        if not fixed:
            uniform = jax.random.uniform(key, (self.uniforms, self.batch), self.dtype)
            return self.traced["draw"](uniform, *(jnp.asarray(a, self.dtype) for a in self.law))
        atoms, labels = fixed
        if self.batch == labels.shape[0]:
            return atoms, labels
        index = jax.random.choice(key, labels.shape[0], (self.batch,), replace=False)
        return atoms[:, index], labels[index]

    def _counts(self, moving: Any, out: Any, atoms: Any, labels: Any, key: Any) -> Any:
        """A step on inner products."""
        import jax.numpy as jnp

        pre, route = moving
        gram = jnp.asarray(self.gram, self.dtype)
        counts = (atoms[None] == jnp.arange(len(self.gram))[:, None, None]).sum(1).astype(pre.dtype)
        response = self.traced["respond"](pre, beside(out, pre))[..., None]
        weigh = self.traced[self.model.weigh]
        experts, routers, _ = weigh(route[..., None], response, counts, labels, *self.numbers)
        product = functools.partial(jnp.matmul, precision="highest")
        slope = self.traced["slope"](pre)
        if out.ndim == 3:
            change = self.rates[0] * product(pushed(out, experts.mean(axis=-1)) * slope, gram)
        else:
            change = self.rates[0] * out[..., None] * product(experts.mean(axis=-1)[:, None] * slope, gram)
        return pre + change, route + self.rates[1] * product(routers.mean(axis=-1), gram)

    def _vectors(self, moving: Any, out: Any, atoms: Any, labels: Any, key: Any) -> Any:
        """A step on weight vectors, patch by patch."""
        import jax.numpy as jnp

        assert self.frame is not None
        hidden, routers = moving
        (k, each, d), (n, size) = hidden.shape, atoms.shape
        x = jnp.asarray(self.frame, self.dtype)[atoms]
        if self.ball:
            direction = normals.standard_normal(key, (n * size, d), x.dtype).reshape(x.shape)
            moved = x + self.ball * direction / jnp.linalg.norm(direction, axis=-1, keepdims=True)
            moved = moved / jnp.linalg.norm(moved, axis=-1, keepdims=True)
            x = jnp.where((atoms >= self.points)[..., None], moved, x)
        x = x.reshape(-1, d)
        product = functools.partial(jnp.matmul, precision="highest")
        fields = product(hidden.reshape(-1, d), x.T).reshape(k, each, n, size)
        route = product(routers, x.T).reshape(k, n, size)
        response = self.traced["respond"](fields, beside(out, fields))
        weigh = self.traced[self.model.weigh]
        experts, pull, _ = weigh(route, response, jnp.ones((n, size), x.dtype), labels, *self.numbers)
        change = pushed(out, experts) * self.traced["slope"](fields)
        moved = hidden + self.rates[0] / size * product(change.reshape(k * each, -1), x).reshape(hidden.shape)
        return moved, routers + self.rates[1] / size * product(pull.reshape(k, -1), x)

    def _advance(self, moving: Any, out: Any, keys: Any, fixed: Any, first: Any, steps: Any) -> Any:
        """`steps` steps of all replicas; `moving` = (pre or hidden, route or routers), replicas first."""
        import jax

        move = self._counts if self.frame is None else self._vectors

        def one(replica: Any) -> Any:
            start, weights, key = replica

            def step(k: Any, state: Any) -> Any:
                data_key, noise_key = jax.random.split(jax.random.fold_in(key, first + k))
                atoms, labels = self._draw(data_key, fixed)
                moved = move(state, weights, atoms, labels, noise_key)
                return tuple(new.astype(old.dtype) for new, old in zip(moved, state, strict=True))

            return jax.lax.fori_loop(0, steps, step, start)

        return over_replicas(one, (moving, out, keys))

    def advance(self, steps: int) -> bool:
        """Take steps in every replica; False where a weight stopped being finite."""
        import jax.numpy as jnp

        pairs = tuple(jnp.asarray(np.array(part), self.dtype) for part in zip(*self.moving, strict=True))
        moved = self.run(
            pairs, jnp.asarray(np.array(self.out), self.dtype), self.keys, self._fixed(), self.steps, steps
        )
        first, second = (np.asarray(part, float) for part in moved)
        self.moving = list(zip(first, second, strict=True))
        self.steps += steps
        return self.finite()
