"""A paper's system: its stages, with a clock or without, and what a stage without one leaves."""

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from derivations.contract import described
from derivations.contract.parameter import UsageError
from derivations.contract.source import Source
from derivations.contract.state import Initial, Labelled


def load(reference: str) -> Any:
    """Import what a "module:attribute" string names."""
    module, _, attribute = reference.partition(":")
    return getattr(importlib.import_module(module), attribute)


@dataclasses.dataclass(frozen=True)
class MapResult:
    """What a stage without a clock leaves: the state after it, what it did, and its headline numbers.

    `kept` says which entries of a dimension are left, by their places before (dimension -> places), so that what was
    found before the stage can be told of what is left.  `ended` is a sentence where no stage can follow.
    """

    initial: Initial
    extras: Labelled
    summary: Mapping[str, Any]
    kept: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    ended: str = ""


@dataclasses.dataclass(frozen=True)
class Page:
    """What `odesim derive` prints of a tier whose page is written, not stated: text, LaTeX, Python ("": none).

    `why` says why the dynamics closes, which method serves which term, and with what error (`--explain`).  `fragment`
    are the equations as LaTeX without a preamble.  `stated()` gives them as a `derivations.statement.Statement`, or
    raises `UsageError` with the reason why it cannot.
    """

    text: str
    latex: str
    python: str = ""
    why: str = ""
    fragment: str = ""
    stated: Callable[[], Any] | None = None


@dataclasses.dataclass(frozen=True)
class Dynamics:
    """A stage with a clock: a flow, a recursion, training.

    The strings "module:attribute" are imported on first use: `equations(parameters, tier) -> Equations`,
    `model` (one, or a function parameters -> model), and `enter(parameters, previous, rng) -> Initial`, where
    `previous` holds the arrays of an initial file or the components and constants at the end of an earlier stage.
    `horizon(parameters)` is the default end time on the `clock`, which says what is measured.
    One step of training moves the clock by `tick(parameters, step_size)`, and `stepped(parameters, step_size,
    explicit)` are the parameters that a step size implies; `usual(parameters)` the step size and the batch of a run
    that names none, where the model says so, and `settled` names settled(parameters) -> the tier of a run that names
    none (the first unless given).
    `statement(parameters, tier)` (again "module:attribute") states the equations of a tier for `odesim derive`, or
    gives a `Page`.  `shared` names by tier what a flow is compiled of but for its kernels, as a tuple of `Shared`.
    `noisy` equations contain the noise of SGD, as those of the online limit do.  `step_symbol` is the symbol of a step
    size in titles.  With `decades` a run of its default saved times has early ones besides, for a logarithmic axis.

    >>> stage = Dynamics("train", ("exact",), "m:equations", "m:enter", "steps", lambda parameters: 1.0)
    >>> stage.kind, stage.tick(None, 0.1)
    ('dynamics', 0.1)
    """

    name: str
    tiers: tuple[str, ...]
    equations: str
    enter: str
    clock: str
    horizon: Callable[[Any], float]
    model: str = ""
    meaning: str = ""
    statement: str = ""
    tick: Callable[[Any, float], float] = lambda parameters, step_size: step_size
    stepped: Callable[[Any, float, frozenset[str]], Any] = lambda parameters, step_size, explicit: parameters
    usual: Callable[[Any], tuple[float, int]] | None = None
    settled: str = ""
    shared: Mapping[str, str] = dataclasses.field(default_factory=dict)
    noisy: bool = False
    step_symbol: str = "eta"
    decades: bool = False
    kind: ClassVar[str] = "dynamics"

    def tier(self, parameters: Any) -> str:
        """The tier of a run that names none."""
        return load(self.settled)(parameters) if self.settled else self.tiers[0]

    def truth(self, parameters: Any) -> Any:
        """The model that `model` names, or that the function so named gives for the parameters."""
        found = load(self.model)
        return found(parameters) if callable(found) else found


@dataclasses.dataclass(frozen=True)
class Map:
    """A stage that is one step: a gate step, pruning, a regression.

    `enter` is as in `Dynamics`, and `apply` names apply(initial, rng) -> MapResult.  `equations` of its tiers say what
    the state after it consists of; `statement` what the map does.  `clock` says that there is none, where no stage with
    a clock came before it.

    >>> Map("prune", ("exact",), "m:equations", "m:enter", "m:apply").kind
    'map'
    """

    name: str
    tiers: tuple[str, ...]
    equations: str
    enter: str
    apply: str
    clock: str = "none: one step"
    meaning: str = ""
    statement: str = ""
    kind: ClassVar[str] = "map"


Stage = Dynamics | Map
"""A phase of a system."""


@dataclasses.dataclass(frozen=True)
class System:
    """A paper's system: parameters with domains, presets, stages and claims.

    Found by scanning the folders of `derivations`, or by a reference (`derivations.system`).

    `check(parameters, drawn)` raises `UsageError` for parameters that do not fit together (`drawn` is False when
    the initial condition comes from a file); `read_initial(arrays, parameters, explicit) -> parameters` checks
    the arrays of such a file and takes the sizes from them; `plot(dataset) -> {name: figure}` draws a run.
    `course(parameters)` names the stages of a complete run in order (all of them unless given), and `begin(parameters)`
    the stage of a run that names none (the first with a clock unless given).  `predict` names
    predict(parameters, arrays, inputs) -> Labelled, what the network answers on given samples: `arrays` are the
    variables of a run at one time, and the dimension of the samples is called "sample".  `numbered` names a mapping of
    the paper's numbered statements to the reason why one has no claim (empty where one has).  `figures` is the name of
    a package of figures (`odesim.show.figures`) where a system brings its own.  `digest` stands for what the
    system says where its name does not: a declared model may be edited.  `sizes` gives the parameters that the title of
    every picture names, with their symbols there; `references` names references(dataset) -> what theory says of a run
    (a list of `derivations.drawing.Reference`), which is drawn into its pictures.  `bare` are the options of a run that
    names neither parameters nor anything that stands for them, where the defaults show little or take long: of what a
    user asks for, never of a claim.  `headlines` names a mapping of the keys of its summaries to what they are, and
    `about` says in a few sentences what the model shows.  `declaration` is the text of a declared model, from which
    `derivations.restored` makes the system again, and `reference` the text by which that model was asked for.
    """

    name: str
    title: str
    source: Source
    parameters: type
    presets: Mapping[str, Mapping[str, Any]]
    stages: tuple[Stage, ...]
    check: Callable[..., None]
    read_initial: str
    plot: str = ""
    claims: str = ""
    course: Callable[[Any], tuple[str, ...]] | None = None
    begin: Callable[[Any], str] | None = None
    predict: str = ""
    numbered: str = ""
    figures: str = ""
    digest: str = ""
    sizes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    references: str = ""
    bare: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    headlines: str = ""
    about: str = ""
    declaration: str = dataclasses.field(default="", repr=False)
    reference: str = dataclasses.field(default="", repr=False)

    def __post_init__(self) -> None:
        """Let `help(system)` speak of the system, not of its type."""
        object.__setattr__(self, "__doc__", described.text(self))

    def __copy__(self) -> "System":
        return self

    def __deepcopy__(self, memo: Any) -> "System":
        """A system is never changed, so that a copy of a run keeps the run's own."""
        return self

    def __repr__(self) -> str:
        return described.lines(self)

    def _repr_html_(self) -> str:
        return described.page(self)

    def stage(self, name: str) -> Stage:
        """The stage called `name`; `KeyError` lists those there are."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise KeyError(f"{self.name} has no stage {name!r}; it has {', '.join(s.name for s in self.stages)}")

    def dynamics(self, name: str) -> Dynamics:
        """The stage called `name`, which has a clock.  Raises `UsageError` where it is one step; else as `stage`."""
        found = self.stage(name)
        if isinstance(found, Dynamics):
            return found
        raise UsageError(f"stage {name} of {self.name} is one step: it has no clock and no finite-sample model")
