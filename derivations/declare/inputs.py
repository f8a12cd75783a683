"""The table [inputs] of a declaration, and how its teacher is spread over the blocks: read, or refused."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from derivations.declare import array_files, data, fields
from derivations.declare.array_files import ArrayFile
from derivations.declare.declaration import Inputs, Number
from derivations.declare.grammar import OF_NUMBERS, Tree

KEYS = ("blocks", "spectrum", "data", "bins", "trace")
MOST_BLOCKS = 4096
SPREADS = ("even", "random")


def inputs(tables: Mapping[str, Any], numbers: tuple[Number, ...], folder: Path | None = None) -> Inputs | None:
    """Return the inputs of a declaration; None where it has no table [inputs].  Raises `fields.Mistake`.

    `folder` is where the files that it names lie.
    """
    teacher = fields.table(tables, "teacher")
    if "inputs" not in tables:
        if "spread" in teacher:
            raise fields.Mistake("spread says how the teacher lies in the blocks of [inputs], of which there are none",
                                 "teacher", "spread")  # fmt: skip
        return None
    table = fields.table(tables, "inputs")
    fields.require_known(table, KEYS, "inputs")
    names = ("d", *(number.name for number in numbers if not number.per_unit))
    sources = [key for key in ("blocks", "spectrum", "data") if key in table]
    if len(sources) != 1:
        raise fields.Mistake(
            "[inputs] takes blocks = [[eigenvalue, share], ..], spectrum = 'j^(-1.5)' or data = 'X.npy', one of the "
            "three", "inputs", sources[-1] if sources else "",
        )  # fmt: skip
    if "bins" in table and "blocks" in table:
        raise fields.Mistake("bins is how many blocks stand for a spectrum, and blocks are given", "inputs", "bins")
    if table.get("bins") == 1:
        raise fields.Mistake("bins is at least 2: a bin of a spectrum has two blocks", "inputs", "bins")
    spectrum = table.get("spectrum")
    eigenvalues = data.of_entry(spectrum, "inputs", "spectrum", folder) if _is_array(spectrum) else None
    return Inputs(
        blocks=_blocks(table["blocks"], names) if "blocks" in table else (),
        spectrum=_spectrum(spectrum, names) if spectrum is not None and eigenvalues is None else None,
        bins=fields.whole(table, "bins", "inputs", 128, MOST_BLOCKS),
        trace=_tree(table["trace"], "inputs", "trace", names) if "trace" in table else None,
        spread=_spread(teacher, names, folder),
        eigenvalues=eigenvalues,
        data=_data(table["data"], folder) if "data" in table else None,
    )


def _is_array(given: Any) -> bool:
    """Return True for what names a file of numbers, or is what a stored declaration has in its place."""
    return array_files.is_file_name(given) or isinstance(given, Mapping)


def _spectrum(given: Any, names: Collection[str]) -> Tree:
    """The eigenvalue of coordinate j."""
    if not isinstance(given, str | int | float):
        raise fields.Mistake(
            "spectrum is an expression in j such as 'j^(-1.5)', or a file of d eigenvalues (.npy, .txt), but "
            f"{fields.shown(given)} was given", "inputs", "spectrum",
        )  # fmt: skip
    return _tree(given, "inputs", "spectrum", ("j", *names))


def _data(given: Any, folder: Path | None) -> ArrayFile:
    """The samples of the inputs."""
    if not _is_array(given):
        raise fields.Mistake(
            f"data is a file of samples {data.FILES}, or in Python an array, but {fields.shown(given)} was given",
            "inputs", "data",
        )  # fmt: skip
    return data.of_entry(given, "inputs", "data", folder)


def _blocks(given: Any, names: Collection[str]) -> tuple[tuple[Tree, Tree | None], ...]:
    """Pairs of an eigenvalue and a share, of which one may be "rest"."""
    if not isinstance(given, list) or not given or not all(isinstance(b, list) and len(b) == 2 for b in given):
        raise fields.Mistake(
            f"blocks is a list of [eigenvalue, share] such as [[2.0, 0.1], [0.5, \"rest\"]], but {fields.shown(given)} "
            "was given", "inputs", "blocks",
        )  # fmt: skip
    if len(given) > MOST_BLOCKS:
        raise fields.Mistake(f"at most {MOST_BLOCKS} blocks, but {len(given)} are given", "inputs", "blocks")
    if sum(share == "rest" for _, share in given) > 1:
        raise fields.Mistake("one block alone takes the rest of the coordinates", "inputs", "blocks")
    return tuple(
        (_tree(value, "inputs", "blocks", names), None if share == "rest" else _tree(share, "inputs", "blocks", names))
        for value, share in given
    )


def _tree(given: Any, table: str, key: str, names: Collection[str]) -> Tree:
    """A number, or an expression in some names and functions of numbers."""
    if isinstance(given, str):
        found = fields.expression(given, table, key, names)
        wrong = [call.word for call in found.walk() if call.kind == "call" and call.word not in (*OF_NUMBERS, "He")]
        if wrong:
            raise fields.Mistake(f"{wrong[0]} is no function of numbers; use {', '.join(OF_NUMBERS)}", table, key)
        return found
    return Tree("number", value=fields.real({key: given}, key, table))


def _spread(
    teacher: Mapping[str, Any], names: Collection[str], folder: Path | None
) -> str | tuple[float, ...] | Tree | ArrayFile:
    """How the teacher's squared norms are shared out among the blocks."""
    given = teacher.get("spread", "even")
    if _is_array(given):
        return data.of_entry(given, "teacher", "spread", folder)
    if isinstance(given, list):
        shares = tuple(fields.real({"spread": x}, "spread", "teacher", minimum=0.0) for x in given)
        if abs(sum(shares) - 1) > 1e-9:
            raise fields.Mistake(f"the shares of spread sum to {sum(shares):.10g}, not to 1", "teacher", "spread")
        return shares
    if not isinstance(given, str):
        raise fields.Mistake(
            f"spread is one of {', '.join(SPREADS)}, a list with a share for every block, an expression in j such as "
            f"'j^(-0.5)', or a file of vectors, but {fields.shown(given)} was given", "teacher", "spread",
        )  # fmt: skip
    return given if given in SPREADS else _tree(given, "teacher", "spread", ("j", *names))
