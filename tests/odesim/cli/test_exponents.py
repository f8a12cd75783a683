"""The command `odesim exponents`: what it prints, its folder, and its refusals."""

import csv
import json

import pytest

STAIRS = """
[student]
unit = "He(2, w)"

[teacher]
unit = "u + He(4, v)"
noise = 0.3
"""


@pytest.fixture
def stairs(tmp_path):
    path = tmp_path / "stairs.toml"
    path.write_text(STAIRS, encoding="utf-8")
    return str(path)


def test_the_answer_is_printed_and_stored(odesim_command, stairs, tmp_path):
    said = odesim_command("exponents", "--system", stairs, "--out", "here")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0] == "information 1, leap 4; generative 1, leap 2: d^3 samples of SGD, flow time d"
    assert lines[1] == "with a transform of the label, or samples used twice: d log d samples of SGD, flow time log d"
    assert "share no order" in lines[2] and "label noise" in lines[3]
    folder = tmp_path / "here"
    assert {path.name for path in folder.iterdir()} >= {"answer.nc", "summary.json", "manifest.json", "exponents.png"}
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["order"] == [
        {"order": 1, "count": 1, "directions": "u"},
        {"order": 4, "count": 1, "directions": "v"},
    ]
    with (folder / "tables" / "order.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["label"], row["order"], row["directions"]) for row in rows] == [
        ("y", "1", "u"), ("y", "4", "v"), ("T(y)", "1", "u"), ("T(y)", "2", "v"),
    ]  # fmt: skip
    shown = odesim_command("show", "here")
    assert shown.code == 0 and lines[0] in shown.out


def test_json_quiet_and_dry_run(odesim_command, stairs, tmp_path):
    answer = odesim_command("exponents", "--system", stairs, "--no-figures", "--json", "--out", "one").json
    assert answer["summary"]["leap"] == 4 and answer["tables"]["order"][1]["SGD samples"] == "d^3"
    assert odesim_command("exponents", "--system", stairs, "--no-figures", "-q", "--out", "two").out == "two\n"
    dry = odesim_command("exponents", "--system", stairs, "--dry-run", "--out", "three")
    assert dry.code == 0 and "would write three" in dry.out and not (tmp_path / "three").exists()


def test_parameters_and_stages_reach_the_teacher(odesim_command):
    committee = ("exponents", "--system", "saad_solla_1995", "--no-figures", "--out", "committee")
    assert "w_1 - w_2" in odesim_command(*committee, "-p", "teachers=2").out
    assert "w_1" not in odesim_command(*committee, "-p", "teachers=1", "--overwrite").out
    stages = ("exponents", "--system", "lee_2021", "--no-figures", "--out")
    assert odesim_command(*stages, "first").out.startswith("head one: information 1")
    assert odesim_command(*stages, "second", "--stage", "second").out.startswith("head two: information 1")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--system", "liao"), "exponents exist only for the teacher of a declared model, but liao is not declared"),
        (("--system", "yoshida_okada_2019"), "isotropic inputs"),
        (("--system", "ren_2025"), "use fewer teachers, as in -p teachers=4"),
        (("--system", "ren_2025", "-p", "teachers=many"), "teachers"),
        (("--system", "lee_2021", "--stage", "third"), "has no stage 'third'"),
    ],
)
def test_a_refusal_is_one_sentence_and_leaves_nothing(odesim_command, tmp_path, words, sentence):
    said = odesim_command("exponents", *words)
    assert said.code == 2 and sentence in said.err and said.err.count("\n") == 1 and said.out == ""
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "stairs.toml"]
