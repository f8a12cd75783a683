"""The command `odesim warm`, which derives and compiles in advance the code that first runs need."""

import functools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odesim.cli.options import SAID, takes

if TYPE_CHECKING:
    from derivations.contract import Dynamics, System

SHARE = 1e-3
"""Part of the default horizon that is integrated, because functions are compiled only when they are called."""


@takes(SAID)
def warm(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[SYSTEM|FILE ..]", help="Systems [default: those of the papers].")
    ] = None,
    **given: Any,
) -> int:
    """Derive and compile the flows of systems in advance, tier by tier, so that first runs start without delay."""
    import derivations
    from derivations import cache
    from odesim.cli.output import print_json
    from odesim.errors import UsageError
    from odesim.request.case import find_system

    made: dict[str, float] = {}
    refused: dict[str, str] = {}
    for system in [find_system(name) for name in names or derivations.names()]:
        for label, run in cases(system):
            began = time.perf_counter()
            try:
                run()
            except UsageError as error:  # a tier that needs parameters of its own
                refused[label] = str(error)
                continue
            made[label] = round(time.perf_counter() - began, 2)
            if not given["quiet"] and not given["json"]:
                print(f"odesim: {label}: {made[label]:.1f} s", file=sys.stderr, flush=True)
    folder = cache.folder()
    size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    if given["json"]:
        print_json({"seconds": made, "left_out": refused, "cache": str(folder), "bytes": size})
    else:
        for label, reason in () if given["quiet"] else refused.items():
            print(f"{label} is left out: {reason}")
        print(f"{folder} holds {size / 1e6:.1f} MB")
    return 0


def cases(system: "System") -> "Iterator[tuple[str, Callable[[], None]]]":
    """Return the tasks of `warm`, one for each tier: (label, function that integrates the tier for a short time)."""
    from derivations.contract import Dynamics

    for stage in system.stages:
        if isinstance(stage, Dynamics):
            for tier in stage.tiers:
                yield f"{system.name}, {stage.name}, {tier}", functools.partial(integrate, system, stage, tier)


def integrate(system: "System", stage: "Dynamics", tier: str) -> None:
    """Integrate a tier for a thousandth of its horizon, or two steps of a recursion, and compile implicit steps.

    Raises `UsageError` for a tier that needs parameters of its own.
    """
    from derivations.contract import Recursion, load
    from odesim.flow import solve
    from odesim.request.case import Case

    whole = Case.build(system, {"tier": tier}, stage=stage.name)
    advance = load(stage.equations)(whole.parameters, tier).advance
    recursion = advance if isinstance(advance, Recursion) else getattr(advance, "map", None)
    stride = getattr(whole.parameters, recursion.step) if recursion is not None and recursion.step else 1.0
    until = SHARE * whole.until if recursion is None else 2.0 * stride
    solve.solve(Case.build(system, {"tier": tier}, stage=stage.name, save_points=2, until=until))
    if getattr(advance, "coupled", None) is not None:
        from odesim.flow.solvers import ndf_loops

        assert ndf_loops  # importing it compiles the steps of long runs
