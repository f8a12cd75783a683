"""Training on pattern data in JAX, with all replicas in one program, for many seeds and for GPUs."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.alphabet.patterns import PatternModel, Weights
from derivations.contract import Initial
from odesim.code.traced import wide
from odesim.machine.device import default
from odesim.sgd import normals
from odesim.sgd.bind import bind_jax
from odesim.sgd.patterns import PatternChains, frame_width

ROLES = ("dispatch", "coefficients", "rates", "losses", "halt", "draw")


def descend(functions: Mapping[str, Any], numbers: tuple[Any, ...], w: Any, batch: Any, noise: Any) -> tuple[Any, ...]:
    """Return minus the mean gradients (filters, bias, routers) and the mean loss; `batch` = (atoms, amplitudes, dense,
    y).

    One product multiplies all filters with all dense patches, and every example selects its expert. Signals are read
    from the filters' overlaps. Gradients are summed by products with indicators, which are fast on a GPU.
    """
    import jax
    import jax.numpy as jnp

    filters, bias, routers, frame = w
    atoms, amplitudes, dense, labels = batch
    (m, j, d), count, patches = filters.shape, labels.shape[0], dense.shape[1]
    product = functools.partial(jnp.einsum, precision="highest")
    total = dense.sum(axis=1)
    logits = product("md,bd->mb", routers, total)
    router_table = product("md,fd->mf", routers, frame)
    for s in range(atoms.shape[0]):
        logits = logits + amplitudes[s] * router_table[:, atoms[s]]
    expert = functions["dispatch"](logits, noise, *numbers)
    table = product("mjd,fd->mfj", filters, frame)
    own_bias = bias[expert].T
    signals = [amplitudes[s] * table[expert, atoms[s]].T + own_bias for s in range(atoms.shape[0])]
    everything = product("mjd,bpd->mjpb", filters, dense)
    chosen = jnp.take_along_axis(everything, expert[None, None, None, :], axis=0)[0]
    fields = [*signals, *(chosen[:, p] + own_bias for p in range(patches))]
    mine = jax.nn.one_hot(expert, m, dtype=filters.dtype)
    change, router_change, margin = functions["coefficients"](
        expert, jnp.stack(fields, axis=1), logits, noise, labels, mine.mean(axis=0), *numbers
    )
    g = product("jpb,bm->mj", change, mine)
    G = product("jpb,bm,bpd->mjd", change[:, atoms.shape[0] :], mine, dense) if patches else jnp.zeros((m, j, d))
    R = product("mb,bd->md", router_change, total)
    for s in range(atoms.shape[0]):
        where = jax.nn.one_hot(atoms[s], frame.shape[0], dtype=filters.dtype) * amplitudes[s][:, None]
        on_atoms = product("jb,bm,bf->mjf", change[:, s], mine, where)
        G = G + product("mjf,fd->mjd", on_atoms, frame)
        R = R + product("mb,bf,fd->md", router_change, where, frame)
    return G / count, g / count, R / count, functions["losses"](margin, *numbers).mean()


class PatternReplicas(PatternChains):
    """The same replicas as `PatternChains`, advanced together by one traced program; measured by the same code."""

    def __init__(
        self, model: PatternModel, initials: list[Initial], arrays: Mapping[str, np.ndarray] | None, *,
        compressed: bool, batch: int, step_size: float, seed: int, dtype: str = "float64",
    ) -> None:  # fmt: skip
        super().__init__(model, initials, arrays, compressed=compressed, batch=batch, step_size=step_size, seed=seed)
        import jax
        import jax.numpy as jnp

        self.dtype = dtype
        self.keys = jax.vmap(lambda k: jax.random.fold_in(jax.random.key(seed), k))(jnp.arange(len(initials)))
        self.frame = jnp.asarray(self.weights[0].frame, dtype)
        self.run = wide(self._advance)

    def _fixed(self) -> tuple[Any, ...]:
        """Return the training set as arrays of the device, with a first axis of replicas if each has its own; empty for
        fresh data.
        """
        import jax.numpy as jnp

        sets = [e for e in self.sets if e is not None]
        if not sets:
            return ()
        kinds = (None, self.dtype, self.dtype, self.dtype)
        parts = [[e.atoms, e.amplitudes, e.dense, e.labels] for e in sets]
        made = [np.array(each) if len(sets) > 1 else each[0] for each in zip(*parts, strict=True)]
        return tuple(jnp.asarray(part, kind) for part, kind in zip(made, kinds, strict=True))

    def _batch(self, key: Any, fixed: tuple[Any, ...]) -> tuple[Any, ...]:  # type: ignore[override]
        """Return the examples of one step."""
        import jax

        if not fixed:
            first, second = jax.random.split(key)
            uniform = jax.random.uniform(first, (self.model.uniforms, self.batch), self.dtype)
            atoms, amplitudes, labels, _ = self.functions_traced["draw"](uniform, *self.numbers)
            patches, size = self.model.noisy(self.parameters)
            width = frame_width(self.weights[0])
            noise = normals.standard_normal(second, (self.batch, patches * width), self.dtype)
            return atoms, amplitudes, size * noise.reshape(self.batch, patches, width), labels
        atoms, amplitudes, dense, labels = fixed
        if self.batch == labels.shape[0]:
            return fixed
        index = jax.random.choice(key, labels.shape[0], (self.batch,), replace=False)
        return atoms[:, index], amplitudes[:, index], dense[index], labels[index]

    @functools.cached_property
    def functions_traced(self) -> dict[str, Any]:
        """Return the model's functions bound to JAX."""
        return bind_jax(self.model, ROLES)

    def _advance(self, state: Any, keys: Any, fixed: Any, first: Any, steps: Any) -> Any:
        """Take `steps` steps of all replicas; `state` = (filters, bias, routers, best, stopped), replicas first."""
        import jax
        import jax.numpy as jnp

        f, plan = self.functions_traced, self.plan

        def step(k: Any, key: Any, state: Any, fixed: Any) -> Any:
            filters, bias, routers, best, stopped = state
            data_key, noise_key = jax.random.split(jax.random.fold_in(key, k))
            batch = self._batch(data_key, fixed)
            noise = jax.random.uniform(noise_key, (self.experts, batch[3].shape[0]), self.dtype) * plan.noise
            G, g, R, loss = descend(f, self.numbers, (filters, bias, routers, self.frame), batch, noise)
            rate, bias_rate, router_rate = f["rates"]((G**2).sum((1, 2)), (g**2).sum(1), *self.numbers)
            move, bias_move = ((self.step_size * each).astype(filters.dtype) for each in (rate, bias_rate))
            stop = f["halt"](loss, best, *self.numbers) if plan.stops else jnp.asarray(False)
            stopped = jnp.where((stopped < 0) & stop, k, stopped)
            going = stopped < 0
            return (
                jnp.where(going, filters + move[:, None, None] * G, filters),
                jnp.where(going & plan.biased, bias + bias_move[:, None] * g, bias),
                jnp.where(going, routers + self.step_size * router_rate * R, routers).astype(routers.dtype),
                jnp.where(going, jnp.minimum(best, loss), best),
                stopped,
            )

        def one(replica: Any) -> Any:
            state, key, *own = replica
            data = own[0] if own else fixed
            return jax.lax.fori_loop(0, steps, lambda k, inner: step(first + k, key, inner, data), state)

        replicas = (state, keys, fixed) if len(self.sets) > 1 else (state, keys)
        if default().platform == "cpu":
            return jax.lax.map(one, replicas)
        return jax.vmap(one)(replicas)

    def advance(self, steps: int) -> bool:
        """Take steps in every replica. Return False if a weight is no longer finite."""
        import jax.numpy as jnp

        parts = [np.array([getattr(w, name) for w in self.weights]) for name in ("filters", "bias", "routers")]
        state = (*(jnp.asarray(part, self.dtype) for part in (*parts, self.best)), jnp.asarray(self.stopped))
        moved = self.run(state, self.keys, self._fixed(), self.steps, steps)
        filters, bias, routers, best = (np.asarray(part, float) for part in moved[:4])
        self.weights = [
            Weights(a, b, c, w.frame) for a, b, c, w in zip(filters, bias, routers, self.weights, strict=True)
        ]
        self.best, self.stopped = best, np.asarray(moved[4]).copy()
        self.steps += steps
        return bool(np.isfinite(filters).all() and np.isfinite(routers).all())
