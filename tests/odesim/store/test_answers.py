"""Folders of answers: what a new answer replaces, and what of the user stays."""

import dataclasses

import numpy as np

import odesim
from odesim.request.answer import Answer, Question
from odesim.request.trajectory import Variable
from odesim.store import answers


@dataclasses.dataclass(frozen=True, repr=False)
class WithFile(Answer):
    def files(self):
        return {"schedule.toml": "step = 1.0\n"}


def made(kind):
    asked = Question.about("exponents", odesim.system("kawata"), {"seed": 0})
    return kind(asked, {"x": Variable(("x",), np.arange(3.0), "numbers")}, {}, ("a sentence",))


def test_a_new_answer_replaces_the_files_of_the_old_one_and_keeps_those_of_the_user(tmp_path):
    folder = tmp_path / "kept"
    answers.save(made(WithFile), folder, 0.0, None)
    (folder / "notes.toml").write_text("mine = true\n")
    assert (folder / "schedule.toml").exists()
    answers.save(made(Answer), folder, 0.0, None)
    assert sorted(entry.name for entry in folder.glob("*.toml")) == ["notes.toml"]
