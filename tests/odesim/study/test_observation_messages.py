"""Sentences of `observe` name the file or argument that the user gave, and never `--initial`."""

import numpy as np
import pytest

import odesim
from odesim.study.observation import Observation

ONES = np.ones((2, 3, 4))
TEACHER = {"V_star": np.eye(4)[:2], "W_star": np.eye(4)[2:]}
WRONG = {
    "words": ({**TEACHER, "V": np.array(["a"]), "W": ONES}, "array 'V' of {} must hold real numbers"),
    "missing": ({**TEACHER, "V": ONES}, "{} lacks W"),
    "none": ({**TEACHER, "U": ONES}, "{} lacks V, W"),
}


@pytest.mark.parametrize("name", WRONG)
def test_arrays_are_those_of_the_argument(name):
    arrays, said = WRONG[name]
    with pytest.raises(odesim.UsageError) as caught:
        odesim.observe("liao", arrays)
    assert said.format("weights=") in str(caught.value)
    assert "initial" not in str(caught.value)


@pytest.mark.parametrize("name", WRONG)
def test_arrays_are_those_of_the_file(tmp_path, name):
    arrays, said = WRONG[name]
    np.savez(tmp_path / "mine.npz", **arrays)
    with pytest.raises(odesim.UsageError) as caught:
        Observation.build("liao", tmp_path / "mine.npz")
    assert said.format("mine.npz") in str(caught.value)
    assert "initial" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(odesim.UsageError) as caught:
        odesim.observe("liao", str(tmp_path / "none.npz"))
    assert str(caught.value) == f"cannot read the file {tmp_path / 'none.npz'}: No such file or directory."


def test_sizes_that_disagree_name_the_file(tmp_path):
    system = odesim.declare(student={"unit": "erf(w)", "units": 2}, teacher={})
    np.savez(tmp_path / "mine.npz", w=np.ones((3, 2, 10)), w_star=np.eye(10)[:1])
    with pytest.raises(odesim.UsageError, match=r"units=5 disagrees with mine\.npz"):
        odesim.observe(system, str(tmp_path / "mine.npz"), units=5)
