"""A run folder is there completely, with hashes that hold, or it is not there at all."""

import dataclasses
import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

from odesim import store
from odesim.errors import StorageError, UsageError
from odesim.request.case import Case
from odesim.show import plot
from odesim.version import __version__


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch):
    """Drawing has tests of its own: here a picture is a file."""

    def draw(trajectory, folder):
        path = Path(folder) / "run.png"
        path.write_bytes(b"a picture")
        return [path]

    monkeypatch.setattr(plot, "draw", draw)


@pytest.fixture
def case(tiny):
    return Case.build(tiny, save_points=5)


def finish(case, tiny_run, folder):
    """Save the run of a case into `folder`."""
    return store.save(tiny_run(case), case, folder, {"solve": 0.1}, plot.draw)


def leftovers(folder):
    """The files next to a run folder."""
    return sorted(entry.name for entry in folder.parent.iterdir() if entry != folder)


def test_a_stored_run_is_read_back_as_it_was(case, tiny_run, tmp_path):
    run = store.load(finish(case, tiny_run, tmp_path / "run"))
    expected = tiny_run(case)
    np.testing.assert_array_equal(run["y"], expected["y"])
    np.testing.assert_array_equal(run["start"], expected["start"])
    assert set(run.trajectory.state) == {"y"}
    assert set(run.trajectory.extras) == {"start"}
    assert run.trajectory.state["y"].dims == ("time", "entry")
    assert run.trajectory.state["y"].meaning == "what decays"
    assert run.outcome == expected.outcome
    assert run.trajectory.origin.parameters["signs"] == [1, -1]
    assert run.digest == case.digest
    assert run.dataset().sizes == {"time": 5, "entry": 3}


def test_the_manifest_says_where_the_numbers_come_from(case, tiny_run, tmp_path):
    folder = finish(case, tiny_run, tmp_path / "run")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["request"] == case.request()
    assert manifest["schema"] == 1
    assert manifest["seed"] == 0
    assert {"python", "numpy", "jax", "odesim", "diffrax"} <= set(manifest["versions"])
    assert set(manifest["files"]) == {"trajectory.nc", "summary.json", "run.png"}
    assert {"solve", "store", "draw"} == set(manifest["wall_times"])
    assert manifest["statistics"] == {"steps": 7, "rejected": 0}
    assert manifest["precision"] == "float64"


def test_json_files_hold_no_nan(case, tiny_run, tmp_path):
    folder = finish(case, tiny_run, tmp_path / "run")
    assert "NaN" not in (folder / "summary.json").read_text()
    assert json.loads((folder / "summary.json").read_text())["never"] is None


def test_the_trajectory_names_its_request(case, tiny_run, tmp_path):
    import xarray

    folder = finish(case, tiny_run, tmp_path / "run")
    with xarray.open_dataset(folder / "trajectory.nc", engine="h5netcdf") as dataset:
        assert dataset.attrs["digest"] == case.digest
        assert json.loads(dataset.attrs["versions"])["odesim"] == __version__
        assert dataset["y"].dims == ("time", "entry")


def test_the_file_holds_what_xarray_would_have_written(case, tiny_run, tmp_path):
    import xarray

    from odesim.request.trajectory import Variable
    from odesim.store.netcdf import netcdf

    run = tiny_run(case)
    kept = Variable(("seed", "entry"), np.array([[True, False, True]]), "a switch")
    count = Variable(("seed", "time"), np.arange(5)[None], "a count")
    words = Variable(("entry",), np.array(["one", "two", "thr\u00e9e"]), "names")
    run = dataclasses.replace(
        run,
        state={**run.state, "count": count},
        extras={**run.extras, "kept": kept, "words": words},
        step=np.arange(5) * 10,
    )
    ours, theirs = tmp_path / "ours.nc", tmp_path / "theirs.nc"
    ours.write_bytes(netcdf(run, {"digest": case.digest, "seed": None}))
    run.dataset().assign_attrs(digest=case.digest).to_netcdf(theirs, engine="h5netcdf")
    written, expected = (xarray.load_dataset(path, engine="h5netcdf") for path in (ours, theirs))
    xarray.testing.assert_identical(written, expected)
    assert {name: v.dtype for name, v in written.variables.items()} == {
        name: v.dtype for name, v in expected.variables.items()
    }
    assert written["kept"].dtype == bool and set(written.coords) == {"time", "step", "entry"}


def test_a_finished_default_folder_is_replaced(case, tiny_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = finish(case, tiny_run, store.prepare(case).folder)
    (first / "notes.txt").write_text("mine")
    second = finish(case, tiny_run, store.prepare(case).folder)
    assert first == second == tmp_path / "runs" / f"tiny-{case.digest}"
    assert (second / "notes.txt").read_text() == "mine"
    assert leftovers(second) == []


def test_an_explicit_finished_folder_is_refused(case, tiny_run, tmp_path):
    folder = finish(case, tiny_run, tmp_path / "run")
    with pytest.raises(UsageError, match="contains a finished run: give --overwrite to replace it"):
        store.prepare(case, folder)
    assert store.prepare(case, folder, overwrite=True).stored is None


def test_resume_returns_the_finished_run_of_the_same_request_only(case, tiny, tiny_run, tmp_path):
    folder = finish(case, tiny_run, tmp_path / "run")
    assert store.prepare(case, folder, resume=True).stored.digest == case.digest
    with pytest.raises(UsageError, match="contains the finished run of another request"):
        store.prepare(Case.build(tiny, seed=1), folder, resume=True)


def test_empty_and_unfinished_folders_are_used(case, tiny_run, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    assert store.prepare(case, folder).folder == folder
    (folder / "trajectory.nc").write_bytes(b"half")
    store.prepare(case, folder)
    assert store.load(finish(case, tiny_run, folder)).digest == case.digest


def test_a_folder_with_the_files_of_somebody_else_is_refused(case, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match=r"is not a run folder: it contains thesis\.tex"):
        store.prepare(case, tmp_path)


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        ("file", "is a file, but a run needs a folder"),
        ("file/run", "cannot be written"),
    ],
)
def test_folders_that_cannot_be_made_are_refused_before_computing(case, tmp_path, out, sentence):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=sentence):
        store.prepare(case, tmp_path / out)


def test_a_folder_that_cannot_be_written_is_refused_before_computing(case, tmp_path, monkeypatch):
    def refuse(**_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(UsageError, match="cannot be written \\(Permission denied\\)"):
        store.prepare(case, tmp_path / "run")


def test_overwrite_and_resume_exclude_each_other(case, tmp_path):
    with pytest.raises(UsageError, match="exclude each other"):
        store.prepare(case, tmp_path / "run", overwrite=True, resume=True)


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    "target", ["os.replace", "os.fsync", "odesim.store.write.file_hashes", "odesim.show.plot.draw"]
)
@pytest.mark.parametrize("failure", [FULL, KeyboardInterrupt()])
@pytest.mark.parametrize("finished", [False, True])
def test_whatever_fails_while_writing_leaves_the_folder_as_it_was(
    case, tiny_run, tmp_path, monkeypatch, target, failure, finished
):
    folder = tmp_path / "here" / "run"
    folder.parent.mkdir()
    if finished:
        finish(case, tiny_run, folder)
    if target == "odesim.store.write.file_hashes":
        target = "odesim.store.manifest.file_hashes"

    def fail(*_, **__):
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr(target, fail)
        with pytest.raises((StorageError, KeyboardInterrupt)) as caught:
            finish(case, tiny_run, folder)
    if failure is FULL:
        assert "the disk is full" in str(caught.value)
    assert leftovers(folder) == []
    assert folder.exists() == finished
    if finished:
        assert store.load(folder).digest == case.digest


def test_the_old_run_comes_back_when_the_last_rename_fails(case, tiny_run, tmp_path, monkeypatch):
    folder = finish(case, tiny_run, tmp_path / "here" / "run")
    rename, calls = os.replace, []

    def fail_once(source, target):
        if Path(target) == folder:
            calls.append(source)
            if len(calls) == 1:
                raise FULL
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail_once)
        with pytest.raises(StorageError):
            finish(case, tiny_run, folder)
    assert len(calls) == 2
    assert store.load(folder).digest == case.digest
    assert leftovers(folder) == []


def test_a_folder_that_cannot_be_moved_is_filled_with_the_manifest_last(case, tiny_run, tmp_path, monkeypatch):
    folder = tmp_path / "mount"
    folder.mkdir()
    store.Checkpoint(folder, case.digest).write({"y": np.ones(2)}, {})
    moved, rename = [], os.replace
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == folder)

    def note(source, target):
        if Path(target).parent == folder:
            moved.append(Path(target).name)
        rename(source, target)

    monkeypatch.setattr(os, "replace", note)
    finish(case, tiny_run, folder)
    assert moved[-1] == "manifest.json"
    assert sorted(p.name for p in folder.iterdir()) == [
        "manifest.json",
        "run.png",
        "summary.json",
        "trajectory.nc",
    ]
    assert store.load(folder).digest == case.digest


def test_pictures_that_fail_do_not_cost_the_numbers(case, tiny_run, tmp_path, monkeypatch, capsys):
    def fail(trajectory, folder):
        raise ValueError("no ink")

    monkeypatch.setattr(plot, "draw", fail)
    folder = finish(case, tiny_run, tmp_path / "run")
    assert "the pictures could not be drawn (no ink)" in capsys.readouterr().err
    assert set(store.load(folder).manifest["files"]) == {"trajectory.nc", "summary.json"}


def test_pictures_are_redrawn_and_their_hashes_renewed(case, tiny_run, tmp_path, monkeypatch):
    folder = finish(case, tiny_run, tmp_path / "run")

    def draw(trajectory, folder):
        path = Path(folder) / "other.png"
        path.write_bytes(b"another picture")
        return [path]

    monkeypatch.setattr(plot, "draw", draw)
    assert store.redraw(store.load(folder), plot.draw) == [folder / "other.png"]
    assert set(store.load(folder).manifest["files"]) == {"trajectory.nc", "summary.json", "other.png"}
    assert not (folder / "run.png").exists()


def test_damaged_runs_are_refused(case, tiny_run, tmp_path):
    folder = finish(case, tiny_run, tmp_path / "run")
    (folder / "summary.json").write_text('{"final": 1}')
    with pytest.raises(UsageError, match=r"summary\.json was changed after the run"):
        store.load(folder)
    (folder / "trajectory.nc").unlink()
    with pytest.raises(UsageError, match="damaged"):
        store.load(folder)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema": "x"}'])
def test_a_manifest_that_cannot_be_read_is_refused(case, tiny_run, tmp_path, content):
    folder = finish(case, tiny_run, tmp_path / "run")
    (folder / "manifest.json").write_text(content)
    with pytest.raises(UsageError, match="damaged"):
        store.load(folder)


def test_a_run_of_a_later_version_is_refused(case, tiny_run, tmp_path):
    folder = finish(case, tiny_run, tmp_path / "run")
    (folder / "manifest.json").write_text('{"schema": 99}')
    with pytest.raises(UsageError, match="has schema 99, but this odesim reads up to 1"):
        store.load(folder)


def test_folders_without_a_manifest_are_no_runs(tmp_path):
    with pytest.raises(UsageError, match=r"has no manifest\.json"):
        store.load(tmp_path)
    with pytest.raises(UsageError, match="there is no run folder"):
        store.load(tmp_path / "nowhere")


def test_a_checkpoint_is_read_back_and_goes_with_the_finished_run(case, tiny_run, tmp_path):
    folder = tmp_path / "run"
    checkpoint = store.Checkpoint(folder, case.digest)
    assert checkpoint.read() is None
    checkpoint.write({"y": np.arange(3.0)}, {"time": 1.5})
    checkpoint.write({"y": np.arange(4.0)}, {"time": 2.5})
    arrays, meta = checkpoint.read()
    np.testing.assert_array_equal(arrays["y"], np.arange(4.0))
    assert meta == {"time": 2.5}
    assert store.prepare(case, folder, resume=True).stored is None
    assert checkpoint.path.exists()
    finish(case, tiny_run, folder)
    assert not checkpoint.path.exists()
    assert leftovers(folder) == []


def test_the_checkpoint_of_another_request_is_refused(case, tmp_path):
    store.Checkpoint(tmp_path, "another").write({"y": np.ones(1)}, {})
    with pytest.raises(UsageError, match="belongs to another request"):
        store.Checkpoint(tmp_path, case.digest).read()


def test_a_broken_checkpoint_is_refused(case, tmp_path):
    (tmp_path / "checkpoint.npz").write_bytes(b"half")
    with pytest.raises(UsageError, match="is a damaged checkpoint"):
        store.Checkpoint(tmp_path, case.digest).read()


def test_a_full_disk_keeps_the_last_checkpoint(case, tmp_path, monkeypatch):
    checkpoint = store.Checkpoint(tmp_path, case.digest)
    checkpoint.write({"y": np.ones(1)}, {"time": 1})

    def fail(*_):
        raise FULL

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(StorageError, match="the disk is full"):
        checkpoint.write({"y": np.zeros(1)}, {"time": 2})
    assert checkpoint.read()[1] == {"time": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["checkpoint.npz"]


def test_without_resume_an_old_checkpoint_goes(case, tmp_path):
    store.Checkpoint(tmp_path, "another").write({"y": np.ones(1)}, {})
    store.prepare(case, tmp_path)
    assert list(tmp_path.iterdir()) == []
