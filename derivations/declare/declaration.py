"""Declared model as data: units, readouts, loss, constraint, limit, start, and the user's own numbers.

    f(x) = sum_i a_i phi(u_i1 . x, u_i2 . x, ..)      a group of units; a slot (`v`, `w`) is one weight vector per unit
    y = sum_j b_j phi*(u*_j1 . x, ..) + noise N(0, 1)      x ~ N(0, I_d)

This module derives nothing. The derivation and the simulation that tests it both use these data.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, Literal

from derivations.declare.batches import Batch
from derivations.declare.episodes import Episode
from derivations.declare.grammar import SHARES, Tree
from derivations.declare.input_law import Cluster as Cluster
from derivations.declare.input_law import Inputs
from derivations.declare.input_law import Mean as Mean
from derivations.declare.looks import Look
from derivations.declare.momentum import Momentum
from derivations.declare.of_runs import Event as Event
from derivations.declare.of_runs import Preset as Preset
from derivations.declare.of_training import Change as Change
from derivations.declare.of_training import Law as Law
from derivations.declare.of_training import Memory as Memory
from derivations.declare.of_training import Number as Number
from derivations.declare.of_training import Rule as Rule
from derivations.declare.readouts import OUTPUTS as OUTPUTS
from derivations.declare.readouts import Prediction, Readout, word_of
from derivations.declare.schedules import Schedule

Loss = Literal["squared", "correlation", "logistic", "hinge", "softmax", "own"]
"""squared (f - y)^2 / 2, correlation -f y, logistic log(1 + exp(-f s)), hinge max(0, 1 - f s) with s = sign(y), own for
an expression.

softmax: -log of the share of exp(f_h) that the head with the largest label has.
"""
Weights = Literal["free", "sphere", "normalised"]
"""free: u moves by the gradient; sphere: by its tangential part, norms kept; normalised: the network divides by |u|."""
Limit = Literal["flow", "online", "batch"]
"""flow: step -> 0, clock = steps x step; online: step eta/d, d -> infinity, clock = steps/d.

batch: giant steps, of order 1 at a batch of the order of d, clock = steps."""

LABEL = "label of "
"""Prefix of an answer in `Declaration.watched` for the label of a stage."""
MEAN = "mean"
"""Name of the group of rows of the named means of the inputs."""


@dataclasses.dataclass(frozen=True)
class Group:
    """Units that share one expression.

    `name` is empty for a single group; `slots` are the weight vectors of a unit in order of first use, `scalars` its
    numbers (biases); `output` one of `OUTPUTS`, or "own" with `readout` an expression in the number j = 1, 2, .. of the
    unit. With several heads `heads` has a readout for each, and `output` and `readout` are not used. `copied` is the
    name of the students if teachers are a copy of them.
    """

    name: str
    unit: Tree
    text: str
    slots: tuple[str, ...]
    scalars: tuple[str, ...]
    units: int
    output: str = "sum"
    readout: Tree | None = None
    heads: tuple[Readout, ...] = dataclasses.field(default=(), repr=False)
    copied: str = dataclasses.field(default="", repr=False)

    @functools.cached_property
    def readouts(self) -> tuple[Readout, ...]:
        """Readouts by head; for a group without heads the single readout."""
        return self.heads or (Readout("", self.output, self.readout),)

    @functools.cached_property
    def trained_readouts(self) -> tuple[str, ...]:
        """The names of the readouts that are trained.

        >>> Group("", Tree("name", "w"), "w", ("w",), (), 2, "trained").trained_readouts
        ('a',)
        """
        return tuple(readout.word for readout in self.readouts if readout.trained)

    @functools.cached_property
    def share(self) -> Tree | None:
        """The call softmax(..) or top1(..) of the unit, if it has one."""
        calls = self.unit.calls(*SHARES)
        return calls[0] if calls else None

    @functools.cached_property
    def own(self) -> tuple[str, ...]:
        """Scalars of each unit of a group of students: the readouts that are trained, then the scalars.

        >>> Group("", Tree("name", "w"), "w", ("w",), ("b",), 2, "trained").own
        ('a', 'b')
        """
        return (*self.trained_readouts, *self.scalars)

    def named(self, word: str) -> str:
        """`word` with the group's name in front, as in `fast_Q_ww`.

        >>> Group("fast", Tree("name", "w"), "w", ("w",), (), 2).named("Q_ww")
        'fast_Q_ww'
        """
        return f"{self.name}_{word}" if self.name else word


def moves(trained: tuple[str, ...], group: Group, word: str) -> bool:
    """Return True if a slot, a readout or a scalar of a group of students is trained; `trained` are the names of
    trained ones.

    >>> moves((), Group("", Tree("name", "w"), "w", ("w",), (), 2, "trained"), "a")
    True
    """
    if word in group.trained_readouts:
        named = {name for name in group.trained_readouts if {name, group.named(name)} & set(trained)}
        return not group.heads or word in named or not named or bool({"a", group.named("a")} & set(trained))
    return word in trained or group.named(word) in trained


@dataclasses.dataclass(frozen=True)
class Start:
    """Initial condition of training: norms by slot, overlaps drawn at random or one cosine with the unit's teacher.

    `arrays` are given order parameters (Q_ww, M_ww, a, ..), which replace a draw; `readouts` are numbers for the
    readouts of some heads, by their names in a run, and `readout` is that of all others.
    """

    norms: tuple[tuple[str, float], ...]
    overlap: float | None = None
    readout: float = 1.0
    arrays: tuple[tuple[str, Any], ...] = ()
    readouts: tuple[tuple[str, float], ...] = dataclasses.field(default=(), repr=False)


@dataclasses.dataclass(frozen=True)
class Declaration:
    """Teacher-student model of a declaration. Every default can be changed by `-p`.

    `gram` is None for an orthonormal teacher, a number for equal overlaps, or the Gram matrix of the rows [slot, unit];
    `trained` names the slots, readouts ("a") and scalars that move, and `rates` are factors of `step` for some of them,
    by name; `schedules` (`schedules.Schedule`) replace numbers by time-dependent values, `rules` replace derivatives of
    the loss, and a `law` replaces normal noise; `memories` are numbers that values may depend on. `about` describes the
    model, `paper` is the title of the source, `link` its address, `until` the default end time of a run. A run with
    `decades` takes decades of time: its default saved times have early ones, and its picture a logarithmic axis.
    `inputs` are None for x ~ N(0, I). `predictions` replace sums of groups in answers, and `label_predictions` in
    labels. `head` names the heads in use, and `labelling` the groups of teachers that make the label of one answer
    (none: all). `batch_size` replaces `batch` if giant steps have an expression in d. A model of several `stages` has
    one declaration for each, of which `stage` is the name, `begin` the time at which it begins and `own` are its
    separate parameters; `labels` are (stage, its groups of teachers) of all stages, if these differ, and `changes` the
    changes at the beginning of a stage. `text` is the normalised TOML text that states the same model
    (`declaration_text`); it is stored with every run.
    """

    name: str
    title: str
    source: str
    students: tuple[Group, ...]
    teachers: tuple[Group, ...]
    loss: Loss = "squared"
    own_loss: Tree | None = None
    weights: Weights = "free"
    limit: Limit = "flow"
    trained: tuple[str, ...] = ()
    step: float = 1.0
    batch: int = 1
    decay: float = 0.0
    noise: float = 0.0
    gram: Any = None
    start: Start = Start(())
    numbers: tuple[Number, ...] = ()
    events: tuple[Event, ...] = ()
    about: str = ""
    link: str = ""
    until: float = 100.0
    decades: bool = dataclasses.field(default=False, repr=False)
    inputs: Inputs | None = dataclasses.field(default=None, repr=False)
    presets: tuple[Preset, ...] = ()
    claims: tuple[dict[str, Any], ...] = dataclasses.field(default=(), hash=False, compare=False)
    rates: tuple[tuple[str, float], ...] = dataclasses.field(default=(), repr=False)
    schedules: tuple[Schedule, ...] = dataclasses.field(default=(), repr=False)
    rules: tuple[Rule, ...] = dataclasses.field(default=(), repr=False)
    law: Law | None = dataclasses.field(default=None, repr=False)
    memories: tuple[Memory, ...] = dataclasses.field(default=(), repr=False)
    head: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    momentum: Momentum | None = dataclasses.field(default=None, repr=False)
    predictions: tuple[Prediction, ...] = dataclasses.field(default=(), repr=False)
    label_predictions: tuple[Prediction, ...] = dataclasses.field(default=(), repr=False)
    look: Look | None = dataclasses.field(default=None, repr=False)
    episode: Episode | None = dataclasses.field(default=None, repr=False)
    batch_size: Batch | None = dataclasses.field(default=None, repr=False)
    labelling: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    stage: str = dataclasses.field(default="", repr=False)
    begin: float = dataclasses.field(default=0.0, repr=False)
    own: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    labels: tuple[tuple[str, tuple[str, ...]], ...] = dataclasses.field(default=(), repr=False)
    stages: tuple["Declaration", ...] = dataclasses.field(default=(), repr=False)
    changes: tuple[Change, ...] = dataclasses.field(default=(), repr=False)
    paper: str = dataclasses.field(default="", repr=False)
    text: str = dataclasses.field(default="", repr=False, compare=False)

    @property
    def groups(self) -> tuple[Group, ...]:
        """Students first, then teachers: the order of all rows that have fields."""
        return (*self.students, *self.teachers)

    @property
    def kinds(self) -> tuple[Group, ...]:
        """Everything with rows in the Gram matrix: the groups of units, then the named means of the inputs as one
        group.
        """
        means = self.inputs.means if self.inputs is not None else ()
        if not means:
            return self.groups
        return (*self.groups, Group(MEAN, Tree("name", "m"), "m", ("m",), (), len(means)))

    @property
    def moved(self) -> bool:
        """True if fields have means, from clusters of the inputs."""
        return self.inputs is not None and self.inputs.moved

    @property
    def varied(self) -> bool:
        """Return True if clusters of the inputs differ in their covariances."""
        return self.inputs is not None and self.inputs.varied

    @property
    def by_cluster(self) -> bool:
        """True if labels are those of clusters of the inputs instead of a teacher."""
        return self.inputs is not None and self.inputs.labels

    @property
    def each_stage(self) -> tuple["Declaration", ...]:
        """Declarations of all stages; of a model without stages, the declaration itself."""
        return self.stages or (self,)

    @property
    def names(self) -> tuple[str, ...]:
        """The user's numbers that all units share."""
        return tuple(number.name for number in self.numbers if not number.per_unit)

    @property
    def clocked(self) -> bool:
        """True if the time is an order parameter, because values depend on it or there are memories."""
        return bool(self.schedules or self.memories)

    @property
    def timed(self) -> bool:
        """True if momentum has a time, so that velocities are order parameters."""
        return self.momentum is not None and self.momentum.timed

    @property
    def inertial(self) -> bool:
        """True if velocities are order parameters: momentum has a time, or steps are giant."""
        return self.momentum is not None and (self.momentum.timed or self.limit == "batch")

    @property
    def noisy(self) -> bool:
        """True if the noise of batches contributes to the limit, so that E[c c^T] is needed."""
        infinite = self.batch_size is not None and self.batch_size.tree is None
        return self.limit == "online" or (self.limit == "batch" and not infinite)

    @property
    def rate_names(self) -> tuple[str, ...]:
        """Parameters that are factors of `step`."""
        return tuple(f"rate_{name}" for name, _ in self.rates)

    @functools.cached_property
    def heads(self) -> tuple[str, ...]:
        """Names of the answers of the network: ("",) for a single answer."""
        return tuple(dict.fromkeys(readout.head for group in self.students for readout in group.readouts))

    @property
    def several(self) -> bool:
        """True if answers are those of heads."""
        return self.heads != ("",)

    @property
    def joint(self) -> bool:
        """True if the user's loss contains the answers of heads, f_A and y_B, and is not a sum of losses of each."""
        return self.several and self.own_loss is not None and not {"f", "y"} & set(self.own_loss.names())

    @property
    def force(self) -> tuple[str, ...]:
        """The heads whose losses are minimised."""
        return self.head or self.heads

    @property
    def answers(self) -> tuple[object, ...]:
        """The heads in use, and the contribution of every group to each of them."""
        readouts = tuple(tuple(self.readout(k, head) for head in self.heads) for k in range(len(self.groups)))
        return self.heads, self.force, readouts, *self.predicted

    @property
    def predicted(self) -> tuple[Prediction, ...]:
        """The predictions of both sides, those of students first."""
        return (*self.predictions, *self.label_predictions)

    def prediction(self, student: bool, answer: str) -> Prediction | None:
        """The prediction of a side for a head, or for one of `watched`; None if that is the sum of its groups."""
        side = self.predictions if student else self.label_predictions
        return next((prediction for prediction in side if prediction.head == answer or answer.startswith(LABEL)), None)

    @property
    def watched(self) -> tuple[str, ...]:
        """Answers whose errors are observed: of the heads, then the single answer with the label of every stage."""
        return (*self.heads, *(f"{LABEL}{stage}" for stage, _ in self.labels))

    @functools.cached_property
    def answering(self) -> tuple[int, ...]:
        """Numbers of the groups that are part of f - y: students, and teachers that make a used label."""
        fed = (k for k in range(len(self.groups)) if any(self.readout(k, head) is not None for head in self.force))
        return tuple(sorted({*range(len(self.students)), *fed}))

    def readout(self, number: int, head: str) -> Readout | None:
        """Return the readout of a group in the answer of a head, or in its label; None if the group does not
        contribute.

        `head` may also be one of `watched`.
        """
        groups = self.labelling
        if head.startswith(LABEL):
            groups, head = dict(self.labels)[head.removeprefix(LABEL)], self.heads[0]
        if groups and number >= len(self.students) and self.groups[number].name not in groups:
            return None
        return self._readout(number, head)

    def meet(self, first: int, second: int, answers: Sequence[str] | None = None) -> bool:
        """Return True if two groups are part of one answer or label of some of `watched` (None: of heads in use)."""
        answers = self.force if answers is None else answers
        return any(all(self.readout(k, answer) is not None for k in (first, second)) for answer in answers)

    def _readout(self, number: int, head: str) -> Readout | None:
        """Return the same for labels that all groups of teachers make.

        A teacher without a readout for each head is the label of the head that has its name.
        """
        group = self.groups[number]
        if self.several and number >= len(self.students) and not group.heads:
            return Readout(head, group.output, group.readout) if group.name == head else None
        return next((readout for readout in group.readouts if readout.head == head), None)

    def readout_name(self, number: int, head: str) -> str:
        """The name in a run of the readout of a group for a head, or for one of `watched`."""
        group, head = self.groups[number], self.heads[0] if head.startswith(LABEL) else head
        if number < len(self.students):
            return group.named(word_of(head))
        return group.named(word_of(head if group.heads else "", "a_star"))

    def fixed_readouts(self) -> tuple[tuple[int, Readout], ...]:
        """The readouts that are constants, with the number of their group, in the order of groups and heads."""
        readouts = ((k, self._readout(k, head)) for k in range(len(self.groups)) for head in self.heads)
        return tuple((k, readout) for k, readout in readouts if readout is not None and not readout.trained)

    def moves(self, group: Group, word: str) -> bool:
        """Return True if a slot, a readout of a head in use or a scalar of a student group is trained."""
        if self.head and word in group.trained_readouts and word not in map(word_of, self.head):
            return False
        return moves(self.trained, group, word)

    def rate(self, group: Group, word: str) -> str:
        """Return the parameter that multiplies `step` of a slot, a readout or a scalar; "" if there is none."""
        words = (word, "a") if word in group.trained_readouts else (word,)
        names = tuple(f"rate_{name}" for candidate in words for name in (group.named(candidate), candidate))
        return next((name for name in names if name in self.rate_names), "")

    def rule(self, group: Group, word: str) -> Rule | None:
        """Return the rule of a slot, the readout "a" or a scalar of a group of students; None if it is trained by the
        loss.
        """
        names = (group.named(word), word)
        return next((rule for name in names for rule in self.rules if rule.name == name), None)

    def ruled(self, group: Group) -> tuple[str, ...]:
        """Return the slots and numbers of a group of students that have rules."""
        words = (*group.slots, *group.own)
        return tuple(word for word in words if self.moves(group, word) and self.rule(group, word))

    def constants(self, group: Group) -> tuple[str, ...]:
        """Return the scalars of each unit of a group of students that only its rules use."""
        rules = filter(None, (stage.rule(group, word) for stage in (self, *self.stages) for word in stage.ruled(group)))
        read = [name for rule in rules for name in rule.tree.names()]
        unit_numbers = {number.name for number in self.numbers if number.per_unit} - set(group.scalars)
        return tuple(dict.fromkeys(name for name in read if name in unit_numbers))

    def labelled(self) -> bool:
        """True if the loss uses the sign of the teacher as a label."""
        return self.loss in ("logistic", "hinge")

    def classifies(self) -> bool:
        """True if the share of wrong signs of one answer is observed."""
        return self.labelled() and not self.several
