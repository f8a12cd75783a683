"""The files of the benchmark: one for every processor, and what became slower since the last run on it."""

import json

from benchmarks import record


def row(name, seconds, spread=0.0, peer=None, peer_seconds=None):
    return {
        "name": name, "seconds": seconds, "spread": spread, "peer": peer, "peer_seconds": peer_seconds, "error": None,
        "peer_error": None, "floor_seconds": None, "note": "",
    }  # fmt: skip


def test_slower_are_rows_beyond_a_tenth_and_their_spreads():
    before = [row("a", 1.0), row("b", 1.0), row("c", 1.0, 0.3), row("d", None), row("e", 1.0, peer="p")]
    now = [row("a", 1.2), row("b", 1.05), row("c", 1.4, 0.2), row("d", 1.0), row("e", 3.0, peer="q"), row("new", 9.0)]
    assert record.slower(before, now) == ["a: 1.20 times the last run on this processor"]


def test_processors_of_one_name_have_files_of_their_own(tmp_path):
    where = {"processor": "AMD EPYC 7B13 (c)", "family": "25-1"}
    assert record.path(where, tmp_path).name == "amd-epyc-7b13-c-25-1.json"
    assert record.path({"processor": "AMD EPYC"}, tmp_path).name == "amd-epyc.json"


def test_the_ratios_stand_by_processor():
    first = {"machine": {"processor": "A"}, "rows": [row("x", 2e-3, peer="p", peer_seconds=4e-3), row("y", 1.0)]}
    second = {"machine": {"processor": "B", "family": "6-85"}, "rows": [row("x", 1e-3, peer="p", peer_seconds=5e-4)]}
    lines = record.across([first, second])
    assert lines[3] == "| what | peer | A | B (6-85) |"
    assert lines[5:] == ["| x | p | 2 ms, 2x | 1 ms, 0.5x |", "| y |  | 1 s |  |"]


def test_every_device_has_a_column():
    most = {
        "float32": 1e14,
        "summed_float32": 5e13,
        "float64": 6e13,
        "bytes": 3e12,
        "normal32": 4e-12,
        "normal64": 7e-12,
    }
    contents = [
        {"device": "A", "versions": {"jax": "1"}, "ceilings": most, "rows": [row("x", 2e-3, 0.0, "p", 4e-3)]},
        {"device": "B", "versions": {"jax": "2"}, "ceilings": most, "rows": [row("y", 1e-6)]},
    ]
    lines = record.devices(contents)
    assert lines[1].startswith("B, jax 2: 100 Tflop/s of float32 products as SGD takes them, 50 Tflop/s")
    assert lines[1].endswith("3 TB/s read and written; 4 ps a normal of 32 bits and 7 ps a normal of 64 bits, kept.")
    assert lines[3] == "| what | A | floor | note | B | floor | note |"
    assert lines[5:] == ["| x | 2 ms (p 4 ms, 2x) |  |  |  |  |  |", "| y |  |  |  | 1 us |  |  |"]


def test_the_tables_of_the_readme_are_those_of_the_stored_devices():
    contents = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(record.RESULTS.glob("device-*.json"))]
    text = (record.FOLDER / "README.md").read_text(encoding="utf-8")
    assert text.partition(record.DEVICES)[2].partition(record.LAST)[0].strip().splitlines() == record.devices(contents)
