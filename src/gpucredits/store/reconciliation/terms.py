"""Policies of the reconciler and terms of lost work at rest, by account.

Owns: the rows of reconcile_policies and loss_terms.
Must not: say which of them governs an account (core does).
"""

from __future__ import annotations

from gpucredits.core.reconciliation.comparison import Mode, ReconcilePolicy
from gpucredits.core.reconciliation.lost_work import LossTerms
from gpucredits.store.database.org_rows import TermsByAccount


def _policy(mode: int, **terms: int) -> ReconcilePolicy:
    return ReconcilePolicy(Mode(mode), **terms)


POLICIES = TermsByAccount("reconcile_policies", ReconcilePolicy, _policy)
LOSS_TERMS = TermsByAccount("loss_terms", LossTerms, LossTerms)
