"""Reader of the table [inputs] of a declaration, and of the distribution of its teacher over the blocks."""

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from derivations.declare import array_files, classes, clusters, data, fields
from derivations.declare.array_files import ArrayFile
from derivations.declare.declaration import Inputs, Number
from derivations.declare.grammar import Tree

KEYS = ("blocks", "spectrum", "covariance", "data", "label", "centre", "bins", "trace", "means", "cluster")
MOST_BLOCKS = 4096
SPREADS = ("even", "random")
WHOLE = [[1.0, "rest"]]
"""Blocks of inputs for which only clusters are declared."""


def inputs(tables: Mapping[str, Any], numbers: tuple[Number, ...], folder: Path | None = None) -> Inputs | None:
    """Return the inputs of a declaration; None without a table [inputs]. Raises `fields.Mistake`.

    `folder` is the folder of its files.
    """
    teacher = fields.table(tables, "teacher")
    if "inputs" not in tables:
        if "spread" in teacher:
            message = "spread distributes the teacher over the blocks of [inputs], but there is no table [inputs]"
            raise fields.Mistake(message, "teacher", "spread")
        return None
    table = fields.table(tables, "inputs")
    fields.require_known(table, KEYS, "inputs")
    names = ("d", *(number.name for number in numbers if not number.per_unit))
    if "means" in table and "cluster" not in table:
        raise fields.Mistake(
            "means are only for clusters: write [[inputs.cluster]] with mean = '..'", "inputs", "means"
        )
    sources = [key for key in ("blocks", "spectrum", "covariance", "data") if key in table]
    if len(sources) != 1 and not ("cluster" in table and not sources):
        raise fields.Mistake(
            "[inputs] takes blocks = [[eigenvalue, share], ..], spectrum = 'j^(-1.5)', covariance = 'C.npy' or data = "
            "'X.npy', one of the four", "inputs", sources[-1] if sources else "",
        )  # fmt: skip
    if "cluster" in table and "data" in table:
        raise fields.Mistake(
            "samples from a file cannot be combined with clusters: declare clusters with blocks or a spectrum",
            "inputs",
            "cluster",
        )
    for key in ("label", "centre"):
        if key in table and "data" not in table:
            raise fields.Mistake(f"{key} is only for your own samples: give them with data = 'X.npy'", "inputs", key)
    if "means" in table and _is_array(teacher.get("spread")):
        message = (
            "a teacher from a file cannot be combined with means of clusters, because their overlaps are not known"
        )
        raise fields.Mistake(message, "inputs", "means")
    if "bins" in table and "blocks" in table:
        raise fields.Mistake("bins is the number of blocks for a spectrum, but the blocks are given", "inputs", "bins")
    if table.get("bins") == 1:
        raise fields.Mistake(
            "bins must be at least 2, because every bin of a spectrum has two blocks", "inputs", "bins"
        )
    spectrum = table.get("spectrum")
    eigenvalues = data.of_entry(spectrum, "inputs", "spectrum", folder) if _is_array(spectrum) else None
    means = clusters.means(table, names)
    declared_inputs = Inputs(
        blocks=_blocks(table.get("blocks", WHOLE), names) if sources in (["blocks"], []) else (),
        spectrum=_spectrum(spectrum, names) if spectrum is not None and eigenvalues is None else None,
        bins=fields.whole(table, "bins", "inputs", 128, MOST_BLOCKS),
        trace=fields.formula(table["trace"], "inputs", "trace", names) if "trace" in table else None,
        spread=_spread(teacher, names, folder),
        eigenvalues=eigenvalues,
        covariance=_file(table, "covariance", f"a file of a matrix {data.FILES}", folder),
        data=_file(table, "data", f"a file of samples {data.FILES}", folder),
        means=means,
        clusters=clusters.clusters(table, means, names),
    )
    return declared_inputs if declared_inputs.data is None else _of_samples(declared_inputs, table, folder)


def _of_samples(declared_inputs: Inputs, table: Mapping[str, Any], folder: Path | None) -> Inputs:
    """Return inputs with the classes of their samples, and their means."""
    assert declared_inputs.data is not None
    label, counts = None, ()
    if "label" in table:
        if not _is_array(table["label"]):
            raise fields.Mistake(
                f"label is a file with a number for every sample {data.FILES}, or in Python an array, but "
                f"{fields.shown(table['label'])} was given", "inputs", "label",
            )  # fmt: skip
        label, counts = classes.of_entry(table["label"], declared_inputs.data, folder)
    centre = fields.flag(table, "centre", "inputs") if "centre" in table else True
    means, class_clusters = classes.nouns(counts, centre)
    return dataclasses.replace(
        declared_inputs, label=label, classes=counts, centre=centre, means=means, clusters=class_clusters
    )


def _is_array(entry: Any) -> bool:
    """Return True for the name of a file of numbers, or for its replacement in a stored declaration."""
    return array_files.is_file_name(entry) or isinstance(entry, Mapping)


def _spectrum(entry: Any, names: Collection[str]) -> Tree:
    """The eigenvalue of coordinate j."""
    if not isinstance(entry, str | int | float):
        raise fields.Mistake(
            "spectrum is an expression in j such as 'j^(-1.5)', or a file of d eigenvalues (.npy, .txt), but "
            f"{fields.shown(entry)} was given", "inputs", "spectrum",
        )  # fmt: skip
    return fields.formula(entry, "inputs", "spectrum", ("j", *names))


def _file(table: Mapping[str, Any], key: str, description: str, folder: Path | None) -> ArrayFile | None:
    """Return the file of an entry; None without one."""
    if key not in table:
        return None
    if not _is_array(table[key]):
        raise fields.Mistake(
            f"{key} is {description}, or in Python an array, but {fields.shown(table[key])} was given", "inputs", key
        )
    return data.of_entry(table[key], "inputs", key, folder)


def _blocks(pairs: Any, names: Collection[str]) -> tuple[tuple[Tree, Tree | None], ...]:
    """Pairs of an eigenvalue and a share, of which one may be "rest"."""
    if not isinstance(pairs, list) or not pairs or not all(isinstance(b, list) and len(b) == 2 for b in pairs):
        raise fields.Mistake(
            f"blocks is a list of [eigenvalue, share] such as [[2.0, 0.1], [0.5, \"rest\"]], but {fields.shown(pairs)} "
            "was given", "inputs", "blocks",
        )  # fmt: skip
    if len(pairs) > MOST_BLOCKS:
        raise fields.Mistake(f"at most {MOST_BLOCKS} blocks, but {len(pairs)} are given", "inputs", "blocks")
    if sum(share == "rest" for _, share in pairs) > 1:
        raise fields.Mistake('only one block may have the share "rest"', "inputs", "blocks")
    return tuple(
        (
            fields.formula(value, "inputs", "blocks", names),
            None if share == "rest" else fields.formula(share, "inputs", "blocks", names),
        )
        for value, share in pairs
    )


def _spread(
    teacher: Mapping[str, Any], names: Collection[str], folder: Path | None
) -> str | tuple[float, ...] | Tree | ArrayFile:
    """Return the distribution of the squared norms of the teacher over the blocks."""
    entry = teacher.get("spread", "even")
    if _is_array(entry):
        return data.of_entry(entry, "teacher", "spread", folder)
    if isinstance(entry, list):
        return clusters.shares(entry, "spread", "teacher", "spread")
    if not isinstance(entry, str):
        raise fields.Mistake(
            f"spread is one of {', '.join(SPREADS)}, a list with a share for every block, an expression in j such as "
            f"'j^(-0.5)', or a file of vectors, but {fields.shown(entry)} was given", "teacher", "spread",
        )  # fmt: skip
    return entry if entry in SPREADS else fields.formula(entry, "teacher", "spread", ("j", *names))
