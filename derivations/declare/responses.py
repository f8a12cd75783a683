"""The per-sample functions of a declaration as text: units, logits and loss with their derivatives in the fields.

They are differentiated before any mean. Compressed SGD and the sampled tier use them, and a test compares them with
automatic differentiation of the loss.
"""

from collections.abc import Sequence
from typing import Any

from derivations.declare import looks, noise, predictions, symbols
from derivations.declare.declaration import Declaration, Group
from derivations.declare.episodes import COUNT, REWARD, SAMPLES
from derivations.declare.readouts import word_of

SAMPLE = ("a", "f", "y", "l", "dl", "df", "dphi")
"""Names of a sample and its unit in a rule, in addition to fields and numbers."""


def unit(declaration: Declaration, number: int) -> list[str]:
    """`unit_k(z.., q.., p, scalars.., numbers..)` -> phi, dphi/dz_s, 2 dphi/dq_s, dphi/dp, dphi/dscalar.

    If the unit has a share, also `logit_k(z.., q.., scalars.., numbers..)` -> l, dl/dz_s, 2 dl/dq_s, dl/dscalar. Every
    argument may be a number or an array, the group's units first.
    """
    import sympy

    group, names = declaration.groups[number], declaration.names
    scalars = [sympy.Symbol(name, real=True) for name in group.scalars]
    numbers = [sympy.Symbol(name, real=True) for name in names]
    z, q = [symbols.slot(s) for s in group.slots], [symbols.square(s) for s in group.slots]
    common = [*scalars, *numbers]
    phi = symbols.build(group.unit, group.slots)
    outputs = [phi, *derivatives(phi, z, q), sympy.diff(phi, symbols.share()), *(sympy.diff(phi, s) for s in scalars)]
    texts = [symbols.function(f"unit_{number}", [*z, *q, symbols.share(), *common], outputs)]
    if group.share is not None:
        logit = symbols.build(group.share.parts[0], group.slots)
        outputs = [logit, *derivatives(logit, z, q), *(sympy.diff(logit, s) for s in scalars)]
        texts.append(symbols.function(f"logit_{number}", [*z, *q, *common], outputs))
    return texts


def derivatives(expression: Any, z: list[Any], q: list[Any]) -> list[Any]:
    """The derivatives in the fields, then twice those in the squared norms."""
    import sympy

    return [*(sympy.diff(expression, s) for s in z), *(2 * sympy.diff(expression, s) for s in q)]


def loss(declaration: Declaration) -> str:
    """`loss(f.., y.., numbers..)` -> l, dl/df..; of a logistic or hinge loss y is the label sign(y).

    There is one f and one y for each head in use, and l is the sum over these unless the loss contains them jointly.
    """
    import sympy

    heads = declaration.force
    f, y = ([sympy.Symbol(word_of(head, letter), real=True) for head in heads] for letter in "fy")
    if declaration.loss == "softmax":
        expression = _softmax(f, y)
    elif declaration.own_loss is not None:
        expression = _own_loss(declaration, f, y)
    else:
        expression = sympy.Add(*(_loss_of(declaration.loss, *pair) for pair in zip(f, y, strict=True)))
    numbers = [sympy.Symbol(name, real=True) for name in declaration.names]
    return symbols.function("loss", [*f, *y, *numbers], [expression, *(sympy.diff(expression, answer) for answer in f)])


def loss_of(declaration: Declaration) -> Any:
    """Return the loss of a network with one answer, an expression in f and y; in sign(y) for a label that is a sign.

    >>> from derivations.declare.reading import declaration
    >>> loss_of(declaration({"student": {"unit": "w"}}))
    (f - y)**2/2
    """
    import sympy

    if declaration.own_loss is not None:
        return symbols.build(declaration.own_loss, ())
    return _loss_of(declaration.loss, *(sympy.Symbol(letter, real=True) for letter in "fy"))


def _loss_of(word: str, f: Any, y: Any) -> Any:
    """The loss of one answer."""
    sign = symbols.own()["sign"](y)
    return {
        "squared": (f - y) ** 2 / 2,
        "correlation": -f * y,
        "logistic": symbols.own()["softplus"](-f * sign),
        "hinge": symbols.own()["relu"](1 - f * sign),
    }[word]


def _own_loss(declaration: Declaration, f: list[Any], y: list[Any]) -> Any:
    """Return the user's loss: of the answers of heads together if it contains them, else summed over the heads in
    use.
    """
    import sympy

    assert declaration.own_loss is not None
    expression = symbols.build(declaration.own_loss, ())
    if declaration.joint or not declaration.several:
        return expression
    plain = [sympy.Symbol(letter, real=True) for letter in "fy"]
    terms = (expression.subs(dict(zip(plain, pair, strict=True)), simultaneous=True) for pair in zip(f, y, strict=True))
    return sympy.Add(*terms)


def _softmax(f: list[Any], y: list[Any]) -> Any:
    """log sum_h exp f_h - f_k, k the head of the largest y, by log(exp a + exp b) = a + softplus(b - a)."""
    import sympy

    softplus, step = (symbols.own()[word] for word in ("softplus", "step"))
    total = f[-1]
    for answer in f[-2::-1]:
        total = answer + softplus(total - answer)
    chosen = sympy.Add(*(
        answer * sympy.Mul(*(step(label - other_label) for other_label in y if other_label is not label))
        for answer, label in zip(f, y, strict=True)
    ))  # fmt: skip
    return total - chosen


def prediction(declaration: Declaration, student: bool, head: str) -> str:
    """`prediction_f(outputs.., numbers..)` -> F and its derivative with respect to the output of every contributing
    group.

    `prediction_y` of a label has no derivatives.
    """
    import sympy

    declared_prediction = declaration.prediction(student, head)
    assert declared_prediction is not None
    fed = predictions.names(declaration, student, head)
    outputs = [sympy.Symbol(f"o_{number}", real=True) for number, _ in fed]
    places: dict[Any, Any] = {
        sympy.Symbol(name, real=True): output for (_, name), output in zip(fed, outputs, strict=True) if name
    }
    places[sympy.Symbol(predictions.SUMS["student" if student else "teacher"], real=True)] = sympy.Add(*outputs)
    expression = symbols.build(declared_prediction.tree, ()).xreplace(places)
    numbers = [sympy.Symbol(name, real=True) for name in declaration.names]
    slopes = [sympy.diff(expression, output) for output in outputs] if student else []
    return symbols.function(predictions.function(student, head), [*outputs, *numbers], [expression, *slopes])


def all_predictions(declaration: Declaration, heads: Sequence[str]) -> list[str]:
    """The texts of the predictions for some heads."""
    pairs = [(student, head) for student in (True, False) for head in heads]
    return [prediction(declaration, *pair) for pair in pairs if declaration.prediction(*pair) is not None]


def rule(declaration: Declaration, number: int, word: str) -> str:
    """`rule_k_word(z.., scalars.., constants.., a, f, y, l, dl, df, dphi, numbers..)` -> the coefficient of a rule.

    If a rule contains `gnorm`, or `R` with episodes, these precede the numbers.
    """
    import sympy

    group = declaration.groups[number]
    declared_rule = declaration.rule(group, word)
    assert declared_rule is not None
    dl, df, grad = (sympy.Symbol(name, real=True) for name in ("dl", "df", "grad"))
    expression = symbols.build(declared_rule.tree, group.slots).xreplace({grad: dl * df})
    sample = [*SAMPLE, *([looks.GNORM] if looks.normed(declaration) else [])]
    sample += [REWARD] if declaration.episode is not None else []
    names = [*group.scalars, *declaration.constants(group), *sample, *declaration.names]
    arguments = [*map(symbols.slot, group.slots), *(sympy.Symbol(name, real=True) for name in names)]
    return symbols.function(f"rule_{number}_{word}", arguments, [expression])


def rules(declaration: Declaration) -> list[str]:
    """The texts of all rules."""
    groups = enumerate(declaration.students)
    return [rule(declaration, number, word) for number, group in groups for word in declaration.ruled(group)]


def of_episodes(declaration: Declaration) -> list[str]:
    """`success(f, y, numbers..)` -> 0 or 1, and `reward(n, T, numbers..)` -> R, if there are episodes."""
    import sympy

    episode = declaration.episode
    if episode is None:
        return []
    texts = []
    for name, tree, words in (("success", episode.success, ("f", "y")), ("reward", episode.reward, (COUNT, SAMPLES))):
        arguments = [sympy.Symbol(word, real=True) for word in (*words, *declaration.names)]
        texts.append(symbols.function(name, arguments, [symbols.build(tree, ())]))
    return texts


def value(declaration: Declaration, number: int) -> str:
    """Return `value_k`, with the arguments of `unit_k`: only phi."""
    import sympy

    group = declaration.groups[number]
    z, q = [symbols.slot(s) for s in group.slots], [symbols.square(s) for s in group.slots]
    scalars = [sympy.Symbol(name, real=True) for name in (*group.scalars, *declaration.names)]
    phi = symbols.build(group.unit, group.slots)
    return symbols.function(f"value_{number}", [*z, *q, symbols.share(), *scalars], [phi])


def module(declaration: Declaration) -> str:
    """Return all of them as one text, with called functions first."""
    groups: list[Group] = list(declaration.groups)
    texts = [text for number in range(len(groups)) for text in unit(declaration, number)]
    texts += [value(declaration, number) for number in range(len(groups))]
    texts.append(loss(declaration))
    texts += [*all_predictions(declaration, declaration.heads), *rules(declaration)]
    texts += of_episodes(declaration)
    texts += [noise.text(declaration)] if declaration.law is not None else []
    body = "\n\n".join(texts)
    return "\n\n".join([*symbols.helpers(body), body])
