"""A bus on Kafka: topics with partitions; a message counts once all in-sync replicas have it.

Owns: a producer, a consumer that reads where it is told, and the topics. Kafka's client blocks, so
each call runs in a thread. Consumer groups are not used: progress is in PostgreSQL.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka import Message as KafkaMessage
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # it is public

from gpucredits.metering.bus import (
    KEPT_DAYS,
    PARTITIONS,
    PUBLISH_TIMEOUT_S,
    READ_TIMEOUT_S,
    BusSetupError,
    BusUnavailable,
    Extent,
    Message,
    Received,
    Topic,
    by_partition,
)

logger = logging.getLogger(__name__)

BROKER_DEFAULT: Final = -1  # as many replicas as the cluster gives a topic
POLL_S: Final = 0.05
FETCH_WAIT_S: Final = 0.25

Result = TypeVar("Result")


class KafkaBus:
    """Topics ``gpucredits.usage`` and ``gpucredits.events``."""

    name = "kafka"

    def __init__(
        self,
        servers: str,
        *,
        replicas: int = BROKER_DEFAULT,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._settings: dict[str, Any] = {
            "bootstrap.servers": servers,
            "client.id": "gpucredits",
            "logger": logger,
            **(options or {}),
        }
        self._replicas = replicas
        self._cluster = ""
        self._counts: dict[Topic, int] = {}
        self._making = threading.Lock()
        self._reading = threading.Lock()
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None
        self._places: dict[tuple[str, int], int] = {}  # the offset that is fetched next

    async def partitions(self, topic: Topic) -> int:
        """The number of a topic's partitions; a missing topic is made."""
        return await self._in_thread(lambda: self._count(topic))

    async def publish(self, topic: Topic, messages: Sequence[Message]) -> None:
        """Publish messages; every in-sync replica has them on return."""
        await self._in_thread(lambda: self._publish(topic, messages))

    async def read(
        self, topic: Topic, after: Mapping[int, int], *, limit: int
    ) -> Sequence[Received]:
        """The messages after a position in each partition."""
        return await self._in_thread(lambda: self._read(topic, after, limit))

    async def extents(self, topic: Topic) -> Mapping[int, Extent]:
        """The first and last position of each partition."""
        return await self._in_thread(lambda: self._extents(topic))

    async def forget(self, topic: Topic, through: Mapping[int, int]) -> None:
        """Do nothing: the topic's own retention deletes messages."""

    async def close(self) -> None:
        """Close the connections."""
        await asyncio.to_thread(self._close)

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        try:
            return await asyncio.to_thread(work)
        except KafkaException as error:
            raise BusUnavailable(f"Kafka: {said(error)}") from error

    def _client(self) -> Producer:
        with self._making:
            if self._producer is None:
                timeout_ms = int(PUBLISH_TIMEOUT_S * 1_000)
                self._producer = Producer(
                    {
                        **self._settings,
                        "acks": "all",
                        "enable.idempotence": True,
                        "linger.ms": 0,
                        "message.timeout.ms": timeout_ms,
                    }
                )
            return self._producer

    def _count(self, topic: Topic) -> int:
        if topic not in self._counts:
            found = self._found(topic)
            if not found:
                self._make(topic)
                found = self._found(topic)
            if not found:
                raise BusUnavailable(f"Kafka: topic {topic_of(topic)} could not be made")
            self._counts[topic] = found
        return self._counts[topic]

    def _found(self, topic: Topic) -> int:
        """The number of a topic's partitions; 0 if there is no such topic."""
        metadata = self._client().list_topics(timeout=READ_TIMEOUT_S)
        self._cluster = f"kafka {metadata.cluster_id}"
        known = metadata.topics.get(topic_of(topic))
        return len(known.partitions) if known is not None and known.error is None else 0

    def _make(self, topic: Topic) -> None:
        name = topic_of(topic)
        kept = {"retention.ms": str(KEPT_DAYS * 24 * 3_600_000)}
        wanted = NewTopic(name, PARTITIONS, self._replicas, config=kept)
        made = AdminClient(self._settings).create_topics([wanted], operation_timeout=READ_TIMEOUT_S)
        try:
            made[name].result(READ_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise BusUnavailable(f"Kafka: {said(error)}") from error

    def _publish(self, topic: Topic, messages: Sequence[Message]) -> None:
        producer, name = self._client(), topic_of(topic)
        parts = by_partition(messages, self._count(topic))
        failures: list[KafkaError] = []
        left = len(messages)

        def delivered(error: KafkaError | None, _: KafkaMessage) -> None:
            nonlocal left
            left -= 1
            if error is not None:
                failures.append(error)

        for part, found in parts.items():
            for each in found:
                producer.produce(
                    name,
                    each.body,
                    key=str(each.key),
                    partition=part,
                    headers=[("id", each.message_id.encode())],
                    on_delivery=delivered,
                )
        deadline = time.monotonic() + PUBLISH_TIMEOUT_S * 2
        while left and time.monotonic() < deadline:
            producer.poll(POLL_S)
        if failures or left:
            why = failures[0].str() if failures else "no answer"
            raise BusUnavailable(f"Kafka: {why}")

    def _read(self, topic: Topic, after: Mapping[int, int], limit: int) -> list[Received]:
        self._count(topic)
        with self._reading:
            consumer = self._consumer_at(topic, after)
            batch = consumer.consume(limit, timeout=FETCH_WAIT_S)
            found: list[Received] = []
            for message in batch:
                if (error := message.error()) is not None:
                    self._places.clear()  # where it stands is unknown: it is told again
                    raise BusUnavailable(f"Kafka: {error.str()}")
                part, offset = message.partition(), message.offset()
                if part is None or offset is None:
                    continue
                self._places[topic_of(topic), part] = offset + 1
                found.append(Received(part, offset + 1, message.value() or b""))
        return found

    def _consumer_at(self, topic: Topic, after: Mapping[int, int]) -> Consumer:
        """A consumer at given positions; an offset is one less than a position."""
        if self._consumer is None:
            self._consumer = Consumer(
                {
                    **self._settings,
                    "group.id": "gpucredits",
                    "enable.auto.commit": False,
                    "enable.auto.offset.store": False,
                    "auto.offset.reset": "earliest",
                    "isolation.level": "read_committed",
                    "fetch.wait.max.ms": int(FETCH_WAIT_S * 1_000),
                }
            )
        wanted = {(topic_of(topic), part): position for part, position in after.items()}
        if wanted != self._places:
            self._consumer.assign(
                [TopicPartition(name, part, offset) for (name, part), offset in wanted.items()]
            )
            self._places = wanted
        return self._consumer

    def _extents(self, topic: Topic) -> dict[int, Extent]:
        count = self._count(topic)
        with self._reading:
            consumer = self._consumer or self._consumer_at(topic, dict.fromkeys(range(count), 0))
            found = {}
            for part in range(count):
                place = TopicPartition(topic_of(topic), part)
                ends: Any = consumer.get_watermark_offsets(place, timeout=READ_TIMEOUT_S)
                if ends is None:
                    raise BusUnavailable("Kafka: no answer")
                found[part] = Extent(ends[0] + 1, ends[1], self._cluster)
            return found

    def _close(self) -> None:
        with self._reading:
            consumer, self._consumer = self._consumer, None
            if consumer is not None:
                consumer.close()
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.flush(1.0)


def topic_of(topic: Topic) -> str:
    """The name of a topic."""
    return f"gpucredits.{topic.value}"


def said(error: KafkaException) -> str:
    """Kafka's error as text."""
    first = error.args[0] if error.args else error
    return first.str() if isinstance(first, KafkaError) else str(first)


def checked(servers: str) -> str:
    """Brokers, each with its port."""
    if "@" in servers:
        raise BusSetupError("give Kafka's user as the options sasl.username and sasl.password")
    for each in servers.split(","):
        host, _, port = each.rpartition(":")
        if not host or not port.isdigit():
            raise BusSetupError(
                f"each broker needs a host and a port, such as kafka://a:9092: {each!r}"
            )
    return servers
