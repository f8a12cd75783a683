"""The table [inputs] of a declaration, and how its teacher is spread over the blocks: read, or refused."""

from collections.abc import Collection, Mapping
from typing import Any

from derivations.declare import clusters, fields
from derivations.declare.clusters import tree
from derivations.declare.declaration import Inputs, Number
from derivations.declare.grammar import Tree

KEYS = ("blocks", "spectrum", "bins", "trace", "means", "cluster")
MOST_BLOCKS = 4096
SPREADS = ("even", "random")
WHOLE = [[1.0, "rest"]]
"""The blocks of inputs of which only clusters are declared."""


def inputs(tables: Mapping[str, Any], numbers: tuple[Number, ...]) -> Inputs | None:
    """Return the inputs of a declaration; None where it has no table [inputs].  Raises `fields.Mistake`."""
    teacher = fields.table(tables, "teacher")
    if "inputs" not in tables:
        if "spread" in teacher:
            raise fields.Mistake("spread says how the teacher lies in the blocks of [inputs], of which there are none",
                                 "teacher", "spread")  # fmt: skip
        return None
    table = fields.table(tables, "inputs")
    fields.require_known(table, KEYS, "inputs")
    names = ("d", *(number.name for number in numbers if not number.per_unit))
    mixed = "cluster" in table
    if "means" in table and not mixed:
        raise fields.Mistake(
            "means are those of clusters: write [[inputs.cluster]] with mean = '..'", "inputs", "means"
        )
    if ("blocks" in table) == ("spectrum" in table) and not (mixed and "blocks" not in table):
        raise fields.Mistake("[inputs] takes blocks = [[eigenvalue, share], ..] or spectrum = 'j^(-1.5)', one of the "
                             "two", "inputs", "spectrum" if "blocks" in table else "")  # fmt: skip
    if "bins" in table and "blocks" in table:
        raise fields.Mistake("bins is how many blocks stand for a spectrum, and blocks are given", "inputs", "bins")
    if table.get("bins") == 1:
        raise fields.Mistake("bins is at least 2: a bin of a spectrum has two blocks", "inputs", "bins")
    means = clusters.means(table, names)
    return Inputs(
        blocks=() if "spectrum" in table else _blocks(table.get("blocks", WHOLE), names),
        spectrum=tree(table["spectrum"], "inputs", "spectrum", ("j", *names)) if "spectrum" in table else None,
        bins=fields.whole(table, "bins", "inputs", 128, MOST_BLOCKS),
        trace=tree(table["trace"], "inputs", "trace", names) if "trace" in table else None,
        spread=_spread(teacher, names),
        means=means,
        clusters=clusters.clusters(table, means, names),
    )


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
        (tree(value, "inputs", "blocks", names), None if share == "rest" else tree(share, "inputs", "blocks", names))
        for value, share in given
    )


def _spread(teacher: Mapping[str, Any], names: Collection[str]) -> str | tuple[float, ...] | Tree:
    """How the teacher's squared norms are shared out among the blocks."""
    given = teacher.get("spread", "even")
    if isinstance(given, list):
        return clusters.shares(given, "spread", "teacher", "spread")
    if not isinstance(given, str):
        raise fields.Mistake(
            f"spread is one of {', '.join(SPREADS)}, a list with a share for every block, or an expression in j such "
            f"as 'j^(-0.5)', but {fields.shown(given)} was given", "teacher", "spread",
        )  # fmt: skip
    return given if given in SPREADS else tree(given, "teacher", "spread", ("j", *names))
