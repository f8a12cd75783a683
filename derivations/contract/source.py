"""Sources of statements."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Source:
    """Source of a statement: a paper, the place in it, and its URL."""

    authors: str
    title: str
    venue: str
    year: int
    bibtex: str = ""
    place: str = ""
    link: str = ""

    def at(self, place: str) -> "Source":
        """The same paper, at `place` (theorem and equation number)."""
        return dataclasses.replace(self, place=place)

    def __str__(self) -> str:
        where = f", {self.place}" if self.place else ""
        year = f" {self.year}" if self.year else ""  # for a declared model it is part of the author's text
        return f"{self.authors}{year}{where}"
