"""An explanation is asked for with whatever a reserve may be asked for with."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from gpucredits.cli.server.temporary_server import TemporaryServer
from gpucredits.client import AsyncClient, Client
from gpucredits.client.calls import EnqueueFields, ReserveFields
from gpucredits.wire.ledger.reservation import ReserveRequest
from support.faults.faulty_proxy import FaultyProxy

JOB = {"job_id": "j", "gpu_type": "h100"}
GIVEN: dict[str, Any] = {
    "job_id": "another",
    "gpu_type": "a100",
    "gpu_count": 2,
    "region": "eu",
    "node": "n1",
    "window_seconds": 60,
    "escrow_windows": 1,
    "max_amount": "500",
    "payer": "",  # the org of the test
    "exhaustion": "finish",
    "grace_seconds": 5,
    "overdraft": "1.5",
    "metadata": {"team": "vision"},
    "allow_partial": True,
    "priority": 3,
    "expected_seconds": 90,
    "preemptible": False,
    "resources": {"cpu": 4, "memory": 8},
    "token": True,
}


def test_every_field_of_a_reserve_can_be_given() -> None:
    """The client's fields are those of the wire; what is only for the queue, ``enqueue`` takes."""
    assert set(GIVEN) == set(ReserveFields.__annotations__)
    wire = {field.name for field in msgspec.structs.fields(ReserveRequest)}
    assert wire - {"account", "wait"} == set(EnqueueFields.__annotations__)


@pytest.mark.parametrize("field", GIVEN)
def test_a_field_of_an_explanation_reaches_the_server(
    client: Client, proxy: FaultyProxy, server: TemporaryServer, org: str, field: str
) -> None:
    """Both clients send it, and the server's answer is an explanation."""
    value = org if field == "payer" else GIVEN[field]
    fields: Any = {**JOB, field: value}
    told = client.explain(org, **fields)

    async def ask() -> object:
        async with AsyncClient(proxy.url, server.key) as asking:
            return await asking.explain(org, **fields)

    assert asyncio.run(ask()) == told
    sent = [(seen.target, msgspec.json.decode(seen.body)) for seen in proxy.seen]
    assert sent == [("/v1/admissions:check", {"account": org, **fields})] * 2
    assert told.account == org
