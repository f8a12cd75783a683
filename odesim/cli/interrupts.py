"""Handling of Ctrl-C in commands, also inside compiled code that does not return, and at the end of the process."""

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

from odesim.cli.output import INTERRUPTED

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

PATIENCE = 5.0
"""Seconds that Python has to react to Ctrl-C before the process is ended."""


@contextlib.contextmanager
def noting(asked: list[int]) -> Iterator[None]:
    """Record in `asked` that Ctrl-C was pressed, and raise `KeyboardInterrupt` as usual.

    LLVM calls back into Python while it compiles. An exception raised there is lost with a traceback, and the compiler
    fails a moment later because a result is missing.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or not _in_main_thread():
        yield
        return
    heard = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        heard.set()
        asked.append(number)
        signal.default_int_handler(number, frame)

    def dropped(unraisable: "UnraisableHookArgs") -> None:
        if not isinstance(unraisable.exc_value, KeyboardInterrupt):
            hook(unraisable)

    hook = sys.unraisablehook
    signal.signal(signal.SIGINT, note)
    sys.unraisablehook = dropped
    try:
        with _ending_the_deaf(heard):
            yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = hook


@contextlib.contextmanager
def _ending_the_deaf(heard: threading.Event) -> Iterator[None]:
    """End the process if Python does not react to Ctrl-C in time.

    Python handles a signal between two of its instructions, and one right-hand side of a large model can be minutes of
    compiled code. Other threads run meanwhile. One of them waits for the byte that the signal writes. Saved files
    remain complete.
    """
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)

    def wait() -> None:
        while byte := ours.recv(1):
            if byte[0] == signal.SIGINT and not heard.wait(PATIENCE):
                said = "interrupted inside a long compiled step; results that were saved before it are kept."
                os.write(2, f"odesim: {said}\n".encode())
                os._exit(INTERRUPTED)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        theirs.close()
        waiting.join()
        ours.close()


def leave(code: object) -> None:
    """End an interrupted process at once. All messages and files are already written.

    A normal exit has three problems. The interpreter would unload code that threads of XLA still run (one Ctrl-C in
    twenty ended in an abort or a segmentation fault). A thread may wait for the lock of a module whose import was
    interrupted. If the signal arrived inside text that Python executes, Python ends by the signal and not with the exit
    code.
    """
    if code == INTERRUPTED:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(INTERRUPTED)


def _in_main_thread() -> bool:
    """Return True if signals may be handled here."""
    return threading.current_thread() is threading.main_thread()
