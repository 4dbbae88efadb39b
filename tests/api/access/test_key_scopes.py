"""Idempotency keys belong to the scope that sends them: nobody meets or blocks another's."""

from __future__ import annotations

from support.servers.http import Caller, problem


def test_a_key_belongs_to_the_scope_that_used_it(admin: Caller, org: str, gpu_type: str) -> None:
    """The same words of two projects, of their org and of the system's staff never meet."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    for project in (f"{org}/a", f"{org}/b"):
        admin.made("/v1/accounts", {"path": project})
    scopes = [f"{org}/a", f"{org}/b", org, None]
    callers = [admin.with_key("operator", scope) for scope in scopes]
    told = [
        caller.made(
            "/v1/reservations",
            {"account": scope or f"{org}/a", "job_id": f"j{number}", "gpu_type": gpu_type},
            key="job-1",
        )
        for number, (caller, scope) in enumerate(zip(callers, scopes, strict=True))
    ]
    assert len({each["reservation_id"] for each in told}) == len(scopes)


def test_equal_requests_of_two_scopes_are_two_requests(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """Nobody is answered with what another scope was told, though every word is the same."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    admin.made("/v1/accounts", {"path": f"{org}/a"})
    batch = {"items": [{"account": f"{org}/a", "job_id": "j", "gpu_type": gpu_type, "node": "n"}]}
    first = admin.with_key("operator", org)
    assert first.made("/v1/reservations:batch", batch, key="same")["results"][0]["status"] == 201
    second = admin.with_key("operator", f"{org}/a")
    answer = second.post("/v1/reservations:batch", batch, key="same")
    assert "idempotency-replayed" not in answer.headers
    assert answer.json()["results"][0]["problem"]["reason"] == "reservation_exists"


def test_keys_of_one_scope_share_their_namespace(admin: Caller, org: str) -> None:
    """A retry with another API key of the same scope gets the first answer, and 409 for others."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "10"})
    body = {"from": org, "to": f"{org}/vision", "amount": "1"}
    first, second = (admin.with_key("operator", org) for _ in range(2))
    made = first.made("/v1/credits/transfer", body, key="moved")
    again = second.post("/v1/credits/transfer", body, key="moved")
    assert (again.json(), again.headers["idempotency-replayed"]) == (made, "true")
    other = second.post("/v1/credits/transfer", {**body, "amount": "2"}, key="moved")
    assert problem(other) == (409, "idempotency_key_reused")


def test_a_refused_use_of_a_key_blocks_nobody_else(admin: Caller, org: str, gpu_type: str) -> None:
    """Not refused by a rule, nor by a permission, nor as part of a batch: the others' work goes on.

    A tenant cannot know the words that the system's staff will use, and must not be able to guess.
    """
    admin.made("/v1/credits/issue", {"account": org, "amount": "10"})
    member = admin.with_key("member", f"{org}/vision")
    lease = {"account": f"{org}/vision", "job_id": "j", "gpu_type": gpu_type, "gpu_count": 99}
    issue = {"account": org, "amount": "1"}
    assert problem(member.post("/v1/reservations", lease, key="payroll"))[0] == 402
    refused = member.made("/v1/reservations:batch", {"items": [lease]}, key="monthly")
    assert refused["results"][0]["status"] == 402
    assert problem(member.post("/v1/credits/issue", issue, key="bonus"))[0] == 403
    for key in ("payroll", "bonus"):
        admin.made("/v1/credits/issue", issue, key=key)
    done = admin.made("/v1/credits/issue:batch", {"items": [issue]}, key="monthly")
    assert done["results"][0]["status"] == 201
