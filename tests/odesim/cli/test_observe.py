"""`odesim observe`: a run folder of the user's own weights, and the exit code of what is wrong."""

import numpy as np
import pytest


@pytest.fixture
def weights(tmp_path):
    """A file of snapshots of a network of liao."""
    rng = np.random.default_rng(0)
    teacher = np.eye(10)[:2]
    arrays = {"V": rng.normal(size=(3, 2, 10)), "W": rng.normal(size=(3, 2, 10))}
    arrays |= {"V_star": teacher[:1], "W_star": teacher[1:], "time": np.array([0.0, 1.0, 2.0])}

    def write(name="weights.npz", **changed):
        np.savez(tmp_path / name, **{k: v for k, v in {**arrays, **changed}.items() if v is not None})
        return name

    return write


def test_snapshots_become_a_run_folder_that_compare_takes(odesim_command, weights, tmp_path):
    done = odesim_command("observe", "-s", "liao", weights(), "--out", "mine", "--no-figures", "--json")
    assert done.code == 0
    assert done.json["summary"]["snapshots"] == 3
    assert (tmp_path / "mine" / "trajectory.nc").exists()
    again = odesim_command("observe", "-s", "liao", "weights.npz", "--out", "mine", "--resume", "--no-figures", "-q")
    assert again.code == 0
    found = odesim_command("compare", "mine", "mine", "--out", "against", "--no-figures", "--json")
    assert found.code == 0 and found.json["summary"]["distance_median"] == 0.0


def test_what_is_wrong_is_one_sentence_and_exit_code_2(odesim_command, weights):
    V = np.ones((3, 2, 10))
    V[1, 0, 3] = np.nan
    for changed, words in (
        ({"V": V}, "not finite"),
        ({"W_star": None}, "W_star"),
        ({"time": np.array([0.0, 2.0, 1.0])}, "increase"),
    ):
        answer = odesim_command("observe", "-s", "liao", weights("bad.npz", **changed), "--out", "bad")
        assert answer.code == 2 and words in answer.err
        assert answer.err.startswith("odesim: ") and answer.err.count("\n") == 1
    assert odesim_command("observe", "-s", "liao", "nowhere.npz").code == 2
    assert odesim_command("observe", "-s", "kawata", weights()).code == 2
