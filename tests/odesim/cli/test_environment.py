"""Commands in environments that others set: one sentence and an exit code that says whose it is, never 70."""

import ast
import json
import os
import subprocess
import sys

import pytest


def command(*words, folder=None, **environment):
    """The finished process of a command; its output is bytes."""
    return subprocess.run(
        [sys.executable, "-m", "odesim", *map(str, words)], capture_output=True, timeout=300, check=False,
        cwd=folder, env={**os.environ, **environment},
    )  # fmt: skip


def integrated(folder, *more, **environment):
    """The finished process of a short run that reports no progress, however slow the machine is."""
    words = ("integrate", "--system", "liao", "-p", "m=3", "-p", "m_star=2", "-p", "d=20", "--until", 0.5)
    return command(*words, "--save-points", 3, "--out", "run", "--quiet", *more, folder=folder, **environment)


def refused(done, code, *words):
    """Assert that a command ended with `code` and one sentence with all of `words`."""
    said = done.stderr.decode().splitlines()
    assert done.returncode == code, said
    assert len(said) == 1 and said[0].startswith("odesim: ") and said[0].endswith("."), said
    assert all(word in said[0] for word in words), said


def test_numba_without_its_compiler(tmp_path):
    refused(integrated(tmp_path, "--no-figures", NUMBA_DISABLE_JIT="1"), 4, "NUMBA_DISABLE_JIT=1", "unset")


def test_numba_with_a_compiler_that_is_not_disabled(tmp_path):
    assert integrated(tmp_path, "--no-figures", NUMBA_DISABLE_JIT="0").returncode == 0


@pytest.mark.parametrize("count", ["0", "-2", "many"])
def test_numbers_of_threads_that_are_none(tmp_path, count):
    refused(integrated(tmp_path, "--no-figures", NUMBA_NUM_THREADS=count), 2, "NUMBA_NUM_THREADS", f"'{count}'")


def test_threads_that_are_given_take_the_place_of_the_environment(tmp_path):
    assert integrated(tmp_path, "--no-figures", "--threads", 1, NUMBA_NUM_THREADS="0").returncode == 0


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_a_platform_that_jax_cannot_start(tmp_path, platform):
    import jax

    if platform in {device.platform for device in jax.devices()} or jax.default_backend() == "gpu":
        pytest.skip("this machine has it")
    done = integrated(tmp_path, "--no-figures", "--backend", "jax", JAX_PLATFORMS=platform)
    refused(done, 4, f"JAX_PLATFORMS={platform}", "cannot start")


def test_the_doctor_names_a_platform_that_jax_cannot_start():
    done = command("doctor", JAX_PLATFORMS="tpu")
    assert done.returncode == 4
    assert b"JAX_PLATFORMS=tpu names a platform" in done.stdout


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_greek_is_spelled_where_stdout_has_none(encoding):
    whole = command("derive", "--system", "liao", PYTHONIOENCODING="utf-8").stdout.decode()
    assert "η" in whole
    done = command("derive", "--system", "liao", PYTHONIOENCODING=encoding)
    assert done.returncode == 0 and not done.stderr
    spelled = done.stdout.decode(encoding)
    assert "eta" in spelled and "η" not in spelled
    assert len(spelled.splitlines()) == len(whole.splitlines())


def test_printed_python_in_ascii_is_python_still():
    done = command("derive", "--system", "liao", "--format", "python", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    ast.parse(done.stdout.decode("ascii"))


def test_json_in_ascii_loses_nothing():
    whole = command("derive", "--system", "chen", "--json", PYTHONIOENCODING="utf-8")
    done = command("derive", "--system", "chen", "--json", PYTHONIOENCODING="ascii")
    assert whole.returncode == done.returncode == 0
    assert json.loads(done.stdout.decode("ascii")) == json.loads(whole.stdout.decode())


def test_an_error_handler_of_the_user_is_left_alone():
    done = command("derive", "--system", "liao", PYTHONIOENCODING="ascii:replace")
    assert done.returncode == 0 and b"?" in done.stdout


def test_messages_are_spelled_as_well(tmp_path):
    done = command("systems", "κ.toml", folder=tmp_path, PYTHONIOENCODING="ascii", PYTHONUTF8="1")
    assert done.returncode == 2 and b"kappa.toml" in done.stderr


def test_pictures_need_no_backend_of_the_user(tmp_path):
    done = integrated(tmp_path, MPLBACKEND="nonsense")
    assert done.returncode == 0 and b"Fatal" not in done.stderr and b"could not be drawn" not in done.stderr
    assert list((tmp_path / "run").glob("*.png"))
    drawn = command("plot", "run", folder=tmp_path, MPLBACKEND="nonsense")
    assert drawn.returncode == 0, drawn.stderr
