"""Random sequences of every command: the rules, a naive model and a replay of the entries agree."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from support.books.ledger_machine import LedgerRules

TestLedgerRules = LedgerRules.TestCase
TestLedgerRules.settings = settings(
    max_examples=300,
    stateful_step_count=40,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
