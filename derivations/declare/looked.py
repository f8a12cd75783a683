"""Looks at samples of a declared model in weight space, by definition, for explicit SGD.

For each sample x separately, with the motion c_a x of vector a from `evaluate.moves`,

    u^(k+1)_a = u^(k)_a - rho_a c_a(u^(k)) x/d,   rho_a = size rate_a,

and the vectors move by c_a(u^(times)) x, or by the sum over k of c_a(u^(k)) x. No formula for the fields after a step
is used.
"""

from collections.abc import Mapping
from typing import Any

from derivations.declare import evaluate
from derivations.declare.declaration import Declaration


def moves(
    declared: Declaration,
    vectors: Any,
    scalars: Any,
    x: Any,
    labels: Any,
    named_numbers: Mapping[str, Any],
    normal_axis: Any = None,
) -> tuple[Any, Any]:
    """Return the motion of vectors (students, d) and numbers (s,) after looks, summed over samples x (N, d).

    The arguments are those of `evaluate.moves`, whose `named_numbers` has the size "look" and the factors "moving"
    (students,) of the steps of vectors. A virtual step goes along x/d, or `normal_axis` (N, d), of which only the
    product with x matters.
    """
    import jax

    direction = x / x.shape[1] if normal_axis is None else normal_axis

    def add(total: Any, sample: Any) -> tuple[Any, None]:
        motion = of_sample(declared, vectors, scalars, sample, named_numbers)
        return jax.tree.map(lambda array, other_array: array + other_array, total, motion), None

    start = jax.tree.map(lambda array: 0.0 * array, (vectors[: named_numbers["moving"].shape[0]], scalars))
    return jax.lax.scan(add, start, (x, labels.T, direction))[0]


def of_sample(
    declared: Declaration, vectors: Any, scalars: Any, sample: tuple[Any, Any, Any], named_numbers: Mapping[str, Any]
) -> tuple[Any, Any]:
    """Return the motion of vectors and numbers after looks at one sample: x (d,), labels (1,), direction (d,)."""
    import jax.numpy as jnp

    look, (x, label, direction) = declared.look, sample
    assert look is not None
    steps = (named_numbers["look"] * named_numbers["moving"])[:, None]
    count, total = steps.shape[0], None
    for k in range(look.times + 1):
        of_rows, of_scalars = evaluate.moves(
            declared, vectors, scalars, x[None], label[:, None], named_numbers, normal_axis=direction[None]
        )
        if total is None or look.use == "last":
            total = (of_rows, of_scalars)
        else:
            total = (total[0] + of_rows, total[1] + of_scalars)
        if k < look.times:
            c = (of_rows @ direction)[:, None] / (x @ direction)
            vectors = jnp.concatenate([vectors[:count] - steps * c * direction, vectors[count:]])
    assert total is not None
    return total
