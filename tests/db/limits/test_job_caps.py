"""A cap on a job through the stored ledger: what leases share is read, kept and written back."""

from __future__ import annotations

from gpucredits.core.command import Issue, Settle
from gpucredits.core.outcome import Reserved
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Reason
from support.scenes.gated import ALICE, quota, refused, set_up
from support.scenes.scene import CREDIT, PRICE, Scene, list_price, play

PER_JOB = Dimension.CREDITS_PER_JOB
COST = "SELECT coalesce(sum(settled + held), 0) FROM reservations WHERE job_id = 'job'"


async def cost(stage: Scene) -> int:
    """What the leases of the job have cost and hold."""
    return int(await stage.pool.fetchval(COST))


async def run(stage: Scene, leases: list[Reserved], seconds: int) -> None:
    """Let all of them report every five seconds, for as long as they may run."""
    for at in range(1, seconds // 5 + 1):
        await stage.advance(5)
        for lease in leases:
            await stage.beat(lease, at, at * 5_000)


def test_leases_of_different_payers_share_the_cap(database: str) -> None:
    """Who pays for which lease makes no difference: together they go to the cap."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        await stage.do(Issue(account=ALICE, amount=1_000 * CREDIT))
        await quota(stage, "acme", PER_JOB, 60 * CREDIT)
        leases = [await stage.reserve(ALICE, payer="acme"), await stage.reserve(ALICE)]
        leases.append(await stage.reserve(ALICE, payer="acme"))
        await run(stage, leases, 40)
        assert 45 * CREDIT <= await cost(stage) <= 60 * CREDIT

    play(database, act)


def test_a_job_that_comes_back_has_what_is_left(database: str) -> None:
    """What ended leases cost is summed from their rows, also from before the cap was set."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        first = await stage.reserve(ALICE)
        await run(stage, [first], 15)
        await stage.do(Settle(reservation_id=first.reservation.reservation_id))
        await quota(stage, "acme/vision", PER_JOB, 25 * CREDIT)
        second = await stage.reserve(ALICE, window_ms=20_000)
        assert second.reservation.held == 10 * CREDIT
        await run(stage, [second], 5)
        no = await refused(stage, job_id="job")
        assert (no.reason, no.detail["current"]) == (Reason.QUOTA_EXCEEDED, "25")
        await stage.reserve(ALICE, job_id="another")

    play(database, act)


def test_a_new_cap_is_divided_among_what_runs(database: str) -> None:
    """Leases that run when a cap is set have a part of it from their next beat on."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        leases = [await stage.reserve(ALICE) for _ in range(3)]
        await quota(stage, "acme", PER_JOB, 60 * CREDIT)
        await run(stage, leases, 40)
        assert 45 * CREDIT <= await cost(stage) <= 60 * CREDIT

    play(database, act)


def test_the_cap_of_one_type_holds_beside_leases_of_another(database: str) -> None:
    """Whoever asks for a part reads what leases of every type have, and the caps on them."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        await list_price(stage.pool, 2, "a100", PRICE)
        await quota(stage, "acme", PER_JOB, 1_000 * CREDIT)
        await quota(stage, "acme", PER_JOB, 45 * CREDIT, gpu_type="h100")
        leases = [await stage.reserve(ALICE), await stage.reserve(ALICE)]
        other = await stage.reserve(ALICE, gpu_type="a100")
        await run(stage, [*leases, other], 40)
        of_type = COST.replace("'job'", "'job' AND gpu_type = 'h100'")
        assert 40 * CREDIT <= await stage.pool.fetchval(of_type) <= 45 * CREDIT

    play(database, act)


def test_a_lease_that_is_alone_stays_plain(database: str) -> None:
    """Nothing is stored of a cap that a lease has to itself: its beats write what they did."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        await quota(stage, "acme", PER_JOB, 600 * CREDIT)
        lease = await stage.reserve(ALICE)
        await run(stage, [lease], 10)
        row = await stage.pool.fetchrow("SELECT is_plain, cap_part, cap_seen FROM reservations")
        assert tuple(row or ()) == (True, -1, 0)

    play(database, act)
