"""The port to a message bus: durable messages, in order within a partition.

Owns: what every bus promises. The bus keeps no progress: the reader says where to start.

- ``publish`` returns when every message is durable. After an error, some of them may be stored.
- Messages of one key are in one partition, in the order of publishing.
- ``read`` takes a position for each partition and gives the messages after it, in order and
  without gaps, however often it is called.
- Positions in a partition begin at 1 and grow; ``Extent.stream`` names the stream they belong to.
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
    """The bus is away. Publish the messages again: some of them may not be stored."""


class BusSetupError(Exception):
    """The bus, its address or its streams cannot keep the promises; waiting does not help."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message to publish: its org, an id by which repeats are dropped, and the content."""

    key: int
    message_id: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Received:
    """A stored message with its partition and position."""

    partition: int
    position: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Extent:
    """The first and last position of a partition; if it is empty, first is last + 1."""

    first: int
    last: int
    stream: str = ""


class Bus(Protocol):
    """A message bus."""

    @property
    def name(self) -> str:
        """The sort of bus: postgres, nats or kafka."""

    async def partitions(self, topic: Topic) -> int:
        """The number of a topic's partitions; connects if necessary."""

    async def publish(self, topic: Topic, messages: Sequence[Message]) -> None:
        """Publish messages in order; they are durable when this returns."""

    async def read(
        self, topic: Topic, after: Mapping[int, int], *, limit: int
    ) -> Sequence[Received]:
        """The messages after a position in each partition; at most ``limit`` of each."""

    async def extents(self, topic: Topic) -> Mapping[int, Extent]:
        """The first and last position of each partition."""

    async def forget(self, topic: Topic, through: Mapping[int, int]) -> None:
        """Delete messages that have taken effect, if the bus does not keep them for later."""

    async def close(self) -> None:
        """Close the connections."""


def by_partition(messages: Sequence[Message], partitions: int) -> dict[int, list[Message]]:
    """Messages grouped by the partition of their key, in order."""
    found: dict[int, list[Message]] = {}
    for message in messages:
        found.setdefault(message.key % partitions, []).append(message)
    return found
