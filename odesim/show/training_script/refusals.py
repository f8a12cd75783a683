"""Features that training scripts do not support, each with the sentence of its error."""

from collections.abc import Iterator
from typing import Any

from derivations.contract import System, UsageError
from derivations.declare import schedules, spectra
from derivations.declare.declaration import Declaration
from derivations.declare.parameter_class import rows


def require(system: System, parameters: Any) -> None:
    """Raise `UsageError` for a system that is not declared, and for the first feature that cannot be exported."""
    declared = getattr(parameters, "declaration", None)
    if not isinstance(declared, Declaration):
        raise UsageError(
            f"{system.name} is not a declared model, and odesim exports only declared models; write a "
            "declaration (docs/own-model.md), or start from a model of the gallery"
        )
    for feature in features(declared, parameters):
        raise UsageError(f"{system.name} cannot be exported: {feature}")


def features(declared: Declaration, parameters: Any) -> Iterator[str]:
    """Return the unsupported features of a declaration."""
    if declared.stages or declared.stage:
        yield "it is trained in several stages, but a script has one"
    if declared.limit == "batch":
        yield "its steps are giant (limit = 'batch'), but a script has steps of the flow and the online limit"
    if declared.rules:
        yield f"{declared.rules[0].name} is trained by a rule that is not a gradient; `odesim simulate` trains it"
    if declared.episode is not None:
        yield "it learns by rewards of episodes"
    if declared.look is not None:
        yield "it uses a sample more than once"
    if declared.memories:
        yield f"it updates a memory while it trains (memory {declared.memories[0].name})"
    if declared.several:
        yield "its network has several heads"
    if declared.predicted:
        yield "its answer is a prediction of its groups and not their sum"
    if any(group.copied for group in declared.teachers):
        yield "its teacher is a copy of its students"
    yield from _changing(parameters)
    yield from _inputs(declared, parameters)


def _changing(parameters: Any) -> Iterator[str]:
    for schedule in schedules.active(parameters):
        if schedule.seen:
            yield f"its {schedule.name} depends on the order parameters ({schedule.seen[0]})"
        if schedule.name in parameters.declaration.names:
            yield f"its number {schedule.name} is time-dependent"
        if schedule.name == "batch":
            yield "its batch is time-dependent"


def _inputs(declared: Declaration, parameters: Any) -> Iterator[str]:
    inputs = declared.inputs
    if inputs is None:
        return
    if inputs.spectrum is not None:
        yield "its inputs have a spectrum; state them as blocks"
    elif not inputs.blocks:
        yield "its inputs come from a file"
    else:
        blocks = spectra.blocks(parameters)
        assert blocks is not None
        total, smallest = rows(parameters).total, int(blocks.dimension.min())
        if smallest < total:
            yield f"a block of its inputs has {smallest} coordinates for {total} vectors; take a larger d"
