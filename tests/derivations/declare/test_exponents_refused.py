"""Models without exponents: each is refused by one sentence, and mutated declarations never by a traceback."""

import copy
import random
import re

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError
from derivations.declare import exponents
from odesim.request.case import Case
from tests.derivations.declare.test_mutated_tasks import KEYS, VALID, VALUES
from tests.derivations.declare.test_mutated_training import alter

CLUSTERS = {"means": {"mu": 1.0}, "cluster": [{"p": 1.0, "mean": "mu", "label": 1.0}]}
HEADS = {"unit": "erf(w)", "output": {"one": "trained", "two": "trained"}}
REFUSED = {
    "isotropic inputs": {"student": {"unit": "w"}, "teacher": {}, "inputs": {"blocks": [[1.0, 0.5], [0.5, 0.5]]}},
    "copy of the students": {
        "student": {"unit": "erf(w)"}, "teacher": {"one": {"unit": "w"}, "copy": {"from": "student"}},
        "training": {"teacher": ["copy"]},
    },
    "softmax loss": {
        "student": HEADS, "teacher": {"one": {"unit": "w"}, "two": {"unit": "w"}}, "training": {"loss": "softmax"},
    },
    "the loss is an expression": {"student": {"unit": "w"}, "teacher": {}, "training": {"loss": "(f - y)^4"}},
    "at most 4; use fewer teachers, as in teachers=4": {"student": {"unit": "tanh(w)"}, "teacher": {"units": 5}},
    "at most 4; use fewer teachers, as in teachers=2": {"student": {"unit": "tanh(v)*w"}, "teacher": {"units": 3}},
    "sign of a label of 2 directions": {
        "student": {"unit": "erf(w)", "units": 2}, "teacher": {"units": 2}, "training": {"loss": "hinge"},
    },
    "its noise must be a constant number": {
        "student": {"unit": "w"}, "teacher": {"noise": "0.1*xi^3"}, "training": {"loss": "logistic"},
    },
    "up to order 12 are 0": {"student": {"unit": "w"}, "teacher": {"unit": "w - w"}},
    "cannot decide whether": {"student": {"unit": "top1(v)*tanh(w)", "units": 2}, "teacher": {"units": 2}},
    "the quadrature of its kinks or steep parts": {"student": {"unit": "w"}, "teacher": {"unit": "exp(9*w)"}},
}  # fmt: skip


@pytest.mark.parametrize("words", REFUSED)
def test_a_teacher_without_exponents_is_refused_by_one_sentence(words):
    with pytest.raises(UsageError, match=re.escape(words)) as caught:
        odesim.exponents(odesim.declare(**REFUSED[words]))
    said = str(caught.value)
    assert "\n" not in said and ". " not in said and len(said) < 260


def test_a_label_that_is_no_number_is_refused():
    for unit in ("tanh(w)", "He(3, w)"):
        large = odesim.declare(student={"unit": "w"}, teacher={"unit": f"1e99*1e40*{unit}"})
        assert odesim.exponents(large).generative == 1
        with pytest.raises(UsageError, match="no finite mean square"):
            odesim.exponents(odesim.declare(student={"unit": "w"}, teacher={"unit": f"1e99*1e99*1e90*{unit}"}))


def test_a_model_whose_classes_have_labels_is_refused():
    with pytest.raises(UsageError, match="isotropic inputs"):
        odesim.exponents("logistic_two_clusters")


def test_a_system_with_equations_of_its_own_is_refused():
    with pytest.raises(UsageError, match="declare its teacher"):
        odesim.exponents("liao")


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"student": {"unit": "w"}, "teacher": {}, "training": {"limit": "online", "rule": "clip(dl, 1)*df"}}, "rules"),
        ({"student": {"unit": "He(2, w)"}, "teacher": {}, "training": {"limit": "online", "look": {"size": 0.1}}},
         "more than once"),
        ({"student": {"unit": "softmax(v)*w", "units": 2}, "teacher": {"unit": "w"}}, "share"),
        ({"student": {"prediction": "one^2", "one": {"unit": "w"}}, "teacher": {"unit": "w"}}, "in the outputs"),
        ({"student": {"unit": "erf(w)", "output": "trained"}, "teacher": {"unit": "w"}, "training": {"trained": ["a"]}},
         "no vector"),
        ({"student": {"unit": "relu(w)"}, "teacher": {"unit": "He(5, w)"}}, "share no order"),
    ],
)  # fmt: skip
def test_a_teacher_has_exponents_where_its_student_sees_none_of_them(tables, words):
    (found,) = exponents.exponents(Case.build(odesim.declare(**tables), {}).parameters)
    assert found.student.order is None and words in found.student.reason
    assert found.information >= 1


@pytest.mark.parametrize("seed", range(5))
def test_mutated_declarations_are_answered_or_refused(seed):
    rng = random.Random(seed)
    answered, sentences = 0, []
    for _ in range(60):
        tables = copy.deepcopy(rng.choice(VALID))
        for _ in range(rng.choice((0, 1, 1, 2))):
            alter(tables, rng, KEYS, VALUES)
        try:
            found = odesim.exponents(odesim.declare(**tables))
        except UsageError as error:
            sentences.append(str(error))
            continue
        answered += 1
        for numbers in found.heads().values():
            assert 1 <= numbers["generative"] <= numbers["information"] <= 12
            assert sum(step["count"] for step in numbers["order"]) == numbers["directions"] >= 1
        assert all(np.isfinite(found[name]).all() for name in found.keys())
    assert answered > 3 and all(said and "\n" not in said for said in sentences)
