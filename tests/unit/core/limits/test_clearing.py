"""What a refusal says about when it clears comes true: the same request passes at that instant."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucredits.core.budget import Rollover
from gpucredits.core.command import AddBoost, SetBudget, SetQuota, SetRateLimit, Settle
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Boosted, BudgetSaved, Closed, QuotaSaved, RateLimitSaved
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Refused
from gpucredits.core.reservation import Decision
from support.books.asking import ALICE, ask
from support.books.ledger import CREDIT, SECOND, START, Ledger

DAY = 86_400 * SECOND
MIDNIGHT = START - START % DAY + DAY
A_WINDOW = 1_200_000  # what one GPU holds


def clears_at(ledger: Ledger, gpus: int) -> int | None:
    """When the refusal of so many GPUs says that it clears."""
    at = ledger.refuse(ask(milli_gpus=1_000 * gpus)).detail.get("clears_at")
    assert at is None or isinstance(at, int)
    return at


def budget(ledger: Ledger, allowance: int, rollover: Rollover, cap: int = 0) -> None:
    """A daily allowance of the org that begins now."""
    command = SetBudget(
        account="acme",
        allowance=allowance,
        calendar=Calendar.DAY,
        rollover=rollover,
        rollover_cap=cap,
    )
    ledger.accept(command, BudgetSaved)


def test_what_ends_with_a_period_is_not_there_in_the_next(ledger: Ledger) -> None:
    """The rest of an allowance expires with its period, so the next one alone must be enough."""
    budget(ledger, 3 * A_WINDOW, Rollover.NONE)
    ledger.lease("acme", job_id="runs")
    assert clears_at(ledger, 3) == MIDNIGHT
    assert clears_at(ledger, 4) is None  # 2 are left and 3 come, and never are there 4
    ledger.now = MIDNIGHT
    assert clears_at(ledger, 4) is None


@pytest.mark.parametrize(
    ("rollover", "cap", "most"), [(Rollover.ALL, 0, 6), (Rollover.CAPPED, 1, 4)]
)
def test_what_rolls_over_joins_the_next_allowance(
    ledger: Ledger, rollover: Rollover, cap: int, most: int
) -> None:
    """What goes on is there in the next period, and no more than that."""
    budget(ledger, 3 * A_WINDOW, rollover, cap * A_WINDOW)
    assert clears_at(ledger, most) == MIDNIGHT
    assert clears_at(ledger, most + 1) is None
    ledger.now = MIDNIGHT
    ledger.lease("acme", milli_gpus=1_000 * most)


def test_grants_that_never_meet_are_never_added_up(ledger: Ledger) -> None:
    """Credits that end before others start do not help them."""
    ledger.grant("acme", A_WINDOW, expires_at=START + 10 * SECOND)
    ledger.grant("acme", A_WINDOW, starts_at=START + 20 * SECOND, expires_at=START + 30 * SECOND)
    ledger.grant("acme", A_WINDOW, starts_at=START + 40 * SECOND)
    assert clears_at(ledger, 2) is None
    ledger.grant("acme", A_WINDOW, starts_at=START + 25 * SECOND, expires_at=START + 29 * SECOND)
    assert clears_at(ledger, 2) == START + 25 * SECOND


def test_a_hold_keeps_what_it_needs_of_a_grant_that_ends(ledger: Ledger) -> None:
    """At the end of a grant its free part goes; the next grant is wholly free."""
    ledger.grant("acme", 2 * A_WINDOW, expires_at=START + 50 * SECOND)
    ledger.lease("acme", job_id="runs")
    ledger.grant("acme", 2 * A_WINDOW, starts_at=START + 60 * SECOND)
    assert clears_at(ledger, 2) == START + 60 * SECOND
    assert clears_at(ledger, 3) is None
    ledger.now = START + 60 * SECOND
    ledger.lease("acme", milli_gpus=2_000)


def test_a_boost_that_ends_too_soon_does_not_refill(ledger: Ledger) -> None:
    """Tokens come at the boosted rate while the boost lasts, and must fit when they are there."""
    ledger.grant("acme", 100 * CREDIT)
    rate = SetRateLimit(account="acme", capacity=A_WINDOW, refill_per_hour=A_WINDOW)
    bucket = ledger.accept(rate, RateLimitSaved).bucket.bucket_id
    boost = AddBoost(
        target_id=bucket,
        amount=2 * A_WINDOW,
        refill_per_hour=59 * A_WINDOW,
        starts_at=START,
        ends_at=START + 90 * SECOND,
    )
    ledger.accept(boost, Boosted)
    assert clears_at(ledger, 2) == START + 60 * SECOND
    assert clears_at(ledger, 3) is None  # it would be there after 120 s, when the boost has ended
    refused = ledger.refuse(ask(milli_gpus=3_000))
    assert "clears_in_ms" not in refused.detail
    assert refused.message.endswith("ends, or when the limit is raised.")


def test_a_boost_to_come_lets_in_what_would_never_pass(ledger: Ledger) -> None:
    """A request above the limit is not told that it never clears while a raise is on its way."""
    ledger.grant("acme", 100 * CREDIT)
    rate = SetRateLimit(account="acme", capacity=A_WINDOW, refill_per_hour=3_600 * A_WINDOW)
    gpus = SetQuota(account="acme", dimension=Dimension.CONCURRENT_GPUS, limit=1_000)
    targets = (
        ledger.accept(rate, RateLimitSaved).bucket.bucket_id,
        ledger.accept(gpus, QuotaSaved).quota.quota_id,
    )
    for target, amount, starts in zip(targets, (A_WINDOW, 1_000), (50, 70), strict=True):
        boost = AddBoost(
            target_id=target,
            amount=amount,
            starts_at=START + starts * SECOND,
            ends_at=START + 100 * SECOND,
        )
        ledger.accept(boost, Boosted)
    refused = ledger.refuse(ask(milli_gpus=2_000))
    assert "never" not in refused.message
    told = [report.clears_at for report in refused.reports if not report.passes]
    assert told == [START + 70 * SECOND, START + 51 * SECOND]
    ledger.now = START + 70 * SECOND
    ledger.lease(ALICE, milli_gpus=2_000)


def test_a_boost_and_the_end_of_running_work_let_a_request_in(ledger: Ledger) -> None:
    """Neither alone is enough, so no instant is known; yet waiting is not said to be useless."""
    ledger.grant("acme", 100 * CREDIT)
    quota = SetQuota(account="acme", dimension=Dimension.CONCURRENT_GPUS, limit=4_000)
    target = ledger.accept(quota, QuotaSaved).quota.quota_id
    runs = ledger.lease(ALICE, job_id="runs", milli_gpus=4_000).reservation_id
    starts, ends = START + 50 * SECOND, START + 90 * SECOND
    boost = AddBoost(target_id=target, amount=4_000, starts_at=starts, ends_at=ends)
    ledger.accept(boost, Boosted)

    def never(gpus: int) -> str | None:
        refused = ledger.refuse(ask(milli_gpus=1_000 * gpus))
        [report] = [each for each in refused.reports if not each.passes]
        assert report.clears_at is None
        assert ("never" in refused.message) is (report.never_because is not None)
        return report.never_because

    assert never(6) is None
    assert never(9) == "the request alone is over the limit"
    ledger.now = START + 60 * SECOND
    ledger.accept(Settle(reservation_id=runs, used_ms=60_000), Closed)
    ledger.lease(ALICE, milli_gpus=6_000)


def test_a_throttled_job_is_not_told_of_tokens_that_never_come(ledger: Ledger) -> None:
    """A node hears when its lease can be renewed in full, the end of a boost counted in."""
    ledger.grant("acme", 100 * CREDIT)
    rate = SetRateLimit(account="acme", capacity=A_WINDOW, refill_per_hour=3_600)
    bucket = ledger.accept(rate, RateLimitSaved).bucket.bucket_id
    lease = ledger.lease(ALICE).reservation_id
    boost = AddBoost(
        target_id=bucket,
        amount=1,
        refill_per_hour=18 * CREDIT,
        starts_at=START,
        ends_at=START + 50 * SECOND,
    )
    ledger.accept(boost, Boosted)
    ledger.wait(s=30)
    told = ledger.accept(Beat(lease, seq=1, used_ms=30_000), BeatResult)
    assert told.decision is Decision.THROTTLE
    missing = 300_000 - 30 * 5_001 - 20 * 5_001  # once the boost has ended, at one a second
    assert told.clears_in_ms == 20_000 + missing * 1_000


WHEN = st.integers(0, 20)


@st.composite
def comings(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Grants as (credits in tenths of a window, start, end)."""
    found = []
    for _ in range(draw(st.integers(1, 5))):
        starts = draw(WHEN)
        found.append((draw(st.integers(1, 30)), starts, starts + draw(st.integers(1, 12))))
    return found


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    grants=comings(),
    allowance=st.integers(0, 30),
    rollover=st.sampled_from(Rollover),
    gpus=st.integers(1, 5),
    runs=st.booleans(),
)
def test_an_instant_that_is_named_comes_true(
    grants: list[tuple[int, int, int]], allowance: int, rollover: Rollover, gpus: int, runs: bool
) -> None:
    """Whatever starts and ends: the request passes when it was said to, and not a moment before."""
    ledger = Ledger()
    ledger.open("acme")
    ledger.price("h100", 36 * CREDIT)
    slot = DAY // 8
    if allowance:
        budget(ledger, allowance * A_WINDOW // 10, rollover, A_WINDOW)
    for tenths, starts, ends in grants:
        amount = tenths * A_WINDOW // 10
        ledger.grant(
            "acme", amount, starts_at=START + starts * slot, expires_at=START + ends * slot
        )
    if runs and ledger.stored.paths["acme"].spendable >= A_WINDOW:
        ledger.lease("acme", job_id="runs")
    outcome = ledger.do(ask("acme", milli_gpus=1_000 * gpus))
    if not isinstance(outcome, Refused) or "clears_at" not in outcome.detail:
        return
    at = outcome.detail["clears_at"]
    assert isinstance(at, int)
    ledger.now = at - 1
    assert runs or isinstance(ledger.do(ask("acme", milli_gpus=1_000 * gpus)), Refused)
    ledger.now = at
    assert not isinstance(ledger.do(ask("acme", milli_gpus=1_000 * gpus)), Refused)
