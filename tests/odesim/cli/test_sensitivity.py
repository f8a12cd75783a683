"""The command `odesim sensitivity`: what it prints, its folder, and its refusals."""

import csv

import pytest

SYSTEM = ("--system", "arnaboldi_2023", "--no-figures")


def test_the_answer_is_printed_and_stored(odesim_command, tmp_path):
    said = odesim_command(
        "sensitivity", *SYSTEM, "--of", "first time M_ww >= .9", "--to", "step,noise,overlap", "--out", "here"
    )
    assert said.code == 0
    assert said.out.splitlines()[0] == (
        "first time M_ww >= .9 = 23.668348; derivatives: step +129.146, overlap -126.743, noise +2.88108"
    )
    with (tmp_path / "here" / "tables" / "derivatives.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["parameter"] for row in rows] == ["step", "overlap", "noise"]
    assert float(rows[0]["derivative"]) == pytest.approx(129.1458053, rel=1e-7)
    shown = odesim_command("show", "here")
    assert shown.code == 0 and "derivatives: step" in shown.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--to", "step"), "--of is missing"),
        (("--of", "final error", "--to", "d"), "--to d: d is the dimension"),
        (("--of", "final error", "--to", "units"), "whole number (a size)"),
        (("--of", "final nothing", "--to", "step"), "no quantity 'nothing'"),
        (("--of", "error", "--to", "step"), "cannot be read"),
        (("--of", "final M_ww[2,1]", "--to", "step"), "no entry [2,1]"),
    ],
)
def test_a_refusal_is_one_sentence(odesim_command, words, sentence):
    said = odesim_command("sensitivity", *SYSTEM, *words)
    assert said.code == 2 and sentence in said.err and said.err.count("\n") == 1 and said.out == ""
