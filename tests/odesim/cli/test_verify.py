"""The command `odesim verify`: verdicts in their order, mistakes as sentences, nothing lost by a kill."""

import collections
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from derivations.contract import UsageError
from odesim.evidence import laboratory, verification
from odesim.evidence.laboratory import Laboratory
from odesim.evidence.workers import groups, verify_all
from odesim.request.case import find_system
from odesim.store.verdicts import Ledger

Answer = collections.namedtuple("Answer", "code out err")
FAST = ("prop-S", "lem-29", "lem-31", "eq-5-sol", "fig-3a")
"""Claims of three modules that are decided within a second or two."""


@pytest.fixture
def verify(monkeypatch, capsys, tmp_path):
    """Call `odesim verify --system liao` with further words, in an empty folder: (exit code, output, messages)."""
    from odesim.cli import main

    monkeypatch.chdir(tmp_path)

    def call(*words):
        with pytest.raises(SystemExit) as caught:
            main(["verify", "--system", "liao", *map(str, words)])
        captured = capsys.readouterr()
        return Answer(caught.value.code or 0, captured.out, captured.err)

    return call


def flags(claims):
    """`--claim ID` for each of them."""
    return [word for claim in claims for word in ("--claim", claim)]


def test_two_processes_give_the_verdicts_of_one_in_the_same_order(verify):
    words = (*flags(FAST), "--quiet", "--json")
    alone = json.loads(verify(*words, "--workers", 1, "--out", "alone").out)["verdicts"]
    shared = json.loads(verify(*words, "--workers", 2, "--out", "shared").out)["verdicts"]
    assert [v["claim"] for v in alone] == ["prop-S", "lem-29", "lem-31", "eq-5-sol", "eq-5-sol", "fig-3a"]
    fields = {
        "claim",
        "variant",
        "answer",
        "predicted",
        "estimate",
        "interval",
        "rungs",
        "reason",
        "evidence",
        "seconds",
    }
    for one, two in zip(alone, shared, strict=True):
        assert fields <= set(one)
        assert {k: v for k, v in one.items() if k != "seconds"} == {k: v for k, v in two.items() if k != "seconds"}


def test_what_runs_at_once_is_a_module_of_claims_and_the_largest_comes_first():
    chosen = verification.claims_of(find_system("liao"), FAST)
    forms = [(claim, variant) for claim in chosen for variant in claim.variants]
    for order in (forms, forms[::-1]):
        found = groups(order, "quick")
        assert [{claim for claim, _ in group} for group in found] == [
            {"prop-S", "lem-29", "lem-31"},  # 19 measurements, then 6, then 1
            {"eq-5-sol"},
            {"fig-3a"},
        ]


def test_a_claim_that_says_what_it_costs_is_judged_by_itself_after_the_modules_and_the_dearest_first():
    seconds = {"prop-S": 20.0, "lem-31": 30.0}
    chosen = verification.claims_of(find_system("liao"), FAST)
    chosen = [dataclasses.replace(claim, seconds=seconds.get(claim.id, 0.0)) for claim in chosen]
    found = groups([(claim, variant) for claim in chosen for variant in claim.variants], "quick")
    together = [{claim for claim, _ in group} for group in found]
    assert together == [{"lem-29"}, {"eq-5-sol"}, {"fig-3a"}, {"lem-31"}, {"prop-S"}]


def test_a_laboratory_saves_at_listed_times():
    lab = Laboratory(find_system("ren_2025"))
    assert lab.integrate(save_at=[0.0, 0.03, 0.1]).time.tolist() == [0.0, 0.03, 0.1]


def test_claims_share_their_runs_up_to_the_memory_of_a_laboratory(monkeypatch):
    solved = []
    whole = laboratory.solve.solve
    monkeypatch.setattr(laboratory.solve, "solve", lambda *a, **k: solved.append(1) or whole(*a, **k))
    lab = Laboratory(find_system("ren_2025"))
    first = lab.integrate(until=0.1, seed=0)
    for seed in (*range(200), *range(200)):
        lab.integrate(until=0.1, seed=seed)
    assert len(solved) == 200
    monkeypatch.setattr(laboratory, "REMEMBERED_BYTES", 3 * laboratory.size_of(first))
    for seed in (200, 0, 200, 199, 198, 200):  # the run of seed 0 is the oldest but for the call just now
        lab.integrate(until=0.1, seed=seed)
    assert len(solved) == 203


def test_forms_that_ask_for_the_same_measurement_share_it_and_its_evidence():
    lab, made = Laboratory(find_system("ren_2025")), []

    def measure(lab, point, seed):
        made.append(seed)
        return float(lab.integrate(until=0.1, seed=seed).time[-1])

    evidence = []
    for _ in range(2):
        assert lab.measurement(measure, {"x": 1}, 0) == pytest.approx(0.1)
        evidence.append(lab.take_evidence())
    assert made == [0]
    assert evidence[0] == evidence[1]
    assert len(evidence[0]) == 1
    lab.measurement(measure, {"x": 2}, 0)
    assert made == [0, 0]


def test_a_printed_formula_that_is_wrong_is_refuted_and_strict_accepts_it_as_expected(verify):
    answer = verify("--claim", "eq-5-sol", "--strict", "--json", "--quiet")
    assert {v["variant"]: v["answer"] for v in json.loads(answer.out)["verdicts"]} == {
        "printed": "refuted",
        "corrected": "confirmed",
    }
    assert answer.code == 0


def test_strict_objects_to_a_verdict_that_differs_from_the_last_full_one(verify, monkeypatch):
    monkeypatch.setattr(verification, "disagrees", lambda verdict: verdict["claim"] == "lem-29")
    words = ("--claim", "lem-29", "--quiet")
    assert verify(*words).code == 0
    assert verify(*words, "--strict").code == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--claim", "lem-92"), "liao has no claim 'lem-92'"),
        (("--effort", "best"), "--effort"),
        (("--workers", "0"), "--workers must be at least 1"),
        (("--backend", "torch"), "--backend"),
    ],
)
def test_a_mistake_is_a_sentence_and_exit_code_2(verify, words, sentence):
    answer = verify(*words)
    assert answer.code == 2
    assert sentence in answer.err


def test_a_killed_verification_keeps_its_verdicts_and_goes_on(tmp_path):
    command = [sys.executable, "-m", "odesim", "verify", "--system", "liao", "--workers", "1", "--out", str(tmp_path)]
    command += flags((*FAST, "lem-5"))
    ledger = tmp_path / "verdicts.jsonl"
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while process.poll() is None and (not ledger.is_file() or ledger.read_text().count("\n") < 2):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "manifest.json").exists()
    kept = ledger.read_text().splitlines()
    again = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=300, check=True)
    assert len(kept) >= 2
    assert ledger.read_text().splitlines()[: len(kept)] == kept
    verdicts = json.loads(again.stdout)["verdicts"]
    first = json.loads(kept[0])["verdict"]
    assert verdicts[0] == {name: value for name, value in first.items() if name not in ("samples", "runs")}
    assert all(v["answer"] == v["expected"] for v in verdicts)
    assert f"[{len(kept)}/7]" not in again.stderr  # what was kept is not judged again
    assert "[7/7]" in again.stderr


def test_what_a_worker_raises_reaches_the_caller_with_its_trace(tmp_path):
    system = find_system("liao")
    broken = Laboratory(system, "quick", "no such back end")
    ledger = Ledger(tmp_path / "verdicts.jsonl", "key")
    with pytest.raises(UsageError, match="--backend") as caught:
        verify_all(broken, verification.claims_of(system, ["thm-1a", "lem-29"]), ledger, workers=2)
    assert "In a worker process" in caught.value.__notes__[0]


def test_the_list_names_every_claim_with_its_forms_and_measures_nothing(verify, tmp_path):
    answer = verify("--list")
    assert "eq-5-sol  [" in answer.out
    assert "expected printed: refuted, corrected: confirmed" in answer.out
    listed = json.loads(verify("--list", "--json", "--claim", "lem-29").out)["claims"]
    assert [claim["claim"] for claim in listed] == ["lem-29"]
    assert not (tmp_path / "runs").exists()


def test_an_explanation_holds_statement_decision_sensitivity_and_samples(verify):
    answer = verify("--explain", "prop-S", "--quiet")
    for word in ("statement ", "source ", "decided by ", "refuted by ", "sensitivity ", "samples "):
        assert f"  {word}" in answer.out
    assert "would have been detected" in answer.out
    assert "rho = -0.7: {values: " in answer.out


def test_the_evidence_of_every_verdict_is_kept(verify, tmp_path):
    verify("--claim", "own-7", "--claim", "prop-S", "--quiet", "--out", "kept")
    evidence = json.loads((tmp_path / "kept" / "evidence.json").read_text())
    verdicts = json.loads((tmp_path / "kept" / "verdicts.json").read_text())["verdicts"]
    assert [entry["claim"] for entry in evidence["samples"]] == [verdict["claim"] for verdict in verdicts]
    assert all("samples" not in verdict and verdict["sensitivity"] for verdict in verdicts)
    (digest,) = next(verdict["evidence"] for verdict in verdicts if verdict["claim"] == "own-7")
    assert evidence["runs"][digest]["system"] == "liao"  # the digest leads to what was asked
    for name in ("own-7.svg", "prop-S.svg"):
        assert (tmp_path / "kept" / "evidence" / name).read_text().startswith("<?xml")


def test_the_table_says_what_was_expected_where_the_answer_differs(capsys, tmp_path):
    from odesim.cli.verdicts import Told, counted, print_verdicts

    verdict = {
        "claim": "lem-1", "variant": "main", "answer": "refuted", "expected": "confirmed", "statement": "It holds.",
        "reason": "it does not", "sensitivity": [], "deciding": "", "interval": None,
    }  # fmt: skip
    print_verdicts([verdict], tmp_path)
    assert "expected:" in capsys.readouterr().out
    print_verdicts([verdict], tmp_path, quiet=True)
    assert capsys.readouterr().out.count("\n") == 1
    assert Told().line({**verdict, "seconds": 1.0}, 1, 3).startswith("lem-1: refuted, 1.0 s; 2 left, about 0 s")
    assert counted([verdict]).startswith("0 confirmed, 0 consistent, 1 refuted, 0 inconclusive; 1 not as expected")
