"""What a declared model is, as data: units, readouts, loss, constraint, limit, start, and the user's own numbers.

    f(x) = sum_i a_i phi(u_i1 . x, u_i2 . x, ..)      a group of units; a slot (`v`, `w`) is one weight vector per unit
    y = sum_j b_j phi*(u*_j1 . x, ..) + noise N(0, 1)      x ~ N(0, I_d)

Nothing here derives anything: the derivation and the simulation that judges it both read these nouns.
"""

import dataclasses
import functools
from typing import Any, Literal

from derivations.declare.array_files import ArrayFile
from derivations.declare.grammar import SHARES, Tree
from derivations.declare.schedules import Schedule

Loss = Literal["squared", "correlation", "logistic", "hinge", "own"]
"""squared (f - y)^2 / 2, correlation -f y, logistic log(1 + exp(-f s)), hinge max(0, 1 - f s) with s = sign(y), own."""
Weights = Literal["free", "sphere", "normalised"]
"""free: u moves by the gradient; sphere: by its tangential part, norms kept; normalised: the network divides by |u|."""
Limit = Literal["flow", "online"]
"""flow: step -> 0, clock = steps x step; online: step eta/d, d -> infinity, clock = steps/d."""
OUTPUTS = ("sum", "mean", "root", "trained")
"""The readout a_i of a group of K units: 1, 1/K, 1/sqrt(K), or numbers that are trained or read from a file."""

MEAN = "mean"
"""The name of the group of rows that the named means of the inputs are."""


@dataclasses.dataclass(frozen=True)
class Group:
    """Units that share one expression.

    `name` is empty where there is one group; `slots` are the weight vectors of a unit in order of first use,
    `scalars` its own numbers (biases); `output` one of `OUTPUTS`, or "own" with `readout` an expression in the number
    j = 1, 2, .. of the unit.
    """

    name: str
    unit: Tree
    text: str
    slots: tuple[str, ...]
    scalars: tuple[str, ...]
    units: int
    output: str = "sum"
    readout: Tree | None = None

    @functools.cached_property
    def share(self) -> Tree | None:
        """The call softmax(..) or top1(..) of the unit, if it has one."""
        found = self.unit.calls(*SHARES)
        return found[0] if found else None

    @property
    def own(self) -> tuple[str, ...]:
        """The numbers that every unit of a group of students has: "a" where the readout is trained, then the scalars.

        >>> Group("", Tree("name", "w"), "w", ("w",), ("b",), 2, "trained").own
        ('a', 'b')
        """
        return (*(("a",) if self.output == "trained" else ()), *self.scalars)

    def named(self, word: str) -> str:
        """`word` with the group's name in front, as in `fast_Q_ww`.

        >>> Group("fast", Tree("name", "w"), "w", ("w",), (), 2).named("Q_ww")
        'fast_Q_ww'
        """
        return f"{self.name}_{word}" if self.name else word


def moves(trained: tuple[str, ...], group: Group, word: str) -> bool:
    """Return True if a slot, the readout "a" or a scalar of a group of students moves, where `trained` names the rest.

    >>> moves((), Group("", Tree("name", "w"), "w", ("w",), (), 2, "trained"), "a")
    True
    """
    if word == "a" and group.output == "trained":
        return True
    return word in trained or group.named(word) in trained


@dataclasses.dataclass(frozen=True)
class Number:
    """A number of the user's own: its default, meaning and domain.

    With `per_unit` every unit has one.  One that the unit's expression reads (a bias) starts at the default and is
    trained where `trained` says so; one that a rule alone reads is a constant of the unit, and its default may be a
    `formula` in the number j = 1, 2, .. of the unit, of which `default` then is the first value.
    """

    name: str
    default: float
    meaning: str = ""
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    per_unit: bool = False
    formula: Tree | None = dataclasses.field(default=None, repr=False)


@dataclasses.dataclass(frozen=True)
class Memory:
    """A number of training with dm/dt = `rate`; `seen` are the names of state and gradients that the rate reads."""

    name: str
    start: float
    text: str
    rate: Tree
    seen: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Law:
    """The noise of a label, an expression in xi, a standard normal number; a `heavy` one has no variance."""

    text: str
    tree: Tree
    heavy: bool = False


@dataclasses.dataclass(frozen=True)
class Rule:
    """The coefficient c by which a slot (u by -h c x), a readout or a scalar (by -h c) moves.

    It takes the place of the derivative of the loss; `name` is the slot or number, with or without its group's name.
    """

    name: str
    text: str
    tree: Tree


@dataclasses.dataclass(frozen=True)
class Event:
    """A hitting time to locate: when an entry of the order parameter `of` passes `threshold`."""

    name: str
    of: str
    threshold: float
    direction: int = 1
    absolute: bool = False


@dataclasses.dataclass(frozen=True)
class Start:
    """Where training starts: norms by slot, overlaps drawn at random or one cosine with the unit's teacher.

    `arrays` are order parameters given outright (Q_ww, M_ww, a, ..), which then take the place of a draw.
    """

    norms: tuple[tuple[str, float], ...]
    overlap: float | None = None
    readout: float = 1.0
    arrays: tuple[tuple[str, Any], ...] = ()


@dataclasses.dataclass(frozen=True)
class Preset:
    """Numbers with a name and what they show, by which a run takes them together."""

    name: str
    meaning: str
    parameters: tuple[tuple[str, Any], ...]


@dataclasses.dataclass(frozen=True)
class Mean:
    """A named vector of which the means of clusters are made: its Euclidean norm and where it points.

    `teacher` are its cosines with the teacher's vectors (empty: orthogonal to them), `spread` the part of its squared
    norm in every block (empty: in proportion to the shares).  A mean of a user's samples is known by its coordinates,
    and has no `norm` here.
    """

    name: str
    norm: Tree | None
    teacher: tuple[float, ...] = ()
    spread: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Inputs N(mean, covariance) that are drawn with a probability.

    `mean` is linear in the named means (None: 0).  The covariance has its own `eigenvalues`, one for each block, or
    those of all inputs (empty), times `scale`.  With a `label` the samples are labelled by it and not by a teacher.
    """

    probability: Tree
    mean: Tree | None = None
    eigenvalues: tuple[Tree, ...] = ()
    scale: Tree | None = None
    label: Tree | None = None


@dataclasses.dataclass(frozen=True)
class Inputs:
    """The law of the inputs x: blocks of coordinates, each with one eigenvalue, or a spectrum put into blocks.

    With `clusters` it is a mixture of Gaussians whose covariances have these blocks in common.

    `blocks` are pairs (eigenvalue, share of the coordinates), of which one share may be None, for what the others
    leave.  `spectrum` is the eigenvalue of coordinate j = 1, .., d, for which at most `bins` blocks stand.  With
    `trace` all eigenvalues have a common factor, so that their mean is this number; without, they are as written.

    `spread` says how the teacher's vectors are spread over the blocks: "even" (in proportion to the shares), "random"
    (directions drawn at the start), the share of every block in the squared norm, the size of coordinate j, or the
    vectors (teachers, d) themselves.

    In the place of a spectrum can be `eigenvalues` (d,), a `covariance` (d, d), or `data`, samples (N, columns) of
    which theory takes the eigenvalues of the covariance.  `label` (N,) are the samples' labels, few different ones:
    `classes` are pairs of a label and the number of its samples, and each is a cluster.  With `centre` the mean of all
    samples is removed.
    """

    blocks: tuple[tuple[Tree, Tree | None], ...] = ()
    spectrum: Tree | None = None
    bins: int = 128
    trace: Tree | None = None
    spread: str | tuple[float, ...] | Tree | ArrayFile = "even"
    eigenvalues: ArrayFile | None = None
    covariance: ArrayFile | None = None
    data: ArrayFile | None = None
    means: tuple[Mean, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    label: ArrayFile | None = None
    classes: tuple[tuple[float, int], ...] = ()
    centre: bool = True

    @property
    def labels(self) -> bool:
        """Whether every cluster has a label, which takes the place of a teacher."""
        return any(cluster.label is not None for cluster in self.clusters)

    @property
    def moved(self) -> bool:
        """Whether fields have means."""
        return any(cluster.mean is not None for cluster in self.clusters)

    @property
    def varied(self) -> bool:
        """Whether clusters differ in their covariances."""
        own = any(cluster.eigenvalues or cluster.scale is not None for cluster in self.clusters)
        return own or len(self.classes) > 1


@dataclasses.dataclass(frozen=True)
class Declaration:
    """A teacher-student model as its author states it.  Every default can be changed by `-p`.

    `gram` is None for an orthonormal teacher, a number for equal overlaps, or the Gram matrix of the rows
    [slot, unit]; `trained` names the slots, readouts ("a") and scalars that move, and `rates` are factors of `step` for
    some of them, by name; `schedules` (`schedules.Schedule`) take the place of numbers that change in time, and `rules`
    that of derivatives of the loss; a `law` that of normal noise; `memories` are numbers
    that values may read.  `about`
    says what the model shows, `link` is where the source is read, `until` the end time of a run that names none.  A run
    with `decades` goes on over decades of time: its default saved times have early ones, and its picture a logarithmic
    axis.  `inputs` are None for x ~ N(0, I).  `labelling` names the groups of teachers that make the label (empty:
    all).  A model of several `stages` has one declaration for each, of which `stage` is the name, `begin` the time at
    which it begins and `own` are the parameters that it has for itself; `labels` are (stage, its groups of teachers)
    of all stages, where these differ.  `text` is the normalised TOML text that states the same model
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
    labelling: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    stage: str = dataclasses.field(default="", repr=False)
    begin: float = dataclasses.field(default=0.0, repr=False)
    own: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    labels: tuple[tuple[str, tuple[str, ...]], ...] = dataclasses.field(default=(), repr=False)
    stages: tuple["Declaration", ...] = dataclasses.field(default=(), repr=False)
    text: str = dataclasses.field(default="", repr=False, compare=False)

    @property
    def groups(self) -> tuple[Group, ...]:
        """Students first, then teachers: the order of all rows that have fields."""
        return (*self.students, *self.teachers)

    @property
    def kinds(self) -> tuple[Group, ...]:
        """Whatever has rows in the Gram matrix: the groups of units, then the named means of the inputs as one."""
        means = self.inputs.means if self.inputs is not None else ()
        if not means:
            return self.groups
        return (*self.groups, Group(MEAN, Tree("name", "m"), "m", ("m",), (), len(means)))

    @property
    def moved(self) -> bool:
        """Whether fields have means: those of clusters of the inputs."""
        return self.inputs is not None and self.inputs.moved

    @property
    def varied(self) -> bool:
        """Whether clusters of the inputs differ in their covariances."""
        return self.inputs is not None and self.inputs.varied

    @property
    def by_cluster(self) -> bool:
        """Whether labels are those of clusters of the inputs, in the place of a teacher."""
        return self.inputs is not None and self.inputs.labels

    @property
    def names(self) -> tuple[str, ...]:
        """The user's own numbers that all units share."""
        return tuple(number.name for number in self.numbers if not number.per_unit)

    @property
    def clocked(self) -> bool:
        """Whether the time is an order parameter: values change, or there are memories."""
        return bool(self.schedules or self.memories)

    def answers(self, number: int, stage: str = "") -> bool:
        """Whether the units of the group with this number take part in f - y, of another `stage` if one is named."""
        named = dict(self.labels).get(stage, ()) if stage else self.labelling
        return number < len(self.students) or not named or self.groups[number].name in named

    def answering(self, stage: str = "") -> tuple[int, ...]:
        """The numbers of the groups that `answers` is true of: students, and the teachers that make the label."""
        return tuple(number for number in range(len(self.groups)) if self.answers(number, stage))

    @property
    def rate_names(self) -> tuple[str, ...]:
        """The parameters that are factors of `step`."""
        return tuple(f"rate_{name}" for name, _ in self.rates)

    def moves(self, group: Group, word: str) -> bool:
        """Whether a slot, the readout "a" or a scalar of a student group is trained."""
        return moves(self.trained, group, word)

    def rate(self, group: Group, word: str) -> str:
        """The parameter that multiplies `step` of a slot, the readout "a" or a scalar; "" where none does."""
        names = (f"rate_{group.named(word)}", f"rate_{word}")
        return next((name for name in names if name in self.rate_names), "")

    def rule(self, group: Group, word: str) -> Rule | None:
        """The rule of a slot, the readout "a" or a scalar of a group of students; None where it moves by the loss."""
        names = (group.named(word), word)
        return next((rule for name in names for rule in self.rules if rule.name == name), None)

    def ruled(self, group: Group) -> tuple[str, ...]:
        """The slots and numbers of a group of students that move by rules."""
        words = (*group.slots, *group.own)
        return tuple(word for word in words if self.moves(group, word) and self.rule(group, word))

    def constants(self, group: Group) -> tuple[str, ...]:
        """The numbers that every unit of a group of students has for its rules alone."""
        rules = filter(None, (one.rule(group, word) for one in (self, *self.stages) for word in one.ruled(group)))
        read = [name for rule in rules for name in rule.tree.names()]
        own = {number.name for number in self.numbers if number.per_unit} - set(group.scalars)
        return tuple(dict.fromkeys(name for name in read if name in own))

    def labelled(self) -> bool:
        """Whether the loss takes the sign of the teacher as a label."""
        return self.loss in ("logistic", "hinge")
