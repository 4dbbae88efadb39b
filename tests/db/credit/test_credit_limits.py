"""Credit limits in the store: lowered below what is owed, on books that stay sound."""

from __future__ import annotations

from gpucredits.core.account import Model
from gpucredits.core.command import CreateAccount, Issue, Reserve, UpdateAccount
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import AccountSaved
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.reservation import Decision
from support.scenes.scene import CREDIT, Scene, play


def test_a_limit_below_the_debt_leaves_the_floor_where_the_account_stood(database: str) -> None:
    """Nothing is admitted, leases drain, verify finds nothing; new terms set the floor anew."""

    async def floor(stage: Scene) -> int:
        found: int = await stage.pool.fetchval("SELECT floor FROM accounts WHERE path = 'acme'")
        return found

    async def act(stage: Scene) -> None:
        opened = CreateAccount(path="acme", model=Model.POSTPAID, credit_limit=100 * CREDIT)
        assert isinstance(await stage.do(opened), AccountSaved)
        assert await floor(stage) == -100 * CREDIT
        lease = (await stage.reserve("acme")).reservation
        assert lease.held > 0
        await stage.do(UpdateAccount(path="acme", credit_limit=1))
        assert await floor(stage) == -lease.held
        another = Reserve(account="acme", job_id="other", gpu_type="h100", milli_gpus=1_000)
        said = await stage.do(another)
        assert isinstance(said, Refused)
        assert said.reason is Reason.INSUFFICIENT_CREDITS
        await stage.advance(1)
        beaten = await stage.do(Beat(lease.reservation_id, 1, 1_000))
        assert isinstance(beaten, BeatResult)
        assert beaten.decision is Decision.DRAIN
        await stage.do(Issue(account="acme", amount=50 * CREDIT))
        await stage.do(UpdateAccount(path="acme", credit_limit=2))
        assert await floor(stage) == -2

    play(database, act)
