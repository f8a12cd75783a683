"""A sealed file is read as it was written, for what it was written for, or not at all."""

import errno
import os

import pytest

from hermite.sealed import seal, unsealed

CONTENT = bytes(range(256))


def test_every_changed_byte_and_every_cut_is_noticed(tmp_path):
    path = tmp_path / "folder" / "file"
    seal(path, "key", CONTENT)
    whole = path.read_bytes()
    assert unsealed(path, "key") == CONTENT
    for at in range(len(whole)):
        for change in (1, 0x80, 0xFF):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ change]) + whole[at + 1 :])
            assert unsealed(path, "key") is None, at
        path.write_bytes(whole[:at])
        assert unsealed(path, "key") is None, at
    path.write_bytes(whole + b"\0")
    assert unsealed(path, "key") is None


def test_a_file_is_read_for_its_own_key_only(tmp_path):
    seal(tmp_path / "file", "key", CONTENT)
    assert unsealed(tmp_path / "file", "other") is None
    assert unsealed(tmp_path / "none", "key") is None
    seal(tmp_path / "file", "key\n1", b"2")  # nor may key and content be divided otherwise
    assert unsealed(tmp_path / "file", "key") is None


def test_a_folder_in_its_place_is_replaced(tmp_path):
    (tmp_path / "file").mkdir()
    assert unsealed(tmp_path / "file", "key") is None
    seal(tmp_path / "file", "key", CONTENT)
    assert unsealed(tmp_path / "file", "key") == CONTENT


@pytest.mark.parametrize("name", ["fdopen", "replace"])
def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch, name):
    seal(tmp_path / "file", "key", CONTENT)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, name, full)
    with pytest.raises(OSError, match="No space"):
        seal(tmp_path / "file", "key", b"new")
    assert unsealed(tmp_path / "file", "key") == CONTENT and len(list(tmp_path.iterdir())) == 1
