"""Handlers of dead letters: see, mend and replay, or drop."""

from __future__ import annotations

from typing import Annotated, Any, NoReturn, get_args

import msgspec

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import ProblemError
from gpucredits.api.http.paging import LAST, PageQuery, number_cursor, page
from gpucredits.api.http.scope import AnyCall, act_of, number_param
from gpucredits.core import ids
from gpucredits.service.access.permissions import Permission
from gpucredits.service.metering.dead_letters import (
    DeadLetter,
    LetterGone,
    LetterState,
    PoisonError,
    drop_letter,
    list_letters,
    read_letter,
    replay_letter,
)
from gpucredits.wire.documented import doc
from gpucredits.wire.metering.dead_letter import (
    DeadLetterAnswer,
    DeadLetterPage,
    LetterStateName,
    ReplayRequest,
)
from gpucredits.wire.scalars import format_instant

SYSTEM = 0  # the org of what belongs to no org
_STATES: tuple[LetterStateName, ...] = get_args(LetterStateName)

route = Routes("metering")


class DeadLetterQuery(PageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters to list."""

    state: Annotated[LetterStateName | None, doc("Only dead letters in this state.")] = None


@route("GET /v1/dead-letters", Permission.READ_DEAD_LETTERS, client="dead_letter_page()")
async def get_dead_letters(call: ApiRequest[None, DeadLetterQuery]) -> DeadLetterPage:
    """List messages of the bus that could not be used, the latest first."""
    query = call.query
    rows = await call.services.run(
        list_letters,
        state=None if query.state is None else LetterState(_STATES.index(query.state)),
        before=number_cursor(query, LAST),
        limit=query.limit + 1,
    )
    rows, following = page(rows, query, lambda row: row.letter_id)
    return DeadLetterPage(dead_letters=[letter_to_wire(row) for row in rows], next_cursor=following)


@route(
    "GET /v1/dead-letters/{letter}",
    Permission.READ_DEAD_LETTERS,
    reasons=("dead_letter_unknown",),
    client="dead_letter(letter_id)",
)
async def get_dead_letter(call: ApiRequest[None, NoQuery]) -> DeadLetterAnswer:
    """Get a dead letter with its message."""
    letter = await call.services.run(read_letter, letter_param(call))
    if letter is None:
        gone(call, LetterGone(None))
    return letter_to_wire(letter)


@route(
    "POST /v1/dead-letters/{letter}:replay",
    Permission.DECIDE_DEAD_LETTER,
    reasons=("dead_letter_unknown", "dead_letter_state", "dead_letter_unusable"),
    is_body_optional=True,
    client="replay_dead_letter(letter_id)",
)
async def post_dead_letter_replay(call: ApiRequest[ReplayRequest, NoQuery]) -> DeadLetterAnswer:
    """Use the message of a dead letter, as it is or mended.

    Events that were stored before are not stored again.
    """
    number = letter_param(call)
    body = call.body.body
    try:
        done = await call.services.run(
            replay_letter,
            act_of(call, SYSTEM),
            number,
            prover=call.services.signing.prover,
            mended=body,
        )
    except LetterGone as error:
        gone(call, error)
    except PoisonError as error:
        why = f"The message still cannot be used ({error.reason}): {error.detail}. Mend it."
        raise ProblemError("dead_letter_unusable", why) from error
    call.replayed = done.is_replay
    return letter_to_wire(done.letter)


@route(
    "POST /v1/dead-letters/{letter}:drop",
    Permission.DECIDE_DEAD_LETTER,
    reasons=("dead_letter_unknown", "dead_letter_state"),
    client="drop_dead_letter(letter_id)",
)
async def post_dead_letter_drop(call: ApiRequest[None, NoQuery]) -> DeadLetterAnswer:
    """Drop a dead letter; its message stays readable."""
    try:
        done = await call.services.run(drop_letter, act_of(call, SYSTEM), letter_param(call))
    except LetterGone as error:
        gone(call, error)
    call.replayed = done.is_replay
    return letter_to_wire(done.letter)


def letter_param(call: AnyCall) -> int:
    """The number of the dead letter in the request's path."""
    found = number_param(call, "letter", ids.DEAD_LETTER)
    if found is None or found[0] != SYSTEM or found[1] > LAST:
        gone(call, LetterGone(None))
    return found[1]


def gone(call: AnyCall, error: LetterGone) -> NoReturn:
    """Refuse an act on a dead letter that does not wait."""
    name = call.params["letter"][:40]
    if error.letter is None:
        raise ProblemError("dead_letter_unknown", f"There is no dead letter {name}.") from error
    state = _STATES[error.letter.state]
    raise ProblemError("dead_letter_state", f"Dead letter {name} was {state} before.") from error


def letter_to_wire(letter: DeadLetter) -> DeadLetterAnswer:
    """A dead letter as it is shown."""
    body, is_json = shown_body(letter.body)
    is_decided = letter.state is not LetterState.WAITING
    return msgspec.convert(
        {
            "letter_id": ids.format_id(ids.DEAD_LETTER, SYSTEM, letter.letter_id),
            "topic": letter.topic,
            "partition": letter.partition,
            "position": letter.position,
            "received_at": format_instant(letter.received_at),
            "reason": letter.reason,
            "detail": letter.detail,
            "state": _STATES[letter.state],
            "decided_at": format_instant(letter.decided_at) if is_decided else None,
            "decided_by": letter.decided_by or None,
            "body": body,
            "is_json": is_json,
        },
        DeadLetterAnswer,
    )


def shown_body(body: bytes | None) -> tuple[Any, bool]:
    """The message as JSON, or else as text with escapes; and whether it is JSON."""
    if body is None:
        return None, True
    try:
        return msgspec.json.decode(body), True
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body.decode(errors="backslashreplace"), False
