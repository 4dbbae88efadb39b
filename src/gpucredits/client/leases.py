"""Leases as context managers: ``with client.lease(...)`` and ``async with client.lease(...)``.

Owns: reporting in the background, checkpoints and tokens included, telling the caller to drain, and
settling at the end, also of a block that failed. The use is the time from entering the block to
leaving it. One thread (or task) reports and another watches the time: neither a report without an
answer nor a caller's ``on_drain`` holds up what the caller has to be told.
Must not: end the caller's work. Whoever goes on after ``over`` is set works without a lease.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from gpucredits.client import calls
from gpucredits.client.errands import Errands
from gpucredits.client.errors import CallError
from gpucredits.client.methods import AsyncSender, Sender
from gpucredits.client.standing import BEAT_MS_MIN, Act, Standing, admitted, heard, seq_after
from gpucredits.wire.ledger.closing import ClosedAnswer
from gpucredits.wire.ledger.heartbeat import BeatAnswer
from gpucredits.wire.ledger.reservation import ReservationAnswer

CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
Told = Callable[["LeaseView"], None]


def clock_ms() -> int:
    """Milliseconds of a clock that nobody sets; suspended time counts where that is known."""
    return time.clock_gettime_ns(CLOCK) // 1_000_000


def lease_fields(
    gpu_type: str, gpus: Any, job_id: str | None, fields: dict[str, Any]
) -> dict[str, Any]:
    """The fields of the reserve; work without a name gets one."""
    name = job_id or f"lease-{secrets.token_hex(8)}"
    return {"job_id": name, "gpu_type": gpu_type, "gpu_count": gpus, **fields}


class LeaseView:
    """What the holder of a lease sees, and what the next report says.

    ``reservation`` is the lease as it was admitted, ``receipt`` how it ended.
    """

    reservation: ReservationAnswer

    def __init__(self, account: str, fields: dict[str, Any], on_drain: Told | None) -> None:
        self._asked = (account, fields)
        self._on_drain = on_drain
        self._standing = Standing(ends_at_ms=0)
        self._seq = 0
        self._began_ms = 0
        self._is_told = False
        self._errands = Errands(reservation_id="")
        self.receipt: ClosedAnswer | None = None

    @property
    def reservation_id(self) -> str:
        """The id of the lease."""
        return self.reservation.reservation_id

    @property
    def reason(self) -> str:
        """Why the lease drains, is throttled or has stopped; empty while it just goes on."""
        return self._standing.reason

    @property
    def is_throttled(self) -> bool:
        """Whether the work should pause for now."""
        return self._standing.is_paused

    @property
    def token(self) -> str:
        """A lease token that is still good, if the lease was asked for with ``token=True``."""
        return self._errands.token

    def checkpoint(self) -> None:
        """Report a checkpoint: a later claim of lost work begins here.

        The next report sends the checkpoint; the last one is sent before the lease ends.
        """
        self._errands.saved(self.used_ms())

    def used_ms(self) -> int:
        """The use until now."""
        return clock_ms() - self._began_ms

    def left_s(self) -> float:
        """How long the work may go on if no other answer comes."""
        return max(self._standing.ends_at_ms - clock_ms(), 0) / 1_000

    def _begin(self, lease: ReservationAnswer, sent_at_ms: int) -> None:
        self.reservation = lease
        self._standing = admitted(lease, sent_at_ms)
        self._errands = Errands(
            reservation_id=lease.reservation_id, wants_token=bool(self._asked[1].get("token"))
        )
        self._errands.admitted(lease, sent_at_ms)
        self._began_ms = clock_ms()

    def _beat(self) -> tuple[str, int, int]:
        self._seq += 1
        return self.reservation_id, self._seq, self.used_ms()

    def _hear(self, answer: BeatAnswer, sent_at_ms: int) -> None:
        self._standing = heard(self._standing, answer, sent_at_ms)
        self._seq = seq_after(self._seq, answer)

    def _unheard(self) -> None:
        self._standing = replace(self._standing, beat_at_ms=clock_ms() + 4 * BEAT_MS_MIN)

    def _until_report_s(self) -> float:
        """How long no report is due."""
        return max(self._standing.beat_at_ms - clock_ms(), 0) / 1_000

    def _until_act_s(self) -> float:
        """How long the caller has nothing to be told, unless an answer changes that."""
        standing = self._standing  # another thread may replace it meanwhile
        due = standing.ends_at_ms
        if standing.signal_at_ms is not None and not self._is_told:
            due = min(due, standing.signal_at_ms)
        return max(due - clock_ms(), 0) / 1_000

    def _act(self) -> Act:
        return self._standing.act(clock_ms())

    def _has_ended(self, over: threading.Event | asyncio.Event) -> bool:
        """Whether trust has ended; no answer that comes later takes that back."""
        return over.is_set() or self._act() is Act.END

    def _tell(self, act: Act) -> bool:
        """Whether the caller is to be told to drain now: once."""
        if self._is_told or act not in (Act.END, Act.SIGNAL):
            return False
        self._is_told = True
        return True


class Lease(LeaseView):
    """A lease that a thread reports for, while another watches the time.

    ``drain`` is set when the work should end, ``over`` when it must have; ``on_drain`` is called in
    a thread of its own.
    """

    def __init__(
        self, client: Sender, account: str, fields: dict[str, Any], on_drain: Told | None
    ) -> None:
        super().__init__(account, fields, on_drain)
        self._client = client
        self._closing = threading.Event()
        self._changed = threading.Event()
        self._threads: list[threading.Thread] = []
        self.drain = threading.Event()
        self.over = threading.Event()

    def __enter__(self) -> Self:
        account, fields = self._asked
        sent_at_ms = clock_ms()
        self._begin(self._client.send(calls.reserve(account, **fields)), sent_at_ms)
        self._start(self._report)
        self._start(self._watch)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        used_ms = self.used_ms()
        self._closing.set()
        self._changed.set()
        for thread in self._threads:  # the watching one may add that of ``on_drain``
            thread.join()
        self._run_errands()
        try:
            self.receipt = self._client.send(calls.settle(self.reservation_id, used_ms=used_ms))
        except CallError as failed:
            if error is None:
                raise
            error.add_note(f"{self.reservation_id} could not be settled: {failed}")

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name="gpucredits-lease", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _watch(self) -> None:
        """Tell the caller what is due, also while a report waits for its answer."""
        while not self.over.is_set():
            self._changed.wait(self._until_act_s())
            self._changed.clear()
            if self._closing.is_set():
                return
            act = self._act()
            if self._tell(act):
                self.drain.set()
                if self._on_drain is not None:
                    self._start(partial(self._on_drain, self))
            if act is Act.END:
                self.over.set()

    def _report(self) -> None:
        while not (self._closing.wait(self._until_report_s()) or self._has_ended(self.over)):
            self._send_beat()

    def _send_beat(self) -> None:
        sent_at_ms = clock_ms()
        try:
            answer = self._client.send(calls.heartbeats([self._beat()])).results[0]
        except CallError:
            self._unheard()
        else:
            self._hear(answer, sent_at_ms)
            self._changed.set()
            self._run_errands()

    def _run_errands(self) -> None:
        """Tell and ask what is due; what fails is due again with the next report."""
        for call in self._errands.due(sent_at_ms := clock_ms()):
            with suppress(CallError):
                self._errands.heard(self._client.send(call), sent_at_ms)


class AsyncLease(LeaseView):
    """A lease that a task reports for, while another watches the time.

    ``drain`` is set when the work should end, ``over`` when it must have; ``on_drain`` is called in
    the event loop.
    """

    def __init__(
        self, client: AsyncSender, account: str, fields: dict[str, Any], on_drain: Told | None
    ) -> None:
        super().__init__(account, fields, on_drain)
        self._client = client
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.drain = asyncio.Event()
        self.over = asyncio.Event()

    async def __aenter__(self) -> Self:
        account, fields = self._asked
        sent_at_ms = clock_ms()
        self._begin(await self._client.send(calls.reserve(account, **fields)), sent_at_ms)
        self._tasks = [asyncio.create_task(work) for work in (self._report(), self._watch())]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        used_ms = self.used_ms()
        for task in self._tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait(self._tasks)
        await self._run_errands()
        call = calls.settle(self.reservation_id, used_ms=used_ms)
        try:
            self.receipt = await self._client.send(call)
        except CallError as failed:
            if error is None:
                raise
            error.add_note(f"{self.reservation_id} could not be settled: {failed}")

    async def _watch(self) -> None:
        """Tell the caller what is due, also while a report waits for its answer."""
        while not self.over.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), self._until_act_s())
            self._changed.clear()
            act = self._act()
            if self._tell(act):
                if self._on_drain is not None:  # what fails there is told to the loop
                    asyncio.get_running_loop().call_soon(self._on_drain, self)
                self.drain.set()
            if act is Act.END:
                self.over.set()

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(self._until_report_s())
            if self._has_ended(self.over):
                return
            await self._send_beat()

    async def _send_beat(self) -> None:
        sent_at_ms = clock_ms()
        patience_s = max(self.left_s() / 2, BEAT_MS_MIN / 1_000)
        try:
            async with asyncio.timeout(patience_s):
                answers = await self._client.send(calls.heartbeats([self._beat()]))
        except (CallError, TimeoutError):
            self._unheard()
        else:
            self._hear(answers.results[0], sent_at_ms)
            self._changed.set()
            await self._run_errands()

    async def _run_errands(self) -> None:
        """Tell and ask what is due; what fails is due again with the next report."""
        for call in self._errands.due(sent_at_ms := clock_ms()):
            with suppress(CallError, TimeoutError):
                async with asyncio.timeout(max(self.left_s() / 2, BEAT_MS_MIN / 1_000)):
                    self._errands.heard(await self._client.send(call), sent_at_ms)
