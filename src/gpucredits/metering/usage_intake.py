"""Reads measured use from the bus: effect and progress are one transaction.

Owns: exact progress. A server that dies before the commit has done nothing; one that dies after it
has done everything. No acknowledgement in between can get lost.
Must not: move money.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from gpucredits.metering.bus import Bus, BusUnavailable, Extent, Received, Topic
from gpucredits.metering.ingest import ingest
from gpucredits.metering.standing import PipelineStanding
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.store.database.errors import Conflict, Unavailable
from gpucredits.store.metering import dead_letters, progress
from gpucredits.store.metering.progress import Progress

logger = logging.getLogger(__name__)

MESSAGES_MAX: Final = 50  # of one partition in one transaction
LOOK_EVERY_S: Final = 5.0
TOPIC: Final = Topic.USAGE


class UsageIntake:
    """Stores messages of the partitions that no other server reads now."""

    def __init__(self, pool: Pool, bus: Bus, standing: PipelineStanding, prover: bytes) -> None:
        self._pool = pool
        self._bus = bus
        self._standing = standing
        self._prover = prover
        self._is_prepared = False
        self._looked_s = 0.0

    async def step(self) -> bool:
        """Store the next messages; whether there may be more."""
        try:
            return await self._step()
        except BusUnavailable as error:
            self._looked_s = 0.0  # it may come back with other streams
            self._standing.trouble = str(error)
            raise

    async def _step(self) -> bool:
        partitions = await self._bus.partitions(TOPIC)
        extents = await self._look()
        async with session(self._pool) as db:
            if not self._is_prepared:
                await progress.prepare(db, TOPIC, partitions)
                self._is_prepared = True
            async with db.transaction():
                free = await progress.lock_free(db, TOPIC, partitions)
                if any(is_other_stream(each, extents) for each in free):
                    extents = dict(await self._bus.extents(TOPIC))  # others may have moved on
                places = {each.partition: self._place(each, extents) for each in free}
                found = await self._bus.read(TOPIC, places, limit=MESSAGES_MAX) if free else ()
                messages = self._fresh(found, places)
                moved = await self._use(db, messages, free, extents, places)
        self._standing.trouble = ""
        if moved:
            with suppress(BusUnavailable, Conflict, Unavailable):  # it is told again with the next
                await self._bus.forget(TOPIC, moved)
        return bool(messages)

    async def _use(
        self,
        db: Connection,
        messages: Sequence[Received],
        free: Sequence[Progress],
        extents: dict[int, Extent],
        places: dict[int, int],
    ) -> dict[int, int]:
        """Store messages with the progress they make; the partitions that moved."""
        if letters := await ingest(db, messages, self._prover):
            letters.sort(key=lambda each: (each.partition, each.position))
            await dead_letters.insert(db, TOPIC, letters)
            logger.warning("%d messages became dead letters: %s", len(letters), letters[0].detail)
        ends = places | {each.partition: each.position for each in messages}
        known = {each.partition: each for each in free}
        streams = {
            part: extents[part].stream if part in extents else known[part].stream for part in ends
        }
        moved = {
            part: end
            for part, end in ends.items()
            if end != known[part].position or streams[part] != known[part].stream
        }
        if moved:
            await progress.save(db, TOPIC, moved, streams)
        return moved

    def _place(self, known: Progress, extents: dict[int, Extent]) -> int:
        """The position to read on from; a new stream is read from its beginning."""
        if not is_other_stream(known, extents):
            return known.position
        self._standing.restarts += 1
        logger.warning(
            "partition %d is a new one: %d messages of the old one were read, and the new one is "
            "read from its beginning",
            known.partition,
            known.position,
        )
        return extents[known.partition].first - 1

    async def _look(self) -> dict[int, Extent]:
        """Ask now and then for the bus's positions; empty in between."""
        now_s = time.monotonic()
        if now_s - self._looked_s < LOOK_EVERY_S:
            return {}
        extents = dict(await self._bus.extents(TOPIC))
        async with session(self._pool) as db:
            stands = {each.partition: each.position for each in await progress.read(db, TOPIC)}
            self._standing.dead_letters = await dead_letters.waiting(db)
        lag = sum(
            max(extent.last - max(stands.get(part, 0), extent.first - 1), 0)
            for part, extent in extents.items()
        )
        self._standing.usage.saw(lag, sum(stands.values()))
        self._looked_s = now_s
        return extents

    def _fresh(self, found: Sequence[Received], places: dict[int, int]) -> list[Received]:
        """The messages after the positions that were asked for, each once and in order."""
        ends = dict(places)
        kept = []
        for message in found:
            part, end = message.partition, ends[message.partition]
            if message.position <= end:
                continue
            if end and message.position > end + 1:
                self._standing.lost += message.position - end - 1
                logger.error(
                    "partition %d: the bus deleted messages %d to %d before they were read",
                    part,
                    end + 1,
                    message.position - 1,
                )
            ends[part] = message.position
            kept.append(message)
        return kept


def is_other_stream(known: Progress, extents: dict[int, Extent]) -> bool:
    """Whether a partition's stream is another than the one whose positions are known."""
    extent = extents.get(known.partition)
    if extent is None or not known.position:
        return False
    return extent.stream != known.stream or extent.last < known.position
