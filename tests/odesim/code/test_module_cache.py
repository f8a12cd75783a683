"""Generated modules and their functions, compiled and kept between processes."""

import concurrent.futures
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import derivations
from odesim.cli import warm
from odesim.code import compile, module_cache
from odesim.errors import MissingError
from odesim.request.case import find_system

TEXT = compile.numba_module(
    "a test", ["def half(x):\n    return x / 2\n", "def both(x):\n    return half(x) + half(x)\n"]
)


@pytest.fixture
def both(tmp_path, monkeypatch):
    """A function that makes `both` as a new process has it."""
    monkeypatch.setenv("ODESIM_CACHE", str(tmp_path / "cache"))

    def make():
        for name in [name for name in sys.modules if name.startswith("odesim_tried_")]:
            del sys.modules[name]
        monkeypatch.setattr(module_cache, "_forms", {})
        monkeypatch.setattr(module_cache, "_told", [])
        return module_cache.TypedFunction("tried", TEXT, "both")

    yield make
    make()


def hits(function, *arguments):
    """Number of cache hits for the machine code of a call: one or none."""
    assert function(*arguments) == arguments[0]
    return sum(function.compiled_for(*arguments).stats.cache_hits.values())


def test_every_type_of_arguments_has_a_form_and_a_module_of_its_own(both, tmp_path):
    function = both()
    assert hits(function, 3.0) == 0 and hits(function, 3) == 0 and function(0.25) == 0.25
    assert hits(function, np.float64(2.0)) == 0  # the form of 3.0
    frozen = np.ones(2)
    frozen.flags.writeable = False
    for array in (np.ones(2), frozen, np.ones((2, 2)), np.ones((2, 4)).T[::2], np.ones(2, np.int64)):
        np.testing.assert_array_equal(function(array), array)
    assert len(list((tmp_path / "cache" / "kernels").glob("*.py"))) == 7
    again = both()
    assert hits(again, 3.0) == 1 and hits(again, 3) == 1


def test_a_damaged_text_or_machine_code_changes_nothing(both, tmp_path, capfd):
    hits(both(), 3.0)
    assert hits(both(), 3.0) == 1
    files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".py", ".nbi", ".nbc", ".sha256"}
    for path in files:
        whole = path.read_bytes()
        for damage in (b"", whole[: len(whole) // 2], whole[:-2] + b"\0\0", bytes(len(whole)), None):
            path.unlink()
            path.mkdir() if damage is None else path.write_bytes(damage)
            assert both()(3.0) == 3.0, (path, damage)
            assert hits(both(), 3.0) == 1, (path, damage)
    assert capfd.readouterr().err == ""


def test_another_text_is_compiled_anew(both):
    hits(both(), 3.0)
    text = TEXT.replace("x / 2", "x / 4")
    both()
    assert module_cache.TypedFunction("tried", text, "both")(3.0) == 1.5
    assert hits(both(), 3.0) == 1


def test_where_nothing_can_be_kept_one_line_says_so(both, tmp_path, capfd):
    (tmp_path / "cache").write_text("a file")
    function = both()
    assert hits(function, 3.0) == 0 and hits(function, 3) == 0
    told = capfd.readouterr().err
    assert told.count("\n") == 1 and "machine code cannot be kept in" in told


def test_threads_that_ask_at_once_all_get_one_whole_module(tmp_path, monkeypatch):
    monkeypatch.setenv("ODESIM_CACHE", str(tmp_path / "cache"))
    slow = "import time\ntime.sleep(0.2)\nlast = 1\n"
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: module_cache.load_module("shared", slow), range(4)))
    try:
        assert all(module is found[0] and module.last == 1 for module in found)
    finally:
        del sys.modules[found[0].__name__]


def test_half_a_module_is_not_taken_for_the_whole(tmp_path, monkeypatch):
    monkeypatch.setenv("ODESIM_CACHE", str(tmp_path / "cache"))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            module_cache.load_module("broken", "first = 1\nsecond = 1 / 0\n")


def test_a_compiler_that_is_switched_off_is_missing(both, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with pytest.raises(MissingError, match="unset NUMBA_DISABLE_JIT"):
        both()(3.0)


STEPS = """
import json, sys
import odesim
from odesim.code import module_cache

odesim.simulate("liao", method="compressed", m=2, m_star=1, d=50, batch=1, step_size=.01, until=.02, save_points=2)
found = [form.stats for form in module_cache._forms.values()]
print(json.dumps([sum(sum(getattr(one, name).values()) for one in found) for name in ("cache_hits", "cache_misses")]))
"""


def test_a_repeated_simulation_compiles_nothing(tmp_path):
    environment = {**os.environ, "ODESIM_CACHE": str(tmp_path / "cache"), "PYTHONPATH": ":".join(sys.path)}
    found = []
    for _ in range(2):
        command = [sys.executable, "-c", STEPS]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    (hits, misses), later = found
    assert hits == 0 < misses and later == [misses, 0]


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
