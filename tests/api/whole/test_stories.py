"""The worked examples that the system was designed from, over HTTP, to the credit."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from support.servers.http import Caller, fresh_name


def beat(caller: Caller, lease: str, seq: int, used_s: int) -> Any:
    """One heartbeat through the batch path."""
    beats = [{"reservation_id": lease, "seq": seq, "used_ms": used_s * 1_000}]
    return caller.made("/v1/heartbeats", {"node": "n1", "beats": beats})["results"][0]


def balance(caller: Caller, account: str, **query: str) -> tuple[str, str, str]:
    """(available, reserved, spent)."""
    answer = caller.read(f"/v1/accounts/{account}/balance", params=query)
    return answer["available"], answer["reserved"], answer["spent"]


def test_two_jobs_of_a_user_are_paid_by_the_project(admin: Caller, org: str) -> None:
    """Issue 10,000, move 6,000 to a project, run 50 and 70 minutes at 1 credit a minute: 120."""
    gpu = fresh_name("a100-")
    project, user = f"{org}/vision", f"{org}/vision/alice"
    admin.made("/v1/prices", {"gpu_type": gpu, "credits_per_gpu_hour": 60})
    admin.made("/v1/credits/issue", {"account": org, "amount": "10000"})
    admin.made("/v1/credits/transfer", {"from": org, "to": project, "amount": "6000"})
    assert balance(admin, org) == ("4000", "0", "0")
    before = admin.instant()
    leases = [
        admin.made("/v1/reservations", {"account": user, "job_id": job, "gpu_type": gpu})
        for job in ("a", "b")
    ]
    assert [lease["payer"] for lease in leases] == [project, project]
    assert balance(admin, project) == ("5996", "4", "0")
    ids = [lease["reservation_id"] for lease in leases]
    for minute in range(1, 71):
        admin.advance(60)
        if minute < 50:
            assert beat(admin, ids[0], minute, minute * 60)["decision"] == "continue"
        if minute == 50:
            closed = admin.made(
                f"/v1/reservations/{ids[0]}:settle", {"seq": 50, "used_ms": 3_000_000}
            )
            assert (closed["settled"], closed["released"]) == ("50", "1")
        if minute < 70:
            assert beat(admin, ids[1], minute, minute * 60)["decision"] == "continue"
    closed = admin.made(f"/v1/reservations/{ids[1]}:settle", {"seq": 70, "used_ms": 4_200_000})
    assert (closed["state"], closed["settled"]) == ("settled", "70")
    assert balance(admin, project) == ("5880", "0", "120")
    assert balance(admin, org, tree="true") == ("9880", "0", "120")
    assert balance(admin, project, at=before) == ("6000", "0", "0")
    assert balance(admin, project, known_at=before) == ("6000", "0", "0")
    entries = pages(admin, "/v1/entries", "entries", account=project)
    moved: dict[str, Decimal] = {}
    for entry in entries:
        moved[entry["type"]] = moved.get(entry["type"], Decimal(0)) + Decimal(entry["amount"])
    assert moved == {"transfer": 6_000, "reserve": 122, "release": 2, "settle": 120}
    root = admin.read(f"/v1/accounts/{org}/tree")["root"]
    assert root["subtree"]["spent"] == "120"
    assert root["children"][0]["own"]["spent"] == "120"
    paid = admin.read(f"/v1/accounts/{project}/usage", params={"by": "job"})["paid"]
    assert {group["name"]: group["spent"] for group in paid} == {"a": "50", "b": "70"}
    used = admin.read(f"/v1/accounts/{user}/usage")["leases"]
    assert {lease["job_id"]: lease["used_ms"] for lease in used} == {"a": 3_000_000, "b": 4_200_000}


def pages(caller: Caller, path: str, name: str, **query: Any) -> list[Any]:
    """Everything in a list, a small page at a time."""
    found: list[Any] = []
    cursor: dict[str, str] = {}
    while True:
        page = caller.read(path, params={"limit": 50, **query, **cursor})
        found.extend(page[name])
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}


def test_four_gpus_hold_a_window_and_burn_it_down(admin: Caller, gpu_type: str) -> None:
    """50 credits, 4 GPUs at 0.04 a second, L = 15 s, beats every 5 s, 8 minutes: 19.2 in all."""
    org = fresh_name("org")
    admin.made("/v1/accounts", {"path": org})
    admin.made("/v1/credits/issue", {"account": org, "amount": "50"})
    lease = admin.made(
        "/v1/reservations",
        {
            "account": org,
            "job_id": "j",
            "gpu_type": gpu_type,
            "gpu_count": 4,
            "window_seconds": 15,
        },
    )
    assert (lease["rate_per_second"], lease["held"]) == ("0.04", "0.6")
    assert balance(admin, org) == ("49.4", "0.6", "0")
    path = f"/v1/reservations/{lease['reservation_id']}"
    for number in range(1, 97):
        admin.advance(5)
        used = {"seq": number, "used_ms": number * 5_000}
        answer = admin.made(f"{path}:extend", used)
        assert answer["decision"] == "continue"
        if number == 1:
            assert balance(admin, org) == ("49.2", "0.6", "0.2")
    closed = admin.made(f"{path}:settle")
    assert (closed["settled"], closed["released"]) == ("19.2", "0.6")
    assert balance(admin, org) == ("30.8", "0", "19.2")


def test_a_job_runs_to_its_last_credit_and_then_stops(admin: Caller, gpu_type: str) -> None:
    """When the next window cannot be paid the node is told to drain, and at the end to stop."""
    org = fresh_name("org")
    admin.made("/v1/accounts", {"path": org})
    admin.made("/v1/credits/issue", {"account": org, "amount": "1"})
    body = {"account": org, "job_id": "j", "gpu_type": gpu_type, "window_seconds": 60}
    lease = admin.made("/v1/reservations", body)["reservation_id"]
    admin.advance(30)
    assert beat(admin, lease, 1, 30)["decision"] == "continue"
    admin.advance(30)
    answer = beat(admin, lease, 2, 60)
    assert (answer["decision"], answer["held"], answer["expires_in_ms"]) == ("drain", "0.4", 40_000)
    admin.advance(41)
    answer = beat(admin, lease, 3, 100)
    assert (answer["decision"], answer["state"]) == ("stop", "expired")
    shown = admin.read(f"/v1/reservations/{lease}")
    assert (shown["state"], shown["settled"], shown["expires_in_ms"]) == ("expired", "1", 0)
    assert balance(admin, org) == ("0", "0", "1")


def test_a_beat_that_is_repeated_costs_nothing(admin: Caller, org: str, gpu_type: str) -> None:
    """The same seq again renews nothing, charges nothing and says so."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "10"})
    body = {"account": org, "job_id": "j", "gpu_type": gpu_type}
    lease = admin.made("/v1/reservations", body)["reservation_id"]
    admin.advance(10)
    first = beat(admin, lease, 1, 10)
    again = beat(admin, lease, 1, 10)
    assert again["duplicate"] is True
    assert (first["settled"], again["settled"]) == ("0.1", "0.1")
    assert balance(admin, org) == ("8.7", "1.2", "0.1")


def test_late_use_is_charged_and_what_is_not_is_shown(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """Use up to the lapse is charged, once; what a report says later than a week is not."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "10"})
    body = {"account": org, "job_id": "j", "gpu_type": gpu_type, "window_seconds": 60}
    lease = admin.made("/v1/reservations", body)["reservation_id"]
    admin.advance(20)
    admin.made(f"/v1/reservations/{lease}:extend", {"seq": 1, "used_ms": 20_000})
    (before,) = admin.read(f"/v1/accounts/{org}/usage")["leases"]
    assert (before["used_ms"], before["late_ms"]) == (20_000, 0)
    admin.advance(100)
    for seq, used_ms in ((2, 50_000), (2, 50_000), (3, 55_000)):
        admin.made(f"/v1/reservations/{lease}:extend", {"seq": seq, "used_ms": used_ms})
    (shown,) = admin.read(f"/v1/accounts/{org}/usage")["leases"]
    assert (shown["used_ms"], shown["late_ms"], shown["events"]) == (55_000, 0, 0)
    assert (before["charged"], shown["charged"]) == ("0.2", "0.55")
    admin.advance(8 * 86_400)
    admin.made(f"/v1/reservations/{lease}:extend", {"seq": 4, "used_ms": 60_000})
    (shown,) = admin.read(f"/v1/accounts/{org}/usage")["leases"]
    assert (shown["used_ms"], shown["late_ms"], shown["charged"]) == (55_000, 5_000, "0.55")


def test_a_refund_goes_back_to_the_grant_that_paid(admin: Caller, org: str, gpu_type: str) -> None:
    """What is given back is in the grant again; a charge on top is taken from it."""
    grant = admin.made("/v1/credits/issue", {"account": org, "amount": "10"})
    body = {"account": org, "job_id": "j", "gpu_type": gpu_type}
    lease = admin.made("/v1/reservations", body)["reservation_id"]
    admin.advance(100)
    admin.made(f"/v1/reservations/{lease}:settle", {"seq": 1, "used_ms": 100_000})
    refund = admin.made("/v1/refunds", {"reservation_id": lease, "amount": "0.4"})
    assert refund["lots"] == [{"grant_id": grant["grant_id"], "kind": "grant", "amount": "0.4"}]
    admin.made("/v1/adjustments", {"reservation_id": lease, "amount": "0.1", "note": "late"})
    (shown,) = admin.read("/v1/grants", params={"account": org})["grants"]
    assert shown["remaining"] == "9.3"
    assert balance(admin, org) == ("9.3", "0", "0.7")


def test_a_reversed_payment_comes_back_from_where_it_was_moved(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """Unspent credits leave the project and the user; only what a job spent is owed."""
    project, user = f"{org}/vision", f"{org}/vision/alice"
    paid = {"account": org, "amount": "10", "payment_reference": "wire", "status": "confirmed"}
    topup = admin.made("/v1/topups", paid)["topup_id"]
    admin.made("/v1/credits/transfer", {"from": org, "to": project, "amount": "8"})
    admin.made("/v1/credits/transfer", {"from": project, "to": user, "amount": "5"})
    job = {"account": user, "job_id": "a", "gpu_type": gpu_type, "payer": user}
    lease = admin.made("/v1/reservations", job)["reservation_id"]
    admin.advance(50)
    admin.made(f"/v1/reservations/{lease}:settle", {"used_ms": 50_000})
    assert admin.made(f"/v1/topups/{topup}:reverse")["status"] == "reversed"
    assert balance(admin, org) == ("0", "0", "0")
    assert balance(admin, project) == ("0", "0", "0")
    assert balance(admin, user) == ("0", "0", "0.5")
    entries = pages(admin, "/v1/entries", "entries", account=user)
    assert (entries[0]["type"], entries[0]["amount"]) == ("transfer", "4.5")
    owed = admin.read(f"/v1/accounts/{org}/balance")["overrun"]
    assert owed == "0.5"
    admin.made("/v1/credits/issue", {"account": org, "amount": "2"})
    assert balance(admin, org) == ("1.5", "0", "0")


def test_measured_use_is_stored_once(admin: Caller, org: str, gpu_type: str) -> None:
    """Usage events are kept by node and seq, shown beside what was settled, and move no money."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "10"})
    body = {"account": org, "job_id": "j", "gpu_type": gpu_type, "node": "n1"}
    lease = admin.made("/v1/reservations", body)["reservation_id"]
    event = {"reservation_id": lease, "seq": 1, "start_ms": 0, "end_ms": 4_000}
    events = [event, event, {**event, "seq": 2, "start_ms": 4_000, "end_ms": 9_000}]
    answer = admin.made("/v1/usage", {"node": "n1", "events": events})
    assert [each["status"] for each in answer["results"]] == ["stored", "duplicate", "stored"]
    assert admin.made("/v1/usage", {"node": "n1", "events": events})["stored"] == 0
    by_job = {"account": org, "job_id": "other", "seq": 1, "start_ms": 0, "end_ms": 1}
    assert admin.made("/v1/usage", {"events": [by_job]})["stored"] == 1
    (shown,) = admin.read(f"/v1/accounts/{org}/usage")["leases"]
    assert (shown["measured_ms"], shown["events"], shown["settled"]) == (9_000, 2, "0")


def test_a_job_is_its_accounts_own_in_what_was_measured(admin: Caller, org: str) -> None:
    """Two projects call a job the same: neither's reports are taken for the other's."""
    admin.made("/v1/accounts", {"path": f"{org}/b"})
    said = {"job_id": "train", "seq": 1, "start_ms": 0, "end_ms": 60_000}
    accounts = [f"{org}/vision", f"{org}/b"]
    reports = [said | {"account": account} for account in accounts]
    for account, report in zip(accounts, reports, strict=True):
        caller = admin.with_key("agent", account)
        for status in ("stored", "duplicate"):
            [result] = caller.made("/v1/usage", {"events": [report]})["results"]
            assert result["status"] == status
    again = [report | {"seq": 2} for report in reports]
    answer = admin.made("/v1/usage", {"events": [*again, again[0]]})
    assert (answer["stored"], answer["duplicates"]) == (2, 1)


def test_metadata_can_be_looked_for(admin: Caller, org: str, gpu_type: str) -> None:
    """Accounts, grants and reservations are found by their labels."""
    team = {"team": "blue, or = red"}
    admin.made("/v1/accounts", {"path": f"{org}/labelled", "metadata": team})
    admin.made("/v1/credits/issue", {"account": org, "amount": "10", "metadata": team})
    lease = {"account": org, "job_id": "j", "gpu_type": gpu_type}
    admin.made("/v1/reservations", {**lease, "metadata": team})
    admin.made("/v1/reservations", {**lease, "node": "n2"})
    for path, name in (("accounts", "accounts"), ("grants", "grants")):
        key = "under" if path == "accounts" else "account"
        for label, count in (("team=blue, or = red", 1), ("team=green", 0)):
            params = {key: org, "metadata": label}
            assert len(admin.read(f"/v1/{path}", params=params)[name]) == count
    params = {"account": org, "metadata": '{"team": "blue, or = red"}'}
    assert len(admin.read("/v1/reservations", params=params)["reservations"]) == 1


def test_lists_come_in_pages(admin: Caller, org: str) -> None:
    """Small pages joined by their cursors are the whole list, without gaps or repeats."""
    for number in range(7):
        admin.made("/v1/accounts", {"path": f"{org}/p{number}"})
        admin.made("/v1/credits/issue", {"account": org, "amount": number + 1})
    paths = [each["path"] for each in pages(admin, "/v1/accounts", "accounts", under=org, limit=2)]
    assert paths == sorted(paths)
    assert len(paths) == 10
    grants = pages(admin, "/v1/grants", "grants", account=org, limit=3)
    assert [each["amount"] for each in grants] == [str(number) for number in range(1, 8)]
    entries = pages(admin, "/v1/entries", "entries", account=org, limit=2)
    assert [each["amount"] for each in entries] == [str(number) for number in range(7, 0, -1)]
    everything = pages(admin, "/v1/accounts", "accounts", limit=5)
    assert {org, f"{org}/p3"} <= {each["path"] for each in everything}
    assert len(everything) == len({each["path"] for each in everything})
