"""Text of `coefficients` that depend on the length of a sample: looks, and the norm of a gradient."""

from collections.abc import Callable, Iterator

from derivations.declare.declaration import Declaration


def coefficients(declared: Declaration, body: list[str], parameter_text: str) -> str:
    """The functions of `coefficients(fields, labels, lengths, vv, scalars, ..)` with the lines of one look.

    `lengths` are |x|^2/d, one row. With looks the lines are a separate function, and every look changes the fields of
    the trained vectors, the first rows.
    """
    arguments = f"(fields, labels, lengths, vv, scalars, {parameter_text})"
    look = declared.look
    if look is None:
        return _function("coefficients", arguments, body)
    lines = [
        f"rows = coefficients_seen{arguments}",
        "count = moving.size",
        "step = column(look[0] * moving, fields) * lengths",
        "moved, rest = fields[:count], fields[count:]",
    ]
    lines += ["total = rows"] if look.use == "sum" else []
    for _ in range(look.times):
        lines += [
            "moved = moved - step * rows[:count]",
            f"rows = coefficients_seen{arguments.replace('fields', 'np.concatenate((moved, rest))', 1)}",
        ]
        lines += ["total = total + rows"] if look.use == "sum" else []
    lines.append(f"return {'total' if look.use == 'sum' else 'rows'}")
    look_function = _function("coefficients_seen", arguments, body)
    return f"{look_function}\n\n{_function('coefficients', arguments, lines)}"


def _function(name: str, arguments: str, lines: list[str]) -> str:
    return f"def {name}{arguments}:\n" + "".join(f"    {line}\n" for line in lines)


def norm(declared: Declaration, gradient: Callable[[Declaration, int, str], str]) -> Iterator[str]:
    """Return gnorm for rules; `gradient(declared, k, kind)` is the text of a derivative of the loss."""
    terms = [
        f"total(({gradient(declared, k, f'z_{slot}')}) ** 2)"
        for k, group in enumerate(declared.students)
        for slot in group.slots
        if declared.moves(group, slot)
    ]
    yield f"gnorm = np.sqrt(lengths * ({' + '.join(terms) or '0.0 * labels[0:1]'}))"
