"""Generated modules are made where nothing can be kept, and said to be; damaged ones are made again."""

import concurrent.futures
import sys

import pytest

from odesim.code import compile, kept

TEXT = compile.numba_module("nothing", ["def half(x):\n    return x / 2\n"])


@pytest.fixture
def generated(tmp_path, monkeypatch):
    """The module of `TEXT` as a new process has it."""
    monkeypatch.setenv("ODESIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kept, "_told", [])
    found = []

    def make():
        for module in found:
            sys.modules.pop(module.__name__, None)
        found.append(compile.generated("tried", ["hermite"], lambda: TEXT))
        return found[-1]

    yield make
    for module in found:
        sys.modules.pop(module.__name__, None)


def misses(module):
    """How many functions were compiled for a call."""
    assert module.half(3.0) == 1.5
    return sum(module.half._cache_misses.values())


def test_every_file_that_is_damaged_is_made_again_without_a_word(generated, tmp_path, capfd):
    assert misses(generated()) == 1 and misses(generated()) == 0
    files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".py", ".made", ".code", ".nbc"}
    for path in files:
        whole = path.read_bytes()
        for damage in (b"", whole[: len(whole) // 2], whole[:-2] + b"\0\0", bytes(len(whole)), None):
            path.unlink()
            path.mkdir() if damage is None else path.write_bytes(damage)
            assert misses(generated()) == (path.suffix == ".nbc"), path
            assert path.read_bytes() == whole if path.suffix != ".nbc" else path.is_file(), path
            assert misses(generated()) == 0
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("library", ["numba", "llvmlite", "numpy"])
def test_what_another_version_has_written_is_left_alone(generated, tmp_path, monkeypatch, library):
    assert misses(generated()) == 1
    before = {path: path.read_bytes() for path in (tmp_path / "cache").rglob("*.*")}
    real = compile.version
    monkeypatch.setattr(compile, "version", lambda name: "0.1" if name == library else real(name))
    compile.source_digest.cache_clear()
    assert misses(generated()) == 1
    changed = [path for path, content in before.items() if path.read_bytes() != content]
    assert [path.suffix for path in changed] in ([], [".made"])  # a note names the text of the version that ran last
    monkeypatch.undo()
    compile.source_digest.cache_clear()


def test_where_nothing_can_be_kept_a_module_is_made_all_the_same_and_one_line_says_so(generated, tmp_path, capfd):
    (tmp_path / "cache").write_text("a file")
    assert misses(generated()) == 1 and misses(generated()) == 1
    told = capfd.readouterr().err
    assert told.count("\n") == 1
    assert "cannot be written (File exists)" in told or "cannot be written (Not a directory)" in told


def test_a_cache_that_cannot_be_written_is_read(generated, monkeypatch, capfd):
    misses(generated())

    def refuse(*_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(kept, "seal", refuse)
    monkeypatch.setattr(kept.cache, "write", refuse)
    assert misses(generated()) == 0 and capfd.readouterr().err == ""


def test_ctrl_c_waits_for_the_compiler_and_is_raised_at_the_innermost_end():
    import signal

    before, reached = signal.getsignal(signal.SIGINT), []

    def compiling():
        with kept.unbroken():
            with kept.unbroken():
                signal.raise_signal(signal.SIGINT)
                reached.append("the end of what was begun")
            reached.append("the rest of what called it")

    with pytest.raises(KeyboardInterrupt):
        compiling()
    assert reached == ["the end of what was begun"]
    assert signal.getsignal(signal.SIGINT) is before
    with kept.unbroken():  # nothing is left of it
        pass


def test_a_failure_of_the_compiler_is_told_as_such_and_ctrl_c_works_again():
    import signal

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ValueError, match="typing"), kept.unbroken():
        raise ValueError("typing")
    assert signal.getsignal(signal.SIGINT) is before


def test_threads_that_ask_for_one_module_at_once_all_see_the_whole_of_it(tmp_path, monkeypatch):
    monkeypatch.setenv("ODESIM_CACHE", str(tmp_path / "cache"))
    slow = TEXT + "import time\ntime.sleep(0.2)\nlast = 1\n"
    compile.generated("shared", ["hermite"], lambda: slow)
    for name in [name for name in sys.modules if name.startswith("odesim_generated_shared_")]:
        del sys.modules[name]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: compile.generated("shared", ["hermite"], lambda: slow), range(4)))
    try:
        assert all(module is found[0] and module.last == 1 for module in found)
    finally:
        del sys.modules[found[0].__name__]
