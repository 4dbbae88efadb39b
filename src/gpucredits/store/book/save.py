"""Saving books: everything that changed in one statement, if they are still the present ones.

Owns: the session that batches run in; the record of a batch beside its books; locking the orgs,
comparing their versions and the time, all inside the statement that writes; how rows become that
statement and its parameters. The texts are constants; values travel only as parameters.
Must not: decide anything, or what happens when the condition does not hold (whoever saves does).

The session is for statements over arrays of ids, planned once. The arrays are short and every join
is by key, so plans that read whole tables are switched off: a plan made while a table was small
would otherwise stay when it has grown. Locks are waited for briefly: a batch that waits for one org
holds up all its others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import asyncpg
import msgspec

from gpucredits.core.reservation import Reservation
from gpucredits.store.book.book_cache import GuardResult
from gpucredits.store.book.cached_book import CachedBooks
from gpucredits.store.book.changes import Changes, add_settlements, collect
from gpucredits.store.book.codecs import StoredRow
from gpucredits.store.book.table import CODE, LISTS, ROWS, Part
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import close_lane
from gpucredits.store.database.errors import (
    DRIVER_ERRORS,
    driver_errors,
    raise_key_conflict,
    raise_ours,
)

encode = msgspec.json.Encoder().encode  # five times as fast as str()
# Columns of numbers and texts travel as array literals: the driver looks at every element of an
# array to see whether it is an array itself, and writing the literal costs a third of that on both
# sides together. Where every part has a single row, values travel as they are: taking arrays apart
# costs a third of such a statement.
NUMBER_TYPES = frozenset({"integer", "bigint", "boolean"})
SINGLE = {CODE: "smallint", LISTS: "text"}  # what is sent for these columns of a single row
CASTS = {CODE: "::text::smallint[]", LISTS: "::text::text[]", "text": "::text::text[]"} | {
    kind: f"::text::{kind}[]" for kind in NUMBER_TYPES
}
# A single command of an org with limits changes several of their rows. Their columns travel as
# arrays even where everything else has a single row, so that there are no more texts to plan.
OF_LIMITS = frozenset({"changed_meters", "changed_slots"})
PARAMETERS = 9
IF_IT_HOLDS = "FROM checked WHERE holds"
# An equal version says that nothing of the org has changed since its book was read or written, so
# the statement's snapshot, which is older than the lock, is the present. A book that was not read
# just now ($3) also needs the same test clock, and nothing due that would have been read. What was
# decided more than five seconds ago ($4), or before a price was added ($5), or gives a job another
# lease on a node where it may have one ($6 to $9), or on any node ($9 null), is decided again.
CHECKED = """locked AS MATERIALIZED (
    SELECT o.org_id, o.version, o.clock, o.gated FROM orgs o
    WHERE o.org_id {orgs} FOR NO KEY UPDATE
), versions AS MATERIALIZED (
    SELECT array_agg(l.version) AS found, count(*) FILTER (WHERE $3::bigint IS NOT NULL
        AND l.gated AND EXISTS (SELECT FROM accounts a
            WHERE a.org_id = l.org_id AND a.due_at <= greatest($4::bigint, l.clock))) AS due
    FROM locked l
), moment AS MATERIALIZED (
    SELECT clock_us(c.offset_us) AS now, c.offset_us, v.found, v.due
    FROM versions v CROSS JOIN clock c
), checked AS MATERIALIZED (
    SELECT m.found = $2::text::bigint[] AND m.due = 0 AND coalesce(m.offset_us = $3, true)
        AND m.now - $4 BETWEEN 0 AND 5000000
        AND ($5::bigint IS NULL OR (SELECT s.prices_version FROM system_state s) = $5)
        AND NOT EXISTS (SELECT FROM {nodes} AS n(org_id, account_id, job_id, node)
            CROSS JOIN LATERAL (SELECT FROM reservations r WHERE r.org_id + 0 = n.org_id
                AND r.account_id + 0 = n.account_id AND r.job_id = n.job_id AND r.state + 0 = 0
                AND (n.node IS NULL OR r.node = n.node) OFFSET 0) AS taken)
        AS holds, m.now, m.offset_us, m.found
    FROM moment m
)"""
CHECKED_MANY = CHECKED.format(
    orgs="= ANY ($1::text::bigint[]) ORDER BY o.org_id",
    nodes="unnest($6::text::bigint[], $7::text::bigint[], $8::text::text[], $9::text::text[])",
)
CHECKED_SINGLE = CHECKED.format(
    orgs="= $1::bigint", nodes="(SELECT $6::bigint, $7::bigint, $8::text, $9::text)"
)
VERDICT = "SELECT holds, now, offset_us, found FROM checked"


NodeOfJob = tuple[int, int, str, str | None]

SESSION = """
SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan; SET jit = off;
SET lock_timeout = '1s'
"""
HELD = """
WITH free AS MATERIALIZED (
    SELECT o.org_id FROM orgs o WHERE o.org_id = ANY ($1::bigint[]) FOR NO KEY UPDATE SKIP LOCKED
)
SELECT o.org_id FROM orgs o WHERE o.org_id = ANY ($1::bigint[])
    AND NOT EXISTS (SELECT FROM free f WHERE f.org_id = o.org_id)"""


async def open_lane(pool: Pool, *, timeout_s: float) -> Connection:
    """A connection that is ready to carry out batches; raises Unavailable."""
    with driver_errors():
        connection = await pool.acquire(timeout=timeout_s)
        try:
            await connection.execute(SESSION)
        except BaseException:
            await close_lane(pool, connection)
            raise
    return connection


def is_open(connection: Connection) -> bool:
    """Whether a connection can still be used, as far as the driver has noticed."""
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:  # the pool has taken it back, as it does with one that dies
        return False


async def held_by_others(connection: Connection, orgs: Iterable[int]) -> set[int]:
    """Those of some orgs whose rows somebody has locked; none if that cannot be found out."""
    with suppress(*DRIVER_ERRORS):
        return {row[0] for row in await connection.fetch(HELD, sorted(orgs))}
    return set()


@dataclass(frozen=True, slots=True)
class Guard:
    """What has to be so: versions of orgs, the time, and what was known without reading.

    That is the test clock where the time was guessed, the version of prices that were kept, and
    (org, account, job, node) of new leases where nobody has looked for others. Without a node, the
    job was taken to have no lease anywhere.
    """

    orgs: tuple[int, ...]
    versions: tuple[int, ...]
    now: int
    offset_us: int | None = None
    prices: int | None = None
    nodes: tuple[NodeOfJob, ...] = ()

    @property
    def is_single(self) -> bool:
        """Whether it is about one org and at most one new lease."""
        return len(self.orgs) == 1 and len(self.nodes) <= 1

    @property
    def single_parameters(self) -> tuple[object, ...]:
        """What a guarded statement for single rows takes first."""
        node = self.nodes[0] if self.nodes else (None,) * 4
        found = numbers(self.versions)
        return (self.orgs[0], found, self.offset_us, self.now, self.prices, *node)

    @property
    def parameters(self) -> tuple[object, ...]:
        """What a guarded statement takes first."""
        orgs, accounts, jobs, nodes = zip(*self.nodes, strict=True) if self.nodes else ((),) * 4
        kept = (numbers(self.orgs), numbers(self.versions), self.offset_us, self.now, self.prices)
        return (*kept, numbers(orgs), numbers(accounts), texts(jobs), texts(nodes))


def guard_of(
    books: CachedBooks, now: int, offset_us: int | None = None, prices: int | None = None
) -> Guard:
    """The condition for decisions on these books, before anything is decided."""
    orgs = tuple(sorted(books))
    versions = tuple(books[org_id].book.org.version for org_id in orgs)
    return Guard(orgs, versions, now, offset_us, prices)


def verdict_of(guard: Guard, row: StoredRow) -> GuardResult:
    """What the database made of it."""
    holds, now, offset_us, found = row
    if holds:
        return GuardResult(holds=True, now=now, offset_us=offset_us)
    pairs = zip(guard.orgs, guard.versions, found or (), strict=False)
    changed = tuple(org_id for org_id, known, version in pairs if version != known)
    return GuardResult(holds=False, now=now, offset_us=offset_us, changed=changed)


@cache
def guarded_statement(parts: tuple[Part, ...], *, is_single: bool) -> str:
    """The text that makes all the changes if a condition holds, and says whether it did."""
    changing = texts_of(parts, IF_IT_HOLDS, PARAMETERS, is_single=is_single)
    checked = CHECKED_SINGLE if is_single else CHECKED_MANY
    return f"WITH {', '.join((checked, *changing))} {VERDICT}"


Answer = tuple[int, str, bytes, bytes, int]  # org, key, hash of the request, outcome, time
DecisionMade = tuple[int, int, str, str, str, int, str, str]
ActRow = tuple[int, int, str, str, str, str | None, str | None, str]  # as audit_log's columns


@dataclass(slots=True)
class BatchRecord:
    """What is written beside the books: answers to keys, refusals and drains, who did what."""

    answers: list[Answer] = field(default_factory=list)
    decisions: list[DecisionMade] = field(default_factory=list)
    acts: list[ActRow] = field(default_factory=list)

    @property
    def keys(self) -> set[tuple[int, str]]:
        """The keys that are answered; one that was answered before cannot be written again."""
        return {(answer[0], answer[1]) for answer in self.answers}


async def save(connection: Connection, books: CachedBooks, record: BatchRecord) -> None:
    """Write everything that changed, with what was answered and decided, in one round trip.

    The transaction that this is a part of has locked the orgs.
    """
    ordered = changes_of(books, record)
    if ordered:
        try:
            await connection.fetchval(statement(tuple(ordered)), *values_of(ordered))
        except asyncpg.UniqueViolationError as error:
            raise_key_conflict(error)


async def save_if(
    connection: Connection, guard: Guard, books: CachedBooks, record: BatchRecord
) -> GuardResult:
    """Write everything and commit it, all in one statement, if the guard's condition holds.

    Otherwise nothing is written, also when a key has been answered elsewhere in the meantime.
    """
    ordered = changes_of(books, record)
    is_single = guard.is_single and all(
        len(every) == 1 or each.name in OF_LIMITS for each, every in ordered.items()
    )
    text = guarded_statement(tuple(ordered), is_single=is_single)
    values = (
        (*guard.single_parameters, *single_values(ordered))
        if is_single
        else (*guard.parameters, *values_of(ordered))
    )
    try:
        row = await connection.fetchrow(text, *values)
    except asyncpg.UniqueViolationError:
        return GuardResult(holds=False)
    except DRIVER_ERRORS as error:
        raise_ours(error)
    return verdict_of(guard, row)


def new_on_nodes(books: CachedBooks) -> tuple[NodeOfJob, ...]:
    """Where the leases run that are new, and the jobs that were taken to have none."""
    found: list[NodeOfJob] = []
    for org_id, cached in books.items():
        unread = cached.unread_jobs
        found += [(org_id, account_id, job_id, None) for account_id, job_id in unread]
        found += [
            (org_id, row.account_id, row.job_id, row.node)
            for row in cached.book.changed.values()
            if type(row) is Reservation
            and row.reservation_id >= cached.first_new_id
            and (row.account_id, row.job_id) not in unread
        ]
    return tuple(found)


def changes_of(books: CachedBooks, record: BatchRecord) -> dict[Part, list[Sequence[Any]]]:
    """The rows to write, by the part of the statement that writes them."""
    changes = Changes()
    for cached in books.values():
        collect(changes, cached)
    if changes.renewals:
        changes.rows["renewed_leases"] = changes.renewals
    add_settlements(changes)
    if record.answers:
        changes.rows["new_answers"] = list(record.answers)
    for decision in record.decisions:
        changes.add("new_decisions", decision)
    if record.acts:
        changes.rows["new_acts"] = list(record.acts)
    return changes.in_order()


def values_of(changes: dict[Part, list[Sequence[Any]]]) -> list[object]:
    """The parameters of the statement that writes changes."""
    return [value for part, every in changes.items() for value in parameters(part, every)]


@cache
def statement(parts: tuple[Part, ...]) -> str:
    """The text that makes all the changes at once, in whatever order the database likes."""
    return f"WITH {', '.join(texts_of(parts))} SELECT 1"


def texts_of(
    parts: tuple[Part, ...], condition: str = "", number: int = 0, *, is_single: bool = False
) -> list[str]:
    """Each part with its rows in their place, taking parameters after those that come first.

    Columns are taken apart side by side, in a SELECT. As a function in FROM each of them would be
    stored by itself before the first row is made, which costs a tenth of what the statement does.
    """
    made = []
    for each in parts:
        places = []
        for kind in each.types:
            number += 1
            if is_single and each.name not in OF_LIMITS:
                places.append(f"${number}::{SINGLE.get(kind, kind)}")
            else:
                places.append(f"unnest(${number}{CASTS.get(kind, f'::{kind}[]')})")
        rows = f"(SELECT {', '.join(places)} {condition})"
        made.append(f"{each.name} AS ({each.sql.replace(ROWS, rows)})")
    return made


def parameters(kind: Part, rows: Iterable[Sequence[Any]]) -> list[object]:
    """The columns of a part's rows, as its statement takes them."""
    values: list[object] = []
    for name, column in zip(kind.types, zip(*rows, strict=True), strict=True):
        if name in NUMBER_TYPES or name == CODE:
            values.append(numbers(column))
        elif name == LISTS:
            values.append('{"' + '","'.join(column) + '"}')
        elif name == "text":
            values.append(texts(column))
        else:
            values.append(column)
    return values


def single_values(changes: dict[Part, list[Sequence[Any]]]) -> list[object]:
    """The values of parts that have one row each, as a statement for single rows takes them."""
    return [
        value
        for each, rows in changes.items()
        for value in (parameters(each, rows) if each.name in OF_LIMITS else rows[0])
    ]


def numbers(column: Sequence[int]) -> str:
    """Integers, booleans or numbers of enums as an array literal."""
    return f"{{{encode(column)[1:-1].decode()}}}"


def texts(column: Sequence[str | None]) -> str:
    """Texts as an array literal.

    JSON writes quotation marks and backslashes as array literals do, but control characters not.
    """
    written = encode(column)
    if b"\\" in written and b"\\" in written.replace(b"\\\\", b"").replace(b'\\"', b""):
        return "{" + ",".join([quoted(each) for each in column]) + "}"
    return f"{{{written[1:-1].decode()}}}"


def quoted(text: str | None) -> str:
    """A text, or none, as an element of an array literal."""
    if text is None:
        return "null"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
