"""Every example in a public docstring is executed."""

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def modules_with_examples():
    """The names of our modules that hold at least one `>>>`."""
    names = []
    for package in ("hermite", "derivations", "odesim"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if ">>> " in path.read_text(encoding="utf-8"):
                parts = path.relative_to(ROOT).with_suffix("").parts
                names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return names


class Finder(doctest.DocTestFinder):
    """Finds the examples of functions also below the type checks that the tests put around them."""

    def _from_module(self, module, object):
        return super()._from_module(module, inspect.unwrap(object) if callable(object) else object)


@pytest.mark.parametrize("name", modules_with_examples())
def test_public_examples_are_true(name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    examples = [test for test in Finder(exclude_empty=True).find(module, name) if test.examples]
    assert examples, f"{name} has examples that were not found"
    for example in examples:
        runner.run(example)
    assert runner.failures == 0
