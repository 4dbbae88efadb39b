"""Many callers at once, through the whole stack."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from gpucredits.client import AsyncClient
from gpucredits.client.calls import reserve, transfer
from support.servers.http import Caller, RunningServer, fresh_name, reason_of

CALLERS = 64
FUNDED = 7
WRITERS = 32
RING = 8


async def gathered(works: list[Awaitable[str]]) -> list[str]:
    """All at once."""
    return list(await asyncio.gather(*works))


def test_exactly_as_many_are_admitted_as_are_funded(
    server: RunningServer, admin: Caller, gpu_type: str
) -> None:
    """64 callers at an account that pays for 7 leases: 7 are admitted, in every round."""

    async def round_of(org: str) -> list[str]:
        async with AsyncClient(server.url, server.admin_secret) as client:
            return await gathered(
                [
                    reason_of(client, reserve(org, job_id=f"j{number}", gpu_type=gpu_type))
                    for number in range(CALLERS)
                ]
            )

    for _ in range(3):
        org = fresh_name("org")
        admin.made("/v1/accounts", {"path": org})
        admin.made("/v1/credits/issue", {"account": org, "amount": "8.5"})  # each holds 1.2
        ends = asyncio.run(round_of(org))
        assert ends.count("") == FUNDED
        assert ends.count("insufficient_credits") == CALLERS - FUNDED
        balance = admin.read(f"/v1/accounts/{org}/balance")
        assert (balance["available"], balance["reserved"]) == ("0.1", "8.4")


def test_a_ring_of_transfers_keeps_the_total(
    server: RunningServer, admin: Caller, org: str
) -> None:
    """32 writers push credits around a ring: no error but lack of credits, totals unchanged."""
    paths = [f"{org}/r{number}" for number in range(RING)]
    for path in paths:
        admin.made("/v1/accounts", {"path": path})
        admin.made("/v1/credits/issue", {"account": path, "amount": "10"})

    async def writer(client: AsyncClient, start: int) -> list[str]:
        ends = []
        for step in range(RING):
            source, target = paths[(start + step) % RING], paths[(start + step + 1) % RING]
            ends.append(await reason_of(client, transfer(source, target, "3.5")))
        return ends

    async def run() -> set[str]:
        async with AsyncClient(server.url, server.admin_secret) as client:
            done = await asyncio.gather(*(writer(client, number) for number in range(WRITERS)))
        return {end for ends in done for end in ends}

    assert asyncio.run(run()) <= {"", "insufficient_credits"}
    assert admin.read(f"/v1/accounts/{org}/balance?tree=true")["available"] == "80"
