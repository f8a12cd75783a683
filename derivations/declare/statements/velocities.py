r"""The formulas of a page with momentum: the factor of a constant beta, and the motion of velocities \nu."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from derivations.declare.declaration import Declaration, Group
from derivations.declare.statements import notation
from derivations.declare.statements.notation import RATE

if TYPE_CHECKING:
    from derivations.declare.statements.motion import Writer

FACTOR = r"(1 - \beta)"


def is_fixed(declared: Declaration) -> bool:
    """Return True for a constant momentum beta, which changes only the step."""
    return declared.momentum is not None and not declared.inertial


def term(writer: "Writer", superscript: str, i: str, on: str) -> str:
    """The drift of a student vector, without its step, along another vector: D_i[u], or that of its velocity."""
    return rf"(\nu{superscript}_{i}\cdot {on})" if writer.declared.timed else f"D{superscript}_{i}[{on}]"


def step(declared: Declaration, text: str) -> str:
    """Return eta: the step, over 1 - beta if momentum is constant."""
    return rf"({text})/{FACTOR}" if is_fixed(declared) else text


def numbers(writer: "Writer", number: tuple[Group, str], factor: str, slope: str) -> list[str]:
    """The motion of a number (group, word) of the units by its slope, and of its velocity.

    `factor` starts with the minus sign.
    """
    left = f"{RATE}{writer.answers.number(*number)}"
    if not writer.declared.timed:
        return [f"{left} = {factor}{slope}"]
    velocity = rf"\nu^{{{notation.name(number[0].named(number[1]))}}}_i"
    return [f"{left} = {factor}{velocity}", rf"{RATE}{velocity} = \bigl({slope} - {velocity}\bigr)/\tau"]


def motion(writer: "Writer") -> Iterator[str]:
    """The motion of velocities, and the definition of beta or tau."""
    declared = writer.declared
    if is_fixed(declared):
        changing = any(schedule.name == "step" for schedule in writer.changing)
        if not (writer.online and changing):
            yield r"\eta = " + (r"\text{step}" if writer.online else "1") + f"/{FACTOR}"
        yield r"\beta = \text{momentum}"
    if not declared.timed:
        return
    s, t = ("", "") if writer.single else ("^{s}", "^{t}")
    first, second = rf"\nu{s}_i", rf"\nu{t}_k"
    yield (
        rf"{RATE}({first}\cdot u) = \bigl(D{s}_i[u] - {first}\cdot u\bigr)/\tau"
        r"\text{ for a vector u at rest; else the motion of u is added}"
    )
    between = rf"\bigl(D{s}_i[{second}] + D{t}_k[{first}] - 2\,{first}\cdot {second}\bigr)/\tau"
    noise = rf" + E{writer.above('st')}_{{ik}}/(B \tau^2)" if writer.online else ""
    yield rf"{RATE}({first}\cdot {second}) = {between}{noise}"
    yield r"\tau = \text{momentum\_time},\quad \nu\text{ velocities}"
