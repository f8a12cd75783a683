"""The command `odesim check`: its folder, changes, resumption, and citation."""

import importlib
import json

import pytest

from tests.odesim.least_squares import MODEL

CLAIMED = (
    f'link = "https://example.org"{MODEL}'
    + """[[claim]]
id = "floor"
statement = "The error falls to a floor"
published = "eq. (7)"
measure = "final error"
until = 30
law = {equals = 0.08333333, margin = 1e-4}
[[claim]]
id = "early"
statement = "The error has fallen at time 1"
measure = "final error"
until = 1
law = {at_most = 2.0}
expected = "consistent"
"""
)
SOLVE = importlib.import_module("odesim.flow.solve").solve
CLAIMS = ("--claim", "floor", "--claim", "early", "--no-compare", "--workers", "1")


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.toml"
    path.write_text(CLAIMED, encoding="utf-8")
    return str(path)


@pytest.fixture
def command(odesim_command, monkeypatch):
    """The command with the real integrator."""
    monkeypatch.setattr(importlib.import_module("odesim.flow.solve"), "solve", SOLVE)
    return odesim_command


def test_a_check_is_printed_stored_shown_and_cited(command, model, tmp_path):
    said = command("check", model, *CLAIMS, "--out", "here")
    assert said.code == 0
    assert said.out.splitlines()[0] == "Check of model: confirmed; number reproduced"
    assert "SGD beside the flow: not asked for" in said.out
    assert {path.name for path in (tmp_path / "here").iterdir()} == {
        "check.html", "check.json", "manifest.json", "verdicts",
    }  # fmt: skip
    assert command("show", "here").out.splitlines()[0] == said.out.splitlines()[0]
    assert command("show", "here", "--quiet").out == "confirmed; number reproduced\n"
    assert command("show", "here", "--json").json["verdict"]["counts"]["confirmed"] == 1
    cited = command("cite", "here").out
    assert cited.count("@misc{") == 2 and "confirmed; number reproduced" in cited and "@software{odesim" in cited
    assert command("report", "here", "--out", "page.html").code == 0


def test_a_finished_check_is_not_replaced_unasked(command, model):
    assert command("check", model, *CLAIMS, "--out", "here", "--quiet").code == 0
    again = command("check", model, *CLAIMS, "--out", "here", "--quiet")
    assert again.code == 2 and "give --overwrite to replace it, --resume" in again.err
    assert command("check", model, *CLAIMS, "--out", "here", "--quiet", "--resume").code == 0
    other = command("check", model, *CLAIMS, "--seed", "1", "--out", "here", "--quiet", "--resume")
    assert other.code == 2 and "of another request" in other.err
    assert command("check", model, *CLAIMS, "--seed", "1", "--out", "here", "--quiet", "--overwrite").code == 0


def test_what_changed_is_said_of_two_folders_and_of_the_model_as_it_is_now(command, model, tmp_path):
    command("check", model, *CLAIMS, "--out", "old", "--quiet")
    assert command("check", "--compare", "old", "old").out == "nothing changed\n"
    (tmp_path / "model.toml").write_text(CLAIMED.replace("0.08333333", "0.09"), encoding="utf-8")
    said = command("check", "--compare", "old", "--out", "new", "--workers", "1")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[:2] == ["answer: confirmed before, refuted now", "grade: number reproduced before, qualitative now"]
    assert "claim floor: confirmed before, refuted now" in lines and "claims stated otherwise: floor" in lines
    assert "claim floor: 0.0833333 claimed before, 0.09 now" in lines
    assert lines[-1] == "check in new"
    assert command("check", "new", "--compare", "old", "--json").json["answers"] == [["floor", "confirmed", "refuted"]]


def test_strict_tells_by_the_exit_code(command, tmp_path):
    (tmp_path / "wrong.toml").write_text(CLAIMED.replace("0.08333333", "0.09"), encoding="utf-8")
    assert command("check", "wrong.toml", *CLAIMS, "--out", "a", "--quiet").code == 0
    assert command("check", "wrong.toml", *CLAIMS, "--out", "b", "--quiet", "--strict").code == 1


def test_ctrl_c_keeps_verdicts_and_the_same_command_goes_on(command, model, tmp_path, monkeypatch):
    from odesim.evidence import workers

    real, judged = workers.verify, []

    def once(lab, claim, variant):
        if judged:
            raise KeyboardInterrupt
        judged.append(claim.id)
        return real(lab, claim, variant)

    monkeypatch.setattr(workers, "verify", once)
    stopped = command("check", model, *CLAIMS, "--out", "here", "--quiet")
    assert stopped.code == 130 and "1 verdicts are kept" in stopped.err
    unfinished = command("show", "here")
    assert unfinished.code == 2 and "the check in here is unfinished" in unfinished.err
    ledger = tmp_path / "here" / "verdicts" / "verdicts.jsonl"
    kept = json.loads(ledger.read_text(encoding="utf-8"))["verdict"]

    def counting(lab, claim, variant):
        judged.append(claim.id)
        return real(lab, claim, variant)

    monkeypatch.setattr(workers, "verify", counting)
    assert command("check", model, *CLAIMS, "--out", "here", "--quiet").code == 0
    assert judged == ["floor", "early"]
    record = json.loads((tmp_path / "here" / "check.json").read_text(encoding="utf-8"))
    assert record["claims"][0]["seconds"] == kept["seconds"]


def test_ctrl_c_in_sgd_keeps_the_verdicts_and_a_finished_comparison_is_not_made_again(command, model, monkeypatch):
    from odesim.study.pair import Pair

    real, made = Pair.run, []

    def run(self, progress=None, threads=None):
        made.append(self)
        if len(made) == 1:
            raise KeyboardInterrupt
        return real(self, progress, threads)

    monkeypatch.setattr(Pair, "run", run)
    words = (
        "check",
        model,
        "--claim",
        "floor",
        "--until",
        "0.2",
        "-p",
        "d=20",
        "--out",
        "here",
        "--workers",
        "1",
        "--quiet",
    )
    stopped = command(*words)
    assert stopped.code == 130 and "the verdicts are kept" in stopped.err
    assert command(*words).code == 0 and len(made) == 2
    assert command(*words, "--resume").code == 0 and len(made) == 2
    record = command("show", "here", "--json").json
    assert record["comparison"]["replicas"] == 5 and record["request"]["comparison"]["simulation"]["until"] == 0.2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("check",), "check needs a NAME"),
        (("check", "nowhere"), "nowhere"),
        (("check", "saad_solla_1995", "--claim", "plateo"), "did you mean 'plateau'?"),
        (("check", "saad_solla_1995", "--no-compare", "--seeds", "3"), "--no-compare makes no comparison"),
        (("check", "saad_solla_1995", "--compare", "nowhere"), "there is no run folder nowhere"),
        (("cite",), "give one of the two"),
        (("cite", "nowhere"), "there is no run folder nowhere"),
    ],
)
def test_a_mistake_is_one_sentence(command, words, said):
    answer = command(*words)
    assert answer.code == 2 and said in answer.err and len(answer.err.splitlines()) == 1
