"""Help names what is there, and the usual slips are answered by what to type."""

import inspect
import re

import pytest
import typer

import odesim
from odesim.cli import _run as command
from odesim.cli import app

GROUP = typer.main.get_command(app)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def options_of(name):
    return {word for option in GROUP.commands[name].params for word in option.opts} | {"--help"}


def texts_of(name):
    """Every text of a command's help as it is written, not as it is wrapped."""
    found = GROUP.commands[name]
    yield inspect.getdoc(found.callback) or ""
    yield found.epilog or ""
    yield from (option.help for option in found.params if getattr(option, "help", None))


@pytest.mark.parametrize("name", GROUP.commands)
def test_a_help_text_names_only_options_that_are_there(name):
    for text in texts_of(name):
        text = " ".join(text.split())
        quoted = re.compile(r"odesim ([a-z]+)((?:(?!odesim |`|\b4 missing)[^`])*)")
        for other, words in quoted.findall(text):
            if other in GROUP.commands:
                assert set(OPTION.findall(words)) <= options_of(other), (other, words)
        assert set(OPTION.findall(quoted.sub("", text))) <= options_of(name), text


def test_the_seed_of_a_run_that_goes_on_is_told_by_integrate_alone(capsys):
    for name in ("integrate", "simulate", "compare", "verify", "sweep"):
        (said,) = (option.help for option in GROUP.commands[name].params if "--seed" in option.opts)
        assert ("--from" in said) == ("--from" in options_of(name))


@pytest.mark.parametrize("words", [["--tier", "riccati"], ["--tier=riccati"], ["--d", "100"], ["--m-star", "2"]])
@pytest.mark.parametrize("name", ["integrate", "derive", "simulate", "compare", "sweep", "observe"])
def test_a_parameter_that_is_written_as_an_option_is_told_as_one(name, words, capsys):
    assert command([name, "--system", "liao", *words]) == 2
    said = capsys.readouterr().err
    parameter = words[0].partition("=")[0].lstrip("-").replace("-", "_")
    assert f"{parameter} is a parameter, which is given as -p {parameter}=VALUE" in said
    assert len(said.strip().splitlines()) == 1


def test_a_misspelt_option_is_still_one(capsys):
    assert command(["integrate", "--system", "liao", "--untill", "3"]) == 2
    said = capsys.readouterr().err
    assert "--until" in said and "-p" not in said
    assert command(["verify", "--system", "liao", "--tier", "exact"]) == 2  # claims fix their parameters
    assert "-p" not in capsys.readouterr().err


def test_one_run_needs_another_to_be_compared_with(capsys, tmp_path):
    run = str(tmp_path / "run")
    odesim.integrate("liao", m=2, m_star=1, d=50, until=1.0, save_points=9).save(run, pictures=False)
    assert command(["compare", run]) == 2
    said = capsys.readouterr().err
    assert f"`odesim compare {run} RUN_DIR` compares two stored runs" in said and "--system NAME" in said
    assert command(["compare", run, run, run]) == 2
    assert "two run folders, but 3 were given" in capsys.readouterr().err
    assert command(["compare", run, run, "--system", "liao"]) == 2
    assert "either two run folders, or --system with the options of a simulation" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("thm1", "did you mean 'thm-1a' or 'thm-1b' or "),
        ("Theorem 1", "did you mean 'thm-1a' or "),
        ("lemma 20", "did you mean 'lem-20'?"),
        ("lem20", "did you mean 'lem-20'?"),
        ("claim-ordr", "did you mean 'claim-order'?"),
        ("xyzzy", "`odesim verify --system liao --list` lists them."),
    ],
)
def test_an_unknown_claim_is_answered_by_those_it_may_mean(word, words, capsys):
    assert command(["verify", "--system", "liao", "--claim", word]) == 2
    assert words in capsys.readouterr().err
    with pytest.raises(odesim.UsageError, match=re.escape(f"liao has no claim {word!r}")):
        odesim.verify("liao", word)
