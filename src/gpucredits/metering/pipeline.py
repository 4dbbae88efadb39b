"""The pipeline of one server: its bus, the two steps on the bus, and how they stand."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Final

from gpucredits.metering.bus import Bus, Topic
from gpucredits.metering.event_outlet import EventOutlet
from gpucredits.metering.standing import PipelineStanding
from gpucredits.metering.usage_intake import UsageIntake
from gpucredits.metering.usage_message import messages_of
from gpucredits.store.billing.usage_events import UsageRow
from gpucredits.store.database.connection import Pool

MESSAGE_ID_BYTES: Final = 16


class Pipeline:
    """The parts of the pipeline on a server with a bus."""

    def __init__(self, pool: Pool, bus: Bus, prover: bytes) -> None:
        self.bus = bus
        self._prover = prover  # makes and checks the proofs of its messages
        self.standing = PipelineStanding(bus.name)
        self.intake = UsageIntake(pool, bus, self.standing, prover)
        self.outlet = EventOutlet(pool, bus, self.standing)
        self.on_published: Callable[[], None] = lambda: None

    async def publish_use(self, rows: Sequence[UsageRow]) -> None:
        """Hand measured use to the bus; it is durable there when this returns.

        A bus drops messages whose id it knows. So no caller has a say in these ids.
        """
        if rows:
            message_id = secrets.token_hex(MESSAGE_ID_BYTES)
            await self.bus.publish(Topic.USAGE, messages_of(rows, message_id, self._prover))
            self.on_published()
