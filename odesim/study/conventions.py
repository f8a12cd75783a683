"""Conventions of other codes for a declared model: the numbers with which each code trains the same network.

A code with another convention has other weights w' = c w, another loss l' = m l or another clock. With the learning
rate of the table it makes the same steps; with the declared one it is `factor` times as fast as the flow.

    fields w'.x/sqrt(d)             w' = sqrt(d) w,  learning rate d h
    loss 2 l, sum of B samples      learning rate h/2, h/B
    both outputs divided by c       l' = l/c^2,  learning rate c^2 h,  label noise sigma/c
"""

import dataclasses
import html
import math
from collections.abc import Iterator
from typing import Any, Literal

from derivations.contract import UsageError
from derivations.declare import batches, momentum, responses, schedules, speeds, symbols
from derivations.declare.declaration import Declaration, Rule
from derivations.declare.parameter_class import rows
from odesim.request.case import Case
from odesim.request.shown import table_html, table_text

Kind = Literal["rate", "clock", "same"]
"""Kinds of conventions. rate: changes the effective learning rate; clock: changes the unit of time; same: neither."""

OF_LOSS = ("l", "dl", "grad", "gnorm")
"""Names in a rule that are proportional to the loss."""


@dataclasses.dataclass(frozen=True)
class Convention:
    """Convention of a code, with the numbers that it needs to train the declared network.

    `rates` are the learning rates of the trained arrays, `weights` the factors of their initial values, `noise` and
    `decay` the label noise and weight decay in this convention, and `tick` the time of one step on the clock of the
    code.  A code with this convention that uses the declared numbers is `factor` times as fast as the flow (None if
    this is not a constant factor).  `question` is a sentence that asks the user about this convention.
    """

    name: str
    says: str
    rates: dict[str, float]
    weights: dict[str, float]
    noise: float | None
    decay: float
    tick: float
    kind: Kind = "same"
    factor: float | None = None
    question: str = ""


@dataclasses.dataclass(frozen=True, repr=False)
class Conventions:
    """Table of `odesim conventions`: the declared convention, then other ones.

    `run` has the numbers of steps and samples until the declared end time.  `begins` is True if numbers depend on time;
    the table then has their initial values.
    """

    system: str
    declared: dict[str, str]
    rows: tuple[Convention, ...]
    run: dict[str, float]
    begins: bool

    def summary(self) -> dict[str, Any]:
        """Return the table as plain data."""
        convention_rows = [dataclasses.asdict(row) for row in self.rows]
        return {
            "system": self.system, "declared": self.declared, "run": self.run, "values_at_the_start": self.begins,
            "conventions": convention_rows,
        }  # fmt: skip

    def __repr__(self) -> str:
        header, rows = named_table(self)
        return "\n".join([self.title(), *table_text(header, rows)])

    def _repr_html_(self) -> str:
        header, rows = named_table(self)
        return f"<p>{html.escape(self.title())}</p>" + table_html(header, rows)

    def title(self) -> str:
        """Return the line above the table: the system and its end time."""
        return f"{self.system}, end time {self.end()}" + ("; values at the beginning" if self.begins else "")

    def end(self) -> str:
        """Return the end time in words, with its steps and samples."""
        return f"{self.run['until']:g}, which is {self.run['steps']:,} steps and {self.run['samples']:,} samples"

    def __getitem__(self, name: str) -> Convention:
        """The row with a name."""
        return next(row for row in self.rows if row.name == name)


def conventions(case: Case) -> Conventions:
    """Return the conventions of a declared model at its parameters.

    Raises `UsageError` for a system that is not declared, and for giant steps, whose clock counts steps.
    """
    from derivations.declare.summary import conventions as declared_words

    declared = getattr(case.parameters, "declaration", None)
    if not isinstance(declared, Declaration):
        raise UsageError(f"{case.system.name} is not a declared model; its README.md states its conventions")
    if declared.limit == "batch":
        raise UsageError(f"{case.system.name} has giant steps, but the table is only for the flow and the online limit")
    numbers = _Numbers.build(case)
    convention_rows = [numbers.row("declared", "as declared")]
    for make in (_losses, _batch, _fields, _outputs, _momentum, _rates, _clocks):
        convention_rows += make(numbers)
    steps = round(case.until / numbers.tick)
    run = {
        "until": case.until, "steps": steps, "samples": steps * numbers.batch, "steps_of_time_1": 1 / numbers.tick,
        "samples_of_time_1": numbers.batch / numbers.tick,
    }  # fmt: skip
    begins = bool(schedules.active(case.parameters))
    return Conventions(case.system.name, declared_words(case.parameters), tuple(convention_rows), run, begins)


@dataclasses.dataclass(frozen=True)
class _Numbers:
    """The declared numbers from which rows are made."""

    declared: Declaration
    parameters: Any
    d: int
    eta: float
    batch: int
    tick: float
    rates: dict[str, float]
    vectors: tuple[str, ...]
    readouts: tuple[str, ...]
    noise: float | None
    decay: float

    @classmethod
    def build(cls, case: Case) -> "_Numbers":
        parameters, initial = case.parameters, schedules.begun(case.parameters)
        declared: Declaration = parameters.declaration
        online = declared.limit == "online"
        eta = float(initial.step)
        step = eta / parameters.d if online else eta
        rates, vectors, readouts = {}, [], []
        for group in declared.students:
            for word in (*group.slots, *group.own):
                if declared.moves(group, word):
                    rates[group.named(word)] = step * speeds.speed(initial, group, word)
                    destination = vectors if word in group.slots else readouts if word in group.trained_readouts else []
                    destination.append(group.named(word))
        return cls(
            declared, parameters, int(parameters.d), eta, int(batches.usual(parameters) or 1),
            1 / parameters.d if online else step, rates, tuple(vectors), tuple(readouts),
            None if declared.law is not None and parameters.noise is None else float(initial.noise),
            float(initial.decay),
        )  # fmt: skip

    @property
    def constant(self) -> bool:
        """True if a factor of the loss multiplies all speeds equally, which is not so with weight decay."""
        return self.decay == 0 and not self.declared.inertial

    def row(
        self, name: str, says: str, *, rate: float = 1.0, scales: dict[str, tuple[float, float]] | None = None,
        noise: float = 1.0, tick: float | None = None, kind: Kind = "same", factor: float | None = None,
        question: str = "",
    ) -> Convention:  # fmt: skip
        """One row: `rate` multiplies all learning rates, `scales` those and the start of some arrays."""
        scales = scales or {}
        rates = {array: value * rate * scales.get(array, (1.0, 1.0))[0] for array, value in self.rates.items()}
        weights = {array: scales.get(array, (1.0, 1.0))[1] for array in self.rates}
        scale = rate * (scales[self.vectors[0]][0] if self.vectors and self.vectors[0] in scales else 1.0)
        level = None if self.noise is None else self.noise * noise
        return Convention(
            name, says, rates, weights, level, self.decay / scale, self.tick if tick is None else tick, kind,
            factor if factor is None or kind == "clock" or self.constant else None, question,
        )  # fmt: skip


def _losses(n: _Numbers) -> Iterator[Convention]:
    """Squared losses with and without the factor 1/2."""
    import sympy

    f, y = (sympy.Symbol(letter, real=True) for letter in "fy")
    if n.declared.several or n.declared.labelled() or not all(_scales_with_loss(rule) for rule in n.declared.rules):
        return
    size = sympy.simplify(responses.loss_of(n.declared) / (f - y) ** 2)
    if not size.is_number:
        return
    for text, size_factor, rate_question in (
        ("(f - y)^2, without the factor 1/2", 1.0, "is your loss without the factor 1/2?"),
        ("(f - y)^2 / 2", 0.5, "has your loss the factor 1/2?"),
    ):
        factor = size_factor / float(size)
        if factor != 1:
            name = "loss_without_half" if size_factor == 1 else "loss_with_half"
            yield n.row(name, f"loss {text}", rate=1 / factor, kind="rate", factor=factor, question=rate_question)


def _scales_with_loss(rule: Rule) -> bool:
    """Return True if a rule is multiplied by m when the loss is: `dl*df` is, Hebb's `-y` and `clip(dl, 1)` are not."""
    import sympy

    m = sympy.Symbol("m", positive=True)
    coefficient = symbols.build(rule.tree, ())
    of_loss = {symbol: m * symbol for symbol in coefficient.free_symbols if symbol.name in OF_LOSS}
    return bool(sympy.simplify(coefficient.subs(of_loss, simultaneous=True) - m * coefficient) == 0)


def _batch(n: _Numbers) -> Iterator[Convention]:
    """Return the row for the sum over a batch instead of the mean."""
    if n.batch > 1:
        yield n.row(
            "sum_over_batch", f"loss summed over the {n.batch} samples of a batch", rate=1 / n.batch, kind="rate",
            factor=float(n.batch), question="is your loss the sum over the batch, and not the mean?",
        )  # fmt: skip


def _fields(n: _Numbers) -> Iterator[Convention]:
    """Fields w.x / sqrt(d)."""
    if n.declared.weights == "normalised" or not n.vectors:
        return
    scales = {vector: (float(n.d), math.sqrt(n.d)) for vector in n.vectors}
    yield n.row(
        "fields_over_sqrt_d", "fields w.x / sqrt(d), weights sqrt(d) times as long", scales=scales, kind="rate",
        factor=1.0 / n.d if len(n.rates) == len(n.vectors) else None, question="are your fields divided by sqrt(d)?",
    )  # fmt: skip


def _outputs(n: _Numbers) -> Iterator[Convention]:
    """Outputs of both networks divided by K or sqrt(K), and readouts K times as large."""
    declared = n.declared
    if declared.several or declared.rules or len(declared.students) != 1:
        return  # a rule is not a gradient, so a factor of the outputs is not a factor of the motion
    (group,) = declared.students
    units = rows(n.parameters).sizes[0]
    if units == 1:
        return
    sizes = {"1/K": float(units), "1/sqrt(K)": math.sqrt(units)}
    (readout,) = group.readouts
    if readout.trained and group.named(readout.word) in n.rates:
        for text, c in sizes.items():
            scales = {group.named(readout.word): (c**2, c)}
            yield n.row(
                f"readouts_{_word(text)}", f"f = {text} sum of a_i phi_i, readouts {c:g} times as large", scales=scales
            )
        return
    present = {"sum": 1.0, "mean": 1.0 / units, "root": units**-0.5}.get(readout.output)
    if present is None or declared.loss not in ("squared", "correlation") or declared.by_cluster:
        return
    for text, c in {"1": 1.0, **sizes}.items():
        ratio = present * c  # of the declared outputs to those of the code
        if abs(ratio - 1) < 1e-12:
            continue
        words = f"outputs of student and teacher are {'plain sums' if text == '1' else text + ' sum'}"
        question = (
            f"are your outputs {'sums without ' + _present(readout.output) if text == '1' else f'scaled by {text}'}?"
        )
        noiseless = n.noise == 0
        yield n.row(
            f"outputs_{_word(text)}", words, rate=ratio**2, noise=1 / ratio, kind="rate",
            factor=ratio**-2 if noiseless else None, question=question,
        )  # fmt: skip
    if readout.output == "mean":
        yield n.row(
            "rate_times_units", f"a learning rate that the code multiplies by K = {units}", rate=1 / units, kind="rate",
            factor=float(units), question="does your code multiply the learning rate by the number of units K?",
        )  # fmt: skip


def _present(output: str) -> str:
    return {"mean": "1/K", "root": "1/sqrt(K)"}.get(output, "a factor")


def _word(text: str) -> str:
    return {"1": "sums", "1/K": "over_units", "1/sqrt(K)": "over_sqrt_units"}[text]


def _momentum(n: _Numbers) -> Iterator[Convention]:
    """Return the row for momentum with the part 1 - beta of a gradient."""
    declared_momentum: momentum.Momentum | None = n.declared.momentum
    if declared_momentum is None or declared_momentum.timed or n.parameters.momentum == 0:
        return
    left = 1 - n.parameters.momentum
    yield n.row(
        "damped_momentum", "velocity v <- beta v + (1 - beta) g", rate=1 / left, kind="rate", factor=left,
        question="does your velocity take (1 - beta) of a gradient (dampening)?",
    )  # fmt: skip


def _rates(n: _Numbers) -> Iterator[Convention]:
    """Learning rates of the online limit that are not divided by d."""
    if n.declared.limit != "online":
        return
    for name, formula, c in (
        ("rate_not_over_d", "eta", float(n.d)),
        ("rate_over_sqrt_d", "eta/sqrt(d)", math.sqrt(n.d)),
    ):
        yield n.row(
            name, f"a learning rate called eta that is used as {formula}", rate=1.0, kind="rate", factor=c,
            question=f"is your learning rate {formula}, and not eta/d?",
        )  # fmt: skip


def _clocks(n: _Numbers) -> Iterator[Convention]:
    """Times that are not the declared one: steps, steps x learning rate, samples / d."""
    online = n.declared.limit == "online"
    yield n.row(
        "time_in_steps", "time is the number of steps", tick=1.0, kind="clock", factor=n.tick,
        question="is your time the number of steps?",
    )  # fmt: skip
    if online and n.eta != 1:
        yield n.row(
            "time_times_rate", "time is steps x learning rate", tick=n.tick * n.eta, kind="clock", factor=1 / n.eta,
            question="is your time steps x learning rate?",
        )  # fmt: skip
    if n.batch > 1:
        unit = "samples / d" if online else "samples x learning rate"
        yield n.row(
            "time_in_samples", f"time is {unit}", tick=n.tick * n.batch, kind="clock", factor=1 / n.batch,
            question=f"is your time {unit}?",
        )  # fmt: skip


def named_table(convention_table: Conventions) -> tuple[list[str], list[list[str]]]:
    """Return the table with a first column of the names by which `Conventions` has its rows."""
    header, lines = table(convention_table)
    return ["name", *header], [[row.name, *cells] for row, cells in zip(convention_table.rows, lines, strict=True)]


def table(convention_table: Conventions) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the table as text."""
    arrays = list(convention_table.rows[0].rates)
    header = [
        "convention",
        *(f"rate of {array}" for array in arrays),
        *(f"{array} x" for array in arrays),
        "noise",
        "step's time",
    ]
    header.append("speed untranslated")
    lines = []
    for row in convention_table.rows:
        cells = [
            row.says,
            *(f"{row.rates[array]:.6g}" for array in arrays),
            *(f"{row.weights[array]:.6g}" for array in arrays),
        ]
        noise = "as declared" if row.noise is None else f"{row.noise:.6g}"
        cells += [noise, f"{row.tick:.6g}", "" if row.factor is None else f"{row.factor:.6g}"]
        lines.append(cells)
    return header, lines
