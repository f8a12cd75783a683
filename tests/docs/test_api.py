"""The reference of the Python interface: every public name, with all that a reader needs to call it.

Its examples are executed by `tests/test_public_examples.py`.
"""

import dataclasses
import doctest
import inspect
import re
import sys
from pathlib import Path

import pytest

import odesim
from tests.test_public_examples import modules_with_examples

ROOT = Path(__file__).parents[2]
NAMES = [name for name in odesim.__all__ if name != "__version__"]
FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(odesim, name))]
CLASSES = [name for name in NAMES if inspect.isclass(getattr(odesim, name))]
BANNED = re.compile(r"(What|Whether|How|Where|When|Which|That|Those)\b")
"""Words with which no docstring begins (the style of the project)."""


@pytest.fixture(autouse=True)
def extensions(monkeypatch):
    """The folder of what extends Sphinx, where it looks for them."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs" / "_ext"), *sys.path])


def section(text, title):
    """The lines of a section of a docstring; None where there is none."""
    found = re.search(rf"^{title}:\n((?:    .*\n|\n)+)", text + "\n", re.MULTILINE)
    return None if found is None else inspect.cleandoc(found[1])


def named(text, title):
    """The names that a section describes."""
    heads = re.findall(r"^(\w[\w, ]*):", section(text, title) or "", re.MULTILINE)
    return {name for head in heads for name in head.split(", ")}


def documented(function, text):
    """The parameters of a function that its docstring leaves out."""
    parameters = inspect.signature(inspect.unwrap(function)).parameters
    return [name for name in parameters if name not in ("self", *named(text, "Arguments"))]


def members():
    from python_api import members

    for name in CLASSES:
        kind = getattr(odesim, name)
        if not issubclass(kind, BaseException):
            yield from ((f"{name}.{member}", inspect.getattr_static(kind, member)) for member in members(kind))


def test_every_public_name_is_in_the_reference():
    from python_api import GROUPS, page

    assert sorted(name for _, names in GROUPS for name in names) == sorted(NAMES)
    text = "\n".join(page())
    assert all(re.search(rf":: odesim\.{name}$", text, re.MULTILINE) for name in NAMES)
    assert text.count("autofunction") == len(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_its_parameters_returns_raises_and_an_example(name):
    function = getattr(odesim, name)
    text = inspect.getdoc(function)
    assert not BANNED.match(text)
    assert documented(function, text) == []
    for title in ("Returns", "Raises", "Example"):
        assert section(text, title), f"{name} has no section {title}"
    assert doctest.DocTestParser().get_examples(section(text, "Example"))
    assert named(text, "Raises") <= set(odesim.__all__)


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_its_attributes_and_an_example(name):
    kind = getattr(odesim, name)
    text = inspect.cleandoc(kind.__dict__["__doc__"])
    assert not BANNED.match(text)
    assert doctest.DocTestParser().get_examples(section(text, "Example") or ""), f"{name} has no example"
    if dataclasses.is_dataclass(kind):
        fields = {field.name for field in dataclasses.fields(kind)}
        assert fields - named(text, "Attributes") == set()
    assert kind.__module__ in modules_with_examples()  # where they are executed


def test_every_public_method_is_documented():
    found = list(members())
    assert len(found) > 40
    for name, member in found:
        function = getattr(member, "fget", None) or getattr(member, "func", member)
        text = inspect.getdoc(function)
        assert text and not BANNED.match(text), name
        if inspect.isfunction(member):
            assert documented(function, text) == [], name
            assert section(text, "Returns"), f"{name} does not say what it returns"


def test_what_functions_return_is_in_the_reference():
    from python_api import RETURNED, page

    text = "\n".join(page())
    for path in RETURNED:
        assert f".. autoclass:: {path}" in text
    said = " ".join(inspect.getdoc(getattr(odesim, name)) for name in FUNCTIONS)
    assert "`Linearisation`" in said and "SymbolicEquations`" in said


def test_what_is_missing_is_seen():
    def wrong(time, name):
        """Return nothing.

        Arguments:
            time: A time.

        Returns:
            None.
        """

    text = inspect.getdoc(wrong)
    assert (
        documented(wrong, text) == ["name"] and section(text, "Raises") is None and named(text, "Arguments") == {"time"}
    )
