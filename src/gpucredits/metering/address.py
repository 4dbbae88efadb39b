"""The address of a bus, as ``serve --bus`` takes it, and the bus behind it.

Each bus is an extra: its client is imported only when its address is given.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit, urlunsplit

from gpucredits.metering.bus import Bus, BusSetupError
from gpucredits.metering.postgres_bus import PostgresBus
from gpucredits.store.database.connection import Pool

SCHEMES = ("nats", "tls", "kafka")
KAFKA_OPTIONS = ("security.", "sasl.", "ssl.")
REPLICAS_MAX = 9


def bus_at(address: str, pool: Pool) -> Bus:
    """The bus at an address, not yet connected."""
    if address == "postgres":
        return PostgresBus(pool)
    parts = urlsplit(address)
    if parts.scheme not in SCHEMES or not parts.netloc:
        raise BusSetupError(
            "must be postgres, nats://HOST:PORT, tls://HOST:PORT or kafka://HOST:PORT,HOST:PORT"
        )
    options = dict(parse_qsl(parts.query))
    replicas = replicas_of(options.pop("replicas", None))
    if parts.scheme == "kafka":
        return kafka_bus(parts.netloc, replicas, options)
    return nats_bus(urlunsplit(parts._replace(query="")), replicas, options)


def replicas_of(text: str | None) -> int | None:
    """The number of copies of each message, if the address gives one."""
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= REPLICAS_MAX:
        raise BusSetupError(f"replicas must be a number from 1 to {REPLICAS_MAX}, not {text!r}")
    return int(text)


def nats_bus(url: str, replicas: int | None, options: dict[str, str]) -> Bus:
    """NATS JetStream, if its client is installed."""
    try:
        from gpucredits.metering import nats_bus as bus  # noqa: PLC0415  # an extra
        from gpucredits.metering import nats_login as login  # noqa: PLC0415  # an extra
    except ModuleNotFoundError as error:
        raise missing("NATS", "nats") from error
    for name in options:
        if name not in login.OPTIONS:
            known = ", ".join(login.OPTIONS)
            raise BusSetupError(f"NATS has no option {name}: its options are replicas, {known}")
    return bus.NatsBus(login.login_of(url, options), replicas=replicas or 1)


def kafka_bus(servers: str, replicas: int | None, options: dict[str, str]) -> Bus:
    """Kafka, if its client is installed."""
    try:
        from gpucredits.metering import kafka_bus as kafka  # noqa: PLC0415  # an extra
    except ModuleNotFoundError as error:
        raise missing("Kafka", "kafka") from error
    for name in options:
        if not name.startswith(KAFKA_OPTIONS):
            raise BusSetupError(f"no option {name}: options begin with security, sasl or ssl")
    return kafka.KafkaBus(
        kafka.checked(servers), replicas=replicas or kafka.BROKER_DEFAULT, options=options
    )


def missing(name: str, extra: str) -> BusSetupError:
    """The error for a missing client, with the package to install."""
    return BusSetupError(f"the {name} client is not installed: pip install 'gpucredits[{extra}]'")
