"""Checks: the record and its schema, the page, the folder, and what is refused."""

import html.parser
import json
import re
import xml.etree.ElementTree as ET

import jsonschema
import pytest

import derivations
import odesim
from derivations import outside
from odesim.evidence.check import overall, unexpected
from odesim.show.check import schema
from odesim.show.check.equations import formulas
from tests.odesim.least_squares import MODEL

FLOOR = (
    MODEL
    + """[[claim]]
id = "floor"
statement = "With label noise the error falls to eta noise^2/(2 - eta) = {value}"
published = "eq. (7)"
measure = "final error"
until = 30
law = {{equals = {value}, margin = 1e-4}}
"""
)
VALUE = 0.5 * 0.25 / 1.5
"""The floor eta noise^2/(2 - eta) of E' = -eta (2 - eta) E + eta^2 noise^2."""
SMALL = {"d": 50, "until": 1.0, "seeds": 5}


class Addresses(html.parser.HTMLParser):
    """Collects what a page would load, its links within, and its places."""

    def __init__(self):
        super().__init__()
        self.loaded, self.targets, self.ids, self.tags = [], set(), set(), []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append(tag)
        self.ids |= {given["id"]} if "id" in given else set()
        self.loaded += [given[key] for key in ("src", "srcset", "data", "poster") if key in given]
        self.loaded += [given["href"]] if tag == "link" else []
        if tag == "a" and given.get("href", "").startswith("#"):
            self.targets.add(given["href"][1:])


def declared(tmp_path, value=VALUE, name="floor.toml"):
    path = tmp_path / name
    path.write_text(FLOOR.format(value=value), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A check of a model whose claim holds, with SGD beside the flow, and its folder."""
    place = tmp_path_factory.mktemp("good")
    found = odesim.check(declared(place), "floor", **SMALL)
    return found, found.save(place / "check")


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """A check of the same model with half of the number."""
    place = tmp_path_factory.mktemp("broken")
    found = odesim.check(declared(place, VALUE / 2), "floor", compared=False)
    return found, found.save(place / "check")


def first_screen(folder):
    """The text of the page before its first section."""
    page = (folder / "check.html").read_text(encoding="utf-8")
    return re.sub(r"<[^>]+>", " ", page[page.index("<header>") : page.index("<nav")])


def test_a_declaration_names_its_paper(tmp_path):
    named = 'source = "Lee & Kim 2025"\npaper = "Floors of SGD"\nlink = "https://example.org/1"'
    text = FLOOR.format(value=VALUE).replace('source = "A. Author 2024"', named)
    (tmp_path / "floor.toml").write_text(text, encoding="utf-8")
    found = odesim.check(tmp_path / "floor.toml", "floor", compared=False)
    folder = found.save(tmp_path / "check")
    said = re.sub(r"\s+", " ", first_screen(folder))
    assert "Least squares" in said and "Lee &amp; Kim 2025, Floors of SGD · https://example.org/1" in said.replace(
        " ,", ","
    )
    assert (found.record["system"]["title"], found.record["system"]["paper"]) == ("Least squares", "Floors of SGD")
    assert "title = {Floors of SGD}" in re.sub(r" +", " ", found.record["system"]["bibtex"])
    with pytest.raises(odesim.UsageError, match="paper"):
        odesim.declare(student={"unit": "w"}, paper=7)


def test_claims_of_a_declaration_stand_under_their_origin(tmp_path):
    own = '[[claim]]\nid = "own"\nstatement = "It falls"\nmeasure = "final error"\nuntil = 30\nlaw = {at_most = 1}\n'
    (tmp_path / "floor.toml").write_text(FLOOR.format(value=VALUE) + own, encoding="utf-8")
    folder = odesim.check(tmp_path / "floor.toml", ["floor", "own", "drift"], compared=False).save(tmp_path / "check")
    page = (folder / "check.html").read_text(encoding="utf-8")
    groups = re.findall(r'<h3 id="floor-0-group-(\w+)">([^<]*)</h3>\s*<section class="claim" id="floor-0-(\w+)"', page)
    assert [(group, claim) for group, _, claim in groups] == [
        ("printed", "floor"), ("stated", "own"), ("generated", "drift"),
    ]  # fmt: skip
    assert groups[0][1] == "Claims that the source prints"


def test_the_step_of_sgd_has_the_symbol_of_the_conventions(good):
    found, folder = good
    assert found.record["comparison"]["step"] == "eta/d = 0.01 (eta = 0.5)"  # the declared step 0.5 at d = 50
    text = re.sub(r"<[^>]+>", "", (folder / "check.html").read_text(encoding="utf-8"))
    assert "(η = 0.5), 1 sample a step, until 1." in text


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("which", ["good", "broken"])
def test_the_record_in_the_folder_obeys_the_schema(which, request):
    found, folder = request.getfixturevalue(which)
    record = json.loads((folder / "check.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema(), format_checker=jsonschema.FormatChecker()).validate(record)
    assert record == found.record


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("verdict", "answer"), "true"),
        (("grade", "claims"), []),
        (("claims", 0, "refutation"), ""),
        (("claims", 0, "answer"), "maybe"),
        (("digest",), "x"),
        (("more",), 1),
    ],
)
def test_the_schema_refuses_what_is_no_check(good, path, value):
    record = json.loads(json.dumps(good[0].record))
    place = record
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema()).validate(record)


def test_a_claim_that_holds_is_confirmed_with_its_grade(good):
    found, folder = good
    assert (found.answer, found.grade) == ("confirmed", "number reproduced")
    (claim,) = found.record["claims"]
    assert claim["published"] == "eq. (7)" and claim["refutation"].startswith("a value in any case that differs from")
    text = first_screen(folder)
    assert "confirmed" in text and "number reproduced" in text and "eq. (7)" in text


def test_a_broken_declaration_says_refuted_on_its_first_screen(broken):
    found, folder = broken
    assert (found.answer, found.grade) == ("refuted", "qualitative")
    text = first_screen(folder)
    assert re.search(r"Verdict\s+refuted", text) and "Unexpectedly refuted: floor" in text
    assert "0.0833" in text  # what was found
    assert re.search(r"\n    floor: .*0\.0833", repr(found))  # and the console says it too


def test_the_reasons_of_a_check_name_refuted_claims_before_open_ones_and_no_expected_ones():
    claims = [
        {"claim": "a", "answer": "inconclusive", "expected": "confirmed"},
        {"claim": "b", "answer": "refuted", "expected": "refuted"},
        {"claim": "c", "answer": "confirmed", "expected": "confirmed"},
        {"claim": "d", "answer": "refuted", "expected": "confirmed"},
    ]
    assert [claim["claim"] for claim in unexpected({"claims": claims})] == ["d", "a"]


def test_the_verdict_counts_what_the_source_prints_apart_from_generated_tests():
    generated = {"claim": "drift", "variant": "main", "answer": "confirmed", "expected": "confirmed", "published": ""}
    printed = {**generated, "claim": "floor", "answer": "refuted", "published": "eq. (7)"}
    said = overall([generated, printed]).sentence
    assert "The source prints 1 of these forms: 0 confirmed, 0 consistent, 1 refuted, 0 inconclusive." in said
    assert "The source prints" not in overall([printed]).sentence


@pytest.mark.parametrize("which", ["good", "broken"])
def test_the_page_loads_nothing_and_its_links_lead_somewhere(which, request):
    _, folder = request.getfixturevalue(which)
    page = (folder / "check.html").read_text(encoding="utf-8")
    seen = Addresses()
    seen.feed(page)
    assert all(address.startswith("data:") for address in seen.loaded)
    assert not re.search(r"@import|url\((?!data:)", page) and "script" not in seen.tags
    assert seen.targets <= seen.ids
    assert "width=device-width" in page and "prefers-color-scheme: dark" in page and "@media print" in page
    assert str(folder) not in page and str(folder.parent) not in (folder / "check.json").read_text(encoding="utf-8")


def test_the_page_has_equations_and_the_picture(good, broken):
    with_picture, without = ((folder / "check.html").read_text(encoding="utf-8") for _, folder in (good, broken))
    assert with_picture.count('<math display="block">') >= 10
    assert "data:image/png;base64," in with_picture
    assert "No picture: not asked for" in without


def test_a_check_comes_back_from_its_folder(good):
    found, folder = good
    again = odesim.load(folder)
    assert again.record == found.record and again.summary() == found.summary()
    name = "distance_M_ww"
    assert again.comparison[name].tolist() == found.comparison[name].tolist()
    assert "number reproduced" in repr(again) and "<table>" in again._repr_html_()
    with pytest.raises(odesim.UsageError, match="read from a folder"):
        again.save(folder.parent / "copy")


def test_its_verdicts_and_comparison_are_folders_of_their_own(good):
    _, folder = good
    assert odesim.load(folder / "verdicts")[0]["claim"] == "floor"
    assert odesim.load(folder / "comparison").summary["replicas"] == 5


def test_a_changed_page_is_noticed(tmp_path):
    folder = odesim.check(declared(tmp_path), "floor", compared=False).save(tmp_path / "check")
    page = folder / "check.html"
    page.write_text(page.read_text(encoding="utf-8").replace("confirmed", "refuted"), encoding="utf-8")
    with pytest.raises(odesim.UsageError, match=r"check\.html was changed"):
        odesim.load(folder)


def test_what_changed_between_two_checks_is_said(good, broken):
    found = broken[0].changes(good[0])
    assert found.answers == (("floor", "confirmed", "refuted"),)
    assert ("grade", "number reproduced", "qualitative") in found.headline and found.restated == ("floor",)
    assert found.moved == ()  # the model is the same, only the claim is not


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(odesim.UsageError, match="has no claim 'nothing'"):
        odesim.check("saad_solla_1995", "nothing")
    with pytest.raises(odesim.UsageError, match=r"compared=False makes no comparison"):
        odesim.check("saad_solla_1995", "plateau", compared=False, seeds=3)


@pytest.mark.parametrize("name", [*derivations.folders(), *outside.gallery()])
def test_the_equations_of_every_model_are_well_formed_mathml(name):
    found = formulas(odesim.derive(name, "latex-fragment"))
    assert len(found) >= 5
    for formula in found:
        assert ET.fromstring(formula).tag == "math"
        assert "\\" not in re.sub(r"<[^>]+>", "", formula)  # no command is left as it is written
