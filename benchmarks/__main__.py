"""`python -m benchmarks`: run all topics, print one table, and write `benchmarks/results/latest.json`."""

import argparse
import dataclasses
import importlib
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import measure, peers

TOPICS = {
    "lemma": True,
    "right_hand_side": True,
    "declared": True,
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
    "pmoe": False,
    "pruning": False,
}
"""The topics in their order, and whether each is held to one core."""
ON_REQUEST = {"device": False}
"""Topics that run only where `--only` names them, and write their own result files."""
FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER / "results" / "latest.json"
LAST = "## The last run"
"""The heading in `README.md` below which the table is written anew."""


def main() -> int:
    """Parse the options, run, report; a topic that fails is a row that says so."""
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
    found: dict[str, list[dict[str, Any]]] = {}
    for topic in topics:
        print(f"measuring {topic} ...", file=sys.stderr, flush=True)
        found[topic] = run_topic(topic, options.quick)
    show([row for rows in found.values() for row in rows])
    if regular and not options.quick:
        write([row for topic in regular for row in found[topic]], set(TOPICS) <= set(regular))
    return 0


def run_topic(topic: str, quick: bool) -> list[dict[str, Any]]:
    """The rows of a topic, measured in a process of its own."""
    with tempfile.TemporaryDirectory() as cache:  # compiled here and now, not by an earlier version
        try:
            call = f"benchmarks.__main__:topic_rows({topic!r}, {quick})"
            return measure.child(call, {"ODESIM_CACHE": cache}, timeout=3600.0)
        except Exception as error:
            return [dataclasses.asdict(measure.Row(topic, note=f"failed: {error}"))]


def topic_rows(topic: str, quick: bool) -> list[dict[str, Any]]:
    """What the process of a topic does."""
    if {**TOPICS, **ON_REQUEST}[topic]:
        measure.single_core()
    return [dataclasses.asdict(row) for row in importlib.import_module(f"benchmarks.{topic}").rows(quick)]


def write(rows: list[dict[str, Any]], complete: bool) -> None:
    """Write the result file and the table of `README.md`; a run of some topics keeps the rows of the others."""
    content = {"machine": machine(), "versions": versions(), "rows": rows}
    if not complete and RESULTS.exists():
        before = json.loads(RESULTS.read_text(encoding="utf-8"))
        fresh = {(row["name"], row["peer"]): row for row in rows}
        kept = [fresh.pop((row["name"], row["peer"]), row) for row in before["rows"]]
        content["rows"] = [*kept, *fresh.values()]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    readme = FOLDER / "README.md"
    text = readme.read_text(encoding="utf-8").partition(LAST)[0]
    readme.write_text(text + LAST + "\n\n" + "\n".join(markdown(content)) + "\n", encoding="utf-8")
    print("wrote benchmarks/results/latest.json and the table in benchmarks/README.md")


def markdown(content: dict[str, Any]) -> list[str]:
    """The machine in a line and the rows as a table, for `README.md`."""
    where, names = content["machine"], content["versions"]
    found = ", ".join(f"{name} {version}" for name, version in names.items() if version)
    lines = [
        f"{where['processor']}, {where['cores']} cores, {where['memory_bytes'] / 2**30:.0f} GiB, {where['system']};"
    ]
    lines += [f"load average {where['load_average'][0]:.1f} when it ended. {found}.", ""]
    lines += ["| what | ours | spread | peer | its time | ratio | error, its error | floor | note |", "|" + "---|" * 9]
    for row in content["rows"]:
        what, ours, spread, peer, theirs, ratio, *errors, floor, note = cells(row)
        both = ", ".join(error or "-" for error in errors) if any(errors) else ""
        lines.append("| " + " | ".join([what, ours, spread, peer, theirs, ratio, both, floor, note]) + " |")
    return lines


def cells(row: dict[str, Any]) -> list[str]:
    """A row as words: what, ours, spread, peer, its time, ratio, error, its error, floor, note."""
    ratio = row["peer_seconds"] / row["seconds"] if row["peer_seconds"] and row["seconds"] else None
    ours, spread, theirs, floor = (human(row[name]) for name in ("seconds", "spread", "peer_seconds", "floor_seconds"))
    errors = ["" if row[name] is None else f"{row[name]:.0e}" for name in ("error", "peer_error")]
    ratio_text = f"{ratio:.2g}x" if ratio else ""
    return [row["name"], ours, spread, row["peer"] or "", theirs, ratio_text, *errors, floor, row["note"]]


def machine() -> dict[str, Any]:
    """The processor, its cores, the memory and the load at the end of the run."""
    from odesim.machine import device

    described = {k: v for k, v in device.describe().items() if k in ("machine", "system", "processor", "cores")}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {**described, "memory_bytes": memory, "load_average": os.getloadavg()}


def versions() -> dict[str, str | None]:
    """The versions of Python, odesim, what it rests on, and the peers."""
    import odesim
    from odesim.machine import device

    names = ("numpy", "scipy", "sympy", "numba", "jax", "diffrax", *peers.REQUIREMENTS)
    found = {"python": platform.python_version(), "odesim": odesim.__version__}
    return {**found, **{name: device.version(name) for name in names}}


def show(rows: list[dict[str, Any]]) -> None:
    """One table: ours, the peer, how many times faster, the floor, and the errors."""
    from rich.console import Console
    from rich.table import Table

    table = Table("what", "seconds", "spread", "peer", "its seconds", "ratio", "error", "its error", "floor", "note")
    for row in rows:
        table.add_row(*cells(row))
    Console(width=None if sys.stdout.isatty() else 220).print(table)


def human(seconds: float | None) -> str:
    """A time with a unit that a reader can take in."""
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


if __name__ == "__main__":
    sys.exit(main())
