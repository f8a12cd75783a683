"""Comparisons on a user's own samples: the flow, SGD on the samples, and SGD on Gaussian inputs."""

import numpy as np
import pytest

import odesim
from odesim.show import compared

LINEAR = {"student": {"unit": "w"}, "teacher": {}, "training": {"step": 0.02}}


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    rows = rng.standard_t(3, size=(40, 6)) * np.arange(1, 7) ** -0.5
    made = odesim.declare(**LINEAR, inputs={"data": rows, "bins": 4})
    return made, odesim.compare(made, until=4, save_points=5, seeds=6)


def test_a_comparison_on_samples_has_three_runs(found):
    made, three = found
    assert three.first.origin.method == "flow"
    assert (three.second.origin.method, three.gaussian.second.origin.method) == ("explicit", "compressed")
    alone = odesim.compare(made, method="compressed", until=4, save_points=5, seeds=6)
    assert alone.gaussian is None
    assert np.array_equal(alone.second["M_ww"], three.gaussian.second["M_ww"])
    assert odesim.compare(made, method="explicit", until=4, save_points=5, seeds=2).gaussian is None


def test_the_summary_tells_both_distances_and_how_often_a_sample_was_drawn(found):
    _, three = found
    summary = three.summary()
    assert summary["passes"] == pytest.approx(200 / 40)
    assert summary["gaussian_distance_median"] == pytest.approx(np.median(three.gaussian.overall))
    assert any("on Gaussian inputs of the same covariance" in note for note in summary["notes"])


def test_a_stored_comparison_of_three_is_drawn(found, tmp_path):
    _, three = found
    stored = odesim.load(three.trajectory().save(tmp_path / "run", pictures=False)).dataset()
    figure = compared.draw(stored)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "SGD on the samples, 6 replicas" in labels and "SGD, Gaussian inputs, median" in labels
    shown = stored["shown_gaussian"].values
    dotted = [line for line in figure.axes[0].lines if line.get_linestyle() not in ("-", "None")]
    assert len(dotted) == shown.shape[1]
    assert dotted[0].get_ydata() == pytest.approx(np.median(shown[:, 0], axis=0))
