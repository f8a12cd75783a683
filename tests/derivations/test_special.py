"""Special functions of arrays, beside SciPy's package."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.special
from scipy.special import _special_ufuncs

from derivations import special


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_a_function_is_scipys_to_the_last_bit(name):
    x = np.concatenate([np.linspace(-30.0, 30.0, 10_001), [0.0, np.inf, -np.inf, np.nan, 5e-324]])
    np.testing.assert_array_equal(getattr(special.special(np), name)(x), getattr(scipy.special, name)(x))


@pytest.mark.skipif(not hasattr(_special_ufuncs, "erf"), reason="this SciPy has erf among what its package imports")
def test_the_package_around_them_is_not_imported():
    code = "import sys, numpy; from derivations.special import special; special(numpy).erf(0.5)\n"
    code += "assert 'scipy.special' not in sys.modules and 'numpy.f2py' not in sys.modules\n"
    code += "import scipy.special; assert scipy.special.erf(0.5) == special(numpy).erf(0.5)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_where_they_cannot_be_had_without_the_package_it_is_imported(monkeypatch):
    monkeypatch.setattr(special.importlib.machinery.PathFinder, "find_spec", lambda *given: None)
    special.scipy_special.cache_clear()
    try:
        assert special.special(np) is scipy.special
    finally:
        special.scipy_special.cache_clear()
