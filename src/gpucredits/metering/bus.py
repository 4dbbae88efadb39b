"""The port to a message bus: durable messages, in order within a partition.

Owns: what every bus promises. Progress is not the bus's business: whoever reads says where from.

- ``publish`` returns when every message is durable. After an error, any of them may be there.
- Messages of one key are in one partition, in the order of publishing.
- ``read`` answers with messages after a position each, in order and without gaps within a
  partition, as often as it is asked.
- Positions of a partition grow and begin at 1; ``Extent.stream`` names what they are positions of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

PARTITIONS: Final = 8  # of a topic, where we make it
PUBLISH_TIMEOUT_S: Final = 5.0
READ_TIMEOUT_S: Final = 5.0
KEPT_DAYS: Final = 7  # messages stay on the bus for so long, read or not
BODY_BYTES_MAX: Final = 900_000  # the usual bound of a message is 1 MB on NATS and on Kafka


class Topic(StrEnum):
    """What messages are about."""

    USAGE = "usage"
    EVENTS = "events"


class BusUnavailable(Exception):  # noqa: N818 - the name is what a caller reads: the bus is away
    """The bus cannot be reached or does not answer. What was published may be there: repeat it."""


class BusSetupError(Exception):
    """The bus, its address or its streams cannot do what is promised, and waiting does not help."""


@dataclass(frozen=True, slots=True)
class Message:
    """Something to publish: the org that it is of, an id to drop repeats by, and the content."""

    key: int
    message_id: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Received:
    """A message where it lies."""

    partition: int
    position: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Extent:
    """The first and last position of a partition; first is last + 1 where it is empty."""

    first: int
    last: int
    stream: str = ""


class Bus(Protocol):
    """A message bus."""

    @property
    def name(self) -> str:
        """Which one it is: postgres, nats or kafka."""

    async def partitions(self, topic: Topic) -> int:
        """How many partitions a topic has; connects if need be."""

    async def publish(self, topic: Topic, messages: Sequence[Message]) -> None:
        """Publish messages in order; they are durable when this returns."""

    async def read(
        self, topic: Topic, after: Mapping[int, int], *, limit: int
    ) -> Sequence[Received]:
        """Messages of some partitions after a position each; at most ``limit`` of a partition."""

    async def extents(self, topic: Topic) -> Mapping[int, Extent]:
        """What each partition holds."""

    async def forget(self, topic: Topic, through: Mapping[int, int]) -> None:
        """Let go of messages that have taken effect, if the bus keeps none for later."""

    async def close(self) -> None:
        """Let go of connections."""


def by_partition(messages: Sequence[Message], partitions: int) -> dict[int, list[Message]]:
    """Messages by the partition of their key, in order."""
    found: dict[int, list[Message]] = {}
    for message in messages:
        found.setdefault(message.key % partitions, []).append(message)
    return found
