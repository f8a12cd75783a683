"""The command `odesim bands`: what it prints, its folder, and its refusals."""

import csv
import json

import pytest

PAIR = """
[student]
unit = "w"

[teacher]
noise = 0.5

[training]
limit = "online"
step  = 0.5
"""


@pytest.fixture
def line(tmp_path):
    path = tmp_path / "line.toml"
    path.write_text(PAIR, encoding="utf-8")
    return str(path)


def test_the_answer_is_printed_and_stored(odesim_command, line, tmp_path):
    words = ("--system", line, "-p", "d=400", "--until", "6", "--of", "first time error <= 0.3", "--out", "here")
    said = odesim_command("bands", *words)
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert lines[0].startswith("at t = 6, d = 400: loss ") and "(90%), mean" in lines[0]
    assert lines[2].startswith("first time error <= 0.3: ") and "(5, 50, 95 %)" in lines[2]
    folder = tmp_path / "here"
    assert {path.name for path in folder.iterdir()} >= {"answer.nc", "summary.json", "manifest.json", "bands.png"}
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["d"] == 400 and summary["error_low"] < summary["error_centre"] < summary["error_high"]
    with (folder / "tables" / "hitting.csv").open(encoding="utf-8") as file:
        [row] = csv.DictReader(file)
    assert float(row["5%"]) < float(row["50%"]) < float(row["95%"])
    shown = odesim_command("show", "here")
    assert shown.code == 0 and lines[0] in shown.out
    again = odesim_command("bands", *words)
    assert again.code == 2 and "--overwrite" in again.err
    assert odesim_command("plot", "here", "--svg").out.splitlines()[-1].endswith("bands.svg")


def test_json_quiet_and_dry_run(odesim_command, line, tmp_path):
    words = ("bands", "--system", line, "--until", "1", "--save-points", "3", "--no-figures")
    answer = odesim_command(*words, "--json", "--out", "one").json
    assert answer["summary"]["gaussian"] is True and answer["tables"] == {}
    assert odesim_command(*words, "--quiet", "--out", "two").out.strip() == "two"
    planned = odesim_command(*words, "--dry-run", "--out", "three")
    assert planned.code == 0 and not (tmp_path / "three").exists() and "level" in planned.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--level", "2"), "--level must be between 0 and 1"),
        (("--level", "high"), "--level"),
        (("--of", "soon"), "--of 'soon' cannot be read"),
        (("--batch", "3"), "-p batch=3"),
        (("--save-points", "3", "--save-at", "1,2"), "give only one of the two"),
    ],
)
def test_a_wrong_option_is_one_sentence(odesim_command, line, words, sentence):
    said = odesim_command("bands", "--system", line, *words)
    assert said.code == 2 and sentence in said.err and len(said.err.strip().splitlines()) == 1
