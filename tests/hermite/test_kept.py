"""Machine code is kept between processes, for the processor and the text that it was made for, and only whole."""

import errno

import numba
import numba.core.codegen as codegen
import pytest

from hermite import kept


def doubled(x):
    return x + x


def made(folder, stamp="text", refused=None):
    """A dispatcher of `doubled` as a new process has one."""
    dispatcher = numba.njit(doubled)
    dispatcher._cache = kept.MachineCode(doubled, folder, stamp, refused)
    return dispatcher


def counted(dispatcher, argument=1.5):
    """How often the dispatcher's machine code was found, and how often it was compiled, for a call that is right."""
    assert dispatcher(argument) == argument + argument
    return sum(dispatcher._cache_hits.values()), sum(dispatcher._cache_misses.values())


def test_a_second_process_finds_the_code_of_every_signature(tmp_path):
    assert counted(made(tmp_path)) == (0, 1)
    assert counted(made(tmp_path)) == (1, 0)
    assert counted(made(tmp_path), 2) == (0, 1)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("at", [0, 20, 100, 2000, -1])
def test_damaged_code_is_compiled_again_and_replaced(tmp_path, at):
    counted(made(tmp_path))
    (path,) = tmp_path.iterdir()
    whole = bytearray(path.read_bytes())
    whole[at] ^= 1
    path.write_bytes(whole)
    assert counted(made(tmp_path)) == (0, 1)
    assert counted(made(tmp_path)) == (1, 0)


def test_code_is_compiled_again_where_the_text_is_another(tmp_path):
    counted(made(tmp_path))
    assert counted(made(tmp_path, "changed")) == (0, 1)
    assert counted(made(tmp_path, "changed")) == (1, 0)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("library", [numba, kept.llvmlite])
def test_code_of_another_version_of_the_compiler_is_compiled_again(tmp_path, monkeypatch, library):
    counted(made(tmp_path))
    monkeypatch.setattr(library, "__version__", "0.1")
    assert counted(made(tmp_path)) == (0, 1)


@pytest.mark.parametrize("part", [1, 2])  # the name of the processor, its features
def test_code_made_for_another_processor_is_not_run(tmp_path, monkeypatch, part):
    counted(made(tmp_path))
    (ours,) = tmp_path.iterdir()
    real = codegen.JITCPUCodegen.magic_tuple

    def other(self):
        told = list(real(self))
        told[part] = "other"
        return tuple(told)

    with monkeypatch.context() as patch:
        patch.setattr(codegen.JITCPUCodegen, "magic_tuple", other)
        assert counted(made(tmp_path)) == (0, 1)
        (theirs,) = set(tmp_path.iterdir()) - {ours}
        theirs.write_bytes(ours.read_bytes())  # nor under a name that is not its own
        assert counted(made(tmp_path)) == (0, 1)
    assert counted(made(tmp_path)) == (1, 0)


def test_settings_of_numba_that_change_the_code_keep_it_apart(tmp_path, monkeypatch):
    counted(made(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(kept.config, "USING_SVML", not kept.config.USING_SVML)
        assert counted(made(tmp_path)) == (0, 1)
    monkeypatch.setattr(kept.config, "OPT", type(kept.config.OPT)(1))
    assert counted(made(tmp_path)) == (0, 1)


def test_a_full_disk_costs_the_next_process_its_time_and_nothing_else(tmp_path, monkeypatch):
    told = []

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(kept, "seal", full)
    assert counted(made(tmp_path, refused=told.append)) == (0, 1)
    assert [error.errno for error in told] == [errno.ENOSPC] and not list(tmp_path.iterdir())
    assert counted(made(None)) == (0, 1)
