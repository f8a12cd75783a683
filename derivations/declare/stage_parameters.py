"""The parameters of a model of several stages, and those by which one stage of it computes.

A user sees one class: the numbers of [training], and of every stage those that it has for itself, with its name in
front, `second_step`.  A stage computes by a class of the same values in which its own numbers have their plain names:

    the model: step, second_step   <->   stage second: hidden_step, step

Both ways are renamings, so that nothing is lost.  A number that every stage has for itself is none of the model.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

from derivations.contract import Dynamics, UsageError
from derivations.declare.declaration import Declaration

HIDDEN = "hidden"
"""In front of the number of [training] that a stage has another in the place of."""
BEGIN = "derivations.declare.beginnings:begin"
Field = tuple[str, Any, Any]
"""Name, type and `dataclasses.field` of a parameter."""
Plain = Callable[[Declaration], list[Field]]
"""gives the fields of a declaration without stages."""


def fields_of(declared: Declaration, plain: Plain) -> list[Field]:
    """The fields of a model of several stages: those of [training] that a stage reads, and those of stages."""
    found = [field for field in plain(declared) if field[0] not in _replaced(declared)]
    for stage in declared.stages:
        known = {name: (kind, field) for name, kind, field in plain(stage)}
        for name in stage.own:
            kind, field = known[name]
            _add(declared, found, (named(stage.stage, name), kind, _said(field, stage.stage)))
    return found


def of_stage(stage: Declaration, model: list[Field]) -> list[Field]:
    """The fields of the model as those by which a stage computes."""
    names, found = renamed(stage, [name for name, _, _ in model]), []
    for name, kind, field in model:
        _add(stage, found, (names.get(name, name), kind, field))
    return found


def renamed(stage: Declaration, every: list[str]) -> dict[str, str]:
    """The parameters of the model that have another name in a stage, and that name."""
    found = {name: f"{HIDDEN}_{name}" for name in stage.own if name in every}
    return found | {named(stage.stage, name): name for name in stage.own}


def named(stage: str, name: str) -> str:
    """The name of a stage's own parameter.

    >>> named("second", "step")
    'second_step'
    """
    return f"{stage}_{name}"


def values(parameters: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """The values of parameters by their names, some of which have new ones."""
    return {names.get(f.name, f.name): getattr(parameters, f.name) for f in dataclasses.fields(parameters)}


@dataclasses.dataclass(frozen=True)
class Between:
    """The ways between the parameters of a model and those of one of its stages; `model` and `own` are the classes.

    Parameters are told apart by the declaration that they carry: equal declarations may have several classes.
    """

    stage: Declaration
    model: type
    own: type

    @functools.cached_property
    def names(self) -> dict[str, str]:
        """The parameters of the model that have another name in the stage."""
        return renamed(self.stage, [field.name for field in dataclasses.fields(self.model)])

    def adapt(self, parameters: Any) -> Any:
        """The parameters of the model as those of the stage; those of a stage as they are."""
        return parameters if parameters.declaration.stage else self.own(**values(parameters, self.names))

    def stated(self, parameters: Any) -> Any:
        """The parameters of the stage as those of the model, as the user states them."""
        if not parameters.declaration.stage:
            return parameters
        return self.model(**values(parameters, {one: other for other, one in self.names.items()}))

    def explicit(self, names: frozenset[str]) -> frozenset[str]:
        """Names of parameters that the user gave, as the stage calls them."""
        return frozenset(self.names.get(name, name) for name in names)


def dynamics(train: Dynamics, between: Between, step_symbol: str) -> Dynamics:
    """A stage of a model, made of the one stage of a model without any.

    Its horizon is its duration, as that of every stage.
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
    """The steps of an online limit and their symbols: of all stages, and those that stages have for themselves."""
    own = [stage.stage for stage in declared.stages if "step" in stage.own]
    common = {} if own and len(own) == len(declared.stages) else {"step": "eta"}
    return common | {named(name, "step"): f"eta_{name}" for name in own}


def _replaced(declared: Declaration) -> set[str]:
    """The parameters that every stage has for itself."""
    return set.intersection(*(set(stage.own) for stage in declared.stages))


def _said(field: Any, stage: str) -> Any:
    """A field whose meaning names the stage."""
    metadata = {**field.metadata, "meaning": f"stage {stage}: {field.metadata['meaning']}"}
    return dataclasses.field(default=field.default, metadata=metadata)


def _add(declared: Declaration, found: list[Field], field: Field) -> None:
    if any(field[0] == name for name, _, _ in found):
        raise UsageError(f"two parameters of {declared.name} are called {field[0]}: rename the stage, or the other")
    found.append(field)
