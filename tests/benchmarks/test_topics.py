"""Every topic of the benchmarks still measures what it says: a change of an engine must not leave one behind."""

import dataclasses
import sys

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import measure


@pytest.mark.slow
@pytest.mark.parametrize("topic", benchmarks.TOPICS)
def test_a_topic_runs_to_its_end(topic, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", topic, "--quick", "--no-peers"])
    assert benchmarks.main() == 0
    assert "measuring" in capsys.readouterr().err


def test_a_topic_that_fails_is_a_row_that_says_so_and_the_exit_code(monkeypatch, capsys):
    row = dataclasses.asdict(measure.Row("a topic", note=f"{benchmarks.FAILED} it is broken"))
    monkeypatch.setattr(benchmarks, "run_topic", lambda topic, quick, environment: [row])
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "lemma", "--quick", "--no-peers"])
    assert benchmarks.main() == 1
    assert "it is broken" in capsys.readouterr().out
