"""The normalised text of a declaration: TOML that declares the same model in every place."""

from collections.abc import Mapping
from typing import Any

import tomli_w

from derivations.declare import data, fields
from derivations.declare.declaration import Declaration


def declaration_text(tables: Mapping[str, Any], declared: Declaration) -> str:
    """Return the TOML text from which `declared` can be read again.

    `tables` are the tables that the declaration was read from. The text contains the name and the title, for which a
    file may use its file name, and a Gram matrix instead of the name of its file. Other arrays are too large for the
    text, which has their digests. Raises `fields.Mistake` for a value without a TOML form, such as `None`.

    >>> from derivations.declare import reading
    >>> tables = {"student": {"unit": "He(2, w)", "units": 2}, "teacher": {}}
    >>> print(reading.declaration(tables, name="pair").text.strip())
    name = "pair"
    title = "pair"
    <BLANKLINE>
    [student]
    unit = "He(2, w)"
    units = 2
    <BLANKLINE>
    [teacher]
    """
    text_tables: dict[str, Any] = {"name": declared.name, "title": declared.title}
    text_tables |= {key: value for key, value in tables.items() if key not in text_tables}
    teacher = tables.get("teacher")
    if isinstance(teacher, Mapping) and "gram" in teacher and isinstance(declared.gram, tuple):
        text_tables["teacher"] = {**teacher, "gram": [list(row) for row in declared.gram]}
    try:
        return tomli_w.dumps(data.in_text(text_tables, declared))
    except TypeError as error:
        raise fields.Mistake(f"a model is made of texts, numbers, lists and tables: {error}") from None


def said(declared: Declaration) -> str:
    """Return everything in a declaration, including its stages."""
    words = f"{declared}{declared.inputs or ''}{declared.rates or ''}{declared.schedules or ''}{declared.rules or ''}"
    words += f"{declared.law or ''}{declared.memories or ''}{declared.momentum or ''}{declared.labelling or ''}"
    words += f"{declared.look or ''}{declared.episode or ''}{declared.batch_size or ''}{declared.changes or ''}"
    words += declared.paper
    words += "".join(f"{teacher.name} {teacher.copied}" for teacher in declared.teachers if teacher.copied)
    words += f"{declared.answers}{declared.start.readouts}" if declared.several or declared.predicted else ""
    words += "".join(f"{number.name} {number.formula}" for number in declared.numbers if number.formula)
    return words + "".join(f" {stage.stage} {stage.own} {said(stage)}" for stage in declared.stages)
