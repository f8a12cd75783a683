"""Impossible requests give an error of one sentence before any work; damaged files are detected and written again."""

import json
import sys

import numpy as np
import pytest

import odesim
from odesim.cli import _run as command
from odesim.errors import StorageError, UsageError
from odesim.sweeps import sweep, swept

PATHS_ASK = sys.version_info >= (3, 14)
"""Python says there that a path too long to exist does not exist; before, that it is too long.  What cannot be written
is then the folder beside it, with a longer name."""
SGD = ("simulate", "--system", "liao", "--step-size", "1e-3")
HOPELESS = [
    ((*SGD, "--method", "explicit", "--batch", "10", "--seeds", "1e8"), "1e+08 replicas would take"),
    ((*SGD, "--method", "compressed", "--batch", "1e10", "--until", "100"), "would take at least"),
    (("simulate", "--system", "kawata", "--method", "compressed", "--step-size", "1e-12", "--batch", "9"), "years"),
    (("integrate", "--system", "liao", "--save-points", "1e11"), "saved states would take"),
    (("integrate", "--system", "liao", "--seed", "1e23"), "--seed must be below 2^63"),
    (("integrate", "--system", "liao", "--seed", "-1"), "--seed must not be negative"),
    (("verify", "--system", "liao", "--seed", "-1"), "--seed must not be negative"),
    (("integrate", "--system", "liao", "--until", "1" * 5000), "(5002 characters) was given"),
    (("integrate", "--system", "liao", "-p", f"d={'1' * 5000}"), "(5002 characters) was given"),
    (("integrate", "--system", "liao", "-p", "d=1e400"), "must be below 1e300"),
    (("integrate", "--system", "liao", "--out", "a" * 300), f"({315 if PATHS_ASK else 300} characters) cannot be used"),
    (("show", "a" * 300), "there is no run folder" if PATHS_ASK else "(300 characters) cannot be used"),
    (("sweep", "--system", "liao", "--over", "d=100,1e2"), "needs different values"),
    (("sweep", "--system", "liao", "--over", "seed=0,0.0"), "needs different values"),
    (("sweep", "--system", "chen", "--over", "alpha=0.5,2"), "takes lists, separated by ;"),
    (("sweep", "--system", "liao", "--stage", "prune", "--over", "seed=0..1"), "a single step after an earlier run"),
    (("sweep", "--system", "liao", "--over", "step_size=1,2"), "needs --method explicit or compressed"),
    (("sweep", "--system", "liao", "--over", "d=100,200", "--batch", "3"), "--batch has no meaning for the flow"),
    (("sweep", "--system", "liao", "--method", "compressed", "--over", "d=99,98", "--batch", "3"), "size is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "sentence"), HOPELESS, ids=[" ".join(w)[:60] for w, _ in HOPELESS])
def test_what_cannot_be_is_one_sentence_and_exit_code_2(words, sentence, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert command(list(words)) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert sentence in said[-1] and said[-1].startswith("odesim: ")


def test_sgd_of_few_steps_says_what_a_step_is(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    words = ["--method", "compressed", "--step-size", "0.1", "--batch", "10", "--until", "20", "--no-figures"]
    assert command(["simulate", "--system", "pmoe", *words]) == 0
    assert (
        "--until 20 is one step of SGD, because a step advances the clock by 20 (flow = eta m t"
        in capsys.readouterr().err
    )


def test_lists_are_swept_as_lists(tmp_path):
    wanted = sweep.Sweep.build("chen", {"alpha": ["0.5,2", "1,1"]}, {}, until=0.01)
    assert [cell.case.parameters.alpha for cell in wanted.cells] == [(0.5, 2.0), (1.0, 1.0)]


def test_sgd_is_swept_with_its_step_and_its_replicas(tmp_path, capsys):
    words = ["--method", "compressed", "--over", "step_size=0.01,0.02", "--over", "batch=4,8", "--seeds", "3"]
    sizes = ["-p", "m=3", "-p", "m_star=1", "-p", "d=50", "--until", "0.4", "--quiet", "--json"]
    assert command(["sweep", "--system", "liao", *words, *sizes, "--workers", "1", "--out", str(tmp_path / "s")]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [(cell["step_size"], cell["batch"]) for cell in answer["results"]] == [
        (0.01, 4), (0.01, 8), (0.02, 4), (0.02, 8)
    ]  # fmt: skip
    assert {cell["replicas"] for cell in answer["results"]} == {3.0}
    data = swept.load(tmp_path / "s")
    assert data["final_gamma2"].dims == ("step_size", "batch", "replica", "expert", "teacher")
    alone = odesim.simulate(
        "liao", method="compressed", step_size=0.02, batch=8, seeds=3, m=3, m_star=1, d=50, until=0.4, save_points=2
    )
    cell = data["final_gamma2"].sel(step_size=0.02, batch=8).values
    np.testing.assert_array_equal(cell, alone["gamma2"][:, -1])


def test_a_full_disk_leaves_no_half_written_dataset(tmp_path, monkeypatch):
    wanted = sweep.Sweep.build("liao", {"seed": (0, 1)}, {"m": 3, "m_star": 1, "d": 100}, until=1.0, save_points=2)
    data = sweep.run(wanted, tmp_path)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    for step in ("synchronise", "write_json", "write_manifest"):
        monkeypatch.setattr(swept, step, full)
        with pytest.raises(StorageError, match="the disk is full"):
            swept.save(wanted, data, tmp_path / "sweep")
        monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["cells"]


def test_a_sweep_that_cannot_be_kept_leaves_the_older_run(tmp_path, monkeypatch):
    odesim.integrate("liao", m=3, m_star=1, d=100, until=1.0, save_points=3).save(tmp_path / "run")
    wanted = sweep.Sweep.build("liao", {"seed": (0, 1)}, {"m": 3, "m_star": 1, "d": 100}, until=1.0, save_points=2)
    data = sweep.run(wanted, tmp_path / "run")
    monkeypatch.setattr(swept, "write_manifest", lambda *arguments: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(StorageError):
        swept.save(wanted, data, tmp_path / "run")
    assert odesim.load(tmp_path / "run").trajectory.time.size == 3
    monkeypatch.undo()
    swept.save(wanted, data, tmp_path / "run", keep=True)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "cells", "manifest.json", "summary.json", "sweep.nc",
    ]  # fmt: skip
    assert len(list((tmp_path / "run" / "cells").iterdir())) == 2


@pytest.fixture
def folders(tmp_path):
    """A folder of every kind, by name."""
    base = ["-p", "m=3", "-p", "m_star=1", "-p", "d=100", "--until", "1", "--quiet"]
    named = {name: str(tmp_path / name) for name in ("run", "sweep", "verdicts", "figures")}
    assert command(["integrate", "--system", "liao", *base, "--no-figures", "--out", named["run"]]) == 0
    assert command(["sweep", "--system", "liao", *base, "--over", "seed=0..1", "--out", named["sweep"]]) == 0
    assert command(["verify", "--system", "liao", "--claim", "eq-5-sol", "--quiet", "--out", named["verdicts"]]) == 0
    drawn = ["figures", "--system", "liao", "--only", "fig3b", "--quick", "--quiet", "--out", named["figures"]]
    assert command(drawn) == 0
    return {**named, "figures": f"{named['figures']}/liao"}


def test_every_kind_of_folder_is_known_to_every_command_that_can_tell_of_it(folders, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    for kind, words in {"run": "completed", "sweep": "2 cells", "verdicts": "confirmed", "figures": "fig3b"}.items():
        assert command(["show", folders[kind]]) == 0
        assert words in capsys.readouterr().out
        assert command(["show", folders[kind], "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["folder"] == folders[kind]
    for kind in ("sweep", "verdicts", "figures"):
        assert command(["plot", folders[kind]]) == (0 if kind == "sweep" else 2)
        assert kind == "sweep" or "not a run or a sweep" in capsys.readouterr().err
        assert command(["compare", folders[kind], folders["run"]]) == 2
        assert "not a run" in capsys.readouterr().err
        assert command(["integrate", "--from", folders[kind], "--stage", "prune"]) == 2
        assert "not a run" in capsys.readouterr().err
    assert command(["report", *folders.values(), "--out", "page.html"]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "sweep over seed" in page and "eq-5-sol" in page
    assert odesim.load(folders["run"]).outcome.kind == "completed"
    assert odesim.load(folders["sweep"])["outcome"].size == 2
    assert odesim.load(folders["verdicts"])[0]["claim"] == "eq-5-sol"


def test_what_was_changed_is_not_shown(folders, tmp_path, capsys):
    from pathlib import Path

    def edited(folder, name, change):
        path = Path(folder) / name
        before = path.read_bytes()
        path.write_bytes(change(before)) if change else path.unlink()
        for words in (["show", folder], ["report", folder, "--out", str(tmp_path / "r.html")]):
            assert command(words) == 2, (name, words)
            assert "damaged" in capsys.readouterr().err
        with pytest.raises(UsageError, match="damaged"):
            odesim.load(folder)
        path.write_bytes(before)

    def headline(content):
        return content.replace(b'"completed"', b'"stopped"')

    def unknown(content):
        return json.dumps({k: v for k, v in json.loads(content).items() if k != "files"}).encode()

    for change in (None, lambda content: content[: len(content) // 2]):
        edited(folders["run"], "trajectory.nc", change)
        edited(folders["run"], "summary.json", change)
        edited(folders["sweep"], "sweep.nc", change)
        edited(folders["verdicts"], "verdicts.json", change)
    edited(folders["run"], "manifest.json", headline)
    edited(folders["run"], "manifest.json", unknown)
    edited(folders["sweep"], "manifest.json", unknown)


def test_verdicts_of_another_request_are_never_replaced(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one, two = (["verify", "--system", "liao", "--quiet", "--claim", claim] for claim in ("eq-5-sol", "lem-29"))
    assert command(one) == 0 and command(two) == 0
    assert len(list((tmp_path / "runs").iterdir())) == 2
    assert command([*one, "--out", "mine"]) == 0
    before = (tmp_path / "mine" / "verdicts.json").read_bytes()
    for words in (two, one):
        assert command([*words, "--out", "mine"]) == 2
        assert "give --overwrite to replace them" in capsys.readouterr().err
    assert command([*two, "--out", "mine", "--resume"]) == 2
    assert (tmp_path / "mine" / "verdicts.json").read_bytes() == before
    assert command([*one, "--out", "mine", "--resume"]) == 0
    assert command([*two, "--out", "mine", "--overwrite"]) == 0
    manifest = json.loads((tmp_path / "mine" / "manifest.json").read_text())
    assert manifest["request"]["claims"] == ["lem-29"] and len(manifest["digest"]) == 12


@pytest.mark.parametrize("damage", [b"", b"{", b"\x89PNG", b"[1]", b'{"digest": 3}'])
def test_a_damaged_manifest_is_not_resumed_and_not_a_traceback(tmp_path, capsys, damage):
    words = ["--system", "liao", "-p", "m=2", "-p", "m_star=1", "-p", "d=50", "--until", "1", "--quiet"]
    words += ["--out", str(tmp_path / "s")]
    commands = {"sweep": [*words, "--over", "seed=0,1", "--workers", "1"], "integrate": [*words, "--no-figures"]}
    for name, asked in commands.items():
        assert command([name, *asked, "--overwrite"]) == 0
        (tmp_path / "s" / "manifest.json").write_bytes(damage)
        assert command([name, *asked, "--resume"]) == 2
        assert "a finished run whose manifest is damaged" in capsys.readouterr().err
