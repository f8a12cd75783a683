"""XLA's programs between processes: found again without a word, damaged ones compiled again, the user's choice kept."""

import os
import subprocess
import sys

import pytest

from hermite import machine_code
from odesim.machine import programs

SCRIPT = """
from odesim.machine import device, ownership
ownership.claim_process()
device.configure("cpu")
import jax
seen = []
jax.monitoring.register_event_listener(lambda event, **more: seen.append(event))
print(float(jax.jit(lambda x: jax.numpy.linalg.cholesky(x @ x.T + jax.numpy.eye(40)).sum())(jax.numpy.ones((40, 40)))))
print(sum(event.endswith("cache_hits") for event in seen) > 0)
"""


@pytest.fixture
def answer(tmp_path):
    """The result of a new process, True if it found its program in the cache, and its output on stderr."""

    def run(**environment):
        clean = {name: value for name, value in os.environ.items() if name not in (programs.FOLDER, *programs.SETTINGS)}
        known = {**clean, "ODESIM_CACHE": str(tmp_path / "cache"), **environment}
        made = subprocess.run([sys.executable, "-c", SCRIPT], env=known, capture_output=True, text=True, check=True)
        value, found = made.stdout.split()
        return float(value), found == "True", made.stderr

    return run


def entries(tmp_path):
    return sorted((tmp_path / "cache").glob(f"xla_*/*{programs.ENTRY}"))


def test_a_second_process_finds_the_program_and_a_damaged_one_is_compiled_again(answer, tmp_path):
    value, found, said = answer()
    assert not found and said == ""
    entry = entries(tmp_path)[0]
    assert entry.parent.name == f"xla_{programs.processor()}"
    assert answer() == (value, True, "")
    for each in entries(tmp_path):  # another may have been added: what is kept depends on how long it took to compile
        whole = each.read_bytes()
        each.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    assert answer() == (value, False, "")
    assert answer() == (value, True, "")
    for each in entries(tmp_path):  # as a process leaves it that is killed before it has sealed
        each.with_name(each.name + programs.SEAL).unlink()
    assert answer() == (value, False, "")


def test_the_folder_that_a_user_names_is_left_alone(answer, tmp_path):
    _, found, _ = answer(**{programs.FOLDER: str(tmp_path / "own")})
    assert not found and not entries(tmp_path)


def test_nothing_is_set_where_nothing_can_be_kept_or_an_accelerator_is_there(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    monkeypatch.delenv(programs.FOLDER, raising=False)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ODESIM_CACHE", str(tmp_path / "file"))
    programs.keep()
    monkeypatch.setenv("ODESIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(programs.importlib.util, "find_spec", lambda name: name)
    programs.keep()
    assert programs.FOLDER not in os.environ and not (tmp_path / "cache").exists()


def test_the_oldest_programs_go_first(tmp_path, monkeypatch):
    monkeypatch.setattr(programs, "MOST_BYTES", 250)
    for age, name in enumerate(("new", "middle", "old")):
        entry = tmp_path / f"{name}{programs.ENTRY}"
        entry.write_bytes(bytes(100))
        os.utime(entry, (1e9 - age, 1e9 - age))
    (tmp_path / f"torn{programs.ENTRY}").write_bytes(b"half of one")
    programs.seal_all(tmp_path)
    torn = tmp_path / f"torn{programs.ENTRY}"
    torn.write_bytes(b"the whole of it")
    programs.sift(tmp_path)
    assert sorted(path.name for path in tmp_path.glob(f"*{programs.ENTRY}")) == ["middle-cache", "new-cache"]
    assert len(list(tmp_path.iterdir())) == 4


def test_another_processor_has_another_folder(monkeypatch):
    here = programs.processor()
    assert here == programs.processor()
    monkeypatch.setattr(machine_code.platform, "machine", lambda: "another")
    assert programs.processor() != here
