"""Run folders: written atomically, manifest last; a folder without a manifest is unfinished."""

from odesim.store.checkpoint import Checkpoint, Held
from odesim.store.read import Run, load
from odesim.store.target import Target, default_folder, prepare
from odesim.store.write import copy, redraw, save, save_stages

__all__ = [
    "Checkpoint",
    "Held",
    "Run",
    "Target",
    "copy",
    "default_folder",
    "load",
    "prepare",
    "redraw",
    "save",
    "save_stages",
]
