"""Set-up of all tests: float64 and few threads for JAX, shapes and types checked while the tests run."""

import importlib.util
import os
import sys
import types

# JAX reads these when it is first imported, which is left to the tests that need it.
os.environ["JAX_ENABLE_X64"] = "1"
os.environ.setdefault("JAX_PLATFORMS", "cpu")
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "NPROC"):
    os.environ.setdefault(_name, "2")
os.environ.setdefault("MPLBACKEND", "agg")

import pytest  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--gpu`: this machine is supposed to have a GPU."""
    parser.addoption("--gpu", action="store_true", help="fail, rather than skip, where a GPU is missing")


def pytest_configure(config: pytest.Config) -> None:
    """Let JAX see a GPU where one is asked for."""
    if config.getoption("--gpu"):
        os.environ.pop("JAX_PLATFORMS", None)


def check_annotations() -> None:
    """Check every annotation of our packages at run time."""
    loaded = [name for name in ("hermite", "derivations", "odesim") if name in sys.modules]
    assert not loaded, f"imported before their annotations could be checked: {loaded}"
    from beartype import BeartypeConf, beartype
    from jaxtyping import install_import_hook

    # A whole number is welcome where a float is expected, as every type checker has it.
    checks = types.ModuleType("odesim_checks")
    vars(checks)["check"] = beartype(conf=BeartypeConf(is_pep484_tower=True))
    sys.modules[checks.__name__] = checks

    # Functions compiled by numba keep working: the compiler is given the function below the checks
    # (`inspect.unwrap`), and a decorated one is exempt by `typing.no_type_check`.
    install_import_hook(["hermite", "derivations", "odesim"], "odesim_checks.check")


# At import, before any conftest further down can import our packages.
if not os.environ.get("ODESIM_UNCHECKED") and importlib.util.find_spec("beartype"):
    check_annotations()


@pytest.fixture
def gpu(request: pytest.FixtureRequest) -> object:
    """A GPU; without one the test is skipped, or fails under `--gpu`."""
    import jax

    try:
        return jax.devices("gpu")[0]
    except RuntimeError as error:
        if request.config.getoption("--gpu"):
            pytest.fail(f"--gpu was given, but JAX finds no GPU: {error}")
        pytest.skip("no GPU here")
