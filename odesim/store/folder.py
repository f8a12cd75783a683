"""Content of a folder according to its manifest. Files are checked against the hashes of the manifest."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from odesim.errors import UsageError
from odesim.store.files import FIGURES, JUDGED, LEDGER, MANIFEST, VERDICTS, jsonable, read_json, sha256, write_json

SCHEMA = 1
SEAL = "seal"
HOLDS = {
    "run": "a run", "sweep": "a sweep", "verdicts": "verdicts", "figures": "figures", "answer": "an answer",
    "check": "a check",
}  # fmt: skip
"""The kinds of folders, in words."""
NEEDED = {
    "run": ("request", "outcome", "origin", "files", "versions"),
    "sweep": ("digest", "request", "files"),
    "verdicts": (),
    "figures": (),
    "answer": ("verb", "digest", "request", "sentences", "files"),
    "check": ("digest", "request", "files"),
}
"""Keys that the manifest of a kind of folder must have."""


def write_manifest(path: Path, content: Mapping[str, Any]) -> None:
    """Write a manifest with its seal, a hash of its other entries, so that later changes are detected."""
    plain = {name: value for name, value in jsonable(content).items() if name != SEAL}
    write_json(path, {**plain, SEAL: seal_of(plain)})


def seal_of(content: Mapping[str, Any]) -> str:
    """Return the seal of a manifest: the SHA-256 without the seal itself, in 16 hexadecimal characters."""
    text = json.dumps({name: value for name, value in content.items() if name != SEAL}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def kind_of(folder: str | os.PathLike[str]) -> str:
    """Return the kind of a folder, a key of `HOLDS`.  Raises `UsageError` for any other folder."""
    folder = Path(folder)
    if not folder.is_dir():
        raise UsageError(f"there is no run folder {folder}; `odesim integrate` prints the folder it writes.")
    if (folder / MANIFEST).is_file():
        return str(_read(folder).get("kind", "run"))
    for name, kind in ((VERDICTS, "verdicts"), (FIGURES, "figures")):
        if (folder / name).is_file():
            return kind
    if (folder / JUDGED / LEDGER).is_file():
        raise UsageError(f"the check in {folder} is unfinished; `odesim check` with the same options continues it")
    if (folder / LEDGER).is_file():
        raise UsageError(f"the verdicts in {folder} are unfinished; `odesim verify` with the same options continues it")
    inside = sorted(path.parent.name for path in folder.glob(f"*/{MANIFEST}"))
    if inside:
        several = f"{len(inside)} of them, such as {folder / inside[0]}" if len(inside) > 1 else f"{folder / inside[0]}"
        raise UsageError(f"{folder} is not a run folder itself, but contains {several}: name one of these.")
    raise UsageError(f"{folder} has no {MANIFEST}: it is not a run folder, or its run did not finish.")


def require(folder: str | os.PathLike[str], *kinds: str, instead: str = "") -> str:
    """Return the kind of a folder. Raises `UsageError` if it is not one of `kinds`; `instead` is a hint for the
    message.
    """
    kind = kind_of(folder)
    if kind not in kinds:
        wanted = " or ".join(HOLDS[name] for name in kinds)
        raise UsageError(f"{folder} contains {HOLDS.get(kind, kind)}, not {wanted}{f'; {instead}' if instead else ''}.")
    return kind


def manifest_of(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the manifest of a folder after checking its seal, its schema, its required keys, and the hashes of the
    files.

    Raises `UsageError` for a folder that is missing, unfinished, damaged, or written by a later version.
    """
    folder = Path(folder)
    kind = kind_of(folder)
    content = _read(folder)
    missing = [name for name in NEEDED.get(kind, ()) if name not in content]
    if missing or kind not in HOLDS or not isinstance(content.get("files", {}), Mapping):
        what = f"lacks {', '.join(missing)}" if missing else "is not one that odesim writes"
        raise UsageError(f"{folder} is damaged: its {MANIFEST} {what}; run the request again.")
    if SEAL in content and content[SEAL] != seal_of(content):
        raise UsageError(f"{folder} is damaged: its {MANIFEST} was changed after the run; run the request again.")
    for name, recorded in content.get("files", {}).items():
        path = folder / name
        if not path.is_file():
            raise UsageError(f"{folder} is damaged: its file {name} is missing; run the request again.")
        if not isinstance(recorded, Mapping) or sha256(path) != recorded.get("sha256"):
            raise UsageError(f"{folder} is damaged: {name} was changed after the run; run the request again.")
    return content


def digest_in(folder: Path) -> str | None:
    """Return the digest of the request of a finished folder; None if its manifest is missing or damaged."""
    try:
        digest = read_json(folder / MANIFEST).get("digest")
    except (OSError, ValueError, AttributeError):
        return None
    return digest if isinstance(digest, str) else None


def _read(folder: Path) -> dict[str, Any]:
    """Return the manifest without checks."""
    try:
        content = read_json(folder / MANIFEST)
        schema = content["schema"]
        if schema > SCHEMA:
            raise UsageError(f"{folder} has schema {schema}, but this odesim reads up to {SCHEMA}; use a newer odesim.")
    except (ValueError, KeyError, TypeError, OSError, AttributeError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{folder} is damaged: its {MANIFEST} cannot be read.") from None
    return content
