"""Keys: one effect, the same answer; dry runs: none at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from support.rows import rows_of
from support.servers.http import Caller, fresh_name, problem


def test_the_same_request_has_one_effect_and_one_answer(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """A retry gets the answer of the first call, however its JSON is written."""
    issue = {"account": org, "amount": "10"}
    first = admin.made("/v1/credits/issue", issue, key="same")
    spaced = f'{{ "amount" : 10.000 , "account": "{org}" }}'
    assert admin.post("/v1/credits/issue", content=spaced, key="same").json() == first
    lease = {"account": org, "job_id": "j", "gpu_type": gpu_type}
    assert admin.made("/v1/reservations", lease, key="lease") == admin.made(
        "/v1/reservations", lease, key="lease"
    )
    other = admin.made("/v1/reservations", {**lease, "node": "n2"})["reservation_id"]
    settle = f"/v1/reservations/{other}:settle"
    assert admin.made(settle, {}, key="end") == admin.made(settle, {}, key="end")


def test_a_refusal_is_remembered_too(admin: Caller, org: str, gpu_type: str) -> None:
    """The same key gets the same refusal even when the request would now succeed."""
    lease = {"account": org, "job_id": "j", "gpu_type": gpu_type}
    assert problem(admin.post("/v1/reservations", lease, key="early")) == (
        402,
        "insufficient_credits",
    )
    admin.made("/v1/credits/issue", {"account": org, "amount": "10"})
    assert problem(admin.post("/v1/reservations", lease, key="early")) == (
        402,
        "insufficient_credits",
    )
    admin.made("/v1/reservations", lease, key="later")


def test_a_change_of_terms_is_answered_as_before(admin: Caller, org: str) -> None:
    """Whether a credit limit fits is asked once: a retry gets what the first call was told."""
    path, limit = f"/v1/accounts/{org}", {"credit_limit": "5"}
    early = admin.call("PATCH", path, limit, key="early")
    assert problem(early) == (422, "limit_invalid")
    assert "is for postpaid accounts" in early.json()["detail"]
    admin.call("PATCH", path, {"model": "postpaid"})
    first = admin.call("PATCH", path, limit, key="terms")
    assert (first.status_code, first.json()["credit_limit"]) == (200, "5")
    again = admin.call("PATCH", path, limit, key="early")
    assert problem(again) == (422, "limit_invalid")
    admin.call("PATCH", path, {"model": "prepaid"})
    again = admin.call("PATCH", path, limit, key="terms")
    assert (again.status_code, again.json()) == (200, first.json())
    assert again.headers["idempotency-replayed"] == "true"
    assert admin.read(path)["credit_limit"] == "0"


def test_that_an_org_does_not_exist_is_not_remembered(admin: Caller) -> None:
    """There is no org to remember it in: once there is one, the key does what it says, once."""
    name = fresh_name("late")
    issue = {"account": name, "amount": "1"}
    batch = {"items": [issue]}
    for path, body in (("/v1/credits/issue", issue), ("/v1/credits/issue:batch", batch)):
        answer = admin.post(path, body, key=f"{name}-{path}")
        told = (
            answer.json()["results"][0]["problem"] if "results" in answer.json() else answer.json()
        )
        assert (told["status"], told["reason"]) == (404, "account_unknown")
    admin.made("/v1/accounts", {"path": name})
    for _ in range(2):
        admin.made("/v1/credits/issue", issue, key=f"{name}-/v1/credits/issue")
        admin.made("/v1/credits/issue:batch", batch, key=f"{name}-/v1/credits/issue:batch")
    assert admin.read(f"/v1/accounts/{name}/balance")["available"] == "2"


def test_an_answer_outlives_what_it_was_about(admin: Caller, org: str, gpu_type: str) -> None:
    """After the grant expired and the lease lapsed, a retry still gets the first answer."""
    grant = {"account": org, "amount": "10", "expires_at": admin.instant(hours=12)}
    issued = admin.made("/v1/credits/issue", grant, key="grant")
    lease = {"account": org, "job_id": "j", "gpu_type": gpu_type}
    leased = admin.made("/v1/reservations", lease, key="lease")
    admin.advance(24 * 3_600)
    assert admin.made("/v1/credits/issue", grant, key="grant") == issued
    assert admin.made("/v1/reservations", lease, key="lease") == leased
    assert admin.post("/v1/reservations", lease).status_code == 402


def test_another_request_with_the_same_key_is_409(admin: Caller, org: str) -> None:
    """A key belongs to one request: another body, path or kind of act is refused."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "10"}, key="taken")
    for path, body in (
        ("/v1/credits/issue", {"account": org, "amount": "11"}),
        ("/v1/credits/transfer", {"from": org, "to": f"{org}/vision", "amount": "10"}),
        ("/v1/prices", {"gpu_type": "x", "credits_per_gpu_hour": "1", "account": org}),
    ):
        answer = admin.post(path, body, key="taken")
        assert problem(answer) == (409, "idempotency_key_reused")


def test_keys_belong_to_an_org(admin: Caller, org: str) -> None:
    """Two tenants may use the same key without knowing of each other."""
    other = fresh_name("org")
    admin.made("/v1/accounts", {"path": other})
    first = admin.made("/v1/credits/issue", {"account": org, "amount": "1"}, key="shared")
    second = admin.made("/v1/credits/issue", {"account": other, "amount": "2"}, key="shared")
    assert (first["account"], second["account"]) == (org, other)


def test_a_key_of_the_system_is_no_key_of_an_org(admin: Caller) -> None:
    """Number 0 is no org: an id with that number is unknown, whatever key the system has used."""
    key = fresh_name("key")
    admin.made("/v1/keys", {"role": "member"}, key=key)
    for place in ("reservations/rsv_0_0:cancel", "topups/top_0_0:fail"):
        status, reason = problem(admin.post(f"/v1/{place}", {}, key=key))
        assert (status, reason.endswith("_unknown")) == (404, True)


@pytest.mark.parametrize("kind", ["issue", "price", "quotas"])
def test_copies_in_flight_have_one_effect(admin: Caller, org: str, kind: str) -> None:
    """Many copies at once: every caller gets the same answer, and one of them did it."""
    method, path, body = {
        "issue": ("POST", "/v1/credits/issue", {"account": org, "amount": "1"}),
        "price": (
            "POST",
            "/v1/prices",
            {"gpu_type": fresh_name("gpu-"), "credits_per_gpu_hour": "1"},
        ),
        "quotas": (
            "PUT",
            f"/v1/accounts/{org}/quotas",
            {"quotas": [{"dimension": "concurrent_gpus", "limit": 4}]},
        ),
    }[kind]
    key = fresh_name("copies")

    def send(_: int) -> Any:
        answer = admin.call(method, path, body, key=key)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(send, range(48)))
    assert all(answer == answers[0] for answer in answers)
    if kind == "issue":
        acts = admin.read("/v1/audit", params={"account": org, "action": "credits.issue"})
        assert len(acts["audit"]) == 1


def test_batches_have_one_key_for_all(admin: Caller, org: str, gpu_type: str) -> None:
    """A batch is repeated as a whole; another batch under its key is refused."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "10"})
    lease = {"account": org, "gpu_type": gpu_type}
    items = [{**lease, "job_id": "wide", "node": f"n{number}"} for number in range(4)]
    batch = {"items": items, "atomic": True}
    first = admin.made("/v1/reservations:batch", batch, key="batch")
    assert [result["status"] for result in first["results"]] == [201] * 4
    assert admin.made("/v1/reservations:batch", batch, key="batch") == first
    answer = admin.post("/v1/reservations:batch", {"items": items[:3]}, key="batch")
    assert problem(answer) == (409, "idempotency_key_reused")


def test_an_atomic_batch_is_all_or_nothing(admin: Caller, org: str, gpu_type: str) -> None:
    """When one lease cannot be paid for, none is given; not atomic, the others are."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "3"})
    lease = {"account": org, "gpu_type": gpu_type, "job_id": "wide"}
    items = [{**lease, "node": f"n{number}"} for number in range(4)]
    answer = admin.post("/v1/reservations:batch?atomic=true", {"items": items})
    assert problem(answer) == (402, "insufficient_credits")
    answer = admin.post("/v1/reservations:batch", {"items": items, "atomic": True})
    assert problem(answer) == (402, "insufficient_credits")
    results = admin.made("/v1/reservations:batch", {"items": items})["results"]
    assert [result["status"] for result in results] == [201, 201, 402, 402]
    assert results[2]["problem"]["index"] == 2


def test_a_batch_may_span_orgs_unless_it_is_atomic(admin: Caller, org: str) -> None:
    """Monthly issuance is one request; all or nothing stays within an org."""
    other = fresh_name("org")
    admin.made("/v1/accounts", {"path": other})
    items = [{"account": each, "amount": "1"} for each in (org, other, f"{org}/nope", org)]
    results = admin.made("/v1/credits/issue:batch", {"items": items})["results"]
    assert [result["status"] for result in results] == [201, 201, 404, 201]
    answer = admin.post("/v1/credits/issue:batch", {"items": items, "atomic": True})
    assert problem(answer) == (422, "invalid_request")


def test_an_org_that_does_not_exist_fails_only_its_own_items(admin: Caller, org: str) -> None:
    """What was done is never hidden behind a refusal of something else in the batch."""
    items = [{"account": each, "amount": "1"} for each in (org, fresh_name("nobody"), org)]
    results = admin.made("/v1/credits/issue:batch", {"items": items})["results"]
    assert [result["status"] for result in results] == [201, 404, 201]
    assert results[1]["problem"]["index"] == 1
    assert admin.read(f"/v1/accounts/{org}/balance")["available"] == "2"
    answer = admin.post("/v1/credits/issue:batch", {"items": items[1:2], "atomic": True})
    assert problem(answer) == (404, "account_unknown")


@pytest.mark.parametrize("atomic", [True, False])
def test_a_dry_run_of_a_batch_answers_as_the_batch_would(
    admin: Caller, org: str, gpu_type: str, *, atomic: bool
) -> None:
    """Each item is rehearsed after those before it, so credits are not promised twice."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "3"})
    lease = {"account": org, "gpu_type": gpu_type, "job_id": "wide"}
    batch = {"items": [{**lease, "node": f"n{number}"} for number in range(4)], "atomic": atomic}

    def answered(**options: Any) -> tuple[int, list[int]]:
        answer = admin.post("/v1/reservations:batch", batch, **options)
        results = answer.json().get("results", [])
        return answer.status_code, [result["status"] for result in results]

    rehearsed = answered(params={"dry_run": "true"})
    assert rehearsed == answered()
    assert rehearsed == ((402, []) if atomic else (200, [201, 201, 402, 402]))


def test_a_cap_on_jobs_can_be_rehearsed(admin: Caller, org: str, gpu_type: str) -> None:
    """A job that nobody knows yet is admitted in a dry run, and refused with its batch."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "3"})
    cap = {"dimension": "credits_per_job", "gpu_type": gpu_type, "limit": "100"}
    admin.made(f"/v1/accounts/{org}/quotas", cap)
    lease = {"account": org, "gpu_type": gpu_type, "job_id": "new"}
    assert admin.made("/v1/reservations?dry_run=true", lease)["held"] == "1.2"
    items = [{**lease, "node": f"n{number}"} for number in range(3)]
    answer = admin.post("/v1/reservations:batch", {"items": items, "atomic": True})
    assert problem(answer) == (402, "insufficient_credits")


def test_a_dry_run_takes_as_many_beats_as_a_real_call(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """More of one org than its queue of commands has room for, answered as they then are."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    lease = {"account": org, "job_id": "j", "gpu_type": gpu_type}
    held = [
        admin.made("/v1/reservations", {**lease, "node": node})["reservation_id"]
        for node in ("n1", "n2")
    ]
    beats = [{**beat(held[number % 2]), "seq": number // 2 + 1} for number in range(2_500)]
    beats.insert(1, beats[0])
    admin.advance(1)
    answers = [
        admin.made("/v1/heartbeats", {"beats": beats}, params=params)["results"]
        for params in ({"dry_run": "true"}, {})
    ]
    told = [[(each["reservation_id"], each["settled"]) for each in some] for some in answers]
    assert told[0] == told[1]
    assert [[each.get("duplicate", False) for each in some[:3]] for some in answers] == [
        [False, True, False],
        [False, True, False],
    ]


def test_an_answer_says_when_it_is_that_of_an_earlier_call(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """Only repeats carry Idempotency-Replayed: of commands, refusals, batches and other acts."""
    lease = {"account": org, "job_id": "j", "gpu_type": gpu_type}
    grants = {"items": [{"account": org, "amount": "1"}] * 2}
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    other = admin.made("/v1/keys", {"role": "member", "scope": org})
    end = f"/v1/reservations/{admin.made('/v1/reservations', lease)['reservation_id']}:settle"
    for path, body in (
        ("/v1/credits/issue", {"account": org, "amount": "1"}),
        ("/v1/credits/issue", {"account": f"{org}/nobody", "amount": "1"}),
        ("/v1/credits/issue:batch", grants),
        ("/v1/credits/issue:batch", {**grants, "atomic": True}),
        (end, {}),
        ("/v1/prices", {"gpu_type": gpu_type, "credits_per_gpu_hour": "36"}),
        ("/v1/keys", {"role": "member", "scope": org}),
        (f"/v1/keys/{other['key_id']}:revoke", None),
    ):
        key = fresh_name("replay")
        first, again = (admin.post(path, body, key=key) for _ in range(2))
        assert "idempotency-replayed" not in first.headers, path
        assert again.headers.get("idempotency-replayed") == "true", path
        assert again.status_code == first.status_code


Write = tuple[str, str, Any, int]  # method, path, body, status


def every_write(org: str, lease: dict[str, Any], held: str, topup: str) -> list[Write]:
    """One request for each kind of write, with the status that it gets."""
    gpus = {"dimension": "concurrent_gpus", "limit": 4}
    per_job = {"dimension": "credits_per_job", "limit": "100"}
    budget = {"allowance": "5", "calendar": "month"}
    return [
        ("POST", "/v1/accounts", {"path": fresh_name("org")}, 201),
        ("POST", "/v1/accounts", {"path": f"{org}/new"}, 201),
        ("POST", "/v1/accounts", {"path": org}, 409),
        ("PATCH", f"/v1/accounts/{org}", {"metadata": {"a": "b"}}, 200),
        ("POST", f"/v1/accounts/{org}/suspend", None, 200),
        ("POST", "/v1/credits/issue", {"account": org, "amount": "5"}, 201),
        (
            "POST",
            "/v1/credits/issue:batch",
            {"items": [{"account": org, "amount": "5"}] * 3, "atomic": True},
            200,
        ),
        (
            "POST",
            "/v1/credits/transfer",
            {"from": org, "to": f"{org}/vision", "amount": "5"},
            201,
        ),
        (
            "POST",
            "/v1/credits/transfer",
            {"from": org, "to": f"{org}/vision", "amount": "5000"},
            402,
        ),
        ("POST", "/v1/topups", {"account": org, "amount": "1", "payment_reference": "s"}, 201),
        ("POST", f"/v1/topups/{topup}:confirm", None, 200),
        ("POST", "/v1/reservations", lease, 201),
        ("POST", "/v1/reservations:batch", {"items": [lease]}, 200),
        ("POST", f"/v1/reservations/{held}:extend", {"seq": 1, "used_ms": 1}, 200),
        ("POST", f"/v1/reservations/{held}:settle", {}, 200),
        ("POST", f"/v1/reservations/{held}:cancel", {}, 200),
        ("POST", "/v1/heartbeats", {"beats": [beat(held)]}, 200),
        (
            "POST",
            "/v1/usage",
            {"events": [{"reservation_id": held, "seq": 1, "start_ms": 0, "end_ms": 5}]},
            200,
        ),
        ("POST", "/v1/adjustments", {"reservation_id": held, "amount": "1"}, 201),
        ("POST", "/v1/prices", {"gpu_type": "x", "credits_per_gpu_hour": "1"}, 201),
        ("POST", f"/v1/accounts/{org}/quotas", gpus, 200),
        ("POST", f"/v1/accounts/{org}/quotas", per_job, 200),
        ("PUT", f"/v1/accounts/{org}/quotas", {"quotas": [gpus, per_job]}, 200),
        ("PUT", f"/v1/accounts/{org}/rate-limit", {"capacity": 5, "refill_per_hour": 1}, 200),
        ("POST", f"/v1/accounts/{org}/budgets", budget, 200),
        ("PUT", f"/v1/accounts/{org}/budgets", {"budgets": [budget]}, 200),
        ("POST", "/v1/keys", {"role": "member", "scope": org}, 201),
        ("POST", "/v1/test/clock", {"advance_seconds": 1_000}, 200),
    ]


def test_a_dry_run_leaves_nothing_behind(
    admin: Caller, http: httpx.Client, database_of_server: str, org: str, gpu_type: str
) -> None:
    """On a warm ledger every write answers as if it were done, and changes no row of any table."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    lease = {"account": org, "job_id": "j", "gpu_type": gpu_type}
    held = admin.made("/v1/reservations", lease)["reservation_id"]
    pending = admin.made("/v1/topups", {"account": org, "amount": "1", "payment_reference": "r"})
    writes = every_write(org, {**lease, "node": "n2"}, held, pending["topup_id"])
    before = rows_of(database_of_server, org)
    for method, path, body, status in writes:
        answer = admin.call(method, path, body, params={"dry_run": "true"})
        assert answer.status_code == status, (path, answer.text)
        assert answer.headers["dry-run"] == "true"
    assert rows_of(database_of_server, org) == before
    answer = http.post(
        "/v1/credits/issue?dry_run=true",
        json={"account": org, "amount": "5"},
        headers={"authorization": f"Bearer {admin.secret}"},
    )
    assert answer.status_code == 201
    assert rows_of(database_of_server, org) == before


def beat(reservation_id: str) -> dict[str, Any]:
    """One beat of a node."""
    return {"reservation_id": reservation_id, "seq": 1, "used_ms": 1}
