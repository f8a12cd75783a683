"""BibTeX of what a run rests on."""

import re

from derivations.contract import Source, System
from odesim.version import __version__


def bibtex(system: System) -> list[str]:
    """The BibTeX entries of the paper of `system` and of odesim itself."""
    own = (
        "@software{odesim,\n"
        "  title   = {odesim: exact learning dynamics of teacher-student models, and tests "
        "of theorems about them},\n"
        "  author  = {{The odesim authors}},\n"
        f"  version = {{{__version__}}},\n"
        "}"
    )
    return [system.source.bibtex.strip() or _entry(system.name, system.source), own]


def _entry(name: str, source: Source) -> str:
    """An entry made of the fields of a source that brings no BibTeX of its own."""
    authors, year = source.authors, str(source.year or "")
    said = re.fullmatch(r"(.*?)[\s,(]*\b((?:1[6-9]|20)\d\d)\b[)\s]*", authors)
    if not year and said:  # of a declared model it is part of what its author wrote
        authors, year = said.groups()
    fields = {"title": source.title, "author": authors, "note": source.venue, "year": year, "url": source.link}
    lines = [f"  {key:<6} = {{{_escaped(value)}}},\n" for key, value in fields.items() if value]
    return f"@misc{{{name}{year},\n{''.join(lines)}}}"


def _escaped(text: str) -> str:
    """Signs that mean something to TeX, set literally."""
    return re.sub(r"(?<!\\)([&%#_$])", r"\\\1", text)
