"""Claims that a declaration states as data: a measure over runs, a law, and a control that breaks the law."""

import dataclasses
import functools
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_law
from derivations.claim import Claim, Grid, Variant
from derivations.contract import System, UsageError
from derivations.declare import fields
from derivations.declare.rows import Rows
from derivations.declare.system import rows
from derivations.laws import Bounded, Equals, Power
from derivations.scaling import Form

KEYS = (
    "id", "statement", "measure", "engine", "over", "law", "expected", "until", "step", "batch", "parameters",
)  # fmt: skip
LAWS = ("power", "equals", "at_most", "at_least")
SIZES, SEEDS = 4, 5
"""What the law of a power asks for; with fewer it decides nothing."""
ENGINES = ("flow", "explicit", "compressed")
ANSWERS = ("confirmed", "refuted", "consistent", "inconclusive")
REDUCTIONS = {"max": np.max, "min": np.min, "mean": np.mean}
FORMS = "'first time max(abs(M_ww)) >= 0.5', 'final loss', 'final max(abs(M_ww))'"


def claims(system: System) -> tuple[Claim, ...]:
    """The claims of a declaration's [[claim]] tables.

    Raises `UsageError` for one that cannot be read, or whose measure names no order parameter.
    """
    declared = system.parameters.declaration
    return tuple(_claim(system, entry, number) for number, entry in enumerate(declared.claims, 1))


def _claim(system: System, entry: Mapping[str, Any], number: int) -> Claim:
    fields.require_known(entry, KEYS, "claim")
    name = fields.text(entry, "id", "claim", f"claim-{number}")
    measure = _measure(system, entry, name)
    over = dict(entry.get("over", {}))
    seeds = fields.whole(over, "seeds", "claim", 1)
    over.pop("seeds", None)
    law, broken = _law(entry, over, name)
    known = {field.name for field in dataclasses.fields(system.parameters)}
    for key in over:
        if key not in known:
            raise UsageError(f"claim {name}: over names {key!r}, which is no parameter of the model")
    expected: Any = fields.choice(entry, "expected", ANSWERS, "confirmed", "claim")
    return Claim(
        id=name,
        statement=fields.text(entry, "statement", "claim", name),
        source=system.source.at("stated"),
        measure=measure,
        law=law,
        sweep={"quick": Grid(_points(over), seeds)},
        control=break_law(**broken),
        rungs=(7,) if entry.get("engine", "flow") == "flow" else (8,),
        variants=(Variant("main", expected=expected),),
    )


def _points(over: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """The grid of all values, whole numbers as such."""
    points: list[dict[str, Any]] = [{}]
    for name, values in over.items():
        listed = values if isinstance(values, list) else [values]
        numbers = [int(v) if isinstance(v, float) and v == int(v) else v for v in listed]
        points = [{**point, name: value} for point in points for value in numbers]
    return tuple(points)


def _law(entry: Mapping[str, Any], over: Mapping[str, Any], name: str) -> tuple[Any, dict[str, Any]]:
    """The law, and the fields by which its control breaks it."""
    table = entry.get("law")
    if not isinstance(table, Mapping) or sum(word in table for word in LAWS) != 1:
        raise UsageError(f"claim {name}: law is a table with one of {', '.join(LAWS)}, as in law = {{power = 0.5}}")
    fields.require_known(table, (*LAWS, "margin", "rivals", "over"), "claim")
    sampled = entry.get("engine", "flow") != "flow"
    seeds = int(dict(entry.get("over", {})).get("seeds", 1))
    if "power" in table:
        listed = [key for key, values in over.items() if isinstance(values, list)]
        coordinate = str(table.get("over", listed[0] if listed else "d"))
        power = fields.real(table, "power", "claim")
        values = over.get(coordinate)
        if not isinstance(values, list) or len(set(values)) < SIZES or 1 < seeds < SEEDS:
            raise UsageError(
                f"claim {name}: a power needs {SIZES} values of {coordinate} or more, and one seed or at "
                f"least {SEEDS}, as in over = {{{coordinate} = [1e3, 1e4, 1e5, 1e6], seeds = 5}}"
            )
        rivals = tuple(Form(f"{coordinate}^{r:g}", 0.0, float(r)) for r in table.get("rivals", ()))
        exact = None if sampled or seeds > 1 else 1e-6
        toward: Any = "small" if values[0] > values[-1] else "large"  # listed from large to small: their limit at 0
        law = Power(
            power, over=coordinate, margin=float(table.get("margin", 0.05)), rivals=rivals, error=exact, toward=toward
        )
        return law, {"exponent": power + 1.0, "rivals": ()}
    margin = float(table.get("margin", 0.05))
    if "equals" in table:
        value = fields.real(table, "equals", "claim")
        law_ = Equals(value, absolute=margin * max(abs(value), 1e-300), error=None if sampled or seeds > 1 else 1e-6)
        return law_, {"value": value + 10 * margin * max(abs(value), 1e-3)}
    if "at_most" in table:
        bound = fields.real(table, "at_most", "claim")
        return Bounded(high=bound), {"high": bound - 1e6 * max(abs(bound), 1.0)}
    bound = fields.real(table, "at_least", "claim")
    return Bounded(low=bound), {"low": bound + 1e6 * max(abs(bound), 1.0)}


def _measure(system: System, entry: Mapping[str, Any], name: str) -> Any:
    text = fields.text(entry, "measure", "claim", "")
    form = re.fullmatch(
        r"\s*(?P<when>first time|final)\s+(?P<what>[\w()\s]+?)\s*(?:(?P<sign>>=|<=)\s*(?P<level>[-+.\deE]+))?\s*", text
    )
    inner = (
        re.fullmatch(r"(?:(max|min|mean)\s*\()?\s*(?:(abs)\s*\()?\s*(\w+?)\s*\)*", form["what"].strip())
        if form
        else None
    )
    if form is None or inner is None or (form["when"] == "first time") != (form["sign"] is not None):
        raise UsageError(f"claim {name}: measure {text!r} cannot be read; write one like {FORMS}")
    reduction, absolute, variable = inner.groups()
    at: Rows = rows(system.parameters())
    known = [block.name for block in at.moving] + [at.declaration.students[g].named(w) for g, w, _ in at.scalars]
    known += ["loss", "error"]
    aliases = {"_".join(part for part in (k.rsplit("_", 1)[0], k[-1])): k for k in known if k[-2:] == k[-1] * 2}
    variable = aliases.get(variable, variable)
    if variable not in known:
        raise UsageError(f"claim {name}: the measure names {variable!r}; what a run holds is {', '.join(known)}")
    engine = fields.choice(entry, "engine", ENGINES, "flow", "claim")
    asked = {
        "engine": engine,
        "variable": variable,
        "reduction": reduction or "max",
        "absolute": absolute is not None,
        "sign": form["sign"],
        "level": float(form["level"]) if form["level"] else None,
        "until": entry.get("until"),
        "step": entry.get("step"),
        "batch": entry.get("batch"),
        "parameters": dict(entry.get("parameters", {})),
    }
    return functools.partial(measured, asked=asked)


def measured(lab: Any, point: Mapping[str, Any], seed: int, asked: Mapping[str, Any]) -> float:
    """The number that a stated measure asks of one run: a hitting time (infinite: never), or a final value."""
    request = {**asked["parameters"], **point}
    until = float(asked["until"]) if asked["until"] is not None else None
    if asked["engine"] == "flow":
        run = lab.integrate(seed=seed, until=until, save_points=2001, **request)
        path, times = followed(run[asked["variable"]], asked), np.asarray(run.time)
        first = np.flatnonzero(beyond(path, asked) >= 0) if asked["sign"] is not None else np.array([])
        if first.size and 0 < first[0]:  # an early time is resolved as well as a late one: saved times up to it alone
            run = lab.integrate(seed=seed, until=float(times[first[0]]), save_points=2001, **request)
            path, times = followed(run[asked["variable"]], asked), np.asarray(run.time)
    else:
        step = {"step_size": float(asked["step"])} if asked["step"] is not None else {}
        step |= {"batch": int(asked["batch"])} if asked["batch"] is not None else {}
        run = lab.simulate(method=asked["engine"], seed=seed, until=until, save_points=2001, **step, **request)
        path, times = followed(np.asarray(run[asked["variable"]])[0], asked), np.asarray(run.time)
    return float(path[-1]) if asked["sign"] is None else crossed(times, beyond(path, asked))


def followed(values: Any, asked: Mapping[str, Any]) -> np.ndarray:
    """The largest, least or mean entry of an order parameter, or of its size, along a run."""
    found = np.abs(np.asarray(values)) if asked["absolute"] else np.asarray(values)
    return REDUCTIONS[asked["reduction"]](found.reshape(len(found), -1), axis=1)


def beyond(path: np.ndarray, asked: Mapping[str, Any]) -> np.ndarray:
    """How far a path is past the level, on the side that is asked for."""
    return (path - asked["level"]) * (1.0 if asked["sign"] == ">=" else -1.0)


def crossed(times: np.ndarray, past: np.ndarray) -> float:
    """When a path first is not negative, between saved points by a straight line; infinite where never."""
    reached = np.flatnonzero(past >= 0)
    if not reached.size:
        return float("inf")
    k = int(reached[0])
    if k == 0:
        return float(times[0])
    share = -past[k - 1] / (past[k] - past[k - 1])
    return float(times[k - 1] + share * (times[k] - times[k - 1]))
