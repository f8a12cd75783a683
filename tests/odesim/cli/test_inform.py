"""The commands that tell and those that look at stored runs."""

import io
import json
import sys
import time

import pytest

import derivations
from derivations import outside
from odesim.ask.progress import Progress
from odesim.cli.inform import declaration_of

TINY = ("integrate", "--system", "tiny", "--quiet", "--out", "here")


def test_all_systems_are_listed(odesim_command):
    assert [s["name"] for s in odesim_command("systems", "--json").json["systems"]] == ["liao", "tiny"]
    assert odesim_command("systems", "--quiet").out == "liao\ntiny\n"
    assert "exponential decay" in odesim_command("systems").out


def test_one_system_is_described_in_full(odesim_command):
    described = odesim_command("systems", "tiny", "--json").json
    assert described["parameters"][0] == {
        "name": "size",
        "default": 3,
        "meaning": "number of entries",
        "minimum": 1,
        "maximum": 1000,
    }
    assert described["presets"] == {"slow": {"rate": 0.1, "size": 5}}
    assert [stage["name"] for stage in described["stages"]] == ["decay", "prune"]
    assert "above 0" not in (text := odesim_command("systems", "tiny").out)
    assert "> 0" in text


def test_the_state_of_every_tier_of_liao_is_described(odesim_command):
    tiers = odesim_command("systems", "liao", "--json").json["stages"][0]["tiers"]
    assert [tier["name"] for tier in tiers] == ["exact", "cascade", "riccati", "riccati_paper", "linear"]
    state = [component["name"] for component in tiers[0]["state"]]
    assert state == ["gamma1", "gamma2", "zeta1", "zeta2", "I1", "I2", "I3"]
    assert "I3" in odesim_command("systems", "liao").out


@pytest.mark.parametrize("name", sorted(outside.gallery()))
def test_a_printed_declaration_states_the_same_model(name, tmp_path):
    path = tmp_path / f"{name}.toml"
    path.write_text(declaration_of(name), encoding="utf-8")
    assert derivations.system(str(path)).digest == derivations.system(name).digest


def test_the_declaration_of_a_file_is_printed_as_it_stands(odesim_command, tmp_path):
    text = '# mine\n[student]\nunit = "w"  # linear\n'
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    assert odesim_command("systems", str(tmp_path / "mine.toml"), "--toml").out == text
    assert "is written in Python" in odesim_command("systems", "liao", "--toml").err
    assert "needs a NAME" in odesim_command("systems", "--toml").err


def test_show_tells_what_was_asked_and_what_came(odesim_command):
    odesim_command(*TINY)
    text = odesim_command("show", "here").out
    for word in ("completed at time 4", "final", "rate", "steps", "float64"):
        assert word in text
    shown = odesim_command("show", "here", "--json").json
    assert shown["summary"]["final"] == pytest.approx(0.0183156388887342, rel=1e-14)  # exp(-4)
    assert shown["manifest"]["request"]["system"] == "tiny"


def test_plot_draws_a_stored_run_again(odesim_command):
    odesim_command(*TINY, "--no-figures")
    assert odesim_command("plot", "here").out == "here/run.png\n"
    assert odesim_command("plot", "here", "--json").json["pictures"] == ["here/run.png"]
    assert odesim_command("show", "here").code == 0


def test_the_paper_and_the_program_are_cited(odesim_command):
    text = odesim_command("cite", "--system", "liao").out
    assert "@inproceedings{liao2026guided" in text
    assert "@software{odesim" in text
    assert "@misc{tiny2026" in odesim_command("cite", "--system", "tiny").out


def test_the_version_is_printed(odesim_command):
    import odesim

    answer = odesim_command("--version")
    assert (answer.code, answer.out) == (0, f"odesim {odesim.__version__}\n")


def test_help_lists_the_commands(odesim_command):
    for words in ((), ("--help",), ("-h",)):
        answer = odesim_command(*words)
        assert answer.code == 0
        assert all(name in answer.out for name in ("integrate", "derive", "doctor", "cite", "show", "plot"))


def test_the_doctor_finds_this_installation_sound(odesim_command):
    answer = odesim_command("doctor", "--json")
    assert (answer.code, answer.json["healthy"]) == (0, True)
    found = {finding["name"]: finding["found"] for finding in answer.json["findings"]}
    assert found["precision"] == "JAX computes in float64"
    assert "correct" in found["jax batch 16385"]


def test_the_doctor_fails_where_something_is_wrong(odesim_command, monkeypatch):
    from odesim.show import doctor

    monkeypatch.setattr(doctor, "batch_error", lambda rows: 1.0 if rows > 16_384 else 0.0)
    answer = odesim_command("doctor", "--quiet")
    assert answer.code == 4
    assert answer.out.count("WRONG") == 2


def test_progress_is_silent_below_two_seconds():
    stream = io.StringIO()
    with Progress("running", stream=stream) as progress:
        progress(1.0, 2.0)
    assert stream.getvalue() == ""


def wait_for(stream):
    """Wait until something was written, for two seconds at most."""
    for _ in range(200):
        if stream.getvalue():
            return
        time.sleep(0.01)


def test_progress_writes_a_plain_line_where_there_is_no_terminal():
    stream = io.StringIO()
    progress = Progress("running", stream=stream, delay=0.01)
    progress(1.0, 4.0)  # before its thread can look
    with progress:
        wait_for(stream)
    assert stream.getvalue().startswith("odesim: running: 25 %, 0 s, about 0 s left")
    assert stream.getvalue().count("\n") == 1


def test_progress_speaks_of_preparing_only_where_something_is_compiled(monkeypatch):
    from odesim.code import busy

    monkeypatch.setattr(busy, "BUSY", [])
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    said = {}
    for what, making in (("starting", []), ("preparing (compiling, the first time)", ["compiling"])):
        busy.BUSY[:] = making
        said[what] = stream = io.StringIO()
        with Progress("running", stream=stream, delay=0.01):
            wait_for(stream)
    assert all(what in stream.getvalue() for what, stream in said.items())


def test_progress_is_a_bar_on_a_terminal():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    with Progress("running", stream=stream, delay=0.01) as progress:
        progress(1.0, 4.0)
        wait_for(stream)
        time.sleep(0.5)
    assert "running" in stream.getvalue()


def test_quiet_progress_stays_quiet():
    stream = io.StringIO()
    with Progress("running", stream=stream, delay=0.0, quiet=True) as progress:
        progress(1.0, 4.0)
        time.sleep(0.05)
    assert stream.getvalue() == ""


MARKS = [
    ("text", "dγ¹ᵢₖ/dt ="),
    ("latex", "z_{12}"),
    ("python", "def rates("),
    ("kernels", "def kernel(which, x, s, z, g)"),
]


@pytest.mark.parametrize(("format", "mark"), MARKS)
def test_derive_prints_the_equations_in_each_format(odesim_command, format, mark):
    answer = odesim_command("derive", "--system", "liao", "--format", format, "--json")
    assert answer.code == 0
    assert answer.json["format"] == format
    assert mark in answer.json["text"]
    assert json.loads(answer.out)["system"] == "liao"
    assert answer.json["stage"] == "train"


def test_derive_prints_the_stage_that_is_asked_for(odesim_command):
    answer = odesim_command("derive", "--system", "liao", "--stage", "tune", "-p", "tier=exact", "--quiet")
    assert answer.code == 0
    assert "Equations of motion" in answer.out
    answer = odesim_command("derive", "--system", "liao", "--stage", "prune")
    assert answer.code == 0
    assert "change of the squared error by removing expert i" in answer.out
    assert "Equations of motion" not in answer.out
