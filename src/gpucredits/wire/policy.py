"""Limits, budgets and quotas on the wire: documents kept for an account."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from gpucredits.wire.scalars import InstantText

POLICY_BYTES_MAX: Final = 16_384


class PolicyRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """The whole document; it replaces the one before."""

    settings: Annotated[dict[str, Any], Meta(max_length=100)]


class PolicyAnswer(Struct, kw_only=True):
    """The document as it is kept, empty when none was set."""

    account: str
    kind: str
    settings: dict[str, Any]
    updated_at: InstantText | None
