"""A system outside the package works in every command, and in processes that have never heard of it."""

import dataclasses
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import derivations
import odesim
from derivations import outside
from odesim.errors import UsageError
from odesim.request.case import Case, find_system
from odesim.show import figures
from odesim.sweeps import sweep

ROOT = Path(__file__).parents[2]
FAST = ["--quiet", "--save-points", "5", "-p", "d=20"]


def fresh(*words, path=(), cwd=None):
    """The command in a new process that knows our sources and, beside them, the folders of `path`."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, *path)))}
    call = [sys.executable, "-m", "odesim", *map(str, words)]
    return subprocess.run(call, env=environment, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


def integrated(asked, system, *words):
    return Path(json.loads(asked("integrate", "-s", system, *FAST, *words, "--json"))["folder"])


def test_the_folder_of_a_run_is_plotted_in_a_fresh_process(asked, teacher, tmp_path):
    folder = integrated(asked, teacher, "--no-figures")
    request = json.loads((folder / "manifest.json").read_text())["request"]
    assert request["system"] == f"{teacher}:SYSTEM" and folder.name.startswith("teacher-")
    drawn = fresh("plot", tmp_path / folder, "--system", f"{teacher}:SYSTEM", cwd=tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    assert (folder / "overlap.png").is_file()  # by the system's own picture
    run = odesim.load(folder)
    rho = run["rho"]
    assert rho[-1] == pytest.approx(1 - (1 - rho[0]) * np.exp(-5.0), abs=1e-7)
    assert odesim.predict(run, {"t": np.array([2.0])})["output"].values[:, 0] == pytest.approx(2 * rho[-1])
    assert sorted(odesim.linearise(run).eigenvalues.real) == pytest.approx([-2.0, -2.0, -1.0, -1.0])


def test_commands_that_look_and_go_on(asked, teacher):
    folder = integrated(asked, teacher, "--until", "1")
    assert (folder / "overlap.png").is_file()
    assert f"{teacher}:SYSTEM" in asked("show", folder)
    later = asked("integrate", "--from", folder, "--until", "2", "--quiet", "--json", "--stage", "train")
    again = asked("integrate", "--from", folder, "-s", teacher / "__init__.py", "--until", "2", "--quiet", "--json")
    assert json.loads(later)["folder"] == json.loads(again)["folder"]
    assert "input dimension" in asked("systems", teacher)
    assert "On One Teacher" in asked("cite", "-s", teacher)
    for form, word in (("text", "linear students of one"), ("latex", "documentclass"), ("python", "def rates"),
                       ("kernels", "def pull")):  # fmt: skip
        assert word in asked("derive", "-s", teacher, "--format", form)


def test_simulations_and_their_comparison_with_the_flow(asked, teacher):
    sgd = ["-s", teacher, *FAST, "--step-size", "0.01", "--batch", "10", "--seeds", "3", "--until", "1", "--json"]
    for method in ("compressed", "explicit"):
        assert json.loads(asked("simulate", "--method", method, *sgd))["outcome"]["kind"] == "completed"
    found = Path(json.loads(asked("compare", *sgd))["folder"])
    distances = odesim.load(found)
    assert json.loads((found / "manifest.json").read_text())["request"]["system"] == f"{teacher}:SYSTEM"
    assert np.nanmax(distances["distance_rho"]) < 0.2 and (found / "comparison.png").is_file()


def test_a_sweep_by_two_processes(asked, teacher):
    for more in ([], ["--method", "compressed", "--step-size", "0.01", "--batch", "5", "-p", "level=0.5"]):
        words = ["--over", "d=10,20", "--over", "seed=0,1", "--until", "1", "--workers", "2", "--quiet", *more]
        folder = Path(asked("sweep", "-s", teacher, *words).strip())
        data = odesim.load(folder)
        assert data.attrs["system"] == f"{teacher}:SYSTEM" and data["outcome"].size == 4
        assert "4 cells: 4 completed" in asked("show", folder)


def test_claims_by_two_processes_and_their_report(asked, teacher, tmp_path):
    told = json.loads(asked("verify", "-s", teacher, "--workers", "2", "--quiet", "--json"))
    assert [verdict["answer"] for verdict in told["verdicts"]] == ["confirmed", "confirmed"]
    assert told["system"] == f"{teacher}:SYSTEM" and Path(told["folder"]).name.startswith("verify-teacher-quick-")
    assert "lemma-2" in asked("verify", "-s", teacher, "--list")
    assert [name for _, name, _ in figures.modules("derivations.liao:SYSTEM", "fig3b")] == ["fig3b"]
    pictures = asked("figures", "-s", teacher, "--quiet", "--out", "drawn").split()
    assert pictures == ["drawn/teacher/overlaps.png"]
    made = fresh("report", told["folder"], "drawn/teacher", "--out", "page.html", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    page = (tmp_path / "page.html").read_text()
    assert "printed as its square" in page and "data:image/png" in page


def test_a_configuration_names_its_system_relative_to_itself(asked, teacher, tmp_path):
    (teacher.parent / "request.toml").write_text('system = "teacher/__init__.py"\nuntil = 1\n[parameters]\nd = 7\n')
    answer = json.loads(
        asked("integrate", "-s", teacher, "--config", teacher.parent / "request.toml", "--dry-run", "--json")
    )
    assert answer["request"]["parameters"]["d"] == 7
    (tmp_path / "other.toml").write_text('system = "liao"\n')
    assert "is for system 'liao'" in asked("integrate", "-s", teacher, "--config", "other.toml", code=2)


def test_one_file_alone_and_an_attribute_of_another_name(teacher, tmp_path):
    text = (teacher / "__init__.py").read_text()
    file = tmp_path / "alone.py"
    file.write_text(text.replace("SYSTEM = System(", "OTHER = System("))
    done = fresh("integrate", "-s", "alone.py:OTHER", *FAST, "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    request = json.loads((tmp_path / "run" / "manifest.json").read_text())["request"]
    assert request["system"] == f"{file}:OTHER"
    again = fresh("plot", tmp_path / "run", "-s", f"{file}:OTHER", cwd=teacher)
    assert again.returncode == 0 and (tmp_path / "run" / "overlap.png").is_file(), again.stderr


def test_an_installed_package_registers_its_system(teacher, tmp_path):
    about = tmp_path / "outsider-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: outsider\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[odesim.systems]\ngiven = teacher:SYSTEM\n")
    path = (tmp_path, teacher.parent)
    assert fresh("systems", "--quiet", path=path).stdout.split() == sorted([*derivations.folders(), "given"])
    done = fresh("sweep", "-s", "given", "--over", "d=10,20", "--until", "1", "--workers", "2", "--out", "all",
                 "--quiet", path=path, cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    cell = json.loads((tmp_path / "all" / "manifest.json").read_text())["first_cell"]
    assert cell["system"] == "given"
    by_module = fresh("integrate", "-s", "teacher:SYSTEM", "--dry-run", "--json", path=path)
    assert json.loads(by_module.stdout)["request"]["system"] == "teacher:SYSTEM"


def test_objects_are_systems_too(teacher, tmp_path):
    system = odesim.system(f"{teacher}:SYSTEM")
    assert derivations.reference(system) == f"{teacher}:SYSTEM" and system is find_system(str(teacher / "__init__.py"))
    run = odesim.integrate(system, d=20, until=1.0, save_points=3)
    sgd = odesim.simulate(system, method="compressed", step_size=0.01, batch=10, d=20, until=1.0, save_points=3)
    assert odesim.compare(run, sgd).distance["rho"].shape == (1, 3)
    assert [v.answer for v in odesim.verify(system, ["lemma-1"])] == ["confirmed"]
    assert odesim.derive(system).startswith("teacher")
    over = sweep.Sweep.build(system, {"seed": (0, 1)}, {"d": 9}, until=1.0, save_points=2)
    assert sweep.run(over, tmp_path / "cells", workers=2)["outcome"].size == 2


def test_an_object_is_found_where_it_stands(teacher):
    odesim.system(str(teacher))
    module = importlib.import_module("teacher")
    module.SECOND = dataclasses.replace(module.SYSTEM, name="second")
    try:
        assert outside.located(module.SECOND) == f"{teacher / '__init__.py'}:SECOND"
        assert Case.build(module.SECOND).request()["system"] == f"{teacher / '__init__.py'}:SECOND"
    finally:
        del module.SECOND


def test_a_system_in_no_file_works_here_and_is_refused_elsewhere(teacher, tmp_path):
    made = dataclasses.replace(odesim.system(str(teacher)), name="passing")
    run = odesim.integrate(made, d=9, until=1.0, save_points=3)
    assert run.origin.system == "passing" and odesim.system("passing") is made
    over = sweep.Sweep.build(made, {"seed": (0, 1)}, {"d": 9}, until=1.0, save_points=2)
    assert sweep.run(over, tmp_path / "one", workers=1)["outcome"].size == 2
    with pytest.raises(UsageError, match=r"system passing is not in a file, .* write it into a file"):
        sweep.run(over, tmp_path / "two", workers=2)
    changed = dataclasses.replace(odesim.system("liao"), title="another")
    assert derivations.reference(changed) == "liao (made here)"  # its runs are not taken for those of liao


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("liaoo", "unknown system 'liaoo'; did you mean 'liao'?"),
        (
            "no_such_module:SYSTEM",
            "there is no module no_such_module in this installation; install it, or give the path of its file",
        ),
        ("odesim.request.case:SYSTEM", "odesim.request.case has no system 'SYSTEM'; it has none"),
        ("derivations.liao:LIAO", "derivations.liao has no system 'LIAO'; it has SYSTEM"),
        ("nowhere/file.py", "there is no file"),
        ("broken.py", "cannot be imported: ZeroDivisionError: division by zero"),
        ("needs.py", "needs the module no_such_library, which cannot be imported here"),
        ("two words.py", "cannot be imported as 'two words'"),
        ("json.py", "is called 'json' too; rename the file"),
    ],
)
def test_a_reference_that_leads_nowhere_is_one_sentence(asked, reference, sentence, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    texts = {"broken": "1 / 0", "needs": "import no_such_library", "two words": "", "json": "SYSTEM = None"}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    said = asked("integrate", "-s", reference, code=2)
    assert sentence in said and len(said.strip().splitlines()) == 1
    with pytest.raises(UsageError):
        odesim.system(reference)


def test_two_packages_cannot_register_one_name(monkeypatch):
    entries = [importlib.metadata.EntryPoint("same", value, outside.GROUP) for value in ("a:SYSTEM", "b:SYSTEM")]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: entries)
    outside.registered.cache_clear()
    try:
        with pytest.raises(UsageError, match="two installed packages register a system 'same'"):
            derivations.names()
    finally:
        monkeypatch.undo()
        outside.registered.cache_clear()


def test_the_requests_of_our_systems_are_what_they_were():
    digests = {"chen": "cbbfe117c8b3", "kawata": "aa78ac7d4a3f", "liao": "904f7e8e0bbe", "pmoe": "9bc3316f771f",
               "pruning": "d97060992095"}  # fmt: skip
    for name, digest in digests.items():
        assert derivations.reference(odesim.system(f"derivations.{name}:SYSTEM")) == name
        # without a number of saved times, kawata and pruning also save early ones: another request
        assert Case.build(name, save_points=201).digest == digest
        assert Case.build(odesim.system(name)).request()["system"] == name
