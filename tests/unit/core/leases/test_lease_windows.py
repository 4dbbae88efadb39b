"""How long a lease may last without a report: bounds of server, pool and accounts."""

from __future__ import annotations

from typing import Any

import pytest

from gpucredits.core.account import Status
from gpucredits.core.command import Reserve, ReviewStanding, Settle, UpdateAccount
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import AccountSaved, Closed, Reviewed
from gpucredits.core.reasons import Reason
from gpucredits.core.reservation import ReservationState
from gpucredits.core.statement import Bill
from support.books.ledger import CREDIT, SECOND, Ledger

ALICE = "acme/vision/alice"


@pytest.fixture(autouse=True)
def plenty(ledger: Ledger) -> None:
    """Credits are never what is missing here."""
    ledger.grant("acme", 1_000_000 * CREDIT)


def bound(ledger: Ledger, path: str, ms: int) -> None:
    """Bound the leases of an account."""
    ledger.accept(UpdateAccount(path=path, window_max_ms=ms), AccountSaved)


def bound_server(ledger: Ledger, ms: int) -> None:
    """Bound the leases of the server."""
    ledger.stored.windows.server_ms = ms
    ledger.stored.bound_windows(ledger.stored.windows)


def bound_pool(ledger: Ledger, ms: int) -> None:
    """Bound the leases of the pool of h100s."""
    ledger.stored.windows.pools = {("h100", "default"): ms}
    ledger.stored.bound_windows(ledger.stored.windows)


def ask(**more: Any) -> Reserve:
    """A lease of alice's."""
    return Reserve(account=ALICE, job_id="job", gpu_type="h100", milli_gpus=1_000, **more)


WHERE = {
    "server": (lambda ledger: bound_server(ledger, 600_000), "the server"),
    "pool": (lambda ledger: bound_pool(ledger, 600_000), "the pool h100/default"),
    "org": (lambda ledger: bound(ledger, "acme", 600_000), "the account acme"),
    "user": (lambda ledger: bound(ledger, ALICE, 600_000), f"the account {ALICE}"),
}


@pytest.mark.parametrize(("set_bound", "named"), WHERE.values(), ids=WHERE.keys())
def test_a_window_beyond_a_bound_is_refused_and_told_where_it_is_set(
    ledger: Ledger, set_bound: Any, named: str
) -> None:
    """The refusal has the number and the place; a window at the bound is given."""
    set_bound(ledger)
    refused = ledger.refuse(ask(window_ms=601_000))
    assert refused.reason is Reason.WINDOW_TOO_LONG
    assert named in refused.message
    assert refused.detail["window_max_seconds"] == 600
    assert ledger.lease(ALICE, window_ms=600_000).window_ms == 600_000


def test_escrow_never_lengthens_a_lease_beyond_a_bound(ledger: Ledger) -> None:
    """Windows are a second at least, so a low bound allows fewer of them, named or not."""
    bound(ledger, ALICE, 5_000)
    for window_ms in (0, 1_000):
        refused = ledger.refuse(ask(window_ms=window_ms, escrow_windows=10))
        assert refused.reason is Reason.WINDOW_TOO_LONG
        assert refused.detail["requested_seconds"] == 11
        assert "Ask for at most 4 escrow windows, and for a window of a second" in refused.message
    assert ledger.lease(ALICE, escrow_windows=4).lease_ms == 5_000


def test_a_lease_with_much_escrow_shrinks_to_a_low_bound(ledger: Ledger) -> None:
    """A bound that is set while it runs holds for window and escrow together."""
    lease = ledger.lease(ALICE, window_ms=20_000, escrow_windows=10).reservation_id
    bound(ledger, ALICE, 5_000)
    ledger.wait(s=3)
    told = ledger.accept(Beat(lease, seq=1, used_ms=3_000), BeatResult)
    assert 4_900 <= told.expires_in_ms <= 5_000
    ledger.wait(s=1)
    again = ledger.accept(Beat(lease, seq=2, used_ms=4_000), BeatResult)
    assert again.expires_in_ms == told.expires_in_ms


def test_the_least_bound_of_the_lineage_counts(ledger: Ledger) -> None:
    """A bound below a project's does not lift it, and lifting one leaves the others."""
    bound(ledger, "acme/vision", 60_000)
    bound(ledger, ALICE, 300_000)
    assert "acme/vision allows at most 60" in ledger.refuse(ask(window_ms=61_000)).message
    bound(ledger, "acme/vision", 0)
    assert ledger.lease(ALICE, window_ms=300_000).window_ms == 300_000
    assert ledger.reason(ask(window_ms=301_000)) is Reason.WINDOW_TOO_LONG


def test_windows_of_escrow_count(ledger: Ledger) -> None:
    """A lease lasts for all its windows without a report, so all of them are bounded."""
    bound(ledger, "acme", 300_000)
    assert ledger.reason(ask(window_ms=150_000, escrow_windows=2)) is Reason.WINDOW_TOO_LONG
    assert ledger.lease(ALICE, window_ms=100_000, escrow_windows=2).lease_ms == 300_000


def test_without_a_window_a_lease_has_the_default_or_what_is_allowed(ledger: Ledger) -> None:
    """Nobody who asks for no window is refused for it."""
    assert ledger.lease(ALICE).window_ms == 120_000
    bound(ledger, "acme", 50_000)
    assert ledger.lease(ALICE).window_ms == 50_000
    assert ledger.lease(ALICE, escrow_windows=2).window_ms == 16_000


@pytest.mark.parametrize("set_bound", [bound_server, bound_pool, "account"])
def test_a_longer_lease_shrinks_at_its_next_renewal(ledger: Ledger, set_bound: Any) -> None:
    """It keeps the end it has until its node reports, and is then renewed for the bound."""
    lease = ledger.lease(ALICE, window_ms=3_600_000).reservation_id
    other = ledger.lease(ALICE, window_ms=60_000).reservation_id
    if set_bound == "account":
        bound(ledger, "acme", 600_000)
    else:
        set_bound(ledger, 600_000)
    ledger.wait(s=30)
    assert ledger.reservation(lease).expires_at == ledger.now + 3_570 * SECOND
    beaten = ledger.accept(Beat(lease, 1, 30_000), BeatResult)
    assert (beaten.decision, beaten.expires_in_ms) == ("continue", 600_000)
    assert (beaten.held, ledger.reservation(lease).window_ms) == (6 * CREDIT, 600_000)
    assert ledger.accept(Beat(other, 1, 30_000), BeatResult).expires_in_ms == 60_000
    ledger.wait(s=30)
    assert ledger.accept(Beat(lease, 2, 60_000), BeatResult).expires_in_ms == 600_000


@pytest.mark.parametrize("suspended", ["acme", "acme/vision", ALICE])
def test_a_suspension_shortens_every_lease_below_at_once(ledger: Ledger, suspended: str) -> None:
    """A silent lease ends after its grace, one that ends sooner then, and one elsewhere not."""
    silent = ledger.lease(ALICE, window_ms=3_600_000, grace_ms=30_000).reservation_id
    short = ledger.lease(ALICE, window_ms=10_000, grace_ms=10_000).reservation_id
    none = ledger.lease(ALICE, window_ms=3_600_000).reservation_id
    ledger.open("acme/audio")
    ledger.grant("acme/audio", 100 * CREDIT)
    elsewhere = ledger.lease("acme/audio", window_ms=60_000).reservation_id
    ledger.accept(UpdateAccount(path=suspended, status=Status.SUSPENDED), AccountSaved)
    now = ledger.now
    assert ledger.reservation(silent).expires_at == now + 30 * SECOND
    assert ledger.reservation(short).expires_at == now + 10 * SECOND
    assert ledger.reservation(none).state is ReservationState.EXPIRED
    ends = now if suspended == "acme" else now + 60 * SECOND
    assert ledger.reservation(elsewhere).expires_at == ends
    ledger.wait(s=20)
    beaten = ledger.accept(Beat(silent, 1, 20_000), BeatResult)
    assert (beaten.decision, beaten.reason) == ("drain", "account_suspended")
    assert beaten.expires_in_ms == 10_000
    ledger.wait(s=10)
    assert ledger.reservation(silent).state is ReservationState.EXPIRED
    closed = ledger.accept(Settle(reservation_id=silent, used_ms=99_000), Closed)
    assert (closed.flagged, closed.settled) == ("lapsed", 300_000)


def test_a_lease_that_has_not_ended_goes_on_after_a_resumption(ledger: Ledger) -> None:
    """Its next beat renews it in full."""
    lease = ledger.lease(ALICE, grace_ms=60_000).reservation_id
    for status in (Status.SUSPENDED, Status.ACTIVE):
        ledger.accept(UpdateAccount(path="acme", status=status), AccountSaved)
    ledger.wait(s=30)
    beaten = ledger.accept(Beat(lease, 1, 30_000), BeatResult)
    assert (beaten.decision, beaten.expires_in_ms, beaten.reason) == ("continue", 120_000, "")


def test_an_unpaid_statement_shortens_leases_as_well(ledger: Ledger) -> None:
    """Delinquency ends what runs after its grace, for its own reason."""
    lease = ledger.lease(ALICE, window_ms=3_600_000, grace_ms=5_000).reservation_id
    bill = Bill(1, 10**12, 5 * 10**12, ledger.now - SECOND)
    ledger.accept(ReviewStanding(path="acme", bills=(bill,)), Reviewed)
    assert ledger.reservation(lease).expires_at == ledger.now + 5 * SECOND
    ledger.wait(s=1)
    assert ledger.accept(Beat(lease, 1, 1_000), BeatResult).reason == "account_delinquent"
