"""Problems: what an answer that is not a success looks like (RFC 9457).

Owns: the shape of application/problem+json with its stable ``reason`` and its numbers.
Must not: choose status codes; the edge does.
"""

from __future__ import annotations

from msgspec import Struct

MEDIA_TYPE = "application/problem+json"


class Problem(Struct, kw_only=True, omit_defaults=True):
    """Why not, for machines (``reason``), for people (``detail``), and the numbers behind it."""

    title: str
    status: int
    reason: str
    detail: str = ""
    request_id: str = ""
    field: str | None = None
    account: str | None = None
    scope: str | None = None
    available: str | None = None
    needed: str | None = None
    numbers: dict[str, str | int] | None = None
    index: int | None = None
