"""For random reports no charge exceeds what was authorised, by an oracle of its own.

Reports are late, early, jumping, after pauses and after lapses, of leases with and without a bound
on their amount and an overdraft, paid by prepaid and postpaid accounts under a quota per day. The
oracle knows what was held and promised from the answers, what was charged from the entries, and
shares no code with the rules.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from gpucredits.core import command as commands
from gpucredits.core.account import Model, Status
from gpucredits.core.command import Settle
from gpucredits.core.entry import EntryType
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import AccountSaved, Closed, QuotaSaved, Reserved
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reservation import Exhaustion, ReservationState
from support.books.ledger import CREDIT, Ledger

RATE = 36 * CREDIT  # of one GPU: a cent a second
HOUR_MS = 3_600_000_000  # of thousandths of GPUs
CI = settings(max_examples=200, derandomize=True, deadline=None, database=None)
PAYERS = ("acme/pre", "acme/post")
step = st.tuples(
    st.sampled_from(["reserve", "beat", "beat", "idle", "idle", "settle", "grant", "suspend"]),
    st.integers(0, 5),
    st.sampled_from([0, 1, 999, 20_000, 61_000, 119_999, 120_000, 400_000]),  # ms that pass before
    st.sampled_from([0, 1, 50, 100, 100, 101, 200, 10_000]),  # percent of the time that passed
)
terms = st.fixed_dictionaries(
    {
        "max_amount": st.sampled_from([0, 0, 1_500_000, 700_001]),
        "overdraft": st.sampled_from([0, 0, 300_000]),
        "exhaustion": st.sampled_from(list(Exhaustion)),
        "milli_gpus": st.sampled_from([1_000, 2_000, 3_000, 460, 1]),
        "window_ms": st.sampled_from([10_000, 120_000]),
        "escrow_windows": st.sampled_from([0, 0, 1]),
        "grace_ms": st.sampled_from([0, 30_000]),
    }
)


@dataclass
class Known:
    """What the answers about a lease have told: what it may have cost until its next report."""

    payer: str
    rate: int
    admitted: int
    max_amount: int
    settled: int = 0
    authorised: int = 0
    seq: int = 0


class Day:
    """A ledger with a daily quota, and an oracle that watches every report."""

    def __init__(self, quota: int, *, fresh: bool) -> None:
        self.quota = quota
        self.ledger = ledger = Ledger(fresh=fresh)
        self.leases: dict[int, Known] = {}
        ledger.price("h100", RATE)
        ledger.open("acme")
        ledger.open("acme/pre")
        ledger.open("acme/post", model=Model.POSTPAID, credit_limit=2 * CREDIT)
        for path in PAYERS:
            ledger.accept(
                commands.UpdateAccount(path=path, overdraft_limit=CREDIT // 2), AccountSaved
            )
            ledger.grant(path, 1_300_000)  # a window of two minutes, and not much more
        if quota:
            window = Dimension.CREDITS_PER_WINDOW
            command = commands.SetQuota(
                account="acme", dimension=window, limit=quota, calendar=Calendar.DAY
            )
            ledger.accept(command, QuotaSaved)

    def reserve(self, pick: int, wanted: dict[str, object]) -> None:
        """Ask for a lease; what it holds is what was authorised."""
        payer = PAYERS[pick % 2]
        name = f"job-{len(self.leases)}"
        asked = {"account": payer, "job_id": name, "gpu_type": "h100", **wanted}
        outcome = self.ledger.do(commands.Reserve(**asked))  # type: ignore[arg-type]
        if isinstance(outcome, Reserved):
            lease = outcome.reservation
            self.leases[lease.reservation_id] = Known(
                payer,
                lease.milli_gpus * RATE,
                self.ledger.now,
                lease.max_amount,
                authorised=lease.held,
            )

    def report(self, pick: int, percent: int, *, ends: bool) -> None:
        """A report of some of the time since admission, and what it charged."""
        if not self.leases:
            return
        number = list(self.leases)[pick % len(self.leases)]
        known, ledger = self.leases[number], self.ledger
        before = ledger.view()
        row, payer = before.reservations[number], before.paths[known.payer]
        used_ms = (ledger.now - known.admitted) // 1_000 * percent // 100
        most = known.authorised - known.settled
        if row.state is ReservationState.ACTIVE:
            extra = payer.available + (payer.credit_limit if payer.model is Model.POSTPAID else 0)
            if known.max_amount:
                extra = min(extra, known.max_amount - known.authorised)
            if self.quota:
                extra = min(extra, self.quota - self.taken())
            most += max(extra, 0)
        entries = len(ledger.entries())
        known.seq += 1
        command = Settle(reservation_id=number, seq=known.seq, used_ms=used_ms)
        outcome = ledger.do(command if ends else Beat(number, known.seq, used_ms))
        if not isinstance(outcome, BeatResult | Closed):
            return
        charged = sum(
            entry.amount
            for entry in ledger.entries()[entries:]
            if entry.type is EntryType.SETTLE and entry.reservation_id == number
        )
        assert charged == outcome.settled - known.settled
        assert charged <= most, "never more than was authorised"
        passed = min(ledger.now, row.ended_at or ledger.now) - known.admitted
        assert outcome.settled <= known.rate * (passed // 1_000) // HOUR_MS
        assert not known.max_amount or outcome.settled <= known.max_amount
        self.check_overrun(number, entries, is_late=row.state is ReservationState.EXPIRED)
        known.settled = outcome.settled
        after = ledger.view().reservations[number]
        if row.state is ReservationState.ACTIVE:
            known.authorised = outcome.settled + after.held + after.promised
            if after.state is not ReservationState.ACTIVE:
                known.authorised = max(after.authorised, outcome.settled)

    def idle(self, pick: int, percent: int) -> None:
        """Report no use until the time that passed costs more than a hold, then report it.

        Only such a report asks for more than its lease holds.
        """
        for _ in range(20):
            self.ledger.wait(ms=9_000)
            self.report(pick, 0, ends=False)
        self.report(pick, percent, ends=percent > 100)

    def check_overrun(self, number: int, entries: int, *, is_late: bool) -> None:
        """The house covers what it promised, and late use; a floor is never passed."""
        overrun = sum(
            entry.amount
            for entry in self.ledger.entries()[entries:]
            if entry.type is EntryType.OVERRUN and entry.reservation_id == number
        )
        lease = self.ledger.view().reservations[number]
        assert is_late or overrun <= lease.overdraft
        for account in self.ledger.view().accounts.values():
            assert account.available >= account.floor

    def taken(self) -> int:
        """What the day's quota has counted, summed from scratch."""
        spent = sum(e.amount for e in self.ledger.entries() if e.type is EntryType.SETTLE)
        live = self.ledger.view().reservations.values()
        return spent + sum(lease.held + lease.promised for lease in live)

    def suspend(self, pick: int) -> None:
        """Pause an account and resume it."""
        for status in (Status.SUSPENDED, Status.ACTIVE):
            command = commands.UpdateAccount(path=PAYERS[pick % 2], status=status)
            self.ledger.accept(command, AccountSaved)


@CI
@given(
    quota=st.sampled_from([0, 0, CREDIT, 5 * CREDIT]),
    wanted=st.lists(terms, min_size=1, max_size=4),
    steps=st.lists(step, max_size=30),
    fresh=st.booleans(),
)
def test_no_report_charges_more_than_was_authorised(
    quota: int,
    wanted: list[dict[str, object]],
    steps: list[tuple[str, int, int, int]],
    fresh: bool,
) -> None:
    """Whatever is reported, whenever: the hold, what was promised, and what every bound allows."""
    day = Day(quota, fresh=fresh)
    for index, each in enumerate(wanted):
        day.reserve(index, each)
    for kind, pick, wait_ms, percent in steps:
        day.ledger.wait(ms=wait_ms)
        match kind:
            case "reserve":
                day.reserve(pick, wanted[pick % len(wanted)])
            case "grant":
                day.ledger.grant(PAYERS[pick % 2], 300_000 + pick)
            case "suspend":
                day.suspend(pick)
            case "idle":
                day.idle(pick, percent)
            case _:
                day.report(pick, percent, ends=kind == "settle")


def test_forty_credits_pay_for_forty() -> None:
    """A balance of 40, and a report of all the time after a pause that would cost 80.52."""
    ledger = Ledger()
    ledger.price("h100", 3_600 * CREDIT)  # a credit a second
    ledger.open("acme")
    ledger.grant("acme", 40 * CREDIT)
    lease = ledger.lease("acme", window_ms=10_000).reservation_id
    for seq in range(1, 11):
        ledger.wait(ms=8_052)
        ledger.accept(Beat(lease, seq, 0), BeatResult)
    beaten = ledger.accept(Beat(lease, 11, 80_520), BeatResult)
    assert (beaten.settled, beaten.flagged) == (40 * CREDIT, "used_ms_beyond_authorised")
    account = ledger.account("acme")
    assert (account.spent, account.available, account.overrun) == (40 * CREDIT, 0, 0)
