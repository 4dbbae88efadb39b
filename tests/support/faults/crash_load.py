"""A client process that works while the server is killed: it notes every call and never guesses.

Its workers issue, transfer, and run leases from reserve to settle, each with known keys. An
ambiguous call is sent again with the same key until it is decided; an unavailable one is given up,
because the client promises that nothing was done. It ends when its input ends.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from gpucredits.client import Ambiguous, AsyncClient, Call, Refused, Retry, Unavailable
from gpucredits.client.calls import extend, heartbeats, issue, reserve, settle, transfer
from gpucredits.client.errors import Undecided
from support.faults import history

GPU_TYPE = "h100"
WINDOW_S = 6 * 3_600  # no lease lapses while a scenario runs, however slow the machine is
RESOLVE_DEADLINE_S = 300.0
PAUSE_S = 0.1
ONCE = Retry(attempts_max=1, attempt_timeout_s=15.0)


class Spec(msgspec.Struct):
    """What a client process is told."""

    url: str
    secret: str
    name: str
    accounts: list[str]
    workers: int
    seed: int
    history: str


@dataclass(slots=True)
class Worker:
    """One caller: its own keys and leases, on accounts it shares with the others."""

    client: AsyncClient
    log: history.HistoryWriter
    accounts: list[str]
    name: str
    chance: random.Random
    done: asyncio.Event
    count: int = 0

    def key(self) -> str:
        """A key that nobody else uses."""
        self.count += 1
        return f"{self.name}-{self.count}"

    async def run(self) -> None:
        """Work until told to stop."""
        while not self.done.is_set():
            choice = self.chance.random()
            if choice < 0.15:
                await self.issue()
            elif choice < 0.45:
                await self.transfer()
            else:
                await self.lease()

    async def issue(self) -> None:
        """Grant a few credits; the grant carries its key, so that copies can be counted."""
        key = self.key()
        amount = f"0.{self.chance.randrange(1, 10**6):06d}"
        where = self.chance.choice(self.accounts)
        await self.ask("issue", issue(where, amount, metadata={"key": key}, key=key))

    async def transfer(self) -> None:
        """Move credits between two accounts; now and then more than there are."""
        source, target = self.chance.sample(self.accounts, 2)
        is_too_much = self.chance.random() < 0.1
        whole = 9 * 10**8 if is_too_much else self.chance.randrange(3)
        amount = f"{whole}.{self.chance.randrange(1, 10**6):06d}"
        await self.ask("transfer", transfer(source, target, amount, key=self.key()))

    async def lease(self) -> None:
        """Run a job: reserve, report real time as use, settle; some are left running."""
        key = self.key()
        gpus = self.chance.randrange(1, 9)
        where = self.chance.choice(self.accounts)
        call = reserve(
            where,
            job_id=key,
            gpu_type=GPU_TYPE,
            gpu_count=gpus,
            window_seconds=WINDOW_S,
            payer=where,
            key=key,
        )
        lease = await self.ask("reserve", call)
        if lease is None:
            return
        began, lease_id = time.monotonic(), lease.reservation_id
        for seq in range(1, self.chance.randrange(2, 8)):
            used_ms = int((time.monotonic() - began) * 1_000)
            if self.chance.random() < 0.5:
                await self.ask("beat", heartbeats([(lease_id, seq, used_ms)]))
            else:
                await self.ask("extend", extend(lease_id, seq=seq, used_ms=used_ms))
            if self.done.is_set():
                return
        if self.chance.random() < 0.9:
            await self.ask("settle", settle(lease_id, key=self.key()))

    async def ask(self, kind: str, call: Call[Any]) -> Any:
        """Make a call and note it, again and again while its outcome is in doubt."""
        request = (call.body or b"").decode()
        number = self.log.invoke(kind, call.key, call.path, request)
        deadline = time.monotonic() + RESOLVE_DEADLINE_S
        is_in_doubt = False
        while time.monotonic() < deadline:
            sent_s = time.monotonic()
            try:
                reply = await self.client.fetch(call)
            except Refused as refused:
                self.log.ended(number, history.REFUSED, sent_s, refused.reason)
                return None
            except Unavailable as gone:
                if not is_in_doubt:
                    self.log.ended(number, history.UNAVAILABLE, sent_s, told_by(gone))
                    await asyncio.sleep(PAUSE_S)
                    return None
            except Ambiguous as doubt:
                is_in_doubt = True
                self.log.ended(number, history.AMBIGUOUS, sent_s, told_by(doubt))
            else:
                self.log.ended(number, history.ACCEPTED, sent_s, reply.body.decode())
                return reply.value
            await asyncio.sleep(PAUSE_S)
        self.log.ended(number, history.UNRESOLVED, deadline)
        return None


def told_by(error: Undecided) -> str:
    """The status and the reason of an answer that decides nothing, or that there was none."""
    if error.problem is None:
        return f"none none {error}"
    return f"{error.problem.status} {error.problem.reason} {error}"


async def main(spec: Spec) -> None:
    """Run every worker until the input ends, and let each finish what it began."""
    done = asyncio.Event()
    with history.HistoryWriter(Path(spec.history)) as log:
        async with AsyncClient(spec.url, spec.secret, retry=ONCE) as client:
            workers = [
                Worker(
                    client=client,
                    log=log,
                    accounts=spec.accounts,
                    name=f"{spec.name}-{number}",
                    chance=random.Random(f"{spec.seed}-{spec.name}-{number}"),
                    done=done,
                )
                for number in range(spec.workers)
            ]
            asyncio.get_running_loop().add_reader(sys.stdin.fileno(), done.set)
            await asyncio.gather(*(worker.run() for worker in workers))


if __name__ == "__main__":
    asyncio.run(main(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Spec)))
