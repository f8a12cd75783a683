"""`odesim report`: what the page says, that it needs nothing else, and what it refuses."""

import hashlib
import html.parser
import json
import re
import shutil
import subprocess

import pytest

import derivations
from odesim.cli import main
from odesim.errors import UsageError
from odesim.show import report
from odesim.show.report import evidence

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100c9fe92ef"
    "0000000049454e44ae426082"
)
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def verdict(claim, answer, variant="main", **changes):
    content = {
        "claim": claim,
        "variant": variant,
        "answer": answer,
        "predicted": {"slope": 0.5},
        "estimate": 0.49876543,
        "interval": [0.48, 0.51],
        "rungs": [3, 8],
        "reason": f"the reason of {claim} {variant}",
        "evidence": ["0123456789ab", "ba9876543210"],
        "seconds": 1.5,
        "statement": f"the statement of {claim}",
        "source": "Theorem 1",
        "rejected": ["sqrt(d) log d"],
        "expected": answer,
        "erratum": "",
    }
    return content | changes


@pytest.fixture
def verified(tmp_path):
    """A verify folder with one verdict of each answer."""
    folder = tmp_path / "verify-liao-quick"
    folder.mkdir()
    verdicts = [
        verdict("thm-1f", "refuted", "random", erratum="errata-1"),
        verdict("thm-1f", "confirmed", "orthogonal", erratum="errata-1", statement="another statement"),
        verdict("lem-2", "inconclusive", estimate=None, interval=None, evidence=[], reason="needs full"),
        verdict("lem-x", "confirmed", reason="<script>alert('x')</script> & more" + "w" * 300),
    ]
    (folder / "verdicts.json").write_text(json.dumps({"system": "liao", "effort": "quick", "verdicts": verdicts}))
    (folder / "manifest.json").write_text(json.dumps({"schema": 1, "kind": "verdicts", "versions": {"numpy": "2.9.9"}}))
    return folder


@pytest.fixture
def ran(tmp_path):
    """A finished run folder with one picture."""
    folder = tmp_path / "run<1>"
    folder.mkdir()
    (folder / "alignment.png").write_bytes(PIXEL)
    manifest = {
        "schema": 1,
        "created": "2026-01-01T00:00:00+00:00",
        "origin": {"system": "liao", "stage": "train", "tier": "exact", "method": "flow"},
        "outcome": {"kind": "completed", "time": 2.0, "reason": ""},
        "request": {"seed": 7, "parameters": {"m": 5}},
        "versions": {"odesim": "0.1.0"},
        "files": {"alignment.png": {"sha256": hashlib.sha256(PIXEL).hexdigest(), "bytes": len(PIXEL)}},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "summary.json").write_text(json.dumps({"recovered": 2, "loss_final": 0.123456789}))
    return folder


class Reader(html.parser.HTMLParser):
    """Every attribute and the text of a page, and whether its elements close."""

    def __init__(self, page):
        super().__init__()
        self.attributes, self.text, self.open, self.ids = [], "", [], set()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids |= {value for name, value in attrs if name == "id"}
        if tag not in ("meta", "img", "br", "link", "input", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_page_shows_every_verdict_with_statement_rungs_evidence_and_the_command_that_repeats_it(verified):
    text = Reader(report.page([str(verified)])).text
    for words in (
        "the reason of thm-1f random",
        "the statement of thm-1f",
        "another statement",
        "3 back ends, 8 law",
        "0123456789ab ba9876543210",
        "odesim verify --system liao --claim thm-1f --effort quick",
        "[0.48, 0.51]",
        "slope: 0.5",
        "0.498765",
        "Theorem 1",
        "numpy 2.9.9",
    ):
        assert words in text, words


def test_the_counts_stand_above_the_table_and_the_table_above_the_claims(verified):
    page = report.page([str(verified)])
    assert re.search(r"<b>2</b> <span class=\"answer confirmed\">confirmed", page)
    assert page.index('class="counts"') < page.index('<table class="verdicts"') < page.index('<section class="claim"')


def test_every_link_of_the_page_leads_to_a_place_in_it_and_the_erratum_is_quoted(verified):
    page = Reader(report.page([str(verified)]))
    links = [value for tag, name, value in page.attributes if tag == "a" and name == "href"]
    assert links and {link.removeprefix("#") for link in links} <= page.ids
    assert "the missing term of Lemma 7" in page.text
    assert page.open == []


def test_the_page_needs_nothing_but_itself(verified, ran):
    page = Reader(report.page([str(verified), str(ran)]))
    addresses = [value for _, name, value in page.attributes if name in ("src", "href", "srcset", "action")]
    assert [address for address in addresses if not address.startswith(("#", "data:image/"))] == []
    assert not re.search(r"url\(|@import|https?://", report.page([str(verified)]))


def test_what_comes_from_files_is_escaped(verified, ran):
    page = report.page([str(verified), str(ran)])
    assert "<script>alert" not in page and "&lt;script&gt;alert('x')&lt;/script&gt;" in page
    assert "run<1>" not in page and "run&lt;1&gt;" in page


def test_titles_statements_and_errata_with_html_in_them_stay_text(verified, ran, monkeypatch):
    from odesim.show.report import verdicts

    evil = "<img src=x onerror=alert(1)>"
    content = json.loads((verified / "verdicts.json").read_text())
    for one in content["verdicts"]:
        one |= {"statement": f"{evil} $m^2$", "variant": evil, "law": evil, "source": evil, "expected": evil}
        one |= {"rejected": [evil], "sensitivity": [{"kind": evil, "size": 1.0, "sentence": evil, "part": evil}]}
    (verified / "verdicts.json").write_text(json.dumps(content | {"effort": evil}))
    monkeypatch.setattr(
        verdicts, "errata", lambda system: {"errata-1": (evil, f"{evil}\n\n$\\text{{{evil}}}$ [x](http://y)")}
    )
    page = report.page([str(verified), str(ran)])
    assert "<img src=x" not in page and page.count("&lt;img src=x") > 10
    assert not [value for _, name, value in Reader(page).attributes if name.startswith("on") or "http" in (value or "")]


def test_what_is_refuted_comes_first_then_what_weighs_more(tmp_path):
    names = {"eq-1": "equation (1)", "own-1": "Lemma 2, corrected", "lem-1": "Lemma 1", "thm-1": "Theorem 1"}
    found = [verdict(name, "confirmed", source=place) for name, place in names.items()]
    found += [verdict("lem-9", "refuted", "printed", source="Lemma 9"), verdict("lem-9", "confirmed", "corrected")]
    (tmp_path / "verdicts.json").write_text(json.dumps({"system": "liao", "effort": "quick", "verdicts": found}))
    section = report.read_verdicts(str(tmp_path))
    assert [claim.id for claim in section.claims] == ["lem-9", "thm-1", "lem-1", "own-1", "eq-1"]
    assert [title for title, _, _ in section.groups][:2] == ["Refuted", "Theorems, propositions, corollaries"]
    assert "not as expected" in report.page([str(tmp_path)])


def test_digests_lead_to_what_was_asked_and_the_evidence_is_drawn(verified):
    runs = {f"{k:012x}": {"stage": "train", "method": "flow", "parameters": {"d": 10, "m": k}} for k in range(8)}
    samples = [[{"d": 10**k}, 0, 10.0 ** (k / 2)] for k in (2, 4, 6)]
    content = json.loads((verified / "verdicts.json").read_text())
    content["verdicts"][0] |= {"evidence": list(runs), "law": "Power", "margin": 0.02, "predicted": 0.5, "deciding": ""}
    (verified / "verdicts.json").write_text(json.dumps(content))
    of_claim = {"claim": "thm-1f", "variant": "random", "samples": samples}
    (verified / "evidence.json").write_text(json.dumps({"samples": [of_claim], "runs": runs}))
    page = report.page([str(verified)])
    read = Reader(page)
    assert {value for _, name, value in read.attributes if name == "href"} >= {f"#liao-0-run-{name}" for name in runs}
    assert {value.removeprefix("#") for _, name, value in read.attributes if name == "href"} <= read.ids
    assert "Common to all: stage train, method flow, parameters.d 10." in read.text
    assert page.count("data:image/svg+xml") == 1 and "3 measurements" in read.text
    assert "0.5 ± 0.02" in read.text and "8 runs" in read.text


@pytest.mark.parametrize("system", derivations.folders())
def test_every_erratum_of_a_claim_is_told_and_rendered_without_a_rest_of_its_mark_up(system):
    from odesim.evidence.verification import claims_of
    from odesim.request.case import find_system
    from odesim.show.report.errata import rendered

    told = report.errata(system)
    assert {claim.erratum for claim in claims_of(find_system(system))} - {""} <= set(told)
    for name, (title, text) in told.items():
        shown = re.sub(r"<code>.*?</code>", "", f"{rendered(title, inline=True)}{rendered(text)}")
        assert not re.search(r"[\\$`\ue000]|\w_\{", shown), name


def test_runs_of_a_stage_share_a_table_in_which_common_values_stand_once(ran, tmp_path):
    other = shutil.copytree(ran, tmp_path / "second")
    manifest = json.loads((other / "manifest.json").read_text())
    manifest["request"]["seed"] = 8
    (other / "manifest.json").write_text(json.dumps(manifest))
    text = re.sub(r"\s+", " ", Reader(report.page([str(ran), str(other)])).text)
    assert text.count("parameters.m") == 1 and "seed78" in text and "Request, common to all" in text


def test_a_run_shows_its_picture_and_its_headline_numbers(ran):
    page = Reader(report.page([str(ran)]))
    assert "completed at time 2" in page.text and "0.123457" in page.text and "parameters.m" in page.text
    sources = [value for tag, name, value in page.attributes if (tag, name) == ("img", "src")]
    assert len(sources) == 1 and sources[0].startswith("data:image/png;base64,iVBOR")


def test_a_changed_picture_is_refused(ran):
    (ran / "alignment.png").write_bytes(PIXEL + b" ")
    with pytest.raises(UsageError, match="was changed after the run"):
        report.page([str(ran)])


def test_the_figure_of_a_claim_stands_with_the_claim(verified, tmp_path):
    folder = tmp_path / "figures"
    folder.mkdir()
    (folder / "fig1.png").write_bytes(PIXEL)
    entry = {"file": "fig1.png", "caption": "what it shows", "claims": ["thm-1f"], "runs": []}
    entry["sha256"] = hashlib.sha256(PIXEL).hexdigest()
    (folder / "figures.json").write_text(json.dumps({"system": "liao", "figures": [entry]}))
    page = report.page([str(folder), str(verified)])
    assert page.count("data:image/png") == 1
    assert page.index('id="liao-1-thm-1f"') < page.index("what it shows") < page.index('id="liao-1-lem-2"')


def test_a_smaller_figure_gives_way_to_the_published_size(tmp_path):
    entries = []
    for name in ("fig1-quick.png", "fig1.png", "fig2-quick.png"):
        (tmp_path / name).write_bytes(PIXEL + name.encode())
        digest = hashlib.sha256(PIXEL + name.encode()).hexdigest()
        entries.append({"file": name, "caption": "what it shows", "claims": [], "runs": [], "sha256": digest})
    (tmp_path / "figures.json").write_text(json.dumps({"system": "liao", "figures": entries}))
    assert [picture.name for picture in report.read_figures(str(tmp_path)).pictures] == ["fig1.png", "fig2-quick.png"]


def test_the_page_names_no_folder_of_this_machine(verified, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert str(tmp_path) not in report.page(["verify-liao-quick"])


@pytest.mark.parametrize("kind", ["missing", "empty", "unfinished", "damaged", "other answer", "other shape"])
def test_a_folder_that_is_neither_verdicts_nor_a_run_is_refused_in_one_sentence(kind, tmp_path, verified):
    folder = tmp_path / "folder"
    if kind != "missing":
        folder.mkdir()
    if kind == "unfinished":
        (folder / "verdicts.jsonl").write_text("{}\n")
    if kind == "damaged":
        (folder / "verdicts.json").write_text("{")
    if kind == "other answer":
        (folder / "verdicts.json").write_text((verified / "verdicts.json").read_text().replace("refuted", "maybe"))
    if kind == "other shape":
        (folder / "verdicts.json").write_text((verified / "verdicts.json").read_text().replace("[3, 8]", "3"))
    with pytest.raises(UsageError) as caught:
        report.page([str(folder)])
    assert str(folder) in str(caught.value) and "\n" not in str(caught.value)


def test_an_existing_page_is_replaced_only_when_asked(verified, tmp_path):
    out = tmp_path / "report.html"
    out.write_text("mine")
    with pytest.raises(UsageError, match="--overwrite"):
        report.write([str(verified)], out)
    assert out.read_text() == "mine"
    report.write([str(verified)], out, overwrite=True)
    assert out.read_text().startswith("<!DOCTYPE html>")
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def test_the_command_writes_the_page_and_refuses_with_exit_code_2(verified, tmp_path, capsys):
    for expected in (0, 2):
        with pytest.raises(SystemExit) as caught:
            main(["report", str(verified), "--out", str(tmp_path / "page.html"), "--json"])
        assert (caught.value.code or 0) == expected
    printed = capsys.readouterr()
    assert json.loads(printed.out)["page"] == str(tmp_path / "page.html")
    assert printed.err.count("\n") == 1


def browse(tmp_path, address, width, *words):
    """The output of headless Chromium for a page in a window of a given width."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    where = [f"--user-data-dir={tmp_path / f'profile-{width}'}", f"--window-size={width},900"]
    command = [BROWSER, *flags, *where, "--virtual-time-budget=2000", *words, address]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.parametrize("width", [1280, 375], ids=["desktop", "phone"])
def test_in_a_real_browser_nothing_overflows_and_the_filter_filters(width, verified, ran, tmp_path):
    page = report.page([str(verified), str(ran)])
    # A frame of exactly this width: a headless window is never narrower than 500 pixels.
    (tmp_path / "page.html").write_text(page + PROBE)
    (tmp_path / "frame.html").write_text(
        f'<iframe id="f" src="page.html#show=refuted" style="border:0;width:{width}px;height:900px"></iframe>'
        "<script>addEventListener('message', function (e) { document.body.dataset.found = e.data; });</script>"
    )
    dom = browse(tmp_path, (tmp_path / "frame.html").as_uri(), max(width, 1400), "--dump-dom")
    found = re.search(r'data-found="([^"]*)"', dom)
    assert found, dom
    *numbers, top = found[1].split()
    inner, scroll, rows, sections, after, searched = map(int, numbers)
    assert inner == width and scroll <= inner
    assert (rows, sections) == (1, 1), "one refuted verdict, in one claim"
    assert after == 4, "the button `all` shows every row again"
    assert searched == 1, "one row holds the words that are searched"
    assert top == "lem-2", "a click on a heading sorts"


PROBE = """<script>
addEventListener("load", function () {
  var seen = function (what) {
    return Array.from(document.querySelectorAll(what)).filter(function (e) { return e.offsetHeight > 0; }).length;
  };
  var root = document.documentElement, rows = seen(".verdicts tbody tr"), claims = seen(".claim[data-answers]");
  document.querySelector('[data-show=""]').click();
  var all = seen(".verdicts tbody tr");
  var search = document.querySelector(".filter input");
  search.value = "another STATEMENT";
  search.dispatchEvent(new Event("input"));
  var searched = seen(".verdicts tbody tr");
  search.value = "";
  search.dispatchEvent(new Event("input"));
  document.querySelector(".verdicts th button").click();
  var top = document.querySelector(".verdicts tbody tr a").textContent;
  var widest = Math.max(root.scrollWidth, document.body.scrollWidth);
  parent.postMessage([innerWidth, widest, rows, claims, all, searched, top].join(" "), "*");
});
</script>"""


def test_no_line_of_a_sentence_ends_inside_a_power_or_a_number():
    from odesim.show.report.plain import typeset

    # Two formulas side by side may be parted at the end of a line, and 1e-09 after its sign.
    assert "&#8288;<math><msup><mo" in typeset("grows like (1 - delta_d)^3")
    assert str(typeset("at most -1.5e-09 of it")) == 'at most <span class="number">-1.5e-09</span> of it'
    assert str(typeset("see 1e of e-9")) == "see 1e of e-9"
    assert "<mn>.97725</mn>" in typeset("1 - .97725^{JC}")


def test_a_long_table_of_runs_is_cut_and_says_so(tmp_path):
    count = evidence.LISTED + 1
    request = {"system": "liao", "method": "flow", "tier": "exact", "parameters": {"tier": "exact", "d": 10}}
    content = {"samples": [], "runs": {f"{k:012x}": {**request, "seed": k} for k in range(count)}}
    (tmp_path / "evidence.json").write_text(json.dumps(content))
    found = evidence.evidence_of(tmp_path, "run")
    (table,) = found.tables
    assert (table.count, len(table.rows), table.header) == (count, evidence.LISTED, ("seed",))
    assert [name for name, _ in table.common if "tier" in name] == ["tier"]
    links = found.links({"evidence": [f"{0:012x}", f"{count - 1:012x}"]})
    assert [link.anchor for link in links] == ["run-000000000000", ""]
