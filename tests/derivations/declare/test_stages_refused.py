"""Errors in a stage give a message of one sentence, with the line number."""

import re

import pytest

import odesim
from derivations.declare import reading
from tests.derivations.declare.test_stages import FIRST, ONLINE, SECOND, TEACHERS


def refused(sentence, *stages, training=ONLINE, **more):
    tables = {**TEACHERS, "training": training, **more}
    with pytest.raises(odesim.UsageError, match=re.escape(sentence)):
        odesim.declare(**tables, **({"stage": list(stages)} if stages else {}))


@pytest.mark.parametrize(
    ("sentence", "second"),
    [
        ("stage second ends at 15, its start", {"until": 15}),
        ("stage second ends at 10, but begins at 15", {"until": 10}),
        ("two stages are called first: give them different names", {"name": "first"}),
        ("stage second: unknown key 'teachers'; did you mean 'teacher'?", {"teachers": ["two"]}),
        ("stage second: unknown key 'untill'; did you mean 'until'?", {"untill": 3}),
        ("stage second: no teacher is called 'tow'; did you mean 'two'?", {"teacher": ["tow"]}),
        ("stage second: teacher is a list of the groups that make the label", {"teacher": "two"}),
        ("stage second: teacher is a list of the groups that make the label", {"teacher": []}),
        ("stage second: teacher names a group twice", {"teacher": ["two", "two"]}),
        ("stage second: weights is common to all stages and not a key of a stage", {"weights": "sphere"}),
        ("stage second: limit is common to all stages and not a key of a stage", {"limit": "flow"}),
        ("stage second: memory is common to all stages and not a key of a stage", {"memory": {}}),
        ("stage second: episode is common to all stages and not a key of a stage", {"episode": {}}),
        ("stage second: momentum is common to all stages and not a key of a stage", {"momentum": 0.9}),
        ("stage second: head names heads of the network, but the network has one output", {"head": "two"}),
        ("stage second: trained names 'v', which is not a trainable quantity", {"trained": ["v"]}),
        ("stage second: rates names 'w', which is not trained", {"trained": ["a"], "rates": {"w": 0.5}}),
        ("stage second: rule of w has no effect: w is not trained", {"trained": ["a"], "rule": {"w": "grad"}}),
        ("stage second: loss is one of squared", {"loss": "squard"}),
        ("stage second: times of step must increase from 0, but 5 follows 10", {"step": [[0, 1], [10, 2], [5, 1]]}),
        ("stage second: step is -0.2857 at t = 15, but must be at least 0", {"step": "4/(1 - t)"}),
        ("stage second: batch is a whole number from 1", {"batch": 0}),
        ("stage second: noise must be at least 0", {"noise": -1.0}),
        ("stage second: decay must be at least 0", {"decay": -1.0}),
        ("stage second: until must be above 0", {"until": -1}),
        ("a stage's name is made of at most 20 letters and digits, and is not 'all'", {"name": "all"}),
        ("a stage's name is made of at most 20 letters and digits, and is not 'all'", {"name": "a b"}),
    ],
)
def test_refusals(sentence, second):
    refused(sentence, FIRST, {**SECOND, **second})


def test_refusals_of_the_list():
    refused("every table [[stage]] needs a unique name", {"until": 3})
    refused("two parameters of switch are called first_step", {**FIRST, "step": 1}, {**SECOND, "step": 1}, **ours())
    with pytest.raises(odesim.UsageError, match=re.escape("write [[stage]], one table for each")):
        odesim.declare(**TEACHERS, stage={"name": "one"})
    with pytest.raises(odesim.UsageError, match="there are 1 to 20 tables"):
        odesim.declare(**TEACHERS, stage=[])


def ours():
    """A number of the user's that is called like that of a stage."""
    return {"parameters": {"first_step": {"default": 1.0}}}


def test_a_label_needs_names():
    sentence = "teacher names groups of the teacher that make the label, but [teacher] has no groups with names"
    with pytest.raises(odesim.UsageError, match=re.escape(sentence)):
        odesim.declare(student={"unit": "w"}, teacher={}, training={"teacher": ["one"]})
    refused("no teacher is called 'tow'; did you mean 'two'?", training={**ONLINE, "teacher": ["tow"]})


def test_the_line_of_a_mistake(tmp_path):
    path = tmp_path / "two.toml"
    stages = '[[stage]]\nname = "first"\nuntil = 5\n[[stage]]\nname = "second"\nuntil = 9\nstep = -1\n'
    path.write_text('[student]\nunit = "w"\n' + stages)
    with pytest.raises(odesim.UsageError, match=r"two.toml, line 9: stage second: step must be above 0"):
        reading.from_file(path)


def test_stages_that_are_asked_for():
    model = odesim.declare(**TEACHERS, training=ONLINE, stage=[FIRST, SECOND])
    with pytest.raises(odesim.UsageError, match="no stage 'secnd'; did you mean 'second'"):
        odesim.integrate(model, stage="secnd")
    with pytest.raises(odesim.UsageError, match="each stage runs once, in the order first, second"):
        odesim.integrate(model, stage="second,first")
    with pytest.raises(odesim.UsageError, match="leaves no time for stage second"):
        odesim.integrate(model, stage="all", until={"second": 10})
    with pytest.raises(odesim.UsageError, match="each stage runs once"):
        odesim.simulate(model, stage="second,first", method="compressed")
