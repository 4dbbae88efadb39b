"""Commands that set something: what is not given stays, and --replace replaces."""

from __future__ import annotations

from gpucredits.client import Client
from support.terminal import Terminal


def test_a_budget_keeps_what_is_not_given(terminal: Terminal, org: str) -> None:
    """A new allowance leaves the rest; --clear takes one term back, --replace all."""
    words = ["budget", "set", org]
    made = terminal.json(
        *words, "100", "--per", "week", "--zone", "Asia/Tokyo", "--rollover", "all", "--warn", "80",
        "--priority", "7",
    )  # fmt: skip
    assert terminal.json(*words, "200") == {**made, "allowance": "200"}
    assert terminal.json(*words, "--priority", "9") == {**made, "allowance": "200", "priority": 9}
    cleared = terminal.json(*words, "--clear", "warn", "--clear", "rollover")
    assert (cleared["warn_percent"], cleared["rollover"], cleared["zone"]) == (
        [],
        "none",
        "Asia/Tokyo",
    )
    whole = terminal.json(*words, "5", "--per", "day", "--replace")
    assert (whole["allowance"], whole["zone"], whole["priority"]) == ("5", "UTC", 100)


def test_a_pool_keeps_what_is_not_given(terminal: Terminal, name: str) -> None:
    """A new capacity leaves the policy; --clear takes one setting back, --replace all."""
    words = ["pool", "set", name]
    made = terminal.json(
        *words, "--capacity", "8", "--cpu", "64", "--no-borrowing", "--grace", "5s",
        "--min-runtime", "1m",
    )  # fmt: skip
    grown = terminal.json(*words, "--capacity", "16")
    assert (grown["policy"], grown["resources"]) == (made["policy"], made["resources"])
    assert grown["capacity"] == 16
    cleared = terminal.json(*words, "--clear", "borrowing", "--clear", "cpu")
    assert (cleared["policy"]["borrowing"], cleared["resources"]) == (True, {})
    assert cleared["policy"]["grace_seconds"] == 5
    assert terminal.json(*words, "--replace")["capacity"] is None


def test_an_account_keeps_what_is_not_given(terminal: Terminal, org: str) -> None:
    """A label leaves the others; --unlabel removes one, --clear labels all."""
    words = ["account", "set", org]
    terminal.json(*words, "--label", "team=vision", "--label", "cost=7")
    changed = terminal.json(*words, "--label", "cost=8", "--label", "site=b", "--unlabel", "team")
    assert changed["metadata"] == {"cost": "8", "site": "b"}
    terminal.json(*words, "--model", "postpaid", "--credit-limit", "9")
    assert terminal.json(*words, "--clear", "labels")["metadata"] == {}
    assert terminal.json(*words, "--overdraft-limit", "3")["credit_limit"] == "9"
    assert terminal.json(*words, "--replace")["model"] == "prepaid"


def test_limits_and_terms_keep_what_is_not_given(
    terminal: Terminal, client: Client, org: str
) -> None:
    """One half of a rate limit, and one term of unusual spending."""
    client.set_rate_limit(org, capacity="5", refill_per_hour="6")
    assert terminal.json("limit", "set", org, "--capacity", "7")["refill_per_hour"] == "6"
    terms = ["anomaly", "set", org]
    terminal.json(*terms, "--auto-suspend", "--ratio", "300")
    assert terminal.json(*terms, "--floor", "7")["auto_suspend"] is True
    assert terminal.json(*terms, "--no-auto-suspend")["ratio_percent"] == 300
    assert terminal.json(*terms, "--clear", "ratio")["ratio_percent"] == 400
    assert terminal.json(*terms, "--floor", "9", "--replace")["auto_suspend"] is False


def test_what_contradicts_itself_is_not_sent(terminal: Terminal) -> None:
    """To give and clear the same thing, or to clear and replace."""
    words = ["pool", "set", "h100", "--clear", "capacity"]
    assert terminal.run(*words, "--replace").exit_code == 2
    given = terminal.run(*words, "--capacity", "5")
    assert (given.exit_code, "both given and cleared" in given.stderr) == (2, True)
    unknown = terminal.run("pool", "set", "h100", "--clear", "everything")
    assert (unknown.exit_code, "capacity" in unknown.stderr) == (2, True)
