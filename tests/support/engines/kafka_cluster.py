"""Three Kafka brokers in this process, which speak the protocol over TCP, from Kafka's C client.

They keep messages in memory only: what they prove is the protocol, not durability.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from confluent_kafka import Producer

from gpucredits.metering.bus import Topic
from gpucredits.metering.kafka_bus import topic_of
from support.waiting import HANGS_S, until

BROKERS = 3


def has_topic(client: Producer, name: str) -> bool:
    """Whether a topic is there."""
    return bool(client.list_topics(name, timeout=HANGS_S).topics[name].partitions)


@contextmanager
def kafka_cluster() -> Iterator[str]:
    """The addresses of a running cluster that has our topics; gone with its client."""
    host = Producer(
        {
            "test.mock.num.brokers": BROKERS,
            "allow.auto.create.topics": True,
            "logger": logging.getLogger("kafka_cluster"),
        }
    )
    brokers = host.list_topics(timeout=HANGS_S).brokers.values()
    for topic in Topic:  # it cannot be asked to make topics, but makes those that are asked about
        until(partial(has_topic, host, topic_of(topic)))
    yield ",".join(f"{each.host}:{each.port}" for each in brokers)
    host.flush(1.0)
