"""The figures: what each module offers, that it draws stored runs without computing, and the same picture twice."""

import importlib
import json
import re
import sys

import pytest

from odesim.cli import main
from odesim.errors import MissingError, UsageError
from odesim.show import figures

NAMES = ["fig1", "fig2", "fig3a", "fig3b", "precision", "race", "recovery", "width"]
TINY = {"m": 5, "m_star": 2, "d": 100}


def module(name):
    return importlib.import_module(f"figures.liao.{name}")


def shrink(need):
    """The same need at m = 5, m* = 2, d = 100 until 2, or with few samples."""
    if isinstance(need, figures.Table):
        smaller = {"samples": 500, "points": 5, "draws": 5, "widths": [5, 7], "dimensions": [100, 400]}
        arguments = {name: smaller.get(name, value) for name, value in need.arguments.items()}
        return figures.Table(need.name, need.measure, arguments)
    options = {**need.options, "until": 2.0, "save_points": 5}
    return figures.Request(need.system, {**need.parameters, **TINY}, options)


def recovering(need):
    """A run at tiny size that lasts until its teachers are recovered, for the figure of recovery times."""
    return figures.Request(need.system, {**need.parameters, **TINY, "d": need.parameters["d"]}, need.options)


@pytest.fixture(scope="session")
def stored(tmp_path_factory):
    """The stored needs of every figure, at tiny size."""
    root = tmp_path_factory.mktemp("runs")
    found = {}
    for name in NAMES:
        needs = module(name).needs(quick=True)
        needs = [recovering(need) for need in needs[2::3]] if name == "recovery" else list(map(shrink, needs))
        found[name] = [figures.obtain(need, root) for need in needs]
    return found


def test_the_figures_of_liao_are_found_by_name():
    assert [name for _, name, _ in figures.modules("liao")] == NAMES
    assert [name for _, name, _ in figures.modules("liao", "fig2")] == ["fig2"]


def test_an_unknown_figure_or_system_is_refused_with_a_hint():
    with pytest.raises(UsageError, match="fig1"):
        figures.modules("liao", "fig11")
    with pytest.raises(UsageError, match="liao"):
        figures.modules("lia")


def test_an_installation_without_figures_says_where_they_are(monkeypatch):
    monkeypatch.setitem(sys.modules, "figures", None)
    with pytest.raises(MissingError, match="repository"):
        figures.modules("liao")


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_has_needs_a_caption_and_claims_that_exist(name):
    from derivations.contract import load
    from odesim.request.case import find_system

    known = {claim.id for claim in load(find_system("liao").claims)}
    assert set(module(name).CLAIMS) <= known
    assert module(name).CAPTION.rstrip().endswith(".")
    for quick in (False, True):
        needs = module(name).needs(quick=quick)
        assert needs and all(isinstance(need, figures.Request | figures.Table) for need in needs)
        assert len({need.case().digest if isinstance(need, figures.Request) else need.digest for need in needs}) == len(
            needs
        )


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_is_drawn_from_what_is_stored_without_computing_and_twice_the_same(
    name, stored, monkeypatch, tmp_path
):
    def refuse(*words, **options):
        raise AssertionError("a figure computed")

    monkeypatch.setattr(importlib.import_module("odesim.flow.solve"), "solve", refuse)
    if hasattr(module(name), "measure"):
        monkeypatch.setattr(module(name), "measure", refuse)
    pictures = []
    for attempt in range(2):
        path = tmp_path / f"{attempt}.png"
        figures.draw(module(name), stored[name]).savefig(path, metadata={"Software": "odesim"})
        pictures.append(path.read_bytes())
    assert pictures[0] == pictures[1] and len(pictures[0]) > 5000


def test_every_axis_of_every_figure_is_labelled_and_no_curve_is_empty(stored):
    for name in NAMES:
        figure = figures.draw(module(name), stored[name])
        assert any(axis.get_xlabel() for axis in figure.axes) or name == "fig3b"
        assert any(axis.get_ylabel() for axis in figure.axes), name


def test_a_run_that_is_there_is_read_and_not_made_again(stored, tmp_path, monkeypatch):
    need = shrink(module("fig1").needs(quick=True)[0])
    first = figures.obtain(need, tmp_path)
    monkeypatch.setattr(importlib.import_module("odesim.flow.solve"), "solve", None)
    assert figures.obtain(need, tmp_path).digest == first.digest


def test_the_race_is_predicted_from_the_first_saved_state_with_the_norms(stored):
    run = stored["race"][0]
    events = module("race").predicted(run, 10.0)
    b = run["norm_w"]
    assert events == sorted(events, key=lambda event: event.time)
    for event in events:
        if event.kind == "capture":
            expected = b[event.first] ** 2 / (4.5 * 10.0 * run["gamma2"][0, event.first, event.second])
        else:
            i, j = event.first, event.second
            expected = -1 / (4.5 * (b[i] ** -2 + b[j] ** -2) * 10.0 * run["I2"][0, i, j])
        assert event.time == pytest.approx(expected, rel=1e-12)


def test_the_command_draws_labels_the_smaller_request_and_lists_what_the_report_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(["figures", "--system", "liao", "--only", "fig3b", "--quick", "--out", "pictures", "--json"])
    assert not caught.value.code
    assert json.loads(capsys.readouterr().out)["figures"] == ["pictures/liao/fig3b-quick.png"]
    listed = json.loads((tmp_path / "pictures/liao/figures.json").read_text())
    assert listed["figures"][0]["claims"] == ["fig-3b"] and "--quick" in listed["figures"][0]["caption"]
    from odesim.show import report

    assert "data:image/png" in report.page(["pictures/liao"])


def asked(need):
    return {**need.parameters, **need.options} if isinstance(need, figures.Request) else dict(need.arguments)


@pytest.mark.parametrize(("system", "name", "found"), figures.modules(), ids=str)
def test_a_smaller_request_is_never_captioned_with_the_published_size(system, name, found):
    text = figures.caption_of(found, quick=True)
    if not getattr(found, "QUICK", True):
        return
    assert "Smaller request (--quick)" in text and getattr(found, "PUBLISHED", "\0") not in text
    for need in found.needs(quick=True):
        values = asked(need)
        for label, number in re.findall(r"\b([A-Za-z]\w*)\*? = ([\d.]+(?:e\d+)?)", found.CAPTION):
            if isinstance(values.get(label), int | float):
                assert float(number.rstrip(".")) == values[label], (label, number)


def test_a_figure_without_a_smaller_form_is_left_out_with_a_word(tmp_path):
    said = []
    chosen = figures.modules("kawata", "endtoend")
    assert figures.make(chosen, tmp_path, quick=True, root=tmp_path, say=said.append) == []
    assert "has no quick form" in said[0]


def test_the_solver_benchmark_illustrates_no_theorem():
    assert module("precision").CLAIMS == ()
