"""Bounds that were set from above are ended, raised, replaced and boosted from above only."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpucredits.core.account import Status
from gpucredits.core.authority import Authority, authority_of
from gpucredits.core.command import (
    AddBoost,
    EndBoost,
    EndQuota,
    EndRateLimit,
    ReplaceQuotas,
    Reserve,
    SetQuota,
    SetRateLimit,
    UpdateAccount,
)
from gpucredits.core.outcome import (
    AccountSaved,
    Boosted,
    QuotaSaved,
    QuotasReplaced,
    RateLimitSaved,
    Reserved,
)
from gpucredits.core.quota import Dimension, Quota
from gpucredits.core.reasons import Reason
from support.books.ledger import CREDIT, SECOND, Ledger

PROJECT = "acme/vision"
SYSTEM, ORG = Authority.SYSTEM, Authority.ORG


def gpus(limit: int, by: Authority, gpu_type: str = "") -> SetQuota:
    """A quota on GPUs of the project."""
    dimension, milli = Dimension.CONCURRENT_GPUS, 1_000 * limit
    return SetQuota(account=PROJECT, dimension=dimension, limit=milli, gpu_type=gpu_type, by=by)


@pytest.fixture
def ledger() -> Ledger:
    """A project that can pay."""
    ledger = Ledger()
    ledger.price("h100", 36 * CREDIT)
    ledger.open("acme")
    ledger.open(PROJECT)
    ledger.grant(PROJECT, 1_000 * CREDIT)
    return ledger


def quota(ledger: Ledger, limit: int, by: Authority, gpu_type: str = "") -> Quota:
    """Set a quota that must be set."""
    return ledger.accept(gpus(limit, by, gpu_type), QuotaSaved).quota


def rate(capacity: int, by: Authority) -> SetRateLimit:
    """A rate limit of the project that hardly refills."""
    return SetRateLimit(account=PROJECT, capacity=capacity, refill_per_hour=CREDIT, by=by)


def reserve(count: int) -> Reserve:
    """A job of the project."""
    return Reserve(
        account=PROJECT, job_id=f"job-{count}", gpu_type="h100", milli_gpus=1_000 * count
    )


def test_the_scope_of_a_key_is_its_authority() -> None:
    """The whole system, then an org, a project, a user."""
    scopes = ("", "acme", "acme/vision", "acme/vision/alice")
    assert tuple(authority_of(scope) for scope in scopes) == tuple(Authority)


def test_a_quota_from_above_is_not_ended_from_below(ledger: Ledger) -> None:
    """The refusal says who set the quota; the scope that set it ends it."""
    above = quota(ledger, 4, SYSTEM)
    refused = ledger.refuse(EndQuota(quota_id=above.quota_id, by=ORG))
    assert refused.reason is Reason.LIMIT_SET_ABOVE
    assert refused.detail["set_by_scope"] == "system"
    assert refused.detail["key_scope"] == "org"
    assert "set at system scope" in refused.message
    ledger.accept(EndQuota(quota_id=above.quota_id, by=SYSTEM), QuotaSaved)


def test_a_quota_from_above_is_lowered_by_one_of_ones_own(ledger: Ledger) -> None:
    """Both hold: the lower one binds, and ending it leaves the other."""
    above = quota(ledger, 4, SYSTEM)
    own = quota(ledger, 2, ORG)
    assert own.quota_id != above.quota_id
    assert (own.set_by, above.set_by) == (ORG, SYSTEM)
    assert ledger.reason(reserve(3)) is Reason.QUOTA_EXCEEDED
    assert quota(ledger, 3, ORG).quota_id == own.quota_id
    ledger.accept(reserve(3), Reserved)
    ledger.accept(EndQuota(quota_id=own.quota_id, by=ORG), QuotaSaved)
    assert ledger.reason(reserve(2)) is Reason.QUOTA_EXCEEDED
    ledger.accept(reserve(1), Reserved)


def test_a_quota_from_above_is_not_raised_from_below(ledger: Ledger) -> None:
    """More than the quota above allows is refused; with a boost from above, so much more is not."""
    above = quota(ledger, 4, SYSTEM)
    refused = ledger.refuse(gpus(5, ORG))
    assert refused.reason is Reason.LIMIT_SET_ABOVE
    assert "4 or less" in refused.message
    ends_at = ledger.now + 60 * SECOND
    ledger.accept(AddBoost(target_id=above.quota_id, amount=1_000, ends_at=ends_at), Boosted)
    quota(ledger, 5, ORG)
    assert ledger.reason(gpus(6, ORG)) is Reason.LIMIT_SET_ABOVE


def test_who_stands_above_takes_a_quota_over(ledger: Ledger) -> None:
    """The limit from above holds from then on, and is no longer lifted from below."""
    own = quota(ledger, 2, ORG)
    taken = quota(ledger, 6, SYSTEM)
    assert (taken.quota_id, taken.set_by) == (own.quota_id, SYSTEM)
    ledger.accept(reserve(6), Reserved)
    assert ledger.reason(EndQuota(quota_id=own.quota_id, by=ORG)) is Reason.LIMIT_SET_ABOVE


def test_boosts_from_below_end_with_a_takeover(ledger: Ledger) -> None:
    """Nobody raises in advance what a wider scope will set: not a quota, and not a rate limit."""
    ends_at = ledger.now + 1_000_000 * SECOND
    own = quota(ledger, 2, ORG)
    bucket = ledger.accept(rate(CREDIT, ORG), RateLimitSaved).bucket
    for target, amount in ((own.quota_id, 50_000), (bucket.bucket_id, 500 * CREDIT)):
        boost = AddBoost(
            target_id=target,
            amount=amount,
            refill_per_hour=0 if target == own.quota_id else 3_600_000 * CREDIT,
            ends_at=ends_at,
            by=ORG,
        )
        ledger.accept(boost, Boosted)
    ledger.wait(s=60)
    ledger.accept(reserve(10), Reserved)
    quota(ledger, 12, SYSTEM)
    ledger.accept(rate(2 * CREDIT, SYSTEM), RateLimitSaved)
    ledger.wait(s=60)
    refused = ledger.refuse(reserve(3))
    assert refused.reason is Reason.QUOTA_EXCEEDED
    failing = [(each.name, each.limit) for each in refused.reports if not each.passes]
    assert failing == [("concurrent GPUs", 12_000), ("rate limit", 2 * CREDIT)]
    assert ledger.reason(reserve(2)) is Reason.RATE_LIMITED
    ledger.accept(reserve(1), Reserved)
    raised = AddBoost(target_id=own.quota_id, amount=9_000, ends_at=ends_at, by=SYSTEM)
    ledger.accept(raised, Boosted)
    assert ledger.reason(reserve(9)) is Reason.RATE_LIMITED


def test_a_change_from_above_leaves_the_lower_quota_of_those_below(ledger: Ledger) -> None:
    """System staff who raise their own quota do not lift what the org set for itself."""
    quota(ledger, 4, SYSTEM)
    quota(ledger, 2, ORG)
    quota(ledger, 8, SYSTEM)
    assert ledger.reason(reserve(3)) is Reason.QUOTA_EXCEEDED


def test_replacing_from_below_keeps_what_is_from_above(ledger: Ledger) -> None:
    """An empty list ends one's own quotas only, and the answer shows those that stay."""
    above = quota(ledger, 4, SYSTEM)
    own, other = quota(ledger, 3, ORG), quota(ledger, 2, ORG, "h100")
    new = gpus(1, ORG, "a100")
    done = ledger.accept(ReplaceQuotas(account=PROJECT, quotas=(new,), by=ORG), QuotasReplaced)
    assert {each.quota_id for each in done.ended} == {own.quota_id, other.quota_id}
    assert [(each.limit, each.set_by) for each in done.quotas] == [(4_000, SYSTEM), (1_000, ORG)]
    assert done.quotas[0].quota_id == above.quota_id
    assert ledger.reason(reserve(5)) is Reason.QUOTA_EXCEEDED
    higher = ReplaceQuotas(account=PROJECT, quotas=(gpus(9, ORG),), by=ORG)
    assert ledger.reason(higher) is Reason.LIMIT_SET_ABOVE
    every = ReplaceQuotas(account=PROJECT, quotas=(), by=SYSTEM)
    assert len(ledger.accept(every, QuotasReplaced).ended) == 2


def test_a_rate_limit_from_above_is_neither_ended_nor_set_from_below(ledger: Ledger) -> None:
    """An account has one: the refusal says what to do instead. From above it is taken over."""
    terms = SetRateLimit(account=PROJECT, capacity=10 * CREDIT, refill_per_hour=CREDIT, by=ORG)
    assert ledger.accept(terms, RateLimitSaved).bucket.set_by is ORG
    from_above = replace(terms, by=SYSTEM)
    assert ledger.accept(from_above, RateLimitSaved).bucket.set_by is SYSTEM
    for command in (replace(terms, capacity=CREDIT), EndRateLimit(account=PROJECT, by=ORG)):
        refused = ledger.refuse(command)
        assert refused.reason is Reason.LIMIT_SET_ABOVE
        assert "set a quota" in refused.message
    ledger.accept(EndRateLimit(account=PROJECT, by=SYSTEM), RateLimitSaved)
    ledger.accept(terms, RateLimitSaved)


def test_a_bound_from_above_is_not_boosted_from_below(ledger: Ledger) -> None:
    """One's own quota is; a boost from above is ended from above only."""
    above, own = quota(ledger, 4, SYSTEM), quota(ledger, 2, ORG)
    boost = AddBoost(target_id=above.quota_id, amount=1_000, ends_at=ledger.now + SECOND, by=ORG)
    assert ledger.reason(boost) is Reason.LIMIT_SET_ABOVE
    ledger.accept(replace(boost, target_id=own.quota_id), Boosted)
    given = ledger.accept(replace(boost, target_id=own.quota_id, by=SYSTEM), Boosted).boost
    end = EndBoost(target_id=own.quota_id, boost_id=given.boost_id, by=ORG)
    assert ledger.reason(end) is Reason.LIMIT_SET_ABOVE
    ledger.accept(replace(end, by=SYSTEM), Boosted)


def status(new: Status, by: Authority) -> UpdateAccount:
    """Suspend or resume the project."""
    return UpdateAccount(path=PROJECT, status=new, by=by)


def test_a_suspension_from_above_is_lifted_from_above_only(ledger: Ledger) -> None:
    """The wider of two suspensions stands, whichever came first, until its own scope resumes."""
    for order in ((SYSTEM, ORG), (ORG, SYSTEM)):
        for by in order:
            ledger.accept(status(Status.SUSPENDED, by), AccountSaved)
        refused = ledger.refuse(status(Status.ACTIVE, ORG))
        assert refused.reason is Reason.LIMIT_SET_ABOVE
        assert (refused.detail["set_by_scope"], refused.detail["key_scope"]) == ("system", "org")
        assert ledger.reason(reserve(1)) is Reason.ACCOUNT_SUSPENDED
        ledger.accept(status(Status.ACTIVE, SYSTEM), AccountSaved)
        ledger.accept(reserve(1), Reserved)
        ledger.wait(s=601)


def test_a_suspension_is_lifted_by_its_own_scope_and_by_wider_ones(ledger: Ledger) -> None:
    """What an org has suspended the org or the system resumes; a later one counts anew."""
    for by in (ORG, SYSTEM):
        suspended = ledger.accept(status(Status.SUSPENDED, ORG), AccountSaved)
        assert suspended.account.suspended_by is ORG
        ledger.accept(status(Status.ACTIVE, by), AccountSaved)
    ledger.accept(status(Status.ACTIVE, Authority.PROJECT), AccountSaved)  # it is active: no change
