"""From fine-tuning to evaluation: scores, what is kept, the enumerated error, and what is refused."""

import numpy as np
import pytest

import odesim
from derivations.pruning import criteria, initial
from derivations.pruning.parameters import Parameters
from odesim.evidence.laboratory import Laboratory
from odesim.flow import pipeline
from odesim.request.case import find_system

SYSTEM = find_system("pruning")
LAB = Laboratory(SYSTEM)


@pytest.fixture(scope="module")
def stages():
    """All five stages of a small instance, pruned to two experts of each sign."""
    wanted = pipeline.build("pruning", {"d": 50, "tier": "flow", "rho": 0.7}, "all", save_points=3)
    return dict(zip([case.stage for case in wanted.cases], pipeline.run(wanted), strict=True))


def test_fine_tuning_prunes_to_zero_error(stages):
    assert stages["tune"]["f_error"][0] > 0.2
    assert stages["tune"]["f_error"][-1] == 0
    assert stages["prune"].summary["kept"] == [0, 1, 7, 8]  # the important experts of each sign
    assert stages["prune"].summary["f_error_after"] == 0
    assert stages["evaluate"].summary["f_error"] == 0 and stages["evaluate"].summary["experts"] == 4
    assert stages["tune"].summary["broken_assumptions"] == []


def test_post_pruning_fine_tuning_continues_the_trajectory(stages):
    tune, after = stages["tune"], stages["post-tune"]
    kept = stages["prune"]["kept"]
    assert np.array_equal(after["h"][0], tune["h"][-1, kept])
    assert after["Delta"][0] == pytest.approx(tune["Delta"][-1, kept], rel=1e-14)  # measured from the first start
    longer = LAB.integrate(d=50, tier="flow", save_points=2, until=after.time[-1])
    # A neuron that had been switched off stays so, and experts never interact: continuing is the same as never pruning.
    assert np.abs(after["h"][-1] - longer["h"][-1, kept]).max() < 1e-6


def test_scores_are_those_of_their_definitions(stages):
    tune, score = stages["tune"], stages["score"].summary
    norms = np.linalg.norm(tune["h"], axis=-1)
    assert score["router_norm_change"] == pytest.approx(list(norms[-1] - norms[0]), abs=1e-12)
    assert score["router_norm"] == pytest.approx(list(norms[-1]), abs=1e-12)
    lengths = np.linalg.norm(tune["u"], axis=-1).mean(-1)
    assert score["neuron_norm_mean"] == pytest.approx(list(lengths[-1]), rel=1e-12)
    assert score["neuron_norm_change_mean"] == pytest.approx(list(lengths[-1] - lengths[0]), rel=1e-9, abs=1e-9)
    assert sorted(score["random"]) == list(range(14))
    assert score["token_fraction"] == [0.05] * 14
    sign = tune["a"]
    p = (tune["p1"][-1] - tune["p2"][-1]) * sign
    assert score["proficiency"] == pytest.approx(list(p), abs=1e-12)


def test_error_curves_agree_with_evaluating_the_kept_experts(stages):
    names, curves = list(stages["score"]["criterion"]), stages["score"]["pruned_error"]
    row = curves[names.index("router_norm_change")]
    assert row[1] == 0 and row[-1] == 0 and row.size == 7
    assert curves[names.index("random")][0] > 0.1  # one random expert of each sign is often the wrong one


@pytest.mark.parametrize(
    ("size", "rho", "count"),
    [(5, 0.5, 3), (7, 0.5, 4), (7, 0.0, 7), (7, 0.99, 1), (10, 0.75, 3), (10, 0.85, 2), (4, 0.3, 3), (20, 0.15, 17)],
)
def test_halves_are_rounded_up_and_one_expert_is_always_kept(size, rho, count):
    assert criteria.keep_count(size, rho) == count


def test_ties_keep_the_lower_number_in_each_sign_group():
    a = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    assert list(criteria.keep(a, np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]), 0.4)) == [0, 2, 3, 4]
    # By sign: a global ranking would take three positive experts.
    assert list(criteria.keep(a, np.array([9.0, 8.0, 7.0, 0.0, 1.0, 0.0]), 0.7)) == [0, 4]


def test_an_output_of_zero_counts_as_an_error():
    p = Parameters(d=5, n=6, k=2, l=3, m=1)
    h = np.array([[1.0, -1, 0, 0, 0], [-1.0, 1, 0, 0, 0]])
    start = initial.from_alignments(p, h, np.zeros((2, 1, 5)), np.array([1.0, -1.0]))
    assert criteria.error(start, np.arange(2)) == (1.0, 0.0)


def test_a_sign_without_an_important_expert_is_reported_not_refused():
    run = odesim.integrate(SYSTEM, d=30, important=0, weak=0, until=100, save_points=2, tier="flow")
    assert run.outcome.kind == "completed"
    sentences = run.summary["broken_assumptions"]
    assert len(sentences) == 2 and "no expert of sign +1 selects its task token" in sentences[0]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"l": 1}, "l must be at least 2"),
        ({"l": 7, "n": 6}, "cannot keep l = 7 of n = 6"),
        ({"rho": 1.0}, "must lie in"),
        ({"rho": -0.1}, "rho"),
        ({"data": "distinct", "d": 10, "n": 20}, "n - 1 = 19 different patterns"),
        ({"data": "iid", "n": 5, "l": 5}, "needs n > l"),
        ({"k": 7}, "k must be even"),
        ({"k": 4, "important": 3}, "raise k"),
        ({"copies": 2}, "data=multi_copy"),
        ({"data": "empirical"}, "tokens and y"),
        ({"eta_r": -0.5}, "must not be negative"),
    ],
)
def test_bad_parameters_are_refused_with_a_sentence(given, sentence):
    with pytest.raises(odesim.UsageError, match=sentence):
        odesim.integrate(SYSTEM, until=1, **given)


def test_files_are_checked():
    good = {"w": np.zeros((2, 6)), "W": np.ones((2, 3, 6)), "a": np.array([1.0, -1.0])}
    for change, sentence in (
        ({"a": np.array([1.0, 2.0])}, "must be \\+1 or -1"),
        ({"w": np.zeros((3, 6))}, "expected w"),
        ({"P": np.ones((6, 6))}, "orthonormal"),
        ({"pi": np.full(4, 0.5)}, "sum to 1"),
        ({"pi": np.full(3, 1 / 3)}, "d - 2 = 4"),
        ({"tokens": np.zeros((2, 6), int), "y": np.ones(2)}, "empirical"),
        ({"Z": np.ones(2)}, "unknown arrays Z"),
    ):
        with pytest.raises(odesim.UsageError, match=sentence):
            odesim.integrate(SYSTEM, initial={**good, **change}, l=3, until=1)
    with pytest.raises(odesim.UsageError, match="disagrees"):
        odesim.integrate(SYSTEM, initial=good, d=7, l=3, until=1)


def test_weights_in_a_rotated_dictionary_give_the_same_run(tools):
    rng = np.random.default_rng(8)
    arrays = tools.random_arrays(5, d=10, k=4)
    P = np.linalg.qr(rng.standard_normal((10, 10)))[0]
    rotated = {"w": arrays["w"] @ P, "W": arrays["W"] @ P, "a": arrays["a"], "P": P}
    runs = [
        odesim.integrate(SYSTEM, initial=given, l=3, eta_r=0.02, eta_e=0.01, until=300, save_points=3)
        for given in (arrays, rotated)
    ]
    assert np.abs(runs[0]["h"] - runs[1]["h"]).max() < 1e-12
    # More dimensions than patterns: what lies outside never moves, and counts in the norms.
    wide = {"w": np.pad(arrays["w"], ((0, 0), (0, 3)), constant_values=0.7), "a": arrays["a"]}
    wide |= {"W": np.pad(arrays["W"], ((0, 0), (0, 0), (0, 3)), constant_values=0.5), "P": np.eye(10, 13)}
    run = odesim.integrate(SYSTEM, initial=wide, l=3, eta_r=0.02, eta_e=0.01, until=300, save_points=3)
    assert np.abs(runs[0]["h"] - run["h"]).max() < 1e-12
    norms = np.sqrt((run["h"] ** 2).sum(-1) + 3 * 0.49)
    assert run["Delta"] == pytest.approx(norms - norms[0], abs=1e-13)
