"""One step of SGD of a declaration as source text: coefficients of a sample, label noise, update of a `ScalarModel`.

    f = sum_i a_i phi(z_i, q_i, p_i),  z = fields, q = squared norms, p = shares of the units of a group
    dl/dz_i = l'(f) (a_i dphi_i/dz + df/dl_i dl_i/dz),   df/dl_j = p_j (A_j - sum_i p_i A_i),  A_i = a_i dphi_i/dp

The text depends only on the declaration, not on sizes or values: the first axis of arrays is the unit, and the last is
the sample if there are several.
"""

from collections.abc import Iterator, Sequence

from derivations.declare import (
    episode_text,
    looks,
    looks_text,
    momentum,
    noise,
    predictions,
    responses,
    schedule_text,
    symbols,
)
from derivations.declare.declaration import Declaration
from derivations.declare.episodes import REWARD
from derivations.declare.readouts import word_of, written_name
from derivations.declare.schedules import Schedule

HELPERS = {
    "column": '''def column(values, like):
    """A vector as a column beside a batch, and as it is beside a single sample."""
    if like.ndim == 1:
        return values
    return values.reshape((-1, 1))
''',
    "rows_added": '''def rows_added(x):
    """The sum of the rows (K, ..)."""
    return x.sum(0)
''',
    "total": '''def total(values):
    """The sum over the units, (1, ..)."""
    if values.ndim == 1:
        return np.array([values.sum()])
    return rows_added(values).reshape((1, -1))
''',
    "highest": '''def highest(values):
    """The largest over the units, (1, ..)."""
    top = values[:1] + 0.0
    for i in range(1, values.shape[0]):
        top = np.maximum(top, values[i : i + 1])
    return top
''',
    "softmax": '''def softmax(values):
    """exp(v_i) / sum_k exp(v_k)."""
    sizes = np.exp(values - highest(values))
    return sizes / total(sizes)
''',
    "top1": '''def top1(values):
    """1 for the largest, the first of equal ones."""
    if values.ndim == 1:
        return 1.0 * (np.arange(values.shape[0]) == np.argmax(values))
    return 1.0 * (np.arange(values.shape[0]).reshape((-1, 1)) == np.argmax(values, 0))
''',
}
HEAD = '"""The functions of one declared model; written by odesim, do not edit."""\n\nimport numpy as np\n'
HEAD += "from scipy.special import erf, erfc\n"


def arguments(declared: Declaration, changing: Sequence[Schedule] = ()) -> list[str]:
    """The run-time arguments of all functions, in order: sizes K_k, the user's numbers n_.., arrays, readouts.

    If values are `changing` in time, the clock and the switches come before the readouts. The numbers of units that
    only rules contain come last.
    """
    sizes = [f"K_{k}" for k in range(len(declared.groups))]
    fixed = [written_name(k, readout.head) for k, readout in declared.fixed_readouts()]
    fixed += [f"own_{k}_{word}" for k, group in enumerate(declared.students) for word in declared.constants(group)]
    shared = [f"n_{name}" for name in declared.names]
    clock = ["dimension", "turns", "before", "after"] if changing or declared.memories else []
    push = ["push"] if declared.momentum is not None else []
    push += ["look"] if declared.look is not None else []
    return [*sizes, *shared, "square", "noise", "decay", "first", "moving", "learning", *push, *clock, *fixed]


def norms(declared: Declaration) -> bool:
    """Return True if a gradient has a part along its vector: the loss depends on |u|, and u is not on a sphere."""
    if declared.weights == "sphere":
        return False
    return declared.weights == "normalised" or any(group.unit.calls("wick") for group in declared.students)


def module(declared: Declaration, changing: Sequence[Schedule] = ()) -> str:
    """The text of the module with all functions, including the values `changing` in time."""
    parameter_text = ", ".join(arguments(declared, changing))
    texts = [HEAD, *_parts(declared, changing), _coefficients(declared, parameter_text)]
    texts += [_draw(declared, parameter_text), _update(declared, parameter_text)]
    texts += [momentum.accelerate(declared, parameter_text, norms(declared))] if declared.momentum is not None else []
    texts += [schedule_text.at_time(declared, changing, parameter_text)] if changing or declared.memories else []
    texts += (
        [schedule_text.settle(declared, changing, parameter_text)] if schedule_text.settles(declared, changing) else []
    )
    return "\n\n".join(text.rstrip() + "\n" for text in texts)


def _parts(declared: Declaration, changing: Sequence[Schedule]) -> list[str]:
    """Helpers, units, logits, loss, and the schedules."""
    students = len(declared.students)
    texts = [text for k in range(students) for text in responses.unit(declared, k)]
    texts += [text for k in declared.answering[students:] for text in _values(declared, k)]
    texts += [responses.loss(declared), *responses.all_predictions(declared, declared.force)]
    texts += [*responses.rules(declared), *responses.of_episodes(declared)]
    texts += [noise.text(declared)] if declared.law is not None else []
    texts += [schedule_text.values(changing, declared)] if changing else []
    texts += [schedule_text.rates_of_memories(changing, declared)] if declared.memories else []
    helpers = [*HELPERS.values(), *([episode_text.SUCCESSES] if declared.episode is not None else [])]
    return [*symbols.helpers("\n".join(texts)), *helpers, *texts]


def _values(declared: Declaration, k: int) -> list[str]:
    """`unit_k` and, with a share, `logit_k` of a teacher: values without derivatives."""
    import sympy

    group = declared.groups[k]
    first_arguments = [*map(symbols.slot, group.slots), *map(symbols.square, group.slots)]
    last_arguments = [sympy.Symbol(name, real=True) for name in declared.names]
    phi = symbols.build(group.unit, group.slots)
    texts = [symbols.function(f"unit_{k}", [*first_arguments, symbols.share(), *last_arguments], [phi])]
    if group.share is not None:
        logit = symbols.build(group.share.parts[0], group.slots)
        texts.append(symbols.function(f"logit_{k}", [*first_arguments, *last_arguments], [logit]))
    return texts


def _rows(counts: list[int], k: int, place: int) -> str:
    """A slice over the units of group k: after `counts` blocks of units of earlier groups and `place` blocks of group
    k.
    """
    terms = [(f"{count} * " if count > 1 else "") + f"K_{i}" for i, count in enumerate([*counts, place]) if count]
    if not terms:
        return f":K_{k}"
    start = " + ".join(terms)
    return f"{start} : {start} + K_{k}"


def _coefficients(declared: Declaration, parameter_text: str) -> str:
    """`coefficients(fields, labels, vv, scalars, ..)`: c of every slot, then e, then the slopes of the scalars."""
    lines = [line for k in declared.answering for line in (*_read(declared, k), *_value(declared, k))]
    students = len(declared.students)
    lines += _answers(declared)
    coefficient_rows, sizes, slopes = [], [], []
    if looks.normed(declared):
        lines += [line for k in range(students) for line in _derivatives(declared, k)]
        lines += looks_text.norm(declared, _gradient)
    for k in range(students):
        group = declared.groups[k]
        lines += [] if looks.normed(declared) else _derivatives(declared, k)
        lines += _ruled(declared, k)
        coefficient_rows += [f"c_{k}_{slot}" for slot in group.slots]
        sizes += [f"e_{k}_{slot}" for slot in group.slots] if norms(declared) else []
        slopes += [f"d_{k}_{word}" for word in group.trained_readouts]
        slopes += [f"d_{k}_{word}" for word in group.scalars]
    slopes += ["0.0 * fields[:1]"] * len(declared.memories)  # no sample moves a memory
    body = [*lines, f"return np.concatenate(({', '.join([*coefficient_rows, *sizes, *slopes])},))"]
    if looks.measured(declared):
        return looks_text.coefficients(declared, body, parameter_text)
    head = f"def coefficients(fields, labels, vv, scalars, {parameter_text}):\n"
    return head + "".join(f"    {line}\n" for line in body)


def _answers(declared: Declaration) -> Iterator[str]:
    """The answers f and labels y of the heads in use, and the derivatives of the loss with respect to the answers."""
    students = len(declared.students)
    sides = declared.answering[:students], declared.answering[students:]
    for place, head in enumerate(declared.force):
        yield from _predicted(declared, head, place)
        f, y = (" + ".join(_output(k, head) for k in side if declared.readout(k, head)) for side in sides)
        if declared.prediction(True, head) is None:
            yield f"{word_of(head, 'f')} = {f or '0.0 * labels[0:1]'}"
        if declared.prediction(False, head) is None:
            yield f"{word_of(head, 'y')} = {y} + labels[{place}:{place + 1}]"
    value = "value" if any("l" in rule.tree.names() for rule in declared.rules) else "_"
    f, y, slope = ([word_of(head, word) for head in declared.force] for word in ("f", "y", "slope"))
    shared = [f"n_{name}" for name in declared.names]
    yield f"{', '.join([value, *slope])} = loss({', '.join([*f, *y, *shared])})"
    yield from (
        f"{slope_name} = {slope_name} + 0.0 * {label_name}" for slope_name, label_name in zip(slope, y, strict=True)
    )
    yield from episode_text.reward(declared)


def _predicted(declared: Declaration, head: str, place: int) -> Iterator[str]:
    """The answer and the label of a head that are predictions, and the derivatives of the answer by group."""
    for student, letter in ((True, "f"), (False, "y")):
        if declared.prediction(student, head) is None:
            continue
        fed = [k for k, _ in predictions.names(declared, student, head)]
        argument_text = ", ".join([*(_output(k, head) for k in fed), *(f"n_{name}" for name in declared.names)])
        targets = ", ".join([word_of(head, letter), *(_named("by", k, head) for k in fed if student)])
        yield f"{targets}{',' if not student else ''} = {predictions.function(student, head)}({argument_text})"
        if not student:
            yield f"{word_of(head, 'y')} = {word_of(head, 'y')} + labels[{place}:{place + 1}]"


def _output(k: int, head: str) -> str:
    """Return the output of a group, a term of an answer or a label."""
    return f"total({_named('a', k, head)} * phi_{k})"


def _slope(declared: Declaration, k: int, head: str) -> str:
    """The derivative of the loss with respect to the output of a group for a head."""
    slope = word_of(head, "slope")
    return slope if declared.prediction(True, head) is None else f"{slope} * {_named('by', k, head)}"


def _named(letter: str, k: int, head: str) -> str:
    """The name of the readout, or another number, of a group for a head."""
    return f"{letter}_{k}_{head}" if head else f"{letter}_{k}"


def _read(declared: Declaration, k: int) -> Iterator[str]:
    """Load fields z, squared norms q, readouts and scalars of a group."""
    students, group = len(declared.students), declared.groups[k]
    begin = 0 if k < students else students
    for place, slot in enumerate(group.slots):
        slot_counts = [len(g.slots) for g in declared.groups[:k]]
        side_counts = [count if i >= begin else 0 for i, count in enumerate(slot_counts)]
        source = "vv" if k < students else "square"
        yield f"z_{k}_{slot} = fields[{_rows(slot_counts, k, place)}]"
        yield f"q_{k}_{slot} = column({source}[{_rows(side_counts, k, place)}], fields)"
        if k < students and declared.weights == "normalised":
            yield f"r_{k}_{slot} = np.sqrt(q_{k}_{slot})"
            yield f"z_{k}_{slot} = z_{k}_{slot} / r_{k}_{slot}"
    for head in (readout.head for number, readout in declared.fixed_readouts() if number == k):
        yield f"{_named('a', k, head)} = column({written_name(k, head)}, fields)"
    if k < students:
        counts = [len(g.own) for g in declared.groups[:k]]
        readouts = {readout.word: readout.head for readout in group.readouts}
        for place, word in enumerate(group.own):
            name = _named("a", k, readouts[word]) if word in readouts else f"s_{k}_{word}"
            yield f"{name} = column(scalars[{_rows(counts, k, place)}], fields)"


def _value(declared: Declaration, k: int) -> Iterator[str]:
    """phi of a group and its derivatives for students; the share before it."""
    students, group = len(declared.students), declared.groups[k]
    unit = k < students and declared.weights == "normalised"
    z = [f"z_{k}_{slot}" for slot in group.slots]
    q = ["1.0" if unit else f"q_{k}_{slot}" for slot in group.slots]
    last_arguments = [*(f"s_{k}_{word}" for word in group.scalars), *(f"n_{name}" for name in declared.names)]

    def results(head: str, letter: str, middle: list[str]) -> str:
        if k >= students:
            return f"({head},)"
        slots = [f"{letter}_{k}_{kind}_{slot}" for kind in "zq" for slot in group.slots]
        return ", ".join([head, *slots, *middle, *(f"{letter}_{k}_s_{word}" for word in group.scalars)])

    share = "0.0"
    if group.share is not None:
        share = f"p_{k}"
        yield f"{results(f'logit_of_{k}', 'l', [])} = logit_{k}({', '.join([*z, *q, *last_arguments])})"
        yield f"p_{k} = {group.share.word}(logit_of_{k} + 0.0 * {z[0]})"
    yield f"{results(f'phi_{k}', 'u', [f'u_{k}_p'])} = unit_{k}({', '.join([*z, *q, share, *last_arguments])})"


def _derivatives(declared: Declaration, k: int) -> Iterator[str]:
    """The rows c, e and d of the gradient of a group of students."""
    group, ruled = declared.groups[k], declared.ruled(declared.groups[k])
    mixed = group.share is not None and group.share.word == "softmax"  # top1 has the derivative 0 almost everywhere
    fed = [head for head in declared.force if declared.readout(k, head)]
    weights = [f"{_slope(declared, k, head)} * {_named('a', k, head)}" for head in fed]
    yield f"weight_{k} = {' + '.join([*weights, f'0.0 * z_{k}_{group.slots[0]}'])}"
    if mixed and not declared.several and not declared.predictions:
        yield f"A_{k} = a_{k} * u_{k}_p"
        yield f"h_{k} = slope * p_{k} * (A_{k} - total(p_{k} * A_{k}))"
    elif mixed:
        yield f"A_{k} = weight_{k} * u_{k}_p"
        yield f"h_{k} = p_{k} * (A_{k} - total(p_{k} * A_{k}))"

    def row(kind: str) -> str:
        return _gradient(declared, k, kind)

    for slot in group.slots:
        if slot in ruled:
            continue
        place = f"{k}_{slot}"
        yield f"c_{place} = {row(f'z_{slot}')}"
        if declared.weights == "normalised":
            yield f"e_{place} = -c_{place} * z_{place} / q_{place}"
            yield f"c_{place} = c_{place} / r_{place}"
        elif norms(declared):
            yield f"e_{place} = {row(f'q_{slot}')}"
    for readout in group.readouts:
        if readout.trained and readout.word not in ruled:
            slope = f"{_slope(declared, k, readout.head)} * " if readout.head in declared.force else "0.0 * "
            yield f"d_{k}_{readout.word} = {slope}phi_{k} + 0.0 * z_{k}_{group.slots[0]}"
    for word in group.scalars:
        if word in ruled:
            continue
        yield f"d_{k}_{word} = {row(f's_{word}')}"


def _gradient(declared: Declaration, k: int, kind: str) -> str:
    """The derivative of the loss with respect to a field, squared norm or number of the units of a group."""
    share = declared.groups[k].share
    mixed = share is not None and share.word == "softmax"
    return f"weight_{k} * u_{k}_{kind}" + (f" + h_{k} * l_{k}_{kind}" if mixed else "")


def _ruled(declared: Declaration, k: int) -> Iterator[str]:
    """The rows of vectors and numbers that move by rules."""
    group = declared.groups[k]
    slots = [f"z_{k}_{slot}" for slot in group.slots]
    unit_numbers = [f"s_{k}_{word}" for word in group.scalars]
    unit_numbers += [f"column(own_{k}_{word}, fields)" for word in declared.constants(group)]
    shared = [f"n_{name}" for name in declared.names]
    mixed = group.share is not None and group.share.word == "softmax"
    for word in declared.ruled(group):
        rule = declared.rule(group, word)
        assert rule is not None
        read, kind = rule.tree.names(), f"z_{word}" if word in group.slots else f"s_{word}"
        df, dphi, value = "0.0", "0.0", "value" if "l" in read else "0.0"
        if word == "a":
            df = f"phi_{k}"
        else:
            dphi = f"u_{k}_{kind}" if "dphi" in read else dphi
            if "df" in read or "grad" in read:
                df = f"a_{k} * u_{k}_{kind}"
                df += f" + p_{k} * (A_{k} - total(p_{k} * A_{k})) * l_{k}_{kind}" if mixed else ""
        norm = [looks.GNORM] if looks.normed(declared) else []
        norm += [REWARD] if declared.episode is not None else []
        call_arguments = [*slots, *unit_numbers, f"a_{k}", "f", "y", value, "slope", df, dphi, *norm, *shared]
        target = f"c_{k}_{word}" if word in group.slots else f"d_{k}_{word}"
        yield f"{target} = rule_{k}_{word}({', '.join(call_arguments)})[0] + 0.0 * {slots[0]}"
        if word in group.slots and norms(declared):
            yield f"e_{k}_{word} = 0.0 * {slots[0]}"


def _draw(declared: Declaration, parameter_text: str) -> str:
    shared = "".join(f", n_{name}" for name in declared.names)
    noise_text = "normal" if declared.law is None else f"noise_of(normal{shared})[0]"
    return f"def draw(uniform, normal, {parameter_text}):\n    return noise * {noise_text}\n"


def _update(declared: Declaration, parameter_text: str) -> str:
    """`update(vv, vg, gg, means, scalars, step_size, ..)`: u - h (g + e u + lambda u) or the sphere's; s - h dl/ds."""
    head = f"def update(vv, vg, gg, means, scalars, step_size, {parameter_text}):\n"
    inner = "decay + means[: vv.size]" if norms(declared) else "decay"
    free = [f"a = 1.0 - step_size * moving * ({inner})", "b = -step_size * moving"]
    sphere = [
        "h = step_size * moving",
        "a = 1.0 + h * vg / vv",
        "ratio = first / np.sqrt(a * a * vv - 2.0 * h * a * vg + h * h * gg)",
        "b = -h * ratio",
        "a = 1.0 + (moving > 0.0) * (a * ratio - 1.0)",
    ]
    last = "return a, b, scalars - step_size * learning * means[means.size - scalars.size :]"
    lines = [*(sphere if declared.weights == "sphere" else free), last]
    return head + "".join(f"    {line}\n" for line in lines)
