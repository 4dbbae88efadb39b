"""Connections to the server, and the bounds on what one of them may send before it is a request.

Owns: the size of a request's head, how many headers it may have and which only once, the time
a connection may take to send a head, to stay idle or to read its answer, and how many connections
there may be, in all and from one address. uvicorn with httptools has no setting for any of these.
Must not: know routes, keys or bodies (asgi does).
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import httptools
import msgspec
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from gpucredits.api.errors import EDGE_REASONS
from gpucredits.wire import problem

CONNECTIONS_MAX: Final = 10_000
PER_ADDRESS_MAX: Final = 4_000
FILES_KEPT_FREE: Final = 200  # for the database, logs and whatever else is opened
ONCE: Final = frozenset(
    {
        b"authorization",
        b"content-length",
        b"content-type",
        b"host",
        b"idempotency-key",
        b"transfer-encoding",
        b"x-request-id",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionBounds:
    """How much, how many and how long."""

    head_bytes: int = 16 * 1024
    target_bytes: int = 8 * 1024
    headers: int = 64
    framing_bytes: int = 1024 * 1024  # of a body's chunks: their sizes and extensions
    waiting_requests: int = 16  # sent ahead on one connection
    head_s: float = 10.0
    idle_s: float = 75.0
    unread_s: float = 30.0
    rest_bytes: int = 16 * 1024 * 1024  # of a body that was answered before it was whole
    rest_s: float = 10.0
    connections: int = CONNECTIONS_MAX
    per_address: int = PER_ADDRESS_MAX


@dataclass(slots=True)
class Connected:
    """Who is connected: counts that all connections of a server share."""

    in_all: int = 0
    by_address: Counter[str] = field(default_factory=Counter)
    turned_away: int = 0


class RejectedError(Exception):
    """What a connection sent is not going to be a request; the connection ends with an answer."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class BoundedConnection(HttpToolsProtocol):
    """One connection. It is closed with an answer as soon as it exceeds a bound.

    ``_heading`` says that a request's head has begun and is not complete, ``_in_body`` that its
    body has begun and is not complete. ``_cycles`` are the requests that have no whole answer yet:
    uvicorn itself knows only the newest of them.

    A head has its time from its first byte, however the others trickle in. Empty lines are no head,
    and buy no time.
    """

    def __init__(  # uvicorn's arguments, and ours
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        bounds: ConnectionBounds,
        connected: Connected,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._bounds = bounds
        self._connected = connected
        self._address = ""
        self._is_counted = False
        self._heading = False
        self._in_body = False
        self._head_bytes = 0
        self._header_bytes = 0
        self._framing_bytes = 0
        self._cycles: list[Any] = []
        self._rejected: RejectedError | None = None
        self._patience: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._rest: asyncio.TimerHandle | None = None
        self._rest_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, or turn it away where there are too many."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        connected, bounds = self._connected, self._bounds
        if connected.in_all >= bounds.connections:
            self._turn_away(f"The server has {bounds.connections} connections, its most.")
            return
        if connected.by_address[self._address] >= bounds.per_address:
            self._turn_away(f"Your address has {bounds.per_address} connections, its most.")
            return
        connected.in_all += 1
        connected.by_address[self._address] += 1
        self._is_counted = True
        self._be_patient(bounds.idle_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if self._is_counted:
            self._is_counted = False
            self._connected.in_all -= 1
            left = self._connected.by_address[self._address] - 1
            if left:
                self._connected.by_address[self._address] = left
            else:
                del self._connected.by_address[self._address]
        self._lose_patience()
        self._end_rest()
        self._leave_cycles()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came; whatever exceeds a bound ends the connection with an answer."""
        if self._rejected is not None or self.transport.is_closing():
            return
        if self._rest is not None:
            self._rest_bytes += len(data)
            if self._rest_bytes > self._bounds.rest_bytes:
                self.transport.close()
                return
        try:
            if self._in_body:
                self._framing_bytes += len(data)
            self.parser.feed_data(data)
            if self._heading:
                self._head_bytes += len(data)
                self._check_head(self._head_bytes)
            self._check_framing()
        except RejectedError as rejected:
            self._reject(rejected)
        except httptools.HttpParserUpgrade:
            self._reject(RejectedError("malformed_request", "This server has no other protocol."))
        except httptools.HttpParserError:
            self._reject(self._reason_to_end())

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._heading, self._in_body = True, False
        self._head_bytes = self._header_bytes = self._framing_bytes = 0
        self._unset_keepalive_if_required()
        self._be_patient(self._bounds.head_s)

    def on_url(self, url: bytes) -> None:
        """The request's target, or a part of it."""
        super().on_url(url)
        if len(self.url) > self._bounds.target_bytes:
            self._refuse(
                "target_too_long",
                f"The path and query have more than {self._bounds.target_bytes} bytes.",
            )

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header. One that comes after the body is refused: nobody has checked it."""
        if not self._heading:
            self._refuse("malformed_request", "Headers after the body (trailers) are not taken.")
        name = name.lower()
        if name in ONCE and any(known == name for known, _ in self.headers):
            self._refuse("malformed_request", f"The header {name.decode()} may be sent once.")
        if name == b"transfer-encoding" and value.lower() != b"chunked":
            self._refuse("malformed_request", "The only transfer-encoding here is chunked.")
        if len(self.headers) >= self._bounds.headers:
            self._refuse("head_too_large", f"There are more than {self._bounds.headers} headers.")
        self._header_bytes += len(name) + len(value)
        self._check_head(self._header_bytes)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is whole: the request goes on to the application."""
        if len(self.pipeline) >= self._bounds.waiting_requests:
            self._refuse("malformed_request", "Too many requests were sent ahead of answers.")
        self._heading, self._in_body = False, True
        self._unset_keepalive_if_required()
        self._lose_patience()
        super().on_headers_complete()
        self._cycles.append(self.cycle)

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._framing_bytes -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The body is whole."""
        self._in_body = False
        self._end_rest()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Answered; the rest of a body that was not wanted is thrown away, within bounds.

        Closing at once would reset the connection before the caller has read the answer.
        """
        self._cycles = [each for each in self._cycles if not each.response_complete]
        if self._in_body and self._rest is None:
            self._rest_bytes = 0
            self._rest = self.loop.call_later(self._bounds.rest_s, self.transport.close)
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The caller does not read: wait, but not for ever."""
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(self._bounds.unread_s, self.transport.abort)

    def resume_writing(self) -> None:
        """The caller reads again."""
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        super().resume_writing()

    def _end_rest(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None

    def _check_head(self, size: int) -> None:
        if size > self._bounds.head_bytes:
            self._refuse(
                "head_too_large",
                f"The request's line and headers have more than {self._bounds.head_bytes} bytes.",
            )

    def _check_framing(self) -> None:
        if self._framing_bytes > self._bounds.framing_bytes:
            self._refuse(
                "malformed_request",
                f"Sizes and extensions of chunks exceed {self._bounds.framing_bytes} bytes.",
            )

    def _is_answering(self) -> bool:
        return any(not each.response_complete for each in self._cycles)

    def _leave_cycles(self) -> None:
        """Let requests that are under way write no more: the connection ends."""
        for each in self._cycles:
            each.disconnected = True
            each.message_event.set()

    def _reason_to_end(self) -> RejectedError:
        """Why the parser stopped: one of our bounds, or its own."""
        return self._rejected or RejectedError("malformed_request", "This is not HTTP/1.1.")

    def _refuse(self, reason: str, detail: str) -> None:
        """End the connection from within the parser, which knows no exceptions but its own."""
        self._rejected = RejectedError(reason, detail)
        raise self._rejected

    def _be_patient(self, seconds: float) -> None:
        """Close the connection unless what it has begun is whole in so long."""
        self._lose_patience()
        self._patience = self.loop.call_later(seconds, self._give_up)

    def _lose_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        if self._heading and self._is_answering():  # it may be us who do not read on
            self._be_patient(self._bounds.head_s)
        elif self._heading:
            slow = f"The request's head did not arrive within {self._bounds.head_s:g} s."
            self._reject(RejectedError("too_slow", slow))
        else:
            self.transport.close()

    def _turn_away(self, detail: str) -> None:
        self._connected.turned_away += 1
        self._reject(RejectedError("too_many_connections", f"{detail} Try again soon."))

    def _reject(self, rejected: RejectedError) -> None:
        """Say why, and close; a request whose body has not all come is not carried out."""
        self._rejected = rejected
        earlier = self._cycles if self._heading else self._cycles[:-1]
        is_mixed_up = earlier or any(each.response_started for each in self._cycles)
        self._leave_cycles()
        if is_mixed_up:  # this answer would be taken for that to an earlier request
            self.transport.close()
            return
        if not self.transport.is_closing():
            self.transport.write(answer_to(rejected))
            self.transport.close()


def answer_to(rejected: RejectedError) -> bytes:
    """The whole answer to what never became a request."""
    status = EDGE_REASONS[rejected.reason]
    body = msgspec.json.encode(
        problem.Problem(
            title=status.phrase, status=int(status), reason=rejected.reason, detail=str(rejected)
        )
    )
    head = [
        f"HTTP/1.1 {int(status)} {status.phrase}",
        f"content-type: {problem.MEDIA_TYPE}",
        f"content-length: {len(body)}",
        "connection: close",
        *(["retry-after: 1"] if status is HTTPStatus.SERVICE_UNAVAILABLE else []),
    ]
    return "\r\n".join([*head, "", ""]).encode() + body


def connections_that_fit(asked: int = CONNECTIONS_MAX) -> int:
    """How many connections the process may have open: as asked, or as its open files allow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = asked + FILES_KEPT_FREE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return asked
    return max(min(asked, soft - FILES_KEPT_FREE), 1)
