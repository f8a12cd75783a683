"""The numbers of small runs of everything are those that were stored, on every processor."""

import numpy as np
import pytest

from tests import golden

RUNS = golden.runs()
REFERENCE = golden.reference()


def _marked(name: str):
    return pytest.param(name, marks=pytest.mark.slow if RUNS[name].get("slow") else ())


def test_every_run_is_stored_and_nothing_else():
    assert set(RUNS) == set(REFERENCE)


@pytest.mark.parametrize("name", [_marked(name) for name in RUNS])
def test_a_run_gives_the_stored_numbers(name):
    found, kept = golden.compute(RUNS[name]), REFERENCE[name]
    assert set(found) == set(kept)
    tolerance = RUNS[name].get("tolerance", golden.TOLERANCE)
    ill_posed = RUNS[name].get("before", "")  # from this stage on a processor decides
    for array, expected in kept.items():
        if ill_posed and array.startswith(ill_posed):
            continue
        now = golden.condensed(found[array])
        assert now["shape"] == expected["shape"], array
        entries, stored = (np.array(list(map(float, made["entries"]))) for made in (now, expected))
        room = tolerance * max(expected["size"], golden.NEGLIGIBLE)
        assert np.allclose(entries, stored, rtol=0, atol=room, equal_nan=True), (array, entries, stored)
