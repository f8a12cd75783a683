"""An examination of the installation: versions, device, precision, caches, disk, and known faults of JAX."""

import dataclasses
import shutil
import tempfile

import numpy as np

from derivations import cache
from odesim.errors import MissingError
from odesim.machine import device
from odesim.store.manifest import versions

ROWS = (16_384, 16_385, 40_000)  # the fault of jax 0.10.2 begins at 16,385


@dataclasses.dataclass(frozen=True)
class Finding:
    """One line of the examination; `code` is its exit code (0 for no problem)."""

    name: str
    found: str
    code: int = 0


def examine() -> list[Finding]:
    """Return all findings. With a non-zero `code`, `odesim doctor` fails."""
    findings = [Finding(name, text or "not installed", 0 if text else 4) for name, text in versions().items()]
    try:
        described = device.configure("auto")
    except MissingError as error:
        findings.append(Finding("jax", str(error), 4))
        described = device.describe()
    else:
        import jax

        jax.devices()
        described = device.describe()
        findings += [_precision(), *(_batch(rows) for rows in ROWS)]
    findings.append(Finding("processor", f"{described['processor']}, {described['cores']} cores"))
    findings.append(Finding("threads", str(described["threads"] or "all cores")))
    if "jax" in described:
        findings.append(Finding("device", f"{described['jax']['platform']}: {', '.join(described['jax']['devices'])}"))
    return [*findings, _cache(), _disk()]


def _precision() -> Finding:
    """Return True if JAX computes in float64."""
    import jax.numpy as jnp

    dtype = jnp.asarray(1.0).dtype
    return Finding("precision", f"JAX computes in {dtype}", 0 if dtype == np.float64 else 1)


def batch_error(rows: int) -> float:
    """Return the largest error of `jit(vmap(sum of squares of matrix @ vector))` over `rows` rows, against NumPy.

    jax 0.10.2 gets this wrong on the CPU from 16,385 rows, for some matrix shapes (3 by 3 among them) and not for
    others (jax-ml/jax issue 39103).
    """
    import jax

    generator = np.random.default_rng(rows)
    matrix, vectors = generator.standard_normal((3, 3)), generator.standard_normal((rows, 3))
    computed = np.asarray(jax.jit(jax.vmap(lambda vector: ((matrix @ vector) ** 2).sum()))(vectors))
    return float(np.abs(computed - ((vectors @ matrix.T) ** 2).sum(axis=1)).max())


def _batch(rows: int) -> Finding:
    """Run the reproducer of the fault at one batch shape."""
    error = batch_error(rows)
    # A few products of numbers of order one: rounding stays below 1e-11, the fault is of order one.
    sound = error < 1e-11
    words = "correct" if sound else "WRONG: JAX computes wrong numbers here, install jax 0.10.1"
    return Finding(f"jax batch {rows}", f"{words} (largest error {error:.1e})", 0 if sound else 4)


def _cache() -> Finding:
    """Return True if compiled kernels can be cached between processes."""
    folder = cache.folder()
    name = "cache folder"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Finding(name, f"{folder} cannot be written ({error.strerror}); set ODESIM_CACHE", 1)
    return Finding(name, str(folder))


def _disk() -> Finding:
    """Return the free space of the disk with run folders."""
    free = shutil.disk_usage(".").free / 2**30
    return Finding("disk", f"{free:.1f} GiB free here", 0 if free > 0.1 else 1)
