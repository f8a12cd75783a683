"""Training on vectors of a frame in JAX, with all replicas in one program, for many seeds and for GPUs."""

import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from derivations.alphabet.frame import FrameModel, Samples
from derivations.contract import Initial
from odesim.code.traced import wide
from odesim.machine.device import default
from odesim.sgd import normals
from odesim.sgd.bind import bind_jax
from odesim.sgd.frame import FrameChains
from odesim.sgd.frame_step import Library


def jax_library(model: FrameModel) -> Library:
    """Return the model's functions with `np` bound to JAX, and with sums by scattering."""
    import jax.numpy as jnp

    def counted(samples: Samples, width: int) -> Samples:
        here = samples.tokens == jnp.arange(width)[:, None, None]
        return Samples(None, jnp.where(here, samples.copies, 0.0).sum(1), samples.labels, samples.weight)

    def scattered(pull: Any, tokens: Any, width: int) -> Any:
        return jnp.zeros((*pull.shape[:-2], width), pull.dtype).at[..., tokens].add(pull)

    functions = types.SimpleNamespace(**bind_jax(model, ("draw", "activate", model.weigh)))
    return Library(jnp, functions, counted, scattered)


def keys(seed: int, count: int) -> Any:
    """Return a key of JAX for every replica."""
    import jax
    import jax.numpy as jnp

    return jax.vmap(lambda k: jax.random.fold_in(jax.random.key(seed), k))(jnp.arange(count))


def over_replicas(one: Callable[[Any], Any], replicas: Any) -> Any:
    """Apply `one` to every replica: one after the other on a CPU, where a vmapped step is slower, otherwise
    together.
    """
    import jax

    if default().platform == "cpu":
        return jax.lax.map(one, replicas)
    return jax.vmap(one)(replicas)


class FrameReplicas(FrameChains):
    """The same replicas as `FrameChains` on drawn batches, advanced together by one traced program."""

    compiles = False

    def __init__(
        self, model: FrameModel, initials: Sequence[Initial], arrays: Mapping[str, np.ndarray] | None, *,
        compressed: bool, batch: int, step_size: float, seed: int, dtype: str = "float64",
    ) -> None:  # fmt: skip
        super().__init__(model, initials, arrays, compressed=compressed, batch=batch, step_size=step_size, seed=seed)

        self.dtype, self.keys, self.library = dtype, keys(seed, len(initials)), jax_library(model)
        self.run = wide(self._advance)

    def on_device(self, value: Any) -> Any:
        """Return an array of the simulation's precision; numbers that are not arrays are unchanged."""
        import jax.numpy as jnp

        if not isinstance(value, np.ndarray):
            return value
        return jnp.asarray(value, self.dtype if value.dtype.kind == "f" else "int64")

    def _draw(self, key: Any, training: tuple[Any, ...]) -> Samples:
        """Return the samples of one step."""
        import jax

        if not training:
            uniform = jax.random.uniform(key, (self.source.uniforms, self.batch), self.dtype)
            law = (self.on_device(value) for value in self.source.law)
            return Samples(*self.library.functions.draw(uniform, *law))
        whole = Samples(*training)
        if self.batch == len(whole):
            return whole
        return whole.take(jax.random.choice(key, len(whole), (self.batch,), replace=False))

    def _advance(self, moving: Any, out: Any, keys: Any, training: Any, first: Any, steps: Any) -> Any:
        """Take `steps` steps of all replicas; `moving` = (neurons, routers) and `out`, with replicas as the first
        axis.
        """
        import jax

        fixed = {name: self.on_device(getattr(self.move, name)) for name in ("frame", "gram")}
        numbers = tuple(self.on_device(value) for value in self.move.numbers)
        move = dataclasses.replace(self.move, library=self.library, numbers=numbers, **fixed)

        def step(key: Any, weights: Any, state: Any) -> Any:
            if self.model.ball is None:
                return move.on_frame(state, weights, self._draw(key, training))
            data_key, noise_key = jax.random.split(key)
            batch = self._draw(data_key, training)
            if not move.by_patch:
                return move.on_frame(state, weights, batch)
            (places, size), d = batch.copies.shape, move.frame.shape[1]
            normal = normals.standard_normal(noise_key, (places * size, d), self.dtype) if move.ball[0] else None
            directions = None if normal is None else normal.reshape(places, size, d)
            return move.on_patches(state, weights, batch, directions)

        def one(replica: Any) -> Any:
            start, weights, key = replica

            def next_step(k: Any, state: Any) -> Any:
                moved = step(jax.random.fold_in(key, first + k), weights, state)
                return tuple(new.astype(old.dtype) for new, old in zip(moved, state, strict=True))

            return jax.lax.fori_loop(0, steps, next_step, start)

        with jax.default_matmul_precision("highest"):
            return over_replicas(one, (moving, out, keys))

    def advance(self, steps: int) -> bool:
        """Take steps in every replica. Return False if a weight is no longer finite."""
        pairs = tuple(self.on_device(np.array(part)) for part in zip(*self.moving, strict=True))
        parts = () if self.training is None else (self.training.tokens, self.training.copies, self.training.labels)
        training = tuple(self.on_device(part) for part in parts)
        moved = self.run(pairs, self.on_device(np.array(self.out)), self.keys, training, self.steps, steps)
        first, second = (np.asarray(part, float) for part in moved)
        self.moving = list(zip(first, second, strict=True))
        self.steps += steps
        return self.finite()
