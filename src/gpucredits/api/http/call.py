"""A call: one request, read and checked, on its way to its handler; and what routes declare.

Owns: what handlers are given and what a row of the route table says.
Must not: know how requests are read (asgi does) or described (openapi does).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from inspect import cleandoc
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    TypedDict,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import Struct

from gpucredits.core.account import RESERVED_SEGMENTS
from gpucredits.core.gpu_type import POOL_WORDS
from gpucredits.service.access.permissions import Permission, Principal
from gpucredits.service.services import Services
from gpucredits.wire.documented import doc

Body = TypeVar("Body")
Query = TypeVar("Query")
Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Any]])


class NoQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """A route without query parameters."""


class DryRun(Struct, kw_only=True, forbid_unknown_fields=True):
    """The query of every write: whether to take everything back and answer as if it stood."""

    dry_run: Annotated[bool, doc("Answer as if the write were done, and change nothing.")] = False


@dataclass(slots=True, kw_only=True)
class ApiRequest(Generic[Body, Query]):
    """What a handler sees of a request.

    ``key`` is the idempotency key as it is kept: in the namespace of the caller's scope.
    """

    services: Services
    principal: Principal
    params: Mapping[str, str]
    body: Body
    query: Query
    request_id: str
    actor: str = ""  # who acts, as it is written down
    key: str | None = None
    fingerprint: bytes = b""
    dry_run: bool = False
    replayed: bool = False
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One operation of the API: everything that is true of a method on a path.

    ``client`` is the client's method with its positional parameters, such as
    ``issue(account, amount)``; ``tools/operations.py`` writes the method from the shapes named
    here. ``is_question``: the request has a body and changes nothing.
    """

    method: str
    path: str
    tag: str
    handler: Callable[[ApiRequest[Any, Any]], Awaitable[Any]]
    permission: Permission | None
    answer: Any
    body: type[Struct] | None = None
    query: type[Struct] = NoQuery
    status: int = 200
    reasons: tuple[str, ...] = ()
    needs_key: bool = False
    is_body_optional: bool = False
    is_question: bool = False
    media: str = "application/json"
    other_answers: tuple[tuple[int, Any], ...] = ()  # (status, shape) besides the usual one
    longer_s: float = 0.0  # by how much a request may take longer than others
    client: str = ""
    # A cheap proof, from the bytes and the body read from them, that no field is repeated.
    has_no_repeats: Callable[[bytes, Any], bool] | None = None

    @property
    def is_write(self) -> bool:
        """Whether the operation changes anything."""
        return self.method != "GET" and not self.is_question

    @property
    def name(self) -> str:
        """The operation id: the name of the handler."""
        return getattr(self.handler, "__name__", self.path)

    @property
    def text(self) -> str:
        """What the operation does, in the words of its handler."""
        return cleandoc(self.handler.__doc__ or "")

    @property
    def summary(self) -> str:
        """The first sentence of the text, without its full stop."""
        return self.text.partition("\n")[0].partition(". ")[0].removesuffix(".")


class Declared(TypedDict, total=False):
    """What a route may say beyond method, path and permission; the fields of ``Route``."""

    reasons: tuple[str, ...]
    status: int
    needs_key: bool
    is_body_optional: bool
    is_question: bool
    answer: Any
    media: str
    other_answers: tuple[tuple[int, Any], ...]
    longer_s: float
    client: str
    has_no_repeats: Callable[[bytes, Any], bool]


class Routes(list[Route]):
    """The rows of one noun. Used as a decorator, it adds a row for the handler below it.

    Body, query and answer are those of the handler's signature. A write needs an idempotency key
    unless the row says otherwise.
    """

    def __init__(self, tag: str) -> None:
        super().__init__()
        self.tag = tag

    def __call__(
        self, operation: str, permission: Permission | None, **declared: Unpack[Declared]
    ) -> Callable[[Handler], Handler]:
        """Add a row: ``operation`` is a method and a path, such as ``GET /v1/pools``."""
        method, _, path = operation.partition(" ")

        def add(handler: Handler) -> Handler:
            hints = get_type_hints(handler)
            body, query = get_args(hints["call"])
            answers = get_args(hints["return"]) if is_union(hints["return"]) else [hints["return"]]
            is_read = method == "GET" or declared.get("is_question", False)
            row: dict[str, Any] = {"needs_key": not is_read, "answer": answers[0], **declared}
            self.append(
                Route(
                    method=method,
                    path=path,
                    tag=self.tag,
                    handler=handler,
                    permission=permission,
                    body=None if body is NoneType else body,
                    query=query,
                    **row,
                )
            )
            return handler

        return add


def is_union(hint: Any) -> bool:
    """Whether a type is one of several."""
    return get_origin(hint) in (Union, UnionType)


def pattern_of(path: str) -> str:
    """The regular expression of a path; accounts and GPU types have slashes, ids do not.

    No account's path has a segment that is one of the words which follow accounts in paths, and no
    region has the name of a word which follows pools.
    """
    words = "|".join(sorted(RESERVED_SEGMENTS))
    shapes = {
        "{account}": f"(?:(?!/(?:{words})(?:/|$)).)+",
        "{gpu_type}": "(?:[^/]+/)?[^/]+",
        "{region}": f"(?!(?:{'|'.join(sorted(POOL_WORDS))})$)[^/]+",
    }
    parts = re.split(r"(\{\w+\})", path)
    return "".join(
        f"(?P<{part[1:-1]}>{shapes.get(part, '[^/:]+')})"
        if part.startswith("{")
        else re.escape(part)
        for part in parts
    )
