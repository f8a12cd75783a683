"""False alarms of sampled claims: every form whose measurement depends on the seed, judged at many seeds.

`python -m tests.faults.verdicts --system liao --seeds 40 --most 5 --out FILE` measures at seed 0, keeps the forms that
took at most `--most` seconds (one is given up after four times that, compilations included) and whose samples are
others at seed 1, judges them at every further seed, and adds a line of JSON for every seed to FILE, from which it goes
on when it is started again.  A law refutes a true statement
with probability `ALARM` at most: a form is flagged, and the exit code is 1, where refutations (of what is expected to
hold) or confirmations (of what is expected to fail) are more than that allows at 1 %.
"""

import argparse
import collections
import hashlib
import json
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import scipy.stats

import derivations
from derivations.claim import Claim, Variant
from derivations.laws.tools import ALARM
from odesim.evidence import verification
from odesim.evidence.laboratory import Laboratory

SURPRISE = 0.01
"""A form is flagged where so many false alarms have at most this probability."""
Form = tuple[str, str]


def main() -> int:
    """Measure, and print the table of what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.verdicts", description=__doc__)
    parser.add_argument("--system", required=True)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--most", type=float, default=5.0, help="seconds of a form, beyond which it is left out")
    parser.add_argument("--minutes", type=float, default=1e6, help="no further seed is begun after this time")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    found = collect(options.system, options.seeds, options.most, 60.0 * options.minutes, options.out)
    return 1 if show(found) else 0


def collect(name: str, seeds: int, most: float, limit: float, out: Path) -> dict[Form, dict[str, Any]]:
    """The answers of every form at every seed: {"expected": .., "answers": [..], "seconds": ..}."""
    began = time.perf_counter()
    system = derivations.system(name)
    lines = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    chosen = None if not lines else {tuple(form) for form in lines[-1]["forms"]}
    for seed in range(len(lines), seeds):
        if time.perf_counter() - began > limit:
            break
        made = judged(Laboratory(system, "quick", "numba", seed), chosen, 0.0 if seed else 4 * most)
        if seed == 0:
            chosen = {
                form for form, row in made.items() if row["seconds"] <= most and row["expected"] != "inconclusive"
            }
        if seed == 1:
            first = lines[0]["found"]
            chosen = {form for form in chosen or () if made[form]["samples"] != first["/".join(form)]["samples"]}
        lines.append({"forms": sorted(chosen or ()), "found": {"/".join(form): row for form, row in made.items()}})
        with out.open("a") as file:
            file.write(json.dumps(lines[-1]) + "\n")
        print(f"{name}, seed {seed}: {len(chosen or ())} forms, {time.perf_counter() - began:.0f} s", file=sys.stderr)
    table: dict[Form, dict[str, Any]] = {}
    for form in sorted(chosen or ()):
        rows = [line["found"]["/".join(form)] for line in lines if "/".join(form) in line["found"]]
        answers = [row["answer"] for row in rows]
        seconds = sum(row["seconds"] for row in rows) / len(rows)
        table[form] = {"expected": rows[0]["expected"], "answers": answers, "seconds": seconds}
    return table


def judged(lab: Laboratory, chosen: set[Form] | None, patience: float) -> dict[Form, dict[str, Any]]:
    """Every chosen form (all of them with `None`) that ends in `patience` seconds (0: any), and what it gave."""
    found = {}
    for claim, variant in forms(lab):
        form = (claim.id, variant.name)
        if chosen is not None and form not in chosen:
            continue
        if verification.grid_of(claim, variant, lab.effort) is None:
            continue
        row = within(patience, lambda: judge(lab, claim, variant)) if patience else judge(lab, claim, variant)  # noqa: B023
        if row is not None:
            found[form] = row
    return found


def judge(lab: Laboratory, claim: Claim, variant: Variant) -> dict[str, Any]:
    """One verdict, with a digest of its samples."""
    verdict = verification.verify(lab, claim, variant)
    samples = hashlib.sha256(json.dumps(verdict.as_dict()["samples"]).encode()).hexdigest()
    return {"answer": verdict.answer, "expected": verdict.expected, "seconds": verdict.seconds, "samples": samples}


def within(seconds: float, call: Callable[[], Any]) -> Any:
    """The result of a call in a separate process; None if the process exceeds the time and is killed."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(call()))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(seconds) else None
    finally:
        process.kill()
        process.join()


def forms(lab: Laboratory) -> Iterator[tuple[Claim, Variant]]:
    """Every form of every claim."""
    for claim in verification.claims_of(lab.system):
        for variant in claim.variants:
            yield claim, variant


def alarms(expected: str, answers: list[str]) -> int:
    """Number of answers opposite to the expectation; an open answer does not count."""
    opposite = {"confirmed": ("refuted",), "consistent": ("refuted",), "refuted": ("confirmed", "consistent")}
    return sum(answer in opposite.get(expected, ()) for answer in answers)


def show(table: Mapping[Form, Mapping[str, Any]]) -> int:
    """Print every form with its answers; returns how many forms alarm more often than their law promises."""
    flagged = 0
    for (claim, variant), row in table.items():
        count, answers = alarms(row["expected"], row["answers"]), row["answers"]
        surprising = scipy.stats.binom.sf(count - 1, len(answers), ALARM) < SURPRISE
        flagged += int(surprising)
        tally = ", ".join(f"{n} {answer}" for answer, n in collections.Counter(answers).most_common())
        mark = "  MORE THAN PROMISED" if surprising else ""
        print(f"{claim} ({variant}): expected {row['expected']}; {tally}; {row['seconds']:.1f} s{mark}")
    agreed = sum(row["answers"].count(row["expected"]) for row in table.values())
    total = sum(len(row["answers"]) for row in table.values())
    alarmed = sum(alarms(row["expected"], row["answers"]) for row in table.values())
    print(
        f"{len(table)} forms, {total} verdicts: {agreed} as expected, {alarmed} false alarms, {flagged} forms flagged"
    )
    return flagged


if __name__ == "__main__":
    sys.exit(main())
