"""Credits per window: what counts, on which side of a boundary, and what clears when."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gpucredits.core.command import AddBoost, SetQuota, Settle
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Boosted, Closed, QuotaSaved
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Counter, Dimension, Quota, spread, window_at
from gpucredits.core.reasons import Reason
from support.books.asking import ALICE, ask
from support.books.ledger import CREDIT, MS, SECOND, Ledger

SCOPES = ["acme", "acme/vision", ALICE]
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
A_WINDOW = 1_200_000


def us(text: str) -> int:
    """Microseconds of an instant that is written in UTC."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


@pytest.fixture(autouse=True)
def noon(ledger: Ledger) -> None:
    """Credits are never what is missing, and it is noon in Greenwich."""
    ledger.now = us("2026-03-28T12:00")
    ledger.grant("acme", 1_000_000 * CREDIT)


def daily(ledger: Ledger, account: str, limit: int, **fields: object) -> int:
    """Set a quota on credits per day; its id."""
    given: dict[str, object] = {"calendar": Calendar.DAY, **fields}
    command = SetQuota(
        account=account,
        dimension=Dimension.CREDITS_PER_WINDOW,
        limit=limit,
        **given,  # type: ignore[arg-type]
    )
    return ledger.accept(command, QuotaSaved).quota.quota_id


def counter(ledger: Ledger, quota: int) -> Counter:
    """What a quota has counted."""
    return ledger.stored.limits.counters[quota]


def tallies(ledger: Ledger, quota: int) -> dict[int, int]:
    """What was spent in each past window."""
    return {row.starts_at: row.used for row in ledger.stored.limits.tallies[quota].values()}


def beat(ledger: Ledger, lease: int, seq: int, used_ms: int) -> BeatResult:
    """A heartbeat that is answered."""
    return ledger.accept(Beat(lease, seq, used_ms), BeatResult)


@pytest.mark.parametrize("scope", SCOPES)
def test_a_window_counts_what_is_spent_and_what_is_held(ledger: Ledger, scope: str) -> None:
    """A second job does not fit beside the use and the hold of the first until the day is over."""
    quota = daily(ledger, scope, 2 * A_WINDOW, zone="Europe/Berlin")
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(s=30)
    beat(ledger, lease, 1, 30_000)
    assert (counter(ledger, quota).used, counter(ledger, quota).held) == (300_000, A_WINDOW)
    refused = ledger.refuse(ask())
    assert refused.reason is Reason.QUOTA_EXCEEDED
    assert refused.message == (
        f"{scope} has taken 1.5 of 2.4 credits, its limit of credits per day (Europe/Berlin), "
        "and 1.2 more are needed. It would clear at 2026-03-28 23:00:00 UTC."
    )
    assert refused.detail["clears_at"] == us("2026-03-28T23:00")
    ledger.accept(Settle(reservation_id=lease), Closed)
    assert (counter(ledger, quota).used, counter(ledger, quota).held) == (300_000, 0)
    ledger.lease(ALICE)


def test_a_renewal_holds_what_still_fits_and_drains_there(ledger: Ledger) -> None:
    """A window that fills up ends the lease where its last micro-credit is used."""
    quota = daily(ledger, "acme", A_WINDOW + 500_000)
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(s=60)
    answer = beat(ledger, lease, 1, 60_000)
    assert (answer.decision, answer.reason) == ("drain", "quota_exceeded")
    assert (answer.held, answer.expires_in_ms) == (1_100_000, 110_000)
    ledger.wait(ms=110_000 - 1)
    last = beat(ledger, lease, 2, 170_000 - 1)
    assert (last.decision, last.expires_in_ms) == ("drain", 1)
    ledger.wait(ms=1)
    assert beat(ledger, lease, 3, 170_000).decision == "stop"
    assert counter(ledger, quota).used <= A_WINDOW + 500_000


def test_a_new_window_lets_a_draining_job_go_on(ledger: Ledger) -> None:
    """The deadline of a full window is lifted by the window that follows."""
    ledger.now = us("2026-03-28T23:59:30")
    daily(ledger, "acme", A_WINDOW + 150_000)
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(s=20)
    assert beat(ledger, lease, 1, 20_000).decision == "drain"
    ledger.wait(s=20)
    assert beat(ledger, lease, 2, 40_000).decision == "continue"


def test_a_slice_over_midnight_counts_on_both_sides(ledger: Ledger) -> None:
    """Ten seconds of a thirty-second slice lie before midnight, and so does a third of its cost."""
    ledger.now = us("2026-03-28T23:59:50")
    quota = daily(ledger, "acme", 100 * CREDIT)
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(s=30)
    beat(ledger, lease, 1, 30_000)
    assert tallies(ledger, quota) == {us("2026-03-28T00:00"): 100_000}
    assert counter(ledger, quota).used == 200_000
    assert counter(ledger, quota).held == A_WINDOW


def test_a_boundary_splits_to_the_micro_credit(ledger: Ledger) -> None:
    """An odd slice is rounded down before midnight, the rest lies after it, nothing is lost."""
    ledger.now = us("2026-03-28T23:59:59") + 999_999
    ledger.price("h100", 35_999_999)
    quota = daily(ledger, "acme", 100 * CREDIT)
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(us=700_001)
    answer = beat(ledger, lease, 1, 700)
    before = answer.settled * 1 // 700_001
    assert (answer.settled, before) == (6_999, 0)
    assert quota not in ledger.stored.limits.tallies
    assert counter(ledger, quota).used == 6_999


def test_a_beat_at_midnight_counts_yesterday(ledger: Ledger) -> None:
    """Windows are half open: a slice that ends at midnight lies before it in full."""
    ledger.now = us("2026-03-28T23:59:30")
    quota = daily(ledger, "acme", 100 * CREDIT)
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(s=30)
    beat(ledger, lease, 1, 30_000)
    assert tallies(ledger, quota) == {us("2026-03-28T00:00"): 300_000}
    assert (counter(ledger, quota).used, counter(ledger, quota).held) == (0, A_WINDOW)


def test_a_slice_over_several_days_counts_in_each(ledger: Ledger) -> None:
    """One slice over three midnights, one of them of a short day, adds up to what was settled."""
    ledger.now = us("2026-03-28T22:00")  # an hour before midnight in Berlin
    quota = daily(ledger, "acme", 10_000 * CREDIT, zone="Europe/Berlin")
    ledger.stored.windows.server_ms = 72 * 3_600_000
    lease = ledger.lease(ALICE, window_ms=24 * 3_600_000, escrow_windows=2).reservation_id
    ledger.wait(s=72 * 3600 - 1)
    answer = beat(ledger, lease, 1, 71 * 3_600_000)
    assert answer.settled == 71 * 36 * CREDIT
    seen = tallies(ledger, quota)
    elapsed = 72 * 3600 - 1
    first = answer.settled * 3600 // elapsed
    second = answer.settled * (24 * 3600) // elapsed
    third = answer.settled * (48 * 3600) // elapsed
    assert seen == {
        us("2026-03-27T23:00"): first,
        us("2026-03-28T23:00"): second - first,
        us("2026-03-29T22:00"): third - second,
    }, "the day of the change is 23 hours long"
    assert sum(seen.values()) + counter(ledger, quota).used == answer.settled


def test_a_lease_at_rest_moves_its_time_on(ledger: Ledger) -> None:
    """Beats of a paused job settle nothing, yet what it uses later lies after them."""
    ledger.now = us("2026-03-28T23:59:00")
    quota = daily(ledger, "acme", 100 * CREDIT)
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(s=90)
    beat(ledger, lease, 1, 0)
    ledger.wait(s=30)
    beat(ledger, lease, 2, 30_000)
    assert counter(ledger, quota).used == 300_000
    assert quota not in ledger.stored.limits.tallies


def test_a_lowered_limit_takes_nothing_that_is_held(ledger: Ledger) -> None:
    """A job under a limit that fell below its use runs to the end of its hold, and no longer."""
    quota = daily(ledger, "acme", 100 * CREDIT)
    lease = ledger.lease(ALICE).reservation_id
    daily(ledger, "acme", 1)
    ledger.wait(s=60)
    answer = beat(ledger, lease, 1, 60_000)
    assert (answer.decision, answer.held, answer.expires_in_ms) == ("drain", 600_000, 60_000)
    assert counter(ledger, quota).used + counter(ledger, quota).held == A_WINDOW


def test_a_boost_that_lapses_between_beats_is_gone(ledger: Ledger) -> None:
    """A renewal at the instant at which a boost ends sees the limit without it."""
    quota = daily(ledger, "acme", A_WINDOW)
    ledger.accept(AddBoost(target_id=quota, amount=CREDIT, ends_at=ledger.now + MINUTE), Boosted)
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(ms=59_999)
    assert beat(ledger, lease, 1, 59_999).decision == "continue"
    ledger.wait(ms=1)
    assert beat(ledger, lease, 2, 60_000).decision == "drain"


def test_a_new_window_quota_starts_from_the_ledger(ledger: Ledger) -> None:
    """What the ledger says was spent today, and what is held now, counts from the first moment."""
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(s=30)
    beat(ledger, lease, 1, 30_000)
    quota = daily(ledger, "acme", 100 * CREDIT, used=300_000)
    assert (counter(ledger, quota).used, counter(ledger, quota).held) == (300_000, A_WINDOW)


def test_a_rolling_window_frees_itself_bit_by_bit(ledger: Ledger) -> None:
    """Spending of an hour ago stops counting a cell at a time, and the refusal knew when."""
    limit = A_WINDOW + 300_000
    quota = daily(ledger, "acme", limit, calendar=None, rolling_hours=1)
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(s=30)
    ledger.wait(ms=1)
    ledger.accept(Settle(reservation_id=lease, used_ms=30_001), Closed)
    refused = ledger.refuse(ask())
    clears = us("2026-03-28T13:01")
    assert refused.detail["clears_at"] == clears
    assert "credits in 1 hour," in refused.message
    ledger.now = clears - 1
    ledger.refuse(ask())
    ledger.now = clears
    ledger.lease(ALICE)
    assert counter(ledger, quota).used == 0


def test_no_stretch_of_a_rolling_window_holds_more_than_its_limit(ledger: Ledger) -> None:
    """A job that beats for three hours under a rolling hour never spends more than that in one."""
    limit = 2 * A_WINDOW
    daily(ledger, "acme", limit, calendar=None, rolling_hours=1)
    spent: list[tuple[int, int]] = []
    lease, seq, used, settled = 0, 0, 0, 0
    for _ in range(3 * 180):
        ledger.wait(s=20)
        if not lease:
            outcome = ledger.do(ask())
            lease = getattr(getattr(outcome, "reservation", None), "reservation_id", 0)
            seq = used = settled = 0
            continue
        seq, used = seq + 1, used + 20_000
        answer = beat(ledger, lease, seq, used)
        spent.append((ledger.now, answer.settled - settled))
        settled = answer.settled
        lease = lease if answer.decision in ("continue", "drain") else 0
    total = sum(amount for _, amount in spent)
    assert total > 2 * limit, "it does get going again"
    for at, _ in spent:
        inside = sum(amount for when, amount in spent if at - HOUR < when <= at)
        assert inside <= limit


SPREADS = {
    "within one window": (10, 0, 100, [10]),
    "half and half": (10, DAY - 50, DAY + 50, [5, 5]),
    "rounded down before, up after": (9, DAY - 50, DAY + 50, [4, 5]),
    "three windows": (7, DAY - 1, 2 * DAY + 1, [0, 6, 1]),
    "ends at the boundary": (10, DAY - 50, DAY, [10]),
    "begins at the boundary": (10, DAY, DAY + 50, [10]),
    "no time at all": (10, DAY, DAY, [10]),
    "nothing": (0, DAY - 50, DAY + 50, [0, 0]),
}


@pytest.mark.parametrize(("due", "since", "now", "parts"), SPREADS.values(), ids=SPREADS.keys())
def test_a_slice_is_spread_evenly(due: int, since: int, now: int, parts: list[int]) -> None:
    """Each window gets its share, rounded down up to each boundary."""
    quota = Quota(1, 1, Dimension.CREDITS_PER_WINDOW, 0, calendar=Calendar.DAY)
    assert [part for _, _, part in spread(quota, due, since, now)] == parts


def test_cells_of_a_rolling_window_are_minutes_for_hours() -> None:
    """A window of n hours moves on in steps of n minutes."""
    quota = Quota(1, 1, Dimension.CREDITS_PER_WINDOW, 0, rolling_hours=5)
    assert window_at(quota, 7 * MINUTE + 3 * MS) == (5 * MINUTE, 10 * MINUTE)
