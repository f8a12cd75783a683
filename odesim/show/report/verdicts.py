"""The verdicts of a folder, claim by claim, the refuted ones first and then by weight."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from derivations.claim import ANSWERS
from odesim.errors import UsageError
from odesim.evidence.grade import OURS
from odesim.evidence.verification import disagrees
from odesim.request.stored_system import short_name
from odesim.show.report.errata import errata
from odesim.show.report.evidence import Evidence, evidence_of
from odesim.show.report.glossary import LAWS, RUNGS, TITLES, WEIGHTS
from odesim.show.report.sections import ClaimSection, FormSection, VerdictSection
from odesim.show.report.words import Rows, instant, shown
from odesim.store.files import MANIFEST, VERDICTS, read_json
from odesim.store.folder import manifest_of

NEEDED = ("claim", "variant", "answer", "predicted", "estimate", "interval", "rungs", "reason", "evidence")
RESULTS = re.compile(r"\b(Theorem|Proposition|Corollary|Corollarie)s?\b")
LEMMAS = re.compile(r"\b(Lemma|Claim|Fact)s?\b")


def read_verdicts(folder: str, number: int = 0) -> VerdictSection:
    """Return the verdicts of a folder, grouped by claim. Raises `UsageError` if they are damaged."""
    path = Path(folder) / VERDICTS
    manifest = manifest_of(path.parent) if (path.parent / MANIFEST).is_file() else {}
    try:
        content = read_json(path)
        reference, effort, verdicts = str(content["system"]), str(content["effort"]), content["verdicts"]
        if not all(map(_sound, verdicts)):
            raise ValueError
    except (ValueError, KeyError, TypeError, OSError):
        raise UsageError(f"{path} is damaged: it does not have the verdicts that `odesim verify` writes") from None
    system = short_name(reference, str(manifest.get("declaration", "")))
    evidence = evidence_of(path.parent, _anchor(number, system, "run"))
    grouped: dict[str, list[Mapping[str, Any]]] = {}
    for verdict in verdicts:
        grouped.setdefault(str(verdict["claim"]), []).append(verdict)
    command = f"odesim verify --system {shlex.quote(os.path.basename(reference))} --claim {{name}} --effort {effort}"
    declared = bool(manifest.get("declaration"))
    claims = [_claim(system, command, number, group, evidence, declared) for group in grouped.values()]
    used = list(dict.fromkeys(claim.erratum for claim in claims if claim.erratum))
    known = errata(reference)
    return VerdictSection(
        folder=Path(folder).name,
        system=system,
        effort=effort,
        made=instant(path.stat().st_mtime),
        versions=dict(manifest.get("versions") or {}),
        anchor=_anchor(number, system, "verdicts"),
        groups=_groups(claims, number, system),
        errata=tuple((_anchor(number, system, name), name, *known.get(name, ("", ""))) for name in used),
        tables=evidence.tables,
    )


def _sound(verdict: Mapping[str, Any]) -> bool:
    """Return True if a verdict has the data of the page, in the right shapes."""
    lists = all(isinstance(verdict[name], list) for name in ("rungs", "evidence"))
    return lists and verdict["answer"] in ANSWERS and all(name in verdict for name in NEEDED)


def _groups(
    claims: Sequence[ClaimSection], number: int, system: str
) -> tuple[tuple[str, str, tuple[ClaimSection, ...]], ...]:
    """Return (title, anchor, claims): claims with a refuted form first, by weight, then the others by weight."""
    found: dict[str, list[ClaimSection]] = {name: [] for name in TITLES}
    for claim in sorted(claims, key=lambda claim: WEIGHTS.index(claim.weight)):
        found["refuted" if "refuted" in claim.answers else claim.weight].append(claim)
    return tuple(
        (TITLES[name], _anchor(number, system, f"group-{name}"), tuple(group)) for name, group in found.items() if group
    )


def weight_of(claim: str, place: str, declared: bool = False) -> str:
    """Return the weight of a claim, according to its place in the paper.

    Claims of a declared model are printed at a place, derived by its author, or generated.

    Example:
        >>> weight_of("thm-1a", "Liao 2026, Theorem 1"), weight_of("own-1", "Liao 2026, Lemma 7, corrected")
        ('theorem', 'finding')
        >>> weight_of("lem-4.4", "Lemma 4.4, used in Theorem 2"), weight_of("eq-10", "equation (10)")
        ('lemma', 'other')
        >>> weight_of("floor", "Lee 2025, eq. (7)", declared=True), weight_of("drift", "Lee 2025, generated", True)
        ('printed', 'generated')
    """
    if declared and (known := re.search(r", (stated|generated)$", place)):
        return known.group(1)
    if OURS.search(place) or claim.startswith("own-"):
        return "finding"
    result, lemma = RESULTS.search(place), LEMMAS.search(place)
    if result and not (lemma and lemma.start() < result.start()):
        return "theorem"
    return "lemma" if lemma else "printed" if declared else "other"


def _claim(
    system: str, command: str, number: int, group: Sequence[Mapping[str, Any]], evidence: Evidence, declared: bool
) -> ClaimSection:
    statements: dict[str, list[str]] = {}
    for verdict in group:
        statements.setdefault(str(verdict.get("statement") or ""), []).append(str(verdict["variant"]))
    general = str(group[0].get("claim_statement") or "")
    if general and general not in statements:  # forms that only state their change need it
        statements = {general: ["claim"], **statements}
    labelled = tuple((", ".join(forms) if len(statements) > 1 else "", text) for text, forms in statements.items())
    first, name = group[0], str(group[0]["claim"])
    return ClaimSection(
        id=name,
        anchor=_anchor(number, system, name),
        weight=weight_of(name, str(first.get("source") or ""), declared),
        statements=tuple((label, text) for label, text in labelled if text),
        source=str(first.get("source") or ""),
        rungs=tuple(f"{rung} {RUNGS[rung][0] if rung in RUNGS else 'unknown'}" for rung in first["rungs"]),
        erratum=str(first.get("erratum") or ""),
        command=command.replace("{name}", name),
        forms=tuple(
            FormSection(
                verdict=verdict,
                expected=not verdict.get("expected") or not disagrees(verdict),
                reasons=tuple(str(verdict["reason"] or "").split("; ")),
                facts=_facts(verdict),
                runs=evidence.links(verdict),
                picture=evidence.picture(verdict),
            )
            for verdict in group
        ),
    )


def _facts(verdict: Mapping[str, Any]) -> Rows:
    """Return the reasons of a verdict: law, claim with margin, estimate with interval, and sensitivity."""
    law = str(verdict.get("law") or "")
    sensitivity = sorted(verdict.get("sensitivity") or [], key=lambda seen: seen["part"] != verdict.get("deciding"))
    rows = [
        ("decided by", verdict.get("deciding") and f"{verdict['deciding']}, the weakest of its parts"),
        ("law", law and f"{law}: {LAWS.get(law, 'a law of its own')}"),
        ("claimed", claimed(verdict)),
        ("refuted by", verdict.get("refutation")),
        ("found", found(verdict)),
        ("slack", shown(verdict["slack"]) if verdict.get("slack") is not None else ""),
        ("sensitivity", "; ".join(seen["sentence"] for seen in sensitivity)),
        ("rivals", verdict.get("rejected") and f"rejected: {', '.join(verdict['rejected'])}"),
        ("expected", verdict.get("expected")),
        ("identity", verdict.get("identity") and f"of the construction; it confirms nothing: {verdict['identity']}"),
    ]
    return tuple((name, str(value)) for name, value in rows if value)


def claimed(verdict: Mapping[str, Any]) -> str:
    """Return the prediction with its operator and margin; empty if there is none.

    Example:
        >>> claimed({"predicted": [None, 1.0], "margin": 0.0}), claimed({"predicted": 0.5, "margin": 0.02})
        ('at most 1', '0.5 ± 0.02')
        >>> claimed({"predicted": [1.0, 2.0]}), claimed({"predicted": 0.5, "margin": 0.02, "bound": "at most"})
        ('from 1 to 2', 'at most 0.5 ± 0.02')
    """
    predicted, margin = verdict["predicted"], verdict.get("margin")
    if verdict.get("law") == "Proven":
        return "no case fails"
    around = f" ± {shown(margin)}" if margin else ""
    if isinstance(predicted, list) and len(predicted) == 2:
        low, high = predicted
        if low is None and high is None:
            return ""
        one = f"at most {shown(high)}" if low is None else f"at least {shown(low)}"
        return (one if low is None or high is None else f"from {shown(low)} to {shown(high)}") + around
    if predicted is None:
        return ""
    return " ".join(filter(None, (str(verdict.get("bound") or ""), shown(predicted) + around)))


def found(verdict: Mapping[str, Any]) -> str:
    """Return the estimate with its interval; empty if there is none.

    Example:
        >>> found({"estimate": 0.5, "interval": [0.4, 0.6]}), found({"estimate": 1.0, "law": "Proven"})
        ('0.5 in [0.4, 0.6]', '1 fails')
    """
    if verdict["estimate"] is None:
        return ""
    if verdict.get("law") == "Proven":
        return f"{shown(verdict['estimate'])} fails" if verdict["estimate"] else "none fails"
    return shown(verdict["estimate"]) + (f" in {shown(verdict['interval'])}" if verdict["interval"] else "")


def _anchor(number: int, system: str, name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", f"{system}-{number}-{name}")
