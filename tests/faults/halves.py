"""Every claim against half of what breaks its control: `python -m tests.faults.halves --system pruning`.

A control changes a number of the law, or measures a broken quantity, and must be refuted.  Here the law has the number
half-way to that of the control, or the samples lie half-way to those of the broken quantity (half the way in the
logarithm where the law is of a power: half of the broken exponent).  What is answered then is counted: a claim that
still holds at half strength cannot see so small a fault, and what it can see stands on its page.  A control with
another law altogether, or with samples at other points, has no half.
"""

import argparse
import collections
import dataclasses
import math
import sys
import time
from collections.abc import Mapping
from typing import Any

import derivations
from derivations.broken import form_of_control, twin_of
from derivations.claim import HOLDS, Claim, Samples
from derivations.laws.power import Power
from odesim.errors import NumericalError
from odesim.evidence import verification
from odesim.evidence.laboratory import Laboratory


class NoHalf(Exception):
    """A control without a half."""


def main() -> int:
    """Judge every claim at half the strength of its control, and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.halves", description=__doc__)
    parser.add_argument("--system", action="append", choices=derivations.names())
    parser.add_argument("--minutes", type=float, default=1e6, help="no further claim is begun after this time")
    options = parser.parse_args()
    began, found = time.perf_counter(), collections.Counter[str]()
    for name in options.system or derivations.names():
        lab = Laboratory(derivations.system(name), "quick")
        for claim in verification.claims_of(lab.system):
            if time.perf_counter() - began > 60.0 * options.minutes:
                found["not begun"] += 1
                continue
            what, why = halved(lab, claim)
            found[what] += 1
            print(f"{name} {claim.id}: {what}" + (f" ({why})" if why else ""), flush=True)
    print(", ".join(f"{n} {what}" for what, n in found.most_common()))
    return 0


def halved(lab: Laboratory, claim: Claim) -> tuple[str, str]:
    """The answer at half strength, and what the whole claim says that it can see."""
    variant, twin = form_of_control(claim), twin_of(claim)
    (broken,) = twin.variants
    grid = verification.grid_of(twin, broken, lab.effort)
    if grid is None:
        return "beyond this effort", ""
    if (variant.expected or "confirmed") not in HOLDS:
        return "no half", "the form itself is expected to fail"
    law, other = variant.law or claim.law, broken.law or twin.law
    try:
        samples = verification.measure(lab, claim, variant, grid)
        whole = verification.judged(law, samples)
        if twin.measure is claim.measure and broken.settings == variant.settings:
            judgement = midway(law, other).judge(samples)
        else:
            disturbed = verification.measure(lab, twin, broken, grid)
            judgement = law.judge(between(samples, disturbed, isinstance(law, Power)))
    except NoHalf as reason:
        return "no half", str(reason)
    except NumericalError as error:
        return "a run failed", str(error)
    sees = "; ".join(each.sentence for each in whole.sensitivity)
    return f"{judgement.answer} at half strength", sees if judgement.answer in HOLDS else ""


def midway(law: Any, other: Any) -> Any:
    """The law whose numbers are half-way between those of two laws of one kind.

    >>> import derivations.laws.values as values
    >>> midway(values.Equals(1.0), values.Equals(2.0)).value
    1.5
    """
    if type(law) is not type(other):
        raise NoHalf("another law altogether")
    changed = {}
    for field in dataclasses.fields(law):
        a, b = getattr(law, field.name), getattr(other, field.name)
        if dataclasses.is_dataclass(a) and a != b:
            changed[field.name] = midway(a, b)
        elif isinstance(a, Mapping) and a != b:
            if set(a) != set(b):
                raise NoHalf("other parts")
            changed[field.name] = {part: midway(a[part], b[part]) for part in a}
        elif isinstance(a, float | int) and isinstance(b, float | int) and a != b:
            if not (math.isfinite(a) and math.isfinite(b)):
                raise NoHalf(f"{field.name} from {a:g} to {b:g}")
            changed[field.name] = 0.5 * (a + b)
        elif isinstance(a, str) is not isinstance(b, str):
            raise NoHalf(f"{field.name} of another kind")
    if not changed:
        raise NoHalf("no number of the law is another")
    return dataclasses.replace(law, **changed)


def between(samples: Samples, disturbed: Samples, logarithmic: bool) -> Samples:
    """Samples half-way between two measurements of the same points and seeds.

    >>> between([({}, 0, 1.0)], [({}, 0, 4.0)], True), between([({}, 0, {"x": 1.0})], [({}, 0, {"x": 4.0})], False)
    ([({}, 0, 2.0)], [({}, 0, {'x': 2.5})])
    """
    if len(samples) != len(disturbed):
        raise NoHalf("samples at other points")
    return [
        (point, seed, _between(value, other, logarithmic))
        for (point, seed, value), (_, _, other) in zip(samples, disturbed, strict=True)
    ]


def _between(value: Any, other: Any, logarithmic: bool) -> Any:
    if isinstance(value, Mapping):
        if not isinstance(other, Mapping) or set(value) != set(other):
            raise NoHalf("another kind of sample")
        return {name: _between(value[name], other[name], logarithmic) for name in value}
    a, b = float(value), float(other)
    if a == b:
        return value
    if isinstance(value, bool) or not (math.isfinite(a) and math.isfinite(b)):
        raise NoHalf(f"samples {a:g} and {b:g}")
    return math.sqrt(a * b) if logarithmic and a > 0.0 and b > 0.0 else 0.5 * (a + b)


if __name__ == "__main__":
    sys.exit(main())
