"""Stages, clocks and what the commands show of them."""

import pytest

import odesim
from derivations.pmoe.parameters import Parameters, begin, course
from odesim.flow import pipeline
from odesim.request.case import Case, find_system
from odesim.show.page.render import render


def test_the_stages_follow_from_the_mode():
    assert course(Parameters()) == ("router", "experts")
    assert course(Parameters(mode="joint")) == ("joint",)
    assert course(Parameters(k=1)) == ("experts",)
    assert begin(Parameters(k=5)) == "joint"
    assert Case.build("pmoe", {"mode": "joint"}).stage == "joint"
    assert Case.build("pmoe", {}).stage == "experts"
    assert Case.build("pmoe", {}, stage="router").stage == "router"


def test_all_stages_of_joint_training_are_one():
    names = [case.stage for case in pipeline.build("pmoe", {"mode": "joint"}, "all").cases]
    assert names == ["joint"]


@pytest.mark.parametrize(("stage", "mode"), [("experts", "joint"), ("joint", "cnn"), ("router", "cnn")])
def test_a_stage_that_the_mode_does_not_have_is_refused(stage, mode):
    with pytest.raises(odesim.UsageError, match=f"mode {mode} has no stage {stage}"):
        odesim.integrate("pmoe", stage=stage, mode=mode, until=1.0)


@pytest.mark.parametrize("tier", ["L0", "L1", "L2", "L3"])
def test_every_tier_shows_what_it_is_derived_from(tier):
    system = find_system("pmoe")
    text = render(system, system.parameters(tier=tier))
    assert f"pmoe, experts, {tier}" in text
    assert "v(u)" in text and "1/(1 + e^u)" in text
    assert ("arcsin" in text) == (tier in ("L2", "L3"))


def test_a_run_of_one_level_can_be_held_against_another():
    runs = [odesim.integrate("pmoe", n=5, p=2, tier=tier, until=10.0, save_points=21) for tier in ("L1", "L2")]
    compared = odesim.compare(*runs)
    assert set(compared.distance) >= {"response", "route"}
    assert 0 < compared.overall[0] < 1


def test_a_recursion_compared_with_training_takes_its_steps(tmp_path):
    from odesim.cli import main

    out = tmp_path / "compared"
    words = [
        "compare", "--system", "pmoe", "-p", "n=5", "-p", "p=2", "-p", "m=20", "--method", "compressed", "--step-size",
        "0.02", "--batch", "4000", "--until", "4", "--no-figures", "--out", str(out), "--quiet",
    ]  # fmt: skip
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    run = odesim.load(out).trajectory
    # 10 steps of batches of 4000: deviations of order (1/sqrt(4000)) 4/20 from the same steps in the population
    assert run.summary["components"]["pre"] < 0.01


def test_routers_of_three_experts_are_not_trained_separately():
    with pytest.raises(odesim.UsageError, match="k = 2 experts"):
        odesim.integrate("pmoe", stage="router", k=3, m=30, until=1.0)


def test_a_stage_settles_an_open_mode(weights):
    arrays = weights(k=2)
    joint = odesim.integrate("pmoe", initial=arrays, stage="joint", l=3, until=1.0)
    assert (joint.origin.parameters["mode"], joint.origin.stage) == ("joint", "joint")
    apart = odesim.integrate("pmoe", initial=arrays, l=3, until=1.0)
    assert (apart.origin.parameters["mode"], apart.origin.stage) == ("separate", "experts")
