"""Platform of JAX, number of threads, and precision. Importing this module has no effect."""

import contextlib
import functools
import os
import platform as machine
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Literal, ParamSpec, TypeVar

from derivations.installed import version
from odesim.errors import MissingError, UsageError
from odesim.machine.ownership import owns_process

Platform = Literal["cpu", "gpu", "auto"]
P = ParamSpec("P")
R = TypeVar("R")

_THREAD = threading.local()
"""The `ExitStack` of the outermost `double` of a thread, as `scope`, because contexts of JAX belong to threads."""

# NPROC sets the size of the thread pool of XLA's CPU client; the other names are clear.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NPROC",
)
UNSOUND_JAX = ("0.10.2",)
NO_PLATFORM = (RuntimeError, AssertionError)
"""Errors of JAX for a platform that it cannot start. For cuda without its plugin this is an empty AssertionError."""


def set_threads(threads: int | None) -> None:
    """Limit the threads of NumPy's BLAS, numba and XLA to `threads`; `None` changes nothing.

    BLAS and XLA read their limits when they are loaded: call this before NumPy and JAX are imported.
    """
    if threads is None:
        require_threads()
        return
    if threads < 1:
        raise UsageError(f"the number of threads must be at least 1, but {threads} was given; try --threads 1.")
    for name in THREAD_VARIABLES:
        os.environ[name] = str(threads)
    if "numba" in sys.modules:
        import numba

        numba.set_num_threads(min(threads, numba.get_num_threads()))


def require_threads() -> None:
    """Raise `UsageError` if NUMBA_NUM_THREADS in the environment is not a number of threads."""
    said = os.environ.get("NUMBA_NUM_THREADS", "").strip()
    if said and not (said.isdecimal() and int(said) >= 1):
        raise UsageError(
            f"NUMBA_NUM_THREADS must be a whole number of at least 1, but the environment has {said!r}; unset it"
        )


def require_sound_jax() -> None:
    """Raise `MissingError` if the installed version of JAX is known to compute wrong numbers."""
    found = version("jax")
    if found is None:
        raise MissingError("JAX is not installed here; expected jax 0.10.1 or later: run `make install`.")
    if found in UNSOUND_JAX:
        raise MissingError(
            f"jax {found} computes wrong numbers on the CPU (a batched matrix-vector product, then a sum); "
            "install another version, for example `pip install jax==0.10.1`."
        )


def configure(platform: Platform = "cpu", threads: int | None = None) -> dict[str, Any]:
    """Configure JAX for float64 on `platform` and return the settings, in the form of `describe`.

    Call it inside `double()`, whose end restores the user's settings, before JAX computes. In a process that odesim
    owns (`odesim.machine.ownership`), environment variables are set too, before JAX is imported. With them JAX does not
    initialise an unused GPU, and caches compiled programs. Raises `MissingError` for a platform that this machine does
    not have and for a version of JAX that computes wrong numbers, `UsageError` for an unknown platform.
    """
    if platform not in ("cpu", "gpu", "auto"):
        raise UsageError(f"the device must be cpu, gpu or auto, but {platform!r} was given.")
    set_threads(threads)
    require_sound_jax()
    scope: contextlib.ExitStack | None = getattr(_THREAD, "scope", None)
    if owns_process():
        _set_up_process(platform)
    elif scope is not None:
        _enter_double(platform, scope)
    else:
        raise RuntimeError("expected device.configure inside `with device.double()`, which restores the user's JAX")
    if platform == "gpu":
        _require_gpu()
    elif platform == "auto":
        _require_platform()
    return describe()


def _set_up_process(platform: Platform) -> None:
    """Set the environment variables of JAX in a process that odesim owns, and its precision if JAX is imported."""
    from odesim.machine import programs

    os.environ["JAX_ENABLE_X64"] = "1"
    programs.keep()
    if platform == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
    elif platform == "gpu" and os.environ.get("JAX_PLATFORMS") == "cpu":
        del os.environ["JAX_PLATFORMS"]
    if "jax" in sys.modules:
        import jax

        jax.config.update("jax_enable_x64", True)


def _enter_double(platform: Platform, scope: contextlib.ExitStack) -> None:
    """Compute in float64, and on the CPU for the platform "cpu", until the end of `scope`."""
    import jax

    _require_platform()
    if not jax.config.jax_enable_x64:
        scope.enter_context(jax.enable_x64(True))
    if platform == "cpu" and default().platform != "cpu":
        try:
            processor = jax.devices("cpu")[0]
        except RuntimeError:
            raise MissingError(
                "the CPU was requested, but JAX_PLATFORMS excludes it; add cpu to that variable, such as "
                "JAX_PLATFORMS=cuda,cpu"
            ) from None
        scope.enter_context(jax.default_device(processor))


def default() -> Any:
    """Return the default device of JAX for arrays."""
    import jax

    chosen = jax.config.jax_default_device
    return chosen if isinstance(chosen, jax.Device) else jax.devices(chosen)[0]


def _require_platform() -> None:
    """Raise `MissingError` if the environment names a platform that JAX cannot start here."""
    said = os.environ.get("JAX_PLATFORMS", "")
    if said in ("", "cpu"):
        return
    import jax

    try:
        jax.devices()
    except NO_PLATFORM:
        raise MissingError(
            f"JAX_PLATFORMS={said} names a platform that JAX cannot start here; unset it, or set JAX_PLATFORMS=cpu"
        ) from None


def _require_gpu() -> None:
    """Raise `MissingError` unless JAX finds a GPU."""
    import jax

    try:
        found = jax.devices("gpu")
    except NO_PLATFORM:
        found = []
    if not found:
        raise MissingError(
            "a GPU was requested, but JAX finds none here; install the extra (`pip install 'odesim[gpu]'`) on a "
            "machine that has one, or use the CPU."
        )


@contextlib.contextmanager
def double() -> Iterator[None]:
    """Context manager in which `configure` switches JAX of this thread to float64. Its end restores the user's
    settings.

    Entering it does not import JAX. Inside another `double`, the settings last to the end of the outer one.
    """
    if getattr(_THREAD, "scope", None) is not None:
        yield
        return
    with contextlib.ExitStack() as _THREAD.scope:
        try:
            yield
        finally:
            _THREAD.scope = None


def in_double(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator that runs a function inside `double`, for functions through which JAX is reached."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with double():
            return function(*args, **kwargs)

    return call


def kind() -> str:
    """Return the name of JAX's default device; "cpu" for a processor."""
    chosen = default()
    return chosen.device_kind if chosen.platform != "cpu" else "cpu"


def describe() -> dict[str, Any]:
    """Return processor, cores, threads and, if JAX is loaded, its devices, as a dictionary for the manifest."""
    threads = os.environ.get("NUMBA_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS")
    described: dict[str, Any] = {
        "machine": machine.machine(),
        "system": machine.system(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": int(threads) if threads and threads.isdigit() else None,
    }
    devices = _devices()
    if devices:
        described["jax"] = {
            "platform": devices[0].platform,
            "devices": [device.device_kind for device in devices],
            "float64": True,  # as in `double`, whatever the user's setting is
        }
    return described


def _devices() -> list[Any]:
    """Return the devices of JAX if it is loaded and could start its platform."""
    if "jax" not in sys.modules:
        return []
    import jax

    try:
        return list(jax.devices())
    except NO_PLATFORM:
        return []


def _processor() -> str:
    """Return the processor's name, if the operating system reports it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return machine.processor() or machine.machine()
