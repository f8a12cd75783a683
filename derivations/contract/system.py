"""Systems and their stages: dynamics with a clock, and single steps without one."""

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
    """Import the object of a "module:attribute" string."""
    module, _, attribute = reference.partition(":")
    return getattr(importlib.import_module(module), attribute)


@dataclasses.dataclass(frozen=True)
class MapResult:
    """Result of a stage without a clock: the state after it, a description of the step, and its summary.

    `kept` maps a dimension to the former indices of the entries that remain, so that results of earlier stages can be
    assigned to them.  `ended` is a sentence if no stage can follow.
    """

    initial: Initial
    extras: Labelled
    summary: Mapping[str, Any]
    kept: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    ended: str = ""


@dataclasses.dataclass(frozen=True)
class Page:
    """Derivation page of a tier, as text and LaTeX, which a system writes itself.

    `why` is the text of `--explain`: the reason why the dynamics closes, the method for each term, and its error.
    `fragment` has the equations as LaTeX without a preamble.  `stated()`, if present, returns the equations as a
    `derivations.statement.Statement`, from which all other formats are printed.
    """

    text: str
    latex: str
    why: str = ""
    fragment: str = ""
    stated: Callable[[], Any] | None = None


@dataclasses.dataclass(frozen=True)
class Dynamics:
    """Stage with a clock: a flow, a recursion, or training.

    Attributes that name a function are strings "module:attribute", which are imported on first use.

    Attributes:
        equations: Names equations(parameters, tier) -> Equations.
        model: Names a model for SGD, or a function of the parameters that returns one.
        enter: Names enter(parameters, previous, rng) -> Initial.  `previous` has the arrays of an initial file, or the
            components and constants at the end of an earlier stage.
        begin: Names begin(initial, rng) -> Initial, the changes that happen once, at the start of the stage.  `enter`
            does not include them.
        clock: Meaning of the time, as a sentence.
        horizon: horizon(parameters) returns the default end time.
        tick: tick(parameters, step_size) returns the time of one step of training.
        stepped: stepped(parameters, step_size, explicit) returns the parameters that follow from a step size.
        usual: usual(parameters) returns the default step size and batch of SGD, if the model has defaults.
        settled: Names settled(parameters), which returns the default tier; without it the first tier is the default.
        statement: Names statement(parameters, tier), which returns a `Statement` or a `Page` for `odesim derive`.
        adapt, stated: adapt(parameters) returns the parameters with which the stage computes, if they differ from those
            that the user states.  `stated` is its inverse.
        within: within(parameters, until, begin) raises `UsageError` if the parameters are invalid at some time between
            `begin` and `until`.
        batches: batches(parameters) returns pairs (time, batch) for SGD with a time-dependent batch.  Each batch is
            used from its time on.
        finite: Names finite(parameters, step_size, batch), which describes the same training by equations that contain
            the step size.  It returns the system and the parameters of these equations, and their unit of time in
            units of this stage; or None if there are no such equations.
        noisy: True if the equations contain the noise of SGD, as those of the online limit.
        step_symbol: Symbol of the step size in titles; empty if steps have different sizes.
        decades: True if a run also saves early times by default, for a logarithmic axis.

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
        """Return the default tier of a run."""
        return load(self.settled)(parameters) if self.settled else self.tiers[0]

    def truth(self, parameters: Any) -> Any:
        """Return the model for SGD: the object that `model` names, or the result of the function that it names."""
        found = load(self.model)
        return found(parameters) if callable(found) else found


@dataclasses.dataclass(frozen=True)
class Map:
    """Stage that is a single step: a gate step, pruning, a regression.

    `enter` is as in `Dynamics`, and `apply` names apply(initial, rng) -> MapResult.  `equations` defines the components
    of the state after the step, and `statement` the computation of the step.  `clock` is the text shown in place
    of a clock, such as "none: one step". It is used only if no earlier stage has a clock.

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
    """System: the model of a paper or a declared model, with parameters, presets, stages and claims.

    Every function of odesim takes a system instead of a name. `print` describes it, like `odesim systems NAME`.
    Attributes that name a function or object are strings "module:attribute" (docs/own-system.md).

    Attributes:
        name, title, source: Name of the system, its title, and the paper.
        parameters: Class of the parameters, with defaults and domains.
        presets: Named parameter sets.
        stages: Stages in order: those with a clock (`Dynamics`) and single steps (`Map`).
        check: check(parameters, drawn) raises `UsageError` for parameters that contradict each other. `drawn` is False
            if the initial condition comes from a file.
        restate: Names restate(system, given) -> (system, given), which moves parameters that are functions of time into
            the equations. By default a parameter is a constant.
        read_initial: Names read_initial(arrays, parameters, explicit) -> parameters, which checks the arrays of an
            initial file and takes the sizes from them.
        plot: Names plot(dataset) -> {name: figure}, which draws a run.
        claims: Names the claims of the system.
        course: course(parameters) returns the names of the stages of a complete run, in order; by default all.
        begin: begin(parameters) returns the default stage of a run; by default the first with a clock.
        predict: Names predict(parameters, arrays, inputs), which returns the outputs of the network on samples.
            `arrays` are the variables of a run at one time. The dimension of the samples is called "sample".
        numbered: Names a mapping from the numbered statements of the paper to texts. The text is the reason why a
            statement has no claim, or empty if it has one.
        figures: Name of a package with figures of the system, if any (`odesim.show.figures`).
        digest: Digest of a declared model, because its file may change; empty for other systems.
        sizes: Parameters in the titles of pictures, with their symbols.
        references: Names references(dataset), which returns theoretical predictions for the pictures of a run, as a
            list of `derivations.drawing.Reference`.
        bare: Options of a run for which the user gives no parameters, preset or file. They replace defaults that would
            show little or take long. Claims do not use them.
        beside: Options of `odesim.compare` for the picture of a check, chosen so that it takes seconds. Claims do not
            use them.
        headlines: Names a mapping from the keys of the summaries to their descriptions.
        about: A few sentences on the results of the model.
        declaration: Text of a declared model, from which `derivations.restored` makes the system again.
        reference: Name or path by which the user asked for the system.

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
        """Make `help(system)` describe the system and not its type."""
        object.__setattr__(self, "__doc__", described.text(self))

    def __copy__(self) -> "System":
        return self

    def __deepcopy__(self, memo: Any) -> "System":
        """A system is immutable, so that a copy of a run keeps the same system."""
        return self

    def __repr__(self) -> str:
        return described.lines(self)

    def _repr_html_(self) -> str:
        return described.page(self)

    def stage(self, name: str) -> Stage:
        """Return the stage called `name`. Raise `KeyError`, which lists all stages, if it does not exist.

        Arguments:
            name: Name of the stage.

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
            name: Name of the stage.

        Returns:
            A `Dynamics`.

        Raises:
            UsageError: The stage is a single step (a `Map`) and has no dynamics.
        """
        found = self.stage(name)
        if isinstance(found, Dynamics):
            return found
        raise UsageError(f"stage {name} of {self.name} is one step: it has no clock and no finite-sample model")
