"""A call: one request, described once, before anything is sent.

Owns: checking and encoding the arguments of a method against the wire's own structs, and decoding
the answer. Must not: know how, when or how often a call is sent.
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
from gpucredits.wire.limits.budget import NAME_DEFAULT
from gpucredits.wire.problem import misfit
from gpucredits.wire.scalars import Slug, decoder_of, from_wire, parse_instant

Answer = TypeVar("Answer")

Number = str | int | Decimal  # credits or GPUs; never a float
Given = Mapping[str, Any]  # the arguments of a method by name; None is not given
When = str | datetime  # RFC 3339 with its offset, or an aware datetime

_DECODERS: dict[type, Any] = {}  # made once for each shape
_CHECKS: Final[dict[str, Callable[[str], object]]] = {  # of query parameters, by name
    **dict.fromkeys(("account", "under"), check_path),
    **dict.fromkeys(("at", "known_at", "since", "until", "effective_by"), parse_instant),
}
_PLACE: Final = re.compile(r"\{(\w+)\}")
_ACCOUNT: Final = re.compile(r"/accounts/\{(\w+)\}")
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


def read(path: str, answer: type[Answer], given: Given) -> Call[Answer]:
    """A call that changes nothing. Arguments that stand in the path are not in the query.

    The server may take ``wait_seconds`` before it answers.
    """
    address, rest = _address(path, given)
    return Call(
        method="GET",
        path=address,
        answer=answer,
        query=query_of(rest),
        patience_s=float(rest.get("wait_seconds") or 0),
    )


def question(
    path: str, answer: type[Answer], given: Given, *, shape: type[Struct] | None = None
) -> Call[Answer]:
    """A call that is posted, with or without a body, and changes nothing."""
    address, rest = _address(path, given)
    body = None if shape is None else body_of(shape, rest)
    return Call(method="POST", path=address, answer=answer, body=body)


def write(
    path: str,
    answer: type[Answer],
    given: Given,
    *,
    shape: type[Struct] | None = None,
    method: str = "POST",
    is_keyed: bool = True,
) -> Call[Answer]:
    """A call that changes something once for each key, or nothing when it is a dry run.

    ``is_keyed=False`` is for what is safe to repeat by itself. Without a body, arguments that do
    not stand in the path are in the query.
    """
    address, rest = _address(path, given)
    key, dry_run = rest.pop("key", None), rest.pop("dry_run", False)
    query = query_of(rest) if shape is None else {}
    if key is not None and _KEY.fullmatch(key) is None:
        raise Invalid("must be 1 to 200 printable ASCII characters", field="idempotency key")
    return Call(
        method=method,
        path=address,
        answer=answer,
        query=query | {"dry_run": "true"} if dry_run else query,
        body=None if shape is None else body_of(shape, rest),
        key=key,
        is_keyed=is_keyed and not dry_run,
        is_write=not dry_run,
    )


def change(
    path: str, answer: type[Answer], given: Given, *, change: type[Struct], whole: type[Struct]
) -> Call[Answer]:
    """A PATCH of the terms that are given, or with ``replace`` a PUT of all terms.

    ``clear`` names terms that go back to their defaults; labels are cleared one by one, as None.
    """
    rest = {**given}
    is_whole, cleared = rest.pop("replace"), rest.pop("clear", ())
    if is_whole and cleared:
        raise Invalid("does not go with replace, which clears all that is not given", field="clear")
    both = [name for name in cleared if rest.get(name) is not None]
    if both:
        raise Invalid("cannot be both given and cleared", field=both[0])
    if is_whole:
        return write(path, answer, rest, shape=whole, method="PUT")
    made = write(path, answer, rest, shape=change, method="PATCH")
    _, terms = _address(path, rest)
    return replace(made, body=body_of(change, terms, cleared))


def body_of(shape: type[Struct], given: Given, cleared: Sequence[str] = ()) -> bytes:
    """The JSON of a request without arguments that are None; ``Invalid`` names the wrong field.

    Fields that are ``cleared`` are null, also parts of one such as policy.borrowing.
    """
    wire = dict(zip(shape.__struct_fields__, shape.__struct_encode_fields__, strict=True))
    body = {
        wire[name]: plain(value, wire[name])
        for name, value in given.items()
        if name in wire and value is not None
    }
    for name in cleared:
        outer, _, inner = name.rpartition(".")
        (body.setdefault(outer, {}) if outer else body)[inner] = None
    try:
        msgspec.convert(body, shape, dec_hook=from_wire)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), shape) from error
    return msgspec.json.encode(body)


def query_of(fields: Given) -> dict[str, str]:
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
        case Sequence():
            return [plain(item, f"{place}[{number}]") for number, item in enumerate(value)]
        case _:
            return value


def decode(answer: type[Answer], body: bytes) -> Answer:
    """An answer from its JSON; msgspec.DecodeError or UnicodeDecodeError when it is not one."""
    decoder: msgspec.json.Decoder[Answer] | None = _DECODERS.get(answer)
    if decoder is None:
        decoder = _DECODERS[answer] = decoder_of(answer)
    return decoder.decode(body)


def _address(path: str, given: Given) -> tuple[str, dict[str, Any]]:
    """The path with the arguments that stand in it, and the other arguments.

    The argument of an account may be called otherwise: an account stands after ``accounts``.
    """
    rest = {**given, **given.get("fields", {})}
    rest.pop("fields", None)
    names = _PLACE.findall(path)
    accounts = _ACCOUNT.findall(path)
    if "region" in names and not (rest["gpu_type"] and rest["region"]):
        raise Invalid("must name a type of GPU and a region", field="pool")
    for name in names:
        value = rest.pop(name)
        if name in accounts:
            value = _part("account", value, check_path)
        elif name == "name":  # of a budget
            value = _part("name", NAME_DEFAULT if value is None else value, _slug)
        elif value:
            value = quote(value, safe="")
        else:
            raise Invalid("must not be empty", field=name if len(names) > 1 else "id")
        path = path.replace(f"{{{name}}}", value)
    return path, rest


def _part(field: str, value: str, check: Callable[[str], object]) -> str:
    """A part of a path, if it is what it should be."""
    try:
        check(value)
    except ValueError as error:
        raise Invalid(str(error), field=field) from error
    return value


def _slug(text: str) -> object:
    return from_wire(Slug, text)


def _checked(name: str, text: str) -> str:
    """The text of a query parameter, if it is what its name says."""
    check = _CHECKS.get(name)
    return text if check is None else _part(name, text, check)


def _invalid(message: str, shape: type[Struct]) -> Invalid:
    field, text = misfit(message, shape)
    return Invalid(text, field=field or "")
