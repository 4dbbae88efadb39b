"""The condition under which a statement saves: the rows that were decided on are the present ones.

Owns: locking the orgs, comparing their versions and the time, all inside the statement that writes.
Must not: decide what happens when it is not so (whoever saves does).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from gpucredits.store.book.cached_book import CachedBooks
from gpucredits.store.book.codecs import StoredRow
from gpucredits.store.book.sql_batch import Part, numbers, texts_of

PARAMETERS = 9
IF_IT_HOLDS = "FROM checked WHERE holds"
# An equal version says that nothing of the org has changed since its book was read or written, so
# the statement's snapshot, which is older than the lock, is the present. A book that was not read
# just now ($3) also needs the same test clock, and nothing due that would have been read. What was
# decided more than five seconds ago ($4), or before a price was added ($5), or gives a job another
# lease on a node where it may have one ($6 to $9), is decided again.
CHECKED = """locked AS MATERIALIZED (
    SELECT o.org_id, o.version, o.clock, o.gated FROM orgs o
    WHERE o.org_id = ANY ($1::text::integer[]) ORDER BY o.org_id FOR NO KEY UPDATE
), versions AS MATERIALIZED (
    SELECT array_agg(l.version) AS found, count(*) FILTER (WHERE $3::bigint IS NOT NULL
        AND l.gated AND EXISTS (SELECT FROM accounts a
            WHERE a.org_id = l.org_id AND a.due_at <= greatest($4::bigint, l.clock))) AS due
    FROM locked l
), moment AS MATERIALIZED (
    SELECT ledger_now() AS now, c.offset_us, v.found, v.due FROM versions v CROSS JOIN clock c
), checked AS MATERIALIZED (
    SELECT m.found = $2::text::bigint[] AND m.due = 0 AND coalesce(m.offset_us = $3, true)
        AND m.now - $4 BETWEEN 0 AND 5000000
        AND ($5::bigint IS NULL OR (SELECT o.version FROM orgs o WHERE o.org_id = 0) = $5)
        AND NOT EXISTS (SELECT FROM unnest($6::text::integer[], $7::text::bigint[], $8::text[],
            $9::text[]) AS n(org_id, account_id, job_id, node)
            CROSS JOIN LATERAL (SELECT FROM reservations r WHERE r.org_id + 0 = n.org_id
                AND r.account_id = n.account_id AND r.job_id = n.job_id AND r.state = 0
                AND r.node = n.node OFFSET 0) AS taken)
        AS holds, m.now, m.offset_us, m.found
    FROM moment m
)"""
VERDICT = "SELECT holds, now, offset_us, found FROM checked"


NodeOfJob = tuple[int, int, str, str]


@dataclass(frozen=True, slots=True)
class Guard:
    """What has to be so: versions of orgs, the time, and what was known without reading.

    That is the test clock where the time was guessed, the version of prices that were kept, and
    (org, account, job, node) of new leases where nobody has looked for others.
    """

    orgs: tuple[int, ...]
    versions: tuple[int, ...]
    now: int
    offset_us: int | None = None
    prices: int | None = None
    nodes: tuple[NodeOfJob, ...] = ()

    @property
    def parameters(self) -> tuple[object, ...]:
        """What a guarded statement takes first."""
        orgs, accounts, jobs, nodes = zip(*self.nodes, strict=True) if self.nodes else ((),) * 4
        kept = (numbers(self.orgs), numbers(self.versions), self.offset_us, self.now, self.prices)
        return (*kept, numbers(orgs), numbers(accounts), jobs, nodes)


@dataclass(frozen=True, slots=True)
class GuardResult:
    """Whether it was so, what time it was, and the orgs that were changed by others."""

    holds: bool
    now: int = 0
    offset_us: int | None = None  # None: not told
    changed: tuple[int, ...] = ()


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
def guarded_statement(parts: tuple[Part, ...]) -> str:
    """The text that makes all the changes if a condition holds, and says whether it did."""
    texts = texts_of(parts, IF_IT_HOLDS, PARAMETERS)
    return f"WITH {', '.join((CHECKED, *texts))} {VERDICT}"
