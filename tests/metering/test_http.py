"""A server with a bus: what its answers mean, its health, dead letters and events over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from gpucredits.client import Client, Refused
from gpucredits.metering.bus import Message, Topic
from gpucredits.metering.nats_bus import NatsBus
from gpucredits.metering.nats_login import login_of
from support.engines.nats_server import NatsServer, nats_server
from support.engines.postgres import TestServer, temporary_directory
from support.servers.http import Caller, RunningServer, fresh_name, problem, running_server
from support.waiting import HANGS_S, until


@pytest.fixture(scope="module")
def nats() -> Iterator[NatsServer]:
    """The NATS of the server."""
    with nats_server() as server:
        yield server


@pytest.fixture(scope="module")
def served(postgres: TestServer, nats: NatsServer) -> Iterator[RunningServer]:
    """A server with a bus on a database of its own."""
    with postgres.database() as dsn, temporary_directory() as folder:
        options = ("--database-url", dsn, "--bus", nats.url, "--test-clock")
        with running_server(folder, *options) as running:
            yield running


@pytest.fixture(scope="module")
def admin(served: RunningServer) -> Iterator[Caller]:
    """The first administrator."""
    with httpx.Client(base_url=served.url, timeout=HANGS_S) as client:
        yield Caller(client, served.admin_secret)


@pytest.fixture
def lease(admin: Caller) -> dict[str, Any]:
    """A running lease of a fresh org."""
    org, gpu_type = fresh_name("org"), fresh_name("gpu-")
    admin.made("/v1/accounts", {"path": org})
    admin.made("/v1/prices", {"gpu_type": gpu_type, "credits_per_gpu_hour": "36"})
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    job = {"account": org, "job_id": "train", "gpu_type": gpu_type, "node": "n1"}
    return {"org": org, **admin.made("/v1/reservations", job)}


def events_of(lease: dict[str, Any], *seqs: int) -> dict[str, Any]:
    """A second of use in each of some events."""
    return {
        "events": [
            {
                "reservation_id": lease["reservation_id"],
                "seq": seq,
                "start_ms": seq * 1_000,
                "end_ms": seq * 1_000 + 1_000,
            }
            for seq in seqs
        ]
    }


def measured_events(admin: Caller, lease: dict[str, Any]) -> int:
    """How many events of a lease are stored."""
    [found] = admin.read(f"/v1/accounts/{lease['org']}/usage")["leases"]
    return int(found["events"])


def publish(nats: NatsServer, body: bytes) -> None:
    """A message that no server has written."""

    async def run() -> None:
        bus = NatsBus(login_of(nats.url, {}))
        await bus.publish(Topic.USAGE, [Message(1, fresh_name("m"), body)])
        await bus.close()

    asyncio.run(run())


def test_accepted_means_that_the_bus_has_it(admin: Caller, lease: dict[str, Any]) -> None:
    """Events are answered ``accepted`` and stored once soon after; a dry run says what they are."""
    answer = admin.made("/v1/usage", events_of(lease, 1, 2, 3))
    assert [each["status"] for each in answer["results"]] == ["accepted"] * 3
    assert (answer["accepted"], answer["stored"], answer["duplicates"]) == (3, 0, 0)
    admin.made("/v1/usage", events_of(lease, 3, 4))
    until(lambda: measured_events(admin, lease) == 4)
    rehearsed = admin.made("/v1/usage?dry_run=true", events_of(lease, 4, 5))
    assert [each["status"] for each in rehearsed["results"]] == ["duplicate", "stored"]
    strange = {"reservation_id": "rsv_1_zzz", "seq": 1, "start_ms": 0, "end_ms": 1}
    assert admin.made("/v1/usage", {"events": [strange]})["results"][0]["status"] == "unknown"


def test_reports_of_one_request_id_are_all_kept(admin: Caller, lease: dict[str, Any]) -> None:
    """A caller names its requests as it likes, and may give many one name: a trace's, a proxy's."""
    for seq in (1, 2, 3):
        told = admin.made("/v1/usage", events_of(lease, seq), headers={"x-request-id": "trace-1"})
        assert told["accepted"] == 1
    until(lambda: measured_events(admin, lease) == 3)


def test_a_bus_that_is_away_is_said(
    admin: Caller, nats: NatsServer, lease: dict[str, Any], served: RunningServer
) -> None:
    """While the bus is away, use is refused with 503 and the ledger works; nothing is lost."""
    nats.kill()
    try:
        refused = admin.post("/v1/usage", events_of(lease, 1))
        assert problem(refused) == (503, "unavailable")
        assert "Send the same events again" in refused.json()["detail"]
        assert "retry-after" in refused.headers
        until(lambda: admin.read("/healthz")["metering"]["state"] == "away")
        health = admin.read("/healthz")
        assert health["status"] == "ok"
        assert "metering_bus_away" in [each["name"] for each in health["alarms"]]
        beat = {"reservation_id": lease["reservation_id"], "seq": 1, "used_ms": 10}
        assert admin.made("/v1/heartbeats", {"beats": [beat]})["results"]
    finally:
        nats.start()
    with Client(served.url, served.admin_secret) as client:
        client.report_usage(events_of(lease, 1)["events"])  # it repeats what is answered 503
    until(lambda: measured_events(admin, lease) == 1)
    until(lambda: admin.read("/healthz")["metering"]["state"] == "moving")


def test_dead_letters_are_seen_mended_and_replayed(
    admin: Caller, nats: NatsServer, lease: dict[str, Any], served: RunningServer
) -> None:
    """Staff see a message that could not be used, mend it, and it counts once; others do not."""
    publish(nats, b'{"org_id": 1, "events": "none"}')
    publish(nats, b"\xff rubbish")
    letters = until(lambda: waiting(admin, 2))
    rubbish, wrong = sorted(letters, key=lambda each: "malformed" not in each["detail"])
    assert wrong["reason"] == rubbish["reason"] == "unreadable"
    assert wrong["body"] is None
    path = f"/v1/dead-letters/{wrong['letter_id']}"
    whole = admin.read(path)
    assert whole["body"] == {"org_id": 1, "events": "none"}
    assert not admin.read(f"/v1/dead-letters/{rubbish['letter_id']}")["is_json"]
    assert problem(admin.post(f"{path}:replay")) == (422, "dead_letter_unusable")
    odd = admin.post(f"{path}:replay", {"body": {"org_id": 1, "events": "none"}})
    assert (problem(odd), odd.json()["field"]) == ((422, "invalid_request"), "body.events")
    event = {"job_id": "train", "node": "n1", "seq": 9, "used_ms": 500}
    event["reservation_id"] = lease["reservation_id"]
    number = int(lease["reservation_id"].split("_")[1], 36)
    mended = {"org_id": number, "events": [event]}
    done = admin.made(f"{path}:replay", {"body": mended}, key="mend-1")
    assert (done["state"], done["decided_by"]) == ("replayed", "key_0_1")
    again = admin.post(f"{path}:replay", {"body": mended}, key="mend-1")
    assert again.headers["idempotency-replayed"] == "true"
    assert problem(admin.post(f"{path}:drop")) == (409, "dead_letter_state")
    assert measured_events(admin, lease) == 1
    admin.made(f"/v1/dead-letters/{rubbish['letter_id']}:drop")
    assert not waiting(admin, 1)
    assert problem(admin.get("/v1/dead-letters/dlt_0_zzz")) == (404, "dead_letter_unknown")
    tenant = admin.with_key("admin", lease["org"])
    assert problem(tenant.get("/v1/dead-letters")) == (403, "forbidden")
    assert problem(tenant.post(f"{path}:replay", {"body": mended})) == (403, "forbidden")


def waiting(admin: Caller, count: int) -> list[dict[str, Any]]:
    """The dead letters that wait, once there are so many."""
    found: list[dict[str, Any]] = admin.read("/v1/dead-letters?state=waiting")["dead_letters"]
    return found if len(found) >= count else []


def test_events_are_read_with_a_cursor(admin: Caller, lease: dict[str, Any]) -> None:
    """A reader goes on where it stopped and sees each event once; a tenant sees its own only."""
    opened = {"kind": "reservation.opened", "limit": 1_000}
    mine = until(lambda: of_lease(admin.read("/v1/events", params=opened), lease))
    place = mine[-1]["position"]
    later = admin.read("/v1/events", params={**opened, "cursor": place})
    assert not of_lease(later, lease)
    assert later["position"] >= place
    seen, cursor = [], "0"
    while cursor is not None:
        page = admin.read("/v1/events", params={"cursor": cursor, "limit": 3})
        seen += [each["position"] for each in page["events"]]
        cursor = page["next_cursor"]
    assert seen == sorted(set(seen))
    assert set(range(1, place)) <= set(seen)
    tenant = admin.with_key("operator", lease["org"])
    assert {each["source"] for each in tenant.read("/v1/events")["events"]} == {
        f"/gpucredits/{lease['org']}"
    }
    user = fresh_name("u")
    admin.made("/v1/accounts", {"path": f"{lease['org']}/{user}"})
    below = admin.with_key("operator", f"{lease['org']}/{user}")
    assert problem(below.get("/v1/events")) == (403, "forbidden")
    assert problem(admin.with_key("agent").get("/v1/events")) == (403, "forbidden")
    assert problem(admin.get("/v1/events?cursor=x")) == (422, "invalid_request")


def of_lease(page: dict[str, Any], lease: dict[str, Any]) -> list[dict[str, Any]]:
    """Events about one lease."""
    return [each for each in page["events"] if each["subject"] == lease["reservation_id"]]


def test_readers_have_names(admin: Caller, lease: dict[str, Any], served: RunningServer) -> None:
    """A reader says how far it has come; the bus is one; a tenant's readers are its own."""
    until(lambda: of_lease(admin.read("/v1/events", params={"limit": 1_000}), lease))
    tenant = admin.with_key("operator", lease["org"])
    path = "/v1/event-consumers/billing"
    made = tenant.made(f"{path}:acknowledge", {"position": 1})
    assert (made["org"], made["position"]) == (lease["org"], 1)
    assert made["behind"] > 0
    assert [each["consumer"] for each in tenant.read("/v1/event-consumers")["consumers"]] == [
        "billing"
    ]
    names = {each["consumer"] for each in admin.read("/v1/event-consumers")["consumers"]}
    assert {"bus", "billing"} <= names
    ahead = tenant.post(f"{path}:acknowledge", {"position": 10**12})
    assert problem(ahead) == (422, "invalid_request")
    assert problem(tenant.post("/v1/event-consumers/NO!:acknowledge", {"position": 0})) == (
        422,
        "invalid_request",
    )
    reader = admin.with_key("read-only", lease["org"])
    assert problem(reader.post(f"{path}:acknowledge", {"position": 1})) == (403, "forbidden")
    with Client(served.url, tenant.secret) as client:
        assert client.forget_event_consumer("billing").consumer == "billing"
        with pytest.raises(Refused, match="no reader"):
            client.forget_event_consumer("billing")
    acts = admin.read("/v1/audit", params={"resource": "billing"})["audit"]
    assert [each["action"] for each in acts] == ["event_consumer.forget", "event_consumer.create"]
    for number in range(20):
        tenant.made(f"/v1/event-consumers/r{number}:acknowledge", {"position": 0})
    full = tenant.post("/v1/event-consumers/more:acknowledge", {"position": 0})
    assert problem(full) == (409, "consumers_full")


def test_a_reader_is_not_behind_for_events_of_others(admin: Caller, lease: dict[str, Any]) -> None:
    """Whoever has dealt with all events of its org is 0 behind, whatever other tenants do."""
    until(lambda: of_lease(admin.read("/v1/events", params={"limit": 1_000}), lease))
    tenant = admin.with_key("operator", lease["org"])
    read = tenant.read("/v1/events", params={"limit": 1_000})
    path = "/v1/event-consumers/mine:acknowledge"
    assert tenant.made(path, {"position": read["position"] - 1})["behind"] == 1
    assert tenant.made(path, {"position": read["position"]})["behind"] == 0
    other = fresh_name("other")
    admin.made("/v1/accounts", {"path": other})
    admin.made("/v1/credits/issue", {"account": other, "amount": "1"})
    later = {"cursor": read["position"]}
    until(lambda: other in str(admin.read("/v1/events", params=later)))
    [mine] = tenant.read("/v1/event-consumers")["consumers"]
    assert mine["behind"] == 0


def test_metrics_tell_what_is_behind(admin: Caller) -> None:
    """The metrics of the pipeline are there on a server with a bus."""
    text = admin.get("/metrics").text
    for name in (
        "gpucredits_metering_bus_up 1",
        'gpucredits_metering_behind{topic="usage"}',
        'gpucredits_metering_stalled_seconds{topic="events"}',
        "gpucredits_metering_messages_lost_total 0",
        "gpucredits_dead_letters ",
        "gpucredits_event_readers_stuck 0",
    ):
        assert name in text, name
