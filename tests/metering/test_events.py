"""Events leave in order per org, at least once, and are kept for whoever has not read them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from gpucredits.core.command import CreateAccount
from gpucredits.jobs.upkeep import Retention
from gpucredits.metering.bus import Message, Topic
from gpucredits.metering.event_message import SUBJECTS
from gpucredits.metering.pipeline import Pipeline
from gpucredits.metering.standing import ReadersStanding
from gpucredits.service.metering.events import list_events
from gpucredits.service.reads.health import readers_alarm
from gpucredits.store.ledger.outbox import announce
from gpucredits.store.metering import events
from gpucredits.store.metering.events import release_events, trim
from support.scenes.metering import opened, pipeline_on
from support.scenes.scene import Scene, play
from support.waiting import HANGS_S

DAY_US = 86_400_000_000


async def published(pipeline: Pipeline, count: int) -> list[dict[str, Any]]:
    """Events on the bus, in the order of each partition."""
    places = dict.fromkeys(range(await pipeline.bus.partitions(Topic.EVENTS)), 0)
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(HANGS_S):
        while len(found) < count:
            for each in await pipeline.bus.read(Topic.EVENTS, places, limit=100):
                places[each.partition] = each.position
                found.append(msgspec.json.decode(each.body))
    return found


async def stored(stage: Scene, org_id: int) -> list[int]:
    """The events of an org in the order they were written."""
    rows = await stage.pool.fetch(
        "SELECT event_id FROM outbox WHERE org_id = $1 ORDER BY event_id", org_id
    )
    return [row["event_id"] for row in rows]


def test_events_leave_in_the_order_of_their_org(database: str, address: str) -> None:
    """Every event is on the bus once, with an id and a position, in its org's order."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "globex")
        for number in range(10):
            await stage.do(CreateAccount(path=f"acme/p{number}"))
            await stage.do(CreateAccount(path=f"globex/p{number}"), org="globex")
        await opened(stage)
        await release_events(stage.pool)
        count = await stage.pool.fetchval("SELECT count(*) FROM outbox")
        async with pipeline_on(stage.pool, address) as pipeline:
            while await pipeline.outlet.step():
                pass
            found = await published(pipeline, count)
            assert not await pipeline.outlet.step()
            assert len({each["id"] for each in found}) == len(found) == count
            for org_id, org in ((1, "acme"), (2, "globex")):
                mine = [each for each in found if each["source"] == f"/gpucredits/{org}"]
                numbers = [int(each["id"].split("_")[2], 36) for each in mine]
                assert numbers == await stored(stage, org_id)
                places = [each["position"] for each in mine]
                assert places == sorted(places)
            [lease] = [each for each in found if each["type"] == "reservation.opened"]
            assert lease["subject"].startswith("rsv_1_")
            assert lease["data"]["job_id"] == "train"
            assert lease["specversion"] == "1.0"

    play(database, act)


def test_a_publisher_that_dies_before_its_progress_publishes_again(database: str) -> None:
    """Events that were published and not noted leave again, with the same ids: none is missing."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        await release_events(stage.pool)
        count = await stage.pool.fetchval("SELECT count(*) FROM outbox")
        async with pipeline_on(stage.pool, "postgres") as pipeline:
            publish = pipeline.bus.publish

            async def publish_and_die(topic: Topic, messages: Sequence[Message]) -> None:
                await publish(topic, messages)
                raise ConnectionAbortedError

            pipeline.bus.publish = publish_and_die  # type: ignore[method-assign]
            with pytest.raises(Exception, match="ConnectionAborted"):
                await pipeline.outlet.step()
            pipeline.bus.publish = publish  # type: ignore[method-assign]
            while await pipeline.outlet.step():
                pass
            found = await published(pipeline, 2 * count)
            ids = [each["id"] for each in found]
            assert ids[:count] == ids[count:]
            assert len(set(ids)) == count

    play(database, act)


def test_one_server_publishes_at_a_time(database: str) -> None:
    """While one server publishes, another leaves the events to it."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        await release_events(stage.pool)
        async with (
            pipeline_on(stage.pool, "postgres") as one,
            pipeline_on(stage.pool, "postgres") as other,
        ):
            under_way, go_on = asyncio.Event(), asyncio.Event()
            publish = one.bus.publish

            async def slowly(topic: Topic, messages: Sequence[Message]) -> None:
                under_way.set()
                await go_on.wait()
                await publish(topic, messages)

            one.bus.publish = slowly  # type: ignore[method-assign]
            first = asyncio.create_task(one.outlet.step())
            await under_way.wait()
            assert not await other.outlet.step()
            assert await stage.pool.fetchval("SELECT count(*) FROM bus_messages") == 0
            go_on.set()
            await first
            count = await stage.pool.fetchval("SELECT count(*) FROM outbox")
            assert len(await published(other, count)) == count

    play(database, act)


def test_a_late_commit_is_not_skipped(database: str) -> None:
    """An event whose transaction ends last holds back those after it, and comes before them.

    Control: a reader that goes by the numbers alone would pass it.
    """

    async def shown(stage: Scene, after: int = 0) -> list[int]:
        await release_events(stage.pool)
        rows = await list_events(stage.pool, org_id=None, after=after, limit=99, kind="spend")
        return [each.org_id for each in rows]

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "globex")
        async with stage.pool.acquire() as slow, stage.pool.acquire() as quick:
            work = slow.transaction()
            await work.start()
            await announce(slow, 1, "spend.unusual", 1, {"account": "acme"})
            await announce(quick, 2, "spend.unusual", 2, {"account": "globex"})
            visible = await stage.pool.fetch("SELECT org_id FROM outbox WHERE type LIKE 'spend%'")
            assert [row["org_id"] for row in visible] == [2], "control: the first is not there yet"
            assert await shown(stage) == []
            await work.commit()
        assert await shown(stage) == [1, 2]

    play(database, act)


def test_what_was_never_committed_holds_nothing_up(database: str) -> None:
    """The numbers of a transaction that was undone are left out, and the reader is not behind."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        async with stage.pool.acquire() as db:
            undone = db.transaction()
            await undone.start()
            await announce(db, 1, "spend.unusual", 1, {"account": "acme"})
            await undone.rollback()
            await release_events(stage.pool)
            newest = await db.fetchval("SELECT max(event_id) FROM outbox")
            assert await events.last_position(db) == newest
            await announce(db, 1, "spend.unusual", 2, {"account": "acme"})
            await release_events(stage.pool)
            assert await events.last_position(db) == newest + 2

    play(database, act)


def test_events_are_kept_for_the_slowest_reader(database: str) -> None:
    """Old events go when each reader of their org and of all has dealt with them, not before."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "globex")
        await release_events(stage.pool)
        last = await stage.pool.fetchval("SELECT position FROM event_stream")
        await stage.advance(8 * 86_400)

        async def left(**positions: int) -> int:
            for name, position in positions.items():
                async with stage.pool.acquire() as db:
                    org_id = 1 if name.startswith("acme") else 0
                    await events.set_consumer(db, org_id, name, position)
            await trim(stage.pool, older_us=7 * DAY_US, limit=1_000)
            return int(await stage.pool.fetchval("SELECT count(*) FROM outbox"))

        whole = await left()
        assert whole == last, "nobody reads: all are kept"
        assert await left(bus=0, archive=last) == whole, "the bus has read nothing"
        acme = len(await stored(stage, 1))
        assert await left(bus=last, acme_bills=0) == acme, "a reader of acme keeps those of acme"
        assert await left(acme_bills=last) == 0

    play(database, act)


def test_young_events_stay(database: str) -> None:
    """Events that everybody has read stay for their days, for who reads without a name."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        await release_events(stage.pool)
        async with stage.pool.acquire() as db:
            await events.set_consumer(db, 0, "bus", await events.last_position(db))
        assert await trim(stage.pool, older_us=7 * DAY_US, limit=1_000) == 0

    play(database, act)


def test_every_type_of_event_has_a_subject() -> None:
    """Each event's subject is an id of its noun, not of the event itself."""
    assert {"account", "grant", "reservation", "topup", "statement", "request"} <= set(SUBJECTS)


def test_a_reader_that_stopped_is_an_alarm(database: str) -> None:
    """What is kept for it is counted after its days; one that moves, or is forgotten, is not."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "globex")
        await release_events(stage.pool)
        readers = ReadersStanding()
        retention = Retention(stage.pool, readers)
        async with stage.pool.acquire() as db:
            newest = await events.last_position(db)
            await events.set_consumer(db, 0, "all", newest)
            await events.set_consumer(db, 1, "billing", 0)
            await stage.advance(6 * 86_400)
            await retention.tick()
            assert readers_alarm(readers) == []  # control: it may be slow
            await stage.advance(2 * 86_400)
            await retention.tick()
            ((name, why, count),) = readers_alarm(readers)
            assert (name, count) == ("event_readers_stuck", 1)
            assert "gpucredits event consumers" in why
            await events.set_consumer(db, 1, "billing", 1)  # it moves, and has not caught up
            await retention.tick()
            assert readers.stuck == 0
            await stage.advance(8 * 86_400)
            await retention.tick()
            assert readers.stuck == 1
            await events.forget_consumer(db, 1, "billing")
            await retention.tick()
            assert readers.stuck == 0

    play(database, act)
