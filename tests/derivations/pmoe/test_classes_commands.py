"""Several classes through stages, commands and pictures."""

import numpy as np
import pytest

import odesim
from odesim.cli import main
from odesim.flow import pipeline
from odesim.show import plot

SMALL = ["-p", "n=5", "-p", "p=2", "-p", "m=24", "-p", "classes=4"]


def command(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--quiet"])
    return int(ended.value.code or 0)


def test_experts_after_the_routers_of_pairs_start_from_their_end():
    request = {"tier": "L2", "n": 5, "p": 2, "classes": 4}
    runs = pipeline.run(pipeline.build("pmoe", request, "all", save_points=3))
    assert [run.origin.stage for run in runs] == ["router", "experts"]
    assert np.array_equal(runs[0]["route"][-1], runs[1]["route"][0])
    assert runs[1]["loss"][-1] < 0.7 * runs[1]["loss"][0]
    moved = runs[0]["route"][-1] - runs[0]["route"][0]
    start = odesim.integrate("pmoe", routers="trained", until=1.0, save_points=2, **request)
    np.testing.assert_allclose(start["route"][0] - runs[0]["route"][0], moved, atol=1e-9)


def test_a_recursion_is_compared_with_training(tmp_path):
    out = tmp_path / "compared"
    words = ["--method", "compressed", "--step-size", "0.02", "--batch", "4000", "--until", "4.8", "--out", str(out)]
    assert command("compare", "--system", "pmoe", *SMALL, *words, "--no-figures") == 0
    run = odesim.load(out).trajectory
    assert run.summary["components"]["pre"] < 0.01
    assert {"distance_response", "distance_v", "distance_route"} <= set(run.state)


def test_the_number_of_classes_is_swept(tmp_path):
    words = ["-p", "n=5", "-p", "p=2", "-p", "m=24", "-p", "tier=L2", "-p", "init=paired", "--until", "200"]
    assert command("sweep", "--system", "pmoe", *words, "--over", "classes=2,4,6", "--out", str(tmp_path / "s")) == 0
    found = odesim.load(tmp_path / "s")
    final = found["final_loss"].values
    assert (final < np.log([2, 4, 6])).all()
    assert (np.diff(final) > 0).all()


@pytest.mark.parametrize("stage", ["experts", "router"])
def test_pictures_have_a_colour_per_class(stage, tmp_path):
    run = odesim.integrate("pmoe", classes=4, n=4, p=2, m=8, tier="L2", stage=stage, until=2.0, save_points=5)
    figure = plot.figures(run)["trajectories"]
    axes = {axis.get_label(): axis for axis in figure.axes}
    name = "route 1" if stage == "router" else "response 1"
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert [f"pattern $o_{{{i}}}$" for i in (1, 2, 3, 4)] == [label for label in labels if "$o_" in label]
    own = {line.get_label(): line for line in axes[name].lines}
    if stage == "router":
        assert np.array_equal(own["pattern $o_{2}$"].get_ydata(), run["route"][:, 0, 1])
    else:  # the routes of frozen routers are constant: they have no panel
        assert not any(label.startswith("route") for label in axes)
        assert np.array_equal(own["pattern $o_{3}$"].get_ydata(), run["response"][:, 0, 2, 2])
        assert {"loss", "v"} <= set(axes)
    assert plot.draw(run, tmp_path)[0].stat().st_size > 10_000


def test_a_run_has_its_classes_in_its_summary():
    run = odesim.integrate("pmoe", classes=3, mode="joint", k=3, n=4, p=2, m=12, until=1.0, save_points=2)
    assert np.allclose(run.summary["v_final"], run["v"][-1])
    rest = run["route"][-1][:, 3:].max(axis=1)
    assert np.allclose(run.summary["o_above"], [(run["route"][-1][:, i] - rest).max() for i in range(3)])
    assert run.summary["assumption_4_4"] == bool(run["assumption"][-1])
    assert "beta_star" not in run.extras


@pytest.mark.parametrize("tier", ["L0", "L1"])
def test_both_back_ends_integrate_the_same(tier):
    request = {"classes": 3, "mode": "joint", "k": 2, "n": 4, "p": 2, "m": 8, "tier": tier, "until": 5.0, "lam": 0.1}
    first, second = (odesim.integrate("pmoe", backend=name, save_points=3, **request) for name in ("numba", "jax"))
    for name in ("loss", "v", "route", "response", "finds", "assumption"):
        np.testing.assert_allclose(second[name], first[name], atol=1e-12)


def test_the_command_refuses_in_one_sentence(capsys):
    assert command("integrate", "--system", "pmoe", *SMALL, "-p", "tier=L3") == 2
    said = capsys.readouterr().err
    assert said.startswith("odesim: tier L3 follows the margins of two samples")
    assert said.count("\n") == 1
