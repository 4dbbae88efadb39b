"""A call: one request, described once, before anything is sent.

Owns: checking and encoding what the caller gave against the wire's own structs, and decoding the
answer. Must not: know how, when or how often a call is sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from gpucredits.client.errors import Invalid
from gpucredits.core.account import check_path
from gpucredits.wire.problem import misfit
from gpucredits.wire.scalars import from_wire, parse_instant

Answer = TypeVar("Answer")

Number = str | int | Decimal  # credits; never a float
When = str | datetime  # RFC 3339 with its offset, or an aware datetime

_DECODERS: dict[type, Any] = {}  # made once for each shape
_CHECKS: Final[dict[str, Callable[[str], object]]] = {  # of query parameters, by name
    **dict.fromkeys(("account", "under"), check_path),
    **dict.fromkeys(("at", "known_at", "since", "until", "effective_by"), parse_instant),
}
_KEY: Final = re.compile(r"[!-~]{1,200}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[Answer]):
    """What to send, and what the answer will be.

    ``is_keyed``: it is sent with an idempotency key. ``is_write``: losing its answer leaves open
    whether it was done. ``is_repeatable``: sending it twice is as good as sending it once.
    ``patience_s``: how long the server was asked to take before it answers.
    """

    method: str
    path: str
    answer: type[Answer]
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    key: str | None = None
    is_keyed: bool = False
    is_write: bool = False
    is_repeatable: bool = True
    patience_s: float = 0.0

    def at(self, cursor: str) -> Call[Answer]:
        """The same call for the page that starts at ``cursor``."""
        return replace(self, query={**self.query, "cursor": cursor})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Generic[Answer]):
    """An accepted call: the answer, and its bytes as they came.

    ``is_replay``: the server said that it had given this answer to this key before.
    """

    value: Answer
    body: bytes
    status: int
    is_replay: bool = False


def read(path: str, answer: type[Answer], **query: object) -> Call[Answer]:
    """A call that changes nothing; what is None is not asked for."""
    return Call(method="GET", path=path, answer=answer, query=query_of(query))


def write(
    path: str,
    answer: type[Answer],
    *,
    body: bytes | None = None,
    key: str | None = None,
    dry_run: bool = False,
    method: str = "POST",
    is_keyed: bool = True,
) -> Call[Answer]:
    """A call that changes something once for each key, or nothing when it is a dry run.

    ``is_keyed=False`` is for what is safe to repeat by itself.
    """
    if key is not None and _KEY.fullmatch(key) is None:
        raise Invalid("must be 1 to 200 printable ASCII characters", field="idempotency key")
    return Call(
        method=method,
        path=path,
        answer=answer,
        query={"dry_run": "true"} if dry_run else {},
        body=body,
        key=key,
        is_keyed=is_keyed and not dry_run,
        is_write=not dry_run,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How something is set: what is given changes and the rest stays, or all is replaced.

    ``clear`` names fields that go back to their defaults; labels are cleared one by one, as None.
    """

    replace: bool = False
    clear: Sequence[str] = ()

    def call(
        self,
        path: str,
        answer: type[Answer],
        *,
        change: type[Struct],
        whole: type[Struct],
        fields: Mapping[str, object],
        about: Mapping[str, object] | None = None,
        key: str | None = None,
        dry_run: bool = False,
    ) -> Call[Answer]:
        """A PATCH of what is given, or a PUT of the whole; ``about`` says what is set."""
        named = about or {}
        if self.replace and self.clear:
            raise Invalid("goes without replace, which clears all that is not given", field="clear")
        both = [name for name in self.clear if fields.get(name) is not None]
        if both:
            raise Invalid("cannot be both given and cleared", field=both[0])
        if self.replace:
            body = body_of(whole, **named, **fields)
        else:
            body = change_of(change, {**named, **fields}, self.clear)
        method = "PUT" if self.replace else "PATCH"
        return write(path, answer, body=body, key=key, dry_run=dry_run, method=method)


def body_of(shape: type[Struct], **fields: object) -> bytes:
    """The JSON of a request without what is None; ``Invalid`` names the field that is wrong."""
    return change_of(shape, fields, ())


def change_of(shape: type[Struct], fields: Mapping[str, object], cleared: Sequence[str]) -> bytes:
    """As ``body_of``; fields that are ``cleared`` are null, also ones such as policy.borrowing."""
    given = {name: plain(value, name) for name, value in fields.items() if value is not None}
    for name in cleared:
        outer, _, inner = name.rpartition(".")
        (given.setdefault(outer, {}) if outer else given)[inner] = None
    try:
        msgspec.convert(given, shape, dec_hook=from_wire)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), shape) from error
    return msgspec.json.encode(given)


def query_of(fields: Mapping[str, object]) -> dict[str, str]:
    """Query parameters as text, without what is None; ``Invalid`` names the one that is wrong."""
    query: dict[str, str] = {}
    for name, value in fields.items():
        if isinstance(value, bool):
            query[name] = "true" if value else "false"
        elif isinstance(value, Mapping):
            query[name] = msgspec.json.encode(value).decode()
        elif value is not None:
            query[name] = _checked(name, str(plain(value, name)))
    return query


def plain(value: Any, place: str = "") -> Any:
    """A value as JSON writes it: amounts and instants are text. ``place`` is where it stands."""
    match value:
        case bool() | str():
            return value
        case Decimal():
            return format(value, "f")
        case datetime():
            if value.tzinfo is None:
                raise Invalid(f"{value.isoformat()} does not say its time zone", field=place)
            return value.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"
        case float():
            text = f"credits are exact: write {value!r} as text or as a Decimal"
            raise Invalid(text, field=place)
        case Mapping():
            return {
                str(name): plain(item, f"{place}.{name}" if place else str(name))
                for name, item in value.items()
                if item is not None or place.rpartition(".")[2] == "metadata"  # a label to remove
            }
        case list() | tuple():
            return [plain(item, f"{place}[{number}]") for number, item in enumerate(value)]
        case _:
            return value


def account_path(path: str, tail: str = "") -> str:
    """The address of an account, or of something about it."""
    try:
        check_path(path)
    except ValueError as error:
        raise Invalid(str(error), field="account") from error
    return f"/v1/accounts/{path}{tail}"


def item_path(collection: str, item_id: str, verb: str = "") -> str:
    """The address of one thing by its id, or of what is done to it."""
    if not item_id:
        raise Invalid("must not be empty", field="id")
    return f"/v1/{collection}/{quote(item_id, safe='')}{verb}"


def decode(answer: type[Answer], body: bytes) -> Answer:
    """An answer from its JSON; msgspec.DecodeError or UnicodeDecodeError when it is not one."""
    decoder: msgspec.json.Decoder[Answer] | None = _DECODERS.get(answer)
    if decoder is None:
        decoder = _DECODERS[answer] = msgspec.json.Decoder(answer)
    return decoder.decode(body)


def _checked(name: str, text: str) -> str:
    """The text of a query parameter, if it is what its name says."""
    check = _CHECKS.get(name)
    if check is not None:
        try:
            check(text)
        except ValueError as error:
            raise Invalid(str(error), field=name) from error
    return text


def _invalid(message: str, shape: type[Struct]) -> Invalid:
    field, text = misfit(message, shape)
    return Invalid(text, field=field or "")
