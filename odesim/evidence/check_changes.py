"""Changes between two checks: claims, answers, numbers beyond their intervals, grade and versions."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from odesim.evidence.grade import form_name

Key = tuple[str, str]
ROUNDING = 1e-9
"""Relative distance between two intervals that counts as rounding on another machine."""


@dataclasses.dataclass(frozen=True)
class Changes:
    """Differences of a later check from an earlier one.

    Attributes:
        systems: Names of the two systems, if they differ.
        added, removed: Claims, with their forms, that only one of the two checks has.
        answers: (claim, earlier answer, later answer) if they differ.
        moved: (claim, earlier estimate, later estimate) if the two intervals do not overlap.
        restated: Claims whose statement, prediction or margin differs.
        predictions: Claimed numbers that differ, before and after.
        headline: (name, earlier, later) if the overall answer, the grade or the effort differs.
        versions: (package, earlier, later) if they differ.
    """

    systems: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    answers: tuple[tuple[str, str, str], ...]
    moved: tuple[tuple[str, float, float], ...]
    restated: tuple[str, ...]
    predictions: tuple[tuple[str, float, float], ...]
    headline: tuple[tuple[str, str, str], ...]
    versions: tuple[tuple[str, str, str], ...]

    @property
    def none(self) -> bool:
        """True if at most versions differ."""
        return not any(getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "versions")

    def sentences(self) -> list[str]:
        """Return the changes in words, the most important first.

        Returns:
            A sentence for every kind of change, or one sentence if nothing changed.
        """
        return list(self._sentences()) or ["nothing changed"]

    def _sentences(self) -> Iterator[str]:
        if self.systems:
            yield f"the checks belong to different models: {self.systems[0]} and {self.systems[1]}"
        for what, before, after in self.headline:
            yield f"{what}: {before} before, {after} now"
        for name, before, after in self.answers:
            yield f"claim {name}: {before} before, {after} now"
        for name, one, other in self.moved:
            yield f"claim {name}: the estimate moved from {one:.6g} to {other:.6g}, beyond its interval"
        for name, one, other in self.predictions:
            yield f"claim {name}: {one:.6g} claimed before, {other:.6g} now"
        for words, names in (("added", self.added), ("removed", self.removed), ("stated otherwise", self.restated)):
            if names:
                yield f"claims {words}: {', '.join(names)}"
        for name, before, after in self.versions:
            yield f"{name}: {before} before, {after} now"

    def record(self) -> dict[str, Any]:
        """Return the changes as plain data.

        Returns:
            Every attribute by name, and the sentences.
        """
        return {**dataclasses.asdict(self), "sentences": self.sentences()}


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Changes:
    """Return the differences of the record of a later check from that of an earlier one.

    Example:
        >>> claim = {"claim": "a", "variant": "main", "answer": "confirmed", "estimate": 1.0, "interval": [0.9, 1.1],
        ...          "statement": "x", "predicted": 1.0, "margin": 0.2}
        >>> head = {"system": {"name": "m"}, "verdict": {"answer": "confirmed"}, "grade": {"name": "qualitative"},
        ...         "request": {"effort": "quick"}, "versions": {"odesim": "1"}}
        >>> old, new = ({**head, "claims": [{**claim, "estimate": e, "interval": [e - .1, e + .1]}]} for e in (1, 1.3))
        >>> changes(old, new).sentences()
        ['claim a: the estimate moved from 1 to 1.3, beyond its interval']
    """
    one, other = _by_name(old), _by_name(new)
    both = [key for key in one if key in other]
    names = tuple(str(record["system"]["name"]) for record in (old, new))
    heads = (
        ("answer", "verdict", "answer"), ("grade", "grade", "name"), ("effort", "request", "effort"),
    )  # fmt: skip
    return Changes(
        systems=names if names[0] != names[1] else (),
        added=tuple(form_name(*key) for key in other if key not in one),
        removed=tuple(form_name(*key) for key in one if key not in other),
        answers=tuple(
            (form_name(*key), str(one[key]["answer"]), str(other[key]["answer"]))
            for key in both
            if one[key]["answer"] != other[key]["answer"]
        ),
        moved=tuple(
            (form_name(*key), float(one[key]["estimate"]), float(other[key]["estimate"]))
            for key in both
            if apart(one[key], other[key])
        ),
        restated=tuple(form_name(*key) for key in both if _restated(one[key], other[key])),
        predictions=tuple(
            (form_name(*key), float(one[key]["predicted"]), float(other[key]["predicted"]))
            for key in both
            if isinstance(one[key]["predicted"], int | float)
            and isinstance(other[key]["predicted"], int | float)
            and one[key]["predicted"] != other[key]["predicted"]
        ),
        headline=tuple(
            (word, str(old[part][name]), str(new[part][name]))
            for word, part, name in heads
            if old[part][name] != new[part][name]
        ),
        versions=tuple(_versions(old["versions"], new["versions"])),
    )


def apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return True if the intervals of two estimates do not overlap. Without an interval the estimate itself is used."""
    if one["estimate"] is None or other["estimate"] is None:
        return False
    (low, high), (least, most) = _interval(one), _interval(other)
    scale = max(abs(bound) for bound in (low, high, least, most))
    return max(low - most, least - high) > ROUNDING * scale


def _interval(claim: Mapping[str, Any]) -> tuple[float, float]:
    low, high = claim["interval"] or (None, None)
    estimate = float(claim["estimate"])
    return (estimate if low is None else float(low), estimate if high is None else float(high))


def _by_name(record: Mapping[str, Any]) -> dict[Key, Mapping[str, Any]]:
    return {(str(claim["claim"]), str(claim["variant"])): claim for claim in record["claims"]}


def _restated(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return True if two claims with the same name differ in content. The prediction of an open claim is ignored."""
    decided = one["estimate"] is not None and other["estimate"] is not None
    names = ("statement", *(("predicted", "margin") if decided else ()))
    return any(one[name] != other[name] for name in names)


def _versions(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name), new.get(name)
        if before != after:
            yield str(name), str(before or "none"), str(after or "none")
