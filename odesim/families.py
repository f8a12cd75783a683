"""What a stage's model is asked beyond the options of a simulation: by its family of data, and by its step size."""

import dataclasses
import importlib
from typing import Any

from derivations.bags import BagModel
from derivations.contract import load
from derivations.patterns import PatternModel
from derivations.tokens import TokenModel
from odesim.case import Case

FAMILIES = {
    PatternModel: "odesim.pattern_simulation",
    BagModel: "odesim.bag_simulation",
    TokenModel: "odesim.token_simulation",
}
"""The module with `check` and `make_engine` of every family; models of Gaussian inputs have those of `simulation`."""


def family(case: Case) -> Any:
    """The module of the family of the stage's model; `None` for Gaussian inputs."""
    reference = case.system.stage(case.stage).model
    name = FAMILIES.get(type(load(reference))) if reference else None
    return importlib.import_module(name) if name else None


def at_step(case: Case, step_size: float) -> Case:
    """The case with the parameters that the step size implies, and its horizon unless it was given."""
    stage = case.system.stage(case.stage)
    parameters = stage.stepped(case.parameters, step_size, case.explicit)
    if parameters is case.parameters:
        return case
    changed = {
        f.name
        for f in dataclasses.fields(parameters)
        if getattr(parameters, f.name) != getattr(case.parameters, f.name)
    }
    until = case.until if "until" in case.options else stage.horizon(parameters)
    return dataclasses.replace(case, parameters=parameters, explicit=case.explicit | changed, until=until)
