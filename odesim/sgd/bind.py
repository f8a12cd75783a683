"""One source of a model for two array libraries: the same functions with `np` bound to NumPy or to JAX."""

import functools
import importlib
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

from derivations.alphabet.frame import FrameModel
from derivations.alphabet.patterns import PatternModel
from derivations.contract import Model, ScalarModel

ROLES = ("coefficients", "update", "draw", "mean", "at_time", "settle", "accelerate")
ERF = """def erf(z):
    out = np.empty_like(z)
    for k in range(z.size):
        out.flat[k] = math.erf(z.flat[k])
    return out
"""
ERFC = """def erfc(z):
    out = np.empty_like(z)
    for k in range(z.size):
        out.flat[k] = math.erfc(z.flat[k])
    return out
"""
"""Error functions of arrays, which numba does not have, for models that use `erf` and `erfc`."""
ROWS_ADDED = """def rows_added(x):
    total = 1.0 * x[0]
    for k in range(1, x.shape[0]):
        total += x[k]
    return total
"""
CHOSEN = """def chosen(switch, one, other):
    return one if switch > 0.5 else other
"""
SUCCESSES = """def successes(hits, samples):
    out = np.empty_like(hits)
    for first in range(0, hits.size, samples):
        count = 0.0
        for k in range(first, first + samples):
            count += hits.flat[k]
        for k in range(first, first + samples):
            out.flat[k] = count
    return out
"""
WHOLE = "def whole(parts):\n    return parts\n"
FOR_NUMBA = {"rows_added": ROWS_ADDED, "chosen": CHOSEN, "whole": WHOLE, "successes": SUCCESSES}
"""Replacements for helpers of a model in numba, which takes a second to compile the sum over an axis (because of its
error messages).

Inputs with several eigenspaces are trained by JAX only.
"""
STUBS = {
    "draw": "def draw(uniform, normal, *numbers):\n    return uniform\n",
    "mean": "def mean(labels, *numbers):\n    return labels\n",
}
"""Replacement for the label functions of a model without labels; it is compiled but never called."""
AT_ANY_TIME = "def at_time(count, step_size, *numbers):\n    return step_size, numbers\n"
"""Replacement for `at_time` in a model with constant numbers."""


AS_IT_IS = "def settle(count, step_size, parts, gg, scalars, *numbers):\n    return step_size, scalars, numbers\n"
"""Replacement for `settle` in a model whose numbers do not depend on the state."""
OVERLAPS = "def overlaps(X):\n    return X @ X.T\n"
"""Gram matrix of a factor, an argument of `settle`."""
NO_OVERLAPS = "def overlaps(X):\n    return X\n"
"""Replacement for it if no function reads it."""


def module_of(model: Model | PatternModel | FrameModel) -> types.ModuleType:
    """Return the module with a model's functions: its file or, for a declared model, the cached text that the model
    writes.
    """
    if not isinstance(model, ScalarModel):
        return importlib.import_module(model.module)
    return _written_module(model)


@functools.lru_cache(maxsize=64)
def _written_module(model: ScalarModel) -> types.ModuleType:
    from odesim.code.compile import derived_text
    from odesim.code.module_cache import load_module

    return load_module(model.stem, derived_text(model.stem, [model.module], model.written))


def helpers_of(model: Model | PatternModel | FrameModel, module: types.ModuleType) -> list[str]:
    """Return the further functions that those of a model call, in the order in which numba needs them."""
    if not isinstance(model, ScalarModel):
        return list(model.helpers)
    own = [name for name, value in vars(module).items() if isinstance(value, types.FunctionType)]
    return [name for name in own if name not in ROLES]


def bind_jax(model: Model | PatternModel | FrameModel, roles: Sequence[str] = ROLES) -> dict[str, Callable[..., Any]]:
    """Return the functions of a model in `roles`, with `np` bound to `jax.numpy`, from the code objects of the
    module.
    """
    import jax.numpy as jnp
    import jax.scipy.special

    module = module_of(model)
    namespace = {**vars(module), "np": jnp, "erf": jax.scipy.special.erf, "erfc": jax.scipy.special.erfc}
    for name in (*helpers_of(model, module), *roles):
        original = vars(module).get(name)
        if original is not None:
            namespace[name] = types.FunctionType(inspect.unwrap(original).__code__, namespace, name)
    return {name: namespace[name] for name in roles if name in vars(module)}


def numba_sources(model: Model) -> list[str]:
    """Return the source texts of a model's functions, in the order in which numba needs them."""
    module = module_of(model)
    names = [*helpers_of(model, module), *(role for role in ROLES if hasattr(module, role))]
    texts = [FOR_NUMBA.get(name) or inspect.getsource(inspect.unwrap(getattr(module, name))) for name in names]
    texts += [text for name, text in STUBS.items() if not hasattr(module, name)]
    if isinstance(model, ScalarModel) and not hasattr(module, "at_time"):
        texts.append(AT_ANY_TIME)
    if isinstance(model, ScalarModel):
        texts += [OVERLAPS] if hasattr(module, "settle") else [NO_OVERLAPS, AS_IT_IS]
    return [ERF, ERFC, *texts]
