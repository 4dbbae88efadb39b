"""Over random histories with outages, stated exposure is never exceeded and every bill is exact.

Nodes of this test run their jobs as long as they trust their leases, and report what they ran,
soon or late. Some go on through an outage although they should not. What a bill must be follows
from the time that a job ran, by a formula of the test's own; the exposure is stated just before an
outage begins and just after it ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from gpucredits.core import command as commands
from gpucredits.core.account import Model
from gpucredits.core.book import Book
from gpucredits.core.command import Settle
from gpucredits.core.entry import EntryType
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import AccountSaved, Closed, Reserved
from gpucredits.core.reservation import Exhaustion, ReservationState
from gpucredits.core.rules.leases.exposure import Exposure, exposure_of, sum_of
from support.books.ledger import CREDIT, MS, Ledger

PRICE = 36 * CREDIT  # of one GPU: a cent a second
HOUR_MS = 3_600_000_000  # of thousandths of GPUs
GRACE_MS = 60_000
PAYERS = ("acme/pre", "acme/post")
CI = settings(max_examples=250, derandomize=True, deadline=None, database=None)
step = st.tuples(
    st.sampled_from(
        ["reserve", "report", "report", "report", "outage", "outage", "grant", "stop", "maintain"]
    ),
    st.integers(0, 5),
    st.sampled_from([0, 1, 999, 20_000, 61_000, 119_999, 600_000]),
    st.booleans(),
)
terms = st.fixed_dictionaries(
    {
        "milli_gpus": st.sampled_from([1_000, 3_000, 460]),
        "window_ms": st.sampled_from([10_000, 120_000]),
        "escrow_windows": st.sampled_from([0, 0, 1, 5]),
        "overdraft": st.sampled_from([0, 0, 300_000]),
        "exhaustion": st.sampled_from(list(Exhaustion)),
        "grace_ms": st.sampled_from([0, 5_000]),
    }
)


@dataclass
class Node:
    """One job: until when its node trusts the lease, and what it has run."""

    payer: str
    rate: int
    ran_until: int
    trusted_until: int
    used_ms: int = 0
    seq: int = 0
    obeys: bool = True
    cut: bool = False  # it ran on without trust, and not all of that may be charged
    ended: bool = False

    def run(self, now: int) -> None:
        """Run up to now, or to the end of trust."""
        until = min(now, self.trusted_until) if self.obeys else now
        self.used_ms += max(until - self.ran_until, 0) // MS
        self.ran_until = max(self.ran_until, until)

    @property
    def bill(self) -> int:
        """What the job must cost."""
        return self.rate * self.used_ms // HOUR_MS


@dataclass
class Fleet:
    """A ledger, and the nodes that report to it."""

    ledger: Ledger
    nodes: dict[int, Node] = field(default_factory=dict)

    def wait(self, ms: int) -> None:
        """Let time pass for server and nodes."""
        self.ledger.wait(ms=ms)
        self.run()

    def run(self) -> None:
        """Let all jobs run up to now."""
        for node in self.nodes.values():
            if not node.ended:
                node.run(self.ledger.now)

    def reserve(self, pick: int, wanted: dict[str, object]) -> None:
        """Start a job if it is admitted."""
        payer = PAYERS[pick % 2]
        name = f"job-{self.ledger.now}-{len(self.nodes)}"
        asked = {"account": payer, "job_id": name, "gpu_type": "h100", **wanted}
        outcome = self.ledger.do(commands.Reserve(**asked))  # type: ignore[arg-type]
        if isinstance(outcome, Reserved):
            lease, now = outcome.reservation, self.ledger.now
            trusted = now + outcome.expires_in_ms * MS
            self.nodes[lease.reservation_id] = Node(payer, lease.milli_gpus * PRICE, now, trusted)

    def report(self, number: int, *, ends: bool) -> None:
        """Report what a job ran; its node trusts the answer, counted from the sending."""
        node, now = self.nodes[number], self.ledger.now
        if node.ended:
            return
        node.seq += 1
        if ends:
            command = Settle(reservation_id=number, seq=node.seq, used_ms=node.used_ms)
            closed = self.ledger.accept(command, Closed)
            node.ended = True
            self.check(node, closed.settled, closed.flagged)
            return
        answer = self.ledger.accept(Beat(number, node.seq, node.used_ms), BeatResult)
        self.check(node, answer.settled, answer.flagged)
        lease = self.ledger.view().reservations[number]
        if answer.decision == "stop":
            node.ended = True
        else:
            node.trusted_until = now + answer.expires_in_ms * MS
            node.ran_until, node.obeys = now, True
            funded = lease.settled + lease.held + lease.promised
            trusted = node.rate * (lease.used_ms + answer.expires_in_ms) // HOUR_MS
            assert trusted <= funded, "no node is trusted for longer than is paid for"

    def check(self, node: Node, settled: int, flagged: str) -> None:
        """A bill is exact, unless a job ran without trust and nobody could pay for that."""
        node.cut = node.cut or (not node.obeys and settled < node.bill)
        assert settled <= node.bill
        assert node.cut or settled == node.bill, flagged

    def exposed(self) -> dict[str, int]:
        """The exposure of each payer as the server would state it now."""
        return {path: each.total for path, each in exposures(self.ledger.view())}

    def live(self) -> set[int]:
        """The leases that have not ended. Others used before, and may only be late to report."""
        rows = self.ledger.view().reservations.values()
        return {each.reservation_id for each in rows if each.state is ReservationState.ACTIVE}

    def charged(self, since: int, leases: set[int]) -> dict[str, int]:
        """What each payer was charged for some leases by the entries from a place on."""
        paths = {each.account_id: path for path, each in self.ledger.view().paths.items()}
        found = dict.fromkeys(PAYERS, 0)
        for entry in self.ledger.entries()[since:]:
            if entry.type is EntryType.SETTLE and entry.reservation_id in leases:
                found[paths[entry.account_id]] += entry.amount
        return found

    def outage(self, length_ms: int, delay_ms: int, *, disobey: bool) -> None:
        """No server for a while; then every job reports once, after a delay."""
        places = len(self.ledger.entries())
        stated, live = self.exposed(), self.live()
        for index, node in enumerate(self.nodes.values()):
            node.obeys = node.obeys and not (disobey and index % 2)
        self.ledger.away(s=length_ms / 1_000, grace_ms=GRACE_MS)
        self.run()
        restated = self.exposed()
        self.wait(delay_ms)
        obeyed = all(node.obeys or node.ended for node in self.nodes.values())
        for place, number in enumerate(list(self.nodes)):
            self.report(number, ends=place % 3 == 2)
        for path, charged in self.charged(places, live).items():
            assert charged <= restated[path], "after the outage"
            if obeyed:
                assert charged <= stated[path], "before the outage"
        for account in self.ledger.view().accounts.values():
            assert account.available >= account.floor

    def stop(self, number: int) -> None:
        """Tell a lease to stop: what its node runs after the deadline, unheard, is not charged."""
        self.nodes[number].cut = True
        self.ledger.do(commands.StopLease(reservation_id=number, grace_ms=5_000, stopping_for=1))


def exposures(book: Book) -> Iterable[tuple[str, Exposure]]:
    """The exposure of each payer."""
    for path in PAYERS:
        payer = book.paths[path]
        leases = [
            exposure_of(lease, book.outages)
            for lease in book.reservations.values()
            if lease.payer_id == payer.account_id and lease.state is ReservationState.ACTIVE
        ]
        yield path, sum_of(payer.spendable, leases)


@CI
@given(
    wanted=st.lists(terms, min_size=1, max_size=4),
    steps=st.lists(step, max_size=25),
    fresh=st.booleans(),
)
def test_exposure_is_never_exceeded(
    wanted: list[dict[str, object]], steps: list[tuple[str, int, int, bool]], *, fresh: bool
) -> None:
    """Whatever jobs do without the server, they are charged no more than it said they could be."""
    ledger = Ledger(fresh=fresh)
    ledger.price("h100", PRICE)
    ledger.open("acme")
    ledger.open("acme/pre")
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=2 * CREDIT)
    for path in PAYERS:
        ledger.accept(commands.UpdateAccount(path=path, overdraft_limit=CREDIT), AccountSaved)
        ledger.grant(path, 8 * CREDIT)
    fleet = Fleet(ledger)
    for index, each in enumerate(wanted):
        fleet.reserve(index, each)
    for kind, pick, ms, flag in steps:
        number = list(fleet.nodes)[pick % len(fleet.nodes)] if fleet.nodes else 0
        match kind:
            case "reserve":
                fleet.reserve(pick, wanted[pick % len(wanted)])
            case "outage":
                fleet.outage(ms + 10_001, [0, 1_000, 59_999, 70_000][pick % 4], disobey=flag)
            case "grant":
                ledger.grant(PAYERS[pick % 2], CREDIT, expires_at=ledger.now + (ms + 1) * MS)
            case "maintain":
                ledger.maintain(s=1_800 if flag else 0)
            case "stop" if number and flag:
                fleet.stop(number)
            case _ if number:
                fleet.wait(min(ms, 119_999))
                fleet.report(number, ends=pick == 5)
            case _:
                pass
