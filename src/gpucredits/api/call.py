"""A call: one request, read and checked, on its way to its handler; and what routes declare.

Owns: what handlers are given and what a row of the route table says.
Must not: know how requests are read (asgi does) or described (openapi does).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from msgspec import Struct

from gpucredits.service.access import Permission, Principal
from gpucredits.service.services import Services

Body = TypeVar("Body")
Query = TypeVar("Query")


class NoQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """A route without query parameters."""


class DryRun(Struct, kw_only=True, forbid_unknown_fields=True):
    """The query of every write: whether to take everything back and answer as if it stood."""

    dry_run: bool = False


@dataclass(slots=True, kw_only=True)
class Call(Generic[Body, Query]):
    """What a handler sees of a request.

    ``key`` is the idempotency key as it is kept: in the namespace of the caller's scope.
    """

    services: Services
    principal: Principal
    params: Mapping[str, str]
    body: Body
    query: Query
    request_id: str
    key: str | None = None
    fingerprint: bytes = b""
    dry_run: bool = False
    replayed: bool = False
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def actor(self) -> str:
        """Who acts, as it is written down."""
        return self.principal.actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One row of the table: everything that is true of a method on a path.

    ``is_question``: it has a body and changes nothing.
    """

    method: str
    path: str
    summary: str
    handler: Callable[[Call[Any, Any]], Awaitable[Any]]
    permission: Permission | None
    answer: Any
    body: type[Struct] | None = None
    query: type[Struct] = NoQuery
    status: int = 200
    reasons: tuple[str, ...] = ()
    needs_key: bool = False
    is_body_optional: bool = False
    is_question: bool = False
    tag: str = ""
    media: str = "application/json"
    other_answers: tuple[tuple[int, Any], ...] = ()  # (status, shape) besides the usual one
    longer_s: float = 0.0  # by how much a request may take longer than others
    # A cheap proof, from the bytes and the body read from them, that no field is repeated.
    has_no_repeats: Callable[[bytes, Any], bool] | None = None

    @property
    def is_write(self) -> bool:
        """Whether it changes anything."""
        return self.method != "GET" and not self.is_question

    @property
    def name(self) -> str:
        """The name of its handler, which is its operation id."""
        return getattr(self.handler, "__name__", self.path)
