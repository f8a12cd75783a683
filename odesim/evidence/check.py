"""Check of a model: all its verdicts with their grade, and a comparison of SGD with the flow."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from derivations.contract import System
from odesim.evidence.grade import listing
from odesim.evidence.verdicts import Verdicts, counted_answers, is_identity
from odesim.evidence.verification import disagrees
from odesim.request.case import digest_of
from odesim.request.shown import Stored, load_view
from odesim.request.trajectory import Trajectory
from odesim.store import verdicts as records
from odesim.study.pair import Pair

MOST = 6
"""Largest number of claims that a sentence names."""


@dataclasses.dataclass(frozen=True)
class Request:
    """Request of `odesim check`.

    Attributes:
        judged: The request of its verdicts.
        pair: SGD with the flow that it is compared with, or None.
        missing: The reason why `pair` is None.
    """

    judged: records.Request
    pair: Pair | None = None
    missing: str = ""

    @property
    def of(self) -> System:
        """System of the check."""
        return self.judged.of

    @property
    def system(self) -> str:
        """Reference of the system."""
        return self.judged.system

    @property
    def name(self) -> str:
        """First part of the name of the folder."""
        return f"check-{self.of.name}-{self.judged.effort}"

    def request(self) -> dict[str, Any]:
        """Everything that was requested, as plain data."""
        judged = {name: value for name, value in self.judged.request().items() if name != "method"}
        compared = self.pair.request() if self.pair is not None else None
        return {"method": "check", **judged, "comparison": compared}

    @property
    def digest(self) -> str:
        """Identifier of the request: twelve hexadecimal characters."""
        return digest_of(self.request())


@dataclasses.dataclass(frozen=True)
class Findings:
    """Results of a check: verdicts with their evidence, and the comparison as a run or the reason why it is missing."""

    verdicts: Sequence[Mapping[str, Any]]
    comparison: Trajectory | None
    missing: str
    seconds: Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class Overall:
    """Answer of a whole check, with the sentence that gives its reason.

    Attributes:
        answer: "confirmed", "consistent", "refuted" or "inconclusive".
        sentence: The reason.
        refuted: Claims that are unexpectedly refuted.
        open: Claims that are unexpectedly open.
        known: Claims with a form whose refutation was expected, such as errata and rivals.
    """

    answer: str
    sentence: str
    refuted: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    known: tuple[str, ...] = ()


def overall(verdicts: Sequence[Mapping[str, Any]]) -> Overall:
    """Return the answer of a check as a whole.

    The answer is "refuted" if a claim is unexpectedly refuted, else "inconclusive" if a claim is unexpectedly open.
    Otherwise it is "confirmed" if at least one claim is confirmed.

    Example:
        >>> one = {"claim": "plateau", "variant": "main", "answer": "refuted", "expected": "confirmed"}
        >>> overall([one]).answer, overall([{**one, "answer": "confirmed"}]).answer
        ('refuted', 'confirmed')
    """
    refuted = _claims(v for v in verdicts if v["answer"] == "refuted" and disagrees(v))
    left = _claims(v for v in verdicts if v["answer"] == "inconclusive" and disagrees(v))
    known = _claims(v for v in verdicts if v["answer"] == "refuted" and not disagrees(v))
    forms, claims = len(verdicts), len({v["claim"] for v in verdicts})
    many = f"{forms} form{'s' * (forms != 1)} of {claims} claim{'s' * (claims != 1)}"
    counts = f"Of {many}: {counted_answers(verdicts)}."
    printed = [v for v in verdicts if v.get("published")]
    if 0 < len(printed) < forms:
        counts += f" The source prints {len(printed)} of these forms: {counted_answers(printed)}."
    expected = f" Known to be refuted in some form (errata and rivals): {listing(known, MOST)}." if known else ""
    if refuted:
        said = f"Unexpectedly refuted: {listing(refuted, MOST)}."
        return Overall("refuted", f"{said} {counts}{expected}", refuted, left, known)
    if left:
        said = f"Unexpectedly open: {listing(left, MOST)}."
        return Overall("inconclusive", f"{said} {counts}{expected}", (), left, known)
    answers = {v["answer"] for v in verdicts if not is_identity(v)}
    answer = next((name for name in ("confirmed", "consistent") if name in answers), "inconclusive")
    said = "Every claim came out as expected." if not any(map(disagrees, verdicts)) else "No claim is refuted."
    return Overall(answer, f"{said} {counts}{expected}", (), (), known)


def unexpected(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the claims of a record that determine its answer: unexpectedly refuted ones first, then unexpectedly open
    ones.
    """
    return [
        claim
        for answer in ("refuted", "inconclusive")
        for claim in record["claims"]
        if claim["answer"] == answer != claim["expected"]
    ]


def _claims(verdicts: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the claims of some verdicts, each once."""
    return tuple(dict.fromkeys(str(verdict["claim"]) for verdict in verdicts))


@dataclasses.dataclass(frozen=True, repr=False)
class Check(Stored):
    """Check of a model: verdict, grade, claims and their refutations, equations, and a comparison of SGD with the flow.

    Attributes:
        record: Content of the page as plain data, in the form of the published schema (`check.json`).
        verdicts: The verdicts.
        comparison: The comparison of flow and SGD as a run, or None.
        findings: The verdicts with their evidence, if the check was made in this process; otherwise None.
        asked: The request, if the check was made in this process; otherwise None.

    Example:
        >>> import odesim
        >>> found = odesim.check("simsek_2023", ["loss", "readout"], compared=False)
        >>> found.summary()["grade"], found.record["claims"][1]["published"]
        ('number reproduced', 'the closed form of the optimum of one neuron for erf')
    """

    record: Mapping[str, Any]
    verdicts: Verdicts[Any]
    comparison: Trajectory | None = None
    findings: Findings | None = dataclasses.field(default=None, compare=False)
    asked: Request | None = dataclasses.field(default=None, compare=False)

    @property
    def answer(self) -> str:
        """The answer as a whole: "confirmed", "consistent", "refuted" or "inconclusive"."""
        return str(self.record["verdict"]["answer"])

    @property
    def grade(self) -> str:
        """The grade: "number reproduced", "law reproduced" or "qualitative"."""
        return str(self.record["grade"]["name"])

    def summary(self) -> dict[str, Any]:
        """Return the headline of the check.

        Returns:
            The answer and the grade with their reasons, the number of claims for each answer, and the agreement of SGD
            with the flow.
        """
        verdict, grade = self.record["verdict"], self.record["grade"]
        compared = self.record["comparison"]
        return {
            "answer": verdict["answer"],
            "reason": verdict["sentence"],
            "grade": grade["name"],
            "because": grade["because"],
            **verdict["counts"],
            "unexpected": verdict["unexpected"],
            "comparison": compared.get("agreement") or compared.get("missing", ""),
        }

    def changes(self, earlier: "Check") -> Any:
        """Return the changes since an earlier check.

        Arguments:
            earlier: The earlier check.

        Returns:
            A `Changes` (`odesim.evidence.check_changes`): added and removed claims, changed answers, estimates that
            moved beyond their intervals, and versions.
        """
        from odesim.evidence.check_changes import changes

        return changes(earlier.record, self.record)

    def __repr__(self) -> str:
        found, known = self.summary(), len(self.record["verdict"]["known"])
        but = f", but for {known} claim{'s' * (known != 1)} with a refuted form" if known else ""
        lines = [
            f"Check of {self.record['system']['name']}: {found['answer']}{but}; {found['grade']}",
            f"  {found['reason']}",
            *(f"    {claim['claim']}: {claim['reason']}" for claim in unexpected(self.record)[:MOST]),
            f"  grade: {found['grade']}, because {found['because']}",
            f"  SGD beside the flow: {found['comparison']}",
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the first part of the page, and the table of claims."""
        return load_view("check")(self)
