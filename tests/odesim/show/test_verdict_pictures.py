"""The picture of a verdict shows what was measured and what was claimed."""

import math

import pytest

from odesim.show.verdict_pictures import caption, draw, draw_all


def verdict(samples, law="Equals", **more):
    """A verdict as it is stored."""
    content = {
        "claim": "lem-1", "variant": "main", "answer": "confirmed", "samples": samples, "law": law, "predicted": 1.0,
        "margin": 0.1, "deciding": "", "estimate": 1.0, "interval": None,
    }  # fmt: skip
    return content | more


def test_a_power_is_taken_out_so_that_its_deviations_show():
    points = [[{"d": 10**k}, seed, 3.0 * 10 ** (k / 2)] for k in (4, 6, 8) for seed in (0, 1)]
    found = verdict(points, "Power", predicted=0.5, estimate=0.5, interval=[0.4, 0.6], rejected=["d", "d^{k/2}"])
    (axis,) = draw(found).axes
    dots, claim, fit, rejected = axis.lines
    assert axis.get_xscale() == "log" and len(dots.get_xdata()) == 6
    for line in (dots, claim, fit):  # the law goes through exact data
        assert line.get_ydata() == pytest.approx(3.0)
    assert rejected.get_ydata()[-1] / rejected.get_ydata()[0] == pytest.approx(100)  # d over sqrt(d), four decades
    assert "rejected: d;" in caption(found).replace(".", ";")


def test_a_share_is_drawn_with_its_interval_and_a_value_with_its_margin():
    runs = [[{}, seed, float(seed < 3)] for seed in range(4)]
    share = draw(verdict(runs, "Probability", predicted=[0.5, None], estimate=0.75, interval=[0.2, 0.99])).axes[0]
    assert share.get_ylabel() == "share of runs"
    value = draw(verdict([[{}, 0, 1.02], [{}, 1, 0.98]])).axes[0]
    assert value.get_xlabel() == "case"
    assert [line.get_ydata()[0] for line in value.lines[1:]] == [1.0]


def test_coordinates_that_are_no_numbers_are_not_swept():
    points = [[{"alpha": [0.5, 2.0], "M": m}, 0, 1.0 + m] for m in (2, 4)]
    assert draw(verdict(points)).axes[0].get_xlabel() == "M"
    (axis,) = draw(verdict([[{"alpha": [0.5, k]}, 0, 1.0] for k in (1, 2)])).axes
    assert axis.get_xlabel() == "case"


def test_parts_have_panels_and_what_was_never_reached_is_said():
    samples = [[{}, k, {"a": "inf" if k else 1.0, "b": 2.0}] for k in range(3)]
    axes = draw(verdict(samples, deciding="b")).axes
    assert [axis.get_title(loc="left") for axis in axes] == ["b", "a"]  # the deciding part first
    assert [text.get_text() for text in axes[1].texts] == ["2 never reached"]
    assert math.isfinite(axes[0].get_ylim()[1])


def test_many_parts_stand_in_rows_and_leave_no_empty_panel():
    parts = {name: 1.0 for name in "abcde"}
    figure = draw(verdict([[{}, k, parts] for k in range(2)], deciding="a"), titled=False)
    assert [axis.get_visible() for axis in figure.axes] == [True] * 5 + [False]
    assert not figure.get_suptitle()


def test_every_form_has_a_file_of_its_own(tmp_path):
    forms = [verdict([[{}, 0, 1.0]], variant=name) for name in ("main", "l = 1/2")]
    draw_all([*forms, verdict([])], tmp_path)
    assert sorted(path.name for path in (tmp_path / "evidence").iterdir()) == ["lem-1.l___1_2.svg", "lem-1.svg"]
