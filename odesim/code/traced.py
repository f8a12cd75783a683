"""Right-hand sides traced by JAX: sizes compiled in, arrays as arguments, one program for runs of the same shape."""

import functools
from collections.abc import Callable
from typing import Any


def split(arguments: tuple[Any, ...]) -> tuple[tuple[int | None, ...], list[Any]]:
    """Run-time arguments as sizes, which are compiled in (`None` where an array stands), and arrays on the device."""
    import jax.numpy as jnp

    sizes = tuple(a if isinstance(a, int) else None for a in arguments)
    return sizes, [jnp.asarray(a) for a in arguments if not isinstance(a, int)]


@functools.lru_cache(maxsize=64)
def jax_slope(flow: Callable[..., Any], sizes: tuple[int | None, ...]) -> Callable[[Any, Any, list[Any]], Any]:
    """Jitted dy/dt = flow(t, y, *arguments) as a function of (t, y, arrays)."""
    import jax

    def slope(t: Any, y: Any, arrays: list[Any]) -> Any:
        return flow(t, y, *joined(sizes, arrays))

    return jax.jit(slope)


@functools.lru_cache(maxsize=64)
def jax_along(function: Callable[..., Any], sizes: tuple[int | None, ...]) -> Callable[[Any, list[Any]], Any]:
    """Jitted function(y, *arguments) at every state of (states, arrays), compiled once for runs of the same shape."""
    import jax

    def along(states: Any, arrays: list[Any]) -> Any:
        return jax.lax.map(lambda y: function(y, *joined(sizes, arrays)), states)

    return jax.jit(along)


def joined(sizes: tuple[int | None, ...], arrays: list[Any]) -> list[Any]:
    """The arguments that `split` has taken apart."""
    remaining = iter(arrays)
    return [next(remaining) if size is None else size for size in sizes]
