"""Runs the metering pipeline: releases events, reads use from the bus, publishes events."""

from __future__ import annotations

import logging

from gpucredits.jobs.pace import Paced
from gpucredits.metering.bus import BusSetupError, BusUnavailable
from gpucredits.metering.pipeline import Pipeline
from gpucredits.store.database.connection import Pool
from gpucredits.store.metering.events import release_events

logger = logging.getLogger(__name__)


class EventRelease(Paced):
    """Releases events to readers; one server does so at a time."""

    def __init__(self, pool: Pool, *, rest_s: float = 0.5) -> None:
        super().__init__(rest_s=rest_s)
        self.pool = pool

    async def tick(self) -> bool:
        """Release the next events."""
        await release_events(self.pool)
        return False


class Pumping(Paced):
    """Repeats a step that needs the bus, and waits while the bus is away."""

    def __init__(self, pipeline: Pipeline, *, rest_s: float = 0.5) -> None:
        super().__init__(rest_s=rest_s)
        self.pipeline = pipeline
        self._is_away = False

    async def step(self) -> bool:
        """Do a bounded piece of work; True to go on without a rest."""
        raise NotImplementedError

    async def tick(self) -> bool:
        """Take a step; log once that the bus is away, and once that it is back."""
        try:
            more = await self.step()
        except (BusUnavailable, BusSetupError) as error:
            self.pipeline.standing.trouble = str(error)
            if not self._is_away:
                logger.warning("%s waits for the bus: %s", type(self).__name__, error)
            self._is_away = True
            return False
        if self._is_away:
            logger.info("%s goes on: the bus is back", type(self).__name__)
        self._is_away = False
        return more


class UsageReading(Pumping):
    """Reads measured use from the bus."""

    async def step(self) -> bool:
        """Store the next messages."""
        return await self.pipeline.intake.step()


class EventPublishing(Pumping):
    """Publishes the events of the outbox on the bus."""

    async def step(self) -> bool:
        """Publish the next events."""
        return await self.pipeline.outlet.step()
