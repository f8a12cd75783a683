"""A generated module is made anew when any file that it is made of has changed, and only then."""

import ast
import importlib
import sys
from pathlib import Path

import pytest

import derivations
from derivations.contract import Dynamics, load
from odesim.code import compile, sources
from odesim.errors import UsageError

ROOT = Path(__file__).parents[3]
FILES = [path for name in sources.OURS for path in sorted((ROOT / name).rglob("*.py"))]


@pytest.fixture
def reread():
    """A function that forgets what was read, as a new process has; it is called again at the end."""

    def forget():
        for cached in (sources.text_of, sources.imported):
            cached.cache_clear()

    yield forget
    forget()


def equations():
    """The equations of every tier of every system, at its defaults where they have any."""
    for name in derivations.names():
        system = derivations.system(name)
        for stage in system.stages:
            for tier in stage.tiers if isinstance(stage, Dynamics) else ():
                try:
                    yield load(stage.equations)(system.parameters(), tier)
                except UsageError:
                    continue


def parts(found):
    """The files that hold the kernels and functions of some equations, found by importing them."""
    modules = {*sources.makers(found.code.kernels), *(name.partition(":")[0] for name in found.code.loops)}
    return {
        Path(sys.modules[name].__file__) for name in modules if importlib.import_module(name) and name != "builtins"
    }


def test_every_file_that_equations_are_made_of_changes_their_digest(monkeypatch, reread):
    seen, edited = set(), set()
    for found in equations():
        modules = sources.roots(found)
        if modules in seen or found.code.statement is not None:  # a statement is named by a digest of itself
            continue
        seen.add(modules)
        before = sources.digest(("odesim.code.compile", *modules))
        files = set(sources.closure(("odesim.code.compile", *modules)).values())
        assert parts(found) <= files and ROOT / "odesim" / "code" / "compile.py" in files
        for path in files - edited:  # once each: what matters is that a file is among the sources
            reread()
            with monkeypatch.context() as patch:
                real = sources.text_of
                patch.setattr(sources, "text_of", lambda one, path=path, real=real: real(one) + "#" * (one == path))
                assert sources.digest(("odesim.code.compile", *modules)) != before, path
        edited |= files
        reread()
        assert sources.digest(("odesim.code.compile", *modules)) == before
    assert len(seen) >= 2


def executed(write):
    """The files of ours in which a function ran while `write` did."""
    found = set()
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, argument: found.add(frame.f_code.co_filename))
    try:
        write()
    finally:
        sys.setprofile(before)
    return {Path(name) for name in found} & set(FILES)


def test_no_file_that_ran_while_a_module_was_written_is_left_out():
    system = derivations.system("pruning")
    found = load(system.stage("tune").equations)(system.parameters(), "flow")
    importlib.import_module("hermite")  # a package's own file runs on first import, and no text is made of it
    ran = executed(lambda: compile.module_text(found))
    covered = set(sources.closure(("odesim.code.compile", *sources.roots(found))).values())
    assert ran and ran - covered == set()


@pytest.fixture
def written(tmp_path, monkeypatch, reread):
    """A function that returns the text for a number in a file beside the script, and the numbers that were written.

    A function-level relative import leads to the file that is edited.
    """
    folder = tmp_path / "beside"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "front.py").write_text("def write():\n    from .deep import (  # twice\n        NUMBER,\n    )\n")
    monkeypatch.setenv("ODESIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    calls = []

    def text(number, comment=""):
        (folder / "deep.py").write_text(f"NUMBER = {number}{comment}\n")
        reread()
        return compile.derived_text("beside", ["beside.front"], lambda: calls.append(number) or f"answer = {number}\n")

    return text, calls


def test_a_text_is_derived_again_when_a_file_has_changed(written):
    text, calls = written
    assert text(1) == text(1) == "answer = 1\n" and calls == [1]
    assert text(1, "  # said") == "answer = 1\n" and calls == [1, 1]
    assert text(2) == "answer = 2\n" and calls == [1, 1, 2]


@pytest.mark.parametrize("library", ["sympy", "scipy", "numpy"])
def test_a_text_is_derived_again_by_another_version(written, monkeypatch, library):
    text, calls = written
    text(1)
    real = compile.version
    monkeypatch.setattr(compile, "version", lambda name: "9" if name == library else real(name))
    assert text(1) == "answer = 1\n" and calls == [1, 1]


def test_a_damaged_text_is_derived_again(written, tmp_path):
    text, calls = written
    text(1)
    (path,) = (tmp_path / "cache").glob("*.text")
    whole = path.read_bytes()
    for k, damage in enumerate((b"", whole[:-1], whole.replace(b"answer", b"question"), b"\0" * len(whole))):
        path.write_bytes(damage)
        assert text(1) == "answer = 1\n" and len(calls) == k + 2
        assert path.read_bytes() == whole


def imports(path):
    """The modules that a file imports, by Python's own parser."""
    package = ".".join(path.parent.relative_to(ROOT).parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            origin = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                yield inner if sources.file_of(inner) else origin


def test_imports_are_found_as_the_parser_finds_them():
    for path in FILES:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        found = set(sources.imported(name, path))
        assert {one for one in imports(path) if one.partition(".")[0] in sources.OURS} <= found, path


def test_functions_without_a_file_are_refused():
    with pytest.raises(UsageError, match="it has no file; write them into a module"):
        sources.closure(["made_up_module"])
