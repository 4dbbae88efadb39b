"""Fixtures for the metering pipeline: one NATS server and one Kafka cluster for each worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.engines.kafka_cluster import kafka_cluster
from support.engines.nats_server import NatsServer, nats_server


@pytest.fixture
def own_nats() -> Iterator[NatsServer]:
    """A NATS server for one test, which may kill it."""
    with nats_server() as server:
        yield server


@pytest.fixture
def kafka() -> Iterator[str]:
    """The addresses of a cluster without messages."""
    with kafka_cluster() as servers:
        yield servers


@pytest.fixture(params=["postgres", "nats", "kafka"])
def address(request: pytest.FixtureRequest) -> str:
    """The address of each bus, without messages."""
    if request.param == "postgres":
        return "postgres"
    if request.param == "nats":
        server: NatsServer = request.getfixturevalue("own_nats")
        return server.url
    return f"kafka://{request.getfixturevalue('kafka')}"
