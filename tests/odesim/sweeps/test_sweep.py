"""Sweeps: cells equal single runs whatever the number of processes, nothing is lost, mistakes are sentences."""

import math

import numpy as np
import pytest
import xarray

import odesim
from derivations.contract import UsageError
from odesim.errors import MissingError
from odesim.flow import solve
from odesim.machine import executor
from odesim.request.case import Case
from odesim.request.parse import expression, parse_ranges
from odesim.sweeps import cells, sweep, swept

BASE = {"m": 4, "m_star": 2}
OVER = {"d": (150, 1000), "seed": (0, 1, 2)}


def small(**changes):
    """A sweep of six short runs."""
    return sweep.Sweep.build("liao", OVER, BASE, until="0.5*sqrt(d)", save_points=2, rtol=1e-6, **changes)


def test_every_cell_is_the_single_run_of_its_case(tmp_path):
    data = sweep.run(small(), tmp_path)
    assert data["T_gamma2"].dims == ("d", "seed", "expert", "teacher")
    assert data["d"].values.tolist() == [150, 1000]
    assert data["outcome_time"].values[1] == pytest.approx(np.full(3, 0.5 * math.sqrt(1000)))
    case = Case.build("liao", {**BASE, "d": 1000}, seed=2, until=0.5 * math.sqrt(1000), rtol=1e-6, save_points=2)
    alone = solve.solve(case)
    assert np.array_equal(data["T_gamma2"].sel(d=1000, seed=2).values, alone["T_gamma2"])
    assert np.array_equal(data["final_gamma2"].sel(d=1000, seed=2).values, alone["gamma2"][-1])
    assert not np.array_equal(data["final_gamma2"].sel(d=1000, seed=1).values, alone["gamma2"][-1])


def test_two_processes_give_what_one_gives(tmp_path):
    alone = sweep.run(small(), tmp_path / "one")
    shared = sweep.run(small(), tmp_path / "two", workers=2)
    # Not bit by bit: BLAS adds in an order that depends on where an array happens to lie.
    xarray.testing.assert_allclose(*(data.drop_vars("evaluations") for data in (alone, shared)), rtol=1e-7)
    assert (alone["outcome"] == shared["outcome"]).all() and alone.attrs == shared.attrs


def test_a_sweep_that_was_stopped_computes_only_what_is_missing(tmp_path, monkeypatch):
    def stop(done, cells):
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep.run(small(), tmp_path, report=stop)
    kept = sorted(path.name for path in (tmp_path / "cells").iterdir())
    assert len(kept) == 4
    # A cell that was damaged is computed again: a disk that failed, or a file that was edited.
    damaged = tmp_path / "cells" / kept[0]
    damaged.write_bytes(damaged.read_bytes()[:-50])
    np.savez(tmp_path / "cells" / kept[1], other=np.ones(3))
    computed = []
    real = sweep.compute
    monkeypatch.setattr(sweep, "compute", lambda *words: computed.append(words) or real(*words))
    data = sweep.run(small(), tmp_path)
    assert len(computed) == 4
    assert (data["outcome"] == "completed").all()


def test_a_finished_sweep_is_one_dataset_and_a_manifest(tmp_path):
    wanted = small()
    data = sweep.run(wanted, tmp_path)
    swept.save(wanted, data, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.json", "summary.json", "sweep.nc"]
    assert swept.load(tmp_path).equals(data)
    assert swept.counts(data) == {"completed": 6}
    header, rows, statistic = swept.table(data)
    assert header[0] == "d"
    assert [row[0] for row in rows] == [150, 1000]
    at = header.index("outcome_time")
    end = f"{0.5 * math.sqrt(1000):.6g}"
    assert rows[1][at] == f"{end} [{end}, {end}]" and statistic == "median [least, greatest] over 3 seeds"


def test_sizes_may_be_swept_and_arrays_of_different_shapes_are_left_out(tmp_path):
    wanted = sweep.Sweep.build("liao", {"m": (3, 4)}, {"m_star": 1, "d": 100}, until=1.0, save_points=2)
    data = sweep.run(wanted, tmp_path)
    assert "T_gamma2" not in data
    assert data["loss_final"].dims == ("m",)


@pytest.mark.parametrize(
    ("over", "options", "sentence"),
    [
        ({"dd": (1, 2)}, {}, "no parameter 'dd'; did you mean 'd'"),
        ({"m": (3, 3)}, {}, "--over m needs different values"),
        ({"m_star": (1, 9)}, {}, "m_star"),
        ({}, {}, "at least one --over"),
        ({"seed": (0, 1)}, {"seed": 4}, "seed is swept and fixed"),
        ({"d": (100, 200)}, {"until": "2*sqrt(e)"}, "expected numbers, parameters, sqrt, log or exp, got 'e'"),
        ({"d": (100, 200)}, {"until": "-d"}, "its value is -100"),
    ],
)
def test_mistakes_are_sentences_before_anything_is_computed(over, options, sentence):
    with pytest.raises(UsageError, match=sentence.replace("(", "\\(").replace("*", "\\*")):
        sweep.Sweep.build("liao", over, {k: v for k, v in BASE.items() if k not in over}, **options)


def test_a_scheduler_that_is_not_there_is_a_missing_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(executor, "PATIENCE", "1s")
    with pytest.raises(MissingError):
        sweep.run(small(), tmp_path, scheduler="tcp://127.0.0.1:1", workers=2)


def test_expressions_are_arithmetic_in_the_parameters_and_nothing_else():
    numbers = {"d": 10**4, "m": 3, "init": "random"}
    assert expression("2*sqrt(d) + log(exp(m)) ** 2 / 3 - 1", numbers, "--until") == pytest.approx(202.0)
    assert expression(7, numbers, "--until") == 7.0
    for text in ("init", "__import__('os')", "d.real", "sqrt(d, d)", "1/0", "9**9**9", "d if m else 1", "[1]", "1e999"):
        with pytest.raises(UsageError, match="is not a positive number"):
            expression(text, numbers, "--until")


def test_ranges_count_and_semicolons_separate_lists():
    assert parse_ranges(["d=1e3,1e4", "seed=0..3", "signs=1,-1;1,1"]) == {
        "d": ["1e3", "1e4"],
        "seed": ["0", "1", "2", "3"],
        "signs": ["1,-1", "1,1"],
    }
    for wrong in ("d", "seed=3..1", "seed=a..b"):
        with pytest.raises(UsageError):
            parse_ranges([wrong])


def test_a_report_reads_the_files_of_a_sweep_once(tmp_path, monkeypatch):
    from odesim.show import report
    from odesim.store import folder

    wanted = sweep.Sweep.build("liao", {"seed": (0, 1)}, {**BASE, "d": 100}, until=1.0, save_points=2)
    swept.save(wanted, sweep.run(wanted, tmp_path), tmp_path)
    read, real = [], folder.sha256
    monkeypatch.setattr(folder, "sha256", lambda path: read.append(path.name) or real(path))
    assert report.read_sweep(str(tmp_path)).outcome == "2 cells"
    assert sorted(read) == ["summary.json", "sweep.nc"]


def test_a_cell_that_holds_something_else_is_computed_again(tmp_path):
    path = tmp_path / "cell.npz"
    arrays = {
        "a": np.arange(6.0).reshape(2, 3),
        "about": np.asarray("{}"),
        "n": np.asarray(2),
        "none": np.zeros((0, 3)),
    }
    cells.keep(path, arrays)
    again = cells.stored(path)
    assert again is not None and set(again) == set(arrays)
    for name, array in arrays.items():
        assert again[name].dtype == array.dtype and again[name].shape == array.shape and (again[name] == array).all()
    whole = path.read_bytes()
    for damaged in (
        whole[: len(whole) // 2],
        whole.replace(np.float64(5.0).tobytes(), np.float64(6.0).tobytes(), 1),
        b"",
    ):
        path.write_bytes(damaged)
        assert cells.stored(path) is None
    foreign = ("3", "null", '[["x", "foo", [1]]]', '[["x", "<f8", [1.5]]]', '[["x", "<f8", [100]]]', "no JSON")
    for places in foreign:
        np.savez(path, about="{}", places=places, numbers=np.zeros(8, np.uint8))
        assert cells.stored(path) is None
    np.savez(path, **arrays)  # the form of before
    assert set(cells.stored(path)) == set(arrays)


def test_a_folder_of_a_sweep_from_python_has_the_picture_of_the_command(tmp_path):
    from odesim.cli import main

    over = {"d": [100, 1000], "seed": [0, 1]}
    odesim.sweep("liao", over, folder=tmp_path / "python", m=2, m_star=1, until=5.0)
    words = ["sweep", "--system", "liao", "--over", "d=100,1000", "--over", "seed=0,1", "-p", "m=2", "-p", "m_star=1"]
    with pytest.raises(SystemExit):
        main([*words, "--until", "5", "--workers", "1", "--quiet", "--out", str(tmp_path / "command")])
    both = [(tmp_path / name / "sweep.png").read_bytes() for name in ("python", "command")]
    assert both[0] == both[1]
    odesim.sweep("liao", over, folder=tmp_path / "bare", pictures=False, m=2, m_star=1, until=5.0)
    assert not (tmp_path / "bare" / "sweep.png").exists()
