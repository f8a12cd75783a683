"""Right-hand sides traced by JAX: sizes are compiled in, arrays are arguments, and runs of the same shape share a
program.
"""

import functools
from collections.abc import Callable
from typing import Any

WIDE = {"xla_cpu_prefer_vector_width": 512}
Sizes = tuple[Any, tuple[Any, ...]]
"""Structure of the arguments, and those that are compiled in; None in place of an array."""


def split(arguments: tuple[Any, ...]) -> tuple[Sizes, list[Any]]:
    """Split run-time arguments, nested or not, into sizes, which are compiled in, and arrays on the device."""
    import jax
    import jax.numpy as jnp

    if not jax.config.jax_enable_x64:  # otherwise arrays would be cut to float32 silently
        raise RuntimeError("expected JAX in float64: call device.configure inside device.double")
    leaves, nested = jax.tree.flatten(tuple(arguments))
    sizes = tuple(a if isinstance(a, int) else None for a in leaves)
    return (nested, sizes), [jnp.asarray(a) for a in leaves if not isinstance(a, int)]


@functools.lru_cache(maxsize=64)
def jax_slope(flow: Callable[..., Any], sizes: Sizes) -> Callable[[Any, Any, list[Any]], Any]:
    """Return jitted dy/dt = flow(t, y, *arguments) as a function of (t, y, arrays)."""
    import jax

    def slope(t: Any, y: Any, arrays: list[Any]) -> Any:
        return flow(t, y, *joined(sizes, arrays))

    return jax.jit(slope)


@functools.lru_cache(maxsize=64)
def jax_along(function: Callable[..., Any], sizes: Sizes) -> Callable[[Any, list[Any]], Any]:
    """Return jitted function(y, *arguments) at every state of (states, arrays), compiled once for runs of the same
    shape.
    """
    import jax

    def along(states: Any, arrays: list[Any]) -> Any:
        return jax.lax.map(lambda y: function(y, *joined(sizes, arrays)), states)

    return jax.jit(along)


def wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """Apply `jax.jit` to programs that draw and multiply many numbers, with the widest vectors of the processor.

    LLVM prefers 256 bits on processors that lower their clock for 512; the products between the draws use 512 bits in
    any case. Numbers are the same to the last bit.
    """
    import jax

    return jax.jit(function, compiler_options=WIDE if jax.default_backend() == "cpu" else None)


def joined(sizes: Sizes, arrays: list[Any]) -> tuple[Any, ...]:
    """Return the arguments that `split` has separated."""
    import jax

    (nested, known), remaining = sizes, iter(arrays)
    return jax.tree.unflatten(nested, [next(remaining) if size is None else size for size in known])
