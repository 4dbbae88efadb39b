"""A database whose clock is wrong, and orgs that have lived by it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import httpx

from gpucredits.service.write.acts import Act
from gpucredits.service.write.clock_repairs import repair_clock
from gpucredits.store.book.database_clock import ClockCheck
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.migrate import read_schema
from gpucredits.wire.ledger.clock import ClockRepairAnswer
from support.engines.postgres import sql
from support.scenes.scene import Scene
from support.servers.http import Caller, RunningServer, running_server

DAY_US = 86_400_000_000
HOUR_US = 3_600_000_000
DEFINED = re.compile(r"CREATE OR REPLACE FUNCTION (clock_us.*?\+ offset_us)(\s\$\$)", re.DOTALL)


def clock_off_by(by_us: int) -> str:
    """SQL for a clock that is off by so much; by nothing, it is as it was made."""
    [found] = filter(None, (DEFINED.search(each.sql) for each in read_schema().functions))
    off = f" + {by_us}" if by_us else ""
    return f"CREATE OR REPLACE FUNCTION {found[1]}{off}{found[2]}"


async def jump(db: Pool | Connection, by_us: int) -> None:
    """Let the database's clock be off by so much from here on."""
    await db.execute(clock_off_by(by_us))


async def repair(stage: Scene, *, org_id: int = 1, dry_run: bool = False) -> ClockRepairAnswer:
    """Repair the clock of an org, as an operator would."""
    act = Act(org_id=org_id, dry_run=dry_run, actor="tester", request_id="r")
    answer, _ = await repair_clock(stage.pool, ClockCheck(), act, "NTP was wrong")
    return answer


@contextmanager
def server_after_a_wrong_clock(data_dir: Path) -> Iterator[RunningServer]:
    """A server whose org ``acme`` has a lease and a grant of a server that believed a wrong clock.

    That one was started while the clock was a day ahead, so it had nothing to compare it with.
    """
    dsn = f"postgresql://gpucredits@/gpucredits?host={data_dir / 'run'}"
    with running_server(data_dir) as server, httpx.Client(base_url=server.url) as http:
        admin = Caller(http, server.admin_secret)
        admin.made("/v1/accounts", {"path": "acme"})
        admin.made("/v1/prices", {"gpu_type": "h100", "credits_per_gpu_hour": "360"})
        now = datetime.fromisoformat(admin.read("/v1/clock")["now"])
        soon = (now + timedelta(hours=1)).isoformat()
        admin.made("/v1/credits/issue", {"account": "acme", "amount": "100"})
        admin.made("/v1/credits/issue", {"account": "acme", "amount": "50", "expires_at": soon})
        sql(dsn, clock_off_by(2 * DAY_US))
    with running_server(data_dir) as server, httpx.Client(base_url=server.url) as http:
        admin = Caller(http, server.admin_secret)
        job = {"account": "acme", "job_id": "j", "gpu_type": "h100", "gpu_count": 1}
        admin.made("/v1/reservations", {**job, "window_seconds": 600})
        sql(dsn, clock_off_by(0))
    with running_server(data_dir) as server:
        yield server
