"""Answer of `odesim exponents`: information, leap and generative exponent of the teacher of a declared model."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from derivations.declare import exponents as theory
from odesim.errors import UsageError
from odesim.request.answer import Answer, Question, Table
from odesim.request.case import Case, plain
from odesim.request.trajectory import Variable

VERB = "exponents"
BARE = ""
"""Name of the single head of a network without heads."""


class Exponents(Answer):
    """Exponents of the teacher, for every selected head.

    Attributes:
        information: Least order at which the Hermite tensor of the label is not zero.
        leap: Largest order of the steps in which all directions are found.
        generative: The information exponent of the best transform of the label.
        order: Steps in which the directions are found, each a mapping with `order`, `count` and `directions`.

    With several heads each of these is a mapping by head.
    """

    @property
    def information(self) -> Any:
        """Least order at which the Hermite tensor of the label is not zero."""
        return self._of("information")

    @property
    def leap(self) -> Any:
        """Largest order of the steps in which all directions are found."""
        return self._of("leap")

    @property
    def generative(self) -> Any:
        """Information exponent of the best transform of the label, an upper bound if `generative_exact` is False."""
        return self._of("generative")

    @property
    def order(self) -> Any:
        """Steps in which the directions are found."""
        return self._of("order")

    def heads(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the headline numbers by head.

        Returns:
            Mappings by the name of the head; "" is that of the one head of a network without heads.
        """
        return self.numbers.get("heads", {BARE: self.numbers})

    def _of(self, name: str) -> Any:
        values = {head: numbers[name] for head, numbers in self.heads().items()}
        return values[BARE] if BARE in values else values

    def tables(self) -> Mapping[str, Table]:
        """Return the steps of every head as a table.

        Returns:
            The table "order": a row for every step, for the label y and, if that is easier, for its transforms T(y).
        """
        heads = self.heads()
        columns = ["head"] * (BARE not in heads) + ["label", "step", "order", "directions", "SGD samples", "flow time"]
        rows = []
        for head, numbers in heads.items():
            flights = [("y", numbers["order"])]
            if [s["order"] for s in numbers["order"]] != [s["order"] for s in numbers["generative_order"]]:
                flights.append(("T(y)", numbers["generative_order"]))
            for label, steps in flights:
                for k, step in enumerate(steps, 1):
                    costs = [theory.samples(step["order"]), theory.flow_time(step["order"])]
                    row = [label, k, step["order"], step["directions"], *costs]
                    rows.append([head, *row] if BARE not in heads else row)
        return {"order": (columns, rows)}


RESULT = Exponents


def question(case: Case) -> Question:
    """Return the question about the stage of a case.

    Raises `UsageError` for a system that is not declared.
    """
    if not hasattr(case.parameters, "declaration"):
        raise UsageError(
            f"exponents exist only for the teacher of a declared model, but {case.name} is not declared; "
            "declare its teacher in a file, like kawata_neuron of the gallery"
        )
    parameters = {name: plain(value) for name, value in sorted(case.by_name.items())}
    return Question.about(VERB, case.system, {"stage": case.stage, "parameters": parameters})


def answer(case: Case) -> Exponents:
    """Return the exponents of the labels of the stage of a case.

    Raises `UsageError` for a system that is not declared, and for a teacher without exponents.
    """
    asked_question = question(case)
    labels = theory.exponents(case.parameters)
    numbers = {label.head: _numbers(label) for label in labels}
    sentences = [line for label in labels for line in _sentences(label)]
    noisy = case.parameters.noise is None or case.parameters.noise > 0
    if noisy and not any(label.binary for label in labels):
        sentences.append("label noise that does not depend on the input changes none of these exponents")
    headline = numbers[BARE] if BARE in numbers else {"heads": numbers}
    return Exponents(asked_question, _variables(labels), headline, tuple(sentences))


def _numbers(label: theory.Exponents) -> dict[str, Any]:
    """The headline numbers of a head."""
    return {
        "information": label.information,
        "leap": label.leap,
        "generative": label.generative,
        "generative_leap": label.generative_leap,
        "generative_exact": label.exact,
        "directions": label.directions,
        "order": _steps(label.steps),
        "generative_order": _steps(label.generative_steps),
        "samples": theory.samples(label.leap),
        "flow_time": theory.flow_time(label.leap),
        "samples_transformed": theory.samples(label.generative_leap),
        "flow_time_transformed": theory.flow_time(label.generative_leap),
        "student": label.student.order,
        **({"student_reason": label.student.reason} if label.student.order is None else {}),
    }


def _steps(steps: Sequence[theory.Step]) -> list[dict[str, Any]]:
    return [{"order": step.order, "count": len(step.basis), "directions": step.text} for step in steps]


def _sentences(label: theory.Exponents) -> list[str]:
    """The answer about a head in words."""
    of = f"head {label.head}: " if label.head else ""
    at_most = "" if label.exact else "at most "
    exponents = f"information {label.information}, generative {at_most}{label.generative}"
    if (label.leap, label.generative_leap) != (label.information, label.generative):
        exponents = f"information {label.information}, leap {label.leap}"
        exponents += f"; generative {at_most}{label.generative}, leap {label.generative_leap}"
    lines = [f"{of}{exponents}: {_costs(label.leap)}"]
    if label.generative_leap < label.leap:
        lines.append(f"{of}with a transform of the label, or samples used twice: {_costs(label.generative_leap)}")
    if label.binary:
        lines.append(f"{of}the loss depends only on the sign of the label, whose transforms change nothing")
    if label.student.order is None:
        lines.append(f"{of}the order at which the student learns is unknown: {label.student.reason}")
    elif label.student.order != label.information:
        lines.append(f"{of}this student sees order {label.student.order} first: {_costs(label.student.order)}")
    return lines


def _costs(k: int) -> str:
    """Return samples and time of an exponent in words.

    >>> _costs(3)
    'd^2 samples of SGD, flow time d^0.5'
    """
    return f"{theory.samples(k)} samples of SGD, flow time {theory.flow_time(k)}"


def _variables(labels: Sequence[theory.Exponents]) -> dict[str, Variable]:
    """The labelled arrays: exponents by head, and steps by head and step, 0 if a head has fewer."""

    def by_head(value: Callable[[theory.Exponents], int], meaning: str) -> Variable:
        return Variable(("head",), np.array([value(label) for label in labels]), meaning)

    def by_step(value: Callable[[theory.Exponents], Sequence[int]], dim: str, meaning: str) -> Variable:
        rows = [list(value(label)) for label in labels]
        longest = max(map(len, rows))
        return Variable(("head", dim), np.array([row + [0] * (longest - len(row)) for row in rows]), meaning)

    return {
        "information": by_head(lambda label: label.information, "information exponent"),
        "leap": by_head(lambda label: label.leap, "leap exponent"),
        "generative": by_head(lambda label: label.generative, "generative exponent"),
        "generative_leap": by_head(lambda label: label.generative_leap, "leap exponent of transforms of the label"),
        "student": by_head(
            lambda label: label.student.order or 0, "least order at which the student learns (0: not known)"
        ),
        "order": by_step(lambda label: [s.order for s in label.steps], "step", "order of a step (0: none)"),
        "count": by_step(lambda label: [len(s.basis) for s in label.steps], "step", "directions found in a step"),
        "generative_order": by_step(
            lambda label: [s.order for s in label.generative_steps],
            "generative_step",
            "the same by transforms (0: none)",
        ),
        "generative_count": by_step(
            lambda label: [len(s.basis) for s in label.generative_steps],
            "generative_step",
            "directions found in a step",
        ),
    }
