"""Statements with one text of their source replaced: what a control changes to see that a comparison notices it."""

import ast
import importlib
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from odesim.code.generated import generated_functions


def namespace(modules: Iterable[str], old: str, new: str) -> dict[str, Any]:
    """The names of some modules, the first of which the others import, with `old` replaced by `new` in their texts."""
    names, texts = list(modules), []
    for name in names:
        source = inspect.getsource(importlib.import_module(name))
        dropped: set[int] = set()
        for node in ast.parse(source).body:
            if isinstance(node, ast.ImportFrom) and node.module in names:
                assert node.end_lineno is not None
                dropped |= set(range(node.lineno, node.end_lineno + 1))
        texts.append("\n".join(line for k, line in enumerate(source.split("\n"), 1) if k not in dropped))
    whole = "\n\n".join(texts)
    assert old in whole, "the mutation names a text that is no longer there"
    found: dict[str, Any] = {"__name__": "mutated"}
    exec(whole.replace(old, new), found)
    return found


def flow_of(statement: Any) -> Callable[..., np.ndarray]:
    """dy/dt of a statement by whole arrays, which need no compilation."""
    from derivations.equations.tier import equations_of

    return generated_functions(equations_of(statement), "numpy")["flow"]
