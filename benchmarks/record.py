"""Output of a benchmark run: a file for the processor, the slower rows, and the tables of `README.md`."""

import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import peers

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER / "results"
LAST = "## The last run"
"""The heading in `README.md` below which the tables are written anew."""
DEVICES = "## On a GPU"
"""The heading between which and `LAST` stands the table of the devices."""
SLOWER = 1.1
"""A row counts as slower above this ratio, unless its spreads explain it."""


def machine() -> dict[str, Any]:
    """The processor with its family, its cores, the memory and the load at the end of the run."""
    from odesim.machine import device

    described = {k: v for k, v in device.describe().items() if k in ("machine", "system", "processor", "cores")}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {**described, "family": _family(), "memory_bytes": memory, "load_average": os.getloadavg()}


def _family() -> str:
    """Family and model of the processor, as sellers give one name to several; empty where it is not told."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = [re.search(rf"^{name}\s*:\s*(\d+)$", text, re.MULTILINE) for name in ("cpu family", "model")]
    return "-".join(match.group(1) for match in found if match)


def versions() -> dict[str, str | None]:
    """The versions of Python, odesim, its dependencies, and the peers."""
    import odesim
    from derivations.installed import version

    names = ("numpy", "scipy", "sympy", "numba", "jax", "diffrax", *peers.REQUIREMENTS)
    found = {"python": platform.python_version(), "odesim": odesim.__version__}
    return {**found, **{name: version(name) for name in names}}


def label(where: Mapping[str, Any]) -> str:
    """The processor of a stored run in words."""
    family = where.get("family")
    return f"{where['processor']} ({family})" if family else where["processor"]


def path(where: Mapping[str, Any], folder: Path = RESULTS) -> Path:
    """The file of a processor."""
    return folder / f"{_words(label(where))}.json"


def _words(name: str) -> str:
    """A name as part of a file's."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def key(row: Mapping[str, Any]) -> tuple[str, str | None]:
    """The key that identifies a row in two runs: the measured operation and the peer."""
    return row["name"], row["peer"]


def slower(before: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence for every row that takes more than `SLOWER` times as long as before, beyond both spreads."""
    old = {key(row): row for row in before}
    found = {}
    for row in rows:
        then = old.get(key(row))
        if then is None or not then["seconds"] or not row["seconds"]:
            continue
        ratio, spread = row["seconds"] / then["seconds"], (row["spread"] or 0.0) + (then["spread"] or 0.0)
        if ratio > SLOWER and row["seconds"] - then["seconds"] > spread:
            found[row["name"]] = f"{row['name']}: {ratio:.2f} times the last run on this processor"
    return list(found.values())


def write(rows: list[dict[str, Any]], complete: bool) -> list[str]:
    """Write the processor's file and the tables; a run of some topics keeps the rows of the others.

    Returns what became slower since the last run on the same processor.
    """
    content = {"machine": machine(), "versions": versions(), "rows": rows}
    file = path(content["machine"])
    before = json.loads(file.read_text(encoding="utf-8"))["rows"] if file.exists() else []
    if not complete:
        fresh = {key(row): row for row in rows}
        kept = [fresh.pop(key(row), row) for row in before]
        content["rows"] = [*kept, *fresh.values()]
    RESULTS.mkdir(exist_ok=True)
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    others = [json.loads(other.read_text(encoding="utf-8")) for other in stored() if other != file]
    readme = FOLDER / "README.md"
    text = readme.read_text(encoding="utf-8").partition(LAST)[0]
    lines = [*markdown(content), *(across([content, *others]) if others else [])]
    readme.write_text(text + LAST + "\n\n" + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"wrote benchmarks/results/{file.name} and the tables in benchmarks/README.md")
    return slower(before, rows)


def stored() -> list[Path]:
    """The files of the processors that the benchmark ran on."""
    return sorted(set(RESULTS.glob("*.json")) - set(RESULTS.glob("device-*.json")))


def device_path(name: str) -> Path:
    """The file of an accelerator, by its name."""
    RESULTS.mkdir(exist_ok=True)
    return RESULTS / f"device-{_words(name)}.json"


def write_devices() -> None:
    """Write the table of all devices anew."""
    contents = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(RESULTS.glob("device-*.json"))]
    readme = FOLDER / "README.md"
    before, _, after = readme.read_text(encoding="utf-8").partition(DEVICES)
    lines = "\n".join(devices(contents))
    readme.write_text(f"{before}{DEVICES}\n\n{lines}\n\n{LAST}{after.partition(LAST)[2]}", encoding="utf-8")


def devices(contents: Sequence[Mapping[str, Any]]) -> list[str]:
    """The ceilings of every device in a line, and a table with our time, the floor and a note for each."""
    titles = [content["device"] for content in contents]
    lines = [
        *map(ceilings, contents),
        "",
        "| what | " + " | ".join(f"{title} | floor | note" for title in titles) + " |",
    ]
    lines.append("|" + "---|" * (1 + 3 * len(titles)))
    tables = [{row["name"]: row for row in content["rows"]} for content in contents]
    for name in dict.fromkeys(name for table in tables for name in table):
        columns = [name]
        for table in tables:
            _, ours, _, peer, theirs, ratio, *_, floor, note = cells(table[name]) if name in table else [""] * 10
            columns += [f"{ours} ({peer} {theirs}, {ratio})" if peer else ours, floor, note]
        lines.append("| " + " | ".join(columns) + " |")
    return lines


def ceilings(content: Mapping[str, Any]) -> str:
    """The ceilings of a device in a line, with what ran there."""
    most, versions = content["ceilings"], content["versions"]
    speeds = ", ".join(
        f"{most[name] / 1e12:.3g} Tflop/s {text}"
        for name, text in (
            ("float32", "of float32 products as SGD takes them"),
            ("summed_float32", "of float32 by single numbers"),
            ("float64", "of float64"),
        )
    )
    drawn = " and ".join(f"{1e12 * most[f'normal{bits}']:.3g} ps a normal of {bits} bits" for bits in (32, 64))
    return (
        f"{content['device']}, jax {versions['jax']}: {speeds}; {most['bytes'] / 1e12:.3g} TB/s read and written; "
        f"{drawn}, kept."
    )


def markdown(content: Mapping[str, Any]) -> list[str]:
    """The machine in a line and the rows as a table, for `README.md`."""
    where, names = content["machine"], content["versions"]
    found = ", ".join(f"{name} {version}" for name, version in names.items() if version)
    size = where["memory_bytes"] / 2**30
    lines = [
        f"{label(where)}, {where['cores']} cores, {size:.0f} GiB, {where['system']};",
        f"load average {where['load_average'][0]:.1f} when it ended. {found}.",
        "",
        "| what | ours | spread | peer | its time | ratio | error, its error | floor | note |",
        "|" + "---|" * 9,
    ]
    for row in content["rows"]:
        what, ours, spread, peer, theirs, ratio, *errors, floor, note = cells(row)
        both = ", ".join(error or "-" for error in errors) if any(errors) else ""
        lines.append("| " + " | ".join([what, ours, spread, peer, theirs, ratio, both, floor, note]) + " |")
    return lines


def across(contents: Sequence[Mapping[str, Any]]) -> list[str]:
    """Our time and the ratio to the peer, one column for every processor: ratios are not the same on all of them."""
    titles = [label(content["machine"]) for content in contents]
    lines = [
        "",
        "### By processor",
        "",
        "| what | peer | " + " | ".join(titles) + " |",
        "|" + "---|" * (2 + len(titles)),
    ]
    tables = [{key(row): row for row in content["rows"]} for content in contents]
    for row in contents[0]["rows"]:
        columns = []
        for table in tables:
            _, ours, _, _, _, ratio, *_ = cells(table[key(row)]) if key(row) in table else [""] * 10
            columns.append(f"{ours}, {ratio}" if ratio else ours)
        lines.append("| " + " | ".join([row["name"], row["peer"] or "", *columns]) + " |")
    return lines


def cells(row: Mapping[str, Any]) -> list[str]:
    """A row as words: what, ours, spread, peer, its time, ratio, error, its error, floor, note."""
    ratio = row["peer_seconds"] / row["seconds"] if row["peer_seconds"] and row["seconds"] else None
    ours, spread, theirs, floor = (human(row[name]) for name in ("seconds", "spread", "peer_seconds", "floor_seconds"))
    errors = ["" if row[name] is None else f"{row[name]:.0e}" for name in ("error", "peer_error")]
    ratio_text = f"{ratio:.2g}x" if ratio else ""
    return [row["name"], ours, spread, row["peer"] or "", theirs, ratio_text, *errors, floor, row["note"]]


def human(seconds: float | None) -> str:
    """A time with a readable unit."""
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
