"""Folders of verdicts: the request, the finished verdicts, their evidence, and the manifest."""

import dataclasses
import functools
import hashlib
import importlib.util
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import derivations
from derivations.contract import System
from odesim.errors import UsageError
from odesim.request.case import digest_of
from odesim.store.files import EVIDENCE, LEDGER, MANIFEST, VERDICTS, read_json, sha256, storing, write_json
from odesim.store.folder import SCHEMA, digest_in, manifest_of, require, write_manifest


@dataclasses.dataclass(frozen=True)
class Request:
    """Request of `odesim verify`: system, effort, back end, seed, claims (None for all)."""

    of: System
    effort: str
    backend: str
    seed: int
    claims: tuple[str, ...] = ()

    def request(self) -> dict[str, Any]:
        """Everything that was requested, as plain data."""
        return {
            "method": "verify",
            "system": self.system,
            **({"declaration": self.of.digest} if self.of.digest else {}),
            "effort": self.effort,
            "backend": self.backend,
            "seed": self.seed,
            "claims": sorted(set(self.claims)) or "all",
        }

    @property
    def system(self) -> str:
        """Reference of the system."""
        return derivations.reference(self.of)

    @property
    def digest(self) -> str:
        """Identifier of the request: twelve hexadecimal characters."""
        return digest_of(self.request())

    @functools.cached_property
    def key(self) -> str:
        """Return everything that determines a stored verdict: effort, back end, seed, and all source files."""
        from odesim.code import sources

        asked = f"{self.system} {self.of.digest} {self.effort} {self.backend} {self.seed}"
        digest = hashlib.sha256(asked.encode())
        for package in sources.OURS:
            spec = importlib.util.find_spec(package)
            assert spec is not None and spec.origin is not None
            for path in sorted(Path(spec.origin).parent.rglob("*.py")):
                digest.update(path.name.encode() + path.read_bytes())
        if self.system not in derivations.folders():
            digest.update(sources.digest(sources.parts(self.of)).encode())
        return digest.hexdigest()[:16]


class Ledger:
    """Finished verdicts of one request in a JSON-lines file, one line each, which survives a kill."""

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, key
        self.verdicts: dict[tuple[str, str], dict[str, Any]] = {}
        self.cut = False
        if path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")  # the last line may end inside a character
            self.cut = bool(text) and not text.endswith("\n")
            for line in text.splitlines():
                self._take(line)

    def _take(self, line: str) -> None:
        try:
            stored = json.loads(line)
        except json.JSONDecodeError:  # the last line of a process that was killed while writing it
            return
        if stored.get("key") == self.key:
            self.verdicts[stored["verdict"]["claim"], stored["verdict"]["variant"]] = stored["verdict"]

    def add(self, verdict: Any) -> dict[str, Any]:
        """Append a finished verdict, and write it to the disk before continuing."""
        content = verdict.as_dict()
        line = json.dumps({"key": self.key, "verdict": content}, ensure_ascii=False, allow_nan=False) + "\n"
        with storing(self.path.parent), self.path.open("a", encoding="utf-8") as file:
            file.write("\n" * self.cut + line)  # a new line, if the one before it is incomplete
            file.flush()
            os.fsync(file.fileno())
        self.cut = False
        self.verdicts[verdict.claim, verdict.variant] = content
        return content


def folder_of(request: Request, out: str | os.PathLike[str] | None) -> Path:
    """Return `out`, or a folder named by the digest of the request, so that no other result is replaced."""
    name = f"verify-{request.of.name}-{request.effort}-{request.digest}"
    return Path("runs") / name if out is None else Path(out)


def prepare(request: Request, out: str | os.PathLike[str] | None, *, overwrite: bool, resume: bool) -> Path:
    """Return the folder of the verdicts, prepared for writing.

    Unfinished verdicts of the same request are continued. Finished ones are replaced in the default folder, or with
    `overwrite`; with `resume` they are kept. Otherwise a finished folder raises `UsageError`.
    """
    if overwrite and resume:
        raise UsageError("--overwrite and --resume exclude each other; give one of the two.")
    folder = folder_of(request, out)
    if (folder / MANIFEST).is_file() and not resume:
        if out is not None and not overwrite:
            raise UsageError(
                f"{folder} has finished verdicts; give --overwrite to replace them, --resume to continue the "
                "same request, or another --out"
            )
    elif resume and (folder / MANIFEST).is_file() and digest_in(folder) != request.digest:
        raise UsageError(
            f"{folder} has finished verdicts of another request; choose another --out, or give --overwrite"
        )
    with storing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / MANIFEST).is_file() and not resume:
            for name in (MANIFEST, VERDICTS, LEDGER, EVIDENCE):
                (folder / name).unlink(missing_ok=True)
    return folder


def finish(request: Request, folder: Path, verdicts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Write the verdicts, their evidence and, last, the manifest. Return the verdicts without evidence."""
    from odesim.store.manifest import versions
    from odesim.version import __version__

    told = {name: getattr(request, name) for name in ("system", "effort", "key", "seed", "backend")}
    answers, evidence = without_evidence(verdicts), evidence_of(verdicts)
    with storing(folder):
        write_json(folder / VERDICTS, {"system": request.system, "effort": request.effort, "verdicts": answers})
        write_json(folder / EVIDENCE, evidence)
        made = {"schema": SCHEMA, "kind": "verdicts", "digest": request.digest, "request": request.request(), **told}
        files = {
            name: {"sha256": sha256(folder / name), "bytes": (folder / name).stat().st_size}
            for name in (VERDICTS, EVIDENCE)
        }
        made |= {"declaration": request.of.declaration} if request.of.declaration else {}
        made |= {"odesim": __version__, "versions": versions(), "files": files}
        write_manifest(folder / MANIFEST, made)
    return answers


def without_evidence(verdicts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the verdicts for printing, without samples and requests, which are stored in a separate file."""
    return [{name: value for name, value in v.items() if name not in ("samples", "runs")} for v in verdicts]


def evidence_of(verdicts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the evidence of the verdicts: the samples of every form, and the request of every run by its digest."""
    samples = [{"claim": v["claim"], "variant": v["variant"], "samples": v["samples"]} for v in verdicts]
    runs = {digest: request for v in verdicts for digest, request in v["runs"].items()}
    return {"samples": samples, "runs": runs}


def stored(folder: Path) -> dict[str, Any]:
    """Return the verdicts of a finished folder with system and effort, checked against its manifest."""
    require(folder, "verdicts")
    manifest = manifest_of(folder) if (folder / MANIFEST).is_file() else {}
    try:
        content = read_json(folder / VERDICTS)
        return {
            "request": manifest.get("request"),
            **{name: content[name] for name in ("system", "effort", "verdicts")},
        }
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(f"{folder} is damaged: its {VERDICTS} cannot be read.") from None
