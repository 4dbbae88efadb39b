"""The worked examples of the requirements, to the last micro-credit."""

from __future__ import annotations

from gpucredits.core.command import Settle, Transfer
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Closed, Transferred
from oracle.ledger_replay import Replay
from support.books.ledger import CREDIT, Ledger


def minutes(ledger: Ledger, leases: dict[int, int], upto: int) -> None:
    """Beat once a minute for each lease that still runs; settle it at its last minute."""
    for minute in range(1, upto + 1):
        ledger.wait(s=60)
        for lease, length in leases.items():
            if minute < length:
                beaten = ledger.accept(Beat(lease, minute, minute * 60_000), BeatResult)
                assert beaten.settled == minute * CREDIT
            elif minute == length:
                command = Settle(reservation_id=lease, seq=minute, used_ms=minute * 60_000)
                closed = ledger.accept(command, Closed)
                assert closed.settled == length * CREDIT
                assert closed.released == CREDIT


def test_org_project_user_example_ends_with_120_spent(ledger: Ledger) -> None:
    """10,000 to the org, 6,000 to the project, jobs of 50 and 70 minutes: 120 spent, 9,880 left."""
    ledger.grant("acme", 10_000 * CREDIT)
    move = Transfer(source="acme", target="acme/vision", amount=6_000 * CREDIT)
    ledger.accept(move, Transferred)
    jobs = {
        ledger.lease("acme/vision/alice", gpu_type="a100", job_id=job).reservation_id: length
        for job, length in (("a", 50), ("b", 70))
    }
    assert ledger.account("acme/vision").reserved == 4 * CREDIT
    minutes(ledger, jobs, 70)
    project, org = ledger.account("acme/vision"), ledger.account("acme")
    assert (project.spent, project.reserved, project.available) == (120 * CREDIT, 0, 5_880 * CREDIT)
    assert project.available + org.available == 9_880 * CREDIT
    replay = Replay()
    for entry in ledger.entries():
        replay.feed(entry, {org.account_id: 0, project.account_id: 0})
    replay.check(ledger.stored)


def test_four_gpus_at_a_cent_a_second(ledger: Ledger) -> None:
    """50 credits, 4 GPUs, windows of 15 s, beats of 5 s: 49.4, 49.2 and 19.2 after 480 s."""
    ledger.grant("acme/vision/alice", 50 * CREDIT)
    lease = ledger.lease("acme/vision/alice", milli_gpus=4_000, window_ms=15_000).reservation_id
    assert ledger.account("acme/vision/alice").available == 49_400_000
    for count in range(1, 96):
        ledger.wait(s=5)
        beaten = ledger.accept(Beat(lease, count, count * 5_000), BeatResult)
        assert (beaten.settled, beaten.held) == (count * 200_000, 600_000)
        if count == 1:
            assert ledger.account("acme/vision/alice").available == 49_200_000
    ledger.wait(s=5)
    closed = ledger.accept(Settle(reservation_id=lease, seq=96, used_ms=480_000), Closed)
    assert closed.settled == 19_200_000
    assert closed.released == 400_000
    account = ledger.account("acme/vision/alice")
    assert (account.available, account.reserved, account.spent) == (30_800_000, 0, 19_200_000)


def test_strict_pay_as_you_go_holds_one_slice(ledger: Ledger) -> None:
    """With a window of one slice only the next slice is ever held."""
    ledger.grant("acme", CREDIT)
    lease = ledger.lease("acme", window_ms=5_000).reservation_id
    for count in range(1, 4):
        ledger.wait(ms=4_999)
        beaten = ledger.accept(Beat(lease, count, count * 4_999), BeatResult)
        assert beaten.held == 50_000
