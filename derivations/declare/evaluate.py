"""Loss of samples of a declared model, evaluated from its expressions. Explicit SGD differentiates it.

The trees are interpreted with the operations of JAX, and nothing is differentiated here: neither SymPy nor the
coefficients of compressed SGD are used.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from derivations.declare import looks
from derivations.declare.declaration import Declaration, Group
from derivations.declare.episodes import COUNT, REWARD, SAMPLES
from derivations.declare.grammar import Tree
from derivations.declare.readouts import written_name


def losses(
    declared: Declaration, vectors: Any, scalars: Any, x: Any, labels: Any, named_numbers: Mapping[str, Any]
) -> Any:
    """The loss (samples,) of every sample x (samples, d), with the arguments of `answers`."""
    f, y = answers(declared, vectors, scalars, x, labels, named_numbers)
    if declared.several:
        return loss_of_heads(declared, f, y, _numbers(declared, named_numbers))
    return sample_loss(declared, f, y, _numbers(declared, named_numbers))


def wrong(
    declared: Declaration, vectors: Any, scalars: Any, x: Any, labels: Any, named_numbers: Mapping[str, Any]
) -> Any:
    """Return 1 for every sample at which the signs of f and y differ, else 0, with the arguments of `answers`."""
    import jax.numpy as jnp

    f, y = answers(declared, vectors, scalars, x, labels, named_numbers)
    return jnp.where(jnp.sign(f) != jnp.sign(y), 1.0, 0.0)


def _numbers(declared: Declaration, named_numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The user's numbers by name."""
    return {name: named_numbers[f"n_{name}"] for name in declared.names}


def answers(
    declared: Declaration, vectors: Any, scalars: Any, x: Any, labels: Any, named_numbers: Mapping[str, Any]
) -> tuple[Any, Any]:
    """Return f and y of every sample x (samples, d); `vectors` (n, d) are the rows of students and teachers.

    With several heads they are (heads in use, samples), like the `labels`.

    `scalars` (s,) are the trained readouts and scalars, `labels` (1, samples) the noise of the labels, and
    `named_numbers` the other numbers by name: sizes K_k, readouts readout_k or readout_k_head, the user's numbers n_...
    """
    return _answers(
        declared, list(placed(declared, vectors, scalars, x, named_numbers)), labels, _numbers(declared, named_numbers)
    )


def _answers(
    declared: Declaration, groups: list["Placed"], labels: Any, numbers: Mapping[str, Any]
) -> tuple[Any, Any]:  # fmt: skip
    """Return f and y of samples for groups that are evaluated on them."""
    import jax.numpy as jnp

    count, answering = len(declared.students), [groups[k] for k in declared.answering]
    sides = []
    for student, side in ((True, answering[:count]), (False, answering[count:])):
        of_units = [
            (placement, unit(placement.group, {**numbers, **placement.own, **placement.fields}, placement.squares))
            for placement in side
        ]
        outputs = [
            {
                placement.group.name: (placement.heads[head] * phi).sum(0)
                for placement, phi in of_units
                if head in placement.heads
            }
            for head in declared.force
        ]
        sides.append([
            _predicted(declared, student, head, group_outputs, numbers)
            for head, group_outputs in zip(declared.force, outputs, strict=True)
        ])  # fmt: skip
    if not declared.several:
        return sides[0][0], sides[1][0] + labels[0]
    return jnp.stack(sides[0]), jnp.stack(sides[1]) + labels


def _predicted(
    declared: Declaration, student: bool, head: str, outputs: Mapping[str, Any], numbers: Mapping[str, Any]
) -> Any:
    """Return the answer or the label of a head from the outputs of groups by name: their sum, or its prediction."""
    total, prediction = sum(outputs.values(), 0.0), declared.prediction(student, head)
    if prediction is None:
        return total
    return value(prediction.tree, {**numbers, **outputs, "f" if student else "y": total}, {}, None) + 0.0 * total


@dataclasses.dataclass(frozen=True)
class Placed:
    """Group of units on some samples: the first places of its rows and numbers, and the arguments of its units.

    `fields` (units, samples) and `squares` (units, 1) are by slot; `own` (units, 1) are the numbers of its units, by
    name, without readouts `a` (units, 1); with several heads these are in `heads`, by head.
    """

    group: Group
    rows: dict[str, slice]
    numbers: dict[str, slice]
    fields: dict[str, Any]
    squares: dict[str, Any]
    own: dict[str, Any]
    a: Any
    heads: dict[str, Any]


def placed(
    declared: Declaration, vectors: Any, scalars: Any, x: Any, named_numbers: Mapping[str, Any]
) -> Iterator[Placed]:
    """All groups on some samples, with the arguments of `answers`."""
    import jax.numpy as jnp

    first_row, scalar_at = 0, 0
    for k, group in enumerate(declared.groups):
        size, student = named_numbers[f"K_{k}"], k < len(declared.students)
        places, numbers, fields, squares, unit_numbers = {}, {}, {}, {}, {}
        for slot in group.slots:
            places[slot] = slice(first_row, first_row + size)
            rows = vectors[places[slot]]
            if student and declared.weights == "normalised":
                rows = rows / jnp.sqrt((rows * rows).sum(1, keepdims=True))
            fields[slot] = jnp.matmul(rows, x.T, precision="highest")
            squares[slot] = (rows * rows).sum(1, keepdims=True)
            first_row += size
        for word in group.own if student else ():
            numbers[word] = slice(scalar_at, scalar_at + size)
            unit_numbers[word] = scalars[numbers[word], None]
            scalar_at += size
        heads = {}
        for head in declared.heads:
            readout = declared.readout(k, head)
            if readout is not None:
                heads[head] = (
                    unit_numbers.pop(readout.word) if readout.trained else named_numbers[written_name(k, head)][:, None]
                )
        yield Placed(group, places, numbers, fields, squares, unit_numbers, heads.get(""), heads)


def output(placement: Placed, numbers: Mapping[str, Any]) -> Any:
    """Return the contribution of a group to an answer, (samples,)."""
    return (
        placement.a * unit(placement.group, {**numbers, **placement.own, **placement.fields}, placement.squares)
    ).sum(0)


def unit(group: Group, values: Mapping[str, Any], squares: Mapping[str, Any]) -> Any:
    """Return phi (units, samples) of a group, with its share among the units if it has one."""
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


def loss_of_heads(declared: Declaration, f: Any, y: Any, numbers: Mapping[str, Any]) -> Any:
    """The loss (samples,) of the answers and labels (heads in use, samples) of several heads."""
    import jax
    import jax.numpy as jnp

    if declared.loss == "softmax":
        right = jax.nn.one_hot(jnp.argmax(y, 0), len(declared.force), axis=0, dtype=f.dtype)
        return jax.scipy.special.logsumexp(f, axis=0) - (right * f).sum(0)
    if declared.joint:
        assert declared.own_loss is not None
        namespace = {
            f"{word}_{head}": of[k] for word, of in (("f", f), ("y", y)) for k, head in enumerate(declared.force)
        }
        return value(declared.own_loss, {**numbers, **namespace}, {}, None)
    return sum(sample_loss(declared, answer, label, numbers) for answer, label in zip(f, y, strict=True))


def moves(
    declared: Declaration,
    vectors: Any,
    scalars: Any,
    x: Any,
    labels: Any,
    named_numbers: Mapping[str, Any],
    normal_axis: Any = None,
) -> tuple[Any, Any]:
    """Return the motion of the trained vectors (students, d) and numbers (s,), summed over samples: c x and c, or
    derivatives.

    The arguments are those of `answers`. JAX computes the derivatives in a rule. `gnorm` uses the length |x|^2/d of a
    sample, or the product of x with `normal_axis` (samples, d) instead. Samples of an episode are consecutive, unless
    `named_numbers` has the reward R (samples,) of each.
    """
    import jax
    import jax.numpy as jnp

    groups, numbers = list(placed(declared, vectors, scalars, x, named_numbers)), _numbers(declared, named_numbers)
    students = groups[: len(declared.students)]
    count = sum(len(placement.fields) * len(placement.a) for placement in students)

    def total(trained: Any, scalar_values: Any) -> Any:
        return losses(
            declared, jnp.concatenate([trained, vectors[count:]]), scalar_values, x, labels, named_numbers
        ).sum()

    of_rows, of_scalars = jnp.zeros_like(vectors[:count]), jnp.zeros_like(scalars)
    if any(set(declared.ruled(placement.group)) != set(_moving(declared, placement.group)) for placement in students):
        of_rows, of_scalars = jax.grad(total, (0, 1))(vectors[:count], scalars)
    f, y = _answers(declared, groups, labels, numbers)

    def loss_of(f: Any) -> Any:
        return sample_loss(declared, f, y, numbers) + 0.0 * f

    namespace = {**numbers, "f": f, "y": y, "l": loss_of(f), "dl": jax.grad(lambda f: loss_of(f).sum())(f)}
    if looks.normed(declared):
        lengths = (x * x).sum(1) / x.shape[1] if normal_axis is None else (x * normal_axis).sum(1)
        namespace["gnorm"] = jnp.sqrt(lengths * _squares(declared, groups, labels, numbers))
    if declared.episode is not None:
        namespace[REWARD] = named_numbers[REWARD] if REWARD in named_numbers else _rewards(declared, f, y, numbers)
    for k, placement in enumerate(students):
        constants = {word: named_numbers[f"own_{k}_{word}"][:, None] for word in declared.constants(placement.group)}
        for word in declared.ruled(placement.group):
            c = _ruled(declared, placement, word, {**namespace, **constants})
            if word in placement.rows:
                of_rows = of_rows.at[placement.rows[word]].set(jnp.matmul(c, x, precision="highest"))
            else:
                of_scalars = of_scalars.at[placement.numbers[word]].set(c.sum(1))
    return of_rows, of_scalars


def success(declared: Declaration, f: Any, y: Any, numbers: Mapping[str, Any]) -> Any:
    """Return 1 for every sample (samples,) that is a success, else 0."""
    assert declared.episode is not None
    return value(declared.episode.success, {**numbers, "f": f, "y": y}, {}, None) + 0.0 * f


def reward(declared: Declaration, count: Any, numbers: Mapping[str, Any]) -> Any:
    """The reward of episodes with these counts of successes."""
    episode = declared.episode
    assert episode is not None
    return value(episode.reward, {**numbers, COUNT: count, SAMPLES: float(episode.samples)}, {}, None) + 0.0 * count


def _rewards(declared: Declaration, f: Any, y: Any, numbers: Mapping[str, Any]) -> Any:
    """The reward (samples,) of the episode of every sample."""
    import jax.numpy as jnp

    assert declared.episode is not None
    episodes = success(declared, f, y, numbers).reshape(-1, declared.episode.samples)
    return jnp.repeat(reward(declared, episodes.sum(1), numbers), declared.episode.samples)


def _squares(declared: Declaration, groups: list[Placed], labels: Any, numbers: Mapping[str, Any]) -> Any:
    """Return the sum (samples,) of squared derivatives of the loss with respect to the fields of all trained vectors,
    by JAX.
    """
    import jax

    count = len(declared.students)

    def total(field_sets: list[dict[str, Any]]) -> Any:
        changed_groups = [
            dataclasses.replace(placement, fields=by_slot)
            for placement, by_slot in zip(groups, field_sets, strict=False)
        ]
        f, y = _answers(declared, [*changed_groups, *groups[count:]], labels, numbers)
        return sample_loss(declared, f, y, numbers).sum()

    slopes = jax.grad(total)([placement.fields for placement in groups[:count]])
    return sum(
        (by_slot[slot] ** 2).sum(0)
        for placement, by_slot in zip(groups, slopes, strict=False)
        for slot in by_slot
        if declared.moves(placement.group, slot)
    )


def _moving(declared: Declaration, group: Group) -> list[str]:
    """The slots and numbers of a group of students that are trained."""
    return [word for word in (*group.slots, *group.own) if declared.moves(group, word)]


def _ruled(declared: Declaration, placement: Placed, word: str, names: Mapping[str, Any]) -> Any:
    """Return the coefficients (units, samples) of the rule of a slot or a number; `names` are those of the samples."""
    import jax

    rule = declared.rule(placement.group, word)
    assert rule is not None
    ones = 1.0 + 0.0 * next(iter(placement.fields.values()))

    def changed(values: Any, name: str) -> Any:
        if word == "a":
            return output(dataclasses.replace(placement, a=values), names)
        if word in placement.fields:
            variant = dataclasses.replace(placement, fields={**placement.fields, word: values})
        else:
            variant = dataclasses.replace(placement, own={**placement.own, word: values})
        phi = unit(placement.group, {**names, **variant.own, **variant.fields}, placement.squares)
        return (placement.a * phi).sum(0) if name == "df" else phi

    unit_namespace = {"a": placement.a, **placement.own, "dl": names["dl"]}
    # A number of a unit is repeated for every sample, so that it has a derivative for each of them.
    start = (placement.a if word == "a" else {**placement.fields, **placement.own}[word]) * ones
    for name in ("df", "dphi"):
        if name in rule.tree.names() or (name == "df" and "grad" in rule.tree.names()):
            unit_namespace[name] = jax.grad(lambda values, name=name: changed(values, name).sum())(start)
    if "grad" in rule.tree.names():
        unit_namespace["grad"] = names["dl"] * unit_namespace["df"]
    return value(rule.tree, {**names, **unit_namespace, **placement.fields}, placement.squares, None) * ones


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
    if tree.word == "clip":
        reach = inner(tree.parts[1])
        return jnp.minimum(jnp.maximum(inner(tree.parts[0]), -reach), reach)
    named = {
        "logistic": jax.nn.sigmoid, "probit": jax.scipy.stats.norm.cdf, "erf": jax.scipy.special.erf,
        "relu": jax.nn.relu, "step": lambda z: jnp.where(z > 0, 1.0, 0.0), "silu": jax.nn.silu,
        "gelu": lambda z: jax.nn.gelu(z, approximate=False), "softplus": jax.nn.softplus,
    }  # fmt: skip
    return (named.get(tree.word) or getattr(jnp, tree.word))(inner(tree.parts[0]))


def power(exponent: Tree, base: Any, number: Any) -> Any:
    """Return base^number: by multiplication for an integer exponent, so that the derivative is that of a product.

    This includes quotients and negative numbers that are integers.
    """
    is_integer = not exponent.names() and float(number) == int(number)
    return base ** int(number) if is_integer else base**number


def hermite(k: int, z: Any, square: Any) -> Any:
    """square^(k/2) He_k(z/sqrt(square)) by H_{j+1} = z H_j - j square H_{j-1}."""
    previous, current = 0.0 * z, 1.0 + 0.0 * z
    for j in range(k):
        previous, current = current, z * current - j * square * previous
    return current
