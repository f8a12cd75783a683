"""From claims to verdicts: sweep, measurement, judgement, controls, and storage of finished verdicts."""

import dataclasses
import math
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from derivations.broken import twin_of
from derivations.claim import Answer, Claim, Grid, Judgement, Samples, Sensitivity, Variant
from derivations.contract import System, load
from derivations.laws.refutation import refutation
from derivations.laws.sensitivity import judged
from odesim.errors import NumericalError, UsageError
from odesim.evidence.grade import form_name, printed_at, reproduces
from odesim.evidence.laboratory import Laboratory
from odesim.request.parse import near
from odesim.store.files import jsonable

EFFORTS: tuple[str, ...] = ("quick", "full", "gpu")


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Verdict on one form of a claim: the answer, the prediction, the estimate, and the evidence.

    `samples` are the measured values (point, seed, value), and `runs` the requests by their digests in `evidence`.
    `statement` is the statement of the form, and `claim_statement` that of its claim.
    `bound` is "at most" or "at least" if `predicted` is one number that bounds the estimate.
    `identity` is the reason why the measurement can have only one result, if this is so.
    `published` is the place at which the source prints the form, or "".
    `reproduces` is "number" or "law" if the confirmed form reproduces one, and `refutation` describes the results that
    would refute the form.
    """

    claim: str
    variant: str
    answer: Answer
    predicted: Any
    estimate: float | None
    interval: tuple[float, float] | None
    rungs: tuple[int, ...]
    reason: str
    evidence: tuple[str, ...]
    seconds: float
    statement: str = ""
    source: str = ""
    rejected: tuple[str, ...] = ()
    expected: str = ""
    erratum: str = ""
    margin: float | None = None
    slack: float | None = None
    deciding: str = ""
    sensitivity: tuple[Sensitivity, ...] = ()
    law: str = ""
    samples: Samples = ()
    runs: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    claim_statement: str = ""
    bound: str = ""
    identity: str = ""
    published: str = ""
    reproduces: str = ""
    refutation: str = ""

    def __repr__(self) -> str:
        expected = "as expected" if self.answer == self.expected else f"expected {self.expected}"
        name = form_name(self.claim, self.variant)
        return f"Verdict on {name}: {self.answer} ({expected})\n  {self.statement}\n  {self.reason}"

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON values; samples that are not finite become "inf" or "nan"."""
        samples = [[point, seed, _told(value)] for point, seed, value in self.samples]
        return jsonable({**dataclasses.asdict(dataclasses.replace(self, samples=())), "samples": samples})


def _told(value: Any) -> Any:
    """Return a measurement as JSON values without loss: "never reached" and "failed" stay different."""
    if isinstance(value, Mapping):
        return {name: _told(item) for name, item in value.items()}
    number = float(value)
    return number if math.isfinite(number) else str(number)


def claims_of(system: System, ids: Iterable[str] | None = None) -> list[Claim]:
    """Return the claims of a system in their order, or those with the given ids. Raises `UsageError` for an unknown
    id.
    """
    if not system.claims:
        raise UsageError(f"system {system.name} has no claims yet")
    found: Any = load(system.claims)
    listed: Iterable[Claim] = found if isinstance(found, tuple | list) else found(system)
    known = {claim.id: claim for claim in listed}
    if not ids:
        return list(known.values())
    wanted = list(ids)
    for name in wanted:
        if name not in known:
            raise UsageError(f"{system.name} has no claim {name!r}; {_claim_hint(system, name, list(known))}")
    return [claim for claim in known.values() if claim.id in wanted]


LONG = {"theorem": "thm", "lemma": "lem", "equation": "eq", "proposition": "prop", "assumption": "asm"}
"""Abbreviations of words in the ids of claims."""


def _claim_hint(system: System, word: str, known: list[str]) -> str:
    """Return a hint for an unknown id: ids with the same beginning, the most similar id, or the list of all."""

    def plain(text: str) -> str:
        text = text.lower()
        for long, short in LONG.items():
            text = text.replace(long, short)
        return re.sub(r"[^a-z0-9]", "", text)

    alike = [name for name in known if plain(word) and plain(name).startswith(plain(word))]
    if alike:
        return f"did you mean {' or '.join(map(repr, alike))}?"
    meant = near(word, known)
    if meant:
        return f"did you mean {meant!r}?"
    listing = f"`odesim verify --system {system.name} --list` lists them."
    return f"it has {len(known)}, such as {', '.join(known[:3])}: {listing}"


def grid_of(claim: Claim, variant: Variant, effort: str) -> Grid | None:
    """Return the sweep of a form at an effort: its own if there is one, otherwise that of the next lower effort."""
    sweep = variant.sweep or claim.sweep
    for name in EFFORTS[EFFORTS.index(effort) :: -1]:
        if name in sweep:
            return sweep[name]
    return None


def verify(lab: Laboratory, claim: Claim, variant: Variant) -> Verdict:
    """Measure a claim over its sweep and judge it. A claim that needs more effort stays open, with this reason."""
    began = time.perf_counter()
    grid = grid_of(claim, variant, lab.effort)
    lab.take_evidence()
    if grid is None:
        needs = next(name for name in EFFORTS if (variant.sweep or claim.sweep).get(name) is not None)
        left = _verdict(claim, variant, Judgement("inconclusive", None, None, None, f"needs {needs}"))
        return dataclasses.replace(left, expected="inconclusive")  # at this effort no other answer is expected
    samples: Samples = ()
    try:
        samples = measure(lab, claim, variant, grid)
        judgement = judged(variant.law or claim.law, samples)
    except NumericalError as error:
        judgement = Judgement("inconclusive", None, None, None, f"a run failed: {error}")
    except UsageError as error:
        if not claim.derived:  # the author of the claim can mend it; the user of a generated claim cannot
            raise
        judgement = Judgement("inconclusive", None, None, None, f"a run is impossible: {error}")
    except ModuleNotFoundError as error:
        judgement = Judgement(
            "inconclusive", None, None, None, f"needs the package {error.name}, which is not installed"
        )
    found = _verdict(claim, variant, judgement)
    runs = lab.take_evidence()
    return dataclasses.replace(
        found, evidence=tuple(runs), runs=runs, samples=samples, seconds=time.perf_counter() - began
    )


def measure(lab: Laboratory, claim: Claim, variant: Variant, grid: Grid) -> Samples:
    """Return a (point, seed, measurement) for every run of a sweep; the settings of the variant are added to every
    point.
    """
    samples = []
    for point in grid.points:
        full = {**point, **variant.settings}
        samples += [(full, seed, lab.measurement(claim.measure, full, seed)) for seed in range(grid.seeds)]
    return samples


def control(lab: Laboratory, claim: Claim, variant: Variant | None = None) -> Verdict:
    """Return the verdict on the broken copy of a form, by default of the form that the control was written for.

    It must be `refuted`.
    """
    twin = twin_of(claim, variant)
    (form,) = twin.variants
    return verify(lab, twin, form)


def _verdict(claim: Claim, variant: Variant, judgement: Judgement) -> Verdict:
    return Verdict(
        claim=claim.id,
        variant=variant.name,
        answer=judgement.answer,
        predicted=judgement.predicted,
        estimate=judgement.estimate,
        interval=judgement.interval,
        rungs=claim.rungs,
        reason=judgement.reason,
        evidence=(),
        seconds=0.0,
        statement=variant.statement or claim.statement,
        claim_statement=claim.statement,
        source=str(claim.source),
        rejected=judgement.rejected,
        expected=variant.expected,
        erratum=claim.erratum,
        identity=variant.identity,
        margin=judgement.margin,
        bound=judgement.bound,
        slack=judgement.slack,
        deciding=judgement.deciding,
        sensitivity=judgement.sensitivity,
        law=_law_of(variant.law or claim.law, judgement.deciding),
        published=printed_at(claim, variant),
        reproduces=reproduces(variant.law or claim.law),
        refutation=refutation(variant.law or claim.law),
    )


def _law_of(law: Any, deciding: str) -> str:
    """Return the kind of the law that decided."""
    return type(law.parts[deciding] if deciding else law).__name__


def disagrees(verdict: Mapping[str, Any]) -> bool:
    """Return True if a verdict differs from the expected answer, which makes `--strict` fail."""
    return bool(verdict["answer"] != verdict["expected"])
