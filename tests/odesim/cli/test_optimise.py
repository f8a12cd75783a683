"""The command `odesim optimise`: what it prints and the folder, whose files run the schedule."""

import csv

import pytest

MODEL = """
[student]
unit = "w"

[teacher]
noise = 0.5

[training]
limit = "online"
step = 0.3

[start]
norm = 1.0
overlap = 0.5
"""


@pytest.fixture
def linear(tmp_path):
    path = tmp_path / "linear.toml"
    path.write_text(MODEL, encoding="utf-8")
    return str(path)


def test_the_folder_runs_the_schedule(odesim_command, linear, tmp_path):
    words = ("--system", linear, "--until", "5", "--knots", "5", "--between", "0,2", "--no-figures", "--out", "best")
    said = odesim_command("optimise", *words)
    assert said.code == 0
    assert said.out.startswith("final error: 0.0884916 with step on 5 knots; best constant step 0.4217")
    with (tmp_path / "best" / "tables" / "schedule.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["time"]) for row in rows] == [0, 1, 2, 3, 4, 5]
    assert {"optimum.toml", "run.toml"} <= {path.name for path in (tmp_path / "best").iterdir()}
    dry = odesim_command(
        "integrate", "--system", "best/optimum.toml", "--config", "best/run.toml", "--dry-run", "--out", "run"
    )
    assert dry.code == 0 and "would write run" in dry.out
    again = odesim_command("optimise", *words, "--overwrite")
    assert again.code == 0 and again.out.splitlines()[:-1] == said.out.splitlines()[:-1]


def test_a_flow_has_no_step(odesim_command):
    said = odesim_command("optimise", "--system", "saad_solla_1995", "--no-figures")
    assert said.code == 2 and "no step to optimise" in said.err and said.err.count("\n") == 1
