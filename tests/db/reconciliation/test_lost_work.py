"""Claims of lost work on a real database: kept before they are paid, paid once, carried on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gpucredits.core.command import Settle, StopLease
from gpucredits.core.outcome import Reserved
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.reconciliation.lost_work import LossTerms
from gpucredits.core.reservation import Reservation
from gpucredits.jobs.reconciler import Reconciler
from gpucredits.service.reconciliation import lost_work
from gpucredits.service.reconciliation.lost_work import (
    Cause,
    OrgFilter,
    claim,
    list_claims,
    report_checkpoint,
    request_of,
)
from gpucredits.service.reconciliation.passes import ComparedFilter, list_comparisons
from gpucredits.service.reconciliation.terms import LOSS
from gpucredits.service.write.acts import Act, ActRefused
from gpucredits.store.reconciliation.comparisons import FINAL, POSTED
from support.scenes.reconciling import QUIET_S, lease_now, measure, policy, run
from support.scenes.scene import CREDIT, Scene, play

ACT = Act(org_id=1, actor="tester")
ALL = OrgFilter(before=(2**62, 0))


async def terms(stage: Scene, **chosen: Any) -> None:
    """Let acme have work back: one hour of a job."""
    wanted = LossTerms(**({"hours_per_job": 1} | chosen))
    assert await LOSS.set(stage.pool, ACT, "acme", wanted, None) is not None


async def failed(
    stage: Scene, *, used_ms: int = 50_000, checkpoint_ms: int = 0, **wanted: Any
) -> Reservation:
    """A lease that reported use, and perhaps a checkpoint, and then fell silent."""
    lease: Reserved = await stage.reserve(**({"window_ms": 60_000} | wanted))
    await stage.advance(used_ms / 1_000)
    await stage.beat(lease, 1, used_ms)
    if checkpoint_ms:
        number = lease.reservation.reservation_id
        told = await report_checkpoint(stage.pool, 1, number, checkpoint_ms, dry_run=False)
        assert told == checkpoint_ms
    await stage.advance(lease.reservation.window_ms / 1_000 + 1)
    await stage.beat(lease, 2, 0)  # the lapse is written down
    return lease.reservation


async def ask(stage: Scene, lease: Any, cause: Cause = Cause.NODE_FAILURE, **said: Any) -> Any:
    """Claim the lost work of a lease."""
    said_ms, note = said.get("checkpoint_ms"), "it failed"
    try:
        return (await claim(stage.ledger, ACT, lease.reservation_id, cause, said_ms, note))[0]
    except ActRefused as error:
        return error.refused


def test_lost_work_is_given_back_once_from_the_reported_checkpoint(database: str) -> None:
    """The use after the checkpoint, to the grants that paid; a second claim is refused."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        lease = await failed(stage, checkpoint_ms=30_000)
        refused = await ask(stage, lease)
        assert isinstance(refused, Refused)  # off by default
        await terms(stage)
        before = await stage.balance()
        done = await ask(stage, lease, checkpoint_ms=1_000)
        assert (done.lost_ms, done.amount, done.is_reported) == (20_000, 20 * CREDIT, True)
        assert (await stage.balance()).available == before.available + 20 * CREDIT
        assert (await lease_now(stage, lease)).charged == 30 * CREDIT
        again = await ask(stage, lease)
        assert isinstance(again, Refused)
        assert again.reason is Reason.LOSS_REFUNDED
        [row] = await list_claims(stage.pool, ALL)
        assert (row.state, row.amount) == (1, 20 * CREDIT)

    play(database, act)


def test_leases_of_one_job_share_its_cap_also_at_once(database: str) -> None:
    """Five claims at the same time get one hour in all."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=90_000)
        await terms(stage)
        leases = []
        for place in range(5):
            lease = await stage.reserve(window_ms=900_000, node=f"n{place}", milli_gpus=1_000)
            await report_checkpoint(
                stage.pool, 1, lease.reservation.reservation_id, 0, dry_run=False
            )
            leases.append(lease)
        await stage.advance(850)
        for lease in leases:
            await stage.beat(lease, 1, 850_000)
        await stage.advance(850)
        for lease in leases:
            await stage.beat(lease, 2, 1_700_000)
        await stage.advance(901)
        for lease in leases:
            await stage.beat(lease, 3, 0)
        done = await asyncio.gather(*(ask(stage, each.reservation) for each in leases))
        paid = [each.lost_ms for each in done if not isinstance(each, Refused)]
        assert sum(paid) == 3_600_000
        assert len(paid) == 3

    play(database, act)


def test_jobs_of_an_account_and_below_share_its_cap_of_30_days(database: str) -> None:
    """Made-up jobs of accounts below win no more together; the refusal has the numbers."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/p", credits_each=9_000)
        await terms(stage, unreported_hours=1, hours_per_account=1)
        lost = {"window_ms": 2_400_000, "used_ms": 2_000_000}
        first = await failed(stage, job_id="one", **lost)
        second = await failed(stage, job_id="two", account="acme/p", **lost)
        third = await failed(stage, job_id="three", **lost)
        assert (await ask(stage, first)).lost_ms == 2_000_000
        assert (await ask(stage, second)).lost_ms == 1_600_000  # what is left of the hour
        refused = await ask(stage, third)
        assert isinstance(refused, Refused)
        assert "3600000 ms were refunded to acme" in refused.message
        assert "30 days; its cap is 1 h" in refused.message
        await terms(stage, unreported_hours=1, hours_per_account=2)
        assert (await ask(stage, third)).lost_ms == 2_000_000
        await stage.advance(30 * 86_400 + 1)
        await terms(stage, unreported_hours=1, hours_per_account=1)
        later = await failed(stage, job_id="four", **lost)
        assert (await ask(stage, later)).lost_ms == 2_000_000  # the earlier ones are past

    play(database, act)


def test_a_lapse_counts_before_anybody_has_written_it_down(database: str) -> None:
    """A claim right after the lapse is judged by the clock, not by the stored state."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await terms(stage, unreported_hours=1)
        held = await stage.reserve(window_ms=60_000)
        await stage.advance(50)
        await stage.beat(held, 1, 50_000)
        assert (await ask(stage, held.reservation)).reason is Reason.RESERVATION_ACTIVE
        await stage.advance(60.001)
        assert (await lease_now(stage, held.reservation)).ended_at == 0  # the control
        assert (await ask(stage, held.reservation)).lost_ms == 50_000

    play(database, act)


def test_a_small_claim_does_not_stop_the_reconciler_from_charging(database: str) -> None:
    """Given back for a millisecond, a lease is still charged what its node measured."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await policy(stage)
        await terms(stage)
        lease = await failed(stage, checkpoint_ms=49_999, node="n1")
        assert (await ask(stage, lease)).lost_ms == 1
        await measure(stage, lease, (0, 80_000))
        await stage.advance(QUIET_S)
        assert (await run(stage)).charged == 30 * CREDIT
        assert (await lease_now(stage, lease)).charged == 80 * CREDIT - CREDIT // 1_000
        again = await failed(stage, checkpoint_ms=10_000, node="n1", job_id="other")
        assert (await ask(stage, again)).lost_ms == 40_000
        await measure(stage, again, (0, 20_000))
        await stage.advance(QUIET_S)
        assert (await run(stage)).given_back == 0  # not on top of what was given back
        rows = await list_comparisons(stage.pool, ComparedFilter(before=(2**62, 0)))
        assert [row.state for row in rows] == [FINAL, POSTED]

    play(database, act)


def test_a_node_that_lived_did_not_fail(database: str) -> None:
    """Another lease on the node was reported after this one had fallen silent."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await terms(stage)
        other = await stage.reserve(window_ms=300_000, node="n1", job_id="other")
        lease = await failed(stage, checkpoint_ms=10_000, node="n1")
        await stage.beat(other, 1, 100_000)
        refused = await ask(stage, lease)
        assert isinstance(refused, Refused)
        assert "n1 reported other leases" in refused.message

    play(database, act)


def test_a_preempted_job_gets_its_work_back(database: str) -> None:
    """It was told to stop, and settled within its grace."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await terms(stage, unreported_hours=1)
        lease = (await stage.reserve(window_ms=60_000)).reservation
        await stage.advance(30)
        await stage.do(StopLease(reservation_id=lease.reservation_id, grace_ms=5_000))
        await stage.do(Settle(reservation_id=lease.reservation_id, used_ms=30_000))
        assert isinstance(await ask(stage, lease), Refused)  # that was no node failure
        done = await ask(stage, lease, Cause.PREEMPTION, checkpoint_ms=20_000)
        assert (done.lost_ms, done.is_reported) == (10_000, False)

    play(database, act)


def test_a_checkpoint_is_taken_from_live_leases_only_and_never_goes_back(database: str) -> None:
    """Nor is one believed that lies ahead of the server's clock."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        lease = (await stage.reserve(window_ms=60_000)).reservation

        async def report(ms: int) -> int | None:
            number = lease.reservation_id
            return await report_checkpoint(stage.pool, 1, number, ms, dry_run=False)

        await stage.advance(30)
        assert await report(20_000) == 20_000
        assert await report(5_000) == 20_000
        ahead = await report(10**9)
        assert ahead is not None
        assert 30_000 <= ahead < 90_000
        await stage.do(Settle(reservation_id=lease.reservation_id))
        assert await report(31_000) is None

    play(database, act)


def test_a_claim_whose_server_died_is_carried_on(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was kept, its refund was posted or not: the reconciler sees to it, once."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await terms(stage)
        carry_out = lost_work.carry_out

        async def dies(*args: Any, **kwargs: Any) -> Any:
            raise ConnectionResetError

        async def dies_later(*args: Any, **kwargs: Any) -> Any:
            await stage.ledger.submit(1, request_of(args[1]))
            raise ConnectionResetError

        for dying in (dies, dies_later):
            lease = await failed(stage, checkpoint_ms=30_000, job_id=dying.__name__)
            monkeypatch.setattr(lost_work, "carry_out", dying)
            with pytest.raises(ConnectionResetError):
                await ask(stage, lease)
            monkeypatch.setattr(lost_work, "carry_out", carry_out)
            assert isinstance(await ask(stage, lease), Refused)
            job = Reconciler(stage.ledger)
            await job.tick()  # it is left to its server for a minute
            before = (await lease_now(stage, lease)).lost_ms
            assert before == (0 if dying is dies else 20_000)
            await stage.advance(61)
            await job.tick()
            row = await lease_now(stage, lease)
            assert (row.lost_ms, row.charged) == (20_000, 30 * CREDIT)
            assert all(each.state == 1 for each in await list_claims(stage.pool, ALL))

    play(database, act)
