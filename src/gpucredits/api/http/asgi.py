"""The server's one entry: from bytes to a call, and from its result to bytes.

Owns: finding the route, who is asking, the bounds of a request (size, time, shape), its key and
fingerprint, the answer's headers, and the guard that turns whatever goes wrong into a problem.
Must not: know any single route.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from gpucredits.api.http import errors
from gpucredits.api.http.bodies import FIELDS, ItemBounds, decode_query, repeated_field
from gpucredits.api.http.call import ApiRequest, Route, pattern_of
from gpucredits.api.http.errors import ProblemError, RefusedError
from gpucredits.api.http.failures import REQUEST_TIMEOUT_S, answer_to
from gpucredits.api.http.log import QUIET_ROUTES, LoggedRequest, RequestLog
from gpucredits.api.http.narrowing import narrowed
from gpucredits.api.http.overdue import name_statement
from gpucredits.api.http.scope import caller_from
from gpucredits.api.http.throttle import throttle
from gpucredits.service.access.peer import SCOPE_KEY
from gpucredits.service.access.permissions import NoKey, Principal, Role, may
from gpucredits.service.services import Services
from gpucredits.service.write.acts import ActRefused
from gpucredits.service.write.batch import long_step
from gpucredits.wire import problem
from gpucredits.wire.scalars import decoder_of, to_plain

LONG_BODY_BYTES: Final = 2_000  # from here on reading it takes a while
KEY_LENGTH_MAX: Final = 200
LOOKED_EVERY_S: Final = 0.5  # for requests that take too long

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = dict[str, str]

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,100}", re.ASCII)
_KEY = re.compile(rf"[!-~]{{1,{KEY_LENGTH_MAX}}}", re.ASCII)
_NOBODY = Principal(key_id=0, org_id=-1, role=Role.READ_ONLY, scope="system:nobody")


class Prepared:
    """A route with what is worth making once: its pattern, its decoder and its body's bounds."""

    __slots__ = ("bounds", "decoder", "is_write", "no_query", "pattern", "route")

    def __init__(self, route: Route) -> None:
        self.route = route
        self.is_write = route.is_write
        self.pattern = re.compile(pattern_of(route.path))
        self.decoder = None if route.body is None else decoder_of(route.body)
        self.bounds = ItemBounds(route.body)
        self.no_query: Any = None  # of a request without one, where that is possible
        with suppress(msgspec.ValidationError):
            self.no_query = msgspec.convert({}, route.query)


class Api:
    """The ASGI application."""

    def __init__(self, services: Services, routes: Sequence[Route]) -> None:
        self.log = RequestLog()
        self._services = services
        self._limits = TimeLimits()
        self._fixed: dict[str, dict[str, Prepared]] = {}
        self._patterns: dict[str, list[Prepared]] = {}  # by the noun that their paths begin with
        self._encoder = msgspec.json.Encoder(enc_hook=to_plain, decimal_format="number")
        for route in routes:
            prepared = Prepared(route)
            if "{" in route.path:
                self._patterns.setdefault(noun_of(route.path), []).append(prepared)
            else:
                self._fixed.setdefault(route.path, {})[route.method] = prepared

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; lifespan events are the server's own affair."""
        if scope["type"] != "http":
            return
        started = time.perf_counter()
        headers = read_headers(scope)
        request_id = request_id_of(headers)
        reply_headers: Headers = {"x-request-id": request_id}
        seen = LoggedRequest()
        try:
            with self._limits.at_most(REQUEST_TIMEOUT_S) as limit:
                status, body = await self._serve(
                    scope, receive, headers, request_id, reply_headers, seen, limit
                )
        except Exception as error:  # noqa: BLE001  # the guard: nothing escapes without an answer
            if seen.is_write:
                self._services.ledger.progress.turn_away(error)
            status, body = self._problem(error, request_id, reply_headers, seen)
        reply_headers["content-length"] = str(len(body))
        with suppress(OSError):  # the caller is gone, which is the caller's affair
            await send(
                {
                    "type": "http.response.start",
                    "status": status,
                    "headers": [(k.encode(), v.encode()) for k, v in reply_headers.items()],
                }
            )
            is_head = scope["method"] == "HEAD"
            await send({"type": "http.response.body", "body": b"" if is_head else body})
        self._services.counts[status] += 1
        if status >= HTTPStatus.BAD_REQUEST or seen.route not in QUIET_ROUTES:
            self.log.add(scope, seen, status=status, request_id=request_id, started=started)

    async def _serve(  # one place where a request meets everything it needs
        self,
        scope: Scope,
        receive: Receive,
        headers: Headers,
        request_id: str,
        reply_headers: Headers,
        seen: LoggedRequest,
        limit: TimeLimit,
    ) -> tuple[int, bytes]:
        prepared, params = self._find(scope["method"], scope["path"])
        route = prepared.route
        if route.longer_s:
            limit.until += route.longer_s
        seen.route, seen.is_write = route.path, prepared.is_write
        principal = await self._who(route, headers, reply_headers, seen, scope)
        if prepared.is_write:
            self._services.ledger.cache.clock_check.require()
        sent = await read_body(receive, headers, prepared.bounds.body_bytes)
        if len(sent) > LONG_BODY_BYTES:
            await long_step()
        body = decode_body(prepared, headers, sent)
        query, dry_run = prepared.no_query, False
        if scope["query_string"] or query is None:
            query, dry_run = decode_query(route, scope["query_string"])
        key = key_of(route, headers, dry_run=dry_run)
        call = ApiRequest(
            services=self._services,
            principal=principal,
            params=params,
            body=body,
            query=query,
            request_id=request_id,
            actor=seen.actor,
            key=None if key is None else principal.own(key),
            fingerprint=b"" if key is None else fingerprint_of(route, params, body, query),
            dry_run=dry_run,
            headers=reply_headers,
        )
        try:
            answer = await route.handler(call)
            self._note_decided(call, seen)
        except (RefusedError, ActRefused) as error:
            self._note_decided(call, seen)
            await long_step()  # what all gates say takes a while to write
            raise RefusedError(
                await name_statement(call, error.refused, {}), index=error.index
            ) from error
        finally:  # a refusal may be the answer of an earlier call too
            if call.replayed:
                reply_headers["idempotency-replayed"] = "true"
            if dry_run:
                reply_headers["dry-run"] = "true"
        reply_headers["content-type"] = route.media
        if isinstance(answer, msgspec.Raw):
            return call.status or route.status, bytes(answer)
        if not principal.is_whole_org:
            answer = narrowed(answer, principal.scope)
        return call.status or route.status, self._encoder.encode(answer)

    def _find(self, method: str, path: str) -> tuple[Prepared, dict[str, str]]:
        allowed: set[str] = set()
        wanted = "GET" if method == "HEAD" else method
        fixed = self._fixed.get(path)
        if fixed is not None:
            if wanted in fixed:
                return fixed[wanted], {}
            allowed.update(fixed)
        for prepared in self._patterns.get(noun_of(path), ()):
            match = prepared.pattern.fullmatch(path)
            if match is None:
                continue
            if prepared.route.method == wanted:
                return prepared, match.groupdict()
            allowed.add(prepared.route.method)
        raise errors.no_route(method, allowed)

    async def _who(
        self,
        route: Route,
        headers: Headers,
        reply_headers: Headers,
        seen: LoggedRequest,
        scope: Scope,
    ) -> Principal:
        if route.permission is None:
            return _NOBODY
        scheme, _, token = headers.get("authorization", "").partition(" ")
        principal: Principal | NoKey = NoKey.UNKNOWN
        if scheme.lower() == "bearer":
            principal = await self._services.keyring.authenticate(token.strip())
        if isinstance(principal, NoKey):
            raise errors.no_key(principal)
        seen.actor, seen.scope = principal.actor, principal.scope
        if principal.asks:
            await throttle(self._services.limiter, principal, reply_headers)
        if SCOPE_KEY in scope:
            request_id = reply_headers["x-request-id"]
            principal = caller_from(self._services, principal, scope[SCOPE_KEY], request_id)
        if not may(principal, route.permission):
            raise errors.forbidden(principal, route.permission)
        return principal

    def _note_decided(self, call: ApiRequest[Any, Any], seen: LoggedRequest) -> None:
        """Note that a write was decided; a rehearsal or a replay says nothing about writes."""
        if seen.is_write and not call.dry_run and not call.replayed:
            self._services.ledger.progress.decided()

    def _problem(
        self, error: Exception, request_id: str, headers: Headers, seen: LoggedRequest
    ) -> tuple[int, bytes]:
        answer, more = answer_to(error, request_id)
        headers.update(more)
        headers["content-type"] = problem.MEDIA_TYPE
        if answer.reason == "internal":
            seen.error = error
        elif answer.status == HTTPStatus.SERVICE_UNAVAILABLE:
            seen.cause = str(error)
        seen.reason = answer.reason
        return answer.status, self._encoder.encode(narrowed(answer, seen.scope))


def noun_of(path: str) -> str:
    """The part of a path after its version: ``reservations`` of ``/v1/reservations/...``."""
    return path.split("/", 3)[2] if path.count("/") > 1 else ""


def read_headers(scope: Scope) -> Headers:
    """Headers by lower-case name; of repeated ones the last."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def request_id_of(headers: Headers) -> str:
    """The caller's request id if it is a sane one, else a new one."""
    given = headers.get("x-request-id", "")
    if given and _REQUEST_ID.fullmatch(given):
        return given
    return f"req_{random.getrandbits(80):020x}"  # a name, and no secret


def key_of(route: Route, headers: Headers, *, dry_run: bool) -> str | None:
    """The idempotency key, which writes must have unless they are keyed by seq."""
    key = headers.get("idempotency-key")
    if key is None:
        if route.needs_key and not dry_run:
            raise ProblemError(
                "idempotency_key_required",
                "A write needs an Idempotency-Key header, so that it can be retried safely.",
                field="Idempotency-Key",
            )
        return None
    if _KEY.fullmatch(key) is None:
        raise ProblemError(
            "idempotency_key_invalid",
            f"Idempotency-Key must be 1 to {KEY_LENGTH_MAX} printable ASCII characters.",
            field="Idempotency-Key",
        )
    return key if route.needs_key else None


async def read_body(receive: Receive, headers: Headers, most: int) -> bytes:
    """The whole body, unless it is larger than the bound; a caller who is gone has sent none."""
    announced = headers.get("content-length", "")
    if announced.isdigit() and int(announced) > most:
        raise errors.too_large(most)
    parts: list[bytes] = []
    size, is_whole = 0, False
    while not is_whole:
        message = await receive()
        if message["type"] != "http.request":
            raise ProblemError("malformed_request", "The body ended early.")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise errors.too_large(most)
        is_whole = not message.get("more_body")
    if announced.isdigit() and int(announced) != size:
        raise ProblemError("malformed_request", "The body is not as long as was announced.")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def decode_body(prepared: Prepared, headers: Headers, body: bytes) -> Any:
    """The request's struct; the error names the field and what would be right."""
    route, decoder, bounds = prepared.route, prepared.decoder, prepared.bounds
    if decoder is None or route.body is None:
        return None
    if not body and route.is_body_optional:
        return route.body()
    media = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if media != "application/json":
        raise ProblemError("unsupported_media_type", "The body must be application/json.")
    try:
        if bounds.decoder is not None and body.count(b"{") > bounds.fewest:
            bounds.check(body)
        read = decoder.decode(body)
    except msgspec.ValidationError as error:
        raise errors.misfit(str(error), route.body) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise ProblemError("malformed_request", f"The body is not JSON: {error}.") from error
    is_proven = route.has_no_repeats is not None and route.has_no_repeats(body, read)
    if is_proven or body.count(b":") == len(FIELDS.decode(body)):
        return read
    if place := repeated_field(body):
        raise errors.misfit(f"is given twice; give each field once - at `$.{place}`")
    return read


def fingerprint_of(route: Route, params: dict[str, str], body: Any, query: Any) -> bytes:
    """A hash of what is asked: equal for equal requests, however their JSON was written."""
    asked = [route.method, route.path, params, body, query]
    canonical = msgspec.json.encode(asked, enc_hook=to_plain, order="sorted")
    return hashlib.sha256(canonical).digest()


class TimeLimits:
    """The limits of the requests under way. One timer for all ends a request up to 0.5 s late."""

    def __init__(self) -> None:
        self._under_way: set[TimeLimit] = set()
        self._next_look: asyncio.TimerHandle | None = None

    def at_most(self, seconds: float) -> TimeLimit:
        """The limit of the running task from now on: ``with``; TimeoutError after so long."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None  # it runs
        if self._next_look is None:
            self._next_look = loop.call_later(LOOKED_EVERY_S, self._look)
        return TimeLimit(self._under_way, task, loop.time() + seconds)

    def _look(self) -> None:
        """End what takes too long; come back while anything is under way."""
        self._next_look = None
        if not self._under_way:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        for limit in [each for each in self._under_way if each.until <= now]:
            limit.end()
        self._next_look = loop.call_later(LOOKED_EVERY_S, self._look)


class TimeLimit:
    """The limit of one request; ``until`` may be moved."""

    __slots__ = ("_cancels", "_is_over", "_task", "_under_way", "until")

    def __init__(self, under_way: set[TimeLimit], task: asyncio.Task[object], until: float) -> None:
        self._under_way = under_way
        self._task = task
        self._cancels = 0
        self._is_over = False
        self.until = until

    def __enter__(self) -> Self:
        self._cancels = self._task.cancelling()
        self._under_way.add(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Turn the end that the limit has brought into a TimeoutError."""
        self._under_way.discard(self)
        if (
            self._is_over
            and self._task.uncancel() <= self._cancels
            and kind is asyncio.CancelledError
        ):
            raise TimeoutError from error

    def end(self) -> None:
        """Cancel the task, once."""
        self._under_way.discard(self)
        self._is_over = True
        self._task.cancel()
