"""The files between a job and its node: the lease's token, and the job's last checkpoint.

The job reads ``token``, which is replaced whole before the token in it expires. It touches
``checkpoint`` whenever its work is saved; the node looks at the file's time with each report.

Owns: the two files, and the environment that names them. Only the job's user may read them.
Must not: know guardians or signals.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpucredits.client import AsyncClient, CallError
from gpucredits.client.errands import Errands
from gpucredits.client.leases import clock_ms
from gpucredits.wire.ledger.reservation import ReservationAnswer

TOKEN_FILE: Final = "GPUCREDITS_TOKEN_FILE"  # noqa: S105  # the name of a variable
CHECKPOINT_FILE: Final = "GPUCREDITS_CHECKPOINT_FILE"
ERRAND_S_MAX: Final = 10.0
NEVER_NS: Final = 0  # the time of a file that nobody has touched


@dataclass(slots=True)
class JobFiles:
    """The files of one job, in a folder that only its user may enter."""

    folder: Path
    errands: Errands
    _seen_ns: int = NEVER_NS
    _looked_at_ms: int = 0

    @property
    def token(self) -> Path:
        """The file of the token."""
        return self.folder / "token"

    @property
    def checkpoint(self) -> Path:
        """The file that the job touches."""
        return self.folder / "checkpoint"

    def env(self) -> dict[str, str]:
        """The environment variables that name the job's files."""
        named = {CHECKPOINT_FILE: str(self.checkpoint)}
        return {**named, TOKEN_FILE: str(self.token)} if self.errands.wants_token else named

    async def make(self, client: AsyncClient, lease: ReservationAnswer, sent_at_ms: int) -> None:
        """Make the files before the job starts; CallError if the server gives no token."""
        self.errands.admitted(lease, sent_at_ms)
        os.close(os.open(self.checkpoint, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.utime(self.checkpoint, ns=(NEVER_NS, NEVER_NS))
        self._looked_at_ms = clock_ms()
        if self.errands.wants_token and not self.errands.token:
            await self._send(client)
        self._write_token()

    def look(self, used_ms: int, at_ms: int) -> None:
        """Check whether the job has saved its work since the last look, and note when.

        ``used_ms`` is the job's use at ``at_ms``. The file's time comes from the wall clock, which
        may jump; so the checkpoint counts as no earlier than the last look.
        """
        now_ms, since_ms = clock_ms(), self._looked_at_ms
        try:
            touched_ns = self.checkpoint.stat().st_mtime_ns
        except OSError:
            return
        self._looked_at_ms = now_ms
        if touched_ns in (self._seen_ns, NEVER_NS):
            return
        self._seen_ns = touched_ns
        ago_ms = (time.time_ns() - touched_ns) // 1_000_000 - (now_ms - at_ms)
        self.errands.saved(max(used_ms - min(max(ago_ms, 0), max(at_ms - since_ms, 0)), 0))

    async def run_errands(self, client: AsyncClient) -> str:
        """Do the errands that are due; the text says what failed, and that errand stays due."""
        try:
            async with asyncio.timeout(ERRAND_S_MAX):
                await self._send(client)
            self._write_token()
        except (CallError, OSError) as error:  # a full disk is no reason to leave a bill open
            return str(error) or "no answer in time"
        return ""

    async def _send(self, client: AsyncClient) -> None:
        for call in self.errands.due(sent_at_ms := clock_ms()):
            self.errands.heard(await client.send(call), sent_at_ms)

    def _write_token(self) -> None:
        """Replace the token's file in one step."""
        if not self.errands.token or self._is_written():
            return
        fresh = self.folder / "token.new"
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(file, self.errands.token.encode())
        finally:
            os.close(file)
        fresh.rename(self.token)

    def _is_written(self) -> bool:
        try:
            return self.token.read_text() == self.errands.token
        except OSError:
            return False
