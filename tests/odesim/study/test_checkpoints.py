"""Weights of other programs: PyTorch's checkpoints, files of NumPy, and what is not safe to load."""

import pickle
import types

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError
from odesim.errors import MissingError
from odesim.study import checkpoints

D, K = 12, 2


@pytest.fixture
def network():
    """Snapshots of vectors and readouts with a teacher, and the model that they are of."""
    rng = np.random.default_rng(4)
    arrays = {"w": rng.normal(size=(3, K, D)), "a": rng.normal(size=(3, K)), "w_star": np.eye(D)[:1]}
    model = odesim.declare(
        student={"unit": "tanh(w)", "units": K, "output": "trained"}, teacher={}, training={"limit": "online"}
    )
    return model, {**arrays, "time": np.array([0.0, 1.0, 2.5])}


def same(one, two):
    for name in ("Q_ww", "M_ww", "a"):
        assert np.abs(np.asarray(one[name]) - np.asarray(two[name])).max() < 1e-12
    assert np.array_equal(one.time, two.time)


def test_files_of_numpy_are_snapshots_with_a_fixed_teacher(network, tmp_path):
    model, arrays = network
    files = []
    for k in range(3):
        np.savez(tmp_path / f"{k}.npz", **{"layer/w": arrays["w"][k].T, "head": arrays["a"][k][None], "step": k})
        files.append(tmp_path / f"{k}.npz")
    np.save(tmp_path / "target.npy", arrays["w_star"])
    names = {"layer/w": "w.T", "head": "a", "target": "w_star"}
    run = odesim.observe(model, [*files, tmp_path / "target.npy"], names=names, times=[0, 1, 2.5])
    same(run, odesim.observe(model, arrays))


def test_one_file_with_snapshots_needs_names_alone(network, tmp_path):
    model, arrays = network
    np.savez(
        tmp_path / "log.npz", kernel=np.swapaxes(arrays["w"], 1, 2), **{k: arrays[k] for k in ("a", "w_star", "time")}
    )
    names = {"kernel": "w.T", "a": "a", "w_star": "w_star"}
    same(odesim.observe(model, tmp_path / "log.npz", names=names), odesim.observe(model, arrays))


def test_checkpoints_of_pytorch_are_loaded(network, tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (the extra torch)")
    model, arrays = network
    files = []
    for k in range(3):
        state = {"fc1.weight": torch.tensor(arrays["w"][k]), "fc2.weight": torch.tensor(arrays["a"][k][None])}
        held = {"model": state, "optimiser": {"lr": 0.1}, "time": float(arrays["time"][k])}
        torch.save(held, tmp_path / f"{k}.pt")
        files.append(tmp_path / f"{k}.pt")
    torch.save({"weight": torch.tensor(arrays["w_star"])}, tmp_path / "teacher.pth")
    names = {"model.fc1.weight": "w", "model.fc2.weight": "a", "weight": "w_star"}
    same(odesim.observe(model, [*files, tmp_path / "teacher.pth"], names=names), odesim.observe(model, arrays))


def test_a_checkpoint_that_would_run_code_is_refused(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (the extra torch)")

    torch.save({"weight": types.SimpleNamespace(x=1)}, tmp_path / "unsafe.pt")
    with pytest.raises(UsageError, match="contains more than weights") as refused:
        checkpoints.read([tmp_path / "unsafe.pt"], {}, None, set())
    assert "\n" not in str(refused.value)
    (tmp_path / "broken.pt").write_bytes(b"PK\x03\x04nothing")
    with pytest.raises(UsageError, match=r"broken\.pt"):
        checkpoints.read([tmp_path / "broken.pt"], {}, None, set())


def test_pytorch_that_is_missing_is_named(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingError, match="pip install torch"):
        checkpoints.read([tmp_path / "a.pt"], {}, None, set())


def test_pickles_are_not_opened(tmp_path):
    path = tmp_path / "params.pkl"
    path.write_bytes(pickle.dumps({"w": np.eye(2)}))
    with pytest.raises(UsageError, match=r"could run code when it is loaded, .*: save the arrays with numpy\.savez"):
        checkpoints.read([path], {}, None, set())
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(UsageError, match=r"is not a valid \.npy file of numbers"):
        checkpoints.read([tmp_path / "objects.npy"], {}, None, set())


def test_what_does_not_fit_is_one_sentence(tmp_path):
    np.savez(tmp_path / "one.npz", w=np.eye(2), b=np.eye(2))
    np.savez(tmp_path / "two.npz", w=np.eye(2))
    np.savez(tmp_path / "three.npz", w=np.eye(3), b=np.eye(2))
    files = [tmp_path / "one.npz", tmp_path / "two.npz", tmp_path / "three.npz"]
    for given, names, words in (
        (files, {}, "two.npz lacks b, which other files have"),
        ([files[0], files[2]], {}, "w has different shapes in the files"),
        (files[:1], {"kernel": "w"}, "--map names kernel, but no file has this array; one.npz has b, w"),
        (files[:1], {"w": "v", "b": "v"}, "two arrays of one file are mapped to v"),
        ([tmp_path / "none.npz"], {}, "cannot read the file"),
    ):
        with pytest.raises(UsageError, match=words):
            checkpoints.read(given, names, None, set())
    with pytest.raises(UsageError, match="--map is ARRAY=SLOT"):
        checkpoints.assignments(["w"])
    with pytest.raises(UsageError, match="names and times are only for files"):
        odesim.observe("saad_solla_1995", {"w": np.eye(3)}, times=[0.0])
