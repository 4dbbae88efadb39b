"""Budgets: each period's allowance comes by the clock, once, and rolls over as was agreed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gpucredits.core import bounds
from gpucredits.core.account import Model
from gpucredits.core.budget import Rollover
from gpucredits.core.command import EndBudget, Reserve, SetBudget, Sweep
from gpucredits.core.entry import EntryType
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import BudgetSaved, Swept
from gpucredits.core.period import Calendar
from gpucredits.core.reasons import Reason
from support.books.ledger import CREDIT, SECOND, Ledger

HOUR = 3_600 * SECOND
DAY = 24 * HOUR


def us(text: str) -> int:
    """Microseconds of an instant that is written in UTC."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


@pytest.fixture(autouse=True)
def noon(ledger: Ledger) -> None:
    """It is noon in Greenwich, two days before Berlin's clocks go forward."""
    ledger.now = us("2026-03-27T12:00")


def budget(ledger: Ledger, **fields: object) -> BudgetSaved:
    """Ten credits a day for the org unless told."""
    given: dict[str, object] = {"account": "acme", "allowance": 10 * CREDIT}
    given |= {"calendar": Calendar.DAY, **fields}
    return ledger.accept(SetBudget(**given), BudgetSaved)  # type: ignore[arg-type]


def sweep(ledger: Ledger) -> Swept:
    """Let a sweeper write down what is due for the org."""
    return ledger.accept(Sweep(account_id=1), Swept)


def swept_warnings(ledger: Ledger) -> list[int]:
    """The warnings that a sweeper newly writes down."""
    before = warnings(ledger)
    sweep(ledger)
    return [percent for percent in warnings(ledger) if percent not in before]


def warnings(ledger: Ledger) -> list[int]:
    """The last warning of each period."""
    periods = ledger.stored.periods.values()
    return [period.warned_percent for listed in periods for period in listed]


def issued(ledger: Ledger) -> list[int]:
    """When each allowance took effect."""
    return [row.effective_at for row in ledger.entries() if row.type is EntryType.ISSUE]


def test_an_allowance_is_there_at_once_and_again_each_period(ledger: Ledger) -> None:
    """The first period begins now, the next at midnight; each allowance ends with its period."""
    budget(ledger)
    assert ledger.account("acme").available == 10 * CREDIT
    ledger.now = us("2026-03-28T00:00") - 1
    assert ledger.account("acme").available == 10 * CREDIT
    ledger.wait(us=1)
    account = ledger.account("acme")
    assert account.available == 10 * CREDIT, "one ended, one began"
    periods = ledger.view().periods[4]
    assert [(row.starts_at, row.ends_at) for row in periods] == [
        (us("2026-03-27T12:00"), us("2026-03-28T00:00")),
        (us("2026-03-28T00:00"), us("2026-03-29T00:00")),
    ]


def test_missed_periods_are_caught_up_each_at_its_own_start(ledger: Ledger) -> None:
    """After days without a word every allowance was issued and ended at its own instants."""
    budget(ledger, zone="Europe/Berlin")
    ledger.now = us("2026-03-31T12:00")
    sweep(ledger)
    assert issued(ledger) == [
        us("2026-03-27T12:00"),
        us("2026-03-27T23:00"),
        us("2026-03-28T23:00"),
        us("2026-03-29T22:00"),
        us("2026-03-30T22:00"),
    ], "the day of the change has 23 hours"
    expired = [row for row in ledger.entries() if row.type is EntryType.EXPIRE]
    assert [row.effective_at for row in expired] == issued(ledger)[1:]
    assert ledger.account("acme").available == 10 * CREDIT


def test_issuing_is_the_same_whoever_does_it_and_once(ledger: Ledger) -> None:
    """Swept every hour or never, the same allowances exist; a second sweep adds nothing."""
    budget(ledger)
    for _ in range(60):
        ledger.wait(s=3600)
        sweep(ledger)
    swept = issued(ledger)
    assert sweep(ledger).entries == 0
    lazy = Ledger(fresh=ledger.fresh)
    lazy.now = us("2026-03-27T12:00")
    lazy.open("acme")
    budget(lazy)
    lazy.now = ledger.now
    sweep(lazy)
    assert issued(lazy) == swept


def test_an_admission_is_paid_from_an_allowance_that_nobody_issued(ledger: Ledger) -> None:
    """The clock alone makes the allowance true: a request at midnight finds it."""
    budget(ledger, allowance=1_200_000)
    ledger.lease("acme")
    ask = Reserve(account="acme", job_id="b", gpu_type="h100", milli_gpus=1_000)
    refused = ledger.refuse(ask)
    assert refused.detail["clears_at"] == us("2026-03-28T00:00")
    ledger.now = us("2026-03-28T00:00")
    ledger.lease("acme")


ROLLOVERS = {
    "nothing goes on": (Rollover.NONE, 0, 0, 0),
    "all of it goes on": (Rollover.ALL, 0, 10 * CREDIT, us("2026-03-29T00:00")),
    "no more than the cap goes on": (
        Rollover.CAPPED,
        3 * CREDIT,
        3 * CREDIT,
        us("2026-03-29T00:00"),
    ),
    "all that is left of it, below the cap": (
        Rollover.CAPPED,
        30 * CREDIT,
        10 * CREDIT,
        us("2026-03-29T00:00"),
    ),
}


@pytest.mark.parametrize(("policy", "cap", "rolled", "ends"), ROLLOVERS.values(), ids=ROLLOVERS)
def test_what_is_left_rolls_over(
    ledger: Ledger, policy: Rollover, cap: int, rolled: int, ends: int
) -> None:
    """What goes on is a grant of its own that ends with the next period; the rest expires."""
    budget(ledger, rollover=policy, rollover_cap=cap)
    ledger.now = us("2026-03-28T00:00")
    assert ledger.account("acme").available == 10 * CREDIT + rolled
    period = ledger.view().periods[4][0]
    assert period.rolled == rolled
    if rolled:
        lot = ledger.lot(period.rolled_grant_id)
        assert (lot.remaining, lot.expires_at, lot.origin_id) == (rolled, ends, period.grant_id)
    ledger.now = us("2026-03-29T00:00")
    assert ledger.account("acme").available == 10 * CREDIT + rolled, "it rolls once, then ends"


def test_the_rolled_part_may_live_as_long_as_it_is_given(ledger: Ledger) -> None:
    """With a time of its own what rolled over outlives several periods, or only a moment."""
    budget(ledger, rollover=Rollover.ALL, rollover_us=5 * DAY)
    ledger.now = us("2026-03-30T00:00")
    assert ledger.account("acme").available == 40 * CREDIT
    short = budget(ledger, rollover=Rollover.ALL, rollover_us=1)
    assert short.budget.rollover_us == 1
    ledger.now = us("2026-04-08T00:00")
    assert ledger.account("acme").available == 20 * CREDIT, "today's, and yesterday's for a moment"
    ledger.wait(us=1)
    assert ledger.account("acme").available == 10 * CREDIT


def test_a_hold_over_the_end_of_a_period_keeps_its_credits(ledger: Ledger) -> None:
    """What a running job counts on is held over, the rest of the allowance ends."""
    ledger.now = us("2026-03-27T23:59:00")
    budget(ledger, allowance=2_000_000)
    lease = ledger.lease("acme").reservation_id
    ledger.now = us("2026-03-28T00:00")
    account = ledger.account("acme")
    assert (account.available, account.reserved, account.remaining) == (
        *(2_000_000, 1_200_000),
        3_200_000,
    )
    answer = ledger.accept(Beat(lease, 1, 60_000), BeatResult)
    assert answer.decision == "continue"
    assert ledger.account("acme").spent == 600_000


@pytest.mark.parametrize("before", [Rollover.ALL, Rollover.NONE])
def test_the_open_period_keeps_the_terms_it_began_with(ledger: Ledger, before: Rollover) -> None:
    """A change of rollover and calendar in its midst holds for the next period, not for this."""
    after = Rollover.NONE if before is Rollover.ALL else Rollover.ALL
    budget(ledger, rollover=before)
    month = {"calendar": Calendar.MONTH, "allowance": 7 * CREDIT, "rollover": after}
    budget(ledger, **month, rollover_cap=CREDIT, rollover_us=5 * DAY)
    ledger.now = us("2026-03-28T00:00")
    sweep(ledger)
    grants = [(g.remaining, g.expires_at) for g in ledger.stored.grants[1] if g.remaining]
    rolled = [(10 * CREDIT, us("2026-03-29T00:00"))] if before is Rollover.ALL else []
    assert sorted(grants) == [(7 * CREDIT, us("2026-04-01T00:00")), *rolled]
    ledger.now = us("2026-04-01T00:00")
    sweep(ledger)
    grants = [(g.remaining, g.expires_at) for g in ledger.stored.grants[1] if g.remaining]
    rolled = [(7 * CREDIT, us("2026-04-06T00:00"))] if after is Rollover.ALL else []
    assert sorted(grants) == [*rolled, (7 * CREDIT, us("2026-05-01T00:00"))]


def test_rollover_and_holds_share_what_is_left(ledger: Ledger) -> None:
    """A capped rollover with a live hold: nothing is lost that the hold counts on."""
    ledger.now = us("2026-03-27T23:59:00")
    budget(ledger, allowance=2_000_000, rollover=Rollover.CAPPED, rollover_cap=500_000)
    ledger.lease("acme")
    ledger.now = us("2026-03-28T00:00")
    account = ledger.account("acme")
    assert (account.remaining, account.reserved) == (2_000_000 + 1_200_000, 1_200_000)
    assert ledger.view().periods[4][0].rolled == 500_000


def test_an_explicit_period_is_issued_once(ledger: Ledger) -> None:
    """Without a calendar there is one period, which may begin later."""
    starts, ends = us("2026-03-30T00:00"), us("2026-04-02T06:30")
    budget(ledger, calendar=None, starts_at=starts, ends_at=ends)
    assert ledger.account("acme").available == 0
    ledger.now = starts
    assert ledger.account("acme").available == 10 * CREDIT
    ledger.now = ends - 1
    assert ledger.account("acme").available == 10 * CREDIT
    ledger.now = ends
    account = ledger.account("acme")
    assert (account.available, account.due_at) == (0, bounds.NEVER_US)


def test_months_have_their_own_lengths(ledger: Ledger) -> None:
    """A year of months in a zone far ahead, leap day included, is issued month by month."""
    ledger.now = us("2027-12-31T10:00")  # the first of January in Kiritimati
    budget(ledger, calendar=Calendar.MONTH, zone="Pacific/Kiritimati")
    ledger.now = us("2028-06-15T00:00")
    sweep(ledger)
    days = [(b - a) // DAY for a, b in zip(issued(ledger), issued(ledger)[1:], strict=False)]
    assert days == [31, 29, 31, 30, 31]


def test_a_grant_that_ends_as_a_period_begins_makes_way(ledger: Ledger) -> None:
    """Museum 9: at one instant the old ends before the new begins, and a debt is paid once."""
    ledger.open("acme/late", model=Model.POSTPAID, credit_limit=50 * CREDIT)
    ledger.grant("acme/late", 5 * CREDIT, expires_at=us("2026-03-28T00:00"))
    budget(ledger, account="acme/late", starts_at=us("2026-03-28T00:00"))
    ledger.now = us("2026-03-28T00:00")
    account = ledger.account("acme/late")
    assert (account.available, account.remaining) == (10 * CREDIT, 10 * CREDIT)


@pytest.mark.parametrize("after", [timedelta(), timedelta(days=2)], ids=["now", "later"])
def test_the_start_of_a_budget_that_has_not_begun_can_be_corrected(
    ledger: Ledger, after: timedelta
) -> None:
    """A wrong start is put right by setting it again, be it to now, earlier or later."""
    starts_at = ledger.now + int(after.total_seconds()) * SECOND
    for wrong in (us("2030-01-01T00:00"), ledger.now + HOUR):
        budget(ledger, starts_at=wrong)
    assert ledger.account("acme").available == 0
    corrected = budget(ledger, starts_at=starts_at)
    if after:
        assert corrected.budget.next_at == starts_at
        ledger.now = starts_at - 1
        assert ledger.account("acme").available == 0
        ledger.wait(us=1)
    assert ledger.account("acme").available == 10 * CREDIT
    sweep(ledger)
    assert issued(ledger) == [starts_at]


def test_the_start_of_a_budget_stays_unless_another_is_given(ledger: Ledger) -> None:
    """More is allowed before the first period: it begins when it was to begin, with that."""
    starts_at = ledger.now + HOUR
    budget(ledger, starts_at=starts_at)
    assert budget(ledger, allowance=20 * CREDIT).budget.next_at == starts_at
    assert ledger.account("acme").available == 0
    ledger.wait(s=3_600)
    assert ledger.account("acme").available == 20 * CREDIT


def test_a_budget_that_ended_before_it_began_can_begin_now(ledger: Ledger) -> None:
    """It has given nothing, so there is nothing to wait for when it is set again."""
    budget(ledger, starts_at=us("2030-01-01T00:00"))
    ledger.accept(EndBudget(account="acme"), BudgetSaved)
    budget(ledger)
    assert ledger.account("acme").available == 10 * CREDIT


def test_a_start_that_is_given_again_changes_no_period_that_has_begun(ledger: Ledger) -> None:
    """The same command again, a start and all, issues nothing twice."""
    starts_at = ledger.now
    budget(ledger, starts_at=starts_at)
    ledger.wait(s=60)
    assert budget(ledger, starts_at=starts_at).budget.next_at == us("2026-03-28T00:00")
    assert issued(ledger) == [starts_at]


def test_a_change_holds_from_the_next_period_on(ledger: Ledger) -> None:
    """A new allowance, another calendar or another zone leave the open period alone."""
    first = budget(ledger).budget.budget_id
    changed = budget(ledger, allowance=77 * CREDIT, calendar=Calendar.MONTH, zone="Asia/Tokyo")
    assert changed.budget.budget_id == first
    assert ledger.account("acme").available == 10 * CREDIT
    ledger.now = us("2026-03-28T00:00")
    assert ledger.account("acme").available == 77 * CREDIT
    assert ledger.view().periods[first][-1].ends_at == us("2026-03-31T15:00")


def test_an_ended_budget_issues_no_more(ledger: Ledger) -> None:
    """The open period runs to its end; nothing comes after it."""
    budget(ledger)
    ledger.accept(EndBudget(account="acme"), BudgetSaved)
    assert ledger.reason(EndBudget(account="acme")) is Reason.LIMIT_UNKNOWN
    assert ledger.account("acme").available == 10 * CREDIT
    ledger.now = us("2026-04-28T00:00")
    account = ledger.account("acme")
    assert (account.available, account.due_at) == (0, bounds.NEVER_US)
    again = budget(ledger)
    assert again.budget.next_at == us("2026-04-29T00:00")
    assert ledger.account("acme").available == 10 * CREDIT, "begun again now, with no back pay"


def test_several_budgets_stand_side_by_side(ledger: Ledger) -> None:
    """A daily and a monthly allowance of one account are known by their names."""
    budget(ledger, name="daily")
    budget(ledger, name="monthly", allowance=50 * CREDIT, calendar=Calendar.MONTH)
    assert ledger.account("acme").available == 60 * CREDIT
    ledger.now = us("2026-03-28T00:00")
    assert ledger.account("acme").available == 60 * CREDIT


def test_warnings_are_told_once_each_period(ledger: Ledger) -> None:
    """Each threshold is reported when it is reached, the highest of several, and never again."""
    budget(ledger, allowance=2_400_000, warn_percent=(50, 80, 100))
    lease = ledger.lease("acme").reservation_id
    assert swept_warnings(ledger) == []
    for seq, (used_ms, told) in enumerate([(110_000, []), (120_000, [50]), (230_000, [80])], 1):
        ledger.now = us("2026-03-27T12:00") + used_ms * 1_000
        ledger.accept(Beat(lease, seq, used_ms), BeatResult)
        assert swept_warnings(ledger) == told
        assert swept_warnings(ledger) == []


WRONG = {
    "no calendar and no end": ({"calendar": None}, Reason.LIMIT_INVALID),
    "rolls over without a calendar or a time": (
        {"calendar": None, "ends_at": us("2027-01-01T00:00"), "rollover": Rollover.ALL},
        Reason.LIMIT_INVALID,
    ),
    "ends before it begins": ({"ends_at": us("2026-03-27T12:00")}, Reason.WINDOW_ENDED),
    "a zone that is none": ({"zone": "Nowhere"}, Reason.ZONE_UNKNOWN),
    "nobody's": ({"account": "nobody"}, Reason.ACCOUNT_UNKNOWN),
}


@pytest.mark.parametrize(("fields", "reason"), WRONG.values(), ids=WRONG.keys())
def test_a_budget_that_makes_no_sense_is_refused(
    ledger: Ledger, fields: dict[str, object], reason: Reason
) -> None:
    """Each is refused for what is wrong with it."""
    given: dict[str, object] = {"account": "acme", "allowance": 1, "calendar": Calendar.DAY}
    assert ledger.reason(SetBudget(**given | fields)) is reason  # type: ignore[arg-type]
