"""Limits at the command line: set, shown, ended, explained, and refused with what is wrong."""

from __future__ import annotations

import json

import pytest

from gpucredits.client import Client
from support.terminal import Terminal


def test_quotas(terminal: Terminal, client: Client, org: str) -> None:
    """Quotas are set, listed with what is left of them, and ended."""
    client.issue(org, "1000")
    client.reserve(org, job_id="j", gpu_type="h100", gpu_count=3)
    text = terminal.text("quota", "set", org, "concurrent-gpus", "8", "--type", "h100")
    assert "limits   concurrent GPUs on h100\nto       8 GPUs\n" in text
    daily = terminal.json(
        "quota", "set", org, "credits-per-window", "500.5", "--per", "day", "--zone", "Asia/Tokyo"
    )
    assert (daily["limit"], daily["calendar"], daily["zone"]) == ("500.5", "day", "Asia/Tokyo")
    hours = terminal.json("quota", "set", org, "credits-per-window", "9", "--hours", "5")
    assert hours["rolling_hours"] == 5
    listed = terminal.text("quota", "list", org)
    assert listed.splitlines()[0].split()[:4] == ["QUOTA", "LIMITS", "CAP", "USED"]
    assert "credits per day (Asia/Tokyo)" in listed
    assert "credits in 5 hours" in listed
    first = terminal.json("quota", "list", org)["quotas"][0]
    assert (first["used"], first["left"]) == ("3", "5")
    assert "ended" in terminal.text("quota", "end", org, daily["quota_id"])
    assert len(terminal.json("quota", "list", org)["quotas"]) == 2
    assert terminal.run("quota", "end", org, daily["quota_id"]).exit_code == 1


def test_rate_limits_and_the_overview(terminal: Terminal, client: Client, org: str) -> None:
    """A rate limit is set and ended, and every limit stands in one table."""
    assert terminal.text("limit", "show", org) == "No limits.\n"
    text = terminal.text("limit", "set", org, "--capacity", "50", "--refill", "1000")
    assert "refill      1000 credits/hour" in text
    client.set_quota(org, "concurrent_jobs", 7)
    client.set_budget(org, "30", calendar="week")
    shown = terminal.text("limit", "show", org)
    assert [line.split()[0] for line in shown.splitlines()] == ["SCOPE", "org", "org", "org"]
    for name in ("budget default", "concurrent jobs", "rate limit"):
        assert name in shown
    assert len(terminal.json("limit", "show", org)["limits"]) == 3
    assert "ended" in terminal.text("limit", "end", org)
    assert terminal.run("limit", "end", org).exit_code == 1


def test_the_overview_has_limits_on_requests(terminal: Terminal, client: Client, org: str) -> None:
    """The org's, and that of the key which the command uses."""
    client.set_org_request_limit(org, refill_per_second=100)
    made = client.create_key("read-only")
    client.set_key_limit(made.key_id, refill_per_second=50)
    text = terminal.text("limit", "show", org, "--key", made.secret or "")
    header, of_org, of_key = text.splitlines()
    assert header.split() == ["SCOPE", "ACCOUNT", "LIMIT", "CAP", "USED", "LEFT", "UNIT", "RESETS"]
    shown = ["org", org, "requests", "of", "all", "keys", "400", "0", "400", "requests"]
    assert of_org.split() == shown
    assert of_key.startswith("key    the whole system")
    assert f"requests of {made.key_id}" in of_key


def test_budgets(terminal: Terminal, client: Client, org: str) -> None:
    """Budgets are set with all their terms, listed with their periods, and ended."""
    made = terminal.text(
        "budget", "set", org, "100", "--name", "monthly", "--per", "month", "--zone",
        "Europe/Berlin", "--rollover", "capped", "--rollover-cap", "20", "--rollover-for", "1w",
        "--priority", "5", "--warn", "80", "--warn", "95",
    )  # fmt: skip
    assert "allowance    100 per month (Europe/Berlin)" in made
    assert "rollover     up to 20, for 7d" in made
    assert "warns at     80 % 95 %" in made
    once = terminal.json("budget", "set", org, "5", "--ends", "1000d", "--starts", "999d")
    assert (once["name"], once["calendar"]) == ("default", None)
    listed = terminal.text("budget", "list", org)
    assert "5 once" in listed
    client.advance_clock(32 * 86_400)
    periods = terminal.text("budget", "periods", org, "--name", "monthly")
    assert len(periods.splitlines()) == 3
    assert len(terminal.json("budget", "periods", org, "--name", "monthly", "--limit", "1", "--all")
               ["periods"]) == 2  # fmt: skip
    assert "next period  none" in terminal.text("budget", "end", org, "--name", "monthly")
    assert terminal.run("budget", "end", org, "--name", "monthly").exit_code == 1


def test_boosts(terminal: Terminal, client: Client, org: str) -> None:
    """A boost names its limit by id or by what it is, and is listed until it lapses."""
    quota = client.set_quota(org, "concurrent_gpus", 4, gpu_type="h100")
    client.set_rate_limit(org, capacity="5", refill_per_hour="5")
    assert terminal.text("boost", "list", org) == "No boosts.\n"
    by_id = terminal.json("boost", "add", org, "2", "--target", quota.quota_id, "--until", "1000d")
    assert by_id["target_id"] == quota.quota_id
    named = terminal.text(
        "boost", "add", org, "3", "--quota", "concurrent-gpus", "--type", "h100",
        "--until", "1000d", "--note", "deadline",
    )  # fmt: skip
    assert "by       3 GPUs" in named
    faster = terminal.text(
        "boost", "add", org, "0", "--rate-limit", "--refill", "7", "--until", "1000d"
    )
    assert "0 credits, 7 credits/hour" in faster
    assert len(terminal.json("boost", "list", org)["boosts"]) == 3
    assert "deadline" in terminal.text("boost", "list", org)
    assert terminal.json("quota", "list", org)["quotas"][0]["cap"] == "9"
    assert by_id["boost_id"] in terminal.text("boost", "end", org, by_id["boost_id"])
    assert len(terminal.json("boost", "list", org)["boosts"]) == 2
    assert terminal.json("quota", "list", org)["quotas"][0]["cap"] == "7"


def test_explain_says_yes_and_no(terminal: Terminal, client: Client, org: str) -> None:
    """The verdict, price, payer and every gate; exit 0 for yes and 4 for no, with --json too."""
    client.issue(org, "1000")
    client.create_account(f"{org}/lab")
    client.set_quota(org, "concurrent_gpus", 4)
    client.set_rate_limit(f"{org}/lab", capacity="500", refill_per_hour="5")
    asked = ["explain", "--account", f"{org}/lab", "--type", "h100", "--gpus"]
    yes = terminal.text(*asked, "2")
    assert yes.startswith(f"Admitted: {org}/lab would be admitted: 240 credits of {org}")
    assert "price      3600 credits/GPU-hour" in yes
    table = [line.split() for line in yes.splitlines()[-4:]]
    assert [row[0] for row in table] == ["GATE", "budget", "quota", "rate"]
    no = terminal.run(*asked, "8", "--window", "10s")
    assert no.exit_code == 4
    assert no.stdout.startswith(f"Not admitted (quota_exceeded): {org} has taken 0 of 4 GPUs,")
    assert "paid from" not in no.stdout
    scripted = terminal.run(*asked, "8", "--json")
    assert scripted.exit_code == 4
    assert json.loads(scripted.stdout)["reason"] == "quota_exceeded"
    assert terminal.run(*asked[:2], "nobody", *asked[3:], "8").exit_code == 1
    nowhere = terminal.run(*asked, "1", "--region", "moon")
    assert nowhere.exit_code == 4
    assert "price_unknown" in nowhere.stdout


def test_a_refusal_shows_every_gate(terminal: Terminal, client: Client, org: str) -> None:
    """Whoever is refused sees all gates at once, and which of them is closed."""
    client.issue(org, "1000")
    client.set_quota(org, "concurrent_gpus", 1)
    result = terminal.run("reserve", org, "--job", "j", "--type", "h100", "--gpus", "2")
    assert result.exit_code == 1
    assert "Refused (quota_exceeded)" in result.stderr
    rows = [line.split() for line in result.stderr.splitlines()[1:4]]
    assert [row[0] for row in rows] == ["GATE", "budget", "quota"]
    assert rows[2][-2:] == ["no", "never"]


def test_too_fast_is_not_refused_but_told_to_wait(
    terminal: Terminal, client: Client, org: str
) -> None:
    """A 429 exits with 3 when waiting would take too long; one that never clears with 1."""
    client.issue(org, "1000")
    client.set_rate_limit(org, capacity="150", refill_per_hour="60")
    client.reserve(org, job_id="j", gpu_type="h100")
    slow = terminal.run("reserve", org, "--job", "k", "--type", "h100", "--timeout", "60")
    assert slow.exit_code == 3
    assert "spending too fast" in slow.stderr
    assert "rate limit" in slow.stderr
    never = terminal.run("reserve", org, "--job", "k", "--type", "h100", "--gpus", "2")
    assert never.exit_code == 1
    assert "It never clears" in never.stderr


def test_what_was_agreed_is_shown(terminal: Terminal, client: Client, org: str) -> None:
    """The terms of exhaustion are options of reserve, and heartbeats show what is left."""
    client.issue(org, "150")
    terminal.text("account", "set", org, "--overdraft-limit", "9")
    assert "overdraft  9" in terminal.text("account", "show", org)
    text = terminal.text(
        "reserve", org, "--job", "j", "--type", "h100", "--on-exhaustion", "drain",
        "--grace", "30s", "--overdraft", "5",
    )  # fmt: skip
    assert "on exhaustion  drain, signal 30s before, overdraft 5" in text
    lease = text.split()[1]
    client.advance_clock(100)
    beat = terminal.text("heartbeat", lease, "--used", "100s")
    assert "decision       drain" in beat
    assert "signal it in" in beat


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["quota", "set", "acme", "gpus", "1"], "concurrent-gpus"),
        (["quota", "set", "acme", "concurrent-gpus", "many"], "12.5"),
        (["quota", "set", "acme", "concurrent-jobs", "1.5"], "whole number"),
        (["quota", "set", "acme", "credits-per-window", "1"], "--per or --hours"),
        (["quota", "set", "acme", "concurrent-jobs", "1", "--per", "day"], "credits-per-window"),
        (
            [
                "quota",
                "set",
                "acme",
                "credits-per-window",
                "1",
                "--per",
                "day",
                "--zone",
                "my zone",
            ],
            "Europe/Berlin",
        ),
        (["quota", "set", "acme", "credits-per-window", "1", "--hours", "0"], "1<=x<=744"),
        (["limit", "set", "acme"], "--refill"),
        (["limit", "set", "acme", "--capacity", "0", "--refill", "1"], "more than 0"),
        (
            ["budget", "set", "acme", "5", "--per", "day", "--name", "My Budget"],
            "such as monthly",
        ),
        (["budget", "set", "acme", "5", "--replace"], "give --per or --ends"),
        (["budget", "set", "acme", "--per", "day", "--replace"], "give ALLOWANCE"),
        (
            ["budget", "set", "acme", "5", "--ends", "2d", "--rollover", "all", "--replace"],
            "give --rollover-for",
        ),
        (
            ["budget", "set", "acme", "5", "--per", "day", "--rollover", "capped"],
            "--rollover-cap goes with --rollover capped",
        ),
        (
            ["budget", "set", "acme", "5", "--per", "day", "--rollover-for", "2d", "--replace"],
            "--rollover-for goes with --rollover all or capped",
        ),
        (["budget", "set", "acme", "5", "--warn", "200"], "1<=x<=100"),
        (["boost", "add", "acme", "5", "--until", "2d"], "--target, --quota and --rate-limit"),
        (["boost", "add", "acme", "0", "--until", "2d", "--rate-limit"], "more than 0"),
        (["explain", "--account", "acme"], "--type"),
        (["explain", "--account", "Acme", "--type", "h100"], "acme/vision/alice"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_input_is_explained_before_anything_is_sent(
    terminal: Terminal, words: list[str], said: str
) -> None:
    """What was wrong, and what would be right."""
    result = terminal.run(*words)
    assert result.exit_code == 2
    assert said in result.stderr


def test_an_unknown_zone_is_the_server_s_to_say(terminal: Terminal, org: str) -> None:
    """Which zones there are is known where the periods are kept."""
    words = ["quota", "set", org, "credits-per-window", "1", "--per", "day", "--zone"]
    result = terminal.run(*words, "Mars/Olympus")
    assert result.exit_code == 1
    assert "must be an IANA time zone such as Europe/Berlin" in result.stderr


def test_one_is_spoken_of_as_one(terminal: Terminal, client: Client, org: str, name: str) -> None:
    """One GPU, one job, one credit and one hour are no plurals."""
    made = terminal.text("quota", "set", org, "concurrent-gpus", "1")
    quota_id = made.split()[1]
    assert "to       1 GPU\n" in made
    assert "to       1 job\n" in terminal.text("quota", "set", org, "concurrent-jobs", "1")
    hour = terminal.text("quota", "set", org, "credits-per-window", "1", "--hours", "1")
    assert "limits   credits in 1 hour\nto       1 credit\n" in hour
    limited = terminal.text("limit", "set", org, "--capacity", "1", "--refill", "1")
    assert "at once     1 credit\nrefill      1 credit/hour\n" in limited
    boosted = terminal.text(
        "boost", "add", org, "1", "--quota", "concurrent-gpus", "--until", "9999d"
    )
    assert "by       1 GPU\n" in boosted
    asked = ("request", "ask", org, "quota", "1", "--quota", quota_id, "--ends", "9999d")
    assert f"1 GPU more on {quota_id} until" in terminal.text(*asked, "--reason", "r")
    credit = terminal.text("request", "ask", org, "credits", "1", "--reason", "r")
    assert "asks for    1 credit\n" in credit
    assert "capacity                 1 GPU\n" in terminal.text(
        "pool", "set", name, "--capacity", "1"
    )
    assert "0 of 1 GPU held" in terminal.text("share", "show", name)
    client.set_price(name, "1")
    client.issue(org, "1")
    explained = terminal.text("explain", org, "--type", name, "--max", "0.01")
    assert "1 credit/GPU-hour (" in explained
    assert "rate       1 credit/hour" in explained


def test_idle_guards(terminal: Terminal, org: str) -> None:
    """A guard is off, set with its terms, inherited, and ended."""
    assert "are left alone" in terminal.text("idle-guard", "show", org)
    words = ("--window", "30m", "--below", "10", "--memory", "20", "--warning", "2m")
    text = terminal.text("idle-guard", "set", org, *words)
    assert "below 10% over 30m, or without a process" in text
    assert "20% counts as use" in text
    terminal.text("account", "create", f"{org}/vision")
    below = terminal.json("idle-guard", "show", f"{org}/vision")
    assert (below["source"], below["warning_seconds"], below["grace_seconds"]) == (org, 120, 60)
    assert "are left alone" in terminal.text("idle-guard", "end", org)
