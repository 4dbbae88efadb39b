"""What becomes of a running job that cannot be renewed in full, told through heartbeats."""

from __future__ import annotations

import time
from typing import Any

import pytest

from support.servers.http import Caller, fresh_name, problem


def start(caller: Caller, org: str, gpu_type: str, **terms: Any) -> str:
    """A job that uses a credit each hundred seconds, and holds a credit ahead."""
    body: dict[str, Any] = {
        "account": f"{org}/vision",
        "job_id": fresh_name("j"),
        "gpu_type": gpu_type,
    }
    body |= {"window_seconds": 100}
    return str(caller.made("/v1/reservations", body | terms)["reservation_id"])


def beat(caller: Caller, lease: str, seq: int, used_s: int) -> Any:
    """One heartbeat through the batch path."""
    beats = [{"reservation_id": lease, "seq": seq, "used_ms": used_s * 1_000}]
    answer = caller.made("/v1/heartbeats", {"node": "n1", "beats": beats})["results"][0]
    assert answer["reservation_id"] == lease
    return answer


def passed_ms(began: float) -> float:
    """The real time since then, which the server's clock goes on by as well; rounded up."""
    return (time.monotonic() - began) * 1_000 + 1


def test_going_on_says_nothing_more(admin: Caller, org: str, gpu_type: str) -> None:
    """The ordinary answer has no deadline, no signal and no reason in it."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    lease = start(admin, org, gpu_type, exhaustion="stop", grace_seconds=30)
    admin.advance(10)
    answer = beat(admin, lease, 1, 10)
    assert answer.keys() == {
        *("reservation_id", "decision", "settled", "held", "expires_in_ms", "state"),
    }


def test_stop_ends_at_the_first_renewal_that_is_short(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """With ``stop`` the job ends where it stands, and the rest of its hold comes back."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "1.5"})
    lease = start(admin, org, gpu_type, exhaustion="stop")
    admin.advance(90)
    answer = beat(admin, lease, 1, 90)
    assert (answer["decision"], answer["reason"]) == ("stop", "insufficient_credits")
    assert (answer["settled"], answer["held"], answer["state"]) == ("0.9", "0", "expired")
    assert "deadline_in_ms" not in answer
    assert admin.read(f"/v1/accounts/{org}/balance")["available"] == "0.6"


def test_drain_has_a_deadline_and_a_signal_before_it(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """With ``drain`` the job runs to its last credit and is told one grace before it."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "1.5"})
    began = time.monotonic()
    lease = start(admin, org, gpu_type, grace_seconds=20)
    admin.advance(90)
    answer = beat(admin, lease, 1, 90)
    assert (answer["decision"], answer["reason"]) == ("drain", "insufficient_credits")
    assert answer["deadline_in_ms"] == answer["expires_in_ms"]
    assert 60_000 - passed_ms(began) <= answer["deadline_in_ms"] <= 60_000
    assert answer["deadline_in_ms"] - answer["signal_in_ms"] == 20_000
    shown = admin.read(f"/v1/reservations/{lease}")
    assert (shown["exhaustion"], shown["grace_seconds"]) == ("drain", 20)


def test_finish_runs_on_an_overdraft_that_was_allowed(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """With ``finish`` the job goes on beyond its last credit, up to what was pinned."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "2.5"})
    terms = {"exhaustion": "finish", "overdraft": "2"}
    asked = {"account": org, "job_id": "j", "gpu_type": gpu_type, **terms}
    refused = admin.post("/v1/reservations", asked)
    assert problem(refused) == (422, "overdraft_too_large")
    allowed = admin.call("PATCH", f"/v1/accounts/{org}", {"overdraft_limit": "5"})
    assert allowed.json()["overdraft_limit"] == "5"
    lease = start(admin, org, gpu_type, **terms)
    decisions = []
    for seq in range(1, 6):
        admin.advance(80)
        answer = beat(admin, lease, seq, seq * 80)
        decisions.append((answer["decision"], answer.get("reason", "")))
        if answer["decision"] == "drain":
            break
    assert decisions[0] == ("continue", "")
    assert ("continue", "overdraft") in decisions
    assert decisions[-1] == ("drain", "insufficient_credits")
    assert admin.read(f"/v1/reservations/{lease}")["overdraft"] == "2"


def test_many_jobs_overdraw_no_more_than_their_payer_may(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """The overdraft limit of an account holds for all its jobs together, beat by beat."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "5"})
    admin.call("PATCH", f"/v1/accounts/{org}", {"overdraft_limit": "1"})
    terms = {"exhaustion": "finish", "overdraft": "1"}
    leases = [start(admin, org, gpu_type, **terms) for _ in range(5)]
    admin.advance(95)
    ends = [beat(admin, lease, 1, 95)["expires_in_ms"] for lease in leases]
    assert [end > 6_000 for end in ends] == [True, True, False, False, False]
    admin.advance(90)
    for lease in leases[:2]:  # those that have not lapsed
        beat(admin, lease, 2, 185)
    overrun = admin.read(f"/v1/accounts/{org}/balance")["overrun"]
    assert 0.5 < float(overrun) <= 1


def test_an_overdraft_buys_no_way_past_a_window(admin: Caller, org: str, gpu_type: str) -> None:
    """Jobs on an overdraft use no more of a quota window together than there is of it."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "2"})
    admin.call("PATCH", f"/v1/accounts/{org}", {"overdraft_limit": "10"})
    window = {"dimension": "credits_per_window", "limit": "2.8", "rolling_hours": 24}
    admin.made(f"/v1/accounts/{org}/quotas", window)
    terms = {"exhaustion": "finish", "overdraft": "5"}
    leases = [start(admin, org, gpu_type, **terms) for _ in range(2)]
    admin.advance(95)
    for lease in leases:
        beat(admin, lease, 1, 95)
    [quota] = admin.read(f"/v1/accounts/{org}/quotas")["quotas"]
    assert (quota["used"], quota["held"], quota["left"]) == ("1.9", "0.9", "0")
    admin.advance(80)
    beat(admin, leases[0], 2, 175)  # the other has lapsed
    [quota] = admin.read(f"/v1/accounts/{org}/quotas")["quotas"]
    assert 2.5 < float(quota["used"]) <= 2.8


def test_the_house_s_own_staff_allow_overdrafts(admin: Caller, org: str) -> None:
    """An org's admin cannot make the house pay for its jobs."""
    caller = admin.with_key("admin", org)
    change = {"overdraft_limit": "5"}
    assert problem(caller.call("PATCH", f"/v1/accounts/{org}/vision", change)) == (403, "forbidden")
    assert problem(caller.call("PATCH", f"/v1/accounts/{org}", change)) == (403, "forbidden")


def test_throttle_comes_inside_a_200(admin: Caller, org: str, gpu_type: str) -> None:
    """A job that is too fast keeps its hold, is told when to go on, and lives while it pauses."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    terms = {"capacity": "1.1", "refill_per_hour": "3.6"}
    admin.call("PUT", f"/v1/accounts/{org}/rate-limit", terms)
    began = time.monotonic()
    lease = start(admin, org, gpu_type)
    admin.advance(40)
    told = beat(admin, lease, 1, 40)
    assert (told["decision"], told["reason"]) == ("throttle", "rate_limited")
    assert told["deadline_in_ms"] == told["expires_in_ms"] >= 60_000 - passed_ms(began)
    assert "signal_in_ms" not in told
    assert 0 < told["clears_in_ms"] < 300_000
    assert told["state"] == "active"
    left_s = told["clears_in_ms"] // 1_000 + 1
    for seq in range(2, 10):  # a job that pauses uses nothing
        admin.advance(min(left_s, 40))
        left_s -= 40
        told = beat(admin, lease, seq, 40)
        if told["decision"] == "continue":
            break
    assert (told["decision"], told["held"], left_s <= 0) == ("continue", "1", True)


def test_a_window_that_fills_up_drains_the_job(admin: Caller, org: str, gpu_type: str) -> None:
    """A quota closes on a running job by a drain that names it."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    window = {"dimension": "credits_per_window", "limit": "1.5", "rolling_hours": 24}
    admin.made(f"/v1/accounts/{org}/vision/quotas", window)
    lease = start(admin, org, gpu_type)
    admin.advance(90)
    answer = beat(admin, lease, 1, 90)
    assert (answer["decision"], answer["reason"]) == ("drain", "quota_exceeded")
    assert answer["held"] == "0.6"


@pytest.mark.parametrize(
    "terms",
    [
        {"exhaustion": "explode"},
        {"grace_seconds": -1},
        {"grace_seconds": 86_401},
        {"overdraft": "-1"},
        {"overdraft": "NaN"},
        {"overdraft": "1e99"},
    ],
    ids=str,
)
def test_terms_that_make_no_sense_are_said(
    admin: Caller, org: str, gpu_type: str, terms: dict[str, Any]
) -> None:
    """Bad terms are refused with the name of their field, for a reserve and for an explanation."""
    body = {"account": org, "job_id": "j", "gpu_type": gpu_type, **terms}
    for path in ("/v1/reservations", "/v1/admissions:check"):
        answer = admin.post(path, body)
        assert problem(answer) == (422, "invalid_request")
        assert answer.json()["field"] == next(iter(terms))
