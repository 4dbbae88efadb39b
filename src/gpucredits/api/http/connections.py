"""Connections to the server, and the bounds on what one of them may send before it is a request.

Owns: the size of a request's head, how many headers it may have and which only once, the time
a connection may take to send a head, to stay idle or to read its answer, and how many connections
there may be, in all and from one address. uvicorn with httptools has no setting for any of these.
Must not: know routes, keys or bodies (asgi does).
"""

from __future__ import annotations

import asyncio
import ssl
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote

import httptools
import msgspec
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from gpucredits.api.http.errors import EDGE_REASONS
from gpucredits.api.transport.bounds import Connected, ConnectionBounds
from gpucredits.service.access.peer import SCOPE_KEY, Peer, peer_of
from gpucredits.wire import problem

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


class RejectedError(Exception):
    """What a connection sent is not going to be a request; the connection ends with an answer."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class WholeAnswer(RequestResponseCycle):
    """One request and its answer, which goes out in one write: head and body together.

    A write to a socket costs as much as deciding a job. The application sends one head with a
    Content-Length and one body.
    """

    head: dict[str, Any] | None = None

    async def send(self, message: Any) -> None:
        """Keep the head until its body comes; then send both."""
        if self.head is None:
            self.head = message
            return
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        self.response_started = self.response_complete = True
        self.transport.write(self._head_bytes(self.head) + message["body"])
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()

    def _head_bytes(self, head: dict[str, Any]) -> bytes:
        headers = (*self.default_headers, *head["headers"])
        told = b"\r\n".join([b"%b: %b" % each for each in headers])
        ends = len(headers) - 1
        if told.count(b"\n") != ends or told.count(b"\r") != ends:
            raise RuntimeError("a header's value has more than one line")
        last = b"\r\n\r\n" if self.keep_alive else b"\r\nconnection: close\r\n\r\n"
        return b"%b%b%b" % (STATUS_LINE[head["status"]], told, last)


class BoundedConnection(HttpToolsProtocol):
    """One connection. It is closed with an answer as soon as it exceeds a bound.

    ``_heading`` says that a request's head has begun and is not complete, ``_in_body`` that its
    body has begun and is not complete. ``_cycles`` are the requests that have no whole answer yet:
    uvicorn itself knows only the newest of them.

    A head has its time from its first byte, however the others trickle in. Empty lines are no head,
    and buy no time. A head that came whole needs no timer, an idle connection one for all requests.
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
        self._peer: Peer | None = None
        self._heading = self._in_body = False
        self._head_bytes = self._header_bytes = self._framing_bytes = 0
        self._cycles: list[Any] = []
        self._rejected: RejectedError | None = None
        self._patience: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._rest: asyncio.TimerHandle | None = None
        self._rest_bytes = 0
        self._answered_at = 0.0
        self._sent_once: set[bytes] = set()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, or turn it away where there are too many."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        if why := self._connected.too_many(self._bounds, self._address):
            self._turn_away(why)
            return
        self._connected.enter(self._address)
        self._is_counted = True
        self._be_patient(self._bounds.idle_s)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            asks = tls.context.verify_mode is not ssl.CERT_NONE
            self._peer = peer_of(tls.getpeercert(), asks=asks)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if self._is_counted:
            self._is_counted = False
            self._connected.leave(self._address)
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
                if self._patience is None:
                    self._be_patient(self._bounds.head_s)
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
        self._sent_once.clear()
        self._lose_patience()

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
        if name in ONCE:
            if name in self._sent_once:
                self._refuse("malformed_request", f"The header {name.decode()} may be sent once.")
            self._sent_once.add(name)
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
        self._lose_patience()
        self._begin_cycle()

    def _begin_cycle(self) -> None:
        """Begin a request, or let it wait for those before it on this connection."""
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        self.scope["method"] = self.parser.get_method().decode("ascii")
        self.scope["path"] = unquote(path) if "%" in path else path
        self.scope["raw_path"] = url.path
        self.scope["query_string"] = url.query or b""
        if self._peer is not None:
            self.scope[SCOPE_KEY] = self._peer  # type: ignore[typeddict-unknown-key]
        before: RequestResponseCycle | None = self.cycle
        self.cycle = WholeAnswer(
            self.scope,
            self.transport,
            self.flow,
            self.logger,
            self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        self._cycles.append(self.cycle)
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

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
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._answered_at = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._stay()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that has been idle for long; come back to one that has not."""
        self.timeout_keep_alive_task = None
        if self._heading or self._is_answering():
            return  # its answer begins to wait anew
        if self.loop.time() >= self._answered_at + self.timeout_keep_alive:
            super().timeout_keep_alive_handler()
        else:
            self._stay()

    def _stay(self) -> None:
        """Look whether the connection is idle when it has been so for long."""
        idle_at = self._answered_at + self.timeout_keep_alive
        self.timeout_keep_alive_task = self.loop.call_at(idle_at, self.timeout_keep_alive_handler)

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
