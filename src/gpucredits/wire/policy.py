"""Limits, budgets and quotas on the wire: documents kept for an account."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from gpucredits.wire.scalars import InstantText

POLICY_BYTES_MAX: Final = 16_384
DEPTH_MAX: Final = 8
NUMBER_DIGITS_MAX: Final = 30


class PolicyRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """The whole document; it replaces the one before."""

    settings: Annotated[dict[str, Any], Meta(max_length=100)]


class PolicyAnswer(Struct, kw_only=True):
    """The document as it is kept, empty when none was set."""

    account: str
    kind: str
    settings: dict[str, Any]
    updated_at: InstantText | None


def check_document(value: Any, depth: int = 0) -> None:
    """Refuse what could not be kept exactly; ValueError says what is wrong."""
    if depth > DEPTH_MAX:
        raise ValueError(f"must be nested at most {DEPTH_MAX} deep")
    match value:
        case dict():
            for name, each in value.items():
                check_document(name, depth + 1)
                check_document(each, depth + 1)
        case list():
            for each in value:
                check_document(each, depth + 1)
        case str() if "\0" in value:
            raise ValueError("must not have NUL characters in it")
        case bool():
            return
        case int() | Decimal():
            _, digits, exponent = Decimal(value).as_tuple()
            places = exponent if isinstance(exponent, int) else NUMBER_DIGITS_MAX + 1
            if len(digits) + abs(places) > NUMBER_DIGITS_MAX:
                raise ValueError(f"must have numbers of at most {NUMBER_DIGITS_MAX} digits")
        case _:
            return
