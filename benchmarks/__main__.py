"""`python -m benchmarks`: run all topics, print one table, and write the file of this processor in `results`."""

import argparse
import dataclasses
import importlib
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from benchmarks import measure, peers, record

TOPICS = {
    "lemma": True,
    "right_hand_side": True,
    "declared": True,
    "inputs": True,
    "answers": False,
    "compile_time": False,
    "command_line": False,
    "hitting_time": True,
    "committee": True,
    "compressed_sgd": True,
    "explicit_sgd": True,
    "long_horizon": True,
    "ensembles": False,
    "kawata": False,
    "chen_training": False,
    "chen_steps": True,
    "pmoe": False,
    "pruning": False,
}
"""The topics in their order, and whether each is held to one core."""
ON_REQUEST = {"device": False}
"""Topics that run only if `--only` names them; they write separate result files."""
FAILED = "failed:"
"""Begins the note of a topic that could not be measured; the exit code is then 1."""


def main() -> int:
    """Parse the options, run, report; a failing topic becomes a row with the failure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", choices=[*TOPICS, *ON_REQUEST], action="append", help="run this topic alone (repeatable)"
    )
    parser.add_argument("--quick", action="store_true", help="few repetitions, small sizes; nothing is written")
    parser.add_argument("--no-peers", action="store_true", help="do not install peers (those at hand are measured)")
    options = parser.parse_args()
    topics = options.only or list(TOPICS)
    regular = [topic for topic in topics if topic in TOPICS]
    missing = {} if options.no_peers or not regular else peers.install()
    for name, why in missing.items():
        print(f"{name}: {why}", file=sys.stderr)
    measure.as_installed()
    found: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as cache:  # compiled here and now, but for a quick benchmark
        environment = {} if options.quick else {"ODESIM_CACHE": cache}
        for topic in topics:
            print(f"measuring {topic} ...", file=sys.stderr, flush=True)
            found[topic] = run_topic(topic, options.quick, environment)
    everything = [row for rows in found.values() for row in rows]
    show(everything)
    if regular and not options.quick:
        rows = [row for topic in regular for row in found[topic]]
        for sentence in record.write(rows, set(TOPICS) <= set(regular)):
            print(f"slower: {sentence}")
    return int(any(row["note"].startswith(FAILED) for row in everything))


def run_topic(topic: str, quick: bool, environment: Mapping[str, str]) -> list[dict[str, Any]]:
    """The rows of a topic, measured in a separate process."""
    try:
        call = f"benchmarks.__main__:topic_rows({topic!r}, {quick})"
        return measure.child(call, environment, timeout=3600.0)
    except Exception as error:
        return [dataclasses.asdict(measure.Row(topic, note=f"{FAILED} {error}"))]


def topic_rows(topic: str, quick: bool) -> list[dict[str, Any]]:
    """Run one topic in a separate process."""
    if {**TOPICS, **ON_REQUEST}[topic]:
        measure.single_core()
    return [dataclasses.asdict(row) for row in importlib.import_module(f"benchmarks.{topic}").rows(quick)]


def show(rows: list[dict[str, Any]]) -> None:
    """One table: ours, the peer, how many times faster, the floor, and the errors."""
    from rich.console import Console
    from rich.table import Table

    table = Table("what", "seconds", "spread", "peer", "its seconds", "ratio", "error", "its error", "floor", "note")
    for row in rows:
        table.add_row(*record.cells(row))
    Console(width=None if sys.stdout.isatty() else 220).print(table)


if __name__ == "__main__":
    sys.exit(main())
