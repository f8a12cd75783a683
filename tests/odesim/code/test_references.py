"""References counted without a lock: every array is freed once, whoever holds it, also with many threads at work."""

import concurrent.futures

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from odesim.code import compile, references

TEXTS = (
    """def pair(x):
    return x + 1.0, x[1:]
""",
    """def kept(x, times):
    held, rest = x, x[:0]
    for k in range(times):
        one, two = pair(x)
        if k % 3 == 0:
            held = one
        rest = two
    return held, rest
""",
)


@pytest.fixture(params=[references.FEW, -1], ids=["in place", "called"])
def kept(request, tmp_path, monkeypatch):
    """A compiled function that makes arrays, keeps some and returns two."""
    monkeypatch.setenv("ODESIM_CACHE", str(tmp_path))
    monkeypatch.setattr(references, "FEW", request.param)
    return compile.generated("references", (), lambda: compile.numba_module(f"few {request.param}", TEXTS)).kept


def test_arrays_are_freed_once(kept) -> None:
    kept(np.ones(3), 1)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        for _ in range(50):
            held, rest = kept(np.arange(3.0), 7)
            assert held.tolist() == [1.0, 2.0, 3.0] and rest.tolist() == [1.0, 2.0]
        del held, rest
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free >= 50 * 7
    assert after.alloc - before.alloc == after.free - before.free


def test_nothing_is_locked(kept) -> None:
    kept(np.ones(3), 1)
    (text,) = kept.inspect_asm().values()
    assert "lock" not in text.split() and "lock\t" not in text


def test_threads_share_an_array(kept) -> None:
    shared = np.arange(5.0)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: kept(shared, 20_000), range(16)))
    assert all(held.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0] and rest.base is not None for held, rest in found)
    assert shared.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
