"""Leases as context managers, on a real server: billed, renewed, drained, settled."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from gpucredits.cli.server.temporary_server import TemporaryServer
from gpucredits.client import AsyncClient, AsyncLease, Client, Lease, Refused
from support.waiting import HANGS_S, until


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
