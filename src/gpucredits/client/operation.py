"""One call as data, how often to try it, and how to read its answer. No I/O.

Owns: what sync and async clients have in common: headers, retries with the same key, decoding.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Generic, TypeVar

import httpx
import msgspec

from gpucredits.client.errors import ApiError, UnreachableError
from gpucredits.version import __version__
from gpucredits.wire.problem import MEDIA_TYPE, Problem

Answer = TypeVar("Answer")
ENCODER = msgspec.json.Encoder(decimal_format="string")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[Answer]):
    """A request; a repeatable one may be sent any number of times and has at most one effect."""

    method: str
    path: str
    answer: type[Answer]
    body: Mapping[str, Any] | None = None
    query: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    is_repeatable: bool = True

    def with_key(self) -> Operation[Answer]:
        """The same, with a key of its own if it is a write without one."""
        if self.key is not None or self.method == "GET":
            return self
        return replace(self, key=uuid.uuid4().hex)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How patient a client is."""

    attempts_max: int = 6
    first_wait_s: float = 0.1
    wait_max_s: float = 5.0
    timeout_s: float = 35.0

    def attempts(self, operation: Operation[Any]) -> range:
        """The numbers of the attempts that a call gets."""
        return range(self.attempts_max if operation.is_repeatable else 1)

    def wait_s(self, attempt: int, answer: httpx.Response | None) -> float:
        """How long to wait after an attempt: what the server asked for, or ever longer."""
        asked = "" if answer is None else answer.headers.get("retry-after", "")
        longest: float = min(self.first_wait_s * 2**attempt, self.wait_max_s)
        if asked.isdigit():
            longest = min(max(longest, float(asked)), self.wait_max_s)
        # Jitter only spreads the callers; nothing depends on its quality.
        return longest * random.uniform(0.5, 1.0)  # noqa: S311


def headers_of(secret: str) -> dict[str, str]:
    """Headers of every request of a client."""
    return {
        "authorization": f"Bearer {secret}",
        "user-agent": f"gpucredits/{__version__}",
        "accept": "application/json",
    }


def request_of(operation: Operation[Any]) -> dict[str, Any]:
    """What httpx needs to send it."""
    headers: dict[str, str] = {}
    if operation.key is not None:
        headers["idempotency-key"] = operation.key
    content = None
    if operation.body is not None:
        headers["content-type"] = "application/json"
        content = ENCODER.encode(_given(operation.body))
    return {
        "method": operation.method,
        "url": operation.path,
        "params": {name: _text(value) for name, value in _given(operation.query).items()},
        "headers": headers,
        "content": content,
    }


def is_final(answer: httpx.Response) -> bool:
    """Whether trying again could not change anything."""
    return answer.status_code not in (429, 502, 503, 504)


def read(operation: Operation[Answer], answer: httpx.Response) -> Answer:
    """The decoded answer; ApiError when it is a problem."""
    if answer.is_success:
        return msgspec.json.decode(answer.content, type=operation.answer)
    media = answer.headers.get("content-type", "")
    if media.startswith(MEDIA_TYPE):
        raise ApiError(msgspec.json.decode(answer.content, type=Problem))
    raise UnreachableError(
        f"{answer.status_code} from something that is not gpucredits", key=operation.key
    )


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return format(value, "f") if isinstance(value, Decimal) else str(value)
