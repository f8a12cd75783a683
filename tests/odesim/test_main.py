import os
import signal
import sys

import pytest

from odesim import cli
from odesim.__main__ import main


class Interrupted:
    """An importer that is interrupted at the command line's modules."""

    def find_spec(self, name, path=None, target=None):
        if name == "odesim.cli":
            raise KeyboardInterrupt


def test_ctrl_c_while_modules_are_imported_is_a_sentence(monkeypatch, capsys):
    import odesim

    monkeypatch.delitem(sys.modules, "odesim.cli", raising=False)
    monkeypatch.delattr(odesim, "cli", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    monkeypatch.setattr(os, "_exit", sys.exit)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 130
    assert capsys.readouterr().err == "odesim: interrupted; no result was written.\n"


def test_ctrl_c_that_a_callback_dropped_is_still_one(monkeypatch, capsys):
    def dropped(words, **_):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:  # as ctypes does with what a callback raises
            pass
        raise RuntimeError("no compiled object yet")

    monkeypatch.setattr(cli, "app", dropped)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a test before this one may have set another
    try:
        assert cli._run(["doctor"]) == 130
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == "odesim: interrupted; no result was written.\n"


def test_an_error_of_ours_without_ctrl_c_is_named_as_such(monkeypatch, capsys):
    def wrong(words, **_):
        raise RuntimeError("no compiled object yet")

    monkeypatch.setattr(cli, "app", wrong)
    assert cli._run(["doctor"]) == 70
    assert "internal error, RuntimeError" in capsys.readouterr().err


def test_sizes_beyond_the_memory_are_a_sentence(monkeypatch, capsys):
    def large(words, **_):
        raise MemoryError("Unable to allocate 5.96 GiB")

    monkeypatch.setattr(cli, "app", large)
    assert cli._run(["doctor"]) == 3
    assert "too small (Unable to allocate 5.96 GiB); use smaller sizes" in capsys.readouterr().err
