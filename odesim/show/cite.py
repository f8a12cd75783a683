"""BibTeX of a system, of a check and of odesim."""

import re
from collections.abc import Mapping
from typing import Any

from derivations.contract import Source, System
from odesim.version import __version__

OWN = (
    "@software{odesim,\n"
    "  title   = {odesim: exact learning dynamics of teacher-student models, and tests "
    "of theorems about them},\n"
    "  author  = {{The odesim authors}},\n"
    f"  version = {{{__version__}}},\n"
    "}"
)
"""The entry of odesim."""


def bibtex(system: System) -> list[str]:
    """The BibTeX entries of the paper of `system` and of odesim itself."""
    return [system.source.bibtex.strip() or _entry(system.name, system.source), OWN]


def entries_of_check(record: Mapping[str, Any]) -> list[str]:
    """Return the BibTeX entries of a check, of its paper, and of odesim."""
    return [of_check(record), str(record["system"]["bibtex"]), OWN]


def of_check(record: Mapping[str, Any]) -> str:
    """Return the BibTeX entry of a check: its object, its result, and how to repeat it."""
    system, request, digest = record["system"], record["request"], record["digest"]
    verdict = f"{record['verdict']['answer']}; {record['grade']['name']}"
    method = (
        f"odesim {record['versions']['odesim']}, effort {request['effort']}, seed {request['seed']}, check {digest}"
    )
    fields = {
        "title": f"Check of {system['name']} ({system['source']}) by odesim: {verdict}",
        "note": method,
        "year": record["created"][:4],
        "date": record["created"][:10],
        "url": system["link"],
    }
    lines = [f"  {key:<6} = {{{_escaped(value)}}},\n" for key, value in fields.items() if value]
    return f"@misc{{check-{system['name']}-{digest},\n{''.join(lines)}}}"


def _entry(name: str, source: Source) -> str:
    """Return an entry made of the fields of a source without BibTeX."""
    authors, year = source.authors, str(source.year or "")
    match = re.fullmatch(r"(.*?)[\s,(]*\b((?:1[6-9]|20)\d\d)\b[)\s]*", authors)
    if not year and match:  # in a declared model the author writes these
        authors, year = match.groups()
    fields = {"title": source.title, "author": _names(authors), "note": source.venue, "year": year, "url": source.link}
    lines = [f"  {key:<6} = {{{_escaped(value)}}},\n" for key, value in fields.items() if value]
    return f"@misc{{{name}{year},\n{''.join(lines)}}}"


def _names(authors: str) -> str:
    """Return a list of authors with the separators of BibTeX.

    Example:
        >>> _names("Chen, Deng, Wu, Gu & Li"), _names("Ben Arous et al."), _names("Lee")
        ('Chen and Deng and Wu and Gu and Li', 'Ben Arous and others', 'Lee')
        >>> _names("Saad, David and Solla, Sara A."), _names("Smith, J. & Jones, K.")
        ('Saad, David and Solla, Sara A.', 'Smith, J. and Jones, K.')
    """
    authors = re.sub(r",?\s+et al\.?", " and others", authors)
    if " and " in re.sub(" and others$", "", authors) or "." in authors:  # surnames before initials keep their commas
        return re.sub(r",?\s+&\s+", " and ", authors)
    return re.sub(r",?\s+&\s+|,\s+", " and ", authors)


def _escaped(text: str) -> str:
    """Return a text with TeX's special characters escaped."""
    return re.sub(r"(?<!\\)([&%#_$])", r"\\\1", text)
