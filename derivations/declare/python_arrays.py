"""Arrays in the tables of `odesim.declare`: kept in memory, and written to the cache for other processes."""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations import cache
from derivations.declare import array_files, data, fields

MOST_KEPT = 1 << 30
"""Largest number of bytes of an array that is written to the cache."""


def with_records(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return tables with records instead of the arrays of inputs and of the teacher.

    Raises `fields.Mistake` for arrays that are not valid samples, eigenvalues or teachers.
    """
    text_tables = dict(tables)
    for table, key, check in data.ARRAYS:
        entries = tables.get(table)
        array = entries.get(key) if isinstance(entries, Mapping) else None
        if isinstance(entries, Mapping) and hasattr(array, "__array__"):
            with fields.entry_at(table, key):
                values = array_files.real(array, key)
                record = check(values, key, f"{cache.folder()}/")
            _offer(values, array_files.kept_name(record.sha256))
            text_tables[table] = {**text_tables[table], key: record.table()}
    return text_tables


def _offer(values: np.ndarray, name: str) -> None:
    """Write an array to the cache, unless it exists or is very large."""
    path = cache.folder() / name
    if not path.exists() and values.nbytes <= MOST_KEPT:
        packed = io.BytesIO()
        np.save(packed, values)
        cache.offer(path, packed.getvalue())
