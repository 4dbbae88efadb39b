"""The cap on one job holds for all of its leases together, one after another or side by side."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from gpucredits.core.book import Book
from gpucredits.core.command import (
    AddBoost,
    Cancel,
    EndQuota,
    Explain,
    Refund,
    Reserve,
    SetQuota,
    Settle,
)
from gpucredits.core.gate import Gate, GateReport
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import (
    Boosted,
    Closed,
    Explained,
    QuotaSaved,
    Refunded,
    Reserved,
)
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Reason
from gpucredits.core.reservation import NO_PART, Reservation, ReservationState
from gpucredits.core.rules.upkeep import counting
from support.books.ledger import CREDIT, SECOND, START, Ledger

ALICE = "acme/vision/alice"
PER_JOB = Dimension.CREDITS_PER_JOB
A_WINDOW = 1_200_000


@pytest.fixture(autouse=True)
def plenty(ledger: Ledger) -> None:
    """Credits are never what is missing here."""
    ledger.grant("acme", 1_000_000 * CREDIT)


def cap(ledger: Ledger, limit: int, account: str = "acme", gpu_type: str = "") -> int:
    """Cap each job below an account; the quota."""
    command = SetQuota(account=account, dimension=PER_JOB, limit=limit, gpu_type=gpu_type)
    return ledger.accept(command, QuotaSaved).quota.quota_id


def run(ledger: Ledger, lease: Reservation | int, s: int) -> BeatResult:
    """Let time pass and report all of it."""
    number = lease if isinstance(lease, int) else lease.reservation_id
    ledger.wait(s=s)
    known = ledger.reservation(number)
    outcome = ledger.do(Beat(number, known.seq + 1, known.used_ms + s * 1_000))
    assert isinstance(outcome, BeatResult)
    return outcome


def finish(ledger: Ledger, lease: Reservation) -> int:
    """End a lease where it stands; what it cost."""
    return ledger.accept(Settle(reservation_id=lease.reservation_id), Closed).settled


def job_cost(ledger: Ledger, job: str = "job") -> int:
    """What the leases of a job have cost and hold."""
    leases = ledger.view().reservations.values()
    return sum(each.settled + each.ahead for each in leases if each.job_id == job)


def report(ledger: Ledger, **fields: object) -> GateReport:
    """What the cap says of another lease of the job."""
    given: dict[str, object] = {"job_id": "job", "gpu_type": "h100", "milli_gpus": 1_000, **fields}
    asked = Reserve(account=ALICE, **given)  # type: ignore[arg-type]
    outcome = ledger.accept(Explain(reserve=asked), Explained)
    [found] = [each for each in outcome.reports if each.gate is Gate.QUOTA]
    return found


def test_a_job_that_goes_on_under_a_new_lease_has_what_is_left_of_its_cap(ledger: Ledger) -> None:
    """What the first lease cost is gone, and the second ends where the cap does."""
    cap(ledger, 2 * CREDIT)
    first = ledger.lease(ALICE)
    run(ledger, first, 100)
    assert finish(ledger, first) == CREDIT
    second = ledger.lease(ALICE)
    assert (second.held, second.expires_at) == (CREDIT, ledger.now + 100 * SECOND)
    assert run(ledger, second, 50).decision == "drain"
    run(ledger, second, 49)
    assert job_cost(ledger) == 2 * CREDIT
    finish(ledger, second)
    ledger.lease(ALICE, job_id="another")


def test_a_job_that_has_used_its_cap_up_is_refused(ledger: Ledger) -> None:
    """The refusal says what the job was allowed, what it has cost, and what it asks for."""
    cap(ledger, CREDIT)
    first = ledger.lease(ALICE)
    ledger.wait(ms=99_999)
    ledger.accept(Settle(reservation_id=first.reservation_id, used_ms=99_999), Closed)
    asked = Reserve(account=ALICE, job_id="job", gpu_type="h100", milli_gpus=2_000)
    refused = ledger.refuse(asked)
    assert refused.reason is Reason.QUOTA_EXCEEDED
    assert (refused.detail["limit"], refused.detail["current"]) == ("1", "0.99999")
    assert "Other leases of job job have cost or hold 0.99999 of the 1 " in refused.message


def test_leases_side_by_side_share_the_cap(ledger: Ledger) -> None:
    """Each of two may run to half of the cap, and both together no further."""
    cap(ledger, 10 * CREDIT)
    leases = [ledger.lease(ALICE), ledger.lease(ALICE)]
    for _ in range(30):
        for at, lease in enumerate(leases):
            if ledger.reservation(lease.reservation_id).state is ReservationState.ACTIVE:
                known = ledger.reservation(lease.reservation_id)
                used = (ledger.now - START) // 1_000
                ledger.do(Beat(lease.reservation_id, known.seq + 1, used))
            assert job_cost(ledger) <= 10 * CREDIT, at
        ledger.wait(s=50)
    settled = [ledger.reservation(each.reservation_id).settled for each in leases]
    assert sum(settled) >= 9_500_000
    assert abs(settled[0] - settled[1]) <= A_WINDOW


def test_what_one_lease_leaves_the_other_may_use(ledger: Ledger) -> None:
    """When a lease of two ends early, or is canceled, the other gets its part as well."""
    cap(ledger, 10 * CREDIT)
    first, second, third = (ledger.lease(ALICE) for _ in range(3))
    ledger.accept(Cancel(reservation_id=third.reservation_id), Closed)
    run(ledger, first, 100)
    finish(ledger, first)
    ledger.accept(Beat(second.reservation_id, 1, 100_000), BeatResult)
    for _ in range(7):
        assert run(ledger, second, 100).decision in ("continue", "drain")
    assert job_cost(ledger) == 10 * CREDIT
    assert ledger.reservation(second.reservation_id).held == CREDIT


def test_a_lease_that_idles_does_not_keep_its_part_from_the_other(ledger: Ledger) -> None:
    """Of what nobody has used yet, whoever comes to the end of its part gets more."""
    cap(ledger, 10 * CREDIT)
    idle, busy = ledger.lease(ALICE), ledger.lease(ALICE)
    for at in range(1, 9):
        ledger.wait(s=100)
        ledger.accept(Beat(idle.reservation_id, at, 0), BeatResult)
        answer = ledger.accept(Beat(busy.reservation_id, at, at * 100_000), BeatResult)
    assert answer.settled == 8 * CREDIT
    assert job_cost(ledger) <= 10 * CREDIT


def test_explain_counts_every_lease_of_the_job(ledger: Ledger) -> None:
    """Limit, what the job's leases have cost and hold, and what another would hold."""
    cap(ledger, 10 * CREDIT)
    first = ledger.lease(ALICE)
    run(ledger, first, 100)
    finish(ledger, first)
    ledger.lease(ALICE)
    found = report(ledger)
    assert (found.limit, found.current, found.requested) == (10 * CREDIT, 2_200_000, A_WINDOW)
    assert report(ledger, job_id="another").current == 0


def test_the_cap_of_one_gpu_type_counts_leases_of_that_type(ledger: Ledger) -> None:
    """A job that changes the type has that of the other type for itself; the cap on all counts."""
    cap(ledger, 2 * CREDIT, gpu_type="h100")
    run(ledger, ledger.lease(ALICE), 100)
    assert ledger.lease(ALICE, gpu_type="a100").held == 2 * CREDIT
    found = report(ledger)
    assert (found.current, found.requested) == (2 * CREDIT, 10)
    cap(ledger, 5 * CREDIT)
    assert ledger.lease(ALICE, gpu_type="a100").held == CREDIT


def test_a_lease_of_another_type_does_not_divide_what_it_does_not_see(ledger: Ledger) -> None:
    """The cap of one type holds for its leases together, whoever else has asked for a part."""
    cap(ledger, 100 * CREDIT)
    cap(ledger, 3 * CREDIT, gpu_type="h100")
    leases = [ledger.lease(ALICE), ledger.lease(ALICE)]
    ledger.lease(ALICE, gpu_type="a100")
    for at in range(1, 32):
        ledger.wait(s=10)
        for lease in leases:
            ledger.do(Beat(lease.reservation_id, at, at * 10_000))
    settled = [ledger.reservation(each.reservation_id).settled for each in leases]
    assert 2_800_000 <= sum(settled) <= 3 * CREDIT


def test_a_cap_that_is_new_counts_what_the_job_has_cost(ledger: Ledger) -> None:
    """Leases that ended before it was set count, and those that run share what is left."""
    first = ledger.lease(ALICE)
    run(ledger, first, 100)
    finish(ledger, first)
    leases = [ledger.lease(ALICE), ledger.lease(ALICE)]
    cap(ledger, 5 * CREDIT)
    for at in range(1, 6):
        ledger.wait(s=60)
        for lease in leases:
            ledger.do(Beat(lease.reservation_id, at, at * 60_000))
        assert job_cost(ledger) <= 5 * CREDIT
    assert job_cost(ledger) >= 4_600_000


def test_a_lease_that_is_alone_has_its_cap_to_itself(ledger: Ledger) -> None:
    """A cap that is set while it runs is asked for once, and then nothing is pinned."""
    lease = ledger.lease(ALICE)
    cap(ledger, 5 * CREDIT)
    assert run(ledger, lease, 60).decision == "continue"
    assert ledger.reservation(lease.reservation_id).cap_part == NO_PART


def test_a_cap_that_is_raised_or_ended_lets_all_of_them_go_on(ledger: Ledger) -> None:
    """Parts of a cap that has changed are asked for anew."""
    quota = cap(ledger, 3 * CREDIT)
    leases = [ledger.lease(ALICE), ledger.lease(ALICE)]
    assert run(ledger, leases[0], 100).decision == "drain"
    assert cap(ledger, 100 * CREDIT) == quota
    assert run(ledger, leases[0], 10).decision == "continue"
    assert cap(ledger, 3 * CREDIT) == quota
    assert run(ledger, leases[0], 5).decision == "drain"
    ledger.accept(EndQuota(quota_id=quota), QuotaSaved)
    assert run(ledger, leases[0], 1).decision == "continue"
    assert ledger.reservation(leases[0].reservation_id).cap_part == NO_PART


def test_a_boost_that_lapses_takes_the_parts_back(ledger: Ledger) -> None:
    """Parts of a cap that was raised for a while hold no longer than that."""
    quota = cap(ledger, 4 * CREDIT)
    boost = AddBoost(target_id=quota, amount=96 * CREDIT, ends_at=ledger.now + 60 * SECOND)
    ledger.accept(boost, Boosted)
    leases = [ledger.lease(ALICE), ledger.lease(ALICE)]
    for at in range(1, 9):
        ledger.wait(s=50)
        for lease in leases:
            ledger.do(Beat(lease.reservation_id, at, at * 50_000))
    assert 3_500_000 <= job_cost(ledger) <= 4 * CREDIT


def test_a_refund_does_not_make_room_in_the_cap(ledger: Ledger) -> None:
    """As with windows: a refund corrects money, and the job has used what it used."""
    cap(ledger, 2 * CREDIT)
    first = ledger.lease(ALICE)
    run(ledger, first, 100)
    finish(ledger, first)
    ledger.accept(Refund(reservation_id=first.reservation_id, amount=CREDIT), Refunded)
    assert ledger.lease(ALICE).held == CREDIT


def test_a_beat_that_reaches_its_cap_exactly_is_told(ledger: Ledger) -> None:
    """With a hold that ends where the cap does there is nothing to go on to: it drains."""
    cap(ledger, CREDIT + A_WINDOW)
    lease = ledger.lease(ALICE)
    answer = run(ledger, lease, 100)
    assert (answer.decision, answer.held) == ("drain", A_WINDOW)


@pytest.mark.as_source
def test_a_lease_that_idles_at_its_end_does_not_ask_again(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading the job's other leases is for those who use something, lest idling costs others."""
    asked: list[int] = []
    original = counting.divide

    def divide(book: Book, lease: Reservation, *rest: Any) -> None:
        asked.append(lease.reservation_id)
        original(book, lease, *rest)

    cap(ledger, 2 * CREDIT)
    ledger.lease(ALICE)
    lease = ledger.lease(ALICE).reservation_id
    monkeypatch.setattr(counting, "divide", divide)
    ledger.wait(s=1)
    assert ledger.accept(Beat(lease, 1, 1_000), BeatResult).decision == "drain"
    assert asked == [lease]
    for seq in range(2, 5):
        ledger.wait(s=1)
        assert ledger.accept(Beat(lease, seq, 1_000), BeatResult).decision == "drain"
    assert asked == [lease]
    ledger.wait(s=1)
    ledger.accept(Beat(lease, 5, 2_000), BeatResult)
    assert asked == [lease, lease]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "caps",
    [
        {"": 5, "h100": 3},
        {"": 100, "h100": 3},
        {"": 9, "h100": 3, "a100": 8},
        {"h100": 3, "a100": 8},
    ],
)
def test_no_order_of_leases_goes_beyond_a_cap(
    ledger: Ledger, caps: dict[str, int], seed: int
) -> None:
    """Leases of a job come, report, idle, end, lapse and are canceled: all caps hold throughout."""
    dice = Random(seed)  # not for secrets
    for gpu_type, limit in caps.items():
        cap(ledger, limit * CREDIT, ALICE if gpu_type else "acme", gpu_type)
    live: list[int] = []
    for _ in range(120):
        ledger.wait(s=dice.choice([0, 5, 20, 40]))
        act = dice.random()
        if act < 0.25 or not live:
            gpu_type = dice.choice(["h100", "h100", "a100"])
            asked = Reserve(
                account=ALICE,
                job_id="job",
                gpu_type=gpu_type,
                milli_gpus=1_000 * dice.randrange(1, 4),
            )
            outcome = ledger.do(asked)
            if isinstance(outcome, Reserved):
                live.append(outcome.reservation.reservation_id)
        else:
            number = dice.choice(live)
            known = ledger.reservation(number)
            used = known.used_ms + dice.choice([0, 1, 1]) * (ledger.now - known.beat_at) // 1_000
            if act < 0.85:
                ledger.do(Beat(number, known.seq + 1, used))
            elif act < 0.92:
                ledger.do(Settle(reservation_id=number, used_ms=used))
            else:
                ledger.do(Cancel(reservation_id=number))
        leases = ledger.view().reservations.values()
        for gpu_type, limit in caps.items():
            counted = [each for each in leases if gpu_type in ("", each.gpu_type)]
            assert sum(each.settled + each.ahead for each in counted) <= limit * CREDIT
    assert job_cost(ledger) >= 2 * CREDIT
