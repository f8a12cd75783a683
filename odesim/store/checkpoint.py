"""Checkpoints of unfinished runs: arrays and plain data, replaced atomically."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from derivations.contract import npz
from odesim.errors import UsageError
from odesim.store.files import CHECKPOINT, jsonable, replacing, storing

META = "__meta__"


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Checkpoint of the request `digest` in a run folder.

    It is kept when a run is interrupted, and removed when the run is finished. If the checkpoint `ends` the run, an
    interrupted run is over and returns its result so far.
    """

    folder: Path
    digest: str
    ends: ClassVar[bool] = False

    @property
    def path(self) -> Path:
        """File of the checkpoint."""
        return self.folder / CHECKPOINT

    def write(self, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
        """Replace the checkpoint by `arrays` and `meta` (plain data). The old one exists until then."""
        text = json.dumps({"digest": self.digest, "meta": jsonable(meta)})
        with storing(self.folder):
            self.folder.mkdir(exist_ok=True)
            content: dict[str, Any] = {META: np.array(text), **arrays}
            with replacing(self.path) as file:
                np.savez(file, **content)

    def read(self) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """Return the arrays and meta data of the last `write`, or `None` if there is no checkpoint.

        Raises `UsageError` for the checkpoint of another request, and for a damaged one.
        """
        if not self.path.is_file():
            return None
        try:
            arrays = npz.read_npz(self.path)
            stored = json.loads(str(arrays.pop(META)))
        except (OSError, ValueError, KeyError):
            raise UsageError(f"{self.path} is a damaged checkpoint; run without --resume.") from None
        if stored["digest"] != self.digest:
            raise UsageError(
                f"{self.path} belongs to another request ({stored['digest']}, not {self.digest}); "
                "run without --resume, or choose another --out."
            )
        return arrays, stored["meta"]

    def remove(self) -> None:
        """Delete the checkpoint, if there is one."""
        self.path.unlink(missing_ok=True)


class Held(Checkpoint):
    """Checkpoint of a run from Python: no file; after Ctrl-C the run ends with its result so far."""

    ends = True

    def __init__(self) -> None:
        super().__init__(Path(), "")

    def write(self, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
        """Write nothing, because the run itself is kept."""

    def read(self) -> None:
        """Return None, because there is no checkpoint."""
