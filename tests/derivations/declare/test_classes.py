"""Samples with labels, and samples whose mean is kept: classes are clusters, in theory and in SGD."""

import numpy as np
import pytest
from scipy import linalg, stats

import odesim
from derivations.contract import UsageError
from derivations.declare import array_files, classes, data, initial, mixture, spectra, spread, written_systems
from tests.derivations.declare.judged import assert_one_law
from tests.derivations.declare.test_data import forget

LINEAR = {"student": {"unit": "w"}, "training": {"step": 0.01}}


def three(seed=0, count=400, d=6, constant=4.5):
    """Rows (count, d + 1) of three classes with means and covariances of their own, a constant column, and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.choice([-1.0, 0.5, 2.0], size=count, p=[0.5, 0.3, 0.2])
    rows = rng.exponential(size=(count, d)) @ rng.normal(size=(d, d)) / np.sqrt(d)
    rows = rows * (1 + 0.2 * labels[:, None]) + np.outer(labels, rng.normal(size=d)) + 0.7
    return np.insert(rows, 2, constant, axis=1), labels


def declared(rows, labels, **tables):
    given = {"data": rows, "label": labels, **tables.pop("inputs", {})}
    return odesim.declare(**{**LINEAR, **tables}, inputs=given)


def pooled(rows, labels):
    """The mean of the covariances of the classes, by their shares."""
    return sum(np.mean(labels == c) * np.cov(rows[labels == c].T, ddof=0) for c in np.unique(labels))


def law_of(made):
    p = made.parameters()
    return p, mixture.mixture(p), spectra.blocks(p)


def test_classes_have_the_means_and_variances_of_the_file():
    rows, labels = three()
    made = declared(rows, labels, inputs={"trace": 2.0})
    p, law, blocks = law_of(made)
    kept = np.delete(rows, 2, axis=1)
    values, vectors = np.linalg.eigh(pooled(kept, labels))
    scale = 2.0 / values.mean()
    assert blocks.eigenvalue == pytest.approx(scale * values[::-1], rel=1e-10)
    assert list(law.label) == [-1.0, 0.5, 2.0]
    basis = data.eigenbasis(p.declaration.inputs.data, p.declaration.inputs.label)
    assert np.abs(basis.vectors.T @ vectors[:, ::-1]) == pytest.approx(np.eye(6), abs=1e-8)
    named = classes.named_means(p.declaration.inputs)
    off = total = 0.0
    for c, label in enumerate(law.label):
        own = kept[labels == label]
        assert law.probability[c] == pytest.approx(len(own) / len(kept))
        mean = (own.mean(0) - kept.mean(0)) @ basis.vectors
        assert law.mean[c] @ named == pytest.approx(np.sqrt(scale) * mean, abs=1e-10)
        turned = basis.vectors.T @ np.cov(own.T, ddof=0) @ basis.vectors
        assert law.eigenvalue[c] == pytest.approx(scale * np.diag(turned), rel=1e-9)
        off += len(own) * (turned**2).sum() - len(own) * (np.diag(turned) ** 2).sum()
        total += len(own) * (turned**2).sum()
    lost = classes.lost(p.declaration.inputs, law.eigenvalue / blocks.scale, blocks.dimension)
    assert lost == pytest.approx(np.sqrt(off / total), rel=1e-9)
    assert mixture.variances(p) == pytest.approx(law.eigenvalue)
    seen = spectra.samples(p)
    for c, label in enumerate(law.label):
        assert seen[labels == label].mean(0) == pytest.approx(law.mean[c] @ named, abs=1e-10)
        assert seen[labels == label].var(0) == pytest.approx(law.eigenvalue[c], rel=1e-9)


def test_few_blocks_share_their_eigenvalue_out_among_the_classes():
    rows, labels = three(1, 500, 40)
    p, law, blocks = law_of(declared(rows, labels, inputs={"bins": 9}))
    assert len(blocks.share) <= 9 and law.eigenvalue.shape == (3, len(blocks.share))
    assert law.probability @ law.eigenvalue == pytest.approx(blocks.eigenvalue, rel=1e-12)
    kept = np.delete(rows, 2, axis=1)
    each = [np.trace(np.cov(kept[labels == c].T, ddof=0)) for c in law.label]
    assert law.eigenvalue @ blocks.dimension == pytest.approx(each, rel=0.05)  # exact where a block has one variance
    vectors, off, whole = data.basis(p.declaration.inputs).vectors, 0.0, 0.0
    for label, eigenvalue in zip(law.label, law.eigenvalue, strict=True):
        covariance = vectors.T @ np.cov(kept[labels == label].T, ddof=0) @ vectors
        off += np.mean(labels == label) * ((covariance - np.diag(np.repeat(eigenvalue, blocks.dimension))) ** 2).sum()
        whole += np.mean(labels == label) * (covariance**2).sum()
    lost = classes.lost(p.declaration.inputs, law.eigenvalue, blocks.dimension)
    assert lost == pytest.approx(np.sqrt(off / whole), rel=1e-9) and lost > 0.01


def least_squares(rows, targets, w, t):
    """The weights of the gradient flow of the mean over rows of (x.w - y)^2 / 2 at time t."""
    C = rows.T @ rows / len(rows)
    best = np.linalg.solve(C, rows.T @ targets / len(rows))
    return best + linalg.expm(-t * C) @ (w - best)


def test_least_squares_on_classes_is_that_of_the_samples():
    # Means and variances of the classes have all second moments of the samples: what is off the diagonals sums to 0.
    rows, labels = three()
    w = np.random.default_rng(1).normal(size=(1, 7))
    made = declared(rows, labels, inputs={"trace": 1.0}, training={"step": 1e-9})
    run = odesim.integrate(made, initial={"w": w}, save_at=[0, 0.7, 9], rtol=1e-11)
    kept = np.delete(rows, 2, axis=1)
    kept = (kept - kept.mean(0)) * np.sqrt(6 / np.trace(pooled(kept, labels)))
    start = np.delete(w, 2, axis=1)[0]
    for k, t in enumerate(run["time"]):
        moved = least_squares(kept, labels, start, t)
        assert run["loss"][k] == pytest.approx(np.mean((kept @ moved - labels) ** 2) / 2, rel=1e-8)
        assert run["Q_ww"][k].sum() == pytest.approx(moved @ moved, rel=1e-8)
    sgd = odesim.simulate(made, method="explicit", batch=1, until=1e-9, save_points=2, initial={"w": w})
    assert sgd["loss"][0, 0] == pytest.approx(run["loss"][0], rel=1e-10)


def test_a_mean_that_is_kept_moves_as_that_of_the_samples():
    rows, _ = three(2, constant=0.0)
    rng = np.random.default_rng(3)
    w, teacher = rng.normal(size=(1, 7)), rng.normal(size=(1, 7))
    tables = {**LINEAR, "teacher": {"spread": teacher}, "inputs": {"data": rows, "centre": False, "trace": 3.0}}
    made = odesim.declare(**tables)
    run = odesim.integrate(made, initial={"w": w}, save_at=[0, 0.3, 2], rtol=1e-11)
    kept = np.delete(rows, 2, axis=1)
    scale = 3.0 * 6 / np.trace(np.cov(kept.T, ddof=0))
    start, star = (np.delete(v, 2, axis=1)[0] for v in (w, teacher))
    for k, t in enumerate(run["time"]):
        moved = least_squares(np.sqrt(scale) * kept, np.sqrt(scale) * kept @ star, start, t)
        assert run["error"][k] == pytest.approx(scale * np.mean((kept @ (moved - star)) ** 2), rel=1e-7)
        assert run["mean_M_wm"][k].sum() == pytest.approx(moved @ kept.mean(0), rel=1e-7)
    assert run["mean_P_wm"].sum() == pytest.approx(star @ kept.mean(0))
    assert run["mean_weights"] == pytest.approx(np.sqrt(scale))
    removed = odesim.integrate(odesim.declare(**{**tables, "inputs": {"data": rows, "trace": 3.0}}), initial={"w": w},
                               until=1, save_points=2)  # fmt: skip
    assert abs(removed["error"][0] / run["error"][0] - 1) > 0.1


def test_random_teachers_lie_at_random_to_a_mean_that_is_kept():
    rows, _ = three(4, d=5, constant=0.0)
    made = odesim.declare(**LINEAR, teacher={"spread": "random", "units": 2}, inputs={"data": rows, "centre": False})
    p = made.parameters()
    dimension, cosines = spectra.blocks(p).dimension, []
    mean = classes.named_means(p.declaration.inputs)[0]
    for seed in range(400):
        fixed = spread.fixed_blocks(p, np.eye(2), np.random.default_rng(seed))
        assert fixed[:, :2, :2].sum(0) == pytest.approx(np.eye(2), abs=1e-12)
        assert fixed[:, 2, 2] == pytest.approx(mean**2)
        values = np.linalg.eigvalsh(fixed)
        assert (values[:, :-1] < 1e-10 * np.maximum(values[:, -1:], 1.0)).all() and (dimension == 1).all()
        cosines.append(fixed.sum(0)[0, 2] / np.linalg.norm(mean))
    # A random direction has a cosine c with a fixed one, (1 + c)/2 ~ Beta((d - 1)/2, (d - 1)/2).
    assert stats.kstest((1 + np.array(cosines)) / 2, stats.beta(2, 2).cdf).pvalue > 1e-3


def test_explicit_weights_hold_the_means_of_the_file():
    rows, labels = three(5, d=20)
    made = declared(rows, labels, student={"unit": "relu(w)", "units": 2}, inputs={"bins": 6})
    run = odesim.simulate(made, method="explicit", batch=2, until=0.01, save_points=2, seeds=2)
    flow = odesim.integrate(made, until=0.01, save_points=2)
    for name in ("Q_ww", "mean_M_wm"):
        assert run[name][0, 0] == pytest.approx(flow[name][0], abs=1e-12)


def test_the_share_of_wrong_labels_is_that_of_the_samples():
    rows, labels = three(8)
    signs = np.where(labels > 0, 1.0, -1.0)
    w = np.random.default_rng(9).normal(size=(1, 7))
    made = declared(rows, signs, training={"loss": "logistic", "step": 0.01})
    run = odesim.simulate(made, method="explicit", batch=1, until=0.01, save_points=2, initial={"w": w}, seeds=2)
    field = (np.delete(rows, 2, 1) - np.delete(rows, 2, 1).mean(0)) @ np.delete(w, 2, 1)[0]
    assert run["classification_error"][:, 0] == pytest.approx(np.mean(np.sign(field) != signs), abs=1e-12)
    assert run["loss"][:, 0] == pytest.approx(np.mean(np.logaddexp(0, -signs * field)), rel=1e-10)
    assert 0 < run.summary["median_final_classification_error"] < 1


def mixture_of(seed, count, labels):
    """Rows of Gaussian classes with one eigenbasis, and their labels."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    variance = np.where(labels[:, None] > 0, [2.0, 1, 1, 1, 0.5, 0.5, 0.2, 0.2], [1.0, 1, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1])
    return (rng.normal(size=(count, 8)) * np.sqrt(variance) + np.outer(labels, np.eye(8)[0])) @ turn


@pytest.mark.parametrize("shuffled", [False, pytest.param(True, id="control")])
def test_sgd_on_gaussian_classes_has_the_law_of_compressed_sgd(shuffled):
    rng = np.random.default_rng(6)
    labels = np.where(rng.random(20_000) < 0.3, 1.0, -1.0)
    rows = mixture_of(7, 20_000, labels)
    tables = {"student": {"unit": "relu(w)", "units": 2, "output": "trained"},
              "training": {"loss": "logistic", "step": 0.2, "batch": 2}}  # fmt: skip
    runs = [
        odesim.simulate(declared(rows, given, **tables), method=method, until=2, save_points=2, seeds=600)
        for method, given in (("explicit", labels), ("compressed", rng.permutation(labels) if shuffled else labels))
    ]
    one, two = (
        np.hstack([run[name][:, -1].sum(1).reshape(600, -1) for name in ("Q_ww", "mean_M_wm")] + [run["a"][:, -1]])
        for run in runs
    )
    if shuffled:
        with pytest.raises(AssertionError):
            assert_one_law(one, two)
    else:
        assert_one_law(one, two)


def test_a_stored_run_knows_its_classes_without_the_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows, labels = three()
    np.save("X.npy", rows)
    np.savetxt("y.csv", labels)
    made = odesim.integrate(declared("X.npy", "y.csv"), until=1, save_points=2)
    made.save("run", pictures=False)
    (tmp_path / "X.npy").unlink()
    (tmp_path / "y.csv").unlink()
    forget()
    run = odesim.load("run")
    own = run.trajectory.origin.known
    assert own.parameters.declaration.inputs.classes == tuple((c, int((labels == c).sum())) for c in (-1.0, 0.5, 2.0))
    assert (run.summary["classes"], run["label"].tolist()) == (3, [-1.0, 0.5, 2.0])
    with pytest.raises(UsageError, match=r"X\.npy.*No such file"):
        odesim.integrate(own, until=1)
    np.save("X.npy", rows)
    np.savetxt("y.csv", labels)
    again = odesim.integrate(own, until=1, save_points=2)
    assert np.array_equal(again["mean_M_wm"], made["mean_M_wm"])
    np.savetxt("y.csv", -labels)
    forget()
    with pytest.raises(UsageError, match=r"y\.csv has changed since"):
        odesim.integrate(own, until=1)


def test_labels_of_a_table_are_a_column():
    rows, labels = three()
    assert declared(rows, labels[:, None]).parameters.declaration.inputs.classes == (
        declared(rows, labels).parameters.declaration.inputs.classes
    )
    p = declared(rows, labels[:, None]).parameters()
    start = initial.enter(p, None, np.random.default_rng(0))
    assert start.constants["mean_P_mm"].shape == (6, 2, 2)


ROWS = np.random.default_rng(0).normal(size=(6, 3))
SIGNS = np.array([1.0, -1, 1, -1, 1, -1])
REFUSED = {
    "other length": ({"data": ROWS, "label": SIGNS[:4]}, "has 4 labels, but .* has 6 samples"),
    "two columns": ({"data": ROWS, "label": ROWS}, r"shape \(samples,\), but has \(6, 3\)"),
    "one class": ({"data": ROWS, "label": np.ones(6)}, "every entry of label is 1"),
    "alone": ({"data": ROWS, "label": np.array([1.0, -1, 1, -1, 1, 7])}, "label 7 only once"),
    "text": ({"data": ROWS, "label": np.array(["a", "b"] * 3)}, "must contain real numbers"),
    "number": ({"data": ROWS, "label": 3}, "a file with a number for every sample"),
    "without data": ({"blocks": [[1.0, 1.0]], "label": SIGNS}, "label is only for your own samples"),
    "no flag": ({"data": ROWS, "centre": "no"}, "centre is true or false"),
    "centre without data": ({"spectrum": "1/j", "centre": False}, "centre is only for your own samples"),
    "forged": ({"data": ROWS, "label": {"file": "y.npy", "sha256": "0" * 64, "shape": [6], "dimension": 6,
                                        "classes": [[1.0, 1]]}}, "but not a table"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_is_no_label_is_refused(name):
    inputs, said = REFUSED[name]
    with pytest.raises(UsageError, match=said):
        odesim.declare(**LINEAR, inputs=inputs)


def test_a_real_valued_target_is_no_class():
    rows = np.random.default_rng(0).normal(size=(100, 3))
    with pytest.raises(UsageError, match="100 different values, and each is a class; at most 16 classes are supported"):
        declared(rows, rows[:, 0])


def test_a_label_of_0_has_no_sign():
    rows, labels = three()
    with pytest.raises(UsageError, match="uses the sign of a label, but a label is 0: use the labels -1 and 1"):
        odesim.integrate(declared(rows, 1.0 * (labels > 0), training={"loss": "logistic"}), until=1)
    stated = [{"p": 0.5, "mean": "mu", "label": 1.0}, {"p": 0.5, "mean": "-mu", "label": 0.0}]
    made = odesim.declare(student={"unit": "w"}, inputs={"means": {"mu": 1.0}, "cluster": stated},
                          training={"loss": "hinge"})  # fmt: skip
    with pytest.raises(UsageError, match="a label is 0"):
        odesim.integrate(made, until=1)


def test_a_mean_far_from_0_has_no_online_limit():
    rows = np.delete(three()[0], 2, axis=1)
    made = odesim.declare(student={"unit": "w"}, teacher={}, training={"limit": "online"},
                          inputs={"data": rows + 50, "centre": False})  # fmt: skip
    with pytest.raises(UsageError, match="longer than the deviations of the inputs from it"):
        odesim.integrate(made, until=1)


def test_a_constant_column_is_no_part_of_a_mean_that_is_kept():
    with pytest.raises(UsageError, match=r"column 3 of .* is 4\.5 in every sample") as error:
        odesim.declare(**LINEAR, teacher={}, inputs={"data": three()[0], "centre": False})
    assert "\n" not in str(error.value)


def test_labels_of_one_sign_are_refused_by_losses_of_signs():
    rows, labels = three()
    with pytest.raises(UsageError, match=r"all labels have the same sign \(1, 2\): use -1 and 1"):
        odesim.integrate(declared(rows, np.where(labels > 0, 2.0, 1.0), training={"loss": "hinge"}), until=1)


@pytest.fixture(autouse=True)
def forgetful():
    """Every test begins in a process that holds no arrays."""
    array_files._recent.clear()
    array_files._given.clear()
    written_systems.of_text.cache_clear()
