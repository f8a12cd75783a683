"""Machine code between processes: what is damaged in the cache is compiled again, and never run."""

import json
import subprocess
import sys

import pytest

import derivations
from odesim.cli import warm
from odesim.request.case import find_system

SCRIPT = """
import importlib.util, json, os, pathlib, sys
from odesim.code import module_cache

folder = pathlib.Path(sys.argv[1])
path = folder / "thrice.py"
path.write_text('''
from numba import types
from odesim.code.module_cache import compiled

@compiled(types.float64(types.float64))
def thrice(x):
    return 3.0 * x
''')

def load():
    spec = importlib.util.spec_from_file_location("thrice", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["thrice"] = module
    spec.loader.exec_module(module)
    return module.thrice

def files():
    return module_cache._files(first.py_func, folder / "cache" / "numba")

first = load()
assert len(files()) == 2 and all(map(module_cache._is_whole, files()))
again = load()
kept = sum(again.stats.cache_hits.values())
answers = []
for name in sorted(file.name for file in files()):
    place = next(file for file in files() if file.name == name)
    whole = place.read_bytes()
    flipped = [whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1:] for k in (0, len(whole) // 2, len(whole) - 1)]
    for damaged in (b"", whole[: len(whole) // 2], whole + b"more", b"something else", *flipped):
        place.write_bytes(damaged)
        made = load()
        answers.append([made(2.0), sum(made.stats.cache_hits.values()), all(map(module_cache._is_whole, files()))])
for seal in [module_cache._seal_of(file) for file in files()]:
    seal.unlink()
    made = load()
    answers.append([made(2.0), sum(made.stats.cache_hits.values()), all(map(module_cache._is_whole, files()))])
print(json.dumps([kept, answers]))
"""


def test_damaged_machine_code_is_compiled_again(tmp_path):
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    environment = {"PATH": "", "ODESIM_CACHE": str(tmp_path / "cache"), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    kept, answers = json.loads(done.stdout)
    assert kept == 1  # what is whole is taken from the cache
    assert len(answers) == 16 and answers == [[6.0, 0, True]] * 16


@pytest.mark.parametrize("folder", ["a file", "read-only"])
def test_without_a_cache_functions_are_compiled_all_the_same(folder, tmp_path):
    place = tmp_path / "cache"
    if folder == "a file":
        place.write_text("no folder")
    else:
        place.mkdir(mode=0o500)
    script = "import odesim; print(odesim.integrate('liao', m=2, m_star=1, tier='riccati', until=0.1).outcome.kind)"
    environment = {"PATH": "", "ODESIM_CACHE": str(place), "PYTHONPATH": ":".join(sys.path), "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0 and done.stdout == "completed\n", done.stderr


def test_every_tier_with_a_clock_is_warmed():
    for name in derivations.names():
        system = find_system(name)
        labels = [label for label, _ in warm.cases(system)]
        wanted = [f"{name}, {s.name}, {t}" for s in system.stages if s.kind == "dynamics" for t in s.tiers]
        assert labels == wanted


def test_a_warmed_system_says_where_it_is_kept(capsys):
    assert warm.warm(["liao"], json=True, quiet=True, debug=False) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["seconds"].keys() >= {"liao, train, exact", "liao, train, cascade"} and said["bytes"] > 0
    assert "m = m_star" in said["left_out"]["liao, train, linear"]
