"""Content of a check as plain data, in the form of the published schema."""

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from derivations.claim import ANSWERS
from derivations.contract import Dynamics, System
from derivations.outside import last_name
from odesim.errors import UsageError
from odesim.evidence.check import Findings, Request, overall
from odesim.evidence.grade import grade
from odesim.evidence.verdicts import is_identity
from odesim.evidence.verification import disagrees
from odesim.machine import device
from odesim.request.case import Case
from odesim.request.trajectory import Trajectory
from odesim.show.cite import bibtex
from odesim.show.page.render import explain, render
from odesim.show.report.errata import errata
from odesim.show.report.words import shown
from odesim.store.files import BESIDE, jsonable
from odesim.store.manifest import git_state, versions

FORMAT, VERSION = "odesim-check", 1
"""Name and version of the form of `check.json`."""
HEADS = re.compile(
    r"^(Loss|Derivation|Equations of motion|Recursion|Rates|Kernels|Observables|where)\b.*$", re.MULTILINE
)
"""Titles of the parts of a derivation page that are equations; the parts before them describe the model."""
KEPT = (
    "claim", "variant", "statement", "claim_statement", "source", "published", "reproduces", "law", "predicted",
    "bound", "margin", "refutation", "answer", "expected", "estimate", "interval", "reason", "slack", "identity",
    "erratum", "rejected", "rungs", "evidence", "seconds",
)  # fmt: skip
"""Fields of a verdict that the record has."""


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the record, as the package has it.

    Example:
        >>> schema()["title"]
        'Check of a model by odesim'
    """
    text = resources.files("odesim.show.check").joinpath("check.schema.json").read_text(encoding="utf-8")
    return json.loads(text)


def record(request: Request, findings: Findings) -> dict[str, Any]:
    """Return the record of a check, from its request and results."""
    outcome, system = overall(findings.verdicts), request.of
    counts = {answer: sum(v["answer"] == answer for v in findings.verdicts) for answer in ANSWERS}
    content = {
        "format": FORMAT,
        "version": VERSION,
        "digest": request.digest,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "system": _system(system),
        "request": _request(request),
        "verdict": {
            "answer": outcome.answer,
            "sentence": outcome.sentence,
            "refuted": outcome.refuted,
            "open": outcome.open,
            "known": outcome.known,
            "counts": counts,
            "unexpected": sum(map(disagrees, findings.verdicts)),
            "identities": sum(map(is_identity, findings.verdicts)),
        },
        "grade": grade(findings.verdicts).record(),
        "model": _model(system),
        "claims": [_claim(verdict) for verdict in findings.verdicts],
        "comparison": _comparison(system, findings.comparison, findings.missing),
        "errata": _errata(system, findings.verdicts),
        "versions": versions(),
        "git": git_state(),
        "device": device.describe(),
        "seconds": dict(findings.seconds),
    }
    plain: dict[str, Any] = jsonable(content)
    return plain


def _system(system: System) -> dict[str, Any]:
    source = system.source
    return {
        "name": system.name,
        "title": system.title,
        "about": system.about,
        "source": str(source),
        "paper": source.title,
        "venue": source.venue,
        "link": source.link,
        "bibtex": bibtex(system)[0],
        "declaration": system.declaration or None,
        "declaration_digest": system.digest or None,
    }


def _request(request: Request) -> dict[str, Any]:
    """Return the request without paths of this machine, because others may read the record."""
    judged = request.judged
    compared = request.pair.request() if request.pair is not None else None
    return {
        "effort": judged.effort,
        "backend": judged.backend,
        "seed": judged.seed,
        "claims": sorted(set(judged.claims)) or "all",
        "comparison": _without_paths(compared) if compared is not None else None,
    }


def _without_paths(content: Any) -> Any:
    """Return plain data in which every system is replaced by its name."""
    if isinstance(content, Mapping):
        return {
            name: last_name(str(value)) if name == "system" else _without_paths(value)
            for name, value in content.items()
        }
    return content


def _model(system: System) -> dict[str, Any]:
    """Return the page of the first stage with a clock: the model with its conventions, its equations, and why they
    close.
    """
    try:
        case = Case.build(system, {})
        text = render(system, case.parameters, "text", case.stage)
    except UsageError as error:
        nothing = dict.fromkeys(("clock", "sheet", "text", "equations", "closure"), "")
        return {"stage": None, "tier": None, "parameters": {}, **nothing, "missing": str(error)}
    head = HEADS.search(text)
    stage = system.stage(case.stage)
    return {
        "stage": case.stage,
        "tier": case.tier,
        "clock": stage.clock if isinstance(stage, Dynamics) else "",
        "parameters": case.by_name,
        "sheet": text[: head.start()].strip() if head is not None else text.strip(),
        "text": text,
        "equations": _optional(system, case, "latex-fragment"),
        "closure": _optional(system, case, "explanation"),
        "missing": "",
    }


def _optional(system: System, case: Case, format: str) -> str:
    """Return the page in a format, or nothing if the model does not have this format."""
    try:
        if format == "explanation":
            return explain(system, case.parameters, case.stage)
        return render(system, case.parameters, format, case.stage)
    except UsageError:
        return ""


def _claim(verdict: Mapping[str, Any]) -> dict[str, Any]:
    parts = sorted(verdict.get("sensitivity") or [], key=lambda part: part["part"] != verdict.get("deciding"))
    return {name: verdict.get(name) for name in KEPT} | {"sensitivity": [part["sentence"] for part in parts]}


def _comparison(system: System, run: Trajectory | None, missing: str) -> dict[str, Any]:
    """The comparison of SGD with the flow in numbers and sentences, and the folder of its picture."""
    if run is None:
        return {"missing": missing}
    summary = run.summary
    names = ("agreement", "replicas", "distance_median", "distance_median_interval_95", "band", "inside_90", "notes")
    return {
        **{name: summary.get(name) for name in names},
        "components": {name: judged["sentence"] for name, judged in summary.get("judgements", {}).items()},
        "method": run.origin.options.get("second"),
        "step_size": run.origin.options.get("step_size"),
        "step": step_in_words(system, run),
        "batch": run.origin.options.get("batch"),
        "until": float(run.time[-1]),
        "parameters": dict(run.origin.parameters),
        "folder": BESIDE,
    }


def step_in_words(system: System, run: Trajectory) -> str:
    """Return the step of SGD with the symbol in the conventions of its stage: eta, or eta/d online."""
    size, stage = run.origin.options.get("step_size"), system.stage(run.origin.stage)
    symbol = getattr(stage, "step_symbol", "eta")
    if size is None or not symbol:
        return "a time-dependent step"
    formula = f"{symbol} = {shown(size)}"
    d = run.origin.parameters.get("d")
    return f"{formula} (eta = {shown(size * d)})" if symbol == "eta/d" and d else formula


def _errata(system: System, verdicts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the errata in the places of the claims, with the claims that show them."""
    import derivations

    claims_of: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.get("erratum"):
            claims = claims_of.setdefault(str(verdict["erratum"]), [])
            claims += [verdict["claim"]] * (verdict["claim"] not in claims)
    texts = errata(derivations.reference(system)) if claims_of else {}
    return [
        {"name": name, "title": texts.get(name, ("", ""))[0], "text": texts.get(name, ("", ""))[1], "claims": claims}
        for name, claims in claims_of.items()
    ]
