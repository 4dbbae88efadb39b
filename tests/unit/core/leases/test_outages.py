"""Outages, the grace after them, leases extended for a maintenance, and exposure."""

from __future__ import annotations

from gpucredits.core import command as commands
from gpucredits.core.command import Settle, StopLease, Sweep
from gpucredits.core.entry import EntryType
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Closed, QuotaSaved, RateLimitSaved, Stopping, Swept
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reservation import Decision, ReservationState
from gpucredits.core.rules.leases.exposure import Exposure, exposure_of, sum_of
from support.books.ledger import CREDIT, SECOND, Ledger

A_WINDOW = 1_200_000
LIVE, EXPIRED = ReservationState.ACTIVE, ReservationState.EXPIRED


def beat(ledger: Ledger, lease: int, seq: int, used_ms: int) -> BeatResult:
    """A heartbeat that is answered."""
    return ledger.accept(Beat(lease, seq, used_ms), BeatResult)


def sweep(ledger: Ledger, path: str = "acme") -> None:
    """Write down what the clock has made true."""
    ledger.accept(Sweep(account_id=ledger.stored.paths[path].account_id), Swept)


def test_a_lease_that_was_live_may_report_after_an_outage(ledger: Ledger) -> None:
    """Five windows away: what the job used is charged, and its lease goes on."""
    ledger.grant("acme", 100 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=60)
    ledger.away(s=600)
    sweep(ledger)
    assert ledger.reservation(lease).state is LIVE
    ledger.wait(s=119)
    answer = beat(ledger, lease, 1, 779_000)
    assert (answer.decision, answer.settled) == (Decision.CONTINUE, 7_790_000)
    assert (answer.held, answer.expires_in_ms) == (A_WINDOW, 120_000)
    row = ledger.reservation(lease)
    assert (row.reprieve_ms, row.beat_at) == (0, ledger.now)


def test_without_an_outage_the_same_lease_has_lapsed(ledger: Ledger) -> None:
    """The control: a server that lived hears nothing for as long, and the lease is over."""
    ledger.grant("acme", 100 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=779)
    assert beat(ledger, lease, 1, 779_000).decision is Decision.STOP
    assert ledger.reservation(lease).settled == A_WINDOW


def test_the_grace_is_a_window_at_most_and_then_over(ledger: Ledger) -> None:
    """A silent lease holds its credits for one window of its own after the return."""
    ledger.grant("acme", 100 * CREDIT)
    lease = ledger.lease("acme", window_ms=10_000).reservation_id
    ledger.away(s=300)
    back = ledger.now
    ledger.wait(ms=9_999)
    sweep(ledger)
    assert ledger.reservation(lease).state is LIVE
    assert ledger.account("acme").due_at == back + 10 * SECOND
    ledger.wait(ms=1)
    sweep(ledger)
    row = ledger.reservation(lease)
    assert (row.state, row.ended_at) == (EXPIRED, back + 10 * SECOND)
    assert ledger.account("acme").reserved == 0
    beat(ledger, lease, 1, 5_000)
    assert ledger.reservation(lease).settled == 50_000, "late use is charged within the hold"
    beat(ledger, lease, 2, 305_000)
    assert ledger.reservation(lease).settled == 100_000


def test_the_grace_never_exceeds_what_the_server_gives(ledger: Ledger) -> None:
    """A grace of nothing leaves everything as if there had been no outage."""
    ledger.grant("acme", 100 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.away(s=300, grace_ms=0)
    end = ledger.stored.reservations[lease].expires_at
    sweep(ledger)
    row = ledger.reservation(lease)
    assert (row.state, row.ended_at) == (EXPIRED, end)


def test_a_lease_that_had_ended_before_stays_ended(ledger: Ledger) -> None:
    """Only leases that were live when the last sign of life was given have a grace."""
    ledger.grant("acme", 100 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=120)
    ledger.away(s=300)
    sweep(ledger)
    assert ledger.reservation(lease).state is EXPIRED


def test_a_report_after_the_return_ends_the_grace(ledger: Ledger) -> None:
    """Once heard, a lease ends one window after its report like any other."""
    ledger.grant("acme", 100 * CREDIT)
    lease = ledger.lease("acme", window_ms=10_000).reservation_id
    ledger.away(s=300)
    beat(ledger, lease, 1, 9_000)
    ledger.wait(s=10)
    sweep(ledger)
    row = ledger.reservation(lease)
    assert (row.state, row.ended_at) == (EXPIRED, ledger.now)


def test_two_outages_in_a_row_count_both(ledger: Ledger) -> None:
    """Who lived by the grace of the first was live when the second began."""
    ledger.grant("acme", 100 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.away(s=300)
    ledger.wait(s=2)
    ledger.away(s=300)
    answer = beat(ledger, lease, 1, 602_000)
    assert (answer.decision, answer.settled) == (Decision.CONTINUE, 6_020_000)


def test_use_in_the_grace_is_charged_as_far_as_it_is_funded(ledger: Ledger) -> None:
    """A job that overspent is stopped: what nobody can pay for is not charged."""
    ledger.grant("acme", 2 * A_WINDOW)
    lease = ledger.lease("acme").reservation_id
    ledger.away(s=600)
    answer = beat(ledger, lease, 1, 600_000)
    assert (answer.decision, answer.settled) == (Decision.STOP, 2 * A_WINDOW)
    assert answer.flagged == "used_ms_beyond_authorised"
    assert ledger.account("acme").available == 0


def test_a_stop_that_no_node_could_hear_of_is_billed_to_the_report(ledger: Ledger) -> None:
    """The deadline passed during the outage; the job hears it with its first report."""
    ledger.grant("acme", 100 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.accept(StopLease(reservation_id=lease, grace_ms=30_000, stopping_for=7), Stopping)
    ledger.away(s=90)
    answer = beat(ledger, lease, 1, 90_000)
    assert (answer.decision, answer.settled) == (Decision.STOP, 900_000)
    row = ledger.reservation(lease)
    assert (row.state, row.ended_at) == (EXPIRED, ledger.now)


def test_a_duplicate_gives_no_time_to_run(ledger: Ledger) -> None:
    """An outage gives time to report; the trust of a node is what its credits pay for."""
    ledger.grant("acme", 100 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=1)
    beat(ledger, lease, 1, 1_000)
    ledger.away(s=300)
    again = beat(ledger, lease, 1, 1_000)
    assert (again.duplicate, again.expires_in_ms) == (True, 0)
    assert beat(ledger, lease, 2, 301_000).expires_in_ms == 120_000


def test_a_grant_that_ends_in_an_outage_pays_for_what_was_used_before(ledger: Ledger) -> None:
    """Claims last as long as the lease lives, so the bill is as without the outage."""
    first = ledger.grant("acme", A_WINDOW, expires_at=ledger.now + 60 * SECOND).grant_id
    second = ledger.grant("acme", 100 * CREDIT).grant_id
    lease = ledger.lease("acme").reservation_id
    ledger.away(s=300)
    beat(ledger, lease, 1, 300_000)
    assert ledger.reservation(lease).paid == ((first, 600_000), (second, 2_400_000))


def test_a_maintenance_extends_leases_with_their_reports(ledger: Ledger) -> None:
    """Each report holds for the whole planned stop, and the next one frees what was not used."""
    ledger.grant("acme", 100 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.maintain(s=1_800)
    ledger.wait(s=30)
    answer = beat(ledger, lease, 1, 30_000)
    assert (answer.decision, answer.expires_in_ms) == (Decision.CONTINUE, 1_770_000)
    assert answer.held == 17_700_000
    assert ledger.account("acme").reserved == 17_700_000
    ledger.wait(s=1_000)
    assert beat(ledger, lease, 2, 1_030_000).expires_in_ms == 770_000
    ledger.maintain(s=0)
    ledger.wait(s=1)
    answer = beat(ledger, lease, 3, 1_031_000)
    assert (answer.expires_in_ms, answer.held) == (120_000, A_WINDOW)
    assert ledger.account("acme").reserved == A_WINDOW
    assert ledger.reservation(lease).extended_ms == 0


def test_a_maintenance_is_funded_as_far_as_credits_go_and_drains_nobody(ledger: Ledger) -> None:
    """Who cannot fund all of it is renewed and extended as far as possible."""
    ledger.grant("acme", 3 * A_WINDOW)
    lease = ledger.lease("acme").reservation_id
    ledger.maintain(s=1_800)
    answer = beat(ledger, lease, 1, 0)
    assert (answer.decision, answer.reason) == (Decision.CONTINUE, "")
    assert (answer.expires_in_ms, answer.held) == (360_000, 3 * A_WINDOW)
    assert ledger.account("acme").available == 0
    ledger.wait(s=300)
    closed = ledger.accept(Settle(reservation_id=lease, used_ms=300_000), Closed)
    assert (closed.settled, closed.released) == (3_000_000, 600_000)


def test_a_quota_bounds_an_extension(ledger: Ledger) -> None:
    """The hold of an extension counts in the window like any other hold."""
    ledger.grant("acme", 100 * CREDIT)
    quota = commands.SetQuota(
        account="acme",
        dimension=Dimension.CREDITS_PER_WINDOW,
        limit=2 * A_WINDOW,
        calendar=Calendar.DAY,
    )
    ledger.accept(quota, QuotaSaved)
    lease = ledger.lease("acme").reservation_id
    ledger.maintain(s=1_800)
    answer = beat(ledger, lease, 1, 0)
    assert (answer.decision, answer.held) == (Decision.CONTINUE, 2 * A_WINDOW)
    ledger.maintain(s=0)
    ledger.wait(ms=1)
    assert beat(ledger, lease, 2, 1).held == A_WINDOW
    [counter] = ledger.view().limits.counters.values()
    assert (counter.used, counter.held) == (10, A_WINDOW)


def test_a_rate_limit_bounds_an_extension(ledger: Ledger) -> None:
    """An extension takes the tokens that are there, throttles nobody, and gives them back."""
    ledger.grant("acme", 100 * CREDIT)
    limit = commands.SetRateLimit(account="acme", capacity=2 * A_WINDOW, refill_per_hour=0)
    ledger.accept(limit, RateLimitSaved)
    lease = ledger.lease("acme").reservation_id
    ledger.maintain(s=1_800)
    answer = beat(ledger, lease, 1, 0)
    assert (answer.decision, answer.held) == (Decision.CONTINUE, 2 * A_WINDOW)
    ledger.maintain(s=0)
    ledger.wait(ms=1)
    assert beat(ledger, lease, 2, 1).held == A_WINDOW
    [bucket] = ledger.view().limits.buckets.values()
    assert bucket.level == A_WINDOW - 10


def test_a_silent_lease_lapses_when_its_extension_ends(ledger: Ledger) -> None:
    """The extension is part of the hold: it goes back, and late use is charged within it."""
    ledger.grant("acme", 100 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.maintain(s=1_800)
    beat(ledger, lease, 1, 0)
    ledger.wait(s=1_800)
    sweep(ledger)
    assert ledger.reservation(lease).state is EXPIRED
    assert ledger.entries()[-1].type is EntryType.RELEASE
    beat(ledger, lease, 2, 2_000_000)
    assert ledger.reservation(lease).settled == 18_000_000


def test_exposure_is_what_is_held_promised_and_may_be_reported(ledger: Ledger) -> None:
    """Escrow is a part of the hold; the grace of an outage is bounded by the payer's credits."""
    ledger.grant("acme", 100 * CREDIT)
    lease = ledger.lease("acme", escrow_windows=2).reservation_id
    seen = exposure_of(ledger.reservation(lease), ledger.stored.outages)
    assert seen == Exposure(3 * A_WINDOW, 2 * A_WINDOW, 0, 0)
    ledger.away(s=1_000)
    sweep(ledger)
    seen = exposure_of(ledger.reservation(lease), ledger.stored.outages)
    assert seen.grace == 11_200_000 - 3 * A_WINDOW
    both = sum_of(5, [seen, seen])
    assert both == Exposure(6 * A_WINDOW, 4 * A_WINDOW, 0, 6 * A_WINDOW + 5)
    assert seen.total == 11_200_000


def test_the_grace_counts_before_anybody_has_written_it_down(ledger: Ledger) -> None:
    """Whoever asks right after the return is told no less than may be reported."""
    ledger.grant("acme", 100 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.away(s=71, grace_ms=60_000)
    row, outages = ledger.stored.reservations[lease], ledger.stored.outages
    assert (row.reprieve_ms, exposure_of(row, ()).grace) == (0, 0)
    assert exposure_of(row, outages).grace == 1_310_000 - A_WINDOW
