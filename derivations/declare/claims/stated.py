"""Claims of a declaration as data: a measure over runs, a law, and a control that breaks the law."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from derivations import measures
from derivations.broken import break_law
from derivations.claim import Claim, Grid, Variant
from derivations.contract import Dynamics, System
from derivations.declare import fields, labels
from derivations.declare.claims.measurements import NUMERICAL, UNTIL, measured
from derivations.declare.parameter_class import rows
from derivations.declare.rows import Rows
from derivations.laws import Bounded, Equals, Power
from derivations.laws.tools import EXCEPTIONS, LEAST_RUNS, LEAST_SIZES
from derivations.scaling import Form

KEYS = (
    "id", "statement", "measure", "engine", "over", "law", "expected", "until", "step", "batch", "parameters",
    "published",
)  # fmt: skip
LAWS = ("power", "equals", "at_most", "at_least")
REASONS = ("short", "no_log_rival")
"""Keys of reasons for a power with few sizes, and against logarithms: see `derivations.laws.Power`."""
ENGINES = ("flow", "explicit", "compressed", "bands")
ANSWERS = ("confirmed", "refuted", "consistent", "inconclusive")
MOST_POINTS = 10_000


def claims(system: System) -> tuple[Claim, ...]:
    """The claims of a declaration's [[claim]] tables.

    Raises `UsageError` for an invalid claim, or a measure of an unknown order parameter.
    """
    declared = system.parameters.declaration
    return tuple(claim(system, entry, number) for number, entry in enumerate(declared.claims, 1))


def claim(system: System, entry: Mapping[str, Any], number: int) -> Claim:
    """Return the claim of the table with this number. Raises `fields.Mistake`."""
    fields.require_known(entry, KEYS, "claim")
    name = fields.name(entry, "id", "claim", f"claim-{number}")
    ranges = dict(_table(entry, "over", name))
    seeds = fields.whole({"seeds": ranges.pop("seeds", 1)}, "seeds", "claim", 1)
    _require_parameters(system, entry, ranges, name)
    _require_end_times(entry, ranges, name)
    by_points = _is_mean_over_points(system, entry, ranges)
    options = {"unbiased": by_points, "fixed_start": by_points and seeds == 1}
    seeds = LEAST_RUNS if options["fixed_start"] else seeds
    measure = _measure(system, entry, name, options)
    law, broken = _law(entry, ranges, seeds, name)
    expected: Any = fields.choice(entry, "expected", ANSWERS, "confirmed", "claim")
    published = _published(entry, name)
    if isinstance(law, Power):
        _require_enough(ranges[law.over], seeds, law.over, name)
    return Claim(
        id=name,
        statement=fields.text(entry, "statement", "claim", name),
        source=system.source.at(published or "stated"),
        measure=measure,
        law=law,
        sweep={"quick": Grid(_points(ranges), seeds)},
        control=break_law(**broken),
        rungs=(7,) if entry.get("engine", "flow") == "flow" else (8,),
        variants=(Variant("main", expected=expected),),
        derived=not published,
    )


def _published(entry: Mapping[str, Any], name: str) -> str:
    """Return the place where the source prints the claim; "" for a claim derived by the author of the file."""
    if "published" not in entry:
        return ""
    place = fields.text(entry, "published", "claim", "").strip()
    if not place:
        raise fields.Mistake(
            f'claim {name}: published says where the source prints the number, as in published = "eq. (23)"; leave it '
            "out for a number that you derived",
            "claim",
            "published",
        )
    return place


def _require_enough(values: Any, seeds: int, coordinate: str, name: str) -> None:
    """Raise an error for a power with so few values or runs that its law could decide nothing."""
    if len(set(values)) < LEAST_SIZES or 1 < seeds < LEAST_RUNS:
        raise fields.Mistake(
            f"claim {name}: a power needs {LEAST_SIZES} values of {coordinate} or more, and one seed or at least "
            f"{LEAST_RUNS}, as in over = {{{coordinate} = [1e3, 1e4, 1e5, 1e6, 1e7], seeds = {LEAST_RUNS}}}",
            "claim",
            "over",
        )


def _table(entry: Mapping[str, Any], key: str, name: str) -> Mapping[str, Any]:
    table = entry.get(key, {})
    if not isinstance(table, Mapping):
        raise fields.Mistake(f"claim {name}: {key} is a table such as {{d = [1e3, 1e4]}}", "claim", key)
    return table


def _require_parameters(system: System, entry: Mapping[str, Any], ranges: Mapping[str, Any], name: str) -> None:
    """Check that every named parameter belongs to the model, and that every value is a number or a word."""
    parameter_names = [field.name for field in dataclasses.fields(system.parameters)]
    for key, table in (("over", ranges), ("parameters", _table(entry, "parameters", name))):
        for word, value in table.items():
            if key == "over" and word == UNTIL:
                continue
            if word not in parameter_names:
                raise fields.Mistake(
                    f"claim {name}: {key} names {fields.shown(word)}, which is not a parameter of the model; "
                    f"{fields.near(word, parameter_names)}",
                    "claim",
                    key,
                )
            values = value if isinstance(value, list) and key == "over" else [value]
            if not values or not all(isinstance(v, int | float | str) and not isinstance(v, bool) for v in values):
                raise fields.Mistake(
                    f"claim {name}: {word} takes numbers or words, but {fields.shown(value)} was given", "claim", key
                )


def _require_end_times(entry: Mapping[str, Any], ranges: Mapping[str, Any], name: str) -> None:
    """Check that end times in the range of a claim are positive numbers; they are only for final values."""
    if UNTIL not in ranges:
        return
    values = ranges[UNTIL] if isinstance(ranges[UNTIL], list) else [ranges[UNTIL]]
    if not values:
        raise fields.Mistake(f"claim {name}: until takes numbers, but [] was given", "claim", "over")
    for value in values:
        fields.real({UNTIL: value}, UNTIL, "claim", above=0.0)
    if str(entry["measure"]).startswith("first"):
        message = (
            "over = {until = ..} belongs to a measure 'final R'; a first time does not depend on the end of the run"
        )
        raise fields.Mistake(f"claim {name}: {message}", "claim", "over")
    if UNTIL in entry:
        raise fields.Mistake(
            f"claim {name}: until is given twice, in the claim and in over; leave one of the two out", "claim", UNTIL
        )


def _points(ranges: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return the grid of all values, with integers as such."""
    points: list[dict[str, Any]] = [{}]
    for name, values in ranges.items():
        value_list = values if isinstance(values, list) else [values]
        numbers = [int(v) if isinstance(v, float) and v.is_integer() else v for v in value_list]
        points = [{**point, name: value} for point in points for value in numbers]
        if len(points) > MOST_POINTS:
            raise fields.Mistake(f"over gives more than {MOST_POINTS} runs", "claim", "over")
    return tuple(points)


def _is_mean_over_points(system: System, entry: Mapping[str, Any], ranges: Mapping[str, Any]) -> bool:
    """Return True for a value of a flow whose right-hand side is a mean over random points in some runs.

    The sampling error of such a value is not visible in one run.
    """
    law = entry.get("law")
    if not isinstance(law, Mapping) or "equals" not in law or entry.get("engine", "flow") not in NUMERICAL:
        return False
    default = system.parameters()
    for point in _points(ranges):
        settings = {key: value for key, value in {**_table(entry, "parameters", ""), **point}.items() if key != UNTIL}
        numbers = {key: value for key, value in settings.items() if not isinstance(value, str)}
        parameters = dataclasses.replace(default, **numbers)
        tiers = {settings.get("tier", "auto")}
        if tiers == {"auto"}:
            tiers = {stage.tier(stage.adapt(parameters)) for stage in system.stages if isinstance(stage, Dynamics)}
        if tiers & {"mixed", "sampled"}:
            return True
    return False


def _law(entry: Mapping[str, Any], ranges: Mapping[str, Any], seeds: int, name: str) -> tuple[Any, dict[str, Any]]:
    """Return the law, and the fields by which its control breaks it."""
    table = entry.get("law")
    if not isinstance(table, Mapping) or sum(word in table for word in LAWS) != 1:
        raise fields.Mistake(
            f"claim {name}: law is a table with one of {', '.join(LAWS)}, as in law = {{power = 0.5}}", "claim", "law"
        )
    try:
        return _read_law(entry, table, ranges, seeds)
    except fields.Mistake as mistake:
        raise fields.Mistake(f"claim {name}: {mistake} in the law", "claim", "law") from None


def _read_law(
    entry: Mapping[str, Any], table: Mapping[str, Any], ranges: Mapping[str, Any], seeds: int
) -> tuple[Any, dict[str, Any]]:
    fields.require_known(table, (*LAWS, "margin", "rivals", "over", "toward", *REASONS, "exceptions"), "claim")
    measure = measures.read(str(entry.get("measure", "")))
    share = measure is not None and measure.inside is not None
    sampled = share or entry.get("engine", "flow") not in NUMERICAL
    margin = fields.real(table, "margin", "claim", 0.05, above=0.0)
    if "power" in table:
        swept = [key for key, values in ranges.items() if isinstance(values, list)]
        coordinate = fields.text(table, "over", "claim", swept[0] if swept else "d")
        if coordinate not in swept:
            raise fields.Mistake(
                f"a power of {coordinate} needs several values of it, as in over = {{{coordinate} = [1e3, 1e4]}}"
            )
        power = fields.real(table, "power", "claim")
        rival_exponents = table.get("rivals", [])
        if not isinstance(rival_exponents, list):
            raise fields.Mistake(f"rivals is a list of exponents, but {fields.shown(rival_exponents)} was given")
        exponents = [fields.real({"rivals": r}, "rivals", "claim") for r in rival_exponents]
        rivals = tuple(Form(f"{coordinate}^{r:g}", 0.0, r) for r in exponents)
        exact = None if sampled or seeds > 1 else 1e-4  # straight lines between saved points
        small_values = all(isinstance(x, int | float) and x <= 1 for x in ranges[coordinate])
        toward: Any = fields.choice(table, "toward", ("large", "small"), "small" if small_values else "large", "claim")
        reasons: dict[str, Any] = {name: fields.text(table, name, "claim", "") for name in REASONS}
        law = Power(power, over=coordinate, margin=margin, rivals=rivals, error=exact, toward=toward, **reasons)
        return law, {"exponent": power + 1.0, "rivals": ()}
    if "equals" in table:
        error = NUMERICAL.get(str(entry.get("engine", "flow")), 0.0)
        value = fields.real(table, "equals", "claim")
        law_ = Equals(value, absolute=margin * max(abs(value), 1e-300), error=None if sampled or seeds > 1 else error)
        return law_, {"value": value + 10 * margin * max(abs(value), 1e-3)}
    exceptions = fields.real(table, "exceptions", "claim", EXCEPTIONS, above=0.0)
    if "at_most" in table:
        bound = fields.real(table, "at_most", "claim")
        return Bounded(high=bound, exceptions=exceptions), {"high": bound - 1e6 * max(abs(bound), 1.0)}
    bound = fields.real(table, "at_least", "claim")
    return Bounded(low=bound, exceptions=exceptions), {"low": bound + 1e6 * max(abs(bound), 1.0)}


def _measure(system: System, entry: Mapping[str, Any], name: str, options: Mapping[str, bool]) -> Any:
    """Return the measurement of a claim: `measured` with its request and these options."""
    text = fields.text(entry, "measure", "claim", "")
    measure = measures.read(text)
    if measure is None:
        raise fields.Mistake(
            f"claim {name}: measure {fields.shown(text)} cannot be read; write one like {measures.FORMS}",
            "claim",
            "measure",
        )
    if measure.inside is not None and entry.get("engine") != "bands":
        raise fields.Mistake(f'claim {name}: a share inside a band needs engine = "bands"', "claim", "engine")
    if measure.spread and entry.get("engine") != "bands":
        raise fields.Mistake(f'claim {name}: a standard deviation needs engine = "bands"', "claim", "engine")
    engine = fields.choice(entry, "engine", ENGINES, "flow", "claim")
    positive = {key: fields.real(entry, key, "claim", above=0.0) for key in ("until", "step") if key in entry}
    variable = _variable(system, measure.variable, name)
    measure_options = {
        "engine": engine,
        "variable": variable,
        "entry": _entry(system, variable, measure.place, name),
        "reduction": measure.reduction,
        "absolute": measure.absolute,
        "sign": measure.sign,
        "level": measure.level,
        "inside": measure.inside,
        "spread": measure.spread,
        "quantity": measure.quantity.replace(measure.variable, variable),
        "until": positive.get("until"),
        "step": positive.get("step"),
        "batch": fields.whole(entry, "batch", "claim", 1) if "batch" in entry else None,
        "parameters": dict(_table(entry, "parameters", name)),
        **options,
    }
    return functools.partial(measured, asked=measure_options)


def _variable(system: System, variable: str, name: str) -> str:
    """Return the order parameter of a measure; M_w is short for M_ww."""
    layout: Rows = rows(system.parameters())
    variables = [block.name for block in layout.moving] + [
        layout.declaration.students[g].named(w) for g, w, _ in layout.scalars
    ]
    variables += [memory.name for memory in layout.declaration.memories]
    variables += ["loss", *(member.name for member, _ in labels.errors(layout.declaration))]
    variables += (
        ["classification_error"] if any(member.classifies() for member in layout.declaration.each_stage) else []
    )
    variable = measures.full_name(variable, variables)
    if variable not in variables:
        known_quantities = f"what a run holds is {', '.join(variables)}"
        if variable == "classification_error":
            known_quantities += (
                "; the share of wrong labels belongs to a hinge or logistic loss, and is error/4 where student and "
                "label are +1 or -1"
            )
        raise fields.Mistake(f"claim {name}: the measure names {variable!r}; {known_quantities}", "claim", "measure")
    return variable


def _entry(system: System, variable: str, place: str | None, name: str) -> tuple[int, ...] | None:
    """Return the entry in a measure as indices from 0; None without one."""
    if place is None:
        return None
    layout: Rows = rows(system.parameters())
    shapes = {block.name: block.shape for block in layout.moving}
    shapes |= {layout.declaration.students[g].named(word): (count,) for g, word, count in layout.scalars}
    shape = shapes.get(variable, ())
    numbers = [int(part) if part.strip() else 0 for part in place.split(",")]
    if len(shape) == 3 and len(numbers) == 2:  # indices of the whole vectors, not of their parts in a block
        shape = shape[1:]
    if len(numbers) != len(shape) or not all(1 <= n <= size for n, size in zip(numbers, shape, strict=True)):
        has = f"[{','.join('1' for _ in shape)}] to [{','.join(map(str, shape))}]" if shape else "no entries"
        raise fields.Mistake(
            f"claim {name}: {variable} has {has}, but {variable}[{place}] was given", "claim", "measure"
        )
    return tuple(n - 1 for n in numbers)
