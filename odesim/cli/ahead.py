"""What a command will need at its end, made ready in the background while it computes."""

import contextlib
import gc
import importlib
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odesim.store.write import Draw

STORE = "h5netcdf"
DRAW = "matplotlib.figure"
PATIENCE = 1.0
"""Seconds that a command that was interrupted, or failed, waits for its imports in the background."""


@contextlib.contextmanager
def made_ready(figures: bool) -> Iterator["Draw | None"]:
    """Make storing a run ready and, with `figures`, drawing it; yields what draws a run (`store.write.Draw`).

    Pictures are drawn by a process of their own where this one has not imported the drawing library yet.  It also
    lets the garbage collector pause longer: a compiler makes millions of small objects that stay, and going through
    them again and again costs a tenth of the time of a command.
    """
    gc.set_threshold(100_000, 50, 1000)
    thread = threading.Thread(target=_import, name="odesim-import-ahead", daemon=True)
    thread.start()
    patience = None
    try:
        if not figures:
            yield None
        elif DRAW in sys.modules:
            from odesim.show import plot

            yield plot.drawn
        else:
            from odesim.cli.compiler import Compiler
            from odesim.cli.painter import Painter
            from odesim.code import kept

            with Painter([other.wait for other in kept.OTHERS if isinstance(other, Compiler)]) as painter:
                yield painter.drawn
    except BaseException:
        # Ctrl-C inside an import here can leave the lock of a module taken: the thread then waits for it for ever.
        patience = PATIENCE
        raise
    finally:
        thread.join(patience)  # a thread must not be importing while the interpreter shuts down


def _import() -> None:
    """Import what storing needs; if that fails it does so again, and is reported, where it is used."""
    with contextlib.suppress(Exception):
        importlib.import_module(STORE)
