"""Calls that take long: what a notebook shows of them, and what Ctrl-C leaves."""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odesim.request.trajectory import Trajectory

WHERE = "`except odesim.InterruptedRun as stopped:` has it as stopped.result, a prompt as sys.last_value.result"


@contextlib.contextmanager
def watched(what: str) -> Iterator[Any]:
    """The progress of a call; Ctrl-C where nothing can be kept, and what a course of stages keeps, in one type."""
    from odesim.ask.progress import in_cell
    from odesim.errors import Interrupted

    try:
        with in_cell(what) as progress:
            yield progress
    except Interrupted as error:
        from odesim.request.trajectory import Stages

        stop(f"{str(error).rstrip('.')}; the stages before it are kept", Stages(error.finished))


def stop(sentence: str, result: Any) -> NoReturn:
    """Raise `InterruptedRun`, which holds a result and says where it is."""
    from odesim.errors import InterruptedRun

    raise InterruptedRun(f"{sentence}: {WHERE}" if result is not None else sentence, result) from None


def whole(runs: "Sequence[Trajectory]", result: Any) -> Any:
    """The result of a call if its last run was not interrupted.  Raises `InterruptedRun`, which holds it, otherwise."""
    last = runs[-1]
    if last.outcome.kind == "interrupted":
        stop(f"interrupted at time {last.outcome.time:.6g}; the run up to there is kept", result)
    return result


def ended(run: "Trajectory", asked: Any) -> "Trajectory":
    """A run with its request; an interrupted one ends at its last good state, and is what was asked until then."""
    if run.outcome.kind != "interrupted":
        return dataclasses.replace(run, asked=asked)
    time = float(run.time[-1])
    outcome = dataclasses.replace(run.outcome, time=time, reason=f"interrupted at time {time:.6g}")
    return dataclasses.replace(run, outcome=outcome, asked=_until(asked, time))


def _until(asked: Any, time: float) -> Any:
    """The request for a flow or a simulation until an earlier time; `None` for what has no such time."""
    if time <= 0 or hasattr(asked, "cases"):
        return None
    if hasattr(asked, "case"):
        return dataclasses.replace(asked, case=_until(asked.case, time))
    return dataclasses.replace(asked, until=time, options=asked.options | {"until"})
