"""Checking the whole ledger against its rules, while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpucredits.service.reads.verify_answers import broken_answers
from gpucredits.store.database.connection import Pool
from gpucredits.store.ledger.blocks import Head, chain_heads, lost_heads
from gpucredits.store.verify.powers import wrong_functions
from gpucredits.store.verify.rules import (
    CHECKS,
    count_entries,
    offending_rows,
    one_moment,
    wrong_entry_types,
)

__all__ = ["BrokenRule", "Head", "Verification", "verify"]

ROWS_SHOWN_MAX = 20


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A rule that is broken: what it claims, and some of the rows that break it."""

    rule: str
    claim: str
    rows: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked and what was found."""

    rules: tuple[str, ...]
    entries: int
    findings: tuple[BrokenRule, ...]
    heads: tuple[Head, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether every rule holds."""
        return not self.findings


async def verify(pool: Pool, *, exported: Sequence[Head] = ()) -> Verification:
    """Check every rule on one moment of the live database.

    ``exported`` are chain heads of an earlier check: a chain that no longer holds them was cut.
    """
    findings = []
    async with one_moment(pool) as connection:
        for check in CHECKS:
            rows = await offending_rows(connection, check, limit=ROWS_SHOWN_MAX)
            findings.append(BrokenRule(check.name, check.claim, rows))
        claim = "the ledger's view shows entries as the rules mean them"
        findings.append(BrokenRule("entry_types", claim, await wrong_entry_types(connection)))
        claim = "the database's functions are those that this version made"
        findings.append(BrokenRule("functions", claim, await wrong_functions(connection)))
        if exported:
            claim = "every seal that was exported is in its chain as it was"
            lost = await lost_heads(connection, exported, limit=ROWS_SHOWN_MAX)
            findings.append(BrokenRule("chain_heads", claim, lost))
        entries = await count_entries(connection)
        heads = await chain_heads(connection)
        claim = "answers kept for keys can be read, and tell of rows as they are"
        answers = await broken_answers(connection, limit=ROWS_SHOWN_MAX)
        findings.append(BrokenRule("answers", claim, answers))
    rules = tuple(finding.rule for finding in findings)
    broken = tuple(each for each in findings if each.rows)
    return Verification(rules, entries, broken, tuple(heads))
