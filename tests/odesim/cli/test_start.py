"""Starting is light, in a fresh process, and the package keeps its public names."""

import subprocess
import sys
import time

import pytest

HEAVY = ("jax", "sympy", "numba", "matplotlib", "diffrax", "scipy", "xarray", "pandas", "numpy", "hermite")


def fresh(code):
    """The output of a fresh Python for `code`."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("statement", ["import odesim", "import odesim.cli", "import odesim; odesim.systems"])
def test_importing_loads_nothing_heavy(statement):
    loaded = fresh(f"{statement}\nimport sys\nprint([name for name in {HEAVY!r} if name in sys.modules])")
    assert loaded == "[]"


def test_looking_up_a_system_loads_no_derivation():
    heavy = [name for name in HEAVY if name != "numpy"]
    loaded = fresh(
        f"import odesim; odesim.system('liao')\nimport sys\nprint([name for name in {heavy!r} if name in sys.modules])"
    )
    assert loaded == "[]"


def test_importing_leaves_jax_as_the_user_has_it():
    kept = fresh(
        "import os; before = dict(os.environ)\n"
        "import odesim, odesim.cli, odesim.machine.device, odesim.request.case, odesim.store\n"
        "print(dict(os.environ) == before)"
    )
    assert kept == "True"


def test_help_comes_at_once():
    # Issue A asks for 0.6 s; the best of three, because other work shares the machine.
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        done = subprocess.run([sys.executable, "-m", "odesim", "--help"], capture_output=True, check=True, timeout=60)
        seconds.append(time.perf_counter() - started)
        assert b"integrate" in done.stdout
    assert min(seconds) < 0.6


def test_integrate_stays_a_function_after_its_module_was_imported():
    said = fresh(
        "import odesim\nfrom odesim.flow.solve import solve\nimport odesim.flow.solve\n"
        "print(callable(odesim.integrate), odesim.integrate.__name__, callable(solve))"
    )
    assert said == "True integrate True"


def test_public_names_are_there():
    import odesim

    for name in odesim.__all__:
        assert getattr(odesim, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'integral'"):
        _ = odesim.integral
