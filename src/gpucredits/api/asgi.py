"""The server's one entry: from bytes to a call, and from its result to bytes.

Owns: finding the route, who is asking, the bounds of a request (size, time, shape), its key and
fingerprint, the answer's headers, and the guard that turns whatever goes wrong into a problem.
Must not: know any single route.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from gpucredits.api.call import Call, Route
from gpucredits.api.duplicates import repeated_field
from gpucredits.api.errors import (
    ProblemError,
    RefusedError,
    problem_of,
    refusal_problem,
    retry_after_of,
)
from gpucredits.api.failures import REQUEST_TIMEOUT_S, problem_for
from gpucredits.api.item_bounds import ItemBounds
from gpucredits.api.log import RequestLog, Seen
from gpucredits.api.narrowing import narrowed
from gpucredits.api.overdue import name_statement
from gpucredits.api.throttle import throttle
from gpucredits.core.account import RESERVED_SEGMENTS
from gpucredits.core.gpu_type import POOL_WORDS
from gpucredits.service.access import Principal, Role, may
from gpucredits.service.keys import NoKey
from gpucredits.service.services import Services
from gpucredits.service.strides import stride
from gpucredits.wire import problem
from gpucredits.wire.scalars import decoder_of, from_wire, to_plain

LONG_BODY_BYTES: Final = 2_000  # from here on reading it takes a while
QUERY_FIELDS_MAX: Final = 50
KEY_LENGTH_MAX: Final = 200

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = dict[str, str]

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,100}", re.ASCII)
_KEY = re.compile(rf"[!-~]{{1,{KEY_LENGTH_MAX}}}", re.ASCII)
_NO_KEY = {
    NoKey.UNKNOWN: "Send a live API key as 'Authorization: Bearer gck_…'.",
    NoKey.EXPIRED: "This API key has expired: ask whoever made it for another.",
}
_NOBODY = Principal(key_id=0, org_id=-1, role=Role.READ_ONLY, scope="system:nobody")


class Prepared:
    """A route with what is worth making once: its pattern, its decoder and its body's bounds."""

    __slots__ = ("bounds", "decoder", "pattern", "route")

    def __init__(self, route: Route) -> None:
        self.route = route
        self.pattern = re.compile(pattern_of(route.path))
        self.decoder = None if route.body is None else decoder_of(route.body)
        self.bounds = ItemBounds(route.body)


class Api:
    """The ASGI application."""

    def __init__(self, services: Services, routes: Sequence[Route]) -> None:
        self.log = RequestLog()
        self._services = services
        self._fixed: dict[str, dict[str, Prepared]] = {}
        self._patterns: list[Prepared] = []
        self._encoder = msgspec.json.Encoder(enc_hook=to_plain, decimal_format="number")
        for route in routes:
            prepared = Prepared(route)
            if "{" in route.path:
                self._patterns.append(prepared)
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
        seen = Seen()
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S) as limit:
                status, body = await self._serve(
                    scope, receive, headers, request_id, reply_headers, seen, limit
                )
        except Exception as error:  # noqa: BLE001  # the guard: nothing escapes without an answer
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
        self._services.counts.add(status)
        self.log.add(scope, seen, status=status, request_id=request_id, started=started)

    async def _serve(  # one place where a request meets everything it needs
        self,
        scope: Scope,
        receive: Receive,
        headers: Headers,
        request_id: str,
        reply_headers: Headers,
        seen: Seen,
        limit: asyncio.Timeout,
    ) -> tuple[int, bytes]:
        prepared, params = self._find(scope["method"], scope["path"])
        route = prepared.route
        if route.longer_s:
            limit.reschedule((limit.when() or 0.0) + route.longer_s)
        seen.route = route.path
        principal = await self._who(route, headers, reply_headers, seen)
        if route.is_write:
            self._services.ledger.funnel.shelf.steadiness.require()
        sent = await read_body(receive, headers, prepared.bounds.body_bytes)
        if len(sent) > LONG_BODY_BYTES:
            await stride()
        body = decode_body(prepared, headers, sent)
        query, dry_run = decode_query(route, scope["query_string"])
        key = key_of(route, headers, dry_run=dry_run)
        call = Call(
            services=self._services,
            principal=principal,
            params=params,
            body=body,
            query=query,
            request_id=request_id,
            key=None if key is None else principal.own(key),
            fingerprint=b"" if key is None else fingerprint_of(route, params, body, query),
            dry_run=dry_run,
            headers=reply_headers,
        )
        try:
            answer = await route.handler(call)
        except RefusedError as error:
            await stride()  # what all gates say takes a while to write
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
        return call.status or route.status, self._encoder.encode(narrowed(answer, principal.scope))

    def _find(self, method: str, path: str) -> tuple[Prepared, dict[str, str]]:
        allowed: set[str] = set()
        wanted = "GET" if method == "HEAD" else method
        fixed = self._fixed.get(path)
        if fixed is not None:
            if wanted in fixed:
                return fixed[wanted], {}
            allowed.update(fixed)
        for prepared in self._patterns:
            match = prepared.pattern.fullmatch(path)
            if match is None:
                continue
            if prepared.route.method == wanted:
                return prepared, match.groupdict()
            allowed.add(prepared.route.method)
        if allowed:
            raise ProblemError(
                "method_not_allowed",
                f"{method} is not possible here; {', '.join(sorted(allowed))} is.",
                headers={"allow": ", ".join(sorted(allowed))},
            )
        raise ProblemError("not_found", "There is nothing at this path.")

    async def _who(
        self, route: Route, headers: Headers, reply_headers: Headers, seen: Seen
    ) -> Principal:
        if route.permission is None:
            return _NOBODY
        scheme, _, token = headers.get("authorization", "").partition(" ")
        token = token.strip()
        principal: Principal | NoKey = NoKey.UNKNOWN
        if scheme.lower() == "bearer" and token:
            principal = await self._services.keyring.authenticate(token)
        if isinstance(principal, NoKey):
            raise ProblemError(
                principal.value,
                _NO_KEY[principal],
                headers={"www-authenticate": 'Bearer realm="gpucredits"'},
            )
        seen.actor, seen.scope = principal.actor, principal.scope
        await throttle(self._services.limiter, principal, reply_headers)
        if not may(principal, route.permission):
            where = principal.scope or "the whole system"
            raise ProblemError(
                "forbidden",
                f"A key with role {principal.role} for {where} may not do this"
                f" ({route.permission}).",
            )
        return principal

    def _problem(
        self, error: Exception, request_id: str, headers: Headers, seen: Seen
    ) -> tuple[int, bytes]:
        headers["content-type"] = problem.MEDIA_TYPE
        if isinstance(error, RefusedError):
            headers.update(retry_after_of(error.refused))
            answer = refusal_problem(error.refused, request_id, index=error.index)
        else:
            ours = error if isinstance(error, ProblemError) else problem_for(error)
            headers.update(ours.headers)
            answer = problem_of(ours, request_id)
            if ours.reason == "internal":
                seen.error = error
            elif answer.status == HTTPStatus.SERVICE_UNAVAILABLE:
                seen.cause = str(error)
        seen.reason = answer.reason
        return answer.status, self._encoder.encode(narrowed(answer, seen.scope))


def pattern_of(path: str) -> str:
    """The regular expression of a path; accounts and GPU types have slashes, ids do not.

    No account's path has a segment that is one of the words which follow accounts in paths, and no
    region has the name of a word which follows pools.
    """
    words = "|".join(sorted(RESERVED_SEGMENTS))
    shapes = {
        "{account}": f"(?:(?!/(?:{words})(?:/|$)).)+",
        "{gpu_type}": "(?:[^/]+/)?[^/]+",
        "{region}": f"(?!(?:{'|'.join(sorted(POOL_WORDS))})$)[^/]+",
    }
    parts = re.split(r"(\{\w+\})", path)
    return "".join(
        f"(?P<{part[1:-1]}>{shapes.get(part, '[^/:]+')})"
        if part.startswith("{")
        else re.escape(part)
        for part in parts
    )


def read_headers(scope: Scope) -> Headers:
    """Headers by lower-case name; of repeated ones the last."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def request_id_of(headers: Headers) -> str:
    """The caller's request id if it is a sane one, else a new one."""
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else f"req_{secrets.token_hex(10)}"


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
        raise _too_large(most)
    parts: list[bytes] = []
    size, is_whole = 0, False
    while not is_whole:
        message = await receive()
        if message["type"] != "http.request":
            raise ProblemError("malformed_request", "The body ended early.")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise _too_large(most)
        is_whole = not message.get("more_body")
    if announced.isdigit() and int(announced) != size:
        raise ProblemError("malformed_request", "The body is not as long as was announced.")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def decode_body(prepared: Prepared, headers: Headers, body: bytes) -> Any:
    """The request's struct; the error names the field and what would be right."""
    route, decoder = prepared.route, prepared.decoder
    if decoder is None or route.body is None:
        return None
    if not body and route.is_body_optional:
        return route.body()
    media = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if media != "application/json":
        raise ProblemError("unsupported_media_type", "The body must be application/json.")
    try:
        prepared.bounds.check(body)
        read = decoder.decode(body)
    except msgspec.ValidationError as error:
        raise invalid(str(error), route.body) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise ProblemError("malformed_request", f"The body is not JSON: {error}.") from error
    is_proven = route.has_no_repeats is not None and route.has_no_repeats(body, read)
    if not is_proven and (place := repeated_field(body)):
        raise invalid(f"is given twice; give each field once - at `$.{place}`")
    return read


def decode_query(route: Route, query_string: bytes) -> tuple[Any, bool]:
    """The query's struct, and whether it is a dry run."""
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=False,
            errors="strict",
            max_num_fields=QUERY_FIELDS_MAX,
        )
    except ValueError as error:
        raise ProblemError("malformed_request", f"The query cannot be read: {error}.") from error
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise invalid(f"may be given once - at `$.{name}`")
        fields[name] = value
    dry_run = _flag(fields.pop("dry_run", "false")) if route.is_write else False

    try:
        return msgspec.convert(fields, route.query, strict=False, dec_hook=from_wire), dry_run
    except msgspec.ValidationError as error:
        raise invalid(str(error), route.query) from error


def fingerprint_of(route: Route, params: dict[str, str], body: Any, query: Any) -> bytes:
    """A hash of what is asked: equal for equal requests, however their JSON was written."""
    asked = [route.method, route.path, params, body, query]
    canonical = msgspec.json.encode(asked, enc_hook=to_plain, order="sorted")
    return hashlib.sha256(canonical).digest()


def invalid(message: str, shape: type | None = None) -> ProblemError:
    """The problem for a value that is not as it must be, with the name of its field."""
    field, text = problem.misfit(message, shape)
    detail = f"{field}: {text}." if field else f"{text}."
    return ProblemError("invalid_request", detail, field=field)


def _flag(text: str) -> bool:
    if text not in ("true", "false", "1", "0"):
        raise invalid("must be true or false - at `$.dry_run`")
    return text in ("true", "1")


def _too_large(most: int) -> ProblemError:
    return ProblemError("too_large", f"The body must be at most {most} bytes.")
