"""Grade of a reproduction, computed from verdicts: a published number, a scaling law, or neither.

Only claims printed in their source count. Claims that were derived here or are generated for every model do not count.
Identities of the construction and corrected forms do not count either.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from derivations.claim import Claim, Variant
from derivations.laws import All, Equals, Power

NUMBER, LAW, NOTHING = "number", "law", ""
"""Kinds of results that a confirmed claim reproduces."""
GRADES = {NUMBER: "number reproduced", LAW: "law reproduced", NOTHING: "qualitative"}
MEANINGS = {
    "number reproduced": "a published number is confirmed within its digits or its interval",
    "law reproduced": "a published exponent or scaling law is confirmed within its interval, and no number",
    "qualitative": "neither a published number nor a published scaling law is confirmed",
}
OURS = re.compile(r"\bour(s| )|, (corrected|repaired)\b")
"""Places of claims that are not statements of the paper."""
CORRECTED = re.compile(r"\b(corrected|repaired|own|attained|sharp)\b")
"""Names of forms that the paper does not print: corrections, and bounds that are attained or sharper than printed."""
NAMED = 4
"""Largest number of claims that a sentence names."""


@dataclasses.dataclass(frozen=True)
class Grade:
    """Grade of a reproduction with its reason.

    Attributes:
        name: One of `MEANINGS`.
        because: The reason, in words that follow "because".
        claims: Names of the deciding claims.
        against: Names of published claims that are refuted.
    """

    name: str
    because: str
    claims: tuple[str, ...] = ()
    against: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return the grade as plain data, with the meaning of its name."""
        return {**dataclasses.asdict(self), "meaning": MEANINGS[self.name]}


def printed_at(claim: Claim, variant: Variant) -> str:
    """Return the place at which the source prints a form of a claim; "" if it does not."""
    ours = claim.derived or claim.id.startswith("own-") or OURS.search(claim.source.place)
    return "" if ours or CORRECTED.search(variant.name) else claim.source.place


def reproduces(law: Any) -> str:
    """Return the kind of result that a confirmed law reproduces: `NUMBER`, `LAW` or `NOTHING`.

    A value is a number and a power is a law; several laws on one measurement have the kind of the best one. Bounds,
    signs, shares and vanishing discrepancies reproduce neither.

    Example:
        >>> from derivations.laws import Bounded
        >>> reproduces(Equals(2.0)), reproduces(Power(0.5)), reproduces(Bounded(high=1.0))
        ('number', 'law', '')
        >>> reproduces(All({"rate": Power(0.5), "limit": Equals(1.0)}))
        'number'
    """
    if isinstance(law, All):
        kinds = {reproduces(part) for part in law.parts.values()}
        return next((kind for kind in (NUMBER, LAW) if kind in kinds), NOTHING)
    return NUMBER if isinstance(law, Equals) else LAW if isinstance(law, Power) else NOTHING


def name_of(verdict: Mapping[str, Any]) -> str:
    """Return the name of a claim with its form."""
    return form_name(str(verdict["claim"]), str(verdict["variant"]))


def form_name(claim: str, variant: str) -> str:
    """Return the name of a form of a claim. The main form has the name of the claim.

    Example:
        >>> form_name("thm-1", "main"), form_name("thm-1", "printed")
        ('thm-1', 'thm-1 (printed)')
    """
    return claim if variant == "main" else f"{claim} ({variant})"


def grade(verdicts: Iterable[Mapping[str, Any]]) -> Grade:
    """Return the grade of some verdicts, given with `claim`, `variant`, `answer`, `published` and `reproduces`.

    Example:
        >>> verdict = {"claim": "plateau", "variant": "main", "answer": "confirmed", "reproduces": "number"}
        >>> grade([{**verdict, "published": "eq. (23)"}]).name, grade([{**verdict, "published": ""}]).name
        ('number reproduced', 'qualitative')
    """
    listed = list(verdicts)
    counted = [v for v in listed if v.get("published") and not v.get("identity")]
    against = tuple(name_of(v) for v in counted if v["answer"] == "refuted")
    for kind, words in ((NUMBER, "the published number"), (LAW, "the published law")):
        found = [v for v in counted if v.get("reproduces") == kind and v["answer"] == "confirmed"]
        if found:
            names = tuple(map(name_of, found))
            plural = "s" if len(found) > 1 else ""
            because = f"{words}{plural} of claim{plural} {listing(names)} {'are' if plural else 'is'} confirmed"
            because += f" ({found[0]['published']})" if len(found) == 1 else ""
            return Grade(GRADES[kind], because, names, against)
    return Grade(GRADES[NOTHING], _shortfall(listed, counted), (), against)


def _shortfall(listed: Sequence[Mapping[str, Any]], counted: Sequence[Mapping[str, Any]]) -> str:
    """Return the reason why some verdicts reproduce neither a number nor a law."""
    if not listed:
        return "it states no claim"
    if not counted:
        return "no claim states a number or a law at a place where its source prints it"
    able = [v for v in counted if v.get("reproduces")]
    if not able:
        return "the published claims state only bounds, signs or events, but no number or exponent"
    words = {"refuted": "refuted", "inconclusive": "open", "consistent": "not put to the test"}
    return "; ".join(
        f"published claim{'s' * (len(names) > 1)} {listing(names)} {'are' if len(names) > 1 else 'is'} {word}"
        for answer, word in words.items()
        if (names := tuple(name_of(v) for v in able if v["answer"] == answer))
    )


def listing(names: Sequence[str], most: int = NAMED) -> str:
    """Return at most `most` names as text, and the number of further names.

    Example:
        >>> listing(["a", "b"]), listing(["a", "b", "c", "d", "e", "f"])
        ('a, b', 'a, b, c, d and 2 more')
    """
    more = len(names) - most
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:most])} and {more} more"
