"""Output of the commands about a declared model: citation, available features, reasons for missing ones, file names."""

import json

import numpy as np
import pytest

import odesim
from odesim.cli import main
from odesim.cli.inform import describe
from odesim.show.cite import bibtex

ERF = {"student": {"unit": "erf(w/sqrt(2))", "units": 2}, "teacher": {}}


@pytest.mark.parametrize(("source", "author", "year"), [
    ("Saad & Solla 1995", "Saad and Solla", "1995"), ("Ben Arous et al. (2021)", "Ben Arous and others", "2021"),
    ("Biehl, Riegler & Wöhler 1996", "Biehl and Riegler and Wöhler", "1996"),
    ("my notes", "my notes", None), ("", "declared by the user", None),
])  # fmt: skip
def test_a_citation_takes_its_year_from_the_source_or_has_none(source, author, year):
    entry, own = bibtex(odesim.declare(**ERF, title="A committee", source=source))
    assert f"author = {{{author}}}" in entry and "{0}" not in entry and "note  " not in entry
    assert (f"year   = {{{year}}}" in entry) if year else ("year" not in entry)
    assert entry.count("{") == entry.count("}") and own.startswith("@software{odesim,")


def test_only_what_exists_is_listed_and_the_rest_has_its_reason():
    (stage,) = describe(odesim.declare(**ERF))["stages"]
    assert [tier["name"] for tier in stage["tiers"]] == ["exact", "sampled"]
    missing = {tier["name"]: tier["reason"] for tier in stage["missing"]}
    assert set(missing) == {"mixed", "leading"} and all(missing.values())
    assert "no second-order term" in missing["mixed"] and not missing["mixed"].startswith("tier")


def test_the_error_of_sampling_is_explained_where_its_points_are():
    described = describe(odesim.declare(**ERF))
    (points,) = (p for p in described["parameters"] if p["name"] == "points")
    assert "sampling_error" in points["meaning"] and "relative error" in points["meaning"]


def told(*words):
    """The exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    return ended.value.code or 0


def test_a_run_names_the_model_and_not_where_it_lies(tmp_path, capsys):
    path = tmp_path / "small.toml"
    path.write_text('[student]\nunit = "He(2, w)"\n')
    asked = ("integrate", "--system", str(path), "--until", "0.001", "--no-figures", "--out", str(tmp_path / "run"))
    assert told(*asked) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("small train (exact): completed")
    assert told("systems", str(path), "--json") == 0
    stage = json.loads(capsys.readouterr().out)["stages"][0]
    assert "none" not in {tier["kind"] for tier in stage["tiers"]}


def test_weights_from_python_are_observed_as_by_the_command():
    system = odesim.declare(**ERF)
    rng = np.random.default_rng(0)
    w, w_star = rng.normal(size=(3, 2, 10)) / 3, np.eye(10)[:1]
    run = odesim.observe(system, {"w": w, "w_star": w_star, "time": [0.0, 0.5, 2.0]})
    assert run["Q_ww"] == pytest.approx(w @ np.swapaxes(w, 1, 2), abs=1e-14)
    assert run["M_ww"] == pytest.approx(w @ w_star.T, abs=1e-14)
    assert list(run.time) == [0.0, 0.5, 2.0]
    with pytest.raises(odesim.UsageError, match="no weights of the teacher"):
        odesim.observe(system, {"w": w})
