"""Long calls: their progress display in notebooks, and their results after Ctrl-C."""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odesim.request.trajectory import Trajectory

WHERE = (
    "the result is stopped.result in `except odesim.InterruptedRun as stopped:`, and sys.last_value.result at a prompt"
)


@contextlib.contextmanager
def watched(what: str) -> Iterator[Any]:
    """Context manager of a long call. It yields the progress display, and raises `InterruptedRun` with the finished
    stages.
    """
    from odesim.ask.progress import in_cell
    from odesim.errors import Interrupted

    try:
        with in_cell(what) as progress:
            yield progress
    except Interrupted as error:
        from odesim.request.trajectory import Stages

        stop(f"{str(error).rstrip('.')}; the stages before it are kept", Stages(error.finished))


def stop(sentence: str, result: Any) -> NoReturn:
    """Raise `InterruptedRun` with a result. The message names the attribute that has it."""
    from odesim.errors import InterruptedRun

    raise InterruptedRun(f"{sentence}: {WHERE}" if result is not None else sentence, result) from None


def whole(runs: "Sequence[Trajectory]", result: Any) -> Any:
    """Return the result of a call. Raise `InterruptedRun` with this result if its last run was interrupted."""
    last = runs[-1]
    if last.outcome.kind == "interrupted":
        stop(f"interrupted at time {last.outcome.time:.6g}; the run up to there is kept", result)
    return result


def ended(run: "Trajectory", asked: Any) -> "Trajectory":
    """Attach the request to a run. The request of an interrupted run ends at its last good state."""
    if run.outcome.kind != "interrupted":
        return dataclasses.replace(run, asked=asked)
    time = float(run.time[-1])
    outcome = dataclasses.replace(run.outcome, time=time, reason=f"interrupted at time {time:.6g}")
    return dataclasses.replace(run, outcome=outcome, asked=_until(asked, time))


def _until(asked: Any, time: float) -> Any:
    """Return the request with an earlier end time; None if it has no end time."""
    if time <= 0 or hasattr(asked, "cases"):
        return None
    if hasattr(asked, "case"):
        return dataclasses.replace(asked, case=_until(asked.case, time))
    return dataclasses.replace(asked, until=time, options=asked.options | {"until"})
