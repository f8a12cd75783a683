"""Claims that a declaration states as data: a measure over runs, a law, and a control that breaks the law."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations import measures
from derivations.broken import break_law
from derivations.claim import Claim, Grid, Variant
from derivations.contract import System
from derivations.declare import fields, labels
from derivations.declare.claims.in_stages import path
from derivations.declare.rows import Rows
from derivations.declare.system import rows
from derivations.laws import Bounded, Equals, Power
from derivations.laws.tools import EXCEPTIONS, LEAST_RUNS, LEAST_SIZES
from derivations.scaling import Form

KEYS = (
    "id", "statement", "measure", "engine", "over", "law", "expected", "until", "step", "batch", "parameters",
    "published",
)  # fmt: skip
LAWS = ("power", "equals", "at_most", "at_least")
REASONS = ("short", "no_log_rival")
"""Why a power has few sizes, and why no logarithm counts: see `derivations.laws.Power`."""
ENGINES = ("flow", "explicit", "compressed", "bands")
NUMERICAL = {"flow": 1e-6, "bands": 1e-4}
"""Engines without runs at random, with the relative error of their numbers: that of bands is the quadrature's."""
RUNS = 200
"""Runs of compressed SGD that are held against a band: the share inside has a standard error of 2 %."""
ANSWERS = ("confirmed", "refuted", "consistent", "inconclusive")
SAVED, LOOKS, CLOSE = 1001, 5, 1e-3
"""Saved points of a run; how often a flow is looked at again, until a time is known to this part of itself."""
MOST_POINTS = 10_000
UNTIL = "until"
"""What `over` may name beside parameters: the end of a run, for a law of the time."""


def claims(system: System) -> tuple[Claim, ...]:
    """The claims of a declaration's [[claim]] tables.

    Raises `UsageError` for one that cannot be read, or whose measure names no order parameter.
    """
    declared = system.parameters.declaration
    return tuple(claim(system, entry, number) for number, entry in enumerate(declared.claims, 1))


def claim(system: System, entry: Mapping[str, Any], number: int) -> Claim:
    """The claim of one table, the one with this number.  Raises `fields.Mistake`."""
    fields.require_known(entry, KEYS, "claim")
    name = fields.name(entry, "id", "claim", f"claim-{number}")
    measure = _measure(system, entry, name)
    over = dict(_table(entry, "over", name))
    seeds = fields.whole({"seeds": over.pop("seeds", 1)}, "seeds", "claim", 1)
    law, broken = _law(entry, over, seeds, name)
    _require_parameters(system, entry, over, name)
    _require_end_times(entry, over, name)
    expected: Any = fields.choice(entry, "expected", ANSWERS, "confirmed", "claim")
    published = _published(entry, name)
    if isinstance(law, Power):
        _require_enough(over[law.over], seeds, law.over, name)
    return Claim(
        id=name,
        statement=fields.text(entry, "statement", "claim", name),
        source=system.source.at(published or "stated"),
        measure=measure,
        law=law,
        sweep={"quick": Grid(_points(over), seeds)},
        control=break_law(**broken),
        rungs=(7,) if entry.get("engine", "flow") == "flow" else (8,),
        variants=(Variant("main", expected=expected),),
        derived=not published,
    )


def _published(entry: Mapping[str, Any], name: str) -> str:
    """Return where the source prints what is claimed; "" for a claim that was derived by the author of the file."""
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
    """Refuse a power over so few values or runs that its law could decide nothing."""
    if len(set(values)) < LEAST_SIZES or 1 < seeds < LEAST_RUNS:
        raise fields.Mistake(
            f"claim {name}: a power needs {LEAST_SIZES} values of {coordinate} or more, and one seed or at least "
            f"{LEAST_RUNS}, as in over = {{{coordinate} = [1e3, 1e4, 1e5, 1e6, 1e7], seeds = {LEAST_RUNS}}}",
            "claim",
            "over",
        )


def _table(entry: Mapping[str, Any], key: str, name: str) -> Mapping[str, Any]:
    given = entry.get(key, {})
    if not isinstance(given, Mapping):
        raise fields.Mistake(f"claim {name}: {key} is a table such as {{d = [1e3, 1e4]}}", "claim", key)
    return given


def _require_parameters(system: System, entry: Mapping[str, Any], over: Mapping[str, Any], name: str) -> None:
    """Every parameter that is named is one of the model's, and every value a number or a word."""
    known = [field.name for field in dataclasses.fields(system.parameters)]
    for key, table in (("over", over), ("parameters", _table(entry, "parameters", name))):
        for word, value in table.items():
            if key == "over" and word == UNTIL:
                continue
            if word not in known:
                raise fields.Mistake(
                    f"claim {name}: {key} names {fields.shown(word)}, which is not a parameter of the model; "
                    f"{fields.near(word, known)}",
                    "claim",
                    key,
                )
            values = value if isinstance(value, list) and key == "over" else [value]
            if not values or not all(isinstance(v, int | float | str) and not isinstance(v, bool) for v in values):
                raise fields.Mistake(
                    f"claim {name}: {word} takes numbers or words, but {fields.shown(value)} was given", "claim", key
                )


def _require_end_times(entry: Mapping[str, Any], over: Mapping[str, Any], name: str) -> None:
    """End times that a claim ranges over are positive numbers; they belong to final values alone."""
    if UNTIL not in over:
        return
    values = over[UNTIL] if isinstance(over[UNTIL], list) else [over[UNTIL]]
    if not values:
        raise fields.Mistake(f"claim {name}: until takes numbers, but [] was given", "claim", "over")
    for value in values:
        fields.real({UNTIL: value}, UNTIL, "claim", above=0.0)
    if str(entry["measure"]).startswith("first"):
        said = "over = {until = ..} belongs to a measure 'final R'; a first time does not depend on the end of the run"
        raise fields.Mistake(f"claim {name}: {said}", "claim", "over")
    if UNTIL in entry:
        raise fields.Mistake(
            f"claim {name}: until is given twice, in the claim and in over; leave one of the two out", "claim", UNTIL
        )


def _points(over: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """The grid of all values, whole numbers as such."""
    points: list[dict[str, Any]] = [{}]
    for name, values in over.items():
        listed = values if isinstance(values, list) else [values]
        numbers = [int(v) if isinstance(v, float) and v.is_integer() else v for v in listed]
        points = [{**point, name: value} for point in points for value in numbers]
        if len(points) > MOST_POINTS:
            raise fields.Mistake(f"over gives more than {MOST_POINTS} runs", "claim", "over")
    return tuple(points)


def _law(entry: Mapping[str, Any], over: Mapping[str, Any], seeds: int, name: str) -> tuple[Any, dict[str, Any]]:
    """The law, and the fields by which its control breaks it."""
    table = entry.get("law")
    if not isinstance(table, Mapping) or sum(word in table for word in LAWS) != 1:
        raise fields.Mistake(
            f"claim {name}: law is a table with one of {', '.join(LAWS)}, as in law = {{power = 0.5}}", "claim", "law"
        )
    try:
        return _read_law(entry, table, over, seeds)
    except fields.Mistake as mistake:
        raise fields.Mistake(f"claim {name}: {mistake} in the law", "claim", "law") from None


def _read_law(
    entry: Mapping[str, Any], table: Mapping[str, Any], over: Mapping[str, Any], seeds: int
) -> tuple[Any, dict[str, Any]]:
    fields.require_known(table, (*LAWS, "margin", "rivals", "over", "toward", *REASONS, "exceptions"), "claim")
    measure = measures.read(str(entry.get("measure", "")))
    share = measure is not None and measure.inside is not None
    sampled = share or entry.get("engine", "flow") not in NUMERICAL
    margin = fields.real(table, "margin", "claim", 0.05, above=0.0)
    if "power" in table:
        listed = [key for key, values in over.items() if isinstance(values, list)]
        coordinate = fields.text(table, "over", "claim", listed[0] if listed else "d")
        if coordinate not in listed:
            raise fields.Mistake(
                f"a power of {coordinate} needs several values of it, as in over = {{{coordinate} = [1e3, 1e4]}}"
            )
        power = fields.real(table, "power", "claim")
        given = table.get("rivals", [])
        if not isinstance(given, list):
            raise fields.Mistake(f"rivals is a list of exponents, but {fields.shown(given)} was given")
        exponents = [fields.real({"rivals": r}, "rivals", "claim") for r in given]
        rivals = tuple(Form(f"{coordinate}^{r:g}", 0.0, r) for r in exponents)
        exact = None if sampled or seeds > 1 else 1e-4  # straight lines between saved points
        below = all(isinstance(x, int | float) and x <= 1 for x in over[coordinate])
        toward: Any = fields.choice(table, "toward", ("large", "small"), "small" if below else "large", "claim")
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


def _measure(system: System, entry: Mapping[str, Any], name: str) -> Any:
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
    engine = fields.choice(entry, "engine", ENGINES, "flow", "claim")
    above = {key: fields.real(entry, key, "claim", above=0.0) for key in ("until", "step") if key in entry}
    variable = _variable(system, measure.variable, name)
    asked = {
        "engine": engine,
        "variable": variable,
        "entry": _entry(system, variable, measure.place, name),
        "reduction": measure.reduction,
        "absolute": measure.absolute,
        "sign": measure.sign,
        "level": measure.level,
        "inside": measure.inside,
        "quantity": measure.quantity.replace(measure.variable, variable),
        "until": above.get("until"),
        "step": above.get("step"),
        "batch": fields.whole(entry, "batch", "claim", 1) if "batch" in entry else None,
        "parameters": dict(_table(entry, "parameters", name)),
    }
    return functools.partial(measured, asked=asked)


def _variable(system: System, variable: str, name: str) -> str:
    """The order parameter that a measure names; M_w stands for M_ww."""
    at: Rows = rows(system.parameters())
    known = [block.name for block in at.moving] + [at.declaration.students[g].named(w) for g, w, _ in at.scalars]
    known += [memory.name for memory in at.declaration.memories]
    known += ["loss", *(one.name for one, _ in labels.errors(at.declaration))]
    known += ["classification_error"] if any(one.classifies() for one in at.declaration.each_stage) else []
    variable = measures.full_name(variable, known)
    if variable not in known:
        known_quantities = f"what a run holds is {', '.join(known)}"
        if variable == "classification_error":
            known_quantities += (
                "; the share of wrong labels belongs to a hinge or logistic loss, and is error/4 where student and "
                "label are +1 or -1"
            )
        raise fields.Mistake(f"claim {name}: the measure names {variable!r}; {known_quantities}", "claim", "measure")
    return variable


def _entry(system: System, variable: str, place: str | None, name: str) -> tuple[int, ...] | None:
    """The entry that a measure names by its numbers from 1 on, counted from 0; None where it names none."""
    if place is None:
        return None
    at: Rows = rows(system.parameters())
    shapes = {block.name: block.shape for block in at.moving}
    shapes |= {at.declaration.students[g].named(word): (count,) for g, word, count in at.scalars}
    shape = shapes.get(variable, ())
    numbers = [int(part) if part.strip() else 0 for part in place.split(",")]
    if len(shape) == 3 and len(numbers) == 2:  # of the whole vectors, not of their parts in a block
        shape = shape[1:]
    if len(numbers) != len(shape) or not all(1 <= n <= size for n, size in zip(numbers, shape, strict=True)):
        has = f"[{','.join('1' for _ in shape)}] to [{','.join(map(str, shape))}]" if shape else "no entries"
        raise fields.Mistake(
            f"claim {name}: {variable} has {has}, but {variable}[{place}] was given", "claim", "measure"
        )
    return tuple(n - 1 for n in numbers)


def measured(lab: Any, point: Mapping[str, Any], seed: int, asked: Mapping[str, Any]) -> float:
    """The number that a stated measure asks of one run: a hitting time (infinite: never), or a final value."""
    request = {**asked["parameters"], **point}
    asked = {**asked, "until": request.pop(UNTIL, asked["until"])}
    if asked["engine"] == "bands":
        return of_bands(lab, request, seed, asked)
    several = bool(lab.system.parameters.declaration.stages)
    until = float(asked["until"]) if asked["until"] is not None else None
    if asked["engine"] != "flow":
        step = {"step_size": float(asked["step"])} if asked["step"] is not None else {}
        step |= {"batch": int(asked["batch"])} if asked["batch"] is not None else {}
        request |= {"seed": seed, "save_points": SAVED, **step}
        if several:
            return reading(*path(lab, asked["variable"], asked["engine"], until, **request), asked)[0]
        run = lab.simulate(method=asked["engine"], until=until, **request)
        return reading(np.asarray(run.time), np.asarray(run[asked["variable"]])[0], asked)[0]
    found = float("inf")
    # New points for every seed: several seeds then show the error of means over points, which one run cannot.
    request.setdefault("sample_seed", seed)
    for _ in range(LOOKS):
        if several:
            times, values = path(lab, asked["variable"], "flow", until, seed=seed, save_points=SAVED, **request)
        else:
            run = lab.integrate(seed=seed, until=until, save_points=SAVED, **request)
            times, values = np.asarray(run.time), np.asarray(run[asked["variable"]])
        found, after = reading(times, values, asked)
        if not np.isfinite(found) or after is None or times[1] <= CLOSE * found:
            break
        until = after  # what happens early in a long run is looked at again, between finer points
    return found


def of_bands(lab: Any, request: Mapping[str, Any], seed: int, asked: Mapping[str, Any]) -> float:
    """The number that a measure asks of SGD by its bands: the mean at the end, a median time, or the share inside.

    Runs of compressed SGD decide on the share, from the one start of the bands.
    """
    quantity, until = asked["quantity"], float(asked["until"]) if asked["until"] is not None else None
    given = {"step_size": asked["step"], "batch": asked["batch"]}
    given = {name: value for name, value in given.items() if value is not None}
    if asked["sign"] is not None:
        text = f"first time {quantity} {asked['sign']} {asked['level']!r}"
        answer = lab.bands(seed=seed, until=until, of=[text], fresh_initial=True, **given, **request)
        hitting = answer.summary()["hitting"]
        return float(hitting[0]["quantiles"][2]) if hitting else float("nan")
    level = {} if asked["inside"] is None else {"level": asked["inside"]}
    answer = lab.bands(seed=seed, until=until, of=[f"final {quantity}"], **level, **given, **request)
    name = answer.place(quantity)
    if asked["inside"] is None:
        return float(answer[f"{name}_centre"][-1])
    if f"{name}_low" not in answer.keys():
        return float("nan")
    run = lab.simulate(method="compressed", seed=seed, until=until, seeds=RUNS, save_points=2, **given, **request)
    ends = np.array([followed(values, asked)[-1] for values in np.asarray(run[asked["variable"]])])
    return float(((ends >= answer[f"{name}_low"][-1]) & (ends <= answer[f"{name}_high"][-1])).mean())


def of_whole_vectors(values: np.ndarray) -> np.ndarray:
    """Overlaps (time, unit, ...) of whole vectors, from those of their parts (time, block, unit, ...); others as given.

    >>> of_whole_vectors(np.ones((5, 3, 2, 2))).shape, of_whole_vectors(np.ones((5, 2, 2))).shape
    ((5, 2, 2), (5, 2, 2))
    """
    return values.sum(axis=1) if values.ndim == 4 else values


def followed(values: np.ndarray, asked: Mapping[str, Any]) -> np.ndarray:
    """The path (time,) that a measure follows, of the values (time, ...) of an order parameter: an entry, or of all.

    Overlaps by blocks of the inputs (time, block, unit, ...) are summed over the blocks, unless the entry names one.
    An entry that the sizes of a run do not have is no number.
    """
    if asked["entry"] is None or len(asked["entry"]) == 2:
        values = of_whole_vectors(values)
    values = np.abs(values) if asked["absolute"] else values
    if asked["entry"] is None:
        return measures.REDUCTIONS[asked["reduction"]](values.reshape(len(values), -1), axis=1)
    inside = all(n < size for n, size in zip(asked["entry"], values.shape[1:], strict=True))
    return values[(slice(None), *asked["entry"])] if inside else np.full(len(values), np.nan)


def reading(times: np.ndarray, values: np.ndarray, asked: Mapping[str, Any]) -> tuple[float, float | None]:
    """The number asked of one path, and for a time the first saved one after it."""
    path = followed(values, asked)
    if asked["sign"] is None:
        return float(path[-1]), None
    beyond = (path - asked["level"]) * (1.0 if asked["sign"] == ">=" else -1.0)
    found = crossed(times, beyond)
    return found, float(times[int(np.argmax(beyond >= 0))]) if np.isfinite(found) and found > 0 else None


def crossed(times: np.ndarray, beyond: np.ndarray) -> float:
    """When a path first is not negative, between saved points by a straight line; infinite where never."""
    reached = np.flatnonzero(beyond >= 0)
    if not reached.size:
        return float("inf")
    k = int(reached[0])
    if k == 0:
        return float(times[0])
    share = -beyond[k - 1] / (beyond[k] - beyond[k - 1])
    return float(times[k - 1] + share * (times[k] - times[k - 1]))
