"""A system on a finite alphabet, outside the package, works in every command without an edit elsewhere."""

import json
from pathlib import Path

import numpy as np
import pytest

import odesim
from odesim.evidence import verification
from odesim.evidence.laboratory import Laboratory

FAST = ["--quiet", "--save-points", "5"]
SGD = ["--step-size", "0.05", "--batch", "200", "--seeds", "3", "--until", "2", "--json"]


def folder_of(asked, *words):
    return Path(json.loads(asked(*words, *FAST))["folder"])


def test_the_flow_on_both_back_ends_is_the_closed_form(asked, words):
    found = [odesim.load(folder_of(asked, "integrate", "-s", words, "--json", "--backend", name, *more))
             for name, more in (("numba", ()), ("jax", ["--no-figures"]))]  # fmt: skip
    from words import SYSTEM, chances, claims

    run = found[0]
    parameters = SYSTEM.parameters()
    expected = claims.exact(run["margin"][0], run["time"], parameters.m * chances(parameters))
    for one in found:
        assert one["margin"] == pytest.approx(expected, abs=1e-6)
    hit, u = run["T_word"], run["u"]
    assert np.isfinite(hit).any() and (np.isfinite(hit) == (np.abs(u[-1]) >= 0.5)).all()
    said = odesim.predict(run, {"word": np.array([2, 0])})["output"].values
    assert said == pytest.approx(u[-1].sum(0)[[2, 0]])


def test_training_in_every_engine_and_its_comparison(asked, words):
    for method, backend in (("compressed", "numba"), ("explicit", "numba"), ("compressed", "jax"), ("explicit", "jax")):
        folder = folder_of(asked, "simulate", "-s", words, *SGD, "--method", method, "--backend", backend)
        flow = odesim.integrate(odesim.system(str(words)), until=2.0, save_points=5)
        run = odesim.load(folder)
        assert np.abs(np.mean(run["u"], axis=0) - flow["u"]).max() < 0.05
        assert (run["loss"][:, -1] < run["loss"][:, 0]).all() and run["T_word"].shape == (3, 2, 6)
    found = folder_of(asked, "compare", "-s", words, *SGD)
    assert np.nanmax(odesim.load(found)["distance_u"]) < 0.1 and (found / "comparison.png").is_file()
    assert (found / "manifest.json").is_file()


def test_claims_sweeps_pages_and_what_looks_at_runs(asked, words):
    told = json.loads(asked("verify", "-s", words, "--workers", "2", "--quiet", "--json"))
    assert [verdict["answer"] for verdict in told["verdicts"]] == ["confirmed", "confirmed"]
    asked("report", told["folder"], "--out", "page.html", "-q")
    assert "Lemma 2" in Path("page.html").read_text()
    folder = Path(asked("sweep", "-s", words, "--over", "m=1,2", "--over", "seed=0,1", "--until", "1", "--workers", "2",
                        "--quiet").strip())  # fmt: skip
    assert odesim.load(folder)["outcome"].size == 4
    for form, word in (("text", "chance of a word"), ("latex", "documentclass"), ("python", "def rates"),
                       ("kernels", "def pull")):  # fmt: skip
        assert word in asked("derive", "-s", words, "--format", form)
    run = folder_of(asked, "integrate", "-s", words, "--until", "1", "--json")
    assert "words" in asked("show", run)
    later = asked("integrate", "--from", run, "--until", "2", "--quiet", "--json")
    assert json.loads(later)["outcome"]["time"] == 2.0
    asked("explore", run, "--out", "run.html", "-q")
    assert "On Single Words" in asked("cite", "-s", words) and "number of words" in asked("systems", words)


def test_broken_claims_are_refuted_and_the_mean_step_is_that_of_the_flow(words):
    system = odesim.system(str(words))
    from words import chances, claims

    lab = Laboratory(system, "quick", "numba", 0)
    assert [verification.control(lab, claim).answer for claim in claims.CLAIMS] == ["refuted", "refuted"]
    initial = lab.initial(seed=0)
    mean, error = lab.drift(initial, samples=40_000, seed=0)
    signs, u = initial.constants["signs"], initial.state["u"]
    exact = chances(initial.parameters) * signs / (1 + np.exp(signs * u.sum(0)))
    assert (mean[0, -1] == 0).all()  # the router rests
    assert np.abs((mean[0, :-1] - exact) / error[0, :-1]).max() < 5


def test_a_mistake_in_the_loops_of_others_is_not_called_ours(asked, words):
    text = (words / "__init__.py").read_text()
    broken = words.parent / "alone.py"
    broken.write_text(text.replace("(v,) = pull(S", "v = pull(S").replace("outside_words", "outside_broken"))
    said = asked("integrate", "-s", broken, *FAST, code=70)
    assert len(said.splitlines()) == 1 and "TypingError" in said and "unless it is of" in said and str(broken) in said
