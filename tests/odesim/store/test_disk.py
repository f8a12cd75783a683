"""Folders and messages of odesim after errors of a full or broken disk."""

import errno
import json
import os
import shutil
import types

import pytest

from odesim import errors, store
from odesim.errors import StorageError
from odesim.request.case import Case
from odesim.store import write
from odesim.store.verdicts import Ledger


@pytest.fixture
def stored(tiny, tiny_run, tmp_path):
    """A function that stores the run of a case with `save_points` in tmp_path/run."""

    def make(save_points):
        case = Case.build(tiny, save_points=save_points)
        return store.save(tiny_run(case), case, tmp_path / "run", {"solve": 0.1}, None)

    return make


def failing(monkeypatch, module, name, refuses, number=errno.ENOSPC):
    """Let a function of a module fail where `refuses(*arguments)`."""
    real = getattr(module, name)

    def operation(*arguments, **named):
        if refuses(*arguments):
            raise OSError(number, os.strerror(number), str(arguments[0]))
        return real(*arguments, **named)

    monkeypatch.setattr(module, name, operation)


def test_a_run_that_the_disk_does_not_confirm_is_said_to_be_there(stored, tmp_path, monkeypatch):
    stored(3)
    failing(monkeypatch, write, "synchronise", lambda path: path == tmp_path, errno.EIO)
    with pytest.raises(StorageError, match=r"was written, but the disk did not confirm .*Input/output error"):
        stored(5)
    assert store.load(tmp_path / "run").trajectory.time.size == 5
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_an_older_run_that_cannot_be_put_back_is_named(stored, tmp_path, monkeypatch):
    folder = stored(3)
    failing(monkeypatch, os, "replace", lambda source, target: target == folder)
    with pytest.raises(StorageError, match="the earlier run is complete in") as caught:
        stored(5)
    (aside,) = tmp_path.iterdir()
    assert str(aside) in str(caught.value) and store.load(aside).trajectory.time.size == 3


def test_a_copy_that_does_not_fit_leaves_the_older_run(stored, tmp_path, monkeypatch):
    older = store.copy(store.load(stored(3)), tmp_path / "copy")
    run = store.load(stored(5))
    failing(monkeypatch, shutil, "copytree", lambda *_: True)
    with pytest.raises(StorageError, match="the disk is full"):
        store.copy(run, older)
    assert store.load(older).trajectory.time.size == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "run"]
    monkeypatch.undo()
    assert store.load(store.copy(run, older)).trajectory.time.size == 5


@pytest.mark.parametrize("kept", [10, 30, -2, -4])
def test_a_line_of_verdicts_that_was_cut_takes_no_other_with_it(tmp_path, kept):
    def verdict(claim):
        return types.SimpleNamespace(claim=claim, variant="main", as_dict=lambda: told | {"claim": claim})

    told, path = {"variant": "main", "reason": "\u2264 \u00e9\u20ac"}, tmp_path / "verdicts.jsonl"
    first = Ledger(path, "key")
    first.add(verdict("one")), first.add(verdict("two"))
    one, two = path.read_bytes().splitlines(keepends=True)
    cut = two.index("\u20ac".encode()) + 1 if kept == -4 else kept % len(two)  # inside a letter, or anywhere
    path.write_bytes(one + two[:cut])
    again = Ledger(path, "key")
    assert set(again.verdicts) == {("one", "main")}
    again.add(verdict("three")), again.add(verdict("four"))
    assert {claim for claim, _ in Ledger(path, "key").verdicts} == {"one", "three", "four"}


def test_a_full_disk_is_named_where_verdicts_are_kept(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "verdicts.jsonl", "key")
    failing(monkeypatch, os, "fsync", lambda _: True)
    with pytest.raises(StorageError, match=f"the disk is full: {tmp_path} could not be written"):
        ledger.add(types.SimpleNamespace(claim="one", variant="main", as_dict=lambda: json.loads("{}")))
    assert not ledger.verdicts


def test_the_disk_is_to_blame_for_what_the_operating_system_says_of_it():
    for number, words in ((errno.ENOSPC, "the disk is full: /x/y"), (errno.EIO, "the disk fails (Input/output error)")):
        error = errors.of_disk(OSError(number, os.strerror(number), "/x/y"))
        assert words in str(error) and errors.exit_code(error) == 3
    assert errors.of_disk(OSError(errno.ENOENT, "none", "/x/y")) is None
    assert errors.of_disk(ValueError("no disk")) is None
