"""What scenarios of a full and of a dying disk have in common: load, a fault, and what is told.

Owns: the load while faults come and go, and the questions that are asked of health and of callers
during each. Must not: know what a fault is.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import asyncpg
import httpx

from support.engines.postgres import sql
from support.faults.crash_arena import RECOVERY_DEADLINE_S, Arena, load, verify
from support.faults.crash_audit import Audit, audit
from support.faults.disk import SETTINGS
from support.faults.history import Asked, read_history
from support.servers.http import Caller, problem
from support.waiting import until

# Little memory and short logs: pages are read and written often, and a log is soon used up.
SMALL = {**SETTINGS, "shared_buffers": "4MB", "max_wal_size": "32MB", "min_wal_size": "32MB"}
DRIVER_ERRORS = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)
APART = "green"  # an org that the load and its model do not know
PROBLEM = "503 unavailable"


@dataclass(slots=True)
class Told:
    """What was said while the disk was bad."""

    unhealthy: int = 0  # faults during which health said so
    causes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Outcome:
    """What is left of a scenario to be told and asserted."""

    found: Audit
    asked: list[Asked]
    verdict: str
    internal_errors: int
    recovery: str
    felt: int

    @property
    def statuses(self) -> Counter[str]:
        """How often callers were told what, while nothing could be decided."""
        said = Counter(text for call in self.asked for text in call.undecided)
        del said["none none"]  # the connection was lost
        return said

    @property
    def is_whole(self) -> bool:
        """Whether nothing was lost or doubled, and nobody got another answer than 503."""
        found = self.found
        is_exact = (found.lost, found.doubled, found.resolved) == (0, 0, found.ambiguous)
        is_told = set(self.statuses) <= {PROBLEM} and not self.internal_errors
        return is_exact and is_told and not found.wrong and self.verdict.startswith("0 Checked")

    def text(self, told: Told, sign: str) -> str:
        """The figures in one line; ``sign`` is in a cause that names the fault."""
        named = sum(sign in cause for cause in told.causes)
        statuses = ", ".join(f"{text}: {count}" for text, count in self.statuses.items())
        return (
            f"{self.found.text()}, told while bad ({statuses}), {self.recovery}, answers 500 "
            f"{self.internal_errors}, {named} of {len(told.causes)} causes in health name it"
        )


def break_again_and_again(
    stage: Arena,
    kinds: Sequence[str],
    *,
    strike: Callable[[str], None],
    heal: Callable[[], None],
    seed: int,
) -> Told:
    """Under load, strike until health has seen it, heal, and wait until work goes on by itself."""
    chance = random.Random(seed)
    told = Told()
    with load(stage, seed), httpx.Client(base_url=stage.server.url, timeout=60) as http:
        admin = Caller(http, stage.server.admin_secret)
        admin.made("/v1/accounts", {"path": APART})
        for kind in kinds:
            stage.wait_for_accepted(chance.randrange(50, 200))
            fault = stage.struck(kind)
            strike(kind)
            until(lambda: not is_well(http))
            told.unhealthy += 1
            note_what_is_told(http, admin, told)
            heal()
            fault.over_s = fault.back_s = time.monotonic()
            stage.wait_for_accepted(50)
            until(lambda: is_well(http), timeout_s=RECOVERY_DEADLINE_S)
    return told


def is_well(http: httpx.Client) -> bool:
    """What health says, and nothing but well or not."""
    status = http.get("/healthz").status_code
    assert status in (200, 503)
    return status == 200


def note_what_is_told(http: httpx.Client, admin: Caller, told: Told) -> None:
    """Health gives a cause, and a writer that is turned away gets 503 with a reason."""
    health = http.get("/healthz")
    if health.status_code == 503:
        told.causes.append(health.json()["detail"])
    answer = admin.post("/v1/credits/issue", {"account": APART, "amount": "1"})
    if answer.status_code not in (200, 201):  # some writes need nothing of a bad disk
        assert problem(answer) == (503, "unavailable"), answer.text


def outcome(stage: Arena) -> Outcome:
    """Compare the books with what callers know, and check them."""
    asked = read_history(stage.all_histories)
    felt, recovery = stage.felt(), stage.recovery_text()
    found = audit(stage, asked)
    return Outcome(found, asked, verify(stage.data_dir), stage.internal_errors(), recovery, felt)


def use_up_log(stage: Arena) -> None:
    """Go through the files of the write-ahead log that are there, until a new one is wanted."""
    before = stage.postmaster()
    with suppress(*DRIVER_ERRORS):
        while stage.postmaster() == before:
            sql(stage.dsn, "SELECT pg_logical_emit_message(true, 'test', 'a record')")
            sql(stage.dsn, "SELECT pg_switch_wal()")


def checkpoint(stage: Arena) -> None:
    """Write every changed page to the files; a disk that is bad may fail it."""
    with suppress(*DRIVER_ERRORS):
        sql(stage.dsn, "CHECKPOINT")
