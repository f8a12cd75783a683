"""The parameters of a model with several stages, and of each stage.

The user has one class: the numbers of [training], and those of every stage with the stage's name in front,
`second_step`. A stage computes with a class of the same values that has the plain names:

    the model: step, second_step   <->   stage second: hidden_step, step

Both conversions are renamings and lose no values. A number that every stage replaces is not a parameter of the
model.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

from derivations.contract import Dynamics, UsageError
from derivations.declare.declaration import Declaration

HIDDEN = "hidden"
"""Prefix of a number of [training] that a stage replaces."""
BEGIN = "derivations.declare.beginnings:begin"
Field = tuple[str, Any, Any]
"""Name, type and `dataclasses.field` of a parameter."""
Plain = Callable[[Declaration], list[Field]]
"""Function that returns the fields of a declaration without stages."""


def fields_of(declared: Declaration, plain: Plain) -> list[Field]:
    """The fields of a model with several stages: those of [training] that a stage uses, and those of stages."""
    model_fields = [field for field in plain(declared) if field[0] not in _replaced(declared)]
    for stage in declared.stages:
        stage_fields = {name: (kind, field) for name, kind, field in plain(stage)}
        for name in stage.own:
            kind, field = stage_fields[name]
            _add(declared, model_fields, (named(stage.stage, name), kind, _said(field, stage.stage)))
    return model_fields


def of_stage(stage: Declaration, model: list[Field]) -> list[Field]:
    """The fields of the model under their names in a stage."""
    names, stage_fields = renamed(stage, [name for name, _, _ in model]), []
    for name, kind, field in model:
        _add(stage, stage_fields, (names.get(name, name), kind, field))
    return stage_fields


def renamed(stage: Declaration, parameter_names: list[str]) -> dict[str, str]:
    """The parameters of the model that have another name in a stage, with that name."""
    hidden = {name: f"{HIDDEN}_{name}" for name in stage.own if name in parameter_names}
    return hidden | {named(stage.stage, name): name for name in stage.own}


def named(stage: str, name: str) -> str:
    """The full name of a parameter of a stage.

    >>> named("second", "step")
    'second_step'
    """
    return f"{stage}_{name}"


def values(parameters: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """The values of parameters by name; `names` lists renamed ones."""
    return {names.get(f.name, f.name): getattr(parameters, f.name) for f in dataclasses.fields(parameters)}


@dataclasses.dataclass(frozen=True)
class Between:
    """Conversions between the parameters of a model, class `model`, and those of one of its stages, class `own`.

    Parameters are recognised by their declaration, because equal declarations may have several classes.
    """

    stage: Declaration
    model: type
    own: type

    @functools.cached_property
    def names(self) -> dict[str, str]:
        """The parameters of the model that have another name in the stage."""
        return renamed(self.stage, [field.name for field in dataclasses.fields(self.model)])

    def adapt(self, parameters: Any) -> Any:
        """The parameters of the model converted to the stage; those of a stage unchanged."""
        return parameters if parameters.declaration.stage else self.own(**values(parameters, self.names))

    def stated(self, parameters: Any) -> Any:
        """The parameters of the stage converted to the model, as the user writes them."""
        if not parameters.declaration.stage:
            return parameters
        return self.model(
            **values(parameters, {stage_name: model_name for model_name, stage_name in self.names.items()})
        )

    def explicit(self, names: frozenset[str]) -> frozenset[str]:
        """Names of the user's explicit parameters, converted to the stage."""
        return frozenset(self.names.get(name, name) for name in names)


def dynamics(train: Dynamics, between: Between, step_symbol: str) -> Dynamics:
    """A stage of a model, derived from the single stage of a model without stages.

    Its horizon is its duration.
    """
    stage = between.stage

    def stepped(parameters: Any, step_size: float, explicit: frozenset[str]) -> Any:
        return train.stepped(parameters, step_size, between.explicit(explicit))

    return dataclasses.replace(
        train,
        name=stage.stage,
        horizon=lambda parameters: stage.until - stage.begin,
        stepped=stepped,
        step_symbol=step_symbol,
        adapt=between.adapt,
        stated=between.stated,
        begin=BEGIN if stage.changes else "",
    )


def steps(declared: Declaration) -> dict[str, str]:
    """The steps of an online limit and their symbols: the common one, and those of stages."""
    stage_names = [stage.stage for stage in declared.stages if "step" in stage.own]
    common = {} if stage_names and len(stage_names) == len(declared.stages) else {"step": "eta"}
    return common | {named(name, "step"): f"eta_{name}" for name in stage_names}


def _replaced(declared: Declaration) -> set[str]:
    """The parameters that every stage replaces."""
    return set.intersection(*(set(stage.own) for stage in declared.stages))


def _said(field: Any, stage: str) -> Any:
    """A field whose description names the stage."""
    metadata = {**field.metadata, "meaning": f"stage {stage}: {field.metadata['meaning']}"}
    return dataclasses.field(default=field.default, metadata=metadata)


def _add(declared: Declaration, model_fields: list[Field], field: Field) -> None:
    if any(field[0] == name for name, _, _ in model_fields):
        raise UsageError(f"two parameters of {declared.name} are called {field[0]}: rename the stage, or the other")
    model_fields.append(field)
