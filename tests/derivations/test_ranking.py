"""Sorting in compiled loops, against NumPy's stable sort."""

import numba
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from derivations.ranking import largest, rank

compiled = numba.njit(rank)


@settings(deadline=None)
@given(st.lists(st.integers(-4, 4) | st.floats(-1e300, 1e300), max_size=70))
def test_it_ranks_from_the_largest_ties_in_their_own_order(values):
    given = np.array(values, float)
    for function in (rank, compiled):
        order = np.empty(given.size, np.int64)
        function(given, order)
        assert (order == np.argsort(-given, kind="stable")).all()
    if values:
        assert largest(given) == given.max()
