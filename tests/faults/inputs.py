"""Wrong words and damaged files for every command: `python -m tests.faults.inputs --cases 1000 [--only KIND]`.

Kinds: `options` (random options and values of every command, found in its parser), `configurations` and `declarations`
(mutated TOML), `arrays` (mutated .npz), `folders` (a file of a run missing, cut, changed or swapped).  A case runs in a
fork, within `MEMORY`; after `PATIENCE` seconds it gets Ctrl-C, as a valid run may be long, and must end soon.  A fault
is exit code 70 (a mistake of ours), 1 without --strict, a traceback, more than three lines on stderr, no end, or a
signal.
"""

import argparse
import collections
import os
import random
import resource
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import typer

from odesim import cli
from tests.faults import forks

PATIENCE = 10.0
MEMORY = 6 << 30
ALLOWED = {0, 2, 3, 4, 130}
WORDS = (
    *("", "0", "-1", "1", "2", "7", "1.5", "1e-300", "1e400", "nan", "inf", "-inf", "abc", "None", "true", "0..3"),
    *("1,2", "1,,2", "a=b", "m=2", "m=-1", "m=1e9", "d=1e15", "d=nan", "=", "m=", "m==2", "..", "/", "/nonexistent/x"),
    *("liao", "pmoe", "ren_2025", "train", "all", "exact", "numba", "jax", "DOP853", "NDF", "seed=0..1", "T_gamma2"),
    *(
        "'; import os",
        "<b>",
        "x" * 3000,
        "--",
        "-",
        "local",
        "tcp://127.0.0.1:9",
        "{}",
        "[1,2]",
        "0x10",
        "\u0661\u0662",
    ),
    *("1_000", "1e3*d", "sqrt(d)", "__import__('os')", "\u00e9 \u6f22"),
)
"""Values that any option may be given."""
SMALL = "--system liao -p m=2 -p m_star=1 -p d=50"
SGD = f"{SMALL} --method compressed --step-size 1e-3 --batch 8 --until .01"
BASE = {
    "integrate": f"integrate {SMALL} --until 1 --save-points 3 --no-figures",
    "simulate": f"simulate {SGD}",
    "compare": f"compare {SGD}",
    "sweep": f"sweep {SMALL} --over seed=0,1 --until 1 --save-points 3 --workers 1",
    "verify": "verify --system pruning --claim random-prune --workers 1",
    "systems": "systems", "derive": "derive --system ren_2025", "figures": "figures --list", "doctor": "doctor",
    "cite": "cite liao", "show": "show RUN", "plot": "plot RUN", "report": "report RUN", "explore": "explore RUN",
    "observe": "observe RUN",
}  # fmt: skip


def main() -> int:
    """Attack, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.inputs", description=__doc__)
    parser.add_argument("--only", choices=list(KINDS), action="append")
    parser.add_argument("--cases", type=int, default=1000, help="of every kind")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        prepare(folder)
        for kind in options.only or KINDS:
            rng, began = random.Random(f"{options.seed}/{kind}"), time.perf_counter()
            found: collections.Counter[str] = collections.Counter()
            for case in range(options.cases):
                place = folder / "case"
                shutil.rmtree(place, ignore_errors=True)
                place.mkdir()
                words = [word for word in KINDS[kind](rng, folder, place) if "\0" not in word]
                what = outcome(words, place)
                found[what] += 1
                if what.isupper():
                    told = (place / "stderr").read_text(errors="replace")[-1500:]
                    print(f"    {kind} {case}: {what}: {' '.join(w[:80] for w in words)}\n{told}", flush=True)
            tally = ", ".join(f"{n} {what}" for what, n in found.most_common())
            print(f"{kind}: {options.cases} cases, {time.perf_counter() - began:.0f} s: {tally}", flush=True)
            wrong += sum(n for what, n in found.items() if what.isupper())
    return 1 if wrong else 0


def prepare(folder: Path) -> None:
    """The run, the arrays and the configuration that are damaged, and everything compiled and imported once."""
    for words in (BASE["integrate"], BASE["simulate"], BASE["compare"], BASE["sweep"], BASE["derive"]):
        name = "RUN" if words == BASE["integrate"] else words.split()[0]
        code = cli._run([*words.split(), *(["--out", str(folder / name)] if "derive" not in words else [])])
        assert code == 0, words
    rng = np.random.default_rng(0)
    frame = np.linalg.qr(rng.normal(size=(8, 4)))[0].T
    arrays = {"V": rng.normal(size=(2, 8)), "W": rng.normal(size=(2, 8)), "V_star": frame[:1], "W_star": frame[1:2]}
    np.savez(folder / "arrays.npz", **arrays)


def outcome(words: list[str], place: Path, patience: float = PATIENCE) -> str:
    """The outcome of a command in a fork of this process; faults in capitals."""
    end = forks.command(words, place, None if any("tcp://" in word for word in words) else confined, patience)
    if end.interrupted and end.seconds > patience + forks.GRACE:
        return "DOES NOT END"
    if end.code < 0:
        return f"SIGNAL {-end.code}"
    if "Traceback" in end.stderr or end.code not in ALLOWED:
        return f"EXIT CODE {end.code}"
    if end.code in (2, 3, 4) and not 1 <= len(end.lines) <= 3:
        return f"EXIT CODE {end.code} WITH {len(end.lines)} LINES"
    return "interrupted when long" if end.interrupted else f"exit code {end.code}"


def confined() -> None:
    """Little memory, and no network."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was asked for")

    socket.socket.connect = refuse  # type: ignore[method-assign, assignment]


def options_of(rng: random.Random, folder: Path, place: Path) -> list[str]:
    """A valid command with some of its options set to anything, or words dropped and doubled."""
    commands = typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]
    name = rng.choice(list(commands))
    words = [word.replace("RUN", str(folder / "RUN")) for word in BASE[name].split()]
    options = [
        option
        for option in commands[name].params
        if option.opts[0].startswith("-") and not {"--help", "--debug"} & set(option.opts)
    ]
    for option in rng.sample(options, min(len(options), rng.randint(1, 3))):
        words.append(rng.choice(option.opts))
        if not getattr(option, "is_flag", False):
            choices = list(getattr(getattr(option, "type", None), "choices", ())) * 10
            words.append(str(rng.choice([*WORDS, *choices])))
    if rng.random() < 0.3:
        del words[rng.randrange(1, len(words))]
    if rng.random() < 0.2:
        words.insert(rng.randrange(1, len(words) + 1), rng.choice(WORDS))
    return contained(words, options, place)


def contained(words: list[str], options: list[typer.core.TyperOption], place: Path) -> list[str]:
    """The same command, writing into the folder of the case alone, without workers without number."""
    outs = [k for k, word in enumerate(words) if word == "--out"]
    for k in outs:
        if k + 1 < len(words) and not words[k + 1].startswith("-"):
            words[k + 1] = str(place / (words[k + 1].strip("/.").replace("/", "_")[:250] or "out"))
    if not outs and any("--out" in option.opts for option in options):
        words += ["--out", str(place / ("page.html" if words[0] in ("report", "explore") else "out"))]
    return words


LITERALS = (
    *("-1", "0", "1", "3", "2.5", "1e-9", "1e400", "-inf", "nan", "9223372036854775808", "1e15", "true", "1979-05-27"),
    *(
        '""',
        '"x"',
        '"nan"',
        '"1e3*d"',
        '"__import__(1)"',
        '"../../x"',
        '"<b>"',
        "[]",
        "[1, 2]",
        '["a"]',
        "{}",
        "[[[]]]",
    ),
    *("{a = 1}", "1" * 400, '"' + "9" * 5000 + '"', '"(" ', '"w**99"', '"exp(exp(w))"', '"w/0"', '"relu(w+)"'),
)
"""Values that TOML allows and hardly any key does."""


def mistaken(rng: random.Random, text: bytes) -> bytes:
    """A file of TOML with other values, names or lines: the syntax mostly holds, the meaning hardly."""
    if rng.random() < 0.3:
        return mutated(rng, text)
    lines = text.decode().splitlines()
    for _ in range(rng.choice([1, 1, 2, 4])):
        k = rng.randrange(len(lines))
        name, equals, value = lines[k].partition("=")
        match rng.randrange(5):
            case 0 | 1 if equals:
                lines[k] = f"{name}= {rng.choice(LITERALS)}"
            case 2 if equals:
                other = rng.choice(lines).partition("=")
                lines[k] = f"{name}= {other[2] or value}" if rng.random() < 0.5 else f"{other[0]} = {value}"
            case 3:
                del lines[k]
            case _:
                lines.insert(rng.randrange(len(lines) + 1), lines[k])
        if not lines:
            break
    return "\n".join(lines).encode()


def mutated(rng: random.Random, text: bytes) -> bytes:
    """Bytes changed, cut, doubled or put in."""
    data = bytearray(text)
    for _ in range(rng.choice([1, 1, 2, 5])):
        if not data:
            return bytes(data)
        k, n = rng.randrange(len(data)), rng.choice([1, 1, 4, 30])
        match rng.randrange(5):
            case 0:
                data[k] = rng.randrange(256)
            case 1:
                del data[k : k + n]
            case 2:
                data[k:k] = data[k : k + n]
            case 3:
                data[k : k + 1] = rng.choice([b"-", b"nan", b"1e999", b'"', b"\n", b"[", b"=", b"\xff", b"0", b"<b>"])
            case 4:
                data[k : k + n] = rng.choice(WORDS[:40]).encode()
    return bytes(data)


CONFIGURATION = b"""until = 1.0
save_points = 3
rtol = 1e-6
seed = 3
[parameters]
m = 2
m_star = 1
d = 1e3
init = "random"
"""


def configurations(rng: random.Random, folder: Path, place: Path) -> list[str]:
    """A mutated configuration."""
    (place / "run.toml").write_bytes(mistaken(rng, CONFIGURATION))
    words = ["integrate", "--system", "liao", "--config", str(place / "run.toml"), "--no-figures"]
    return [*words, "--out", str(place / "out")]


def declarations(rng: random.Random, folder: Path, place: Path) -> list[str]:
    """A mutated declaration of the gallery: described, or integrated for a short time."""
    import derivations.gallery as gallery

    files = sorted(Path(gallery.__path__[0]).glob("*.toml"))
    (place / "model.toml").write_bytes(mistaken(rng, rng.choice(files).read_bytes()))
    if rng.random() < 0.7:
        return ["systems", str(place / "model.toml")]
    words = ["integrate", "--system", str(place / "model.toml"), "--until", "0.1", "--save-points", "3", "--no-figures"]
    return [*words, "--out", str(place / "out")]


def arrays(rng: random.Random, folder: Path, place: Path) -> list[str]:
    """Initial arrays of other shapes, types and values, or a file that is damaged."""
    path = place / "arrays.npz"
    if rng.random() < 0.5:
        path.write_bytes(mutated(rng, (folder / "arrays.npz").read_bytes()))
    else:
        with np.load(folder / "arrays.npz") as file:
            held = {name: file[name] for name in file.files}
        np.savez(path, **{**held, rng.choice([*held, "X"]): strange(rng, held[rng.choice(list(held))])})
    words = [
        "integrate",
        "--system",
        "liao",
        "--initial",
        str(path),
        "--until",
        "1",
        "--save-points",
        "3",
        "--no-figures",
    ]
    return [*words, "--out", str(place / "out")]


def strange(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """An array that is not what it should be."""
    changed = array.copy()
    changed.flat[rng.randrange(array.size)] = rng.choice([np.nan, np.inf, 1e308, -1e-320, 0.0])
    made: list[Callable[[], np.ndarray]] = [
        lambda: changed, lambda: array.astype(complex), lambda: array.astype("<U9"), lambda: array.astype(np.float16),
        lambda: array[:, :3], lambda: array.ravel(), lambda: array[None], lambda: np.zeros((0, 8)),
        lambda: np.asarray(3.0), lambda: np.zeros((2, 2_000_000)), lambda: array.astype(">f8"), lambda: 0 * array,
        lambda: np.asfortranarray(array), lambda: np.array([{"a": 1}, print], dtype=object),
        lambda: array.astype(bool), lambda: array.astype("datetime64[s]"), lambda: array.astype(np.longdouble),
    ]  # fmt: skip
    return np.asarray(rng.choice(made)())


def folders(rng: random.Random, folder: Path, place: Path) -> list[str]:
    """A run folder with a file missing, cut, changed or swapped, for a command that reads it."""
    source = rng.choice(["RUN", "simulate", "compare", "sweep"])
    run = place / "run"
    shutil.copytree(folder / source, run)
    files = sorted(path for path in run.rglob("*") if path.is_file())
    path = rng.choice(files)
    match rng.randrange(5):
        case 0:
            path.unlink()
        case 1:
            path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size + 1)])
        case 2:
            path.write_bytes(mutated(rng, path.read_bytes()))
        case 3:
            other = rng.choice(files)
            content = path.read_bytes()
            path.write_bytes(other.read_bytes())
            other.write_bytes(content)
        case 4:
            path.unlink()
            path.mkdir()
    page, new = ["--out", str(place / "page.html")], ["--no-figures", "--out", str(place / "out")]
    return rng.choice([
        ["show", str(run)],
        ["plot", str(run)],
        ["report", str(run), *page],
        ["explore", str(run), *page],
        ["compare", str(run), str(folder / "RUN"), "--out", str(place / "out")],
        [*BASE["integrate"].split(), "--out", str(run), "--resume"],
        [*BASE["sweep"].split(), "--out", str(run), "--resume"],
        ["integrate", "--system", "liao", "--from", str(run), "--until", "1", *new],
    ])  # fmt: skip


KINDS: dict[str, Callable[[random.Random, Path, Path], list[str]]] = {
    "options": options_of, "configurations": configurations, "declarations": declarations, "arrays": arrays,
    "folders": folders,
}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
