"""Derivations that were made before: the texts of a declaration's functions, so that a later start needs no SymPy."""

import dataclasses
import functools
import hashlib
import importlib.metadata
import json
from pathlib import Path

from derivations import cache
from derivations.declare.declaration import Declaration
from derivations.declare.kernels import Kernels, derive
from derivations.declare.lanes import Served


@functools.lru_cache(maxsize=64)
def kernels(declared: Declaration, numbers: tuple[float, ...]) -> Kernels:
    """What is generated for a declaration, from the cache where it is there and whole.

    The texts depend on the user's numbers by the signs of slopes alone; they are kept by those of the numbers.
    """
    path = cache.folder() / f"derivation_{_digest(declared, numbers)}.json"
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        body = json.dumps(kept["kernels"], sort_keys=True)
        if hashlib.sha256(body.encode()).hexdigest() == kept["sha256"]:
            return _tuples(kept["kernels"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # none there, or a damaged one, which is written anew
    found = derive(declared, numbers)
    cache.offer(path, _kept(found))
    return _tuples(dataclasses.asdict(found))


def _digest(declared: Declaration, numbers: tuple[float, ...]) -> str:
    """Of the declaration, the signs of its numbers, the files that derive, and SymPy's version."""
    signs = [(value > 0) - (value < 0) for value in numbers]
    files = sorted(Path(__file__).parent.glob("*.py"))
    texts = [file.read_bytes() for file in files]
    said = repr((_parts(declared), signs, importlib.metadata.version("sympy")))
    return hashlib.sha256(b"\0".join([said.encode(), *texts])).hexdigest()[:20]


def _parts(declared: Declaration) -> tuple[object, ...]:
    """What the derivation depends on: units, loss, constraint, limit, and which readouts are trained."""
    groups = [(g.text, g.slots, g.scalars, g.output == "trained") for g in declared.groups]
    return groups, len(declared.students), declared.loss, declared.weights, declared.limit, declared.names


def identity(declared: Declaration, found: Kernels) -> str:
    """Of all that compiled and traced functions are made of: the texts, and what is asked of the declaration beside."""
    said = (_parts(declared), declared.own_loss, found.texts)
    return hashlib.sha256(repr(said).encode()).hexdigest()[:12]


def _kept(found: Kernels) -> bytes:
    """What is written of the kernels: plain data with its digest."""
    plain = dataclasses.asdict(found)
    body = json.dumps(plain, sort_keys=True)
    return json.dumps({"kernels": plain, "sha256": hashlib.sha256(body.encode()).hexdigest()}).encode()


def _tuples(plain: dict) -> Kernels:
    """A `Kernels` of plain data, lists made tuples, so that both ways give the same."""
    return Kernels(
        texts=tuple((name, text) for name, text in plain["texts"]),
        pairs=tuple(tuple(tuple(entry) for entry in table) for table in plain["pairs"]),
        means=tuple(tuple(tuple(entry) for entry in table) for table in plain["means"]),
        places=tuple(tuple(entry) for entry in plain["places"]),
        closed=plain["closed"],
        second=plain["second"],
        lanes=tuple(Served(a, tuple(tuple(kind) for kind in kinds), tuple(cells), at, rows, split)
                    for a, kinds, cells, at, rows, split in plain["lanes"]),
    )  # fmt: skip
