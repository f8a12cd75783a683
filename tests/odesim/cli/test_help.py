"""Help that helps: examples that the command reads, every exit code, completion, and pipes that are closed early."""

import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer

import odesim
from odesim.cli import _run as command
from odesim.cli import app
from odesim.cli.examples import CODES, EXAMPLES, SUMMARIES, epilog
from odesim.version import PURPOSE

GROUP = typer.main.get_command(app)
ROOT = Path(__file__).parents[3]
LINES = [line for lines in EXAMPLES.values() for line in lines]


@pytest.mark.parametrize("line", LINES)
def test_every_example_is_a_line_that_the_command_reads(line):
    words = shlex.split(line.partition(">")[0])
    assert words[0] == "odesim"
    named = GROUP.commands[words[1]]
    with named.make_context(words[1], words[2:]) as context:  # parses the options, and runs nothing
        assert context.params


def test_every_command_has_examples_and_all_exit_codes(capsys):
    assert set(EXAMPLES) == set(GROUP.commands)
    for name in GROUP.commands:
        assert EXAMPLES[name][0] in epilog(name) and CODES in epilog(name)
    assert command(["cite", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "odesim cite --system liao" in said and CODES in said


def test_the_integrators_are_listed(capsys):
    assert command(["integrate", "--list-solvers"]) == 0
    said = capsys.readouterr().out
    assert "CVODE" in said and "the default of jax" in said and "euler" in said


def test_the_traceback_of_debug_follows_the_sentence(capsys):
    assert command(["systems", "laio", "--debug"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("odesim: unknown system 'laio'; did you mean 'liao'?") and "Traceback" in said


def test_an_end_time_may_be_an_expression_and_folders_are_made(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    words = ["-p", "m=2", "-p", "m_star=1", "-p", "d=100", "--until", "0.1*sqrt(d)", "--save-points", "3", "--quiet"]
    assert command(["integrate", "--system", "liao", *words, "--no-figures", "--out", "not/yet/there"]) == 0
    assert (tmp_path / "not/yet/there/manifest.json").is_file()
    assert odesim.load("not/yet/there").outcome.time == 1.0


def test_a_reader_who_has_seen_enough_is_no_failure():
    reader, writer = os.pipe()
    os.close(reader)
    call = [sys.executable, "-m", "odesim", "systems"]
    done = subprocess.run(call, stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_shell_completes_names_of_systems():
    words = {"COMP_WORDS": "odesim integrate --system li", "COMP_CWORD": "3"}
    asked = {**os.environ, "_ODESIM_COMPLETE": "complete_bash", **words}
    done = subprocess.run(
        [sys.executable, "-m", "odesim"], env=asked, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split() == ["liao"]


def test_what_is_likely_meant_is_said(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command(["integrate", "liao"]) == 2
    said = capsys.readouterr().err
    assert "a system is given as --system liao. Try `odesim integrate --help`." in said
    assert command(["simulate", "--system", "liao"]) == 2
    assert "Missing option '--method' (expected: explicit|compressed)" in capsys.readouterr().err
    odesim.integrate("liao", m=2, m_star=1, d=50, until=1.0).save(tmp_path / "one", pictures=False)
    for words in (["show"], ["explore"], ["report"]):
        assert command([*words, str(tmp_path)]) == 2
        assert f"but contains {tmp_path / 'one'}: name one of these" in capsys.readouterr().err


def test_claims_are_listed_by_their_ids_alone(capsys):
    assert command(["verify", "--system", "liao", "--list", "--quiet"]) == 0
    assert "lem-1" in capsys.readouterr().out.splitlines()


def test_one_sentence_says_what_odesim_is_everywhere(capsys):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert command(["--help"]) == 0
    texts = {
        "pyproject.toml": project["description"],
        "odesim.__doc__": odesim.__doc__,
        **{name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/index.md")},
        "odesim --help": capsys.readouterr().out,
    }
    for place, text in texts.items():
        assert PURPOSE in " ".join(text.replace("**odesim**", "odesim").split()), place


def test_the_list_of_commands_fits_eighty_columns_and_cuts_no_sentence(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert command(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    commands = lines[lines.index("Commands:") + 1 :]
    listed = commands[: commands.index("")]
    assert [line.split()[0] for line in listed] == list(GROUP.commands) == list(SUMMARIES)
    assert all(line.endswith(".") and "..." not in line for line in listed)
