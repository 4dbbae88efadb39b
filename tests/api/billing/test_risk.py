"""Risk over HTTP: statements and their payment, unusual spending, jobs that end on an overdraft."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from gpucredits.core.statement import DUE_DAYS
from support.engines.postgres import sql
from support.servers.http import Caller, fresh_name, problem
from support.waiting import until

MONTH_S = 32 * 86_400
ABOVE = "an account above"
DUE_S = DUE_DAYS * 86_400


@pytest.fixture
def debtor(admin: Caller) -> str:
    """A fresh org that pays later."""
    name = fresh_name("org")
    admin.made("/v1/accounts", {"path": name, "model": "postpaid", "credit_limit": "1000"})
    admin.made("/v1/accounts", {"path": f"{name}/p"})
    return name


def spend(admin: Caller, account: str, gpu_type: str, gpus: int) -> None:
    """Spend a hundredth of a credit for each GPU."""
    body = {"account": account, "job_id": "j", "gpu_type": gpu_type, "gpu_count": gpus}
    lease = admin.made("/v1/reservations", {**body, "window_seconds": 1})["reservation_id"]
    admin.advance(1)
    admin.made(f"/v1/reservations/{lease}:settle", {"seq": 1, "used_ms": 1_000})


def statements_of(caller: Caller, account: str) -> list[dict[str, Any]]:
    """Statements of an account that ask for something."""
    page = caller.read("/v1/statements", params={"account": account})
    return [row for row in page["statements"] if row["amount"] != "0"]


def is_overdue(admin: Caller, account: str) -> bool:
    """Whether an account is paused for what it owes."""
    return bool(admin.read(f"/v1/accounts/{account}")["delinquent"])


@pytest.fixture
def owing(admin: Caller, debtor: str, gpu_type: str) -> dict[str, Any]:
    """A statement of 20 credits that is due in a while."""
    spend(admin, debtor, gpu_type, 2_000)
    admin.advance(MONTH_S)
    [statement] = until(lambda: statements_of(admin, debtor))
    return statement


def test_an_unpaid_statement_pauses_and_its_payment_resumes(
    admin: Caller, debtor: str, gpu_type: str, owing: dict[str, Any]
) -> None:
    """From the charge to the pause to the payment, whose answer says that all is well again."""
    assert (owing["charges"], owing["closing"], owing["state"]) == ("20", "20", "open")
    admin.advance(DUE_S)
    until(lambda: is_overdue(admin, debtor))
    job = {"account": f"{debtor}/p", "job_id": "j", "gpu_type": gpu_type, "payer": debtor}
    answer = admin.post("/v1/reservations", job)
    assert problem(answer) == (402, "account_delinquent")
    assert "paying what is overdue resumes it" in answer.json()["detail"]
    told = admin.post("/v1/admissions:check", job).json()
    assert (told["admitted"], told["reason"]) == (False, "account_delinquent")
    assert told["detail"] == answer.json()["detail"]
    where = f"/v1/statements/{owing['statement_id']}"
    assert admin.read(where)["state"] == "overdue"
    part = admin.made(f"{where}:pay", {"amount": "5", "payment_reference": "wire 1"})
    assert (part["statement"]["outstanding"], part["delinquent"]) == ("15", True)
    assert "15 credits are overdue since" in part["sentence"]
    key = f"pay-{owing['statement_id']}"
    body = {"amount": "16", "payment_reference": "wire 2"}
    rehearsed = admin.made(f"{where}:pay?dry_run=true", body)
    assert (rehearsed["delinquent"], is_overdue(admin, debtor)) == (False, True)
    first = admin.post(f"{where}:pay", body, key=key)
    again = admin.post(f"{where}:pay", body, key=key)
    assert first.json() == again.json()
    assert again.headers["idempotency-replayed"] == "true"
    taken = admin.post("/v1/credits/issue", {"account": debtor, "amount": "1"}, key=key)
    assert problem(taken) == (409, "idempotency_key_reused")
    twice = admin.post(f"{where}:pay", body)
    assert problem(twice) == (409, "reference_used")
    assert "'wire 2'" in twice.json()["detail"]
    more = {**body, "payment_reference": "wire 3"}
    assert problem(admin.post(f"{where}:pay", more)) == (409, "statement_paid")
    paid = first.json()
    assert (paid["statement"]["state"], paid["delinquent"]) == ("paid", False)
    assert not is_overdue(admin, debtor)
    assert admin.post("/v1/reservations", job).status_code == 201
    balance = admin.read(f"/v1/accounts/{debtor}/balance")
    assert balance["available"] == "-0.2"  # the credit paid beyond what was owed, less the hold
    topup = admin.read(f"/v1/topups/{paid['topup']['topup_id']}")
    assert topup["metadata"] == {"statement": owing["statement_id"]}
    acts = admin.read("/v1/audit", params={"account": debtor, "action": "account.standing"})
    assert [act["new"]["delinquent"] for act in acts["audit"]] == [False, True]
    assert [act["actor"] for act in acts["audit"]][1] == "system:"


def test_resuming_a_paused_account_says_what_still_stands(
    admin: Caller, debtor: str, owing: dict[str, Any]
) -> None:
    """The answer names the statement that keeps the account paused; paid, there is no note."""
    admin.advance(DUE_S)
    until(lambda: is_overdue(admin, debtor))
    assert admin.made(f"/v1/accounts/{debtor}/suspend")["note"] is None
    resumed = admin.made(f"/v1/accounts/{debtor}/resume")
    assert (resumed["status"], resumed["delinquent"]) == ("active", True)
    note = resumed["note"]
    assert note.startswith(f"{debtor} still admits nothing. Statement {owing['statement_id']} of")
    assert "over 20 credits was due at" in note
    assert "paying what is overdue resumes it" in note
    operator = admin.with_key("operator", debtor)
    below = operator.made(f"/v1/accounts/{debtor}/p/resume")["note"]
    assert owing["statement_id"] in below
    admin.made(f"/v1/accounts/{debtor}/p/suspend")
    admin.made("/v1/accounts", {"path": f"{debtor}/p/ann"})
    project = admin.with_key("operator", f"{debtor}/p")
    hidden = project.made(f"/v1/accounts/{debtor}/p/ann/resume")["note"]
    assert hidden == f"{debtor}/p/ann still admits nothing: an account above it is paused."
    pay = {"amount": "20", "payment_reference": f"wire {debtor}"}
    admin.made(f"/v1/statements/{owing['statement_id']}:pay", pay)
    assert admin.made(f"/v1/accounts/{debtor}/resume")["note"] is None


def test_a_statement_closes_when_the_documentation_says(
    admin: Caller, debtor: str, gpu_type: str
) -> None:
    """A minute after its month, and soon then; it is due so many days after it was closed."""
    spend(admin, debtor, gpu_type, 2_000)
    now = datetime.fromisoformat(admin.instant())
    first = (now.replace(day=1) + timedelta(days=32)).replace(day=1)
    month = first.replace(hour=0, minute=0, second=0, microsecond=0)
    admin.advance(int((month - now).total_seconds()) + 62)
    [statement] = until(lambda: statements_of(admin, debtor))
    ends, closed, due = (
        datetime.fromisoformat(statement[name]) for name in ("ends_at", "closed_at", "due_at")
    )
    assert ends == month
    assert closed - ends >= timedelta(seconds=60)
    assert due - closed == timedelta(days=DUE_DAYS)


def test_a_paused_account_is_told_which_statement_it_is(
    admin: Caller, debtor: str, gpu_type: str, owing: dict[str, Any]
) -> None:
    """Id, amount and date; again the same after it was paid, and only for who sees the account."""
    admin.advance(DUE_S)
    until(lambda: is_overdue(admin, debtor))
    job = {"account": f"{debtor}/p", "job_id": "j", "gpu_type": gpu_type, "payer": debtor}
    answer = admin.post("/v1/reservations", job, key=f"told-{debtor}")
    told = answer.json()
    assert told["numbers"] == {
        "account": debtor,
        "statement_id": owing["statement_id"],
        "amount": "20",
        "due_at": owing["due_at"],
    }
    named = f"Statement {owing['statement_id']} of {debtor} over 20 credits was due at "
    assert told["detail"].startswith(named)
    batch = admin.made("/v1/reservations:batch", {"items": [job, job]})
    assert {item["problem"]["detail"] for item in batch["results"]} == {told["detail"]}
    member = admin.with_key("member", f"{debtor}/p")
    kept = member.post("/v1/reservations", job).json()
    assert (kept["reason"], kept["numbers"]) == ("account_delinquent", {"account": ABOVE})
    assert kept["detail"].startswith(f"A statement of {ABOVE} is unpaid past its due date")
    pay = {"amount": "20", "payment_reference": f"wire {debtor}"}
    admin.made(f"/v1/statements/{owing['statement_id']}:pay", pay)
    again = admin.post("/v1/reservations", job, key=f"told-{debtor}")
    assert again.headers["idempotency-replayed"] == "true"
    assert {**again.json(), "request_id": ""} == {**told, "request_id": ""}


def test_statements_of_others_do_not_exist(
    admin: Caller, org: str, debtor: str, owing: dict[str, Any]
) -> None:
    """A stranger and a project below get 404; the org's own staff see it and cannot confirm."""
    where = f"/v1/statements/{owing['statement_id']}"
    for scope in (org, f"{debtor}/p"):
        stranger = admin.with_key("admin", scope)
        assert problem(stranger.get(where)) == (404, "statement_unknown")
        assert stranger.read("/v1/statements")["statements"] == []
    own = admin.with_key("member", debtor)
    assert own.read(where)["statement_id"] == owing["statement_id"]
    staff = admin.with_key("admin", debtor)
    pay = {"amount": "20", "payment_reference": "r"}
    assert problem(staff.post(f"{where}:pay", pay)) == (403, "forbidden")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"amount": "0", "payment_reference": "r"},
        {"amount": "-5", "payment_reference": "r"},
        {"amount": "5", "payment_reference": ""},
        {"amount": "5", "payment_reference": "r", "statement": "x"},
        {"amount": True, "payment_reference": "r"},
    ],
)
def test_a_payment_that_is_none_is_refused(
    admin: Caller, owing: dict[str, Any], body: dict[str, Any]
) -> None:
    """Hostile payments are told to be wrong, and nothing is paid."""
    where = f"/v1/statements/{owing['statement_id']}"
    assert problem(admin.post(f"{where}:pay", body)) == (422, "invalid_request")
    assert admin.read(where)["paid"] == "0"
    for unknown in ("stm_zz_zz", "stm_1_zzzzzzzzzzzz", "none"):
        answer = admin.get(f"/v1/statements/{unknown}")
        assert problem(answer) == (404, "statement_unknown")


def test_unusual_spending_is_told_and_suspends_where_that_is_set(
    admin: Caller, org: str, gpu_type: str, database_of_server: str
) -> None:
    """Hours of small sums, then a large one: a row that explains itself, and a suspension."""
    account = f"{org}/vision"
    admin.made("/v1/credits/issue", {"account": account, "amount": "1000"})
    terms = {"account": account, "ratio_percent": 300, "floor": "1", "auto_suspend": True}
    boss = admin.with_key("operator", org)
    answer = boss.call("PUT", "/v1/anomaly-terms", terms)
    assert answer.status_code == 200, answer.text
    assert boss.read("/v1/anomaly-terms", params={"account": account}) == answer.json()
    marks = "/v1/anomalies"
    admin.advance(3_600)
    seen = (
        "SELECT count(*) FROM spend_marks m JOIN accounts a ON a.org_id = m.org_id"
        " AND a.account_id = m.account_id WHERE a.path = $1"
    )
    until(lambda: sql(database_of_server, seen, account))  # its history begins
    admin.advance(8 * 3_600)
    assert boss.read(marks)["anomalies"] == []
    spend(admin, account, gpu_type, 1_000)
    admin.advance(3_600)
    [row] = until(lambda: boss.read(marks)["anomalies"])
    assert (row["account"], row["observed"], row["threshold"]) == (account, "10", "1")
    assert row["sentence"].startswith("10 credits in this hour are above the threshold of 1")
    until(lambda: boss.read(marks)["anomalies"][0]["action"] == "suspended")
    assert admin.read(f"/v1/accounts/{account}")["status"] == "suspended"
    assert admin.with_key("admin", f"{org}/vision/alice").read(marks)["anomalies"] == []


def test_terms_are_set_from_above_and_within_bounds(admin: Caller, org: str) -> None:
    """An account's own key cannot loosen them; strangers see nothing; odd terms are refused."""
    account = f"{org}/vision"
    body = {"account": account, "ratio_percent": 500}
    own = admin.with_key("operator", account)
    assert problem(own.call("PUT", "/v1/anomaly-terms", body)) == (403, "forbidden")
    admin.made("/v1/accounts", {"path": f"{org}x"})
    stranger = admin.with_key("admin", f"{org}x")
    assert problem(stranger.call("PUT", "/v1/anomaly-terms", body)) == (404, "account_unknown")
    hidden = stranger.get("/v1/anomaly-terms", params={"account": account})
    assert problem(hidden) == (404, "account_unknown")
    for odd in ({"ratio_percent": 100}, {"floor": "-1"}, {"ratio_percent": "many"}):
        answer = admin.call("PUT", "/v1/anomaly-terms", {"account": account, **odd})
        assert problem(answer) == (422, "invalid_request")
    nobody = {"account": f"{account}/nobody"}
    assert problem(admin.call("PUT", "/v1/anomaly-terms", nobody)) == (404, "account_unknown")
    usual = admin.read("/v1/anomaly-terms", params={"account": account})
    assert (usual["ratio_percent"], usual["floor"], usual["auto_suspend"]) == (400, "100", False)


def test_a_prepaid_job_shuts_down_cleanly_on_its_overdraft(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """Out of credits it drains, ends its checkpoint on the house, and that is collected later."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "1"})
    body = {"account": org, "job_id": "j", "gpu_type": gpu_type, "window_seconds": 60}
    body |= {"exhaustion": "finish", "grace_seconds": 20, "overdraft": "0.2"}
    assert problem(admin.post("/v1/reservations", body)) == (422, "overdraft_too_large")
    terms = admin.call("PATCH", f"/v1/accounts/{org}", {"overdraft_limit": "0.5"})
    assert terms.json()["overdraft_limit"] == "0.5"
    lease = admin.made("/v1/reservations", body)["reservation_id"]
    beat = {"seq": 1, "used_ms": 50_000}
    admin.advance(50)
    answer = admin.made(f"/v1/reservations/{lease}:extend", beat)
    admin.advance(50)
    answer = admin.made(f"/v1/reservations/{lease}:extend", {"seq": 2, "used_ms": 100_000})
    assert answer["decision"] == "drain"
    assert 0 < answer["expires_in_ms"] <= 20_000
    admin.advance(15)
    done = admin.made(f"/v1/reservations/{lease}:settle", {"seq": 3, "used_ms": 115_000})
    assert done["settled"] == "1.15"
    balance = admin.read(f"/v1/accounts/{org}/balance")
    assert (balance["available"], balance["overrun"], balance["spent"]) == ("0", "0.15", "1.15")
    admin.made("/v1/credits/issue", {"account": org, "amount": "1"})
    balance = admin.read(f"/v1/accounts/{org}/balance")
    assert (balance["available"], balance["overrun"]) == ("0.85", "0")
