"""The interactive page without a browser: it holds what the runs hold, loads nothing, and no name in it is a mark."""

import base64
import dataclasses
import html.parser
import json
import re

import numpy as np
import pytest

import odesim
from odesim.cli import _run as command
from odesim.request.trajectory import Variable
from odesim.show import explore
from odesim.show.explore import packing
from odesim.show.explore.shown import content

SMALL = {"m": 3, "m_star": 2, "d": 100}


@pytest.fixture(scope="module")
def flow():
    return odesim.integrate("liao", **SMALL, seed=1, until=4.0, save_points=21)


@pytest.fixture(scope="module")
def sgd():
    return odesim.simulate(
        "liao", method="compressed", step_size=0.01, batch=16, seeds=3, until=4.0, save_points=11, seed=1, **SMALL
    )


class Page(html.parser.HTMLParser):
    """The references of a page, its elements, and the text of its scripts."""

    def __init__(self, text):
        super().__init__()
        self.refers, self.tags, self.scripts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.refers += [value for name, value in attrs if name in ("src", "href", "action", "srcset")]

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] == "script" and data.strip():
            self.scripts.append((self.tags[-1][1], data))

    @property
    def data(self):
        (text,) = [text for attrs, text in self.scripts if attrs.get("id") == "data"]
        return json.loads(text)


def array(packed):
    return np.frombuffer(base64.b64decode(packed["data"]), {"f4": "<f4", "f8": "<f8"}[packed["kind"]])


def test_the_page_holds_every_entry_of_the_run_and_loads_nothing(flow):
    page = Page(explore.page(flow))
    assert page.refers == []
    (policy,) = [attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in policy and "http" not in policy
    (run,) = page.data["runs"]
    assert array(run["time"]) == pytest.approx(flow.time)
    held = run["variables"]["gamma2"]
    assert held["dims"] == ["expert", "teacher"] and len(held["places"]) == 6
    values = array(held["values"]).reshape(6, 21)
    for (i, j), curve in zip(held["places"], values, strict=True):
        assert curve == pytest.approx(flow["gamma2"][:, i, j], rel=1e-6)
    assert page.data["dims"]["teacher"] == ["1", "2"]
    assert run["numbers"]["teachers"] == 2 and page.data["meanings"]["teachers"] == "number of teacher experts"
    assert list(run["variables"])[:2] == ["gamma1", "gamma2"]


def test_theory_is_that_of_the_pictures(flow):
    (run,) = Page(explore.page(flow)).data["runs"]
    (level,) = [one for one in run["theory"] if "level" in one]
    assert level == {"variables": ["gamma1", "gamma2"], "label": "0.9: found", "level": 0.9, "colour": "0.55"}
    assert all(set(one["variables"]) <= {"gamma1", "gamma2", "min_I2", "anti_aligned"} for one in run["theory"])


def test_flow_and_sgd_stand_together_each_with_its_own_dimensions(flow, sgd):
    for what in ([flow, sgd], odesim.compare(flow, sgd)):
        runs = Page(explore.page(what)).data["runs"]
        assert [run["name"] for run in runs[:2]] == ["flow, train", "compressed SGD, train"]
        assert [run["variables"]["gamma2"]["dims"] for run in runs[:2]] == [
            ["expert", "teacher"], ["replica", "expert", "teacher"],
        ]  # fmt: skip
    off = runs[2]["variables"]["distance_gamma2"]
    assert off["dims"] == ["replica"]
    largest = array(off["values"]).reshape(3, -1)[1]
    between = odesim.compare(flow, sgd).distance["gamma2"][1]
    assert largest == pytest.approx(between, rel=1e-6)


def test_a_stored_comparison_shows_the_entries_that_it_holds(flow, sgd, tmp_path):
    found = odesim.compare(flow, sgd)
    runs = Page(explore.page(found.save(tmp_path / "both", pictures=False))).data["runs"]
    assert [run["name"] for run in runs] == ["first: flow", "second: compressed", "their difference"]
    stored = found.trajectory()["panel_second_gamma2"]
    assert array(runs[1]["variables"]["gamma2"]["values"]) == pytest.approx(stored.ravel(), rel=1e-6)


def test_a_sweep_has_the_run_behind_every_point(tmp_path):
    asked = {"d": [50, 100], "seed": [3, 4]}
    data = odesim.sweep("liao", asked, m=2, m_star=1, until="0.4*sqrt(d)", save_points=7, folder=tmp_path)
    page = Page(explore.page(tmp_path))
    assert page.data["over"] == ["d", "seed"] and len(page.data["runs"]) == 4
    alone = odesim.integrate("liao", m=2, m_star=1, d=100, seed=4, until=4.0, save_points=7)
    cell = page.data["runs"][3]
    assert cell["place"] == {"d": 100, "seed": 4} and cell["outcome"] == "completed"
    assert array(cell["time"]) == pytest.approx(alone.time)
    assert array(cell["variables"]["gamma2"]["values"]) == pytest.approx(alone["gamma2"][:, :, 0].T.ravel(), rel=1e-6)
    assert cell["numbers"]["final_loss"] == pytest.approx(float(data["loss_final"].sel(d=100, seed=4)))
    assert page.data["meanings"]["evaluations"] == "right-hand sides evaluated"


def test_a_sweep_without_curves_says_how_to_have_them():
    data = odesim.sweep("liao", {"seed": [0, 1]}, m=2, m_star=1, d=50, until=1.0)
    text = explore.page(data)
    assert "has no curves. Run it with --save-points 101" in text and not any(str(n).startswith("curve_") for n in data)
    assert Page(text).data["variables"] == {}


def test_curves_of_runs_that_ended_early_are_as_long_as_they_were(tmp_path):
    from odesim.sweeps import swept

    def curves(points):
        return [np.arange(float(points)), np.arange(2.0 * points).reshape(2, points)]

    short, long = swept._as_long([curves(3)[1], curves(5)[1]])
    assert short.shape == long.shape == (2, 5) and np.isnan(short[:, 3:]).all() and (short[:, :3] == curves(3)[1]).all()


def test_large_runs_are_thinned_and_the_page_says_so(flow):
    many = np.cumsum(np.ones((4001, 5, 100)), axis=0)
    large = dataclasses.replace(
        flow, time=np.linspace(0, 1, 4001), state={"x": Variable(("time", "expert", "teacher"), many)}, extras={}
    )
    text = explore.page(large)
    assert "this page has 1001 of 4001 saved times, evenly spaced" in text and len(text) < 10e6
    (run,) = Page(text).data["runs"]
    values = array(run["variables"]["x"]["values"]).reshape(500, 1001)
    assert values[7, 0] == 1 and values[7, -1] == 4001
    vast = dataclasses.replace(
        flow, extras={}, state={"x": Variable(("time", "neuron"), np.linspace(0, 1, 21)[:, None] * np.arange(60_000.0))}
    )
    text = explore.page(vast)
    assert "of variables with up to 60000 entries, this page has the 1000 entries that change most" in text
    (run,) = Page(text).data["runs"]
    assert [place for (place,) in run["variables"]["x"]["places"]] == list(range(59_000, 60_000))
    assert packing.packed(explore.content(flow))[1] == []


def test_numbers_keep_seven_digits_or_all():
    assert packing.encoded([1.0, 0.1])["kind"] == "f4"
    huge = packing.encoded([1e300, 1e-300, np.nan])
    assert huge["kind"] == "f8" and array(huge)[:2].tolist() == [1e300, 1e-300]


def test_names_and_words_are_no_marks(flow):
    evil = "</script><img src=x onerror=alert(1)>"
    bad = dataclasses.replace(
        flow, state={evil: Variable(("time",), flow.time, evil)}, summary={evil: evil}, clock=evil,
        origin=dataclasses.replace(flow.origin, stage=evil),
    )  # fmt: skip
    text = explore.page(bad)
    page = Page(text)
    assert not any(tag == "img" for tag, _ in page.tags) and evil not in text
    assert page.data["runs"][0]["numbers"] == {evil: evil}


def test_mistakes_are_sentences(flow, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(odesim.UsageError, match=r"explore needs a run, .* but got int"):
        odesim.explore(3)
    with pytest.raises(odesim.UsageError, match="empty list"):
        odesim.explore([])
    with pytest.raises(odesim.UsageError, match=r"to different systems \(kawata, liao\)"):
        odesim.explore([flow, odesim.integrate("kawata", neurons=4, until=0.01)])
    data = odesim.sweep("liao", {"seed": [0]}, m=2, m_star=1, d=50, until=1.0)
    with pytest.raises(odesim.UsageError, match="make separate pages"):
        odesim.explore([data, flow])
    still = dataclasses.replace(flow, time=flow.time[:1], state={})
    with pytest.raises(odesim.UsageError, match="only one saved time"):
        odesim.explore(still)
    path = odesim.explore(flow)
    assert path.name == "explore.html" and path.is_file()
    with pytest.raises(odesim.UsageError, match=r"explore\.html exists; overwrite=True replaces it"):
        odesim.explore(flow)


def test_without_plotly_one_sentence_says_what_to_install(flow, tmp_path, monkeypatch, capsys):
    import sys

    folder = flow.save(tmp_path / "run", pictures=False)
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    assert command(["explore", str(folder), "--out", str(tmp_path / "page.html")]) == 4
    assert capsys.readouterr().err == (
        "odesim: explore needs plotly, which is not installed: pip install 'odesim[explore]'.\n"
    )
    assert not (tmp_path / "page.html").exists()


def test_the_command_writes_what_python_writes(flow, tmp_path, capsys):
    folder = flow.save(tmp_path / "run", pictures=False)
    out = tmp_path / "not" / "yet" / "there.html"
    assert command(["explore", str(folder), "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == out.stat().st_size
    assert out.read_text() == explore.page(str(folder))
    assert command(["explore", str(tmp_path), "--out", str(out), "--overwrite"]) == 2
    assert "is not a run folder itself" in capsys.readouterr().err
    assert re.search(r"<title>liao: flow, train", out.read_text())


def test_bands_are_four_curves_of_every_quantity(tmp_path):
    model = odesim.declare(
        student={"unit": "w"}, teacher={"noise": 0.5}, training={"limit": "online", "step": 0.5}, start={"overlap": 0.3}
    )
    answer = odesim.bands(model, d=400, until=2, save_points=5)
    answer.save(tmp_path / "kept")
    found = content(tmp_path / "kept")
    assert [run.name for run in found.runs] == [
        "flow", "mean of SGD", "band of SGD, lower end", "band of SGD, upper end",
    ]  # fmt: skip
    for run, suffix in zip(found.runs, ("", "_centre", "_low", "_high"), strict=True):
        assert np.array_equal(run.curves["error"].values, answer[f"error{suffix}"])
        assert np.array_equal(run.curves["M_ww"].values, answer[f"M_ww{suffix}"])


def test_an_answer_without_curves_is_refused():
    with pytest.raises(odesim.UsageError, match="an answer of exponents has none"):
        content(odesim.exponents("kawata_neuron"))


def test_a_stored_comparison_shows_the_loss_and_its_band(tmp_path):
    model = odesim.declare(student={"unit": "w"}, teacher={"noise": 0.5}, training={"limit": "online", "step": 0.5})
    both = odesim.compare(model, d=200, until=1, seeds=4, save_points=5, band=True)
    odesim.save(both, tmp_path / "both")
    runs = {run.name: run.curves for run in content(tmp_path / "both").runs}
    low, high = (runs[f"band of SGD, {word} end"]["loss"].values for word in ("lower", "upper"))
    assert (low <= high).all() and (high > low).any()
    assert [run["loss"].sizes["time"] for run in runs.values() if "loss" in run] == [5] * 4
