"""ARCHITECTURE.md lists the files that a request really visits."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from support.servers.in_process import Send, server_in_process
from support.walks import usually_visited

ROOT = Path(__file__).resolve().parents[3]
FILE = re.compile(r"`([a-z_]+/[a-z_/]+\.py)`")

pytestmark = pytest.mark.as_source  # the trace sees calls of Python, not of compiled code


OPENING = (
    ("POST", "/v1/accounts", {"path": "acme"}),
    ("POST", "/v1/accounts", {"path": "acme/vision"}),
    ("POST", "/v1/credits/issue", {"account": "acme", "amount": "100000"}),
    ("POST", "/v1/prices", {"gpu_type": "h100", "credits_per_gpu_hour": "36"}),
)


async def accepted(send: Send, method: str, path: str, body: Any) -> Any:
    """The answer to a request that is accepted."""
    answer = await send(method, path, body)
    assert answer.is_success, answer.text
    return answer.json()


async def heartbeats(send: Send) -> list[str]:
    """The files of a heartbeat of an org without limits."""
    job = {"account": "acme/vision", "job_id": "train", "gpu_type": "h100", "gpu_count": 1}
    lease = await accepted(send, "POST", "/v1/reservations", job)

    async def beat(number: int) -> None:
        report = {
            "reservation_id": lease["reservation_id"],
            "seq": number + 1,
            "used_ms": number + 1,
        }
        await accepted(send, "POST", "/v1/heartbeats", {"beats": [report]})

    await beat(0)
    return await usually_visited(lambda number: beat(number + 1))


async def reserves(send: Send) -> list[str]:
    """The files of a reserve of an account with a quota and a rate limit."""
    quotas = [{"dimension": "concurrent_gpus", "limit": 100}]
    await accepted(send, "PUT", "/v1/accounts/acme/quotas", {"quotas": quotas})
    limit = {"capacity": "1000", "refill_per_hour": "1000"}
    await accepted(send, "PUT", "/v1/accounts/acme/rate-limit", limit)

    async def reserve(number: int) -> None:
        job = {"account": "acme/vision", "job_id": f"j{number}", "gpu_type": "h100", "gpu_count": 1}
        await accepted(send, "POST", "/v1/reservations", job)

    await reserve(100)
    return await usually_visited(reserve)


async def queued_reserves(send: Send) -> list[str]:
    """The files of a reserve that waits for its turn in a pool, and gets it at once.

    It goes the way of a reserve with gates as well; the page lists what comes on top.
    """
    await accepted(send, "PUT", "/v1/pools/h100/default", {"capacity": 1_000})

    async def enqueue(number: int) -> None:
        job = {"account": "acme/vision", "job_id": f"q{number}", "gpu_type": "h100", "gpu_count": 1}
        answer = await accepted(send, "POST", "/v1/reservations", job | {"wait": True})
        assert answer["state"] == "admitted"

    await enqueue(100)
    return [name for name in await usually_visited(enqueue) if name not in listed_in(GATED)]


GATED = "A reserve with gates"
WALKS = {
    "One heartbeat, down and back": heartbeats,
    GATED: reserves,
    "A queued reserve": queued_reserves,
}


def listed_in(heading: str) -> list[str]:
    """The files that a section of the page names."""
    page = (ROOT / "ARCHITECTURE.md").read_text()
    return FILE.findall(page.partition(f"## {heading}\n")[2].partition("\n## ")[0])


@pytest.mark.parametrize("heading", WALKS)
def test_a_walk_lists_every_file_that_is_visited(
    database: str, data_dir: Path, heading: str
) -> None:
    """No file is missing from the page, and none is listed that the request never enters."""
    listed = listed_in(heading)

    async def act() -> list[str]:
        async with server_in_process(database, data_dir, OPENING) as send:
            return await WALKS[heading](send)

    found = asyncio.run(act())
    assert len(listed) == len(set(listed))
    assert set(found) - set(listed) == set(), "visited and not listed"
    assert set(listed) - set(found) == set(), "listed and not visited"
