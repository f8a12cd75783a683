"""Systems in folders of their own, and the command in an empty one."""

import shutil
import sys
from pathlib import Path

import pytest

from odesim.cli import _run as command

HERE = Path(__file__).parent


def elsewhere(name, factory):
    """A copy of the folder of a system; nothing of this process's memory of it stays."""
    folder = factory.mktemp("elsewhere") / name
    shutil.copytree(HERE / name, folder, ignore=shutil.ignore_patterns("__pycache__"))
    before = list(sys.path)
    yield folder
    sys.path[:] = before
    for module in [module for module in sys.modules if module.partition(".")[0] in (name, "alone")]:
        del sys.modules[module]


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    """A system of Gaussian inputs."""
    yield from elsewhere("teacher", tmp_path_factory)


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A system on a finite alphabet."""
    yield from elsewhere("words", tmp_path_factory)


@pytest.fixture
def asked(tmp_path, monkeypatch, capsys):
    """Call the command in an empty folder: exit code 0, and what it printed."""
    monkeypatch.chdir(tmp_path)

    def call(*told, code=0):
        assert command([str(word) for word in told]) == code
        said = capsys.readouterr()
        return said.err if code else said.out

    return call
