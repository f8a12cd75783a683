"""Properties of the source tree as a whole."""

import ast
import functools
import os
import re
from pathlib import Path

import pytest

import derivations

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("hermite", "derivations", "odesim", "figures", "benchmarks", "tests")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TEXTS = [*SOURCES, *(ROOT / name for name in ("pyproject.toml", "constraints.txt", "Makefile", ".ci/run"))]


def relative(path):
    return path.relative_to(ROOT).as_posix()


@functools.cache
def text_of(path):
    return path.read_text(encoding="utf-8")


def nodes(path):
    return ast.walk(ast.parse(text_of(path)))


def test_the_constraints_are_names_and_versions_only():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = [line for line in lines if line and not line.startswith("#")]
    assert len(pinned) > 50
    for line in pinned:
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.+!]*", line), line


def test_jax_is_pinned_to_a_sound_version():
    versions = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    assert versions["jax"] == versions["jaxlib"] != "0.10.2"


# One test for all files, as thousands of tests of a millisecond take longer to hand out than to run.


def test_no_file_names_a_package_index():
    words = ["pypi" + ".org", "index" + "-url", "/sim" + "ple/", "file" + "hosted"]
    assert len(TEXTS) > 500
    assert [(relative(path), word) for path in TEXTS for word in words if word in text_of(path).lower()] == []


def test_files_stay_below_four_hundred_lines():
    assert [relative(path) for path in SOURCES if len(text_of(path).splitlines()) > 400] == []


def test_the_symbolic_order_hermite_polynomial_of_sympy_is_not_used():
    # SymPy 1.14 gets derivatives and series of its symbolic-order polynomial wrong.
    forbidden = "hermite" + "_prob"

    def used(path):
        for node in nodes(path):
            if isinstance(node, ast.Attribute):
                yield node.attr
            elif isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.ImportFrom):
                yield from (alias.name for alias in node.names)

    assert [relative(path) for path in SOURCES if forbidden in text_of(path) and forbidden in used(path)] == []


def test_loops_compiled_with_reassociation_compare_with_infinity():
    # numba asks x - x whether x is finite; for a sum that is folded to zero, and an infinity passes for a number.
    def asked(path):
        return {node.attr for node in nodes(path) if isinstance(node, ast.Attribute)} & {"isfinite", "isinf"}

    loops = [path for path in SOURCES if path.name.endswith("loops.py")]
    assert len(loops) > 10
    assert [(relative(path), asked(path)) for path in loops if asked(path)] == []


OURS = {"hermite", "derivations", "odesim", "figures"}
PRIVATE = ("llvmlite", "numba.core", "numba.np", "numba.cpython", "numba.misc", "numba.cpu", "numba.targets")
"""Modules of other packages that may be imported by nobody, beside those with an underscore in front."""


def imported_names(path):
    """The full names of what a file imports, anywhere in it; relative imports are our own."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_private(name):
    """Return True if a full name is a private part of another package."""
    if name.partition(".")[0] in OURS or name.startswith("__future__."):
        return False
    parts = name.split(".")
    return any(f"{name}.".startswith(f"{one}.") for one in PRIVATE) or any(part.startswith("_") for part in parts)


def test_no_private_part_of_another_package_is_imported():
    own = [path for path in SOURCES if relative(path).partition("/")[0] in OURS]
    assert len(own) > 300
    assert [(relative(path), name) for path in own for name in imported_names(path) if is_private(name)] == []
    named = re.compile(r"\bnumba\.(core|np|cpython)\.|\bllvmlite\.")
    assert [relative(path) for path in own if named.search(text_of(path))] == []


@pytest.mark.parametrize("name", ["numba.core.types", "numba._dynfunc", "llvmlite.binding", "scipy.stats._qmc.Sobol"])
def test_a_private_part_is_known_as_such(name):
    assert is_private(name) and not is_private("numba.types") and not is_private("figures.pmoe._shared.slope")


def test_no_test_lists_the_systems_by_hand():
    # A system that is added would be asked nothing.
    known = set(derivations.names())

    def lists(path):
        made = [node for node in nodes(path) if isinstance(node, ast.Tuple | ast.List | ast.Set)]
        return [{item.value for item in one.elts if isinstance(item, ast.Constant)} for one in made]

    tests = [path for path in SOURCES if relative(path).startswith("tests/")]
    assert len(known) > 1 and len(tests) > 150
    naming = [path for path in tests if all(name in text_of(path) for name in known)]
    assert [relative(path) for path in naming if any(known <= found for found in lists(path))] == []


WRITTEN = ("_build", "gallery", "reference")
"""Folders of the documentation that its build writes."""


def test_every_page_is_in_the_index():
    # What the build writes (gallery, reference) is found by its own toctrees; the build has warnings as errors.
    docs = ROOT / "docs"
    pages = [path for path in docs.rglob("*.md") if path.relative_to(docs).parts[0] not in WRITTEN]
    listed = {
        (page.parent / line).resolve()
        for page in pages
        for block in re.findall(r"```{toctree}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        for line in block.splitlines()
        if line and not line.startswith(":")
    }
    roots = (docs / "index.md", docs / "development" / "index.md")  # two parts, the second reached by one link
    wanted = [page.with_suffix("") for page in pages if page.parent.name != "decisions" and page not in roots]
    assert len(wanted) > 40
    assert [str(page) for page in wanted if page not in listed] == []


def test_every_decision_is_in_the_index():
    index = (ROOT / "docs" / "decisions" / "index.md").read_text(encoding="utf-8")
    (pattern,) = re.findall(r"(?m)^(\d\*)$", index)
    decisions = {path.name for path in (ROOT / "docs" / "decisions").glob("*.md")} - {"index.md"}
    assert len(decisions) > 10
    assert {path.name for path in (ROOT / "docs" / "decisions").glob(f"{pattern}.md")} == decisions


@pytest.mark.skipif(bool(os.environ.get("ODESIM_UNCHECKED")), reason="ODESIM_UNCHECKED asks for tests without checks")
def test_annotations_are_checked_while_the_tests_run():
    from beartype.roar import BeartypeCallHintParamViolation

    from odesim.flow.problem import Past
    from odesim.request.parse import nearest

    assert nearest("a", ["b"]) and Past(1).time == 1  # a whole number is welcome where a float is expected
    for wrong in (lambda: nearest(3, ["b"]), lambda: Past(time="late")):
        with pytest.raises(BeartypeCallHintParamViolation):
            wrong()
