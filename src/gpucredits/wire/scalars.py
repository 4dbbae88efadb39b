"""Small values on the wire: amounts, instants, paths, names and metadata.

Owns: how each is written in JSON and in a query, its bounds, and its JSON schema. A decoded value
is already in the core's units: micro-credits, microseconds since 1970 UTC.
Must not: use floats: a JSON number is read as the decimal text it was written as.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta

from gpucredits.core import bounds, period
from gpucredits.core.account import RESERVED_SEGMENTS, check_path
from gpucredits.core.gpu_type import POOL_WORDS, check_gpu_type, check_region
from gpucredits.core.money import AMOUNT_MAX, format_credits, format_gpus, parse_credits, parse_gpus
from gpucredits.core.period import EPOCH, MICROSECOND
from gpucredits.wire import patterns
from gpucredits.wire.number_schema import gpus_schema, number_schema

T = TypeVar("T")

format_instant = period.format_instant  # the audit log has them too
format_end = period.format_end

_NAME = re.compile(patterns.NAME)
_SLUG = re.compile(patterns.SLUG, re.ASCII)
_ZONE = re.compile(patterns.ZONE, re.ASCII)
_NOTE = re.compile(patterns.NOTE)
_KEY = re.compile(patterns.KEY, re.ASCII)
_INSTANT = re.compile(patterns.INSTANT, re.ASCII | re.IGNORECASE)
_PLUS_LOST = re.compile(r" (?=\d{2}:\d{2}$)", re.ASCII)
_DIGITS_MAX = 40  # more digits than any amount has; keeps hostile numbers from being expanded

CAPACITY_MILLI_MAX: Final = 10 * bounds.MILLI_GPUS_MAX

CreditsText = Annotated[
    str, Meta(pattern=r"^-?\d+(\.\d{1,6})?$", description="Credits, a decimal string.")
]
WindowMaxSeconds = Annotated[int, Meta(ge=0, le=bounds.WINDOW_MS_MAX // 1_000)]
InstantText = Annotated[str, Meta(description="RFC 3339 in UTC.")]


class Credits(int):
    """Micro-credits, not negative."""

    __slots__ = ()


class Amount(Credits):
    """Micro-credits, more than nothing."""

    __slots__ = ()


class HourPrice(int):
    """Micro-credits per GPU-hour, not negative."""

    __slots__ = ()


class GpuAmount(int):
    """Thousandths of GPUs, not negative."""

    __slots__ = ()


class GpuCount(GpuAmount):
    """Thousandths of GPUs, more than nothing."""

    __slots__ = ()


class Gpus(Decimal):
    """GPUs in answers: an exact number in its shortest form, such as 2 or 0.46."""

    __slots__ = ()


class Instant(int):
    """Microseconds since 1970 UTC."""

    __slots__ = ()


class AccountPath(str):
    """A well formed path such as acme/vision/alice."""

    __slots__ = ()


class Name(str):
    """A printable name, trimmed: of a job, a node, a payment."""

    __slots__ = ()


class GpuType(Name):
    """The name of a GPU type, trimmed and in lower case; it may have one slash."""

    __slots__ = ()


class Region(Name):
    """The name of a region, trimmed and in lower case."""

    __slots__ = ()


class Slug(str):
    """A short name that can stand in an address: of a budget."""

    __slots__ = ()


class Zone(str):
    """Text that looks like the name of a time zone; the rules know which zones exist."""

    __slots__ = ()


class Note(str):
    """A printable remark, possibly empty."""

    __slots__ = ()


class Metadata(dict[str, str]):
    """A few labels: bounded keys and values, all text."""


class MetadataChange(dict[str, str | None]):
    """Changes of a few labels: those that are null are taken away."""


class MetadataFilter(dict[str, str]):
    """Labels to look for: ``key=value``, or a JSON object of several."""


def from_wire(kind: type, value: Any) -> Any:
    """The hook msgspec calls for the types above; ValueError says what would be right."""
    convert = _FROM_WIRE.get(kind)
    if convert is None:
        raise NotImplementedError(kind)
    return convert(value)


def to_plain(value: Any) -> Any:
    """The hook for encoding decoded requests again, for fingerprints and by the client."""
    convert = _TO_PLAIN.get(type(value))
    if convert is not None:
        return convert(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, dict):
        return dict(value)
    raise NotImplementedError(type(value))


def schema_of(kind: type) -> dict[str, Any]:
    """The JSON schema of the types above."""
    return SCHEMAS[kind]


def gpus_to_wire(milli_gpus: int) -> Gpus:
    """So many thousandths of GPUs as an answer has them."""
    return Gpus(format_gpus(milli_gpus))


def decoder_of(kind: type[T]) -> msgspec.json.Decoder[T]:
    """A decoder that reads the types above and keeps numbers exact."""
    return msgspec.json.Decoder(kind, dec_hook=from_wire, float_hook=Decimal)


def parse_instant(value: Any) -> Instant:
    """Read RFC 3339 with its offset; a plus sign that a query turned into a space is a plus."""
    if isinstance(value, str):
        text = _PLUS_LOST.sub("+", value)
        if _INSTANT.fullmatch(text):
            try:
                micros = (datetime.fromisoformat(text.upper()) - EPOCH) // MICROSECOND
            except (ValueError, OverflowError):
                micros = -1  # a day, an hour or an offset that does not exist
            if 0 <= micros <= bounds.INSTANT_US_MAX:  # in UTC, wherever its offset puts it
                return Instant(micros)
    raise ValueError(
        "must be an instant of the years 1970 to 9999 in RFC 3339 with its offset, such as "
        "2026-03-01T00:00:00Z or 2026-03-01T04:00:00+04:00"
    )


def parse_amount(value: Any) -> int:
    """Micro-credits from a decimal string, or from a number that is exact."""
    return parse_credits(_number_text(value))


def _number_text(value: Any) -> str:
    """The decimal text of a number; empty for everything that is none."""
    if isinstance(value, bool):
        return ""
    if isinstance(value, int):
        return str(value) if abs(value) <= AMOUNT_MAX else ""  # too large
    if isinstance(value, Decimal):
        return _decimal_text(value)
    return value if isinstance(value, str) else ""


def _decimal_text(value: Decimal) -> str:
    if not value.is_finite() or abs(value.adjusted()) > _DIGITS_MAX:
        return ""
    if len(value.as_tuple().digits) > _DIGITS_MAX:
        return ""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _credits(value: Any) -> Credits:
    micros = parse_amount(value)
    if micros < 0:
        raise ValueError("must not be negative")
    return Credits(micros)


def _amount(value: Any) -> Amount:
    micros = parse_amount(value)
    if micros <= 0:
        raise ValueError("must be more than 0")
    return Amount(micros)


def _hour_price(value: Any) -> HourPrice:
    micros = parse_amount(value)
    if not 0 <= micros <= bounds.PRICE_MAX:
        raise ValueError(f"must be from 0 to {format_credits(bounds.PRICE_MAX)}")
    return HourPrice(micros)


def _gpu_amount(value: Any) -> GpuAmount:
    milli_gpus = parse_gpus(_number_text(value))
    if milli_gpus > CAPACITY_MILLI_MAX:
        raise ValueError(f"must be at most {format_gpus(CAPACITY_MILLI_MAX)}")
    return GpuAmount(milli_gpus)


def _gpu_count(value: Any) -> GpuCount:
    milli_gpus = parse_gpus(_number_text(value))
    if not 0 < milli_gpus <= bounds.MILLI_GPUS_MAX:
        raise ValueError(f"must be from 0.001 to {format_gpus(bounds.MILLI_GPUS_MAX)}")
    return GpuCount(milli_gpus)


def _path(value: Any) -> AccountPath:
    if not isinstance(value, str):
        raise ValueError("must be a path such as acme/vision/alice")  # noqa: TRY004  # msgspec reports ValueError with its place
    return AccountPath(check_path(value))


def _name(value: Any) -> Name:
    """A name without the spaces around it: nobody sees them, so they make no other name."""
    trimmed = value.strip() if isinstance(value, str) else ""
    if _NAME.fullmatch(trimmed) is None:
        raise ValueError(f"must be text of 1 to {bounds.NAME_LENGTH_MAX} printable characters")
    return Name(trimmed)


def _gpu_type(value: Any) -> GpuType:
    return GpuType(check_gpu_type(_name(value)))


def _region(value: Any) -> Region:
    return Region(check_region(_name(value)))


def _slug(value: Any) -> Slug:
    if not isinstance(value, str) or _SLUG.fullmatch(value) is None:
        raise ValueError(
            "must be a name of 1 to 63 of a-z, 0-9, '.', '_' and '-' that starts with a letter or "
            "digit, such as monthly"
        )
    return Slug(value)


def _zone(value: Any) -> Zone:
    if not isinstance(value, str) or _ZONE.fullmatch(value) is None:
        raise ValueError("must be an IANA time zone such as Europe/Berlin")
    return Zone(value)


def _note(value: Any) -> Note:
    if not isinstance(value, str) or _NOTE.fullmatch(value) is None:
        raise ValueError(f"must be text of at most {patterns.NOTE_LENGTH_MAX} printable characters")
    return Note(value)


def _metadata_change(value: Any) -> MetadataChange:
    if isinstance(value, dict):
        _metadata({name: "" if text is None else text for name, text in value.items()})
        return MetadataChange(value)
    return MetadataChange(_metadata(value))


def _metadata(value: Any) -> Metadata:
    if not isinstance(value, dict) or len(value) > bounds.METADATA_KEYS_MAX:
        raise ValueError(f"must be an object of at most {bounds.METADATA_KEYS_MAX} labels")
    for key, text in value.items():
        if _KEY.fullmatch(key) is None:
            raise ValueError(
                f"must have keys of 1 to {patterns.METADATA_KEY_LENGTH_MAX} letters, digits "
                "and . _ : / -"
            )
        if not isinstance(text, str) or _NOTE.fullmatch(text) is None:
            raise ValueError(
                f"must have values that are text of at most {bounds.METADATA_VALUE_LENGTH_MAX} "
                "printable characters"
            )
    return Metadata(value)


def _metadata_filter(value: Any) -> MetadataFilter:
    labels: Any = None
    if isinstance(value, str) and value.startswith("{"):
        with suppress(msgspec.DecodeError):
            labels = msgspec.json.decode(value)
    elif isinstance(value, str) and "=" in value:
        name, _, text = value.partition("=")
        labels = {name: text}
    if not isinstance(labels, dict):
        raise ValueError('must be key=value, or a JSON object such as {"team": "vision"}')  # noqa: TRY004  # msgspec reports ValueError with its place
    return MetadataFilter(_metadata(labels))


_TO_PLAIN: dict[type, Any] = {Instant: format_instant, Gpus: Decimal}
_TO_PLAIN |= dict.fromkeys((Credits, Amount, HourPrice), format_credits)
_TO_PLAIN |= dict.fromkeys((GpuAmount, GpuCount), format_gpus)
_FROM_WIRE: dict[type, Any] = {
    Credits: _credits,
    Amount: _amount,
    HourPrice: _hour_price,
    GpuAmount: _gpu_amount,
    GpuCount: _gpu_count,
    Gpus: Gpus,
    Instant: parse_instant,
    AccountPath: _path,
    Name: _name,
    GpuType: _gpu_type,
    Region: _region,
    Slug: _slug,
    Zone: _zone,
    Note: _note,
    Metadata: _metadata,
    MetadataChange: _metadata_change,
    MetadataFilter: _metadata_filter,
}


def _labels_schema(value: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "maxProperties": bounds.METADATA_KEYS_MAX,
        "propertyNames": {"pattern": f"^{patterns.KEY}$"},
        "additionalProperties": {**value, "maxLength": bounds.METADATA_VALUE_LENGTH_MAX},
    }


SCHEMAS: dict[type, dict[str, Any]] = {
    Credits: number_schema("Credits: a decimal string, or a number."),
    Amount: number_schema("Credits, more than 0: a decimal string, or a number.", is_positive=True),
    HourPrice: number_schema(
        "Credits per GPU-hour: a decimal string, or a number.", most=bounds.PRICE_MAX
    ),
    GpuAmount: gpus_schema(CAPACITY_MILLI_MAX),
    GpuCount: gpus_schema(bounds.MILLI_GPUS_MAX, is_positive=True),
    Gpus: {
        "type": "number",
        "minimum": 0,
        "description": "GPUs, with at most 3 decimals.",
        "examples": [2, 0.46],
    },
    Instant: {
        "type": "string",
        "format": "date-time",
        "description": "RFC 3339 with its offset.",
        "examples": ["2026-03-01T04:00:00+04:00"],
    },
    AccountPath: {
        "type": "string",
        "pattern": f"^{patterns.NOT_RESERVED}{patterns.PATH}$",
        "description": (
            "org, org/project or org/project/user. Each segment is 1 to "
            f"{bounds.PATH_SEGMENT_LENGTH_MAX} of a-z, 0-9, '.', '_' and '-', starts with a letter "
            f"or digit, and is none of {', '.join(sorted(RESERVED_SEGMENTS))}."
        ),
        "examples": ["acme/vision/alice"],
    },
    Name: {"type": "string", "pattern": f"^{patterns.NAME}$"},
    GpuType: {
        "type": "string",
        "pattern": f"^{patterns.PART}(/{patterns.PART})?$",
        "maxLength": bounds.NAME_LENGTH_MAX,
        "description": "Trimmed and lower-cased; may have one slash.",
        "examples": ["h100", "nvidia.com/h100"],
    },
    Region: {
        "type": "string",
        "pattern": f"^(?! *({'|'.join(sorted(POOL_WORDS))}) *$){patterns.PART}$",
        "maxLength": bounds.NAME_LENGTH_MAX,
        "description": "Trimmed and lower-cased.",
        "examples": ["default"],
    },
    Slug: {"type": "string", "pattern": f"^{patterns.SLUG}$", "examples": ["monthly"]},
    Zone: {
        "type": "string",
        "pattern": f"^{patterns.ZONE}$",
        "description": "An IANA time zone.",
        "examples": ["Europe/Berlin"],
    },
    Note: {"type": "string", "pattern": f"^{patterns.NOTE}$"},
    MetadataFilter: {
        "type": "string",
        "description": "key=value, or a JSON object of several labels.",
        "examples": ["team=vision"],
    },
    Metadata: _labels_schema({"type": "string"}),
    MetadataChange: _labels_schema({"type": ["string", "null"]}),
}
