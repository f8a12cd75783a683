"""Initial states from the end of an earlier run, stored or not."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from derivations.contract import System, load
from odesim.errors import UsageError
from odesim.flow.continuation import Started, taken_over
from odesim.machine import streams
from odesim.request.case import Case, digest_of, find_system
from odesim.request.trajectory import Trajectory
from odesim.store import Run
from odesim.study.comparison import Request


def digest_of_run(run: Any) -> str:
    """Return the digest of the request of a run, stored or not. If the run has no request, return that of its last
    state.
    """
    if isinstance(run, Run):
        return run.digest
    if run.asked is not None:
        return run.asked.digest
    content = hashlib.sha256()
    for name in sorted(run.state):
        content.update(name.encode() + np.ascontiguousarray(run.state[name].values).tobytes())
    origin = run.origin
    told = {"system": origin.system, "stage": origin.stage, "parameters": dict(origin.parameters), "seed": origin.seed}
    return digest_of({**told, "state": content.hexdigest()})


def started(after: Any) -> Any:
    """Return the run that a stage continues: a folder, a stored run or a run of this session; or raise `UsageError`."""
    if after is None or isinstance(after, str | Path | Run):
        return after
    if isinstance(after, Trajectory):
        return Started(after, digest_of_run(after))
    raise UsageError(f"--from RUN_DIR needs a run or the folder of one, but got {type(after).__name__}")


def from_run(
    system: Any, initial: Any, parameters: Mapping[str, Any], **stated: Any
) -> tuple[Any, Any, dict[str, Any]]:
    """Return system, initial arrays and parameters of a run that starts at the end of the run `initial`.

    If `initial` is not a run, the arguments are returned unchanged. Missing parameters are those of the earlier run,
    except its tier; `stated` are `preset` and `config`. Raises `UsageError` if `initial` is neither a file nor arrays
    nor a run, or is a run of another system.
    """
    if not isinstance(initial, Run | Trajectory):
        if initial is not None and not isinstance(initial, str | Path | Mapping):
            raise UsageError(
                f"--initial must be a run, an .npz file, or a mapping of arrays such as {{'V': V, 'W': W}}, but "
                f"{type(initial).__name__} was given"
            )
        return system, initial, dict(parameters)
    run = initial.trajectory if isinstance(initial, Run) else initial
    own = run.origin.required(find_system(system) if isinstance(system, str) else system)
    end, merged = taken_over(run, own, parameters, **stated)
    return own, _start(run, own, end), merged


def _start(run: Trajectory, system: System, end: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the last state of a run and its constants, under the names of a file of initial arrays."""
    origin = run.origin
    case = Case.build(system, origin.parameters, stage=origin.stage, seed=origin.seed, continued=True)
    enter = load(system.stage(case.stage).enter)
    initial = enter(case.parameters, end, streams.generator(case.seed, "initial"))
    names = [*initial.state, *initial.constants]
    arrays = {name: end[name] for name in names if name in end and end[name].dtype.kind in "biuf"}
    try:
        load(case.system.read_initial)(arrays, case.parameters, frozenset())
    except UsageError as error:  # without the arrays that its reader rejects, the start would be another one
        why = str(error).rstrip(".")
        raise UsageError(
            f"--initial cannot be a run of {case.system.name}, because a start of it needs other arrays "
            f"({why}); --from RUN_DIR continues the run"
        ) from None
    return arrays


def compared(second: Trajectory, digests: Sequence[str]) -> Request:
    """Return the request that names the comparison of two runs."""
    parts = {"first": digests[0], "second": digests[1]}
    return Request(second.origin.system, second.origin.name, second.origin.seed, parts)
