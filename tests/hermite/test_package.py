"""The package as a whole: a light import, examples that run, and no way round the checks."""

import doctest
import importlib
import subprocess
import sys

import pytest

import hermite


def test_importing_the_package_loads_no_heavy_library():
    code = "import sys, hermite; print({'sympy', 'jax', 'numba', 'scipy', 'mpmath'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("name", hermite.__all__)
def test_examples_in_the_documentation_run(name):
    module = importlib.import_module(f"hermite.{name}")
    result = doctest.testmod(module)
    assert result.failed == 0
    assert result.attempted > 0


def test_modules_load_on_first_use_and_others_do_not_exist():
    assert hermite.polynomials.coefficients(2) == (-1, 0, 1)
    with pytest.raises(AttributeError, match="modules are"):
        _ = hermite.laguerre


def test_every_refusal_is_a_value_error():
    errors = importlib.import_module("hermite.errors")
    refusals = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, Exception)]
    assert len(refusals) >= 6 and all(issubclass(e, ValueError) for e in refusals)
