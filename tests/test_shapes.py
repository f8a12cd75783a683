"""The shapes of arrays in annotations: said by every public function, and checked at every call while the tests run."""

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
SHAPED = ("hermite",)
"""Where every public function says the shapes of its arrays."""


@pytest.mark.skipif(bool(os.environ.get("ODESIM_UNCHECKED")), reason="ODESIM_UNCHECKED asks for tests without checks")
def test_shapes_are_checked_while_the_tests_run():
    from hermite.series import largest

    assert largest([], [], np.zeros(2), np.eye(2)) == pytest.approx(1.0, rel=1e-8)
    for mean, covariance in ((np.zeros(3), np.eye(2)), (np.zeros(2), np.ones((2, 3))), (np.zeros(2, int), np.eye(2))):
        with pytest.raises(jaxtyping.TypeCheckError):
            largest([], [], mean, covariance)


def bare(annotation: ast.expr | None) -> bool:
    """Return True if an annotation has an array without a shape, except in tables by names, whose arrays have shapes.

    >>> [bare(ast.parse(text, mode="eval").body) for text in ("np.ndarray | None", "dict[str, np.ndarray]", "int")]
    [True, False, False]
    """
    if isinstance(annotation, ast.BinOp):
        return bare(annotation.left) or bare(annotation.right)
    if isinstance(annotation, ast.Subscript):
        of, inside = ast.unparse(annotation.value), annotation.slice
        if of in ("dict", "Mapping") or hasattr(jaxtyping, of):
            return False
        return any(bare(part) for part in (inside.elts if isinstance(inside, ast.Tuple) else [inside]))
    if isinstance(annotation, ast.List):
        return any(bare(part) for part in annotation.elts)
    return annotation is not None and ast.unparse(annotation) == "np.ndarray"


def public(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """The public functions of a module, and the public methods of its public classes."""
    inside = [node for of in tree.body if isinstance(of, ast.ClassDef) and of.name[0] != "_" for node in of.body]
    for node in (*tree.body, *inside):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node


def test_public_functions_say_the_shapes_of_their_arrays():
    without, counted = [], 0
    for path in sorted(path for place in SHAPED for path in (ROOT / place).rglob("*.py")):
        for function in public(ast.parse(path.read_text(encoding="utf-8"))):
            counted += 1
            told = [of.annotation for of in (*function.args.args, *function.args.kwonlyargs)] + [function.returns]
            if any(bare(annotation) for annotation in told):
                without.append(f"{path.relative_to(ROOT)}: {function.name}")
    assert counted > 100
    assert without == []
