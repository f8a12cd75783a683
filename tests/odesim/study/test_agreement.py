"""Statistics of agreement, on synthetic runs whose difference is known, and on the run that was called agreement."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

import odesim
from odesim.study import agreement

TIMES = np.linspace(0.0, 10.0, 30)
LEVEL = agreement.LEVEL


def replicas(rng, count, shift=0.0, entries=3, memory=0.9):
    """Replicas (replica, time, entry) of a stationary process of variance 1 with memory, moved by `shift`."""
    values = np.empty((count, len(TIMES), entries))
    values[:, 0] = rng.standard_normal((count, entries))
    for k in range(1, len(TIMES)):
        noise = rng.standard_normal((count, entries))
        values[:, k] = memory * values[:, k - 1] + np.sqrt(1 - memory**2) * noise
    return values + shift


def judged(second, span, random=(False, True)):
    """Judge replicas against a first run of zeros, beside one more entry of range `span` where both are equal."""
    ramp = np.broadcast_to(np.linspace(0.0, span, len(TIMES))[:, None], (len(second), len(TIMES), 1))
    first = np.concatenate([np.zeros((1, *second.shape[1:])), ramp[:1]], axis=2)
    both = np.concatenate([second, ramp], axis=2)
    return agreement.judge(agreement.differences(first, both, random), TIMES, first)


def most(runs, level):
    """Return the number of wrong statements that a test of that level exceeds in one of a thousand trials."""
    return stats.binom.ppf(0.999, runs, level)


@pytest.mark.parametrize("count", [3, 5, 20])
def test_runs_without_a_difference_are_said_to_differ_in_at_most_five_of_a_hundred(count):
    rng = np.random.default_rng(count)
    verdicts = [judged(replicas(rng, count), span=10.0).verdict for _ in range(800)]
    assert verdicts.count("differ") <= most(800, LEVEL)


@pytest.mark.parametrize("count", [3, 5, 20])
def test_runs_that_differ_by_the_margin_are_said_to_agree_in_at_most_five_of_a_hundred(count):
    rng = np.random.default_rng(10 + count)
    span = 3.0 / agreement.MARGIN  # the margin is 3 standard deviations of a replica
    verdicts = [judged(replicas(rng, count, shift=3.0, entries=1), span).verdict for _ in range(800)]
    assert verdicts.count("agree") <= most(800, LEVEL)


def test_a_difference_at_a_single_time_is_enough_to_deny_agreement():
    rng = np.random.default_rng(5)
    pulse = np.zeros((1, len(TIMES), 1))
    pulse[0, 12] = 3.0
    span = 3.0 / agreement.MARGIN
    verdicts = [judged(replicas(rng, 20, shift=pulse, entries=1), span).verdict for _ in range(400)]
    assert verdicts.count("agree") <= most(400, LEVEL)


def test_many_replicas_inside_the_margin_agree_and_few_are_not_called_agreement():
    rng = np.random.default_rng(6)
    span = 2.0 / agreement.MARGIN
    many = [judged(replicas(rng, 100), span) for _ in range(50)]
    few = [judged(replicas(rng, 2), span) for _ in range(50)]
    assert all(j.verdict == "agree" and 0 < j.bound <= 2.0 for j in many)
    assert sum(j.verdict == "agree" for j in few) <= most(50, LEVEL)
    assert all("could be as large as" in j.sentence for j in few if j.verdict == "not distinguishable")


def test_a_difference_has_its_size_error_and_the_time_from_which_it_lasts():
    rng = np.random.default_rng(7)
    late = np.where(TIMES >= 6.0, 20.0, 0.0)[None, :, None]
    judgement = judged(replicas(rng, 5, shift=late, entries=1), span=10.0)
    words = judgement.sentence.split()
    assert judgement.verdict == "differ" and words[:2] == ["differ", "by"] and words[3] == "+-"
    assert float(words[2]) == pytest.approx(20.0, abs=2 * float(words[4]))
    assert 6.0 <= float(words[words.index("=") + 1]) <= 7.5 and words[-1] == "on"


def test_a_difference_that_passes_is_told_with_its_two_ends():
    rng = np.random.default_rng(8)
    pulse = np.where((TIMES > 4.0) & (TIMES < 6.0), 20.0, 0.0)[None, :, None]
    judgement = judged(replicas(rng, 20, shift=pulse, entries=1), span=10.0)
    assert judgement.verdict == "differ" and "between t = 4.1" in judgement.sentence


def test_intervals_are_those_of_student_and_of_welch():
    rng = np.random.default_rng(9)
    first, second = replicas(rng, 6), 2 * replicas(rng, 4)
    alone = agreement.differences(first[:1], second, (False, True))
    both = agreement.differences(first, second, (True, True))
    one = stats.ttest_1samp(second[:, 3, 1], first[0, 3, 1]).confidence_interval(0.95)
    two = stats.ttest_ind(second[:, 3, 1], first[:, 3, 1], equal_var=False).confidence_interval(0.95)
    assert 2 * alone.pointwise[3, 1] == pytest.approx(one.high - one.low, rel=1e-12)
    assert 2 * both.pointwise[3, 1] == pytest.approx(two.high - two.low, rel=1e-12)


def test_flows_are_judged_without_chance_and_one_replica_not_at_all():
    flow = np.zeros((1, len(TIMES), 1))
    assert judged(flow + 0.3, span=10.0, random=(False, False)).verdict == "agree"
    assert judged(flow + 0.7, span=10.0, random=(False, False)).sentence == "differ by 0.7 from t = 0 on"
    assert judged(flow, span=10.0, random=(False, False)).sentence == "agree up to rounding"
    alone = judged(flow + 0.7, span=10.0)
    assert alone.verdict == "unknown" and "one replica" in alone.sentence and alone.record()["bound"] is None
    assert judged(flow, span=10.0).verdict == "unknown"


def test_values_that_are_not_finite_never_agree():
    values = replicas(np.random.default_rng(3), 5)
    values[2, 10:] = np.nan
    assert judged(values, 10.0).sentence == f"differ: values are not finite from t = {TIMES[10]:.4g} on"


def test_two_groups_are_found_and_one_is_not_split():
    rng = np.random.default_rng(2)
    for count in (4, 5, 8, 40):
        upper = np.arange(count) % 2 == 1
        found = agreement.two_groups(np.where(upper, 1.0, 0.0) + 0.03 * rng.standard_normal(count), 1.0)
        assert found is not None and (found == upper).all()
    small = [agreement.two_groups(0.1 * rng.standard_normal(5), 1.0) for _ in range(400)]
    wide = [agreement.two_groups(rng.standard_normal(12), 1.0) for _ in range(400)]
    assert all(found is None for found in small)
    assert sum(found is not None for found in wide) <= 2


def test_groups_are_named_with_how_many_escaped():
    start = np.zeros((5, 1))
    end = np.array([[0.01], [0.99], [1.0], [0.02], [0.98]])
    said = agreement.groups_sentence(np.concatenate([start, end], axis=1), 1.0)
    assert "2 of 5 replicas end near 0.015, 3 near 0.99" in said and "some runs escaped, some did not" in said
    away = agreement.groups_sentence(np.concatenate([start, 2 * end - 1], axis=1), 1.0)
    assert away.startswith("two groups") and "escaped" not in away


def test_a_large_step_times_dimension_over_batch_is_named():
    assert "= 2 is large" in agreement.noise_sentence(0.02, 1e4, 100)
    assert agreement.noise_sentence(1e-3, 100, 256) == ""


@pytest.fixture(scope="module")
def escaped():
    """The case that was called agreement: half of the runs have left the symmetric state, and half have not."""
    return odesim.compare("liao", m=4, m_star=2, d=100, step_size=1e-3, batch=256, seeds=4, seed=0, save_points=31)


def test_half_of_the_replicas_elsewhere_is_no_agreement(escaped):
    summary = escaped.summary()
    assert summary["judgements"]["I1"]["verdict"] == "not distinguishable"
    assert "4 seeds: the difference could be as large as 1.5" in summary["judgements"]["I1"]["sentence"]
    assert "agree" not in summary["agreement"].replace("not shown to agree", "")
    assert any("I1" in note and "2 of 4 replicas" in note for note in summary["notes"])


def test_the_picture_and_the_data_say_what_the_summary_says(escaped):
    from odesim.show import plot

    data = escaped.dataset()
    figure = plot.figures(data)["comparison"]
    said, words = escaped.summary()["agreement"], figure.legends[0].get_title().get_text().replace("\n", " ")
    assert said in words and "two groups" in words
    panel = next(axis for axis in figure.axes if axis.get_label() == "order parameters")
    assert len(panel.lines) == data.sizes["shown"] * (4 + 1)  # every replica and the flow


def test_a_comparison_of_a_system_has_five_replicas_or_what_is_asked():
    from odesim.ask import sgd

    made = {"step_size": 1e-3, "batch": 64, "method": "compressed", "until": 0.1}
    assert sgd.pair("liao", {}, **made).simulation.replicas == 5
    assert sgd.pair("liao", {}, **made, seeds=2).simulation.replicas == 2


def test_the_noise_is_named_where_the_flow_leaves_it_out(escaped):
    assert not any("step x d" in note for note in escaped.notes)
    options = {**escaped.second.origin.options, "batch": 0.5}
    origin = dataclasses.replace(escaped.second.origin, options=options)
    noisy = dataclasses.replace(escaped, second=dataclasses.replace(escaped.second, origin=origin))
    assert "step x d / batch = 0.2 is large" in noisy.notes[-1]


def test_the_noise_of_the_online_limit_is_in_its_equations():
    """At eta = 1 a step of 1/d moves the clock by 1/d, as in a flow that leaves the noise out."""
    model = odesim.declare(
        student={"units": 2, "unit": "erf(w/sqrt(2))"}, teacher={"units": 2}, start={"overlap": 0.2, "norm": 0.5},
        training={"limit": "online", "step": 1.0},
    )  # fmt: skip
    found = odesim.compare(model, d=200, until=1.0, save_points=5, seeds=3)
    assert not any("step x d" in note for note in found.notes)
