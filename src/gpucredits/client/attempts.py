"""Asking again: what each reply or failure means, whether to retry, after how long.

Owns: the four outcomes of a call, bounds on attempts and time, jittered pauses. The key is chosen
once, so that every attempt is the same request.
Must not: do any input or output; clients send what it says and tell it what came back.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final, Generic, TypeVar

import httpx
import msgspec

from gpucredits.client.call import Call, Reply, decode
from gpucredits.client.errors import Ambiguous, Refused, Unavailable, Undecided, Untrusted
from gpucredits.client.trust import address_of, distrust_of
from gpucredits.core.duration import format_ms
from gpucredits.wire.problem import Problem

Answer = TypeVar("Answer")

_RANDOM = secrets.SystemRandom()
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
_RETRIED = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
_TOO_FAST_REASON = "rate_limited"
DOUBLINGS_MAX: Final = 30  # of a pause, which has met its longest by then
_NOT_DONE_REASON = "busy"  # the one 503 that says that nothing was begun, of a batch neither


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How long to go on asking: until ``deadline_s`` has passed since the call began.

    ``attempts_max`` bounds the number of attempts as well; without it only the deadline counts.
    """

    attempts_max: int | None = None
    deadline_s: float = 30.0
    attempt_timeout_s: float = 10.0
    pause_s_first: float = 0.1
    pause_s_max: float = 5.0

    def pause_s(self, attempt: int) -> float:
        """The pause after an attempt that failed: doubling, with half of it left to chance."""
        longest = min(self.pause_s_max, self.pause_s_first * (1 << min(attempt - 1, DOUBLINGS_MAX)))
        return longest * _RANDOM.uniform(0.5, 1.0)


class Attempts(Generic[Answer]):
    """One call from its first attempt to its outcome."""

    def __init__(self, call: Call[Answer], retry: Retry) -> None:
        self.call = call
        self.key = call.key or (f"gcc-{secrets.token_hex(16)}" if call.is_keyed else None)
        self._retry = retry
        self._began = time.monotonic()
        self._attempt = 0
        self._sent_at = self._began
        self._waited_s = 0.0  # for answers, of which as much as the call's patience is not counted
        self._may_be_done = False
        self._problem: Problem | None = None

    def request(self, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """The next attempt, with what is left of the time."""
        self._attempt += 1
        self._sent_at = time.monotonic()
        patience_s = self.call.patience_s
        left_s = self._left_s() + max(0.0, patience_s - self._waited_s)
        headers = {"Accept": "application/json"}
        if self.key is not None:
            headers["Idempotency-Key"] = self.key
        if self.call.body is not None:
            headers["Content-Type"] = "application/json"
        return http.build_request(
            self.call.method,
            self.call.path,
            params=self.call.query or None,
            content=self.call.body,
            headers=headers,
            timeout=max(0.001, min(self._retry.attempt_timeout_s + patience_s, left_s)),
        )

    def failed(self, error: httpx.TransportError) -> float:
        """No answer came: the pause before the next attempt, or the outcome as an exception."""
        if not isinstance(error, _NEVER_SENT):
            self._waited_s += time.monotonic() - self._sent_at
            self._may_be_done = self._may_be_done or self.call.is_write
        if distrust := distrust_of(error):
            raise self._undecided(distrust, kind=Untrusted) from error
        return self._pause(_said(error), asked_s=0.0, cause=error)

    def answered(self, response: httpx.Response) -> Reply[Answer] | float:
        """The reply, or the pause before the next attempt; exceptions are the other outcomes."""
        self._waited_s += time.monotonic() - self._sent_at
        status, body = response.status_code, response.content
        if status < HTTPStatus.MULTIPLE_CHOICES:
            return self._accepted(response)
        problem = _problem(body)
        if status in _RETRIED:
            is_not_done = status == HTTPStatus.TOO_MANY_REQUESTS or (
                problem is not None and problem.reason == _NOT_DONE_REASON
            )
            if self.call.is_write and not is_not_done:
                self._may_be_done = True
            said = problem.detail if problem and problem.detail else _status_text(response)
            self._problem = problem
            asked_s = retry_after_s(response.headers.get("retry-after"))
            if problem is not None and problem.reason == _TOO_FAST_REASON and not asked_s:
                raise Refused(problem, body=body)  # it would be too much at any time
            return self._pause(said, asked_s=asked_s)
        if problem is not None and status < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise Refused(problem, body=body)
        if self.call.is_write and status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self._may_be_done = True
        raise self._undecided(problem.detail if problem else _status_text(response))

    def _accepted(self, response: httpx.Response) -> Reply[Answer]:
        try:
            value = decode(self.call.answer, response.content)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._may_be_done = self.call.is_write
            raise self._undecided(f"the answer cannot be read ({error})") from error
        return Reply(
            value=value,
            body=response.content,
            status=response.status_code,
            is_replay=response.headers.get("idempotency-replayed") == "true",
        )

    def _pause(self, said: str, *, asked_s: float, cause: Exception | None = None) -> float:
        """The pause before the next attempt; the last attempt ends at the deadline.

        Half of the time that is left is kept for that attempt, and less than a first pause is not
        worth one. A server that asks for more patience than there is ends the call at once.
        """
        left_s = self._left_s()
        pause_s = max(asked_s, min(self._retry.pause_s(self._attempt), left_s / 2))
        is_over = pause_s >= left_s or left_s < 2 * self._retry.pause_s_first
        if self._retry.attempts_max is not None:
            is_over = is_over or self._attempt >= self._retry.attempts_max
        if is_over or (self._may_be_done and not self.call.is_repeatable):
            raise self._undecided(said, retry_after_s=asked_s or None) from cause
        return pause_s

    def _undecided(
        self,
        said: str,
        *,
        retry_after_s: float | None = None,
        kind: type[Unavailable] = Unavailable,
    ) -> Undecided:
        times = "once" if self._attempt == 1 else f"{self._attempt} times"
        took = format_ms(int((time.monotonic() - self._began) * 10) * 100)
        told = f"{said.rstrip('.')} (asked {times} in {took})"
        if not self._may_be_done:
            return kind(told, key=self.key, retry_after_s=retry_after_s, problem=self._problem)
        if not self.call.is_repeatable:
            advice = "look before sending it again"
        elif self.key:
            advice = f"send it again with the key {self.key}"
        else:
            advice = "send the same again"
        return Ambiguous(
            f"{told}; whether it was done is unknown: {advice}",
            key=self.key,
            retry_after_s=retry_after_s,
            problem=self._problem,
        )

    def _left_s(self) -> float:
        """The time left before the deadline; patience that was needed does not count."""
        time_s = self._retry.deadline_s + min(self._waited_s, self.call.patience_s)
        return self._began + time_s - time.monotonic()


def retry_after_s(header: str | None) -> float:
    """Seconds from a Retry-After header, which holds seconds or a date; 0 when it says nothing."""
    if not header:
        return 0.0
    if header.strip().isdecimal():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return 0.0
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())


def _problem(body: bytes) -> Problem | None:
    try:
        return decode(Problem, body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _said(error: httpx.TransportError) -> str:
    match error:
        case httpx.ConnectError():
            return f"no server answers at {address_of(error)}"
        case httpx.TimeoutException():
            return "no answer in time"
        case _:
            where = address_of(error)
            hint = where.replace("http:", "https:", 1) if where.startswith("http:") else ""
            advice = f": if the server speaks TLS, write {hint}" if hint else ""
            return f"the connection broke ({type(error).__name__}){advice}"


def _status_text(response: httpx.Response) -> str:
    return f"{response.url.host} answered {response.status_code} {response.reason_phrase}"
