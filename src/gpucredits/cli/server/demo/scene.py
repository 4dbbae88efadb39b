"""The story of the demo: two orgs, four jobs, one of which runs out of credits.

Owns: what happens and what must be true of it. Everything goes through the public client, and
time is the server's, moved on in steps.
Must not: know how it is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from gpucredits.cli.server.demo.screen import JobRow, Screen, WalletRow
from gpucredits.client import Client, Refused
from gpucredits.core.duration import format_ms, format_seconds
from gpucredits.core.money import DECIMALS, MICROS_PER_CREDIT
from gpucredits.wire.ledger.heartbeat import BeatAnswer
from gpucredits.wire.ledger.reservation import ReservationAnswer

STEP_S: Final = 20
WINDOW_S: Final = 60
STEPS_MAX: Final = 20
SECOND_MS: Final = 1_000
NOTE_LEAD: Final = "      "
SHOWN_ACCOUNTS: Final = ("acme", "acme/vision", "globex/nlp")


class SceneError(Exception):
    """Something in the scene was not as it must be."""


@dataclass(slots=True, kw_only=True)
class Job:
    """A job as its node sees it."""

    name: str
    lease: ReservationAnswer
    length_s: int
    used_ms: int = 0
    seq: int = 0
    charged: str = "0"
    told: str = "continue"
    expires_in_ms: int = 0
    is_over: bool = False


class Scene:
    """Plays the story on a server, and keeps score."""

    def __init__(self, client: Client, screen: Screen) -> None:
        self._client = client
        self._screen = screen
        self._jobs: list[Job] = []
        self._elapsed_s = 0

    @property
    def jobs(self) -> list[Job]:
        """The jobs that ran, for their receipts."""
        return self._jobs

    def play(self) -> None:
        """From opening the accounts to the last settlement; SceneError says what went wrong."""
        self.fund()
        self.admit()
        steps = 0
        while any(not job.is_over for job in self._jobs):
            steps += 1
            expect(steps <= STEPS_MAX, "every job ends")
            self.step()
        self.refusal()
        self.late_expiry()
        self.check()

    def fund(self) -> None:
        """Accounts, prices and credits."""
        client, say = self._client, self._screen.say
        for path in ("acme", "acme/vision", "acme/vision/alice"):
            client.create_account(path)
        for path in ("globex", "globex/nlp", "globex/nlp/bob"):
            client.create_account(path)
        say("Two orgs open accounts: acme/vision/alice and globex/nlp/bob.")
        client.set_price("a100", "60")
        client.set_price("h100", "120")
        client.set_price("h100", "90", account="globex")
        say("An a100 costs 60 credits an hour, an h100 120; globex pays 90.")
        now = server_now(client)
        client.issue("acme", "10000", expires_at=now + timedelta(days=30))
        client.transfer("acme", "acme/vision", "200")
        client.issue("acme/vision", "15", source="promo", expires_at=now + timedelta(hours=1))
        say("acme is granted 10000 for 30 days; 200 go to acme/vision, with 15 on the house.")
        payment = client.create_topup("globex/nlp", "40", payment_reference="invoice-1001")
        expect(client.balance("globex/nlp").available == "0", "an unconfirmed payment buys nothing")
        client.confirm_topup(payment.topup_id)
        say("globex/nlp pays for 40 credits, and no more.")

    def admit(self) -> None:
        """Each job asks for a lease: a window's worth of credits is held for it."""
        self._reserve("train-vit", "acme/vision/alice", gpu_type="h100", gpus=4, length_s=200)
        self._reserve("eval-vit", "acme/vision/alice", gpu_type="a100", gpus=1, length_s=120)
        self._reserve("train-llm", "globex/nlp/bob", gpu_type="h100", gpus=8, length_s=3_600)
        self._screen.say(
            f"Three jobs are admitted; each holds {format_seconds(WINDOW_S)} of credits ahead of "
            "its use."
        )
        self._show()

    def step(self) -> None:
        """Let time pass, and have every node report what its jobs used."""
        running = [job for job in self._jobs if not job.is_over]
        step_ms = min([STEP_S * SECOND_MS, *(left_ms(job) for job in running)])
        self._client.advance_clock(step_ms // SECOND_MS)
        self._elapsed_s += step_ms // SECOND_MS
        beats = []
        for job in running:
            job.used_ms += step_ms
            job.seq += 1
            beats.append((job.lease.reservation_id, job.seq, job.used_ms))
        answers = self._client.heartbeats(beats, node="node-1").results
        expect(len(answers) == len(running), "every beat is answered")
        for job, answer in zip(running, answers, strict=True):
            self._obey(job, answer)
        self._show()

    def refusal(self) -> None:
        """Without credits nothing starts, and the answer says why."""
        try:
            self._client.reserve(
                "globex/nlp/bob",
                job_id="train-llm-again",
                gpu_type="h100",
                gpu_count=8,
                window_seconds=WINDOW_S,
            )
        except Refused as refused:
            expect(refused.reason == "insufficient_credits", "the reason is the missing credits")
            problem = refused.problem
            self._screen.say(f"bob tries again and is refused: {refused}")
            self._screen.say(
                f"{NOTE_LEAD}account {problem.account}, available {problem.available}, "
                f"needed {problem.needed}"
            )
        else:
            raise SceneError("a job was admitted without credits")

    def late_expiry(self) -> None:
        """Credits with a window end with it, sweeper or no sweeper."""
        before = Decimal(self._client.balance("acme/vision").available)
        self._client.advance_clock(31 * 86_400)
        after = self._client.balance("acme/vision")
        expect(Decimal(after.available) == 0 < before, "expired credits cannot be spent")
        self._screen.say(
            f"31 days pass: what acme/vision had left ({before}) has expired; what it spent "
            f"({after.spent}) has not changed."
        )

    def check(self) -> None:
        """The books agree with arithmetic done by hand."""
        charged = {job.name: Decimal(job.charged) for job in self._jobs}
        by_hand = Decimal(4 * 120 * 200 * MICROS_PER_CREDIT // 3_600).scaleb(-DECIMALS)
        expect(charged["train-vit"] == by_hand, f"train-vit costs {by_hand}")
        expect(charged["eval-vit"] == Decimal(2), "eval-vit costs 2")
        expect(charged["train-llm"] == Decimal(40), "train-llm costs all that globex/nlp had")
        empty = self._client.balance("globex/nlp")
        expect((empty.available, empty.reserved, empty.spent) == ("0", "0", "40"), "it ends at 0")
        tree = self._client.balance("acme", tree=True)
        spent = charged["train-vit"] + charged["eval-vit"]
        expect(Decimal(tree.spent) == spent, "the org's tree adds up")
        expect(tree.reserved == "0", "nothing stays held")

    def _reserve(self, name: str, account: str, *, gpu_type: str, gpus: int, length_s: int) -> None:
        lease = self._client.reserve(
            account, job_id=name, gpu_type=gpu_type, gpu_count=gpus, window_seconds=WINDOW_S
        )
        expect(lease.state == "active", f"{name} is admitted")
        job = Job(name=name, lease=lease, length_s=length_s, expires_in_ms=lease.expires_in_ms)
        self._jobs.append(job)

    def _obey(self, job: Job, answer: BeatAnswer) -> None:
        told_before = job.told
        job.charged, job.expires_in_ms = answer.settled, answer.expires_in_ms
        job.told = answer.decision or answer.reason
        if job.told == "stop":
            job.is_over = True
            self._screen.say(
                f"{job.name} is stopped where its credits end: {answer.settled} charged "
                f"for {format_ms(job.used_ms)}."
            )
        elif job.told == "drain" and told_before != "drain":
            left = format_ms(answer.expires_in_ms)
            self._screen.say(
                f"{job.name} is told to drain ({answer.reason}): {left} left to save its work."
            )
        elif job.used_ms >= job.length_s * SECOND_MS:
            closed = self._client.settle(job.lease.reservation_id)
            job.is_over, job.charged, job.told = True, closed.settled, "settled"
            self._screen.say(
                f"{job.name} is done: {closed.settled} charged, {closed.released} released."
            )

    def _show(self) -> None:
        wallets = []
        for path in SHOWN_ACCOUNTS:
            balance = self._client.balance(path)
            row = WalletRow(
                account=path,
                available=balance.available,
                held=balance.reserved,
                spent=balance.spent,
            )
            wallets.append(row)
        jobs = [
            JobRow(
                job=job.name,
                account=job.lease.account,
                gpus=f"{job.lease.gpu_count} x {job.lease.gpu_type}",
                used=format_ms(job.used_ms),
                charged=job.charged,
                state=job.told,
            )
            for job in self._jobs
        ]
        minutes, seconds = divmod(self._elapsed_s, 60)
        self._screen.show(f"{minutes:02d}:{seconds:02d}", wallets, jobs)


def left_ms(job: Job) -> int:
    """How long a job may go on without another word: to its end, or to its drained lease's."""
    to_end_ms = job.length_s * SECOND_MS - job.used_ms
    return min(to_end_ms, job.expires_in_ms) if job.told == "drain" else to_end_ms


def server_now(client: Client) -> datetime:
    """The time on a test server."""
    return datetime.fromisoformat(client.advance_clock(0).now)


def expect(holds: bool, claim: str) -> None:
    """Stop the scene when something that must be true is not."""
    if not holds:
        raise SceneError(f"not true in the demo: {claim}")
