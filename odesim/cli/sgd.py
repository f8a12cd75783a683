"""The commands of finite-sample SGD: `odesim simulate` and `odesim compare`."""

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odesim.cli.options import (
    CONTINUED,
    DRAWN,
    DRY,
    EULER,
    FOLDER,
    FRESH,
    LOSS,
    REQUEST,
    RESUMED,
    SAID,
    TRAINING,
    From,
    Method,
    OptionalMethod,
    OptionalSystem,
    Parameters,
    SystemOrFrom,
    TwoRuns,
    of,
    takes,
)

Sizes = Annotated[
    list[str] | None,
    typer.Option(
        "--over", metavar="KEY=v1,v2,..", help="Compare at several sizes, and fit how the distance depends on them."
    ),
]

BandOption = Annotated[
    bool | None,
    typer.Option(
        "--band/--no-band",
        help="Draw the 90 % band of SGD around the flow [default: up to a saddle, for a declared model of at most 20 "
        "order parameters].",
    ),
]

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@takes(TRAINING, FRESH, LOSS, CONTINUED, FOLDER, RESUMED, DRAWN, DRY, SAID)
def simulate(
    method: Method, system: SystemOrFrom = None, from_: From = None, parameter: Parameters = None, **given: Any
) -> int:
    """Run finite-sample SGD of a system, with weights or with overlaps alone, and write a run folder."""
    started = time.perf_counter()
    from odesim.machine.device import set_threads

    set_threads(given["threads"])
    from odesim.ask import sgd as ask
    from odesim.cli.run import execute, show_request
    from odesim.request.parse import parse_assignments
    from odesim.sgd import effort
    from odesim.sgd.simulation import Simulation, condition_of, refuse_tier

    options = {"method": method, **of(given, TRAINING, FRESH, LOSS, REQUEST)}
    asked = ask.stages(system, parse_assignments(parameter or []), start=from_, **options)
    every = (asked,) if isinstance(asked, Simulation) else asked.cases
    for simulation in every:
        refuse_tier(simulation.case)
    if given["dry_run"]:
        return show_request(asked, given)
    first = condition_of(every[0])
    effort.check(every[0], first)
    said = effort.announcement(every[0], first)
    if said and not given["quiet"]:
        print(f"odesim: {said}", file=sys.stderr, flush=True)
    return execute(
        asked, lambda progress, checkpoint: ask.run(asked, progress, checkpoint, given["threads"]),
        f"simulating {asked.name}", started, given,
    )  # fmt: skip


@takes(TRAINING, REQUEST, EULER, FOLDER, RESUMED, DRAWN, SAID)
def compare(
    runs: TwoRuns = None,
    system: OptionalSystem = "",
    method: OptionalMethod = None,
    parameter: Parameters = None,
    over: Sizes = None,
    band: BandOption = None,
    **given: Any,
) -> int:
    """Compare the flow with SGD, or two stored runs: distances with intervals, and a figure.

    For models that have bands, the picture shows the 90 % band of SGD around the flow.  `inside_90` is the share of
    replicas and times inside this band, which is expected to be .90.

    With --over d=100,400,1600 flow and SGD are compared at every size.  The result is the distance of SGD from the
    flow as a function of d, with its fitted exponent and the exponent of sampling noise.
    """
    from odesim.machine.device import set_threads

    set_threads(given["threads"])
    started = time.perf_counter()
    from odesim.errors import UsageError
    from odesim.request.parse import parse_assignments

    if band is not None and (runs or over):
        raise UsageError(
            f"{'--band' if band else '--no-band'} is an option for a single comparison of a system with its "
            "SGD; leave it out"
        )
    if runs:
        if system or over:
            raise UsageError("compare takes either two run folders, or --system with the options of a simulation")
        if len(runs) == 1:
            raise UsageError(
                f"compare needs a second run besides {runs[0]}: `odesim compare {runs[0]} RUN_DIR` compares "
                "two stored runs, and `odesim compare --system NAME` the flow with SGD"
            )
        if len(runs) > 2:
            raise UsageError(f"compare takes two run folders, but {len(runs)} were given: name two")
        return _compare_stored(runs, started, given)
    if not system:
        raise UsageError("give --system with the options of a simulation, or two run folders")
    assignments = parse_assignments(parameter or [])
    options = of(given, TRAINING, REQUEST, EULER)
    if over:
        return _compare_over(system, over, assignments, {"method": method or "compressed", **options}, given)
    from odesim.ask import sgd as ask
    from odesim.cli.run import execute

    pair = ask.pair(system, assignments, method=method, band=band, **options)
    return execute(
        pair.wanted, lambda progress, checkpoint: [pair.run(progress, given["threads"]).trajectory()],
        f"comparing runs of {pair.wanted.name}", started, given,
    )  # fmt: skip


def _compare_stored(runs: "Sequence[str]", started: float, given: "Mapping[str, Any]") -> int:
    """Compare two stored runs, the second with the first."""
    from odesim import store
    from odesim.ask import begin
    from odesim.cli.run import execute
    from odesim.study.comparison import compare_stored

    first, second = (store.load(folder) for folder in runs)
    wanted = begin.compared(second.trajectory, [first.digest, second.digest])
    return execute(
        wanted, lambda progress, checkpoint: [compare_stored(first.trajectory, second.trajectory).trajectory()],
        f"comparing runs of {wanted.name}", started, given,
    )  # fmt: skip


def _compare_over(
    system: str, over: "Sequence[str]", assignments: "Mapping[str, Any]", options: "Mapping[str, Any]",
    given: "Mapping[str, Any]",
) -> int:  # fmt: skip
    """Compare the flow of a system with SGD at every value of one size."""
    import math

    from odesim.ask import sweep as ask
    from odesim.cli.sweep import answer
    from odesim.cli.waiting import Wait
    from odesim.request.parse import parse_ranges
    from odesim.sweeps import sweep as sweeps

    values = parse_ranges(over, sweeps.list_parameters(system), sweeps.fractional(system))
    wait = Wait(math.prod(map(len, values.values())), True)
    return answer(ask.compared(system, values, assignments, **options), wait, "local", None, given)
