"""Many independent small flows, each with steps of its own, around compiled block functions.

A joint solver takes the steps of its fastest entry for all of them.  Where the blocks do not interact, each has its
own adaptive DOP853, and a stiffly accurate Rosenbrock method once stability and not accuracy limits the step, so that
a block at rest costs a number of steps that grows with the logarithm of the horizon.
"""

import concurrent.futures
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from derivations.contract import Crossing, Equations, Kernel, Written
from odesim.errors import NumericalError
from odesim.flow.tableau import dop853

LOOPS = (
    "runge_kutta",
    "error_norm",
    "factorise",
    "substitute",
    "rosenbrock",
    "short_step",
    "measure",
    "bump",
    "turning",
    "locate",
    "find_crossings",
    "attempt",
    "stability",
    "first_step",
    "save_states",
    "ended",
    "integrate_block",
    "integrate_blocks",
)
STATUS = {
    1: "the state is no longer finite",
    2: "the step size fell to zero",
    3: "a block took more steps than allowed",
}
MOST_STEPS = 200_000
Tolerances = tuple[float, float, float]
"""The relative and the absolute tolerance of a step, and the longest step."""


def compile_blocks(equations: Equations, arguments: Any) -> Callable[..., Any]:
    """The compiled `integrate_blocks` for some equations and arguments of these types, from the cache if it is there.

    It calls the functions of the equations by their addresses, and is compiled once for all of them.
    """
    import inspect

    from odesim.code import addressed, compile
    from odesim.flow import block_addresses as apart

    lending = addressed.Lending(arguments)

    def texts() -> list[str]:
        found = [inspect.getsource(getattr(apart, name)) for name in ("started", "sloped", "bent", "integrate")]
        return [f"INTEGRATE = {apart.INTEGRATE!r}", lending.text, *found]

    module = compile.compile_beside(equations, f"blocks_{lending.digest}", texts)
    lending.serve(module)
    shared = compile.common(apart.COMMON)["integrate_blocks"]
    parts = [(getattr(module, part), getattr(apart, part.upper())) for part in ("started", "sloped", "bent")]
    own = [addressed.address(*part) for part in parts]
    at = (addressed.address(shared, apart.INTEGRATE), *own)

    def run(start: np.ndarray, first: int, times: np.ndarray, until: float, control: Any, watch: Any, found: Any,
            given: Any) -> None:  # fmt: skip
        module.integrate(start, first, times, float(until), control, watch, found, *given, at)

    return run


def _texts() -> list[str]:
    import inspect

    from odesim.flow import block_loops

    return [inspect.getsource(getattr(block_loops, name)) for name in LOOPS]


def compile_around(
    structure: str, kernels: Callable[[], Mapping[str, Kernel | Written]], loops: Sequence[str]
) -> Callable[..., Any]:
    """The compiled `integrate_blocks` around block functions "module:function" and the kernels that they call."""
    from odesim.code import compile, sources

    def text() -> str:
        return compile.generate_module(structure, kernels(), loops) + "\n\n" + compile.decorated(_texts())

    modules = sorted({*sources.makers(kernels), *(name.partition(":")[0] for name in loops)})
    return compile.generated(f"{structure}_blocks", modules, text).integrate_blocks


def hitting_times(
    integrate: Callable[..., Any],
    starts: np.ndarray,
    crossing: Crossing,
    entry: int,
    until: float,
    tolerances: Tolerances,
    arguments: Any = (),
    workers: int = 1,
) -> np.ndarray:
    """When `entry` of each of many independent flows first crosses; each flow ends there, infinite: not before `until`.

    `integrate` is compiled (`compile_around`), `starts` (flows, n) are shared out to `workers` threads in turn, since
    neighbours often are alike.  Raises `NumericalError` where a flow fails.
    """
    starts = np.ascontiguousarray(starts, float)
    nowhere = np.zeros(0)
    rules, entries, table = np.array([rule(crossing, ends=True)]), np.array([entry]), coefficients()

    def run(some: np.ndarray) -> np.ndarray:
        count, n = some.shape
        hits, counts, status = np.full((count, 1), np.inf), np.zeros((count, 3), np.int64), np.zeros(count, np.int64)
        integrate(
            some, 0, nowhere, until, _control(tolerances), (entries, rules),
            (np.empty((count, 0, n)), hits, counts, status), (table, arguments),
        )  # fmt: skip
        if status.any():
            raise NumericalError(f"{STATUS[int(status.max())]} in {int((status != 0).sum())} of {count} flows")
        return np.where(crossing.margin(some[:, entry]) >= 0, 0.0, hits[:, 0])

    if workers == 1:
        return run(starts)
    found = np.empty(len(starts))
    parts = [slice(k, None, workers) for k in range(workers)]
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for part, times in zip(
            parts, pool.map(lambda part: run(np.ascontiguousarray(starts[part])), parts), strict=True
        ):
            found[part] = times
    return found


def trajectories(
    integrate: Callable[..., Any],
    starts: np.ndarray,
    times: np.ndarray,
    tolerances: Tolerances,
    arguments: Any = (),
) -> np.ndarray:
    """The states (flows, times, n) of many independent flows, `starts` (flows, n), at increasing `times` from 0.

    `integrate` is compiled (`compile_around`).  Raises `NumericalError` where a flow fails.
    """
    starts = np.ascontiguousarray(starts, float)
    count, n = starts.shape
    never = np.array([rule(Crossing("", "", np.inf), ends=False)])
    saved, hits = np.full((count, times.size, n), np.nan), np.full((count, 1), np.inf)
    counts, status = np.zeros((count, 3), np.int64), np.zeros(count, np.int64)
    integrate(
        starts, 0, times, float(times[-1]), _control(tolerances), (np.array([0]), never),
        (saved, hits, counts, status), (coefficients(), arguments),
    )  # fmt: skip
    if status.any():
        raise NumericalError(f"{STATUS[int(status.max())]} in {int((status != 0).sum())} of {count} flows")
    return saved


def _control(tolerances: Tolerances) -> tuple[float, float, int, float]:
    """What the loops are given: tolerances, most steps, and the longest step."""
    rtol, atol, longest = tolerances
    return rtol, atol, MOST_STEPS, longest


def tables(equations: Equations, size: int) -> tuple[np.ndarray, np.ndarray, list[tuple[str, np.ndarray]]]:
    """The crossings of one block: entries (crossings,), their rules as rows, and where hits go.

    The third result lists, for every crossing, its name and the array (blocks, entries of the block) of the positions
    of its hits.
    """
    entries, rules, places = [], [], []
    for crossing in equations.crossings:
        block = equations.layout.places(crossing.component, size).reshape(-1)
        first = len(entries)
        entries += [int(k) for k in block]
        rules += [rule(crossing)] * block.size
        places.append((crossing.name, np.arange(first, len(entries))))
    return np.array(entries, int), np.array(rules, float).reshape(-1, 4), places


def rule(crossing: Crossing, ends: bool = False) -> tuple[float, ...]:
    """A crossing as the loops read it: (threshold, direction, absolute, whether it ends its block)."""
    return (crossing.threshold, crossing.direction, float(crossing.absolute), float(ends))


@functools.cache
def coefficients() -> tuple[np.ndarray, ...]:
    """The coefficients A, B, E3, E5 of DOP853, as the loops take them."""
    table = dop853()
    return table.A, table.B, table.E3, table.E5
