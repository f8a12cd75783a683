"""Finite-sample SGD, alone or beside the flow that it is held against."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from odesim.request.case import Case
from odesim.sgd import families
from odesim.sgd.simulation import Simulation
from odesim.study.pair import FLOW, Pair

if TYPE_CHECKING:
    from derivations.contract import System

REPLICAS = 5
"""Replicas of SGD in a comparison that names no number of seeds: fewer leave intervals too wide to say anything."""


def request(
    system: "str | System",
    parameters: Mapping[str, Any],
    *,
    method: str,
    step_size: Any,
    batch: Any,
    seeds: Any = 1,
    device: str = "auto",
    precision: str = "float64",
    fresh_initial: bool = False,
    population_loss: bool = False,
    **options: Any,
) -> Simulation:
    """A simulation; `options` are those of `Case.build`, and numbers may be words.  Raises `UsageError`."""
    return Simulation.build(
        Case.build(system, parameters, **options),
        method=method,
        step_size=step_size,
        batch=batch,
        seeds=seeds,
        device=device,
        precision=precision,
        fresh_initial=fresh_initial,
        population_loss=population_loss,
    )


def pair(system: "str | System", parameters: Mapping[str, Any], *, method: str | None = None, **options: Any) -> Pair:
    """A simulation (`request`) with its flow, to which the options `FLOW` belong.

    Without a `method` it is compressed; on a user's own samples it is explicit, with compressed SGD as a third run, so
    that what differs because of the law of the samples is told apart from what SGD does.  Raises `UsageError`, before
    anything is computed, for steps that do not meet the times at which SGD is saved.
    """
    flow = {name: options.pop(name) for name in FLOW if name in options}
    options["seeds"] = REPLICAS if options.get("seeds") is None else options["seeds"]
    first = request(system, parameters, method=method or "compressed", **options)
    if method is not None or not families.has_samples(first.case):
        return Pair.build(first, flow)
    return Pair.build(request(system, parameters, method="explicit", **options), flow, first)
