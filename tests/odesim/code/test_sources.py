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
from odesim.sgd import patterns

ROOT = Path(__file__).parents[3]
FILES = [path for name in sources.OURS for path in sorted((ROOT / name).rglob("*.py"))]


@pytest.fixture
def reread():
    """A function that forgets what was read, as a new process has; it is called again at the end."""

    def forget():
        for cached in (sources.text_of, sources.imported, compile.source_digest):
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
        before = compile.source_digest("any", modules)
        files = set(sources.closure(("odesim.code.compile", *modules)).values())
        assert parts(found) <= files and ROOT / "odesim" / "code" / "compile.py" in files
        for path in files - edited:  # once each: what matters is that a file is among the sources
            reread()
            with monkeypatch.context() as patch:
                real = sources.text_of
                patch.setattr(sources, "text_of", lambda one, path=path, real=real: real(one) + "#" * (one == path))
                assert compile.source_digest("any", modules) != before, path
        edited |= files
        reread()
        assert compile.source_digest("any", modules) == before
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


def written(monkeypatch, ask):
    """The modules and the writing function that `ask` hands to `compile.generated`."""
    handed = []

    class Enough(Exception):
        pass

    def generated(stem, modules, write):
        handed.append((modules, write))
        raise Enough

    monkeypatch.setattr(compile, "generated", generated)
    with pytest.raises(Enough):
        ask()
    modules, write = handed[0]
    return (*modules, write.__module__), write


ASKED = {
    "flow": lambda: compile.compile_numba(tier("pruning", "tune", "flow")),
    "compressed": lambda: sgd("compressed", "kawata", "phase1"),
    "patterns": lambda: sgd("patterns", "chen", "train"),
}


def tier(system, stage, name):
    found = derivations.system(system)
    return load(found.stage(stage).equations)(found.parameters(), name)


def sgd(engine, system, stage):
    found = derivations.system(system)
    model = found.dynamics(stage).truth(found.parameters())
    if engine == "patterns":
        return patterns.Passes(model, model.numbers(found.parameters()))
    return importlib.import_module(f"odesim.sgd.{engine}").compile_numba(model)


@pytest.mark.parametrize("asked", ASKED)
def test_no_file_that_ran_while_a_module_was_written_is_left_out(asked, monkeypatch):
    modules, write = written(monkeypatch, ASKED[asked])
    importlib.import_module("hermite")  # a package's own file runs on first import, and no text is made of it
    ran = executed(write)
    covered = set(sources.closure(("odesim.code.compile", *modules)).values())
    assert ran and ran - covered == set()


def test_versions_and_the_level_of_optimisation_belong_to_the_digests(monkeypatch, reread):
    text = "def one():\n    return 1\n"
    before = compile.source_digest("any", ("hermite",)), compile.text_digest(text)
    monkeypatch.setenv("NUMBA_OPT", "0")
    assert compile.text_digest(text) != before[1]
    monkeypatch.delenv("NUMBA_OPT")
    real = compile.version
    for name, place in (("sympy", 0), ("scipy", 0), ("numpy", 0), ("numpy", 1), ("numba", 1), ("llvmlite", 1)):
        reread()
        with monkeypatch.context() as patch:
            patch.setattr(compile, "version", lambda one, name=name: "9" if one == name else real(one))
            assert (compile.source_digest("any", ("hermite",)), compile.text_digest(text))[place] != before[place], name


def test_a_changed_file_is_compiled_and_a_changed_comment_is_not(monkeypatch, tmp_path, reread):
    """A package beside the script: a function-level relative import leads to the file that is edited."""
    folder = tmp_path / "beside"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "front.py").write_text("def write():\n    from .deep import (  # twice\n        NUMBER,\n    )\n")
    deep = folder / "deep.py"
    monkeypatch.setenv("ODESIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    calls = []

    def run(number, comment=""):
        deep.write_text(f"NUMBER = {number}{comment}\n")
        reread()

        def write():
            calls.append(number)
            return compile.numba_module("beside", [f"def answer():\n    return {number}\n"])

        return compile.generated("beside", ["beside.front"], write)

    first = run(1)
    assert first.answer() == 1 and run(1) is first and calls == [1]
    assert run(1, "  # said") is first and calls == [1, 1]
    assert run(2).answer() == 2 and calls == [1, 1, 2]
    assert len(list((tmp_path / "cache").glob("*.py"))) == 2


def test_what_generated_text_imports_of_ours_belongs_to_its_digest(monkeypatch):
    text = "def answer():\n    from odesim.flow.block_loops import bump\n\n    return bump\n"
    before = compile.text_digest(text)
    real = sources.text_of
    monkeypatch.setattr(sources, "text_of", lambda one: real(one) + "#" * (one.name == "block_loops.py"))
    assert compile.text_digest(text) != before


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
