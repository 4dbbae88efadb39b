"""Leases as context managers, on a real server: billed, renewed, drained, settled."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from decimal import Decimal
from typing import Any, TypeVar

import pytest

from gpucredits.cli.server.temporary_server import TemporaryServer
from gpucredits.client import AsyncClient, AsyncLease, Call, Client, Lease, Refused, Unavailable
from gpucredits.client.leases import LeaseView, lease_fields
from gpucredits.client.methods import AsyncSender, Sender
from gpucredits.wire.ledger.heartbeat import BeatAnswer, HeartbeatsAnswer
from gpucredits.wire.problem import Problem
from support.waiting import HANGS_S, until

Answer = TypeVar("Answer")
HOUR_MS = 3_600_000


def told_to_drain(reservation_id: str = "") -> HeartbeatsAnswer:
    """An answer with an hour left, a signal in a second, and a next report before that."""
    beat = BeatAnswer(reservation_id, "drain", "0", "0", HOUR_MS, "active", "quota_exceeded")
    beat.signal_in_ms, beat.deadline_in_ms, beat.last_seq = 1_000, HOUR_MS, 1
    return HeartbeatsAnswer([beat])


class SilentAfter(Sender):
    """A client whose reports get the given answers, and then none until the test lets them go."""

    def __init__(self, client: Client, *answers: HeartbeatsAnswer) -> None:
        self._client = client
        self._answers = deque[Any](answers)
        self.unanswered = threading.Event()
        self.gives_up = threading.Event()

    def send(self, call: Call[Answer]) -> Answer:
        """Pass everything else on."""
        if call.path != "/v1/heartbeats":
            return self._client.send(call)
        if self._answers:
            answer: Answer = self._answers.popleft()
            return answer
        self.unanswered.set()
        self.gives_up.wait(2 * HANGS_S)
        raise Unavailable("no answer in time")


class AsyncReports(AsyncSender):
    """A client whose reports get the given answers, and then none, or a refusal."""

    def __init__(
        self, client: AsyncClient, *answers: HeartbeatsAnswer, refuses: bool = False
    ) -> None:
        self._client = client
        self._answers = deque[Any](answers)
        self._refuses = refuses

    async def send(self, call: Call[Answer]) -> Answer:
        """Pass everything else on."""
        if call.path != "/v1/heartbeats":
            return await self._client.send(call)
        if self._answers:
            answer: Answer = self._answers.popleft()
            return answer
        if self._refuses:
            raise Refused(Problem(title="Unauthorized", status=401, reason="key_expired"))
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


def is_exact(client: Client, lease: Lease | AsyncLease, gpus: int) -> bool:
    """Whether a lease has ended and cost a credit for each GPU-second of its use."""
    row = client.reservation(lease.reservation_id)
    return row.state == "settled" and Decimal(row.settled) == Decimal(gpus * row.used_ms) / 1_000


def test_a_block_is_reported_renewed_and_settled(direct: Client, org: str) -> None:
    """The lease outlives its first window, and its bill is the time of the block."""
    direct.issue(org, "1000")
    with direct.lease(account=org, gpu_type="h100", gpus=2, window_seconds=1) as lease:
        until(lambda: direct.reservation(lease.reservation_id).used_ms > 1_000)
        assert lease.left_s() > 0
        assert not lease.drain.is_set()
    assert lease.receipt is not None
    assert lease.receipt.used_ms > 1_000
    assert is_exact(direct, lease, 2)


def test_a_block_is_billed_whoever_else_reports_for_its_lease(direct: Client, org: str) -> None:
    """Reports of no use with high seqs do not hide its own."""
    direct.issue(org, "1000")
    with direct.lease(account=org, gpu_type="h100", window_seconds=1) as lease:
        direct.heartbeats([(lease.reservation_id, 1_000_000, 0)])
        until(lambda: direct.reservation(lease.reservation_id).used_ms > 1_000)
        assert direct.reservation(lease.reservation_id).seq > 1_000_000
    assert is_exact(direct, lease, 1)


def test_a_lease_without_free_seqs_ends_and_is_billed(direct: Client, org: str) -> None:
    """Whoever uses all of them up ends the work, and its use is charged."""
    direct.issue(org, "1000")
    with direct.lease(account=org, gpu_type="h100", window_seconds=3) as lease:
        direct.heartbeats([(lease.reservation_id, 2**53 - 1, 0)])
        assert lease.over.wait(HANGS_S)
        assert lease.reason == "seq_taken"
    assert is_exact(direct, lease, 1)


def test_a_block_that_fails_is_settled_and_its_error_comes_through(
    direct: Client, org: str
) -> None:
    """The exception is the caller's; the hold is given back."""
    direct.issue(org, "1000")
    lease = direct.lease(account=org, gpu_type="h100", job_id="fails")
    with pytest.raises(ZeroDivisionError), lease:
        _ = 1 / 0
    assert is_exact(direct, lease, 1)
    assert direct.balance(org).reserved == "0"


def test_a_block_is_told_to_drain(direct: Client, org: str) -> None:
    """At the last credit the event is set and the callback called, once; no use goes unpaid."""
    direct.issue(org, "3")
    told: list[str] = []
    with direct.lease(
        account=org,
        gpu_type="h100",
        window_seconds=2,
        grace_seconds=1,
        on_drain=lambda view: told.append(view.reason),
    ) as lease:
        assert lease.drain.wait(HANGS_S)
        assert lease.left_s() > 0
        assert lease.over.wait(HANGS_S)
    assert told == ["insufficient_credits"]
    row = direct.reservation(lease.reservation_id)
    assert Decimal(row.settled) == Decimal(row.used_ms) / 1_000 <= 3


def test_a_report_without_an_answer_holds_up_no_end(direct: Client, org: str) -> None:
    """Trust ends when it does, although a client that is patient still waits for its answer."""
    direct.issue(org, "1000")
    silent = SilentAfter(direct)
    fields = lease_fields("h100", 1, None, {"window_seconds": 6})
    with Lease(silent, org, fields, None) as lease:
        assert lease.over.wait(HANGS_S)
        assert lease.drain.is_set()
        assert silent.unanswered.is_set()
        silent.gives_up.set()
    row = direct.reservation(lease.reservation_id)
    assert Decimal(row.settled) == Decimal(row.used_ms) / 1_000 > 0


def test_a_report_without_an_answer_holds_up_no_drain(direct: Client, org: str) -> None:
    """The caller has the whole of its grace, long before the client gives a report up."""
    direct.issue(org, "1000")
    silent = SilentAfter(direct, told_to_drain())
    told: list[str] = []
    fields = lease_fields("h100", 1, None, {"window_seconds": 6})
    with Lease(silent, org, fields, lambda view: told.append(view.reason)) as lease:
        assert silent.unanswered.wait(HANGS_S)
        assert lease.drain.wait(HANGS_S)
        assert not lease.over.is_set()
        silent.gives_up.set()
    assert told == ["quota_exceeded"]


def test_a_callback_that_takes_long_or_fails_holds_up_no_end(
    direct: Client, org: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever ``on_drain`` does, the lease is reported on and its end is told."""
    failed: list[type[BaseException]] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: failed.append(args.exc_type))
    direct.issue(org, "3")
    saved = threading.Event()

    def save(_view: LeaseView) -> None:
        saved.wait(HANGS_S)
        raise ZeroDivisionError

    with direct.lease(
        account=org, gpu_type="h100", window_seconds=2, grace_seconds=1, on_drain=save
    ) as lease:
        assert lease.over.wait(HANGS_S)
        saved.set()
    assert failed == [ZeroDivisionError]
    row = direct.reservation(lease.reservation_id)
    assert Decimal(row.settled) == Decimal(row.used_ms) / 1_000 > 0


def test_a_refused_block_is_not_entered(direct: Client, org: str) -> None:
    """Without credits there is no lease."""
    with pytest.raises(Refused), direct.lease(account=org, gpu_type="h100"):
        raise AssertionError("entered")


def test_an_async_block_does_the_same(server: TemporaryServer, direct: Client, org: str) -> None:
    """Renewed, told to drain, settled, also when it is canceled."""
    direct.issue(org, "1000")

    async def work() -> tuple[AsyncLease, AsyncLease]:
        async with AsyncClient(server.url, server.key) as client:
            first = client.lease(account=org, gpu_type="h100")
            entered = asyncio.Event()
            task = asyncio.create_task(hold(first, entered))
            await asyncio.wait_for(entered.wait(), HANGS_S)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with client.lease(
                account=org, gpu_type="h100", window_seconds=2, grace_seconds=1, max_amount="3"
            ) as second:
                await asyncio.wait_for(second.drain.wait(), HANGS_S)
            return first, second

    first, second = asyncio.run(work())
    assert is_exact(direct, first, 1)
    assert is_exact(direct, second, 1)


def test_an_async_block_is_told_in_time_whatever_becomes_of_reports(
    server: TemporaryServer, direct: Client, org: str
) -> None:
    """Refused reports end no watch; one without an answer holds up no drain; both are settled."""
    direct.issue(org, "1000")

    async def work() -> tuple[AsyncLease, AsyncLease]:
        async with AsyncClient(server.url, server.key) as client:
            fields = lease_fields("h100", 1, None, {"window_seconds": 2})
            async with AsyncLease(AsyncReports(client, refuses=True), org, fields, None) as refused:
                await asyncio.wait_for(refused.over.wait(), HANGS_S)
            silent = AsyncReports(client, told_to_drain())
            async with AsyncLease(silent, org, fields, None) as unheard:
                await asyncio.wait_for(unheard.drain.wait(), HANGS_S)
            return refused, unheard

    refused, unheard = asyncio.run(work())
    for lease in (refused, unheard):
        assert lease.receipt is not None
        assert direct.reservation(lease.reservation_id).used_ms > 0


def test_an_async_block_is_settled_although_its_callback_fails(
    server: TemporaryServer, direct: Client, org: str
) -> None:
    """What ``on_drain`` raises is told to the event loop, and the end of trust to the caller."""
    direct.issue(org, "3")
    failed: list[BaseException] = []

    def fail(_view: LeaseView) -> None:
        raise ZeroDivisionError

    async def work() -> AsyncLease:
        asyncio.get_running_loop().set_exception_handler(
            lambda _loop, context: failed.append(context["exception"])
        )
        async with (
            AsyncClient(server.url, server.key) as client,
            client.lease(
                account=org, gpu_type="h100", window_seconds=2, grace_seconds=1, on_drain=fail
            ) as lease,
        ):
            await asyncio.wait_for(lease.over.wait(), HANGS_S)
            return lease

    lease = asyncio.run(work())
    assert [type(each) for each in failed] == [ZeroDivisionError]
    assert lease.receipt is not None


async def hold(lease: AsyncLease, entered: asyncio.Event) -> None:
    """Hold a lease until canceled."""
    async with lease:
        entered.set()
        await asyncio.Event().wait()


def test_a_block_tells_its_checkpoint_and_has_a_token(direct: Client, org: str) -> None:
    """The checkpoint arrives with the next report; the token is renewed before it expires."""
    direct.issue(org, "1000")
    with direct.lease(account=org, gpu_type="h100", window_seconds=2, token=True) as lease:
        first = lease.token
        assert first.count(".") == 2
        until(lambda: lease.used_ms() > 1)
        lease.checkpoint()
        saved_ms = lease.used_ms()
        told = until(lambda: direct.report_checkpoint(lease.reservation_id, 0).checkpoint_ms)
        assert 0 < told <= saved_ms
        until(lambda: lease.token != first)
    assert lease.receipt is not None


def test_an_async_block_tells_its_checkpoint_and_has_a_token(
    server: TemporaryServer, direct: Client, org: str
) -> None:
    """As the other one does."""
    direct.issue(org, "1000")

    async def work() -> int:
        async with (
            AsyncClient(server.url, server.key) as client,
            client.lease(account=org, gpu_type="h100", window_seconds=2, token=True) as lease,
        ):
            first = lease.token
            while lease.token == first:
                lease.checkpoint()
                await asyncio.sleep(0.01)
            return (await client.report_checkpoint(lease.reservation_id, 0)).checkpoint_ms

    assert asyncio.run(work()) > 0
