"""The address of a bus: what is understood, and what is refused with a reason."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from gpucredits.metering.address import bus_at
from gpucredits.metering.bus import BusSetupError, BusUnavailable, Topic
from gpucredits.metering.nats_login import login_of

POOL: Any = None


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("postgres", "postgres"),
        ("nats://127.0.0.1:4222", "nats"),
        ("tls://user:secret@nats.example:4222?replicas=3", "nats"),
        ("kafka://a:9092,b:9092?replicas=3&security.protocol=SSL", "kafka"),
    ],
)
def test_addresses_name_their_bus(address: str, name: str) -> None:
    """Each form of address is the bus that it names; nothing is connected."""
    assert bus_at(address, POOL).name == name


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("", "must be postgres"),
        ("redis://x", "must be postgres"),
        ("nats://", "must be postgres"),
        ("nats://a?replicas=0", "replicas must be"),
        ("nats://a?replicas=many", "replicas must be"),
        ("nats://a?durable=yes", "no option durable"),
        ("nats://a:1,b:2", "one host and a port"),
        ("nats://a:b", "one host and a port"),
        ("tls://a?ca_file=/no/such.pem", "TLS files /no/such.pem: .*No such file"),
        ("tls://a?key_file=/no/such.key", "key_file needs cert_file"),
        ("nats://a?credentials=/no/such.creds", "credentials /no/such.creds: .*No such file"),
        ("nats://a?credentials=/dev/null", "must hold a user's JWT and its seed"),
        ("kafka://a", "a host and a port"),
        ("kafka://user:secret@a:9092", "sasl.username"),
        ("kafka://a:9092?acks=0", "no option acks"),
    ],
)
def test_other_addresses_are_refused(address: str, said: str) -> None:
    """An address that means nothing, or would weaken what is promised, is refused by name."""
    with pytest.raises(BusSetupError, match=said):
        bus_at(address, POOL)


@pytest.mark.parametrize(
    ("address", "module", "extra"),
    [("nats://a", "nats", "nats"), ("kafka://a:1", "confluent_kafka", "kafka")],
)
def test_a_missing_client_is_named(
    address: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its client a bus says what to install."""
    ours = f"gpucredits.metering.{extra}_"
    for name in [each for each in sys.modules if each.startswith((f"{module}.", ours))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    import gpucredits.metering  # noqa: PLC0415  # the attribute of the package hides the gap

    monkeypatch.delattr(gpucredits.metering, f"{extra}_bus", raising=False)
    with pytest.raises(BusSetupError, match=rf"pip install 'gpucredits\[{extra}\]'"):
        bus_at(address, POOL)


def test_passwords_are_not_shown() -> None:
    """Messages about an address leave out who connects and how."""
    login = login_of("nats://user:p%40ss@host:4222", {})
    assert login.url == "nats://host:4222"
    assert "p@ss" not in repr(login)
    assert login.options() == {"user": "user", "password": "p@ss"}
    assert login_of("nats://word@host:4222", {}).options() == {"token": "word"}


def test_options_of_kafka_reach_its_client() -> None:
    """They are passed on as they are; one that the client does not take is said in its words."""
    address = "kafka://127.0.0.1:9?security.protocol=SASL_SSL&sasl.username=u&ssl.ca.location=/x"
    settings = bus_at(address, POOL)._settings  # type: ignore[attr-defined]  # of Kafka
    assert settings["security.protocol"] == "SASL_SSL"
    assert (settings["sasl.username"], settings["ssl.ca.location"]) == ("u", "/x")
    bus = bus_at("kafka://127.0.0.1:9?security.protocol=NONSENSE", POOL)
    with pytest.raises(BusUnavailable, match=r'"NONSENSE" for .*"security.protocol"'):
        asyncio.run(bus.partitions(Topic.USAGE))
