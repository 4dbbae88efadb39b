"""A bus on NATS JetStream: one stream for each partition, on file.

Owns: the connection, the streams, and reading by position without a consumer on the server.
The client does not reconnect by itself: the next call connects again. So no message leaves after
its caller was told that it failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig, StreamInfo
from nats.js.errors import NotFoundError

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
from gpucredits.metering.nats_login import NatsClient, NatsLogin

CONNECT_TIMEOUT_S: Final = 3
VERSION_MIN: Final = (2, 11)  # reads several messages by position in one request
READ_BYTES_MAX: Final = 8_000_000  # of one partition in one request
PENDING_BYTES: Final = 64 * 1024 * 1024
FAILURES: Final = (NatsError, OSError, TimeoutError, EOFError)

Result = TypeVar("Result")


class NatsBus:
    """Streams ``gpucredits-usage-0`` and so on, with subjects ``gpucredits.usage.0``."""

    name = "nats"
    storage = StorageType.FILE

    def __init__(self, login: NatsLogin, *, replicas: int = 1) -> None:
        self._login = login
        self._replicas = replicas
        self._client: NatsClient | None = None
        self._lost = asyncio.Event()
        self._why = ""  # what the server said when it closed the connection, or refused a subject
        self._connecting = asyncio.Lock()
        self._ready: set[Topic] = set()

    async def partitions(self, topic: Topic) -> int:
        """The number of partitions; missing streams are made."""
        await self._streams(topic)
        return PARTITIONS

    async def publish(self, topic: Topic, messages: Sequence[Message]) -> None:
        """Publish each partition's messages in order; after a failure, publish no later ones."""
        client = await self._streams(topic)
        parts = by_partition(messages, PARTITIONS)
        stream = client.jetstream(timeout=PUBLISH_TIMEOUT_S)

        async def in_order(part: int) -> None:
            for each in parts[part]:
                await stream.publish(
                    subject_of(topic, part), each.body, headers={"Nats-Msg-Id": each.message_id}
                )

        async with asyncio.timeout(PUBLISH_TIMEOUT_S * 2):
            await self._all_of([in_order(part) for part in parts])

    async def read(
        self, topic: Topic, after: Mapping[int, int], *, limit: int
    ) -> Sequence[Received]:
        """The messages after a position in each partition."""
        client = await self._streams(topic)
        found = await self._all_of(
            [read_stream(client, topic, part, after[part], limit) for part in after]
        )
        return [message for messages in found for message in messages]

    async def extents(self, topic: Topic) -> Mapping[int, Extent]:
        """The first and last position of each stream."""
        client = await self._streams(topic)
        stream = client.jetstream(timeout=READ_TIMEOUT_S)
        infos = await self._all_of(
            [stream.stream_info(stream_of(topic, part)) for part in range(PARTITIONS)]
        )
        return {part: extent_of(info) for part, info in enumerate(infos)}

    async def forget(self, topic: Topic, through: Mapping[int, int]) -> None:
        """Do nothing: messages stay for days, for a database that is restored from a backup."""

    async def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            await closed(client)

    async def _streams(self, topic: Topic) -> NatsClient:
        """Connect, and make sure that the topic's streams are there."""
        async with self._connecting:
            if self._client is None or self._lost.is_set():
                await self.close()
                self._client = await self._connect()
            client = self._client
            if topic not in self._ready:
                await self._all_of(
                    [self._ensure_stream(client, topic, part) for part in range(PARTITIONS)]
                )
                self._ready.add(topic)
        return client

    async def _connect(self) -> NatsClient:
        lost = asyncio.Event()
        self._why = ""

        async def gone(*why: object) -> None:
            self._why = self._why or " ".join(map(str, why))
            lost.set()

        options, client = self._login.options(), NatsClient()
        client.needs_tls = self._login.needs_tls
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await client.connect(
                    self._login.url,
                    name="gpucredits",
                    allow_reconnect=False,
                    connect_timeout=CONNECT_TIMEOUT_S,
                    closed_cb=gone,
                    disconnected_cb=gone,
                    error_cb=gone,
                    pending_size=PENDING_BYTES,
                    **options,
                )
        except FAILURES as error:
            client.hang_up()
            raise BusUnavailable(
                f"NATS at {self._login.url}: {str(error) or 'no answer'}"
            ) from error
        version = client.connected_server_version
        if (version.major, version.minor) < VERSION_MIN:
            await closed(client)
            raise BusSetupError(f"NATS {version.major}.{version.minor} is too old: 2.11 is needed")
        self._lost = lost
        self._ready.clear()
        return client

    async def _ensure_stream(self, client: Client, topic: Topic, part: int) -> None:
        """Make a stream, or check that the existing one is on file and drops nothing unread."""
        stream = client.jetstream(timeout=READ_TIMEOUT_S)
        name = stream_of(topic, part)
        try:
            info = await stream.stream_info(name)
        except NotFoundError:
            info = await stream.add_stream(
                StreamConfig(
                    name=name,
                    subjects=[subject_of(topic, part)],
                    storage=self.storage,
                    retention=RetentionPolicy.LIMITS,
                    discard=DiscardPolicy.NEW,
                    max_age=KEPT_DAYS * 24 * 3_600,
                    num_replicas=self._replicas,
                    allow_direct=True,
                )
            )
        made = info.config
        wrong = [
            what
            for what, holds in (
                ("storage must be file", made.storage == self.storage),
                ("retention must be limits", made.retention == RetentionPolicy.LIMITS),
                ("discard must be new", made.discard == DiscardPolicy.NEW),
                ("allow_direct must be on", bool(made.allow_direct)),
            )
            if not holds
        ]
        if wrong:
            raise BusSetupError(f"stream {name}: {', '.join(wrong)}")

    async def _all_of(self, work: Sequence[Coroutine[Any, Any, Result]]) -> list[Result]:
        """The results of concurrent calls; BusUnavailable once one fails or the server is lost."""
        tasks = [asyncio.ensure_future(each) for each in work]
        together = asyncio.gather(*tasks)
        lost = asyncio.ensure_future(self._lost.wait())
        try:
            waits: list[asyncio.Future[Any]] = [together, lost]
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if lost in done and not all(task.done() for task in tasks):
                raise BusUnavailable(f"NATS: {self._why or 'the connection was lost'}")
            return [await task for task in tasks]
        except FAILURES as error:
            raise BusUnavailable(f"NATS: {str(error) or type(error).__name__}") from error
        finally:
            lost.cancel()
            for task in tasks:
                task.cancel()
            await asyncio.gather(together, *tasks, lost, return_exceptions=True)


async def closed(client: NatsClient) -> None:
    """Close a connection, whether or not the server answers."""
    with suppress(*FAILURES):
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            await client.close()
    client.hang_up()


async def read_stream(
    client: Client, topic: Topic, part: int, after: int, limit: int
) -> list[Received]:
    """The messages of one stream after a position, by one request with several answers."""
    inbox = client.new_inbox()
    replies = await client.subscribe(inbox)
    try:
        asked = {"seq": after + 1, "batch": limit, "max_bytes": READ_BYTES_MAX}
        await client.publish(
            f"$JS.API.DIRECT.GET.{stream_of(topic, part)}", msgspec.json.encode(asked), reply=inbox
        )
        found: list[Received] = []
        async with asyncio.timeout(READ_TIMEOUT_S):
            while True:
                reply: Msg = await replies.next_msg(timeout=READ_TIMEOUT_S)
                headers = reply.headers or {}
                status = headers.get("Status")
                if status in ("204", "404"):  # the end of what was asked for; nothing there
                    return found
                if status is not None:
                    raise BusUnavailable(f"NATS does not read {stream_of(topic, part)}: {status}")
                found.append(Received(part, int(headers["Nats-Sequence"]), reply.data))
    finally:
        with suppress(*FAILURES):
            await replies.unsubscribe()


def extent_of(info: StreamInfo) -> Extent:
    """The first and last position of a stream, and its identity."""
    state = info.state
    first = state.first_seq if state.messages else state.last_seq + 1
    return Extent(first, state.last_seq, str(info.created or ""))


def stream_of(topic: Topic, part: int) -> str:
    """The name of a partition's stream."""
    return f"gpucredits-{topic.value}-{part}"


def subject_of(topic: Topic, part: int) -> str:
    """The subject of a partition's messages."""
    return f"gpucredits.{topic.value}.{part}"
