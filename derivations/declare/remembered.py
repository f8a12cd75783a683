"""Cache of derivations: the texts of a declaration's functions, and the reasons why a tier does not exist."""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from derivations import cache
from derivations.declare import responses
from derivations.declare.declaration import Declaration
from derivations.declare.kernels import Kernels, derive
from derivations.installed import version


@functools.lru_cache(maxsize=64)
def kernels(declared: Declaration, numbers: tuple[float, ...]) -> Kernels:
    """Return the code that is generated for a declaration, from the cache if possible.

    The texts depend on the user's numbers only by the signs of slopes.
    """
    signs = [(value > 0) - (value < 0) for value in numbers]
    name = f"derivation_{_digest(declared, signs)}.json"
    return _tuples(_remembered(name, lambda: dataclasses.asdict(derive(declared, numbers))))


@functools.lru_cache(maxsize=64)
def per_sample(declared: Declaration) -> str:
    """Return the text of the functions of every sample (`responses.module`), from the cache if possible."""
    return _remembered(f"responses_{_digest(declared, declared.own_loss)}.json", lambda: responses.module(declared))


def _remembered(name: str, make: Callable[[], Any]) -> Any:
    """Return plain data from a file of the cache, or compute and store it; a missing or damaged file is written
    again.
    """
    path = cache.folder() / name
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if hashlib.sha256(json.dumps(stored["made"], sort_keys=True).encode()).hexdigest() == stored["sha256"]:
            return stored["made"]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    content = json.loads(json.dumps(make()))
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    cache.offer(path, json.dumps({"made": content, "sha256": digest}).encode())
    return content


def _digest(declared: Declaration, extra: object) -> str:
    """Return a digest of the declaration and further data, the files that derive, and SymPy's version."""
    texts = [file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py"))]
    description = repr((_parts(declared), extra, version("sympy")))
    return hashlib.sha256(b"\0".join([description.encode(), *texts])).hexdigest()[:20]


def _parts(declared: Declaration) -> tuple[object, ...]:
    """Return everything that the derivation depends on: units, loss, constraint, limit, inputs, trained readouts."""
    groups = [(g.text, g.slots, g.scalars, g.output == "trained") for g in declared.groups]
    law = None if declared.inputs is None else (declared.inputs.moved, declared.inputs.labels)
    parts = groups, len(declared.students), declared.loss, declared.weights, declared.limit, declared.names, law
    parts = (*parts, *_rules(declared), *([declared.law] if declared.law is not None else []))
    parts = (*parts, declared.look) if declared.look is not None else parts
    parts = (*parts, declared.episode) if declared.episode is not None else parts
    return (*parts, declared.answers) if declared.several or declared.predicted or declared.labelling else parts


def _rules(declared: Declaration) -> tuple[object, ...]:
    """Return the rules, and the scalars of each unit in them; empty without rules."""
    if not declared.rules:
        return ()
    by_group = [(group.name, declared.ruled(group), declared.constants(group)) for group in declared.students]
    return declared.rules, by_group


def identity(declared: Declaration) -> str:
    """Return a digest of everything that determines the functions of every sample."""
    contents = (_parts(declared), declared.own_loss)
    return hashlib.sha256(repr(contents).encode()).hexdigest()[:12]


def _tuples(plain: dict) -> Kernels:
    """Return a `Kernels` from plain data, with lists converted to tuples, so that both ways give equal objects."""
    return Kernels(
        texts=tuple((name, text) for name, text in plain["texts"]),
        pairs=tuple(tuple(tuple(entry) for entry in table) for table in plain["pairs"]),
        means=tuple(tuple(tuple(entry) for entry in table) for table in plain["means"]),
        places=tuple(tuple(entry) for entry in plain["places"]),
        closed=plain["closed"],
        second=plain["second"],
        tilts=tuple(tuple(entry) for entry in plain["tilts"]),
    )  # fmt: skip
