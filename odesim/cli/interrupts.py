"""Ctrl-C while a command runs: noted, heard even where compiled code does not return, and at the end of the process."""

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
"""Seconds that Python is given to hear Ctrl-C before the process ends without it."""


@contextlib.contextmanager
def noting(asked: list[int]) -> Iterator[None]:
    """Keep in `asked` that Ctrl-C came, which raises `KeyboardInterrupt` as ever.

    LLVM calls back into Python while it compiles: what is raised there is dropped with a traceback, and the compiler
    fails a moment later for want of what it was to be given.
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
    """End the process where Ctrl-C is not `heard` in time.

    Python hears a signal between two of its instructions, and one right-hand side of a large model can be minutes of
    compiled code.  That lets other threads run: one of them waits for the byte that the signal itself writes.  What
    has been saved is whole, as after any kill.
    """
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)

    def wait() -> None:
        while byte := ours.recv(1):
            if byte[0] == signal.SIGINT and not heard.wait(PATIENCE):
                said = "interrupted inside a long compiled step; what was saved before it is kept."
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
    """End an interrupted process at once: everything that was to be told or kept has been.

    Threads of XLA may still be at work, whose code the interpreter would take away under them (one Ctrl-C in twenty
    ended in an abort or a segmentation fault), a thread may wait for the lock of a module whose import was broken off,
    and Python itself ends by the signal where it was raised inside a text that it executed.
    """
    if code == INTERRUPTED:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(INTERRUPTED)


def _in_main_thread() -> bool:
    """Return True if signals may be handled here."""
    return threading.current_thread() is threading.main_thread()
