r"""The formulas of a page for a giant step: vectors and numbers after it, marked with a prime.

D_i[u] is the inner product with u of the gradient of vector i, with decay and constraint. The gradient lies in the span
of all vectors, except for the noise of the batch. Hence two gradients have the inner product sum_ab D_i[a] G^+_ab
D_k[b] + E_ik d/B.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from derivations.declare.declaration import Group
from derivations.declare.statements import notation

if TYPE_CHECKING:
    from derivations.declare.statements.motion import Writer


def motion(writer: "Writer") -> Iterator[str]:
    """The step of vectors and of their overlaps."""
    declared, pushed = writer.declared, writer.declared.momentum is not None
    s, t = ("", "") if writer.single else ("^{s}", "^{t}")
    first_slot = declared.students[0].slots[0] if writer.single else "s"
    second_slot = first_slot if writer.single else "t"
    first, second = rf"{first_slot}_i", rf"{second_slot}_k"
    products = rf"N{writer.above('st')}_{{ik}}"
    if pushed:
        yield from _velocities(writer, (s, t), (first, second), products)
    else:
        r, q = _speed(writer, "i"), _speed(writer, "k")
        yield rf"{first}'\cdot u = {first}\cdot u - \eta {r}D{s}_i[u]\text{{ for a vector u at rest}}"
        drifts = rf"{r}D{s}_i[{second}] + {q}D{t}_k[{first}]"
        yield rf"{first}'\cdot {second}' = {first}\cdot {second} - \eta\bigl({drifts}\bigr) + \eta^2 {r}{q}{products}"
    noise = rf" + E{writer.above('st')}_{{ik}}\,d/B" if declared.noisy else ""
    yield rf"{products} = \sum_{{a,b}} D{s}_i[u_a]\,(G^+)_{{ab}}\,D{t}_k[u_b]{noise}\text{{ over all vectors u}}"
    yield r"G_{ab} = u_a\cdot u_b,\quad G^+\text{ its pseudo-inverse}"
    if declared.weights == "sphere":
        yield rf"{first} = |{first}|\,{first}'/|{first}'|\text{{ after the step}}"
    if _speed(writer, "i"):
        yield r"r_i\text{ the factor of the step of vector i}"
    if not all(declared.moves(group, slot) for group in declared.students for slot in group.slots):
        yield r"\text{vectors that are not trained stay}"
    changing = [schedule.name for schedule in writer.changing]
    if "step" not in changing:
        yield r"\eta = \text{step}"
    if declared.noisy:
        yield r"B = \text{batch}"


def _speed(writer: "Writer", unit: str) -> str:
    """The factor of the step of a vector, if some vectors have one."""
    declared = writer.declared
    rated = any(declared.rate(group, slot) for group in declared.students for slot in group.slots)
    return rf"r_{unit}\," if rated else ""


def _velocities(
    writer: "Writer", superscripts: tuple[str, str], vectors: tuple[str, str], products: str
) -> Iterator[str]:
    """The step of velocities, then of vectors."""
    (s, t), u, momentum = superscripts, vectors[0], writer.declared.momentum
    assert momentum is not None
    nu, mu = rf"\nu{s}_i", rf"\nu{t}_k"
    damp = r"(1 - \beta)\," if momentum.timed else ""
    yield rf"{nu}'\cdot u = \beta\,{nu}\cdot u + {damp}D{s}_i[u]\text{{ for a vector u at rest}}"
    between = rf"\beta^2\,{nu}\cdot {mu} + \beta {damp}\bigl(D{s}_i[{mu}] + D{t}_k[{nu}]\bigr)"
    square = r"(1 - \beta)^2\," if momentum.timed else ""
    yield rf"{nu}'\cdot {mu}' = {between} + {square}{products}"
    push = rf"{damp}D{s}_i + \beta {nu}'" if momentum.nesterov else rf"{nu}'"
    r = _speed(writer, "i")
    bracket = rf"\bigl({push}\bigr)" if momentum.nesterov else push
    yield rf"{u}' = {u} - \eta {r}{bracket}\text{{, from which the overlaps of vectors and with velocities follow}}"
    yield r"\beta = \text{momentum}" if not momentum.timed else r"\beta = 1 - 1/\tau,\quad \tau = \text{momentum\_time}"


def numbers(writer: "Writer", number: tuple[Group, str], factor: str, slope: str) -> list[str]:
    """The step of a number (group, word) of the units by its slope; `factor` starts with the minus sign."""
    symbol, momentum = writer.answers.number(*number), writer.declared.momentum
    factor = factor.replace("-", "- ", 1)
    if momentum is None:
        return [f"{symbol}' = {symbol} {factor}{slope}"]
    velocity = rf"\nu^{{{notation.name(number[0].named(number[1]))}}}_i"
    damp = r"(1 - \beta)\," if momentum.timed else ""
    push = rf"\bigl({damp}{slope} + \beta {velocity}'\bigr)" if momentum.nesterov else f"{velocity}'"
    return [rf"{velocity}' = \beta {velocity} + {damp}{slope}", f"{symbol}' = {symbol} {factor}{push}"]
