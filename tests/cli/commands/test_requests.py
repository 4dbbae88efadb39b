"""Commands about requests, statements and unusual spending."""

from __future__ import annotations

import pytest

from gpucredits.client import Client
from support.terminal import Terminal
from support.waiting import until


@pytest.fixture
def boss(client: Client) -> dict[str, str | None]:
    """The environment of another operator: nobody decides about what they asked themselves."""
    return {"GPUCREDITS_API_KEY": client.create_key("operator", name="boss").secret or ""}


def test_requests(
    terminal: Terminal, client: Client, org: str, boss: dict[str, str | None]
) -> None:
    """Asked for, listed, shown, approved with another amount, declined and canceled."""
    why = ("--reason", "the paper is due")
    first = terminal.json("request", "ask", org, "credits", "50", *why)
    assert (first["state"], first["reason"]) == ("open", "the paper is due")
    assert "50 credits until" in terminal.text(
        "request", "ask", org, "credits", "50", *why, "--ends", "1000d"
    )
    shown = terminal.text("request", "show", first["request_id"])
    assert "asks for    50 credits" in shown
    assert "open until" in shown
    own = terminal.run("request", "approve", first["request_id"])
    assert own.exit_code == 1
    assert "forbidden" in own.stderr
    approved = terminal.run(
        "request", "approve", first["request_id"], "--amount", "40", "--note", "40 must do", **boss
    )
    assert "approved    40 credits" in approved.stdout
    assert client.balance(org).available == "40"
    listed = terminal.text("request", "list", org)
    assert listed.splitlines()[0].split()[:3] == ["REQUEST", "ACCOUNT", "ASKS"]
    assert first["request_id"] in terminal.text("request", "list", org, "--state", "approved")
    [second] = terminal.json("request", "list", org, "--state", "open")["requests"]
    declined = terminal.run(
        "request", "decline", second["request_id"], "--note", "enough is enough", **boss
    )
    assert "enough is enough" in declined.stdout
    third = terminal.json("request", "ask", org, "budget", "100", *why, "--budget", "monthly")
    assert "canceled" in terminal.text("request", "cancel", third["request_id"])
    assert terminal.text("request", "list", org, "--kind", "quota").strip() == "No requests."


def test_requests_for_boosts(
    terminal: Terminal, client: Client, org: str, boss: dict[str, str | None]
) -> None:
    """A quota and a rate limit are asked about by what they are."""
    quota = client.set_quota(org, "concurrent_gpus", 4)
    client.set_rate_limit(org, capacity="10", refill_per_hour="5")
    why = ("--reason", "soon", "--ends", "1000d")
    asked = terminal.text("request", "ask", org, "quota", "2", "--quota", quota.quota_id, *why)
    assert f"2 GPUs more on {quota.quota_id} until" in asked
    asked = terminal.text("request", "ask", org, "rate_limit", "5", "--refill", "3", *why)
    assert "5 credits and 3 an hour more on the rate limit until" in asked
    for row in terminal.json("request", "list", org)["requests"]:
        done = terminal.run("request", "approve", row["request_id"], **boss)
        assert done.exit_code == 0, done.output
    assert "bst_" in terminal.text("request", "show", row["request_id"])


def test_statements(terminal: Terminal, client: Client, name: str) -> None:
    """The month of an account that pays later is listed, shown and paid."""
    client.create_account(name, model="postpaid", credit_limit="1000")
    client.set_price("h100", "3600", account=name)
    assert terminal.text("statement", "list", name).strip() == "No statements."
    lease = client.reserve(name, job_id="j", gpu_type="h100", window_seconds=60)
    client.advance_clock(2)  # nobody uses time that has not passed
    client.settle(lease.reservation_id, seq=1, used_ms=1_000)
    client.advance_clock(32 * 86_400)

    def owing() -> str:
        rows = terminal.json("statement", "list", name)["statements"]
        return next((str(row["statement_id"]) for row in rows if row["amount"] == "1"), "")

    number = until(owing)
    assert "outstanding  1" in terminal.text("statement", "show", number)
    paid = terminal.text("statement", "pay", number, "1", "--reference", "wire-7")
    assert "state        paid" in paid
    assert "Nothing is overdue." in paid
    assert "paid" in terminal.text("statement", "list", name)


def test_unusual_spending(terminal: Terminal, org: str) -> None:
    """The terms are shown and set; nothing unusual is said as such."""
    assert terminal.text("anomaly", "list", org).strip() == "Nothing unusual."
    assert "400% of the median hour, and 100" in terminal.text("anomaly", "terms", org)
    shown = terminal.text("anomaly", "set", org, "--ratio", "200", "--floor", "5", "--auto-suspend")
    assert "200% of the median hour, and 5" in shown
    assert "suspend" in shown
    assert terminal.json("anomaly", "terms", org)["auto_suspend"] is True
