import io
import struct
import zipfile

import numpy as np
import pytest

from derivations.contract.npz import LARGEST, read_npz


def held(**arrays):
    """The bytes of an .npz file."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def bomb(said):
    """A file of 200 bytes that says of itself that it unpacks to `said` bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.npy", b"\0" * 1000)
    data = bytearray(file.getvalue())
    at = data.index(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<I", said)
    return bytes(data)


def changed(at, value):
    """A sound file whose entry in the directory holds `value` at byte `at`."""
    data = bytearray(held(a=np.ones(3)))
    data[data.index(b"PK\x01\x02") + at] = value
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"no arrays", "not a valid"),
        (b"", "not a valid"),
        (held(a=np.ones(9))[:-30], "not a valid"),
        (held(a=np.array([{"code": print}], dtype=object)), "not a valid"),
        (changed(10, 99), "not a valid"),  # packed by a method that nobody has
        (changed(8, 1), "not a valid"),  # encrypted
    ],
)
def test_a_damaged_file_is_one_sentence_whatever_numpy_raises(tmp_path, data, sentence):
    path = tmp_path / "a.npz"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=sentence):
        read_npz(path)


def test_a_file_that_unpacks_to_more_than_the_limit_is_not_opened(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    monkeypatch.setattr("derivations.contract.npz.LARGEST", 1 << 20)
    path.write_bytes(bomb((1 << 20) + 1))
    with pytest.raises(ValueError, match="contains more than"):
        read_npz(path)
    assert LARGEST >= 1 << 30  # no honest start is refused


def test_a_shape_that_is_not_what_the_file_holds_is_refused_without_its_memory(tmp_path):
    path = tmp_path / "a.npz"
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"\0" * 80)
    with pytest.raises(ValueError, match="not a valid"):
        read_npz(path)


def test_a_single_array_is_named_as_such_and_a_missing_file_is_an_oserror(tmp_path):
    np.save(tmp_path / "a.npy", np.ones(3))
    with pytest.raises(ValueError, match="a single array"):
        read_npz(tmp_path / "a.npy")
    with pytest.raises(FileNotFoundError):
        read_npz(tmp_path / "none.npz")
