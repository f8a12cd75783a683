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


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_the_legend_names_claim_fit_and_every_rejected_rival_with_its_exponents():
    points = [[{"m_star": 10**k}, seed, 3.0 * 10 ** (k / 2)] for k in (4, 6, 8) for seed in (0, 1)]
    names = ["m_star^1/3", "m_star^0.5 (log m_star)^-1", "sqrt(d) log d", "d^{k/2}"]
    found = verdict(points, "Power", predicted=0.5, estimate=0.4983, interval=[0.49, 0.51], rejected=names)
    figure = draw(found)
    assert legend(figure) == [
        "claimed: $(m^{*})^{1/2}$",
        "fitted: $(m^{*})^{0.4983}$",
        "rejected: $(m^{*})^{1/3}$",
        r"rejected: $(m^{*})^{1/2}\,(\log m^{*})^{-1}$",
        r"rejected: $(m^{*})^{1/2}\,(\log m^{*})$",
    ]
    rivals = figure.axes[0].lines[-3:]
    assert len({line.get_color() for line in rivals}) == 3
    third = rivals[0].get_ydata()
    assert third[-1] / third[0] == pytest.approx(10 ** (4 * (1 / 3 - 1 / 2)))
    logged = rivals[2].get_ydata()
    assert logged[-1] / logged[0] == pytest.approx(2.0)  # log 1e8 over log 1e4
    assert figure.axes[0].get_xlabel() == "$m^{*}$"


def test_a_value_is_named_with_its_claim():
    figure = draw(verdict([[{}, 0, 1.02], [{}, 1, 0.98]], estimate=1.01, interval=[0.99, 1.03]))
    assert legend(figure) == ["claimed: 1", "estimate: 1.01"]


def test_a_share_is_drawn_with_its_interval_and_a_value_with_its_margin():
    runs = [[{}, seed, float(seed < 3)] for seed in range(4)]
    share = draw(verdict(runs, "Probability", predicted=[0.5, None], estimate=0.75, interval=[0.2, 0.99])).axes[0]
    assert share.get_ylabel() == "share of runs"
    value = draw(verdict([[{}, 0, 1.02], [{}, 1, 0.98]])).axes[0]
    assert value.get_xlabel() == "case"
    assert [line.get_ydata()[0] for line in value.lines[1:]] == [1.0]


def test_coordinates_that_are_no_numbers_are_not_swept():
    points = [[{"alpha": [0.5, 2.0], "M": m}, 0, 1.0 + m] for m in (2, 4)]
    assert draw(verdict(points)).axes[0].get_xlabel() == "$M$"
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
