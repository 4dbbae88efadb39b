"""Every way in which a request may fail, and its status: one table.

Owns: the stable ``reason`` words of the edge, the map from kinds of refusal to status codes, and
the numbers that go into a problem.
Must not: decide whether something is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, assert_never

from gpucredits.core.reasons import Detail, Kind, Reason, Refused, kind_of
from gpucredits.service.access.permissions import NoKey, Permission, Principal
from gpucredits.wire import problem
from gpucredits.wire.gate import gates_to_wire
from gpucredits.wire.problem import Problem
from gpucredits.wire.request_limit import RequestLimitShown
from gpucredits.wire.scalars import format_instant

# Reasons of the edge itself; core.reasons lists those of the rules.
EDGE_REASONS: dict[str, HTTPStatus] = {
    "malformed_request": HTTPStatus.BAD_REQUEST,
    "idempotency_key_required": HTTPStatus.BAD_REQUEST,
    "idempotency_key_invalid": HTTPStatus.BAD_REQUEST,
    "unauthenticated": HTTPStatus.UNAUTHORIZED,
    "key_expired": HTTPStatus.UNAUTHORIZED,
    "forbidden": HTTPStatus.FORBIDDEN,
    "certificate_required": HTTPStatus.FORBIDDEN,
    "wrong_node": HTTPStatus.FORBIDDEN,
    "token_invalid": HTTPStatus.FORBIDDEN,
    "token_expired": HTTPStatus.FORBIDDEN,
    "token_mismatch": HTTPStatus.FORBIDDEN,
    "token_replayed": HTTPStatus.CONFLICT,
    "not_found": HTTPStatus.NOT_FOUND,
    "grant_unknown": HTTPStatus.NOT_FOUND,
    "key_unknown": HTTPStatus.NOT_FOUND,
    "pool_unknown": HTTPStatus.NOT_FOUND,
    "queue_unknown": HTTPStatus.NOT_FOUND,
    "signing_key_unknown": HTTPStatus.NOT_FOUND,
    "signing_keys_full": HTTPStatus.CONFLICT,
    "dead_letter_unknown": HTTPStatus.NOT_FOUND,
    "dead_letter_state": HTTPStatus.CONFLICT,
    "dead_letter_unusable": HTTPStatus.UNPROCESSABLE_ENTITY,
    "consumer_unknown": HTTPStatus.NOT_FOUND,
    "consumers_full": HTTPStatus.CONFLICT,
    "queue_ended": HTTPStatus.CONFLICT,
    "queue_full": HTTPStatus.TOO_MANY_REQUESTS,
    "method_not_allowed": HTTPStatus.METHOD_NOT_ALLOWED,
    "idempotency_key_reused": HTTPStatus.CONFLICT,
    "too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "target_too_long": HTTPStatus.REQUEST_URI_TOO_LONG,
    "head_too_large": HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "too_slow": HTTPStatus.REQUEST_TIMEOUT,
    "too_many_connections": HTTPStatus.SERVICE_UNAVAILABLE,
    "unsupported_media_type": HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    "invalid_request": HTTPStatus.UNPROCESSABLE_ENTITY,
    "rate_limited": HTTPStatus.TOO_MANY_REQUESTS,  # the rules say it of credits
    "internal": HTTPStatus.INTERNAL_SERVER_ERROR,
    "busy": HTTPStatus.SERVICE_UNAVAILABLE,
    "unavailable": HTTPStatus.SERVICE_UNAVAILABLE,
    "batch_incomplete": HTTPStatus.SERVICE_UNAVAILABLE,
    "timeout": HTTPStatus.SERVICE_UNAVAILABLE,
    "clock_jumped": HTTPStatus.SERVICE_UNAVAILABLE,
}


NO_KEY: Final = {
    NoKey.UNKNOWN: (
        "The API key is missing, unknown or revoked. Send a live one as "
        "'Authorization: Bearer gck_…'."
    ),
    NoKey.EXPIRED: "This API key has expired: ask whoever made it for another.",
}


class ProblemError(Exception):
    """Ends a request with a problem; the guard around handlers turns it into an answer."""

    def __init__(
        self,
        reason: str,
        detail: str,
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
        clears_at: str | None = None,
        limit: RequestLimitShown | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = EDGE_REASONS[reason]
        self.reason = reason
        self.detail = detail
        self.field = field
        self.headers = dict(headers or {})
        self.clears_at = clears_at
        self.limit = limit


def invalid(field: str, text: str) -> ProblemError:
    """The problem of a field whose value makes no sense; ``text`` goes on from its name."""
    return ProblemError("invalid_request", f"{field}: {text}.", field=field)


def misfit(message: str, shape: type | None = None) -> ProblemError:
    """The problem of a value that does not fit its shape, with the name of its field."""
    field, text = problem.misfit(message, shape)
    detail = f"{field}: {text}." if field else f"{text}."
    return ProblemError("invalid_request", detail, field=field)


def too_large(most: int) -> ProblemError:
    """The problem of a body with more bytes than a route takes."""
    return ProblemError("too_large", f"The body must be at most {most} bytes.")


def forbidden(principal: Principal, permission: Permission) -> ProblemError:
    """The problem of a key that may not do what the route does."""
    text = f"A key with role {principal.role} for {principal.reach} may not do this ({permission})."
    return ProblemError("forbidden", text)


def no_route(method: str, allowed: set[str]) -> ProblemError:
    """The problem of a path that does not exist, or that takes other methods only."""
    if not allowed:
        return ProblemError("not_found", "There is nothing at this path.")
    methods = ", ".join(sorted(allowed))
    text = f"{method} is not possible here; {methods} is."
    return ProblemError("method_not_allowed", text, headers={"allow": methods})


def no_key(why: NoKey) -> ProblemError:
    """The problem of a request without a live key."""
    return ProblemError(
        why.value, NO_KEY[why], headers={"www-authenticate": 'Bearer realm="gpucredits"'}
    )


class RefusedError(Exception):
    """Ends a request with the refusal that the rules gave."""

    def __init__(self, refused: Refused, *, index: int | None = None) -> None:
        super().__init__(refused.message)
        self.refused = refused
        self.index = index


def status_of(reason: Reason) -> HTTPStatus:
    """The status of a refusal, by its kind."""
    kind = kind_of(reason)
    match kind:
        case Kind.NOT_FOUND:
            return HTTPStatus.NOT_FOUND
        case Kind.INVALID:
            return HTTPStatus.UNPROCESSABLE_ENTITY
        case Kind.CONFLICT:
            return HTTPStatus.CONFLICT
        case Kind.FUNDS:
            return HTTPStatus.PAYMENT_REQUIRED
        case Kind.LIMIT:
            return HTTPStatus.FORBIDDEN
        case Kind.THROTTLED:
            return HTTPStatus.TOO_MANY_REQUESTS
        case _:
            assert_never(kind)


def status_of_word(reason: str) -> HTTPStatus:
    """The status of any reason, of the edge or of the rules."""
    return EDGE_REASONS[reason] if reason in EDGE_REASONS else status_of(Reason(reason))


def problem_of(error: ProblemError, request_id: str, *, index: int | None = None) -> Problem:
    """The body that says what went wrong at the edge."""
    return Problem(
        title=error.status.phrase,
        status=int(error.status),
        reason=error.reason,
        detail=error.detail,
        field=error.field,
        request_id=request_id,
        clears_at=error.clears_at,
        limit=error.limit,
        index=index,
    )


def refusal_problem(refused: Refused, request_id: str, *, index: int | None = None) -> Problem:
    """The body that says why the rules refused, with the numbers."""
    status = status_of(refused.reason)
    shown = refused.detail
    for name in ("clears_at", "ended_at"):
        instant = shown.get(name)
        if isinstance(instant, int):
            shown = {**shown, name: format_instant(instant)}
    return Problem(
        title=status.phrase,
        status=int(status),
        reason=refused.reason.value,
        detail=refused.message,
        request_id=request_id,
        account=_text(shown, "account"),
        scope=_text(shown, "scope"),
        available=_text(shown, "available"),
        needed=_text(shown, "needed"),
        numbers=dict(shown) or None,
        clears_at=_text(shown, "clears_at"),
        gates=gates_to_wire(refused.reports) or None,
        index=index,
    )


def retry_after_of(refused: Refused) -> dict[str, str]:
    """The header that says when asking again could help; none where it never would."""
    wait_ms = refused.detail.get("clears_in_ms")
    if kind_of(refused.reason) is not Kind.THROTTLED or not isinstance(wait_ms, int):
        return {}
    return {"retry-after": str(max(1, -(-wait_ms // 1_000)))}


def _text(shown: Detail, name: str) -> str | None:
    value = shown.get(name)
    return None if value is None else str(value)
