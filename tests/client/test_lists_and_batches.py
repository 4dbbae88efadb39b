"""Lists follow their pages, and batches answer each of their items."""

from __future__ import annotations

import asyncio

import pytest

from gpucredits.cli.server.temporary_server import TemporaryServer
from gpucredits.client import AsyncClient, Client, Refused
from support.faults.faulty_proxy import FaultyProxy
from support.scenes.orgs import GPU_TYPE


def test_lists_follow_their_pages(client: Client, proxy: FaultyProxy, org: str) -> None:
    """An iterator gives every item once, fetching pages as they are needed."""
    paths = [f"{org}/p{number}" for number in range(5)]
    for path in paths:
        client.create_account(path)
    proxy.seen.clear()
    listed = client.accounts(under=org, limit=4)
    assert proxy.seen == []
    assert next(listed).path == org
    assert len(proxy.seen) == 1
    assert [account.path for account in listed] == paths
    assert len(proxy.seen) == 2


def test_every_list_can_be_followed(direct: Client, org: str) -> None:
    """Grants, transfers, top-ups, entries, leases, prices, keys and acts are iterators too."""
    for number in range(3):
        direct.issue(org, "1000")
        direct.create_topup(org, "1", payment_reference=f"inv-{number}")
        direct.reserve(org, job_id=f"j{number}", gpu_type=GPU_TYPE)
        direct.create_key("agent", scope=org)
    assert len(list(direct.grants(org, limit=2))) == 3
    assert len(list(direct.topups(org, limit=2))) == 3
    assert len(list(direct.entries(account=org, limit=2))) == 6
    assert len(list(direct.reservations(account=org, limit=2))) == 3
    assert len(list(direct.prices(account=org, limit=1))) >= 1
    assert len([key for key in direct.keys(limit=2) if key.scope == org]) == 3
    assert len(list(direct.used_leases(org, limit=2))) == 3
    assert list(direct.paid_groups(org, limit=2)) == direct.usage_page(org).paid
    assert sum(act.action.startswith("key") for act in direct.audit(account=org, limit=2)) == 3
    direct.create_account(f"{org}/lab")
    for _ in range(3):
        direct.transfer(org, f"{org}/lab", "1")
    assert len(list(direct.transfers(f"{org}/lab", limit=2))) == 3


def test_the_async_client_follows_pages(server: TemporaryServer, direct: Client, org: str) -> None:
    """The same lists are there for an event loop."""
    for _ in range(3):
        direct.issue(org, "1")

    async def collect() -> list[str]:
        async with AsyncClient(server.url, server.key) as client:
            return [grant.amount async for grant in client.grants(org, limit=1)]

    assert asyncio.run(collect()) == ["1", "1", "1"]


def test_lists_are_filtered(direct: Client, org: str) -> None:
    """Labels and states narrow a list down."""
    direct.issue(org, "1000")
    for team in ("a", "b"):
        direct.reserve(org, job_id=team, gpu_type=GPU_TYPE, metadata={"team": team})
    (found,) = direct.reservations(account=org, metadata={"team": "b"})
    assert found.job_id == "b"
    direct.settle(found.reservation_id)
    assert [lease.job_id for lease in direct.reservations(account=org, state="active")] == ["a"]


def test_a_batch_of_grants_answers_each(direct: Client, org: str) -> None:
    """One item that is refused does not harm its neighbours, unless the batch is atomic."""
    items = [{"account": org, "amount": "1"}, {"account": f"{org}/nobody", "amount": "1"}]
    good, bad = direct.issue_all(items).results
    assert good.grant is not None
    assert good.grant.amount == "1"
    assert bad.problem is not None
    assert bad.problem.reason == "account_unknown"
    with pytest.raises(Refused):
        direct.issue_all(items, atomic=True)
    assert direct.balance(org).available == "1"


def test_a_job_over_many_nodes_is_admitted_whole_or_not_at_all(direct: Client, org: str) -> None:
    """An atomic batch of leases that cannot all be funded holds nothing."""
    direct.issue(org, "300")
    lease = {"account": org, "job_id": "wide", "gpu_type": GPU_TYPE}
    with pytest.raises(Refused) as refused:
        direct.reserve_all([{**lease, "node": f"n{number}"} for number in range(3)], atomic=True)
    assert refused.value.reason == "insufficient_credits"
    assert direct.balance(org).reserved == "0"
    two = direct.reserve_all([{**lease, "node": f"n{number}"} for number in range(2)], atomic=True)
    assert [result.status for result in two.results] == [201, 201]
    assert direct.balance(org).reserved == "240"


def test_a_node_reports_many_beats_at_once(direct: Client, org: str) -> None:
    """Each beat has its own answer, in order; what does not exist is told to stop."""
    direct.issue(org, "1000")
    leases = [
        direct.reserve(org, job_id=f"j{number}", gpu_type=GPU_TYPE, window_seconds=60)
        for number in range(3)
    ]
    direct.advance_clock(10)
    beats = [(lease.reservation_id, 1, 10_000) for lease in leases]
    answers = direct.heartbeats([*beats, ("rsv_zz_zz", 1, 5)], node="n1").results
    assert [answer.decision for answer in answers] == ["continue"] * 3 + ["stop"]
    assert [answer.settled for answer in answers[:3]] == ["10"] * 3
    assert direct.balance(org).spent == "30"
    assert all(answer.duplicate for answer in direct.heartbeats(beats).results)
    assert direct.balance(org).spent == "30"
