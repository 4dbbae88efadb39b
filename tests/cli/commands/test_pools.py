"""Pools, the queue and shares on the command line, against a real server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from gpucredits.client import AsyncClient, Client, Refused
from support.terminal import Terminal
from support.waiting import until


@pytest.fixture
def gpu_type(client: Client, name: str) -> str:
    """A type of GPU of the test's own, at a credit a second."""
    client.set_price(name, "3600")
    return name


def rich_org(client: Client, path: str) -> str:
    """An org that can pay."""
    client.create_account(path)
    client.issue(path, "100000")
    return path


def test_pools_are_set_listed_weighed_and_removed(
    terminal: Terminal, org: str, gpu_type: str
) -> None:
    """What is set is shown, for people and for scripts."""
    made = terminal.json(
        "pool", "set", gpu_type, "--capacity", "8", "--cpu", "64", "--grace", "1m",
        "--no-backfill", "--half-life", "7d", "--usage-order", "ties",
    )  # fmt: skip
    assert (made["capacity"], made["resources"]["cpu"]) == (8, 64)
    assert (made["policy"]["grace_seconds"], made["policy"]["backfill"]) == (60, False)
    listed = terminal.text("pool", "list")
    assert f"{gpu_type}/default" in listed
    assert gpu_type in [row["gpu_type"] for row in terminal.json("pool", "list")["pools"]]
    assert "No weights" in terminal.text("pool", "weights", gpu_type)
    weighed = terminal.json("pool", "weights", gpu_type, f"{org}=3", "--no-borrowing", org)
    assert weighed["weights"] == [{"account": org, "weight": 3, "may_borrow": False}]
    assert org in terminal.text("pool", "weights", gpu_type)
    terminal.json("account", "create", f"{org}/lab")
    more = terminal.json("pool", "weights", gpu_type, f"{org}/lab=2")
    assert [(row["account"], row["weight"], row["may_borrow"]) for row in more["weights"]] == [
        (org, 3, False),
        (f"{org}/lab", 2, True),
    ]
    nobody = terminal.run("pool", "weights", gpu_type, f"{org}/nobody=2")
    assert (nobody.exit_code, "account_unknown" in nobody.stderr) == (1, True)
    lent = terminal.json("pool", "weights", gpu_type, "--borrowing", org)
    assert lent["weights"][0] == {"account": org, "weight": 3, "may_borrow": True}
    only = terminal.json("pool", "weights", gpu_type, f"{org}=4", "--replace")
    assert only["weights"] == [{"account": org, "weight": 4, "may_borrow": True}]
    assert terminal.run("pool", "weights", gpu_type, f"{org}=4", "--clear").exit_code == 2
    assert terminal.json("pool", "weights", gpu_type, "--clear")["weights"] == []
    text = terminal.text("pool", "set", f"{gpu_type}/eu")
    assert "no limit" in text
    assert terminal.text("pool", "remove", f"{gpu_type}/eu").startswith("Removed ")
    terminal.json("pool", "set", f"{gpu_type}/eu")
    assert terminal.json("pool", "remove", f"{gpu_type}/eu")["region"] == "eu"
    assert terminal.run("pool", "remove", f"{gpu_type}/eu").exit_code == 1
    for wrong in (
        ("set", "a/b/c/d"),
        ("weights", "a", "acme"),
        ("set", gpu_type, "--grace", "1ms"),
    ):
        assert terminal.run("pool", *wrong).exit_code == 2


def test_a_pool_that_holds_more_than_it_has_says_so(
    terminal: Terminal, client: Client, gpu_type: str, name: str
) -> None:
    """When a capacity is set below what runs, the overviews say by how much, and what follows."""
    org = rich_org(client, name)
    client.set_pool(gpu_type, capacity=12)
    terminal.json("reserve", org, "--job", "a", "--type", gpu_type, "--gpus", "12")
    assert "held                     12 of 12" in terminal.text("pool", "show", gpu_type)
    assert terminal.json("share", "show", gpu_type)["over"] == 0
    client.set_pool(gpu_type, capacity=8)
    shown = terminal.text("pool", "show", gpu_type)
    assert "12 of 8: 4 over; nothing new starts until 4 more GPUs are free" in shown
    assert terminal.json("pool", "show", gpu_type)["capacity"] == 8
    told = terminal.text("share", "show", gpu_type)
    assert "4 over: nothing new starts until what runs fits again" in told
    assert terminal.json("share", "show", gpu_type)["over"] == 4
    refused = terminal.run("reserve", org, "--job", "b", "--type", gpu_type)
    assert (refused.exit_code, "0 are free" in refused.stderr) == (1, True)
    client.set_pool(gpu_type, clear=["capacity"])
    assert "held" not in terminal.text("pool", "show", gpu_type)


def test_waiting_in_the_queue(terminal: Terminal, client: Client, gpu_type: str, name: str) -> None:
    """Reserve with --wait, look, wait for it, give up."""
    org = rich_org(client, name)
    client.set_pool(gpu_type, capacity=4)
    first = terminal.json("reserve", org, "--job", "a", "--type", gpu_type, "--gpus", "4")
    refused = terminal.run("reserve", org, "--job", "b", "--type", gpu_type)
    assert refused.exit_code == 1
    assert "Refused (fair_share): It needs 1 GPU, and 0 are free." in refused.stderr
    asked = ("reserve", org, "--job", "b", "--type", gpu_type, "--wait", "--expect", "1h")
    queued = terminal.json(*asked, "--priority", "2", "--until", "1000d")
    assert (queued["state"], queued["priority"]) == ("waiting", 2)
    until(lambda: client.queued(queued["queue_id"]).position)
    text = terminal.text("queue", "show", queued["queue_id"])
    assert "because    Number 1 in the queue: it needs 1 GPU, and 0 are free." in text
    [_, line] = terminal.text("queue", "list", org, "--pool", gpu_type).splitlines()
    assert line.startswith(queued["queue_id"])  # those that ended are listed with --state any
    everything = terminal.json("queue", "list", org, "--pool", gpu_type, "--state", "any")["queue"]
    assert {row["state"] for row in everything} == {"waiting", "refused", "admitted"}
    assert terminal.json("queue", "list", "--state", "admitted", "--pool", gpu_type)["queue"]
    still = terminal.run("queue", "wait", queued["queue_id"], "--for", "1s")
    assert still.exit_code == 3
    other = terminal.json(*asked[:-2])
    gone = terminal.text("queue", "cancel", other["queue_id"])
    assert "canceled" in gone
    assert terminal.run("queue", "wait", other["queue_id"]).exit_code == 1
    terminal.json("settle", first["reservation_id"])
    admitted = terminal.json("queue", "wait", queued["queue_id"])
    assert admitted["state"] == "admitted"
    shown = terminal.text("queue", "show", queued["queue_id"])
    assert f"reservation    {admitted['reservation_id']}" in shown
    partial = terminal.json("reserve", org, "--job", "c", "--type", gpu_type, "--gpus", "9",
                            "--partial")  # fmt: skip
    assert partial["gpu_count"] == 3
    assert terminal.run(*asked, "--dry-run").exit_code == 2
    late = terminal.run(*asked, "--gpus", "4", "--until", "2026-01-02")
    assert (late.exit_code, "must be later than now" in late.stderr) == (1, True)


def test_a_pool_without_a_capacity_has_no_shares(
    terminal: Terminal, client: Client, gpu_type: str
) -> None:
    """Nothing is counted in it, and that is said instead of zeros."""
    client.set_pool(gpu_type)
    told = terminal.text("share", "show", gpu_type)
    assert told == (
        f"{gpu_type}/default: no capacity is set, so nobody waits for room and what runs is not "
        "counted; 0 requests wait for 0 GPUs.\n"
    )


def test_shares_are_shown_dumped_and_replayed(
    terminal: Terminal, client: Client, gpu_type: str, name: str, tmp_path: Path
) -> None:
    """A table with bars; a dump that replays to what the server decided, unless it was changed."""
    hog, meek = rich_org(client, name), rich_org(client, f"{name}-too")
    client.set_pool(gpu_type, capacity=4, policy={"min_runtime_seconds": 0})
    client.reserve(hog, job_id="a", gpu_type=gpu_type, gpu_count=4)
    queued = client.enqueue(meek, job_id="b", gpu_type=gpu_type, gpu_count=2)
    until(lambda: client.queued(queued.queue_id).reason == "making_room")
    table = terminal.text("share", "show", gpu_type)
    assert "4 of 4 GPUs held" in table
    [line] = [row for row in table.splitlines() if row.startswith(f"{hog} ")]
    assert line.split()[1:] == ["1", "2.00", "4", "2.00", "0", "##########|##########"]
    rows = terminal.json("share", "show", gpu_type)["shares"]
    assert [row["account"] for row in rows] == sorted([hog, meek])
    file = tmp_path / "decision.json"
    file.write_text(terminal.text("share", "dump", gpu_type))
    replayed = terminal.run("share", "replay", str(file))
    assert replayed.exit_code == 0
    assert "The server decided the same." in replayed.stderr
    assert replayed.stdout.splitlines()[0].startswith(("stop ", "wait "))
    document = json.loads(file.read_text())
    assert terminal.json("share", "replay", str(file)) == document["decision"]
    document["snapshot"]["capacity"]["gpu"] = 40
    file.write_text(json.dumps(document))
    assert terminal.run("share", "replay", str(file)).exit_code == 1
    file.write_text(json.dumps({"format": 1}))
    assert terminal.run("share", "replay", str(file)).exit_code == 2
    file.write_text("[]")
    assert terminal.run("share", "replay", str(file)).exit_code == 2


def test_a_drained_pool_says_so(
    terminal: Terminal, client: Client, gpu_type: str, name: str
) -> None:
    """Whoever looks at it, at a request or at an explanation reads what to wait for."""
    org = rich_org(client, name)
    client.set_pool(gpu_type, capacity=4)
    client.reserve(org, job_id="a", gpu_type=gpu_type, gpu_count=4)
    shown = terminal.text("pool", "set", gpu_type, "--capacity", "0")
    assert "capacity                 0 GPUs: drained, nobody new gets in\n" in shown
    queued = client.enqueue(org, job_id="b", gpu_type=gpu_type)
    until(lambda: client.queued(queued.queue_id).reason)
    text = terminal.text("queue", "show", queued.queue_id)
    assert "place      none\nwaits for  capacity: drained\n" in text
    assert "because    The pool is drained: nobody new gets in until it has GPUs again.\n" in text
    [line] = terminal.text("queue", "list", org, "--state", "waiting").splitlines()[1:]
    assert line.endswith("none  capacity: drained")
    explained = terminal.run("explain", org, "--type", gpu_type)
    assert explained.exit_code == 4
    assert explained.stdout.startswith("Not admitted (fair_share): The pool is drained: ")
    assert explained.stdout.rstrip().endswith("no      when there is room")
    assert "never" not in explained.stdout
    table = terminal.text("share", "show", gpu_type)
    assert table.startswith(
        f"{gpu_type}/default: drained, nobody new gets in until it has a capacity again; 4 GPUs "
        "are still held, 0 of them stopping; 1 request waits for 1 GPU.\n"
    )


def test_larger_than_the_pool_is_never(
    terminal: Terminal, client: Client, gpu_type: str, name: str
) -> None:
    """Explain and reserve say what the pool has; what fits is let in when there is room."""
    org = rich_org(client, name)
    client.set_pool(gpu_type, capacity=4)
    asked = [org, "--type", gpu_type, "--gpus"]
    explained = terminal.run("explain", *asked, "5")
    refused = terminal.run("reserve", *asked, "5", "--job", "a")
    for shown in (explained.stdout, refused.stderr):
        assert "It needs 5 GPUs, and the whole pool has 4. It never clears by waiting:" in shown
        [line] = [row for row in shown.splitlines() if row.startswith("fair share")]
        assert line.endswith("no      never: the pool has 4 GPUs")
    client.reserve(org, job_id="b", gpu_type=gpu_type)
    full = terminal.run("explain", *asked, "4").stdout
    assert full.rstrip().endswith("no      when there is room")


def test_clients_wait_for_a_turn(client: Client, gpu_type: str, name: str) -> None:
    """Enqueue, wait and list with both clients."""
    org = rich_org(client, name)
    client.set_pool(gpu_type, capacity=1)
    lease = client.reserve(org, job_id="a", gpu_type=gpu_type)
    assert client.pool(gpu_type).capacity == 1
    with pytest.raises(Refused, match="0 are free"):
        client.reserve(org, job_id="b", gpu_type=gpu_type)

    async def wait() -> str:
        url, secret = str(client._http.base_url), client._http.headers["authorization"]
        async with AsyncClient(url, secret.removeprefix("Bearer ")) as waiting:
            queued = await waiting.enqueue(org, job_id="b", gpu_type=gpu_type)
            assert queued.state == "waiting"
            poll = asyncio.create_task(waiting.queued(queued.queue_id, wait_seconds=30))
            await waiting.settle(lease.reservation_id)
            admitted = await poll
            listed = [each.queue_id async for each in waiting.queue(account=org)]
            assert queued.queue_id in listed
            return admitted.state

    assert asyncio.run(wait()) == "admitted"
    assert client.shares(gpu_type).held == 1
    assert client.snapshot(gpu_type).decision["pool"] == f"{gpu_type}/default"


def test_a_type_with_a_slash_works_in_every_command(
    terminal: Terminal, client: Client, name: str
) -> None:
    """Prices, leases, quotas, pools, shares and the queue take nvidia.com/h100 as it is."""
    gpu_type, org = f"nvidia.com/{name}", rich_org(client, f"{name}-slashed")
    assert terminal.json("price", "set", gpu_type.upper(), "36")["gpu_type"] == gpu_type
    assert len(terminal.json("price", "list", "--type", f" {gpu_type} ")["prices"]) == 1
    assert terminal.json("pool", "set", gpu_type, "--capacity", "2")["gpu_type"] == gpu_type
    assert f"{gpu_type}/default" in terminal.text("pool", "show", f"{gpu_type}/default")
    made = terminal.json("quota", "set", org, "concurrent-gpus", "2", "--type", gpu_type.upper())
    assert made["gpu_type"] == gpu_type
    terminal.json("reserve", org, "--job", "one", "--type", gpu_type, "--gpus", "2")
    terminal.json("reserve", org, "--job", "two", "--type", gpu_type, "--wait")
    for options in ((gpu_type,), (gpu_type, "--region", "default")):
        queued = terminal.json("queue", "list", "--state", "waiting", "--pool", *options)
        assert [row["job_id"] for row in queued["queue"]] == ["two"]
        assert terminal.json("share", "show", *options)["held"] == 2
    odd = f"{name}.sxm"
    assert terminal.json("pool", "set", odd, "--region", "EU")["region"] == "eu"
    assert terminal.text("pool", "remove", odd, "--region", "eu").startswith("Removed ")
