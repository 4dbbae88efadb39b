"""Every guard on the way into a pool is wired: each, taken out, makes its own scenario fail.

Like the gates of the core: with the guard a scenario holds, and without it it does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gpucredits.api.http import asgi
from gpucredits.api.ledger import reservations
from gpucredits.core.fairshare import decide
from gpucredits.service.dispatch import admission
from gpucredits.service.dispatch.admission import Admitting, Rehearsal
from gpucredits.store.database.connection import Connection
from gpucredits.store.dispatch import cycle as dispatch
from gpucredits.store.dispatch.cycle import DispatchLease
from gpucredits.store.dispatch.queue import Key, QueuedRequest, QueueState
from support.books.fairshare_case import Case, ask
from support.engines.postgres import TestServer
from support.scenes.scene import Scene, play
from support.scenes.stage import CAPACITY, Stage, stage_on
from support.servers.in_process import Send, server_in_process

Scenario = Callable[[str, Path], None]
Guard = tuple[Any, str, Any, Scenario]


OPENING = (
    ("POST", "/v1/accounts", {"path": "acme"}),
    ("POST", "/v1/credits/issue", {"account": "acme", "amount": "1000"}),
    ("POST", "/v1/prices", {"gpu_type": "h100", "credits_per_gpu_hour": "36"}),
    ("PUT", "/v1/pools/h100/default", {"capacity": 1}),
)


def job(number: int, **more: Any) -> dict[str, Any]:
    """A reserve of one GPU."""
    asked = {"account": "acme", "job_id": f"j{number}", "gpu_type": "h100", "gpu_count": 1}
    return asked | more


def over_http(play_it: Callable[[Send], Awaitable[None]]) -> Scenario:
    """A scenario against a server."""

    def scenario(dsn: str, folder: Path) -> None:
        async def act() -> None:
            async with server_in_process(dsn, folder, OPENING) as send:
                await play_it(send)

        asyncio.run(act())

    return scenario


def on_stage(play_it: Callable[[Stage], Awaitable[None]]) -> Scenario:
    """A scenario with dispatchers that are stepped by hand."""

    def scenario(dsn: str, _: Path) -> None:
        async def act(base: Scene) -> None:
            async with stage_on(base, min_runtime_ms=0) as stage:
                await play_it(stage)

        play(dsn, act)

    return scenario


async def full_pool(send: Send) -> None:
    """A plain reserve into a full pool is turned away."""
    codes = [(await send("POST", "/v1/reservations", job(n))).status_code for n in range(2)]
    assert codes == [201, 409]


async def full_pool_of_a_batch(send: Send) -> None:
    """So are the items of a batch that do not fit."""
    body = {"items": [job(n) for n in range(2)]}
    items = (await send("POST", "/v1/reservations:batch", body)).json()["results"]
    assert sorted(item["status"] for item in items) == [201, 409]


async def explained_full_pool(send: Send) -> None:
    """And an explanation says so beforehand."""
    assert (await send("POST", "/v1/reservations", job(0))).status_code == 201
    told = (await send("POST", "/v1/admissions:check", job(1))).json()
    assert told["reason"] == "fair_share"


async def too_many_requests(send: Send) -> None:
    """A key that asks more often than it may is told to slow down."""
    key = (await send("POST", "/v1/keys", {"role": "member", "scope": "acme"})).json()
    terms = {"refill_per_hour": 1, "capacity": 1}
    await send("PUT", f"/v1/keys/{key['key_id']}/limit", terms)
    path = "/v1/accounts/acme/balance"
    codes = [(await send("GET", path, by=key["secret"])).status_code for _ in range(2)]
    assert codes == [200, 429]


async def old_picture(stage: Stage) -> None:
    """Who was slow does not let another in where somebody more important has come and got in."""
    await stage.fund("acme")
    await stage.ask("acme", CAPACITY)
    late = stage.dispatcher("late", lease_us=0)
    picture = await late.look(stage.pool_id)
    assert picture is not None
    cycle = await late.decide(picture)
    await stage.ask("acme", CAPACITY, priority=5)
    await stage.dispatcher("quick", lease_us=0).cycle(stage.pool_id)
    async with stage.base.pool.acquire() as db:
        lease = await dispatch.take_lease(db, stage.pool_id, "late", lease_us=0)
    assert lease is not None
    await late.apply(lease._replace(version=picture.version), cycle)
    assert await stage.held() == CAPACITY


async def stopped_in_vain(stage: Stage) -> None:
    """Nobody's work is stopped for one who cannot pay."""
    await stage.fund("vic")
    for _ in range(2):
        await stage.ask("vic", CAPACITY // 2)
    await stage.dispatcher("one").cycle(stage.pool_id)
    await stage.fund("evil", amount=1)
    await stage.ask("evil", CAPACITY // 2)
    await stage.dispatcher("one").cycle(stage.pool_id)
    query = "SELECT count(*) FROM reservations WHERE stopping_at > 0"
    assert await stage.base.pool.fetchval(query) == 0


async def member_gone(stage: Stage) -> None:
    """A gang of which one member went away between decision and claim does not start."""
    await stage.fund("acme")
    keys = [await stage.ask("acme", 1, gang="g", gang_size=2) for _ in range(2)]
    dispatcher = stage.dispatcher("one")
    async with stage.base.pool.acquire() as db:
        lease = await dispatch.take_lease(db, stage.pool_id, "one", lease_us=5_000_000)
    picture = await dispatcher.look(stage.pool_id)
    assert lease is not None
    assert picture is not None
    cycle = await dispatcher.decide(picture)
    await stage.base.pool.execute(
        "UPDATE queue SET state = $2 WHERE queue_id = $1", keys[0][1], int(QueueState.CANCELED)
    )
    await dispatcher.apply(lease, cycle)
    assert await stage.held() == 0


def member_missing(_: str, __: Path) -> None:
    """A gang that is incomplete does not start."""
    decisions = Case(8, waiting=(ask("m", "a", 1, gang="g", gang_size=2),)).decide()
    assert decisions.admissions == ()


def no_turn_needed(*_: object) -> bool:
    """Straight to the ledger."""
    return False


async def nothing(*_: object) -> None:
    """A step that is left out."""


claim = dispatch.claim


async def claim_anyway(
    db: Connection, lease: DispatchLease, chosen: Sequence[QueuedRequest]
) -> list[QueuedRequest] | None:
    """A claim that holds whatever was let in since the picture was taken."""
    query = "SELECT version FROM pool_dispatch WHERE pool_id = $1"
    version = await db.fetchval(query, lease.pool_id)
    return await claim(db, lease._replace(version=version), chosen)


async def all_pass(_: Admitting, wanted: Mapping[Key, QueuedRequest], __: object) -> Rehearsal:
    """Nobody is asked about: everybody counts as able to come in."""
    return Rehearsal(passed=set(wanted))


def one_by_one(claimed: Sequence[QueuedRequest]) -> list[list[QueuedRequest]]:
    """No gangs."""
    return [[each._replace(gang_size=1)] for each in claimed]


problem_of = decide._problem


def complete(members: Sequence[Any], *rest: Any) -> Any:
    """Every gang counts as complete."""
    return problem_of([each._replace(gang_size=1) for each in members], *rest)


GUARDS: dict[str, Guard] = {
    "the way into a pool": (reservations, "needs_turn", no_turn_needed, over_http(full_pool)),
    "the way into a pool, of a batch": (
        *(reservations, "needs_turn", no_turn_needed),
        over_http(full_pool_of_a_batch),
    ),
    "the pool in an explanation": (
        *(reservations, "needs_turn", no_turn_needed),
        over_http(explained_full_pool),
    ),
    "the limit on requests": (asgi, "throttle", nothing, over_http(too_many_requests)),
    "the version in a claim": (dispatch, "claim", claim_anyway, on_stage(old_picture)),
    "the rehearsal before work is stopped": (
        *(Admitting, "rehearse", all_pass),
        on_stage(stopped_in_vain),
    ),
    "whole gangs in a decision": (decide, "_problem", complete, member_missing),
    "whole gangs in a claim": (admission, "_together", one_by_one, on_stage(member_gone)),
}


@pytest.mark.parametrize(
    ("place", "name", "without", "scenario"),
    [
        pytest.param(*guard, marks=[pytest.mark.as_source] if guard[0] in (asgi, decide) else [])
        for guard in GUARDS.values()
    ],
    ids=GUARDS,
)
def test_a_guard_that_is_taken_out_is_missed(
    postgres: TestServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    place: Any,
    name: str,
    without: Any,
    scenario: Scenario,
) -> None:
    """With the guard its scenario holds; without it the scenario fails."""
    with postgres.database() as dsn:
        scenario(dsn, tmp_path / "with")
    monkeypatch.setattr(place, name, without)
    with postgres.database() as dsn, pytest.raises(AssertionError):
        scenario(dsn, tmp_path / "without")
