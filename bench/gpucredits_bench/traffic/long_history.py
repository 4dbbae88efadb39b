"""A long history of one org: accounts through the API, leases and entries by SQL.

Owns: what the org is, and the statements that write its past. The rows add up as the server's own
do, so verify accepts them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import asyncpg

from gpucredits.store.ledger.blocks import seal
from gpucredits.store.ledger.history import take_snapshots
from gpucredits_bench.traffic.exchange import Line, Target

ORG = "reads"
PROJECTS = 20
PEOPLE = 10  # of each project
GPU_TYPES = ("h100", "a100", "l40s")
DAYS = 90
DAY_S = 86_400
GRANT = "100000000"
ENTRIES_BESIDE_BEATS = 2  # of each lease: its hold, and the release at its end
STEP = re.compile(r"^-- \[([a-z_]+)\]\n", re.MULTILINE)
LOAD_TIMEOUT_S = 1_800.0


class Past(NamedTuple):
    """What was loaded: from when until when, and how much."""

    since_us: int
    until_us: int
    entries: int
    leases: int
    live: int


def project(number: int) -> str:
    """The path of a project."""
    return f"{ORG}/p{number:02d}"


def open_accounts(target: Target) -> None:
    """Prices, an org with projects that have a grant each, their people, and one who is idle."""
    with Line(target) as line:
        for name in GPU_TYPES:
            price = {"gpu_type": name, "credits_per_gpu_hour": "36"}
            line.call("/v1/prices", price, key=f"price-{name}")
        paths = [ORG]
        for number in range(PROJECTS):
            paths.append(project(number))
            paths += [f"{project(number)}/u{person}" for person in range(PEOPLE)]
        paths.append(f"{project(0)}/idle")
        for path in paths:
            line.call("/v1/accounts", {"path": path}, key=f"open-{path.replace('/', '-')}")
        for number in range(PROJECTS):
            grant = {"account": project(number), "amount": GRANT}
            line.call("/v1/credits/issue", grant, key=f"grant-{number}")


def pass_time(target: Target) -> None:
    """Let the days of the history pass on the server's clock."""
    with Line(target) as line:
        line.call("/v1/test/clock", {"advance_seconds": DAYS * DAY_S}, key="days")


async def load_past(
    url: str, *, leases: int, entries: int, progress: Callable[[str], None]
) -> Past:
    """Write the past of the org in one transaction, then its snapshots, seals and statistics."""
    texts = STEP.split((Path(__file__).parent / "long_history.sql").read_text(encoding="utf-8"))
    beats = max(entries // leases - ENTRIES_BESIDE_BEATS, 1)
    connection = await asyncpg.connect(url, command_timeout=LOAD_TIMEOUT_S)
    try:
        async with connection.transaction():
            org_id, since = await connection.fetchrow(
                "SELECT org_id, clock + 1000000 FROM orgs WHERE path = $1 FOR UPDATE", ORG
            )
            until = await connection.fetchval("SELECT ledger_now()")
            values = (org_id, leases, beats, since, until)
            for name, text in zip(texts[1::2], texts[2::2], strict=True):
                progress(f"loading: {name}")
                await connection.execute(with_values(text, values))
            found = await connection.fetchrow(
                "SELECT count(*), (SELECT count(*) FROM leases WHERE is_live) FROM moves"
            )
        progress("taking snapshots and seals")
        while await take_snapshots(connection, org_id, entries_each=100, entries_max=2_000):
            pass
        while await seal(connection, [org_id], entries_max=50_000):
            pass
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()
    return Past(since, until, found[0], leases, found[1])


def with_values(text: str, values: tuple[int, ...]) -> str:
    """A statement with numbers in their places: statements that make tables take no parameters."""
    for place, value in enumerate(values, start=1):
        text = text.replace(f"${place}", str(value))
    return text.replace("$6", "'{" + ",".join(GPU_TYPES) + "}'")
