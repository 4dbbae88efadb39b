"""Request buckets in Redis, shared by every server: one script, one round trip for a request.

Owns: the connections with their bounds, the names of the keys, and the script. The keys of one
request have one hash tag, its org, so that a cluster keeps them on one node. A connection that was
lost while nobody used it is no outage: what was sent on it is sent once more, on a fresh one.
Must not: decide what an outage means, or put the address or its password into a message.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import NoScriptError, RedisError

from gpucredits.core.request_limit import BucketDraw, BucketName, Holder
from gpucredits.store.database.answer_timeout import patient_timeout

TIMEOUT_S: Final = 0.25  # for one round trip, connecting included
PROBE_TIMEOUT_S: Final = 1.0
SOCKET_TIMEOUT_S: Final = 30.0  # the client's own; beyond what any request or probe may take
CONNECTIONS_MAX: Final = 64
CONNECTIONS_WARM: Final = 16
SCHEMES: Final = ("redis://", "rediss://", "unix://")
SYSTEM: Final = "system:"  # the tag of keys for the whole system; no org's path has a colon
CLOCK: Final = (
    "local time = redis.call('TIME')\nlocal now = tonumber(time[1]) * 1000000 + tonumber(time[2])\n"
)
BODY: Final = Path(__file__).with_name("request_buckets.lua").read_text(encoding="utf-8")
_PROBE = "gpucredits:{probe}:probe"
_KINDS = {Holder.KEY: "key", Holder.ORG: "org"}


class RedisAddressError(Exception):
    """What was given is not the address of a Redis; the message does not repeat it."""


class RedisAway(Exception):  # noqa: N818  # it states what happened
    """Redis did not answer, not in time, or with an error; the message is the kind of it."""


@dataclass(frozen=True, slots=True)
class BucketSeen:
    """A caller's last sight of a bucket: its epoch, and what it held ``age_us`` ago."""

    epoch: str
    level: int
    fraction: int
    age_us: int


NOTHING: Final = BucketSeen("", -1, 0, 0)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the script said: whether all was drawn, and (level, fraction, epoch) of each bucket.

    ``is_there`` is False when a bucket was not there, whose level is then -1: nothing was drawn.
    """

    is_there: bool
    is_drawn: bool
    now: int
    buckets: list[tuple[int, int, str]]


class RedisBuckets:
    """The shared buckets behind one address."""

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S, clock: str = CLOCK) -> None:
        self._timeout_s = timeout_s
        self._script = clock + BODY
        self._sha = hashlib.sha1(self._script.encode(), usedforsecurity=False).hexdigest()
        if not url.startswith(SCHEMES):
            raise RedisAddressError(_misfit())
        try:
            pool = BlockingConnectionPool.from_url(
                url,
                max_connections=CONNECTIONS_MAX,
                timeout=SOCKET_TIMEOUT_S,
                socket_timeout=SOCKET_TIMEOUT_S,
                socket_connect_timeout=SOCKET_TIMEOUT_S,
                retry=Retry(NoBackoff(), 0),
                protocol=2,  # a Redis 5 speaks no other
                decode_responses=True,
                client_name="gpucredits",
            )
        except (ValueError, TypeError):
            raise RedisAddressError(_misfit()) from None
        self._redis: Redis = Redis.from_pool(pool)

    async def draw(
        self, asks: Sequence[BucketDraw], seen: Sequence[BucketSeen], *, may_make: bool = False
    ) -> Answer:
        """Draw one token from every bucket, or from none; ``RedisAway`` when that cannot be said.

        ``may_make``: make buckets that are not there, from what was seen of them.
        """
        return await self._ask("1" if may_make else "0", asks, seen)

    async def look(self, ask: BucketDraw, seen: BucketSeen) -> Answer:
        """How a bucket stands; nothing is drawn, made or kept alive."""
        return await self._ask("look", [ask], [seen])

    async def probe(self) -> None:
        """Do what a request needs, on a bucket of nobody; ``RedisAway`` while it cannot be done."""
        await self._run(
            [_PROBE], [1, 1_000_000, 3_600_000_000, "", 1_000_000, 0, 0], timeout_s=PROBE_TIMEOUT_S
        )

    async def warm(self) -> None:
        """Probe, then open some connections, so that a first burst need not wait for them."""
        await self.probe()
        probes = (self.probe() for _ in range(CONNECTIONS_WARM))
        await asyncio.gather(*probes, return_exceptions=True)  # fewer will do as well

    async def close(self) -> None:
        """Close the connections."""
        try:
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                await self._redis.aclose()
        except (RedisError, OSError, TimeoutError):
            return

    async def _ask(
        self, how: str, asks: Sequence[BucketDraw], seen: Sequence[BucketSeen]
    ) -> Answer:
        numbers: list[str | int] = [how]
        for ask, known in zip(asks, seen, strict=True):
            numbers += (
                ask.limit.capacity,
                ask.limit.refill_per_hour,
                known.epoch,
                known.level,
                known.fraction,
                known.age_us,
            )
        keys = [key_of(ask.name) for ask in asks]
        reply = await self._run(keys, numbers, timeout_s=self._timeout_s)
        state, now, *rest = reply
        buckets = list(zip(rest[::3], rest[1::3], rest[2::3], strict=True))
        return Answer(state >= 0, state == 1, now, buckets)

    async def _run(self, keys: list[str], values: list[Any], *, timeout_s: float) -> list[Any]:
        try:
            async with patient_timeout(timeout_s):
                reply = await self._tried(keys, values)
        except (RedisError, OSError, TimeoutError) as error:
            raise RedisAway(type(error).__name__) from error
        if not isinstance(reply, list):
            raise RedisAway("UnexpectedReply")
        return reply

    async def _tried(self, keys: list[str], values: list[Any]) -> Any:
        """The reply; a connection that turns out to be lost is replaced once.

        The one that failed goes back into the pool closed, is the next to be taken and is opened
        anew; so do others that the loop has heard the end of. If a draw was carried out and only
        its reply was lost, it is drawn twice: one token, in the bucket's disfavour.
        """
        try:
            return await self._sent(keys, values)
        except (ConnectionLost, OSError):
            await asyncio.sleep(0)
            return await self._sent(keys, values)

    async def _sent(self, keys: list[str], values: list[Any]) -> Any:
        try:
            return await self._redis.evalsha(self._sha, len(keys), *keys, *values)
        except NoScriptError:
            return await self._redis.eval(self._script, len(keys), *keys, *values)


def key_of(name: BucketName) -> str:
    """Where a bucket lives; only ids and well formed paths are part of it, never a name."""
    tag = f"gpucredits:{{{name.org or SYSTEM}}}:{_KINDS[name.holder]}"
    return f"{tag}:{name.number}" if name.holder is Holder.KEY else tag


def _misfit() -> str:
    return "the Redis address must be redis://, rediss:// or unix:// with host, port and database"
