"""Precision, threads and platform are set in one place, and what is unsound is refused."""

import importlib.util
import os
import subprocess
import sys

import pytest

from hermite.errors import NotReached
from odesim.errors import Interrupted, MissingError, NumericalError, StorageError, UsageError, exit_code
from odesim.machine import device
from odesim.show import doctor

NO_PLUGIN = importlib.util.find_spec("jax_plugins") is None


def fresh(code):
    """The output of a fresh Python for `code`, with JAX in its default configuration."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False, env=clean
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("rows", doctor.ROWS)
def test_jax_multiplies_batches_of_every_size_correctly(rows):
    # jax 0.10.2 is off by 0.5 at 16,385 rows; rounding stays below 1e-11.
    assert doctor.batch_error(rows) < 1e-11


def test_a_fresh_jax_is_configured_for_float64_on_the_cpu():
    said = fresh(
        "from odesim.machine import device, ownership; ownership.claim_process(); device.configure('cpu')\n"
        "import sys\nassert 'jax' not in sys.modules\n"
        "import jax.numpy as jnp; print(jnp.asarray(1.0).dtype, device.describe()['jax']['platform'])"
    )
    assert said == "float64 cpu"


def test_float64_can_be_had_for_a_while():
    said = fresh(
        "import jax, jax.numpy as jnp\nfrom odesim.machine import device\n"
        "with device.double(): device.configure(); print(jnp.asarray(1.0).dtype)\n"
        "print(jnp.asarray(1.0).dtype)"
    )
    assert said.split() == ["float64", "float32"]


@pytest.mark.skipif(not NO_PLUGIN, reason="a GPU plugin is installed")
def test_a_gpu_that_is_not_there_is_missing():
    said = fresh(
        "from odesim import errors\nfrom odesim.machine import device, ownership\n"
        "ownership.claim_process()\ntry: device.configure('gpu')\nexcept errors.MissingError as e: print(e)"
    )
    assert "JAX finds none here" in said


def test_an_unknown_platform_is_refused():
    with pytest.raises(Exception, match="tpu"):  # the type checks of the tests may speak first
        device.configure("tpu")


def test_the_unsound_jax_is_refused(monkeypatch):
    monkeypatch.setattr(device, "version", lambda name: "0.10.2")
    with pytest.raises(MissingError, match=r"jax 0\.10\.2 computes wrong numbers"):
        device.configure("cpu")


def test_a_missing_jax_is_said_to_be_missing(monkeypatch):
    monkeypatch.setattr(device, "version", lambda name: None)
    with pytest.raises(MissingError, match="JAX is not installed"):
        device.require_sound_jax()


def test_threads_are_limited_before_the_libraries_are_loaded():
    said = fresh(
        "from odesim.machine import device; device.set_threads(1)\nimport os, numba\n"
        "print(os.environ['OMP_NUM_THREADS'], os.environ['NPROC'], numba.get_num_threads())"
    )
    assert said == "1 1 1"


def test_the_threads_are_described(monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "3")
    assert device.describe()["threads"] == 3


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 2),
        (NumericalError("x"), 3),
        (StorageError("x"), 3),
        (MissingError("x"), 4),
        (Interrupted("x"), 130),
        (KeyboardInterrupt(), 130),
        (NotReached("x"), 3),
        (ZeroDivisionError(), 70),
    ],
)
def test_every_kind_of_failure_has_its_exit_code(error, code):
    assert exit_code(error) == code


@pytest.mark.gpu
def test_a_gpu_computes_in_float64(gpu):
    import jax
    import jax.numpy as jnp

    assert jax.device_put(jnp.asarray(1.0), gpu).dtype == jnp.float64
