"""What a command will need at its end, imported in the background while it computes."""

import gc
import importlib
import threading

STORE = ("xarray", "h5netcdf")
DRAW = ("matplotlib.figure", "matplotlib.backends.backend_agg")


def load_ahead(figures: bool) -> threading.Thread:
    """Start importing what storing (and drawing) a run needs; compiled code runs without Python's lock meanwhile.

    It also lets the garbage collector pause longer: a compiler makes millions of small objects that stay, and going
    through them again and again costs a tenth of the time of a command.
    """
    gc.set_threshold(100_000, 50, 1000)
    names = (*STORE, *(DRAW if figures else ()))
    thread = threading.Thread(target=_import, args=(names,), name="odesim-load-ahead", daemon=True)
    thread.start()
    return thread


def _import(names: tuple[str, ...]) -> None:
    """Import modules; one that fails does so again, and is reported, where it is used."""
    for name in names:
        try:
            importlib.import_module(name)
        except Exception:
            return
