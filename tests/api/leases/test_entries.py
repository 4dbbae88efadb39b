"""Listing the ledger by type: pairs are what is asked for, however they are stored."""

from __future__ import annotations

from typing import Any

from support.servers.http import Caller, problem


def test_renewals_are_reserve_pairs(admin: Caller, org: str, gpu_type: str) -> None:
    """A heartbeat's renewal is found as a reserve and its settlement as a settle, each alone."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    lease = admin.made(
        "/v1/reservations", {"account": org, "job_id": "j", "gpu_type": gpu_type, "gpu_count": 4}
    )["reservation_id"]
    admin.made(f"/v1/reservations/{lease}:extend", {"seq": 1, "used_ms": 1_500})
    for kind, count in (("reserve", 2), ("settle", 1), ("release", 0), ("issue", 1)):
        listed = admin.read(f"/v1/entries?account={org}&type={kind}")["entries"]
        assert [entry["type"] for entry in listed] == [kind] * count


def test_transfers_are_listed_for_both_sides_by_labels_and_time(admin: Caller, org: str) -> None:
    """A member finds what came and went of its scope, page by page, and nothing beyond it."""
    project, user, other = f"{org}/vision", f"{org}/vision/alice", f"{org}/audio"
    admin.made("/v1/accounts", {"path": other})
    admin.made("/v1/credits/issue", {"account": org, "amount": "50"})

    def move(source: str, target: str, amount: str, **labels: str) -> str:
        body = {"from": source, "to": target, "amount": amount, "metadata": labels}
        return str(admin.made("/v1/credits/transfer", body)["transfer_id"])

    first = move(org, project, "10", why="start")
    admin.advance(60)
    between = admin.instant()
    admin.advance(60)
    second = move(project, user, "4", why="share", team="a")
    elsewhere = move(org, other, "3", why="start")

    def found(caller: Caller, **wanted: Any) -> list[str]:
        listed = caller.read("/v1/transfers", params=wanted)["transfers"]
        return [transfer["transfer_id"] for transfer in listed]

    member = admin.with_key("member", project)
    assert found(admin, account=org) == [elsewhere, first]
    assert found(admin, account=org, tree="true") == [elsewhere, second, first]
    assert found(member) == found(member, account=project) == [second, first]
    assert found(member, account=user) == [second]
    assert found(admin.with_key("member", user)) == [second]
    assert found(member, metadata="why=start") == [first]
    assert found(member, metadata='{"why": "share", "team": "a"}') == [second]
    assert found(member, since=between) == [second]
    assert found(member, until=between) == [first]
    page = member.read("/v1/transfers", params={"limit": 1})
    shown = page["transfers"][0]
    assert (shown["from"], shown["to"], shown["amount"]) == (project, user, "4")
    assert shown["metadata"] == {"why": "share", "team": "a"}
    rest = {"limit": 1, "cursor": page["next_cursor"]}
    assert found(member, **rest) == [first]
    assert problem(member.get("/v1/transfers", params={"account": other})) == (
        404,
        "account_unknown",
    )
