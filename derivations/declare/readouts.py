"""Readouts: the weights of a group of units in the single answer of a network, or in that of each head.

    f_h(x) = sum over groups of sum_i a_hi phi(u_i . x, ..)

A network with one answer has only the head "", whose readout is called `a`; the readout of a head `one` is `a_one`.
"""

import dataclasses

from derivations.declare.grammar import Tree

COPIED = "copied"
"""Output of a copy of units with trained readouts: the readouts at the time of the copy."""
OUTPUTS = ("sum", "mean", "root", "trained")
"""The readout a_i of a group of K units: 1, 1/K, 1/sqrt(K), or numbers that are trained or read from a file."""


@dataclasses.dataclass(frozen=True)
class Readout:
    """The readout of a group for a head: one of `OUTPUTS`, `COPIED`, or "own".

    A readout "own" is an `expression` in the number j = 1, 2, .. of the unit.
    """

    head: str
    output: str
    expression: Tree | None = None

    @property
    def trained(self) -> bool:
        """True if it is trained."""
        return self.output == "trained"

    @property
    def word(self) -> str:
        """Return the name of the readout among the numbers of a student unit.

        >>> Readout("", "sum").word, Readout("one", "trained").word
        ('a', 'a_one')
        """
        return word_of(self.head)


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Answer of a head, or its label, as an expression in the outputs of the contributing groups.

    An output has the name of its group; the sum of all is `f` for students and `y` for teachers.
    """

    head: str
    text: str
    tree: Tree


def word_of(head: str, letter: str = "a") -> str:
    """The name of the readout for a head, or of another quantity of the head.

    >>> word_of(""), word_of("one"), word_of("one", "error")
    ('a', 'a_one', 'error_one')
    """
    return f"{letter}_{head}" if head else letter


def written_name(number: int, head: str) -> str:
    """Return the name of a constant readout among the arguments of a model.

    >>> written_name(1, ""), written_name(1, "two")
    ('readout_1', 'readout_1_two')
    """
    return f"readout_{number}_{head}" if head else f"readout_{number}"
