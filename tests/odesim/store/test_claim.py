"""Two commands at one folder, and what killed ones leave."""

import subprocess
import sys

import pytest

from odesim.cli import _run as command
from odesim.errors import UsageError
from odesim.store.claim import claimed

HOLD = """
import sys
from pathlib import Path
from odesim.store.claim import claimed
with claimed(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def held(tmp_path):
    """A folder that another process holds; gives folder and process."""
    folder = tmp_path / "run"
    words = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield folder, process
        process.kill()


@pytest.mark.parametrize(
    "words",
    [
        ["integrate", "--system", "liao", "-p", "m=2", "-p", "m_star=1", "-p", "d=50", "--until", "1", "--no-figures"],
        ["sweep", "--system", "liao", "-p", "m=2", "-p", "m_star=1", "-p", "d=50", "--until", "1", "--over", "seed=0"],
        ["verify", "--system", "pruning", "--claim", "random-prune"],
    ],
)
def test_of_two_commands_at_one_folder_the_second_says_so_and_writes_nothing(held, words, capsys):
    folder, process = held
    assert command([*words, "--out", str(folder), "--quiet"]) == 2
    assert f"{folder} is being written by another command" in capsys.readouterr().err
    assert not folder.exists()
    process.kill()  # a killed command holds nothing, though its file stands
    process.wait()
    assert (folder.parent / ".run.lock").exists()
    with claimed(folder):
        pass
    assert not (folder.parent / ".run.lock").exists()


def test_what_a_killed_command_left_beside_the_folder_goes_and_what_it_put_aside_comes_back(tmp_path):
    folder, other = tmp_path / "run", tmp_path / ".runner.partial-x"
    for name in (".run.partial-a", ".run.old-b"):
        (tmp_path / name).mkdir()
    other.mkdir()
    (tmp_path / ".run.old-b" / "manifest.json").write_text("the run")
    with claimed(folder):
        assert (folder / "manifest.json").read_text() == "the run"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".runner.partial-x", "run"]
    (tmp_path / ".run.old-c").mkdir()
    with claimed(folder):
        assert sorted(path.name for path in tmp_path.iterdir()) == [".run.lock", ".runner.partial-x", "run"]


def test_a_folder_is_free_again_after_an_error_and_is_held_within_one_process_too(tmp_path):
    folder = tmp_path / "new" / "run"

    def failing():
        with claimed(folder):
            with pytest.raises(UsageError, match="another command"), claimed(folder):
                pass
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    with claimed(folder):
        pass
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_told_by_what_writes_there(tmp_path):
    (tmp_path / "file").write_text("")
    reached = []
    with claimed(tmp_path / "file" / "run"):
        reached.append(sorted(path.name for path in tmp_path.iterdir()))
    assert reached == [["file"]]
