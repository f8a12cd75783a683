"""The loss of samples of a declared model, read off its expressions: what explicit SGD differentiates.

The trees are interpreted with the operations of JAX, and nothing is differentiated here: neither SymPy nor the
coefficients of compressed SGD have a part in it.
"""

from collections.abc import Mapping
from typing import Any

from derivations.declare.declaration import Declaration, Group
from derivations.declare.grammar import Tree


def losses(declared: Declaration, vectors: Any, scalars: Any, x: Any, labels: Any, given: Mapping[str, Any]) -> Any:
    """The loss (samples,) of every sample x (samples, d), with the arguments of `answers`."""
    f, y = answers(declared, vectors, scalars, x, labels, given)
    return sample_loss(declared, f, y, _numbers(declared, given))


def wrong(declared: Declaration, vectors: Any, scalars: Any, x: Any, labels: Any, given: Mapping[str, Any]) -> Any:
    """1 for every sample at which the signs of f and y differ, else 0, with the arguments of `answers`."""
    import jax.numpy as jnp

    f, y = answers(declared, vectors, scalars, x, labels, given)
    return jnp.where(jnp.sign(f) != jnp.sign(y), 1.0, 0.0)


def _numbers(declared: Declaration, given: Mapping[str, Any]) -> dict[str, Any]:
    """The user's numbers by name."""
    return {name: given[f"n_{name}"] for name in declared.names}


def answers(
    declared: Declaration, vectors: Any, scalars: Any, x: Any, labels: Any, given: Mapping[str, Any]
) -> tuple[Any, Any]:
    """f and y of every sample x (samples, d), where `vectors` (n, d) are the rows of students and teachers.

    `scalars` (s,) are the trained readouts and scalars, `labels` (1, samples) the noise of the labels, and `given` the
    other numbers by name: sizes K_k, readouts readout_k, the user's numbers n_...
    """
    import jax.numpy as jnp

    numbers = _numbers(declared, given)
    sums, at, scalar_at = [0.0, 0.0], 0, 0
    for k, group in enumerate(declared.groups):
        size, student = given[f"K_{k}"], k < len(declared.students)
        fields, squares = {}, {}
        for slot in group.slots:
            rows = vectors[at : at + size]
            if student and declared.weights == "normalised":
                rows = rows / jnp.sqrt((rows * rows).sum(1, keepdims=True))
            fields[slot] = jnp.matmul(rows, x.T, precision="highest")
            squares[slot] = (rows * rows).sum(1, keepdims=True)
            at += size
        own = {}
        for word in [*(["a"] if group.output == "trained" else []), *(group.scalars if student else ())]:
            own[word] = scalars[scalar_at : scalar_at + size, None]
            scalar_at += size
        a = own.pop("a") if group.output == "trained" else given[f"readout_{k}"][:, None]
        sums[not student] += (a * unit(group, {**numbers, **own, **fields}, squares)).sum(0)
    return sums[0], sums[1] + labels[0]


def unit(group: Group, values: Mapping[str, Any], squares: Mapping[str, Any]) -> Any:
    """phi (units, samples) of a group, with its share among the units if it has one."""
    import jax
    import jax.numpy as jnp

    share = None
    if group.share is not None:
        logits = value(group.share.parts[0], values, squares, None)
        if group.share.word == "softmax":
            share = jax.nn.softmax(logits, axis=0)
        else:
            share = jax.nn.one_hot(jnp.argmax(logits, 0), logits.shape[0], axis=0, dtype=logits.dtype)
    return value(group.unit, values, squares, share)


def sample_loss(declared: Declaration, f: Any, y: Any, numbers: Mapping[str, Any]) -> Any:
    """l(f, y) of every sample; the label of a logistic or hinge loss is the sign of y."""
    import jax
    import jax.numpy as jnp

    match declared.loss:
        case "squared":
            return 0.5 * (f - y) ** 2
        case "correlation":
            return -f * y
        case "logistic":
            return jax.nn.softplus(-f * jnp.sign(y))
        case "hinge":
            return jax.nn.relu(1 - f * jnp.sign(y))
    assert declared.own_loss is not None
    return value(declared.own_loss, {**numbers, "f": f, "y": y}, {}, None)


def value(tree: Tree, values: Mapping[str, Any], squares: Mapping[str, Any], share: Any) -> Any:
    """The value of an expression, names taken from `values`; wick(k, w) takes |w|^2 from `squares`."""
    import jax
    import jax.numpy as jnp

    def inner(part: Tree) -> Any:
        return value(part, values, squares, share)

    if tree.kind == "number":
        return tree.value
    if tree.kind == "name":
        return values[tree.word] if tree.word in values else jnp.pi
    if tree.kind != "call":
        left, right = map(inner, tree.parts)
        operations = {"+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right}
        operations |= {"/": lambda: left / right, "^": lambda: power(tree.parts[1], left, right)}
        return operations[tree.kind]()
    if tree.word in ("softmax", "top1"):
        return share
    if tree.word in ("He", "wick"):
        square = squares[tree.parts[1].word] if tree.word == "wick" else 1.0
        return hermite(int(tree.parts[0].value), inner(tree.parts[1]), square)
    named = {
        "logistic": jax.nn.sigmoid, "probit": jax.scipy.stats.norm.cdf, "erf": jax.scipy.special.erf,
        "relu": jax.nn.relu, "step": lambda z: jnp.where(z > 0, 1.0, 0.0), "silu": jax.nn.silu,
        "gelu": lambda z: jax.nn.gelu(z, approximate=False), "softplus": jax.nn.softplus,
    }  # fmt: skip
    return (named.get(tree.word) or getattr(jnp, tree.word))(inner(tree.parts[0]))


def power(exponent: Tree, base: Any, number: Any) -> Any:
    """base^number: by multiplication where the exponent is a whole number, whose derivative is then that of a product.

    Also where it is a quotient or a negative one that comes out whole.
    """
    whole = not exponent.names() and float(number) == int(number)
    return base ** int(number) if whole else base**number


def hermite(k: int, z: Any, square: Any) -> Any:
    """square^(k/2) He_k(z/sqrt(square)) by H_{j+1} = z H_j - j square H_{j-1}."""
    below, here = 0.0 * z, 1.0 + 0.0 * z
    for j in range(k):
        below, here = here, z * here - j * square * below
    return here
