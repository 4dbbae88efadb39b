"""ARCHITECTURE.md lists the files that a request really visits."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from gpucredits.app import Config, running
from support.walks import usually_visited

ROOT = Path(__file__).resolve().parents[2]
FILE = re.compile(r"`([a-z_]+/[a-z_/]+\.py)`")
Send = Callable[[str, str, Any], Awaitable[Any]]

pytestmark = pytest.mark.as_source  # the trace sees calls of Python, not of compiled code


@asynccontextmanager
async def server(dsn: str, folder: Path) -> AsyncIterator[Send]:
    """A server in this process with an org that can pay, and has every limit."""
    async with running(Config(data_dir=folder, database_url=dsn)) as app:
        secret = app.config.admin_key_path.read_text().strip()
        transport = httpx.ASGITransport(cast("Any", app.api))
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as http:
            number = 0

            async def send(method: str, path: str, body: Any) -> Any:
                nonlocal number
                number += 1
                headers = {"authorization": f"Bearer {secret}", "idempotency-key": f"k{number}"}
                answer = await http.request(method, path, json=body, headers=headers)
                assert answer.status_code < 300, answer.text
                return answer.json()

            for path in ("acme", "acme/vision"):
                await send("POST", "/v1/accounts", {"path": path})
            await send("POST", "/v1/credits/issue", {"account": "acme", "amount": "100000"})
            price = {"gpu_type": "h100", "credits_per_gpu_hour": "36"}
            await send("POST", "/v1/prices", price)
            yield send


async def heartbeats(send: Send) -> list[str]:
    """The files of a heartbeat of an org without limits."""
    job = {"account": "acme/vision", "job_id": "train", "gpu_type": "h100", "gpu_count": 1}
    lease = await send("POST", "/v1/reservations", job)

    async def beat(number: int) -> None:
        report = {
            "reservation_id": lease["reservation_id"],
            "seq": number + 1,
            "used_ms": number + 1,
        }
        await send("POST", "/v1/heartbeats", {"beats": [report]})

    await beat(0)
    return await usually_visited(lambda number: beat(number + 1))


async def reserves(send: Send) -> list[str]:
    """The files of a reserve of an account with a quota and a rate limit."""
    quotas = [{"dimension": "concurrent_gpus", "limit": 100}]
    await send("PUT", "/v1/accounts/acme/quotas", {"quotas": quotas})
    limit = {"capacity": "1000", "refill_per_hour": "1000"}
    await send("PUT", "/v1/accounts/acme/rate-limit", limit)

    async def reserve(number: int) -> None:
        job = {"account": "acme/vision", "job_id": f"j{number}", "gpu_type": "h100", "gpu_count": 1}
        await send("POST", "/v1/reservations", job)

    await reserve(100)
    return await usually_visited(reserve)


WALKS = {"One heartbeat, down and back": heartbeats, "A reserve with gates": reserves}


@pytest.mark.parametrize("heading", WALKS)
def test_a_walk_lists_every_file_that_is_visited(
    database: str, data_dir: Path, heading: str
) -> None:
    """No file is missing from the page, and none is listed that the request never enters."""
    page = (ROOT / "ARCHITECTURE.md").read_text()
    section = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    listed = FILE.findall(section)

    async def act() -> list[str]:
        async with server(database, data_dir) as send:
            return await WALKS[heading](send)

    found = asyncio.run(act())
    assert len(listed) == len(set(listed))
    assert sorted(listed) == sorted(found)
