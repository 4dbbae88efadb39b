"""Grants as they are listed: what the clock has done to them, written down or not."""

from __future__ import annotations

from gpucredits.core.command import CreateAccount, Issue, Transfer
from gpucredits.core.grant import GrantState
from gpucredits.core.outcome import Granted
from gpucredits.store.ledger.grants import GrantFilter
from support.scenes.scene import CREDIT, Scene, play

SECOND_US = 1_000_000


async def issue(stage: Scene, seconds: int | None) -> int:
    """A grant that ends after so many seconds, or never."""
    command = Issue(account="acme", amount=10 * CREDIT)
    if seconds is not None:
        now = await stage.pool.fetchval("SELECT ledger_now()")
        command = Issue(account="acme", amount=10 * CREDIT, expires_at=now + seconds * SECOND_US)
    outcome = await stage.do(command)
    assert isinstance(outcome, Granted)
    return outcome.grant.grant_id


async def states(stage: Scene, **asked: bool | int) -> list[tuple[int, GrantState]]:
    """The grants of the org, and what they are now."""
    listed = await stage.reads.grants("acme", GrantFilter(account="acme", **asked))  # type: ignore[arg-type]
    return [(grant.grant_id, grant.state) for grant, _ in listed]


def test_a_grant_that_is_used_up_ends_on_time(database: str) -> None:
    """With nothing left in it the clock has nothing to write, and it is over all the same."""

    async def act(stage: Scene) -> None:
        await stage.do(CreateAccount(path="acme"))
        await stage.do(CreateAccount(path="acme/p"))
        used_up = await issue(stage, 60)
        await stage.do(Transfer(source="acme", target="acme/p", amount=10 * CREDIT))
        assert await states(stage) == [(used_up, GrantState.ACTIVE)]
        await stage.advance(60)
        assert await states(stage) == [(used_up, GrantState.ENDED)]

    play(database, act)


def test_open_grants_are_open_before_any_sweep(database: str) -> None:
    """Grants that have ended are left out, and take no place on the page."""

    async def act(stage: Scene) -> None:
        await stage.do(CreateAccount(path="acme"))
        ending = [await issue(stage, 60) for _ in range(5)]
        lasting = [await issue(stage, None) for _ in range(3)]
        assert len(await states(stage, open_only=True)) == 8
        await stage.advance(61)
        found = [(number, GrantState.ACTIVE) for number in lasting]
        assert await states(stage, open_only=True) == found
        assert await states(stage, open_only=True, limit=2) == found[:2]
        assert await states(stage, open_only=True, limit=2, after=lasting[1]) == found[2:]
        assert await states(stage, limit=5) == [(number, GrantState.ENDED) for number in ending]

    play(database, act)
