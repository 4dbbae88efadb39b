"""What every bus promises: one suite, three implementations."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from gpucredits.metering.address import bus_at
from gpucredits.metering.bus import Bus, Message, Received, Topic
from gpucredits.store.database.connections import open_pool
from support.waiting import HANGS_S

ORGS = 5
EACH = 40


def with_bus(dsn: str, address: str, act: Callable[[Bus, Bus], Awaitable[None]]) -> None:
    """Run one act on two connections to a bus, as two servers have them."""

    async def run() -> None:
        pool = await open_pool(dsn)
        first, second = bus_at(address, pool), bus_at(address, pool)
        try:
            await act(first, second)
        finally:
            await first.close()
            await second.close()
            await pool.close()

    asyncio.run(run())


async def all_of(bus: Bus, topic: Topic, count: int, limit: int = 7) -> list[Received]:
    """Every message of a topic, read in small pieces; fails if they do not come."""
    places = dict.fromkeys(range(await bus.partitions(topic)), 0)
    found: list[Received] = []
    async with asyncio.timeout(HANGS_S):
        while len(found) < count:
            for each in await bus.read(topic, places, limit=limit):
                assert each.position == places[each.partition] + 1, "a gap, or a repeat"
                places[each.partition] = each.position
                found.append(each)
    return found


def message(org: int, number: int) -> Message:
    """A message that says what it is."""
    return Message(org, f"{org}.{number}", f"{org}:{number}".encode())


def texts(found: list[Received], org: int) -> list[str]:
    """What the messages of an org say, in the order they came."""
    said = [each.body.decode() for each in found]
    return [each for each in said if each.startswith(f"{org}:")]


def test_messages_of_an_org_come_in_order_to_whoever_reads(database: str, address: str) -> None:
    """Each message comes once, in its org's order, from one partition, to both readers."""

    async def act(one: Bus, other: Bus) -> None:
        for number in range(0, EACH, 10):
            batch = [message(org, number + n) for n in range(10) for org in range(1, ORGS + 1)]
            await one.publish(Topic.USAGE, batch)
        for bus in (one, other):
            found = await all_of(bus, Topic.USAGE, ORGS * EACH)
            for org in range(1, ORGS + 1):
                assert texts(found, org) == [f"{org}:{n}" for n in range(EACH)]
                home = {each.partition for each in found if each.body.startswith(b"%d:" % org)}
                assert len(home) == 1

    with_bus(database, address, act)


def test_a_reader_may_go_back(database: str, address: str) -> None:
    """A position is read as often as it is asked for, also after later ones."""

    async def act(bus: Bus, _: Bus) -> None:
        await bus.publish(Topic.USAGE, [message(1, n) for n in range(10)])
        found = await all_of(bus, Topic.USAGE, 10)
        place = {found[0].partition: found[3].position}
        again = await read_all(bus, place, 6)
        assert [each.body for each in again] == [each.body for each in found[4:]]
        assert not await bus.read(Topic.USAGE, {found[0].partition: 10}, limit=5)
        again = await read_all(bus, place, 6)
        assert [each.position for each in again] == [5, 6, 7, 8, 9, 10]

    with_bus(database, address, act)


async def read_all(bus: Bus, after: Mapping[int, int], count: int) -> list[Received]:
    """The messages after a place, asked for until all are there; a bus may answer in parts."""
    async with asyncio.timeout(HANGS_S):
        while len(found := await bus.read(Topic.USAGE, after, limit=100)) < count:
            continue
    return list(found)


def test_extents_say_what_is_there(database: str, address: str) -> None:
    """A partition begins empty; its last position is the number of its messages."""

    async def act(bus: Bus, other: Bus) -> None:
        empty = await bus.extents(Topic.EVENTS)
        assert {(each.first, each.last) for each in empty.values()} == {(1, 0)}
        await bus.publish(Topic.EVENTS, [message(org, n) for n in range(3) for org in (1, 2)])
        held = await other.extents(Topic.EVENTS)
        assert len(held) == await bus.partitions(Topic.EVENTS)
        assert sorted(each.last for each in held.values())[-2:] == [3, 3]
        assert sum(each.last for each in held.values()) == 6

    with_bus(database, address, act)


def test_topics_are_apart(database: str, address: str) -> None:
    """What is published on one topic is on no other."""

    async def act(bus: Bus, _: Bus) -> None:
        await bus.publish(Topic.EVENTS, [message(1, 1)])
        await bus.publish(Topic.USAGE, [message(1, 2)])
        assert texts(await all_of(bus, Topic.USAGE, 1), 1) == ["1:2"]
        assert texts(await all_of(bus, Topic.EVENTS, 1), 1) == ["1:1"]

    with_bus(database, address, act)


def test_large_messages_pass(database: str, address: str) -> None:
    """A message of the largest size that we make arrives whole."""

    async def act(bus: Bus, _: Bus) -> None:
        body = b"x" * 900_000
        await bus.publish(Topic.USAGE, [Message(1, "large", body)])
        [found] = await all_of(bus, Topic.USAGE, 1)
        assert found.body == body

    with_bus(database, address, act)
