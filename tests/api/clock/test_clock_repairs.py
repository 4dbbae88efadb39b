"""A wrong clock that no server noticed: the alarm, the list and the repair, over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx

from gpucredits.service.reads.verify import verify
from gpucredits.store.database.connections import PoolOptions, open_pool
from support.scenes.clocks import server_after_a_wrong_clock
from support.servers.http import Caller, RunningServer, problem
from support.waiting import until

WHY = {"org": "acme", "reason": "NTP was two days ahead"}
DAY_S = 86_400


def metrics_of(caller: Caller) -> dict[str, float]:
    """Every sample by its name with its label."""
    answer = caller.get("/metrics")
    assert answer.status_code == 200, answer.text
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


async def broken_rules(server: RunningServer) -> list[str]:
    """The rules that the books of a server break."""
    dsn = f"postgresql://gpucredits@/gpucredits?host={server.data_dir / 'run'}"
    pool = await open_pool(dsn, PoolOptions(connections_max=2))
    try:
        return [each.rule for each in (await verify(pool)).findings]
    finally:
        await pool.close()


def test_an_org_that_is_ahead_is_told_listed_and_repaired(data_dir: Path) -> None:
    """An alarm tells until it is repaired; neither a rehearsal nor a second repair changes it."""
    with (
        server_after_a_wrong_clock(data_dir) as server,
        httpx.Client(base_url=server.url) as http,
    ):
        admin = Caller(http, server.admin_secret)
        health = http.get("/healthz")
        assert (health.status_code, health.json()["alarms"][0]["name"]) == (
            200,
            "org_clocks_ahead",
        )
        assert metrics_of(admin)["gpucredits_orgs_clock_ahead"] == 1
        assert asyncio.run(broken_rules(server)) == ["org_clocks"]  # the control
        assert admin.read("/v1/accounts/acme/balance")["available"] == "40"
        [row] = admin.read("/v1/clock/orgs")["orgs"]
        assert row["org"] == "acme"
        assert row["ahead_seconds"] > DAY_S

        rehearsed = admin.made("/v1/clock/repairs", WHY, params={"dry_run": "true"})
        assert admin.read("/v1/clock/orgs")["orgs"][0]["clock"] == row["clock"]
        done = admin.made("/v1/clock/repairs", WHY, key="once")
        assert (done["repaired"], done["grants"]) == (True, rehearsed["grants"])
        assert [(each["mend"], each["amount"]) for each in done["grants"]] == [("restored", "50")]
        assert admin.post("/v1/clock/repairs", WHY, key="once").json() == done
        again: Any = admin.made("/v1/clock/repairs", WHY)
        assert (again["repaired"], again["lease_count"]) == (False, 0)
        assert admin.read("/v1/accounts/acme/balance")["available"] == "90"
        assert admin.read("/v1/clock/orgs")["orgs"] == []
        [act] = admin.read("/v1/audit", params={"action": "clock.repair"})["audit"]
        assert (act["old"]["clock"], act["new"]["clock"]) == (done["clock_before"], done["now"])
        assert act["new"]["reason"] == WHY["reason"]
        assert asyncio.run(broken_rules(server)) == []
        assert until(lambda: http.get("/healthz").json()["alarms"] == [])
    log = (data_dir / "server.log").read_text()
    assert "clocks of orgs are ahead of the database's" in log


def test_only_staff_of_the_system_repairs(admin: Caller, org: str) -> None:
    """Tenants, agents and readers may not, and bad input changes nothing."""
    why = {"org": org, "reason": "r"}
    for role, scope in (("admin", org), ("operator", org), ("read-only", None), ("agent", None)):
        caller = admin.with_key(role, scope)
        assert problem(caller.post("/v1/clock/repairs", why)) == (403, "forbidden")
        assert problem(caller.get("/v1/clock/orgs")) == (403, "forbidden")
    operator = admin.with_key("operator")
    assert operator.made("/v1/clock/repairs", why)["repaired"] is False
    for body in (
        {"org": org},
        {"org": org, "reason": ""},
        {"org": org, "reason": "  "},
        {"org": f"{org}/p", "reason": "r"},
        {"org": "No Such", "reason": "r"},
        {"org": org, "reason": "r", "clock": "2020-01-01T00:00:00Z"},
    ):
        assert problem(operator.post("/v1/clock/repairs", body)) == (422, "invalid_request")
    nobody = {"org": "nobody-at-all", "reason": "r"}
    assert problem(operator.post("/v1/clock/repairs", nobody)) == (404, "account_unknown")
