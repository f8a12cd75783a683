"""Results beyond one trajectory: labelled arrays, headline numbers and sentences, with the question they answer."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import derivations
from derivations.contract import System
from odesim.request.case import digest_of
from odesim.request.shown import Stored, load_view
from odesim.request.stored_system import short_name
from odesim.request.trajectory import Variable, data_set, places_of

if TYPE_CHECKING:
    import xarray

Table = tuple[Sequence[str], Sequence[Sequence[Any]]]
"""Header and rows of a table."""


@dataclasses.dataclass(frozen=True)
class Question:
    """Question that a verb answers about a system: everything that determines the answer, as plain data.

    Attributes:
        verb: Name of the command: "bands", "sensitivity", "optimise", "atlas" or "exponents".
        system: Reference of the system.
        details: Parameters, options and seed, as values of JSON.
        declaration: Text of a declared model.
        declaration_digest: Digest of the declaration when it was read, "" for other systems.
        model: The system, if the question was made in this process.
    """

    verb: str
    system: str
    details: Mapping[str, Any]
    declaration: str = dataclasses.field(default="", repr=False)
    declaration_digest: str = dataclasses.field(default="", repr=False)
    model: System | None = dataclasses.field(default=None, repr=False, compare=False)

    @classmethod
    def about(cls, verb: str, system: System, details: Mapping[str, Any]) -> "Question":
        """Return the question of a verb about a system."""
        return cls(verb, derivations.reference(system), details, system.declaration, system.digest, system)

    @property
    def known(self) -> System | None:
        """Return the system, for a stored question from its declaration; None if this needs foreign code."""
        return self.model if self.model is not None else derivations.restored(self.system, self.declaration)

    @property
    def name(self) -> str:
        """Verb and system, with which the name of the folder begins."""
        return f"{self.verb}-{self.system_name}"

    @property
    def system_name(self) -> str:
        """Short name of the system, which has no path of a machine."""
        return self.model.name if self.model is not None else short_name(self.system, self.declaration)

    def request(self) -> dict[str, Any]:
        """Return the question as plain data; the digest is computed from it."""
        declared = {"declaration": self.declaration_digest} if self.declaration_digest else {}
        return {"method": self.verb, "system": self.system, **declared, **self.details}

    @property
    def digest(self) -> str:
        """Identifier of the question: twelve hexadecimal characters."""
        return digest_of(self.request())


@dataclasses.dataclass(frozen=True, repr=False)
class Answer(Stored):
    """Answer to a question about a model: labelled arrays by name, headline numbers, and sentences for a reader.

    Each verb has a subclass in the module of its name in `odesim.study.answers`, called `RESULT` there.

    Attributes:
        asked: The question.
        variables: Labelled arrays by name.
        numbers: Headline numbers by name.
        sentences: The answer in words, the most important line first.
    """

    asked: Question
    variables: Mapping[str, Variable]
    numbers: Mapping[str, Any]
    sentences: tuple[str, ...]

    def __getitem__(self, name: str) -> np.ndarray:
        """Return the values of a variable by its name.  `KeyError` lists the names."""
        if name not in self.variables:
            raise KeyError(f"this answer has no variable {name!r}; it has {', '.join(self.variables)}")
        return self.variables[name].values

    def keys(self) -> list[str]:
        """Return the names of all variables.

        Returns:
            The names that `answer[name]` takes.
        """
        return list(self.variables)

    def summary(self) -> dict[str, Any]:
        """Return the headline numbers.

        Returns:
            Numbers and texts by name.
        """
        return dict(self.numbers)

    def tables(self) -> Mapping[str, Table]:
        """Return the tables of the answer, which its folder has as CSV files.

        Returns:
            Header and rows by name; none by default.
        """
        return {}

    def files(self) -> Mapping[str, str]:
        """Return further files of the folder, such as a model that the answer has made.

        Returns:
            Texts by name; none by default.
        """
        return {}

    def labelled(self) -> tuple[dict[str, Variable], dict[str, Variable], dict[str, Any]]:
        """Return the variables, coordinates and attributes of the data set.

        Returns:
            Each by name. A variable with the name of its one dimension is a coordinate; other dimensions are counted
            from 1.
        """
        named = {name: v for name, v in self.variables.items() if v.dims == (name,)}
        others = {name: v for name, v in self.variables.items() if name not in named}
        attributes = {"system": self.asked.system, "verb": self.asked.verb}
        return others, {**named, **places_of(others, named)}, attributes

    def dataset(self) -> "xarray.Dataset":
        """Return the arrays as an `xarray.Dataset`; the attribute `meaning` describes every variable.

        Returns:
            The dataset. `summary()` returns the headline numbers. `save` writes them, and the request, next to it.
        """
        return data_set(*self.labelled())

    def pictures(self) -> Mapping[str, Any]:
        """Return the pictures of the answer, as in its folder.

        Returns:
            Figures of matplotlib by name.
        """
        return load_view("answer_pictures")(self)

    def plot(self) -> Any:
        """Draw the answer.

        Returns:
            The first of its `pictures`.
        """
        return next(iter(self.pictures().values()))

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} of {self.asked.system_name}", *(f"  {line}" for line in self.sentences)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the sentences, the tables, the headline numbers and a picture."""
        return load_view("answer")(self)
