"""The ways in which the database may fail a caller, and the driver's words for them.

Owns the mapping from driver errors to ``Unavailable`` and ``Conflict``. It must not retry, log or
decide what a user is told: whoever catches these does. Every other error passes untouched, because
it is a defect of ours and retrying would only hide it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import asyncpg

if TYPE_CHECKING:
    from collections.abc import Iterator


class Unavailable(Exception):  # noqa: N818 - the name is what a caller reads: the store is unavailable
    """The database cannot serve now. A commit under way may have happened: retry with its key.

    ``is_noted``: whoever counts failures has heard of it.
    """

    is_noted = False


class Damaged(Unavailable):
    """Files of the database are damaged: what is in them cannot be read."""


class Conflict(Exception):  # noqa: N818 - the name is what a caller reads: a conflict with another
    """Another transaction was in the way, and this one was rolled back whole: run it again."""


class Locked(Conflict):
    """Another transaction kept a row locked that this one needs, for longer than we wait."""


CONFLICT_STATES = frozenset(
    {
        "40001",  # serialization_failure
        "40P01",  # deadlock_detected
    }
)
LOCKED_STATE = "55P03"  # lock_not_available, which is also what lock_timeout raises
UNAVAILABLE_STATES = frozenset(
    {
        "25006",  # read_only_sql_transaction: the primary has become a standby under us
        "25P03",  # idle_in_transaction_session_timeout: the server closed the connection
        "40003",  # statement_completion_unknown
        "57014",  # query_canceled, which is also what statement_timeout raises
        "57P01",  # admin_shutdown
        "57P02",  # crash_shutdown
        "57P03",  # cannot_connect_now
        "57P05",  # idle_session_timeout
        "58030",  # io_error
    }
)
DAMAGED_STATES = frozenset(
    {
        "XX001",  # data_corrupted, which a page with a wrong checksum is
        "XX002",  # index_corrupted
        "58P01",  # undefined_file
    }
)
DAMAGED = (
    "the database's files are damaged ({state}: {said}). Stop the server, keep a copy of the data "
    "directory as it is, and restore the newest backup; `gpucredits verify` then checks the books"
)
UNAVAILABLE_CLASSES = frozenset({"08", "53"})  # connection exceptions; insufficient resources
GONE_WORDS = (
    "connection is closed",
    "connection was closed",
    "pool is closing",
    "pool is closed",
    "released back to the pool",  # a pool takes a connection back from its user when it dies
    # A farewell that the server sends to an idle session leaves the driver in a state from which
    # the next statement fails like this, before anything is sent.
    "cannot switch to state",
)

KEYS_CONSTRAINT = "idempotency_pkey"

DRIVER_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)


@contextmanager
def driver_errors() -> Iterator[None]:
    """Translate what the driver raises inside the block into our exceptions."""
    try:
        yield
    except DRIVER_ERRORS as error:
        raise_ours(error)


def raise_ours(error: BaseException) -> NoReturn:
    """Raise our exception for a driver error, or the error itself where it must pass as it is."""
    ours = translated(error)
    if ours is None:
        raise error
    raise ours from error


def raise_key_conflict(error: asyncpg.UniqueViolationError) -> NoReturn:
    """Raise Conflict if the error says that somebody stored the same key meanwhile.

    A batch binds its key without a lock; whoever finds it bound decides again, and sees that.
    """
    if error.constraint_name != KEYS_CONSTRAINT:
        raise error
    raise Conflict("the key was used elsewhere in the meantime") from error


def translated(error: BaseException) -> Unavailable | Conflict | None:
    """Our exception for a driver error, or None where the error must pass as it is."""
    said = f"{type(error).__name__}: {error}"
    if isinstance(error, asyncpg.PostgresError):
        return of_state(error.sqlstate or "", said)
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return Unavailable(f"none of the database's hosts is the primary ({said})")
    if isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError):
        is_gone = any(words in str(error) for words in GONE_WORDS)
        return Unavailable(f"the connection is gone ({said})") if is_gone else None
    if isinstance(error, OSError):  # covers ConnectionError and TimeoutError
        return Unavailable(f"the database cannot be reached ({said})")
    return None


def of_state(state: str, said: str) -> Unavailable | Conflict | None:
    """Our exception for what the server said, by its code."""
    if state in CONFLICT_STATES or state == LOCKED_STATE:
        kind = Locked if state == LOCKED_STATE else Conflict
        return kind(f"another transaction was in the way ({state}, {said})")
    if state in DAMAGED_STATES:
        return Damaged(DAMAGED.format(state=state, said=said))
    if state in UNAVAILABLE_STATES or state[:2] in UNAVAILABLE_CLASSES:
        return Unavailable(f"the database cannot serve now ({state}, {said})")
    return None
