"""Requests for several stages: the common part of flows and SGD."""

import abc
import dataclasses
import functools
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from derivations.contract import System
from odesim.request.case import digest_of


@runtime_checkable
class Stage(Protocol):
    """Request for one stage of a system."""

    @property
    def system(self) -> System: ...

    @property
    def seed(self) -> int: ...

    def request(self) -> dict[str, Any]: ...


S = TypeVar("S", bound=Stage)


@dataclasses.dataclass(frozen=True, eq=False)
class SeveralStages(abc.ABC, Generic[S]):
    """Requests for several stages in order, and the digest of the stored run that they continue, if any."""

    cases: tuple[S, ...]
    origin: str | None = None

    @property
    def system(self) -> System:
        """System of all stages."""
        return self.cases[0].system

    @property
    def name(self) -> str:
        """Name of the system, with which the name of the default folder begins."""
        return self.system.name

    @property
    def seed(self) -> int:
        """Seed of all random streams."""
        return self.cases[0].seed

    @property
    @abc.abstractmethod
    def method(self) -> str:
        """Method by which the stages are computed."""

    def request(self) -> dict[str, Any]:
        """Everything that determines the answer."""
        return {"method": self.method, "from": self.origin, "stages": [case.request() for case in self.cases]}

    @functools.cached_property
    def digest(self) -> str:
        """Identifier of the request: twelve hexadecimal characters."""
        return digest_of(self.request())
