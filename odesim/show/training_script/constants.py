"""The constants of a training script with their meaning, and the sentences and the command of its first comment."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import derivations
from derivations.contract import System
from derivations.declare import batches, schedules
from derivations.declare.declaration import Declaration
from odesim.request.case import Case
from odesim.show.training_script.names import word
from odesim.show.training_script.starts import Start

LOSSES = {
    "squared": "(f - y)^2 / 2", "correlation": "-f y", "logistic": "log(1 + exp(-f sign(y)))",
    "hinge": "max(0, 1 - f sign(y))",
}  # fmt: skip
OUTPUTS = {"sum": "sum_i", "mean": "1/K sum_i", "root": "1/sqrt(K) sum_i", "trained": "sum_i a_i"}


def title(system: System) -> str:
    """The title of a system with its source."""
    source = str(system.source)
    return f"{system.title} ({source})" if source != "declared by the user" else system.title


def conventions(declared: Declaration, parameters: Any) -> Iterator[str]:
    """The conventions of a script, a line each."""
    for groups, letter in ((declared.students, "f"), (declared.teachers, "y")):
        for group in groups:
            if letter == "y" and declared.labelling and group.name not in declared.labelling:
                continue
            who = ("student" if letter == "f" else "teacher") + (f" {group.name}" if group.name else "")
            yield f"{who + ':':<9} {letter} = {OUTPUTS.get(group.readouts[0].output, 'sum_i a_i')} {group.text}"
    yield f"fields:   {_fields(declared)}"
    yield f"inputs:   {_inputs(declared)}"
    yield f"loss:     {LOSSES.get(declared.loss, 'as declared')}, the mean over a batch of fresh samples"
    rate = "eta / d" if declared.limit == "online" else "eta"
    time = "steps / d" if declared.limit == "online" else "steps x eta"
    yield f"step:     a learning rate of {rate} with eta = `step`; time = {time}"
    if declared.weights == "sphere":
        yield "weights:  on spheres: the tangential part of the gradient, then the norm is restored"
    if declared.weights == "normalised":
        yield "weights:  the network divides every vector by its norm"


def _fields(declared: Declaration) -> str:
    slots = list(dict.fromkeys(slot for group in declared.groups for slot in group.slots))
    each = ", ".join(f"{slot} stands for {slot}_i . x" for slot in slots)
    return f"{each}, without 1/sqrt(d)"


def _inputs(declared: Declaration) -> str:
    if declared.inputs is None:
        return "x ~ N(0, I)"
    if declared.inputs.clusters:
        return "x = mean + scale * N(0, I) of a cluster drawn at random"
    return "x = scale * N(0, I), a scale for each block of coordinates"


def constants(case: Case, start: Start) -> Iterator[tuple[str, Any, str]]:
    """Return the constants: name, value, comment."""
    parameters = case.parameters
    declared: Declaration = parameters.declaration
    named = {name: value for name, value in case.by_name.items() if value is not None}
    meaning = {f.name: f.metadata.get("meaning", "").partition(" (none")[0] for f in dataclasses.fields(parameters)}
    yield "seed", case.seed, "of the start and the samples"
    yield "d", int(parameters.d), "input dimension"
    for groups, what in ((declared.students, "units"), (declared.teachers, "teachers")):
        for group in groups:
            name = group.named(what)
            yield name, int(named.get(name, group.units)), f"number of {what if what == 'units' else 'teacher units'}"
    training = ["step", "noise", *(["decay"] if declared.weights != "sphere" else [])]
    training += [*declared.rate_names, *([declared.momentum.parameter] if declared.momentum is not None else [])]
    changing = {one.name for one in schedules.active(parameters)}
    for name in training:
        if name not in changing and (named.get(name) or name in ("step", *declared.rate_names, "momentum")):
            yield name, float(named[name]), meaning[name]
    yield "batch", int(batches.usual(parameters) or 1), "fresh samples of a step"
    for name in start.constants:
        yield name, float(named[name]), meaning[name]
    for name in declared.names:
        yield word(name), float(named[name]), meaning[name]
    yield (
        "until",
        float(case.until),
        "end of the run on the clock, " + ("steps / d" if declared.limit == "online" else "steps x step"),
    )
    yield "saves", case.save_points, "number of snapshots in the log"


def command(case: Case) -> str:
    """The command that reads the log of a script."""
    given = "".join(f" -p {name}={case.by_name[name]}" for name in sorted(case.explicit) if name != "d")
    reference = derivations.reference(case.system)
    return f"--system {Path(reference).name}{given}"
