"""A ledger on a real database, with short words for what tests do to it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from gpucredits.core import ids
from gpucredits.core.command import Command, CreateAccount, Issue, Reserve
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.money import format_credits
from gpucredits.core.outcome import Outcome, Reserved
from gpucredits.service.reads.books import Balance, Reads
from gpucredits.service.reads.verify import verify
from gpucredits.service.write.ledger import DEFAULTS, Ledger, Request, WriteOptions
from gpucredits.store.access import audit
from gpucredits.store.access.audit import AuditNote
from gpucredits.store.clock import advance_clock
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.connections import PoolOptions, open_pool
from gpucredits.wire.scalars import format_instant

CREDIT = 1_000_000
HOUR_US = 3_600_000_000
PRICE = 3_600 * CREDIT  # one credit for each GPU-second
Result = TypeVar("Result")


class Scene:
    """One org, ``acme``, and whatever a test opens beside it."""

    def __init__(self, pool: Pool, ledger: Ledger) -> None:
        self.pool = pool
        self.ledger = ledger
        self.reads = Reads(pool)
        self._keys = itertools.count(1)

    def request(self, command: Command, key: str | None = None) -> Request:
        """A request with a key of its own."""
        return Request(command, key or f"key-{next(self._keys)}", repr(command).encode(), "tester")

    async def do(self, command: Command, *, org: str = "acme", key: str | None = None) -> Outcome:
        """Carry out a command."""
        return await self.ledger.submit(org, self.request(command, key))

    async def fund(self, *paths: str, credits_each: int = 100) -> None:
        """Open accounts, parents first, and issue credits to each."""
        for path in paths:
            org = path.partition("/")[0]
            await self.do(CreateAccount(path=path), org=org)
            if credits_each:
                await self.do(Issue(account=path, amount=credits_each * CREDIT), org=org)

    async def reserve(self, account: str = "acme", **wanted: Any) -> Reserved:
        """A lease on a node of its own; one GPU for ten seconds ahead unless said otherwise."""
        usual: dict[str, Any] = {"job_id": "job", "gpu_type": "h100", "milli_gpus": 1_000}
        usual |= {"window_ms": 10_000, "node": f"node-{next(self._keys)}"}
        command = Reserve(account=account, **(usual | wanted))
        outcome = await self.do(command, org=account.partition("/")[0])
        assert isinstance(outcome, Reserved), outcome
        return outcome

    async def beat(self, lease: Reserved, seq: int, used_ms: int) -> BeatResult:
        """One heartbeat of an org ``acme`` lease."""
        org_id = await self.ledger.org_id("acme")
        assert org_id is not None
        beat = Beat(lease.reservation.reservation_id, seq, used_ms)
        [outcome] = await self.ledger.beat([(org_id, beat)])
        assert isinstance(outcome, BeatResult), outcome
        return outcome

    async def balance(self, path: str = "acme", **asked: Any) -> Balance:
        """The balance of an account that exists."""
        balance = await self.reads.balance(path, **asked)
        assert balance is not None
        return balance

    async def advance(self, seconds: float) -> None:
        """Move the database's time on."""
        await advance_clock(self.pool, int(seconds * 1_000_000))

    async def assert_sound(self) -> None:
        """Every rule of the ledger holds."""
        findings = (await verify(self.pool)).findings
        assert findings == (), findings


async def list_price(pool: Pool, number: int, gpu_type: str, rate: int) -> None:
    """A list price that was always in force, and the act that set it."""
    async with pool.acquire() as db, db.transaction():
        done = await db.execute(
            "INSERT INTO list_prices VALUES ($1, $2, 'default', $3, 0, 0) ON CONFLICT DO NOTHING",
            number,
            gpu_type,
            rate,
        )
        if done.endswith(" 1"):
            price_id = ids.format_id(ids.PRICE, 0, number)
            told = {
                "price_id": price_id,
                "gpu_type": gpu_type,
                "region": "default",
                "account": "",
                "credits_per_gpu_hour": format_credits(rate),
                "effective_from": format_instant(0),
                "effective_to": None,
            }
            await audit.insert(db, 0, [AuditNote("tester", "price.set", price_id, "", new=told)])


@asynccontextmanager
async def scene(
    dsn: str, options: WriteOptions = DEFAULTS, *, stays_sound: bool = True
) -> AsyncIterator[Scene]:
    """A running ledger with one list price; every rule must hold when the test is done."""
    pool = await open_pool(dsn, PoolOptions(connections_max=options.connections + 6))
    ledger = Ledger(pool, options)
    await list_price(pool, 1, "h100", PRICE)
    try:
        built = Scene(pool, ledger)
        yield built
        if stays_sound:
            await built.assert_sound()
    finally:
        await ledger.stop()
        await pool.close()


def play(dsn: str, act: Callable[[Scene], Awaitable[Result]], **options: Any) -> Result:
    """Run one act on a ledger of its own."""

    async def run() -> Result:
        async with scene(dsn, **options) as stage:
            return await act(stage)

    return asyncio.run(run())
