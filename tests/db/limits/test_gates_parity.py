"""Limits and budgets in the stored ledger against the rules alone: equal answers, equal rows."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest

from gpucredits.core.command import (
    CreateAccount,
    Issue,
    Reserve,
    SetQuota,
    SetRateLimit,
    Settle,
    UpdateAccount,
)
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Refused
from gpucredits.core.reservation import Exhaustion
from support.books.gated_parity import GatedShadow, Operators, compare, live_leases
from support.books.parity import PATHS
from support.scenes.scene import CREDIT, PRICE, Scene, list_price, play

STEPS = 70


@pytest.mark.parametrize("seed", range(12))
def test_limits_in_the_store_agree_with_the_rules(
    database: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Loading only what a batch needs of the limits never changes an answer or loses a row."""
    shadow, operators = GatedShadow(), Operators(seed)
    shadow.book.prices.append(type(shadow.book.prices[0])(2, "a100", "default", PRICE // 3, 0))
    shadow.take_part(monkeypatch)

    async def act(stage: Scene) -> None:
        await list_price(stage.pool, 2, "a100", PRICE // 3)
        for path in PATHS:
            await stage.do(CreateAccount(path=path))
        await stage.do(Issue(account="acme", amount=900 * CREDIT))
        for _ in range(STEPS):
            count = operators.dice.randrange(1, 4)
            commands = [operators.command(shadow.now) for _ in range(count)]
            beats = [(1, operators.beat()) for _ in range(operators.dice.randrange(8))]
            reported = asyncio.create_task(stage.ledger.beat(beats))
            for outcome in await asyncio.gather(*(stage.do(command) for command in commands)):
                operators.note(outcome)
            for answer in await reported:
                assert isinstance(answer, BeatResult | Refused), answer
            if operators.dice.random() < 0.3:
                await stage.advance(operators.dice.choice([0.5, 3, 20, 90, 4_000]))
        await compare(stage, shadow)

    play(database, act)


@pytest.mark.parametrize("seed", range(4))
def test_promised_overdrafts_in_the_store_agree_with_the_rules(
    database: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """What jobs without credits are promised is stored with them, their payer and its limits."""
    shadow, dice = GatedShadow(), random.Random(seed)
    shadow.take_part(monkeypatch)
    terms: dict[str, Any] = {"exhaustion": Exhaustion.FINISH, "overdraft": 20 * CREDIT}

    async def act(stage: Scene) -> None:
        for path in PATHS:
            await stage.do(CreateAccount(path=path))
        await stage.do(Issue(account="acme", amount=60 * CREDIT))
        await stage.do(UpdateAccount(path="acme", overdraft_limit=30 * CREDIT))
        window = {"dimension": Dimension.CREDITS_PER_WINDOW, "calendar": Calendar.DAY}
        await stage.do(SetQuota(account="acme", limit=300 * CREDIT, **window))  # type: ignore[arg-type]
        limited = SetRateLimit(account="acme", capacity=90 * CREDIT, refill_per_hour=3_600 * CREDIT)
        await stage.do(limited)
        promised = 0
        for _ in range(STEPS):
            live = list(live_leases(shadow.book).values())
            beats = [
                (1, Beat(lease.reservation_id, lease.seq + 1, lease.used_ms + 1_500))
                for lease in live
                if dice.random() < 0.8
            ]
            await stage.ledger.beat(beats)
            payer = shadow.book.paths["acme"]
            promised += payer.promised > 0
            if dice.random() < 0.4:
                ask = Reserve(
                    account="acme/p/u", job_id="j", gpu_type="h100", milli_gpus=1_000, **terms
                )
                node = f"node-{dice.randrange(10**9)}"
                await stage.do(replace(ask, window_ms=dice.choice([6_000, 10_000]), node=node))
            elif live and dice.random() < 0.1:
                await stage.do(Settle(reservation_id=dice.choice(live).reservation_id))
            elif dice.random() < 0.2:
                await stage.do(Issue(account="acme", amount=dice.randrange(1, 30 * CREDIT)))
            await stage.advance(dice.choice([1, 1.5, 3]))
        assert promised > STEPS // 10, "jobs have run on what they were promised"
        await compare(stage, shadow)

    play(database, act)
