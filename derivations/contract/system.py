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
    """What `odesim derive` prints of a tier whose page is written: text and LaTeX.

    `why` says why the dynamics closes, which method serves which term, and with what error (`--explain`).  `fragment`
    are the equations as LaTeX without a preamble.  `stated()`, where there is one, gives the equations as a
    `derivations.statement.Statement`, from which all other formats are printed.
    """

    text: str
    latex: str
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
    gives a `Page`.
    `begin` names begin(initial, rng) -> Initial, what changes once, when the stage begins; `enter` is without it.
    Where a stage computes by other parameters than those that a user states, `adapt` makes them of these, and `stated`
    these of them.
    within(parameters, until, begin) raises `UsageError` where the parameters have no meaning from a time up to one.
    `batches(parameters)` are (time, batch) of SGD where these change: each holds from its time on.
    `finite` names finite(parameters, step_size, batch), which gives the system and parameters by name of the same
    training with equations that keep the size of a step, and the time of the stage in a unit of time there; None where
    there are no such equations.
    `noisy` equations contain the noise of SGD, as those of the online limit do.  `step_symbol` is the symbol of a step
    size in titles, empty where it is no size of every step.  With `decades` a run of its default saved times has early
    ones besides, for a logarithmic axis.

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
    usual: Callable[[Any], tuple[float, int | None]] | None = None
    settled: str = ""
    noisy: bool = False
    step_symbol: str = "eta"
    decades: bool = False
    within: Callable[[Any, float, float], None] = lambda parameters, until, begin: None
    batches: Callable[[Any], tuple[tuple[float, int], ...]] = lambda parameters: ()
    adapt: Callable[[Any], Any] = lambda parameters: parameters
    stated: Callable[[Any], Any] = lambda parameters: parameters
    begin: str = ""
    finite: str = ""
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
    adapt: Callable[[Any], Any] = lambda parameters: parameters
    stated: Callable[[Any], Any] = lambda parameters: parameters
    kind: ClassVar[str] = "map"


Stage = Dynamics | Map
"""A phase of a system."""


@dataclasses.dataclass(frozen=True)
class System:
    """A model of a paper or a declared one: parameters with domains, presets, stages and claims.

    Every function takes it in place of a name. `print` describes it, as `odesim systems NAME` does.
    Attributes that name something are strings "module:attribute" (docs/own-system.md).

    Attributes:
        name, title, source: Its name, its title, and the paper.
        parameters: The class of its parameters, with defaults and domains.
        presets: Named parameter sets.
        stages: Its stages in order: those with a clock (`Dynamics`) and those that are one step (`Map`).
        check: check(parameters, drawn) raises `UsageError` for parameters that do not fit together; `drawn` is False
            when the initial condition comes from a file.
        restate: Names restate(system, given) -> (system, given), which moves parameters that are given as functions of
            time into the equations. By default a parameter is one value.
        read_initial: Names read_initial(arrays, parameters, explicit) -> parameters, which checks the arrays of such a
            file and takes the sizes from them.
        plot: Names plot(dataset) -> {name: figure}, which draws a run.
        claims: Names the claims.
        course: course(parameters) returns the names of the stages of a complete run, in order; by default all.
        begin: begin(parameters) returns the default stage of a run; by default the first with a clock.
        predict: Names predict(parameters, arrays, inputs), which returns the outputs of the network on samples.
            `arrays` are the variables of a run at one time. The dimension of the samples is called "sample".
        numbered: Names a mapping from the paper's numbered statements to the reason why a statement has no claim, or to
            an empty text if it has one.
        figures: Name of the system's own package of figures, if any (`odesim.show.figures`).
        digest: Digest of a declared model, whose file may be edited under the same name; empty for other systems.
        sizes: Parameters that the title of every picture names, with their symbols there.
        references: Names references(dataset), which returns theory to draw beside a run, a list of
            `derivations.drawing.Reference`.
        bare: Options of a run for which the user gives no parameters, preset or file, where the defaults show little or
            take long. Claims do not use them.
        beside: Options of `odesim.compare` at which SGD beside the flow shows something and takes seconds, for the
            picture of a check. Claims do not use them.
        headlines: Names a mapping from the keys of its summaries to their descriptions.
        about: A few sentences on what the model shows.
        declaration: The text of a declared model, from which `derivations.restored` makes the system again.
        reference: The name or path with which the user asked for that model.

    Example:
        >>> import odesim
        >>> liao = odesim.system("liao")
        >>> [stage.name for stage in liao.stages], liao.stage("train").tiers[0]
        (['train', 'prune', 'tune'], 'exact')
    """

    name: str
    title: str
    source: Source
    parameters: type
    presets: Mapping[str, Mapping[str, Any]]
    stages: tuple[Stage, ...]
    check: Callable[..., None]
    read_initial: str
    restate: str = ""
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
    beside: Mapping[str, Any] = dataclasses.field(default_factory=dict)
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
        """Return the stage called `name`; `KeyError` lists those there are.

        Arguments:
            name: Its name.

        Returns:
            A `Dynamics` or a `Map`.
        """
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise KeyError(f"{self.name} has no stage {name!r}; it has {', '.join(s.name for s in self.stages)}")

    def dynamics(self, name: str) -> Dynamics:
        """Return the stage called `name`. It must have equations of motion.

        Arguments:
            name: Its name.

        Returns:
            A `Dynamics`.

        Raises:
            UsageError: The stage is a single step (a `Map`) and has no dynamics.
        """
        found = self.stage(name)
        if isinstance(found, Dynamics):
            return found
        raise UsageError(f"stage {name} of {self.name} is one step: it has no clock and no finite-sample model")
