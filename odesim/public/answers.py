"""Answers beyond one trajectory.  Nothing is written."""

from typing import TYPE_CHECKING, Any

from odesim.public.speak import chosen, known, speaking

if TYPE_CHECKING:
    from derivations.contract import System
    from odesim.study.answers.exponents import Exponents


@speaking
def exponents(
    system: "str | System", *, preset: str | None = None, stage: str | None = None, **parameters: Any
) -> "Exponents":
    """Return the information, leap and generative exponent of the teacher of a declared model, and their costs.

    Arguments:
        system: Its name, a file that declares it, or a `System`.
        preset: A named parameter set of the system.
        stage: The stage whose label is meant; by default the first.
        parameters: Parameters of the system.

    Returns:
        An `Exponents` with `information`, `leap`, `generative` and `order`, the steps in which directions are found;
        `summary()` has their costs and what this student sees (docs/exponents.md).

    Raises:
        UsageError: A system that is not declared, or a teacher without exponents: inputs that are not isotropic, copies
            of students, more than four directions, a softmax loss or one of its own.

    Example:
        >>> import odesim
        >>> staircase = odesim.declare(student={"unit": "relu(w)"}, teacher={"unit": "u + 0.6*u*v + 0.35*u*v*w"})
        >>> answer = odesim.exponents(staircase)
        >>> answer.information, answer.leap, [step["directions"] for step in answer.order]
        (1, 1, ['u', 'v', 'w'])
        >>> odesim.exponents("ben_arous_2021")
        Exponents of ben_arous_2021
          information 3, generative 1: d^2 samples of SGD, flow time d^0.5
          with a transform of the label, or samples used twice: d samples of SGD, flow time 1
    """
    from odesim.request.case import Case
    from odesim.study.answers.exponents import answer

    system = chosen(system)
    known(system, parameters, ("preset", "stage"), "exponents")
    return answer(Case.build(system, parameters, preset=preset, stage=stage))
