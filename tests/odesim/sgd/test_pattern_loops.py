"""Sums over dense patches in blocks of four, against NumPy, and passes over a batch in parts."""

import numpy as np
import pytest

from derivations.contract import load
from odesim.request.case import Case
from odesim.sgd import families, pattern_loops, patterns
from odesim.sgd.simulation import Simulation, initial_conditions


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 8, 11])
def test_products_of_rows_with_a_patch(size: int) -> None:
    rng = np.random.default_rng(size)
    rows, x, sums = rng.standard_normal((3, size)), rng.standard_normal(size), np.array([1.0, -2.0, 0.5])
    expected = sums + rows @ x
    pattern_loops.products(pattern_loops.flipped(rows), x, sums)
    np.testing.assert_allclose(sums, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("patches", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [0, 1, 4, 7, 9])
def test_a_block_of_dense_patches_is_collected(patches: int, count: int) -> None:
    rng, S = np.random.default_rng(10 * patches + count), 2
    dense, index = rng.standard_normal((12, patches, 6)), rng.permutation(12)[:count]
    change, G = rng.standard_normal((3, S + patches, count)), rng.standard_normal((3, 6))
    expected = G + np.einsum("jpi,ipc->jc", change[:, S:], dense[index])
    pattern_loops.collect_dense(dense, index, change, S, G)
    np.testing.assert_allclose(G, expected, rtol=1e-13, atol=1e-13)


def test_a_batch_is_the_same_sum_in_any_parts_and_by_any_number_of_threads(monkeypatch) -> None:
    case = Case.build("chen", {"n": 150, "d": 20, "P": 5, "M": 4, "J": 3, "K": 2})
    simulation = Simulation.build(case, method="explicit", step_size=0.05, batch=150)
    model = load(case.system.dynamics(case.stage).model)
    engine = families.make_engine(simulation, model, initial_conditions(simulation), None)[0]
    noise = np.random.default_rng(0).random((4, 150))

    def passed(part: int, threads: int) -> tuple[np.ndarray, ...]:
        monkeypatch.setattr(patterns, "PART", part)
        monkeypatch.setenv("NUMBA_NUM_THREADS", str(threads))
        return engine.pass_over(engine.weights[0], engine.training, engine.total, noise)

    whole, alone, together = passed(4096, 1), passed(32, 1), passed(32, 3)
    for one, other, third in zip(whole, alone, together, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-15)
        np.testing.assert_array_equal(third, other)
    assert np.ptp(whole[-2]) == 3 and np.all(np.abs(whole[-1]) < np.inf)
