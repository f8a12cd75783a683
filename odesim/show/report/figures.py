"""The figures of a page, each with the claim it belongs to."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from odesim.errors import UsageError
from odesim.request.stored_system import short_name
from odesim.show.report.pictures import picture_of
from odesim.show.report.sections import ClaimSection, FigureSection, Picture, Section, VerdictSection
from odesim.store.files import FIGURES, read_json


def read_figures(folder: str) -> FigureSection:
    """Return the figures that `odesim figures` wrote into a folder; a smaller version only if there is no other."""
    path = Path(folder)
    by_claim: dict[str, tuple[Picture, ...]] = {}
    pictures = []
    try:
        content = read_json(path / FIGURES)
        files = {entry["file"] for entry in content["figures"]}
        for entry in content["figures"]:
            if entry["file"].replace("-quick.", ".") in files - {entry["file"]}:
                continue  # the published size also exists
            picture = picture_of(path, entry["file"], entry, entry["caption"])
            pictures.append(picture)
            for claim in entry["claims"]:
                by_claim[claim] = (*by_claim.get(claim, ()), picture)
        return FigureSection(path.name, short_name(str(content["system"])), tuple(pictures), by_claim)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{path / FIGURES} is damaged; `odesim figures` writes it again") from None


def place_figures(sections: Sequence[Section]) -> list[Section]:
    """Return the sections with every figure at its first claim; the other figures stay in their section."""
    placed: set[str] = set()
    found: list[Section] = []
    for section in sections:
        if isinstance(section, VerdictSection):
            own = [f for f in sections if isinstance(f, FigureSection) and f.system == section.system]
            groups = tuple(
                (title, anchor, tuple(_with_figures(claim, own, placed) for claim in claims))
                for title, anchor, claims in section.groups
            )
            section = dataclasses.replace(section, groups=groups)
        found.append(section)
    return [
        dataclasses.replace(section, pictures=tuple(p for p in section.pictures if p.address not in placed))
        if isinstance(section, FigureSection)
        else section
        for section in found
    ]


def _with_figures(claim: ClaimSection, figures: Sequence[FigureSection], placed: set[str]) -> ClaimSection:
    """Return a claim with those of its figures that no earlier claim has; they are added to `placed`."""
    own = [p for section in figures for p in section.by_claim.get(claim.id, ()) if p.address not in placed]
    placed.update(picture.address for picture in own)
    return dataclasses.replace(claim, pictures=tuple(own))
