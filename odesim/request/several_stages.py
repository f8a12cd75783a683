"""Several stages asked for in one request: what a flow and SGD of them have in common."""

import abc
import dataclasses
import functools
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from derivations.contract import System
from odesim.request.case import digest_of


@runtime_checkable
class Stage(Protocol):
    """The request for one stage of a system."""

    @property
    def system(self) -> System: ...

    @property
    def seed(self) -> int: ...

    def request(self) -> dict[str, Any]: ...


S = TypeVar("S", bound=Stage)


@dataclasses.dataclass(frozen=True, eq=False)
class SeveralStages(abc.ABC, Generic[S]):
    """The requests for the stages in order, and the digest of the stored run that they go on from, if any."""

    cases: tuple[S, ...]
    origin: str | None = None

    @property
    def system(self) -> System:
        """The system of all stages."""
        return self.cases[0].system

    @property
    def name(self) -> str:
        """The name of the system, which the default folder is called by."""
        return self.system.name

    @property
    def seed(self) -> int:
        """The seed of every stream."""
        return self.cases[0].seed

    @property
    @abc.abstractmethod
    def method(self) -> str:
        """Return the method by which the stages are computed."""

    def request(self) -> dict[str, Any]:
        """Everything that determines the answer."""
        return {"method": self.method, "from": self.origin, "stages": [case.request() for case in self.cases]}

    @functools.cached_property
    def digest(self) -> str:
        """Twelve hexadecimal characters that name the request."""
        return digest_of(self.request())
