"""Machine code between processes: what is damaged or foreign in the cache is compiled again, and never run."""

import json
import os
import signal
import subprocess
import sys

import pytest

from hermite import machine_code

SCRIPT = """
import importlib.util, json, pathlib, sys
from numba import types
from hermite import machine_code

folder = pathlib.Path(sys.argv[1])
path = folder / "thrice.py"
path.write_text('''
def thrice(x):
    return 3.0 * x
''')

def load():
    spec = importlib.util.spec_from_file_location("thrice", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["thrice"] = module
    spec.loader.exec_module(module)
    return machine_code.compile_function(module.thrice, types.float64(types.float64))

def files():
    with machine_code.cache_folder() as kept:
        return machine_code.files_of(first.py_func, kept)

def answer():
    made = load()
    whole = len(files()) == 2 and all(map(machine_code.is_whole, files()))
    return [made(2.0), sum(made.stats.cache_hits.values()), whole]

first = load()
assert len(files()) == 2 and all(map(machine_code.is_whole, files()))
kept = sum(load().stats.cache_hits.values())
answers = []
for name in sorted(file.name for file in files()):
    place = next(file for file in files() if file.name == name)
    whole = place.read_bytes()
    flipped = [whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1:] for k in (0, len(whole) // 2, len(whole) - 1)]
    for damaged in (b"", whole[: len(whole) // 2], whole + b"more", b"something else", *flipped):
        place.write_bytes(damaged)
        answers.append(answer())
    place.unlink()
    place.mkdir()
    answers.append(answer())
for seal in [machine_code.hash_file(file) for file in files()]:
    seal.unlink()
    answers.append(answer())
print(json.dumps([kept, answers]))
"""


def run(script, folder, *arguments, **environment):
    """The output of a new process, with its cache in a folder."""
    whole = {"PATH": "", "ODESIM_CACHE": str(folder / "cache"), "PYTHONPATH": ":".join(sys.path), **environment}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=whole, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_damaged_machine_code_is_compiled_again(tmp_path):
    kept, answers = run(SCRIPT, tmp_path, tmp_path)
    assert kept == 1  # what is whole is taken from the cache
    assert len(answers) == 18 and answers == [[6.0, 0, True]] * 18


HALF = """
import importlib, json, pathlib, sys
from numba import types
from hermite import machine_code

folder = pathlib.Path(sys.argv[1])
path = folder / "halves.py"
if not path.exists():
    path.write_text("def half(x): return x / 2")
sys.path.insert(0, str(folder))
made = machine_code.compile_function(importlib.import_module("halves").half, types.float64(types.float64))
print(json.dumps([made(1.0), sum(made.stats.cache_hits.values())]))
"""


def test_a_later_process_takes_what_an_earlier_one_has_compiled_with_the_same_settings(tmp_path):
    assert run(HALF, tmp_path, tmp_path) == [0.5, 0]
    assert run(HALF, tmp_path, tmp_path) == [0.5, 1]
    assert run(HALF, tmp_path, tmp_path, NUMBA_OPT="0") == [0.5, 0]
    assert run(HALF, tmp_path, tmp_path, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="") == [0.5, 0]
    assert run(HALF, tmp_path, tmp_path) == [0.5, 1]  # the others have left it alone


@pytest.mark.parametrize("folder", ["a file", "read-only", "full"])
def test_without_a_cache_functions_are_compiled_all_the_same(folder, tmp_path):
    place, script = tmp_path / "cache", HALF
    if folder == "a file":
        place.write_text("no folder")
    elif folder == "read-only":
        place.mkdir(mode=0o500)
    else:
        limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))\n"
        script = f"import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n{limit}{HALF}"
    assert run(script, tmp_path, tmp_path) == [0.5, 0]


def test_settings_and_environment_of_the_user_are_put_back(tmp_path, monkeypatch):
    import numba

    monkeypatch.setenv("ODESIM_CACHE", str(tmp_path))
    for name in (machine_code.FOLDER, machine_code.LEVEL):
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ), numba.config.CACHE_DIR, numba.config.OPT
    with machine_code.cache_folder(1) as folder:
        assert folder.is_relative_to(tmp_path) and os.environ[machine_code.LEVEL] == "1" and numba.config.OPT == 1
    assert (dict(os.environ), numba.config.CACHE_DIR, numba.config.OPT) == before
    monkeypatch.setenv(machine_code.FOLDER, str(tmp_path / "theirs"))
    monkeypatch.setenv(machine_code.LEVEL, "3")
    with machine_code.cache_folder(1) as folder:
        assert folder == tmp_path / "theirs" and os.environ[machine_code.LEVEL] == "3"
    assert numba.config.OPT == before[2]


def test_ctrl_c_waits_for_the_compiler(tmp_path, monkeypatch):
    from numba import types

    monkeypatch.setenv("ODESIM_CACHE", str(tmp_path))
    before, reached, files_of = signal.getsignal(signal.SIGINT), [], machine_code.files_of

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        reached.append(arguments)
        return files_of(*arguments)

    def half(x):
        return x / 2

    monkeypatch.setattr(machine_code, "files_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        machine_code.compile_function(half, types.float64(types.float64))
    assert len(reached) == 2  # before and after it was compiled
    assert signal.getsignal(signal.SIGINT) is before


def test_a_function_that_cannot_be_compiled_says_so_and_ctrl_c_works_again(tmp_path, monkeypatch):
    from numba import types

    monkeypatch.setenv("ODESIM_CACHE", str(tmp_path))
    before = signal.getsignal(signal.SIGINT)

    def wrong(x):
        return x.nothing

    with pytest.raises(Exception, match="nothing"):
        machine_code.compile_function(wrong, types.float64(types.float64))
    assert signal.getsignal(signal.SIGINT) is before
