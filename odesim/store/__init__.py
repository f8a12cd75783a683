"""Run folders: written atomically, manifest last; a folder without a manifest is unfinished."""

from odesim.store.checkpoint import Checkpoint, Held
from odesim.store.claim import claimed
from odesim.store.read import Run, load
from odesim.store.target import Target, default_folder, folder_of, prepare
from odesim.store.write import copy, redraw, replace_pictures, save, save_stages

__all__ = [
    "Checkpoint",
    "Held",
    "Run",
    "Target",
    "claimed",
    "copy",
    "default_folder",
    "folder_of",
    "load",
    "prepare",
    "redraw",
    "replace_pictures",
    "save",
    "save_stages",
]
