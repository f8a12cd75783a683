"""The families of models, and what each of them asks of a simulation before it starts."""

import dataclasses

from derivations.contract import Model, load
from derivations.patterns import PatternModel
from derivations.tokens import TokenModel
from odesim.case import Case


def family(case: Case) -> type:
    """The family of the stage's model: `Model` (also where there is none), `PatternModel` or `TokenModel`."""
    reference = case.system.stage(case.stage).model
    return type(load(reference)) if reference else Model


def check_family(case: Case, method: str, batch: int, precision: str, backend: str) -> None:
    """The checks of the model's own family."""
    if family(case) is TokenModel:
        from odesim import token_simulation

        token_simulation.check(case, method, precision, backend)
    elif family(case) is PatternModel:
        from odesim import pattern_simulation

        pattern_simulation.check(case, method, batch, precision, backend)


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
