"""The command run in this process, with the tiny system and its exact solution as integrator."""

import importlib
import json

import pytest


class Answer:
    """The output of a command, and its exit code."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def odesim_command(tiny, tiny_run, monkeypatch, capsys, tmp_path):
    """Call it with the words of a command line; it works in an empty folder."""
    import derivations
    from odesim.cli import main
    from odesim.show import plot

    def draw(trajectory, folder, svg=False, system=None):
        path = folder / "run.png"
        path.write_bytes(b"a picture")
        return [path]

    real = derivations.system
    monkeypatch.setattr(derivations, "names", lambda: ["liao", "tiny"])
    monkeypatch.setattr(derivations, "system", lambda name: tiny if name == "tiny" else real(name))
    monkeypatch.setattr(importlib.import_module("odesim.flow.solve"), "solve", tiny_run)
    monkeypatch.setattr(plot, "draw", draw)
    monkeypatch.chdir(tmp_path)

    def call(*words):
        with pytest.raises(SystemExit) as caught:
            main([str(word) for word in words])
        captured = capsys.readouterr()
        return Answer(caught.value.code or 0, captured.out, captured.err)

    return call


@pytest.fixture
def solve_as(monkeypatch, odesim_command):
    """Put another integrator in the place of the exact one."""

    def replace(solve):
        monkeypatch.setattr(importlib.import_module("odesim.flow.solve"), "solve", solve)

    return replace
