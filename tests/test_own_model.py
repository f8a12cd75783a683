"""Execution of the examples on the pages of `PAGES`: files, commands and Python."""

import contextlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = (
    "own-model", "inputs", "training", "rules", "heads", "stages", "bands", "exponents", "atlas", "sensitivity",
    "optimise", "check", "export", "conventions",
)  # fmt: skip
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")


def page(name):
    """The text of a page."""
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def blocks(language):
    """The blocks of a language on the pages."""
    return re.findall(rf"^```{language}\n(.*?)^```", "\n".join(map(page, PAGES)), flags=re.S | re.M)


def commands():
    """(words, expected lines) of every command."""
    for block in blocks("console"):
        first, *lines = block.splitlines()
        yield shlex.split(first.removeprefix("$ odesim ")), [line.strip() for line in lines]


def alike(expected, found):
    """Return True if a line begins with the expected words and numbers; numbers are compared to three digits."""
    if NUMBER.sub("#", expected) != NUMBER.sub("#", found)[: len(NUMBER.sub("#", expected))]:
        return False
    pairs = zip(NUMBER.findall(expected), NUMBER.findall(found), strict=False)
    return all(float(b) == pytest.approx(float(a), rel=5e-3, abs=1e-9) for a, b in pairs)


@pytest.fixture
def folder(tmp_path):
    """A folder with the files of the page, and those that its Python blocks with the name of a file make."""
    for text in blocks("toml"):
        (tmp_path / text.splitlines()[0].removeprefix("# ")).write_text(text, encoding="utf-8")
    with contextlib.chdir(tmp_path):
        for text in blocks("python"):
            if re.match(r"# \w+\.py\n", text):
                exec(text, {})
    return tmp_path


@pytest.mark.parametrize(("words", "expected"), [pytest.param(*c, id=" ".join(c[0][:5])) for c in commands()])
def test_a_command_of_the_page(folder, words, expected):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "odesim", *words], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    missing = [line for line in expected if not any(alike(line, other) for other in lines)]
    assert not missing, done.stdout


def test_the_python_of_the_page(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for text in blocks("python"):
        exec(text, {})


@pytest.mark.slow
def test_the_pytorch_loop_of_the_page():
    pytest.importorskip("torch", reason="PyTorch takes 0.8 GB and is no part of the tests: `make bench` installs it")
    (text,) = blocks("py")
    space = {}
    exec(text, space)
    stated = float(re.search(r"The distance is (\d\.\d+)", page("own-model"))[1])
    assert space["distance"] == pytest.approx(stated, rel=0.5)
    assert 0 < space["distance"] < 3 / space["d"] ** 0.5
    assert space["mine"]["M_ww"].shape == (21, 3, 3)


def test_the_claim_of_the_page_is_read(folder):
    import odesim
    from derivations.declare.claims import stated

    (claim,) = stated.claims(odesim.system(str(folder / "index.toml")))
    assert claim.id == "escape" and claim.law.toward == "small"
