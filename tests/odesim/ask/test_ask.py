"""Python and the command line ask the same functions: what one can have, the other can."""

import json

import numpy as np
import pytest

import odesim
from odesim.cli import _run as command
from odesim.errors import UsageError

LIAO = {"m": 4, "m_star": 2, "d": 100}
WORDS = [word for name, value in LIAO.items() for word in ("-p", f"{name}={value}")]


def test_all_stages_are_those_of_the_command(tmp_path):
    runs = odesim.integrate("liao", stage="all", until={"train": 40.0, "tune": 60.0}, seed=1, **LIAO)
    words = ["--stage", "all", "--until", "train=40,tune=60", "--seed", "1", "--no-figures", "--quiet"]
    assert command(["integrate", "--system", "liao", *WORDS, *words, "--out", str(tmp_path / "run")]) == 0
    stored = odesim.load(tmp_path / "run").stages
    assert [run.origin.stage for run in runs] == ["train", "prune", "tune"]
    for run, other in zip(runs, stored, strict=True):
        assert np.array_equal(run["gamma2"], other.trajectory["gamma2"])


def test_a_stored_run_is_continued(tmp_path):
    words = ["--until", "40", "--no-figures", "--quiet", "--out", str(tmp_path / "run")]
    assert command(["integrate", "--system", "liao", *WORDS, *words]) == 0
    for start in (str(tmp_path / "run"), odesim.load(tmp_path / "run")):
        (pruned,) = odesim.integrate(after=start, stage="prune")
        assert pruned.origin.stage == "prune" and pruned.origin.parameters["m"] == 4


def test_a_later_stage_keeps_the_seed_of_the_run_it_continues():
    run = odesim.integrate("liao", until=5.0, seed=7, **LIAO)
    assert run.continue_(until=6.0).origin.seed == 7
    assert run.continue_(until=6.0, seed=3).origin.seed == 3


def test_a_system_is_compared_as_the_command_compares_it(tmp_path, capsys):
    asked = {"step_size": 1e-3, "batch": 16, "seeds": 3, "until": 0.2, "rtol": 1e-6}
    found = odesim.compare("liao", **LIAO, **asked)
    words = [w for name, value in asked.items() for w in (f"--{name.replace('_', '-')}", str(value))]
    capsys.readouterr()
    out = ["--no-figures", "--quiet", "--json", "--out", str(tmp_path / "run")]
    assert command(["compare", "--system", "liao", *WORDS, *words, *out]) == 0
    assert json.loads(capsys.readouterr().out)["summary"] == json.loads(json.dumps(found.summary()))
    assert found.first.origin.options["rtol"] == 1e-6


def test_two_runs_are_compared_as_they_are():
    runs = [odesim.integrate("liao", **LIAO, until=1.0, rtol=rtol) for rtol in (1e-6, 1e-9)]
    assert odesim.compare(*runs).distance["gamma2"].max() < 1e-5
    for wrong in ((runs[0],), ("liao", runs[0])):
        with pytest.raises(UsageError, match="two runs, or a system"):
            odesim.compare(*wrong)
    with pytest.raises(UsageError, match="step_size= is missing"):
        odesim.compare("liao", **LIAO, batch=4)


def test_cells_of_a_sweep_are_single_runs_and_a_folder_keeps_them(tmp_path):
    request = {"m": 2, "m_star": 1, "tier": "riccati", "until": 5.0}
    data = odesim.sweep("liao", {"d": [100, 1000], "seed": [0, 1]}, folder=tmp_path / "kept", **request)
    for i, d in enumerate((100, 1000)):
        alone = odesim.integrate("liao", d=d, seed=1, save_points=2, **request)
        assert np.array_equal(data["final_gamma2"].values[i, 1], alone["gamma2"][-1])
    cells = list((tmp_path / "kept").rglob("*.npz"))
    assert len(cells) == 4
    again = odesim.sweep("liao", {"d": [100, 1000], "seed": [0, 1]}, folder=tmp_path / "kept", **request)
    assert again.equals(data)


def test_a_sweep_of_sgd_needs_its_options():
    with pytest.raises(UsageError, match="batch= is missing"):
        odesim.sweep("liao", {"d": [50, 60]}, method="compressed", step_size=0.1, until=0.2, m=2, m_star=1)
    with pytest.raises(UsageError, match="no meaning for the flow"):
        odesim.sweep("liao", {"d": [50, 60]}, batch=3, m=2, m_star=1)
    data = odesim.sweep(
        "liao", {"step_size": [0.1, 0.05], "d": [50]}, method="compressed", batch=4, until=0.2, m=2, m_star=1
    )
    assert data["final_gamma2"].dims[:2] == ("step_size", "d")


def test_verdicts_of_several_processes_are_those_of_one():
    one, two = (odesim.verify("liao", ["prop-S", "lem-29"], workers=workers) for workers in (1, 2))
    assert [(v.claim, v.variant, v.answer, v.estimate) for v in one] == [
        (v.claim, v.variant, v.answer, v.estimate) for v in two
    ]


def test_a_report_is_written_once(tmp_path):
    words = ["--until", "1", "--no-figures", "--quiet", "--out", str(tmp_path / "run")]
    assert command(["integrate", "--system", "liao", *WORDS, *words]) == 0
    page = odesim.report([tmp_path / "run"], tmp_path / "page.html")
    assert "liao" in page.read_text(encoding="utf-8")
    with pytest.raises(UsageError, match="exists"):
        odesim.report([tmp_path / "run"], page)


def test_a_figure_that_is_not_there_is_named():
    with pytest.raises(UsageError, match="no figure"):
        odesim.figures("liao", only="nothing")
