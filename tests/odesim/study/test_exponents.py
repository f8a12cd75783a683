"""The answer of exponents as an object: numbers, arrays, tables, pictures, and folders that give it back."""

import numpy as np
import pytest

import odesim
from odesim.show.answers.exponents import formula

TASKS = {
    "student": {"unit": "erf(w)", "output": {"one": "trained", "two": "trained"}},
    "teacher": {"one": {"unit": "He(3, w)"}, "two": {"unit": "u + He(4, v)"}},
}


@pytest.fixture(scope="module")
def tasks():
    return odesim.exponents(odesim.declare(**TASKS))


def test_several_heads_are_mappings(tasks):
    assert tasks.information == {"one": 3, "two": 1} and tasks.leap == {"one": 3, "two": 4}
    assert tasks.generative == {"one": 1, "two": 1}
    assert [step["directions"] for step in tasks.order["two"]] == ["two_u", "two_v"]
    header, rows = tasks.tables()["order"]
    assert header[0] == "head" and [row[0] for row in rows] == ["one", "one", "two", "two", "two", "two"]


def test_arrays_are_labelled(tasks):
    data = tasks.dataset()
    assert data["order"].dims == ("head", "step") and data["order"].values.tolist() == [[3, 0], [1, 4]]
    assert data["information"].values.tolist() == [3, 1] and all(v.attrs["meaning"] for v in data.values())
    assert np.array_equal(data["count"].values.sum(axis=1), [1, 2])


@pytest.mark.parametrize("system", ["ben_arous_2021", "kawata_neuron", TASKS])
def test_a_folder_gives_the_answer_back(tmp_path, system):
    answer = odesim.exponents(odesim.declare(**system) if isinstance(system, dict) else system)
    answer.save(tmp_path / "kept")
    again = odesim.load(tmp_path / "kept")
    assert again.asked.digest == answer.asked.digest
    assert again.summary() == answer.summary() and again.sentences == answer.sentences
    assert again.order == answer.order and dict(again.tables()) == dict(answer.tables())
    assert repr(again) == repr(answer)


def test_the_picture_has_both_stairs_and_the_student():
    figure = odesim.exponents("kawata_neuron").plot()
    (axis,) = figure.axes
    assert axis.get_legend_handles_labels()[1] == ["label $y$", "best transform $T(y)$", "seen by the student"]
    assert [text.get_text() for text in axis.get_yticklabels()][:3] == ["1:  $d$", r"2:  $d\,\log d$", "3:  $d^{2}$"]
    assert {text.get_text() for text in axis.texts} == {r"$w_{\mathrm{local}}, w_{\mathrm{global}}$"}
    several = odesim.exponents(odesim.declare(**TASKS)).plot()
    assert [axis.get_title() for axis in several.axes] == ["head one", "head two"]


def test_directions_are_drawn_as_mathematics():
    assert formula("0.71 u - 0.71 v") == r"$0.71\,u - 0.71\,v$"
    assert formula("w_1, w_2") == "$w_{1}, w_{2}$"
    long = formula("; ".join(f"0.41 w_{j} + 0.82 w_{j + 1}" for j in range(1, 9)))
    assert long.endswith("..$") and len(long) < 90


def test_equal_questions_have_equal_names():
    first, second = (odesim.exponents("saad_solla_1995", teachers=k) for k in (2, 3))
    assert first.asked.digest == odesim.exponents("saad_solla_1995", teachers=2).asked.digest != second.asked.digest
