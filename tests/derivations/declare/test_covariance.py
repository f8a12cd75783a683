"""A covariance of one's own: theory and SGD are those of Gaussian inputs with it, weights stand in its columns."""

import numpy as np
import pytest
from scipy import linalg

import odesim
from derivations.contract import UsageError
from derivations.declare import array_files, initial, model, spectra
from odesim.sgd.simulation import explicit_rows
from tests.derivations.declare.judged import assert_one_law

D = 7


def covariance(seed=0):
    """A covariance (7, 7) of rank 6, no coordinate of which is an eigenvector."""
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(D, D)))[0]
    return turn @ np.diag([3.0, 1.0, 1.0, 0.5, 0.2, 0.1, 0.0]) @ turn.T


def declared(matrix, **tables):
    given = {"student": {"unit": "w"}, "teacher": {}, "training": {"step": 0.01}, **tables}
    return odesim.declare(**{**given, "inputs": {"covariance": matrix, **given.get("inputs", {})}})


def test_least_squares_is_a_matrix_exponential_in_the_columns_of_the_covariance():
    C, rng = covariance(), np.random.default_rng(1)
    w, teacher = rng.normal(size=(1, D)), rng.normal(size=(1, D))
    scale = 2.0 * D / np.trace(C)
    made = declared(C, teacher={"spread": teacher}, inputs={"trace": 2.0})
    run = odesim.integrate(made, initial={"w": w}, save_at=[0, 0.4, 3], rtol=1e-11)
    for k, t in enumerate(run["time"]):
        off = linalg.expm(-t * scale * C) @ (w - teacher)[0]
        assert run["error"][k] == pytest.approx(off @ (scale * C) @ off, rel=1e-8)
        assert run["M_ww"][k].sum() == pytest.approx(teacher[0] @ (teacher[0] + off), rel=1e-8)
    assert run.parameters["d"] == D
    assert run["eigenvalue"] == pytest.approx(scale * np.array([3.0, 1, 1, 0.5, 0.2, 0.1, 0.0]), abs=1e-12)


def test_explicit_sgd_draws_inputs_of_this_covariance():
    C, rng = covariance(2), np.random.default_rng(3)
    teacher = rng.normal(size=(1, D)) / 2
    made = declared(C, student={"unit": "erf(w)", "units": 2}, teacher={"spread": teacher}, inputs={"bins": D},
                    training={"step": 0.1, "batch": 2})  # fmt: skip
    runs = [odesim.simulate(made, method=m, until=2, save_points=2, seeds=800) for m in ("explicit", "compressed")]
    ends = [np.hstack([run[name][:, -1].reshape(800, -1) for name in ("M_ww", "Q_ww")]) for run in runs]
    assert_one_law(*ends)
    # Vectors of explicit SGD stand in the eigenbasis: rotated back, the teacher is that of the file.
    p = made.parameters()
    start = initial.enter(p, None, rng)
    own = model.model(p)
    rows = explicit_rows(own, None, own.place(start)[None], D, 2, own.spaces(p), 0)[0]
    assert rows[2] @ np.diag(spectra.variances(p)) @ rows[2] == pytest.approx(teacher[0] @ C @ teacher[0])


def test_a_file_and_clusters_of_this_covariance(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("C.csv", covariance(), delimiter=",", fmt="%.18g")
    clusters = [{"p": 0.5, "mean": "mu", "label": 1.0}, {"p": 0.5, "mean": "-mu", "label": -1.0, "scale": 0.5}]
    made = odesim.declare(student={"unit": "w"}, inputs={"covariance": "C.csv", "means": {"mu": 1.0},
                          "cluster": clusters}, training={"loss": "logistic"})  # fmt: skip
    run = odesim.integrate(made, until=2, save_points=3)
    assert run["eigenvalue"][1] == pytest.approx(0.5 * run["eigenvalue"][0])
    assert run["eigenvalue"].shape == (2, D)
    run.save("run", pictures=False)
    (tmp_path / "C.csv").unlink()
    array_files._recent.clear()
    assert np.array_equal(odesim.load("run")["mean_M_wm"], run["mean_M_wm"])


BAD = {
    "not square": (np.ones((2, 3)), r"shape \(d, d\), but has \(2, 3\)"),
    "a vector": (np.ones(3), r"shape \(d, d\), but has \(3,\)"),
    "not symmetric": (np.array([[1.0, 0.5], [0.2, 1.0]]), "row 1, column 2 is 0.5, and row 2, column 1 is 0.2"),
    "negative": (np.array([[1.0, 2.0], [2.0, 1.0]]), "not a covariance: its smallest eigenvalue is -1"),
    "zero": (np.zeros((2, 2)), "the largest entry of covariance must lie between"),
    "nan": (np.array([[1.0, np.nan], [np.nan, 1.0]]), "contains nan in row 1, column 2"),
    "a number": (3.0, "covariance is a file of a matrix"),
}


@pytest.mark.parametrize("name", list(BAD))
def test_what_is_no_covariance_is_refused(name):
    matrix, said = BAD[name]
    with pytest.raises(UsageError, match=said):
        declared(matrix)


def test_what_does_not_fit_to_a_covariance_is_refused():
    with pytest.raises(UsageError, match="one of the four"):
        declared(covariance(), inputs={"spectrum": "j"})
    with pytest.raises(UsageError, match=r"vectors of 3 coordinates, but the inputs .* have 7"):
        declared(covariance(), teacher={"spread": np.ones((1, 3))})
    with pytest.raises(UsageError, match="of which there are 7, but their length is 3"):
        odesim.integrate(declared(covariance()), initial={"w": np.ones((1, 3)), "w_star": np.ones((1, 3))}, until=1)
    with pytest.raises(UsageError, match="label is only for your own samples"):
        declared(covariance(), inputs={"label": np.arange(7) % 2})


def test_the_picture_of_a_comparison_shows_whole_vectors():
    made = declared(covariance(), teacher={"spread": np.eye(D)[:1]}, student={"unit": "w", "units": 2})
    found = odesim.compare(made, until=2, save_points=5, seeds=3, method="compressed", batch=8)
    shown = found.dataset()
    assert "blocks" not in shown["shown_first"].attrs.get("meaning", "")
    # Which entries move most depends on the machine, by the signs of the eigenvectors that LAPACK gives.
    flow = np.concatenate([found.first[n].sum(1).reshape(5, -1) for n in ("Q_ww", "M_ww")], axis=1).T
    sgd = np.concatenate([found.second[n].sum(2).reshape(3, 5, -1) for n in ("Q_ww", "M_ww")], axis=2)
    for one, runs in zip(shown["shown_first"].values, np.moveaxis(shown["shown_second"].values, 1, 0), strict=True):
        entry = np.abs(flow - one).max(axis=1).argmin()
        assert np.abs(flow[entry] - one).max() < 1e-12
        assert np.abs(sgd[..., entry] - runs).max() < 1e-12
