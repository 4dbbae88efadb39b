"""Every command runs against a real server, for people and for scripts."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from gpucredits.cli.server.temporary_server import TemporaryServer
from gpucredits.client import Client
from support.scenes.orgs import new_org
from support.terminal import Terminal

COLOUR = re.compile(r"\x1b\[(?:\d+;)*[349]\d(?:;\d+)*m")


def test_accounts(terminal: Terminal, org: str, name: str) -> None:
    """Accounts are opened, listed, shown as a tree, suspended and resumed."""
    made = terminal.json(
        "account", "create", f"{org}/{name}", "--model", "postpaid", "--credit-limit", "50",
        "--label", "team=vision",
    )  # fmt: skip
    assert made["path"] == f"{org}/{name}"
    assert made["metadata"] == {"team": "vision"}
    changed = terminal.json("account", "set", f"{org}/{name}", "--credit-limit", "60")
    assert (changed["credit_limit"], changed["metadata"]) == ("60", {"team": "vision"})
    shown = terminal.text("account", "show", f"{org}/{name}")
    assert "credit limit  60" in shown
    assert "team=vision" in shown
    listed = terminal.json("account", "list", org)
    assert [row["path"] for row in listed["accounts"]] == [org, f"{org}/{name}"]
    assert name in terminal.text("account", "list", org, "--model", "postpaid")
    tree = terminal.text("account", "tree", org)
    assert tree.splitlines()[1].startswith(f"  {org}/{name}  available 0")
    assert terminal.json("account", "tree", org)["root"]["children"][0]["path"] == f"{org}/{name}"
    assert terminal.json("account", "suspend", org)["status"] == "suspended"
    assert "suspended" in terminal.text("account", "list", org, "--status", "suspended")
    assert "status   active" in terminal.text("account", "resume", org)


def test_grants_and_balances(terminal: Terminal, org: str) -> None:
    """A grant is issued with a human expiry, listed, and counted in the balance."""
    grant = terminal.json("grant", "issue", org, "1000.5", "--expires", "30d", "--priority", "5")
    assert (grant["amount"], grant["priority"]) == ("1000.5", 5)
    assert "expires    never" in terminal.text("grant", "issue", org, "1", "--source", "promo")
    listed = terminal.text("grant", "list", org, "--open")
    assert listed.splitlines()[0].split()[:3] == ["GRANT", "ACCOUNT", "REMAINING"]
    assert grant["grant_id"] in listed
    assert terminal.json("grant", "show", grant["grant_id"]) == grant
    assert "priority   5\n" in terminal.text("grant", "show", grant["grant_id"])
    assert terminal.run("grant", "show", f"{grant['grant_id']}zz").exit_code == 1
    assert len(terminal.json("grant", "list", org, "--tree")["grants"]) == 2
    assert "available  1001.5" in terminal.text("balance", org)
    balance = terminal.json("balance", org, "--tree")
    assert (balance["available"], balance["tree"]) == ("1001.5", True)
    assert terminal.json("balance", org, "--at", "2026-01-02T03:04:05Z")["available"] == "0"
    assert "and all below" in terminal.text("balance", org, "--tree")


def test_known_at(terminal: Terminal, client: Client, org: str) -> None:
    """A balance can be asked for as it was known at an instant."""
    client.issue(org, "10")
    now = client.advance_clock(60).now
    client.issue(org, "5")
    assert terminal.json("balance", org, "--known-at", now)["available"] == "10"


def test_what_is_relative_counts_from_the_servers_clock(
    terminal: Terminal, client: Client, org: str
) -> None:
    """A server that is months ahead of this machine gives the days that were asked for."""
    client.advance_clock(90 * 86_400)
    before = datetime.fromisoformat(client.clock().now)
    assert before - datetime.now(UTC) > timedelta(days=89)
    made = terminal.json("grant", "issue", org, "1", "--starts", "now", "--expires", "7d")
    week = datetime.fromisoformat(made["expires_at"]) - timedelta(days=7)
    assert before <= week <= datetime.fromisoformat(client.clock().now)
    for hour in ("1h", "1h ago"):
        lately = terminal.json("audit", org, "--since", hour)["audit"]
        assert [act["action"] for act in lately] == ["credits.issue"]
        earlier = terminal.json("audit", org, "--until", hour)["audit"]
        assert [act["action"] for act in earlier] == ["price.set", "account.create"]
    assert terminal.json("balance", org, "--at", "1h")["available"] == "0"
    assert terminal.json("balance", org, "--known-at", "1h")["available"] == "0"
    assert terminal.json("ledger", org, "--until", "1h")["entries"] == []
    assert len(terminal.json("ledger", org, "--since", "7d")["entries"]) == 1
    beyond = terminal.run("grant", "issue", org, "1", "--expires", "999999w")
    assert (beyond.exit_code, "beyond all calendars" in beyond.output) == (2, True)


def test_an_agents_key_may_ask_for_the_time(
    client: Client, org: str, server: TemporaryServer
) -> None:
    """Whoever has a key may know what time it is."""
    agent = client.create_key("agent", scope=org)
    with Client(server.url, agent.secret or "") as asker:
        assert asker.clock().now >= client.account(org).created_at


def test_topups(terminal: Terminal, org: str) -> None:
    """Payments are recorded, confirmed, failed and reversed."""
    first = terminal.json("topup", "create", org, "40", "--reference", "inv-1", "--expires", "90d")
    assert first["status"] == "pending"
    assert "confirmed" in terminal.text("topup", "confirm", first["topup_id"])
    assert terminal.json("topup", "reverse", first["topup_id"])["status"] == "reversed"
    second = terminal.json("topup", "create", org, "5", "--reference", "inv-2")
    assert terminal.json("topup", "fail", second["topup_id"])["status"] == "failed"
    third = terminal.json("topup", "create", org, "5", "--reference", "inv-3", "--confirmed")
    assert third["grant_id"]
    assert "inv-3" in terminal.text("topup", "list", org, "--status", "confirmed")
    assert "inv-2" in terminal.text("topup", "show", second["topup_id"])
    assert len(terminal.json("topup", "list", org)["topups"]) == 3


def test_transfers(terminal: Terminal, client: Client, org: str) -> None:
    """Credits move down and back, lot by lot."""
    client.create_account(f"{org}/lab")
    client.issue(org, "100")
    moved = terminal.json("transfer", org, f"{org}/lab", "60")
    assert (moved["from"], moved["to"], moved["amount"]) == (org, f"{org}/lab", "60")
    text = terminal.text("transfer", f"{org}/lab", org, "10", "--label", "why=claw-back")
    assert text.startswith("Moved 10 credits")
    assert terminal.json("balance", org)["available"] == "50"


def test_prices(terminal: Terminal, org: str, name: str) -> None:
    """Prices are set for everybody and for an account, and listed."""
    assert terminal.json("price", "set", name, "60")["credits_per_gpu_hour"] == "60"
    text = terminal.text("price", "set", name, "45", "--account", org, "--from", "1h")
    assert f"for           {org}" in text
    assert name in terminal.text("price", "list", "--type", name)
    assert len(terminal.json("price", "list", "--type", name, "--account", org)["prices"]) == 1


def test_a_lease_from_end_to_end(terminal: Terminal, client: Client, org: str) -> None:
    """A lease is asked for, beaten, looked at, settled and refunded; its entries are listed."""
    client.issue(org, "1000")
    lease = terminal.json(
        "reserve", org, "--job", "train", "--type", "h100", "--gpus", "2", "--node", "n1",
        "--window", "1m", "--max", "500", "--payer", org, "--label", "run=7",
    )  # fmt: skip
    lease_id = lease["reservation_id"]
    assert (lease["held"], lease["window_seconds"]) == ("120", 60)
    client.advance_clock(30)
    beat = terminal.json("heartbeat", lease_id, "--used", "30s")
    assert (beat["decision"], beat["settled"]) == ("continue", "60")
    assert "continue" in terminal.text("heartbeat", lease_id, "--used", "30s", "--seq", "2")
    duplicate = terminal.text("heartbeat", lease_id, "--used", "30s", "--seq", "2")
    assert "duplicate" in duplicate
    assert "decision       continue" in terminal.text("reservation", "show", lease_id)
    assert lease_id in terminal.text("reservation", "list", org, "--state", "active")
    assert "settled      60" in terminal.text("settle", lease_id)
    assert terminal.json("reservation", "show", lease_id)["state"] == "settled"
    refund = terminal.json("refund", lease_id, "10", "--note", "sorry")
    assert refund["amount"] == "10"
    assert "5 credits" in terminal.text("refund", lease_id, "5")
    ledger = terminal.text("ledger", org, "--job", "train")
    assert ledger.splitlines()[0].split()[:3] == ["ENTRY", "EFFECTIVE", "TYPE"]
    entries = terminal.json("ledger", org, "--type", "settle", "--reservation", lease_id)["entries"]
    assert [entry["amount"] for entry in entries if entry["type"] == "settle"] == ["60"]


def test_a_settle_says_when_it_did_not_believe_the_report(
    terminal: Terminal, client: Client, org: str
) -> None:
    """Use that went back, use that cannot be, and the end of a lease that had lapsed are noted."""
    client.issue(org, "10000")
    went_back, beyond, lapsed, plain = (
        client.reserve(org, job_id=f"j{number}", gpu_type="h100").reservation_id
        for number in range(4)
    )
    client.advance_clock(30)
    terminal.json("heartbeat", went_back, "--used", "30s")
    assert "less than was reported" in terminal.text("settle", went_back, "--used", "20s")
    assert "more than can have passed" in terminal.text("settle", beyond, "--used", "99h")
    assert terminal.json("settle", plain, "--used", "30s")["flagged"] == ""
    client.advance_clock(600)
    assert "had lapsed" in terminal.text("settle", lapsed, "--used", "600s")
    again = terminal.json("settle", lapsed, "--used", "600s")
    assert (again["flagged"], again["settled"]) == ("lapsed", "120")


def test_a_credit_limit_is_for_who_pays_later(terminal: Terminal, org: str) -> None:
    """A prepaid account takes no credit limit, and one that becomes prepaid keeps none."""
    path = f"{org}/lab"
    assert terminal.run("account", "create", path, "--credit-limit", "5").exit_code == 2
    terminal.json("account", "create", path)
    for words in ([], ["--model", "prepaid"]):
        refused = terminal.run("account", "set", path, "--credit-limit", "5", *words)
        assert (refused.exit_code, "postpaid accounts" in refused.stderr) == (1, True)
    terminal.json("account", "set", path, "--credit-limit", "5", "--model", "postpaid")
    terminal.json("account", "set", path, "--model", "prepaid")
    later = terminal.json("account", "set", path, "--model", "postpaid")
    assert later["credit_limit"] == "0"


def test_the_decision_of_a_heartbeat_can_be_the_exit_code(
    terminal: Terminal, client: Client, org: str
) -> None:
    """Drain is 5 and stop is 6 for who asks; without the option both are 0."""
    client.issue(org, "130")
    lease = client.reserve(org, job_id="j", gpu_type="h100").reservation_id
    words = ("heartbeat", lease, "--exit-code", "--used")
    client.advance_clock(5)
    assert terminal.run(*words, "5s").exit_code == 0
    client.advance_clock(60)
    draining = terminal.run(*words, "65s")
    assert (draining.exit_code, "drain" in draining.stdout) == (5, True)
    client.advance_clock(600)
    assert terminal.run(*words, "130s").exit_code == 6
    assert terminal.run("heartbeat", lease, "--used", "130s").exit_code == 0


def test_a_full_last_page_has_no_page_after_it(terminal: Terminal, client: Client) -> None:
    """A cursor is given only where there is more."""
    org = new_org(client)
    for _ in range(3):
        client.issue(org, "1")
    for words, rows in (
        (("ledger", org), "entries"),
        (("grant", "list", org), "grants"),
        (("audit", org), "audit"),
    ):
        whole = terminal.json(*words)[rows]
        full = terminal.json(*words, "--limit", str(len(whole)))
        assert (len(full[rows]), full["next_cursor"]) == (len(whole), None)
        page = terminal.json(*words, "--limit", str(len(whole) - 1))
        rest = terminal.json(*words, "--cursor", page["next_cursor"])
        assert page[rows] + rest[rows] == whole
    assert "There is more" not in terminal.run("ledger", org, "--limit", "3").stderr


def test_prices_say_which_is_in_force(terminal: Terminal, org: str, name: str) -> None:
    """Of the versions of a price one is in force, others are to come or were replaced."""
    for words in (["60"], ["50"], ["40", "--from", "1000d"], ["30", "--account", org]):
        terminal.json("price", "set", name, *words)
    rows = terminal.json("price", "list", "--type", name)["prices"]
    assert [(row["credits_per_gpu_hour"], row["state"]) for row in rows] == [
        ("30", "in_force"),
        ("40", "future"),
        ("50", "in_force"),
        ("60", "replaced"),
    ]
    assert "in force" in terminal.text("price", "list", "--type", name)


def test_cancel(terminal: Terminal, client: Client, org: str) -> None:
    """A lease that never ran gives all of its hold back."""
    client.issue(org, "1000")
    ids = [
        client.reserve(org, job_id=f"j{number}", gpu_type="h100").reservation_id
        for number in range(2)
    ]
    assert terminal.json("cancel", ids[0])["released"] == "120"
    assert "canceled" in terminal.text("cancel", ids[1])


def test_keys(terminal: Terminal, org: str, name: str) -> None:
    """A key is made, works within its scope only, and is revoked."""
    made = terminal.json("key", "create", "read-only", "--scope", org, "--name", name)
    mine = terminal.run("balance", org, GPUCREDITS_API_KEY=made["secret"])
    assert mine.exit_code == 0
    own = terminal.run("key", "whoami", GPUCREDITS_API_KEY=made["secret"])
    assert f"role     read-only\nscope    {org}\nname     {name}\n" in own.stdout
    assert "expires  never\n" in own.stdout
    theirs = terminal.run("balance", "somebody-else", GPUCREDITS_API_KEY=made["secret"])
    assert theirs.exit_code == 1
    assert "account_unknown" in theirs.stderr
    assert name in terminal.text("key", "list", "--all")
    assert terminal.json("key", "revoke", made["key_id"])["revoked_at"]
    gone = terminal.run("balance", org, GPUCREDITS_API_KEY=made["secret"])
    assert gone.exit_code == 1
    assert "unauthenticated" in gone.stderr
    shown = terminal.run("key", "create", "agent", "--scope", org)
    assert "secret" in shown.stdout
    assert "it is not shown again" in shown.stderr
    assert terminal.run("key", "create", "agent", "--scope", org, "--json").stderr == ""


def test_request_limits(terminal: Terminal, org: str) -> None:
    """The request limit of a key and of an org is set, shown and ended."""
    key = terminal.json("key", "create", "agent", "--scope", org)["key_id"]
    assert "not limited" in terminal.text("key", "limit", key)
    set_to = terminal.json("key", "limit", key, "--per-second", "50", "--burst", "200")
    assert set_to["limit"] == {"capacity": 200, "refill_per_hour": 180_000}
    assert "50 a second, 200 at once" in terminal.text("key", "limit", key)
    assert terminal.json("key", "limit", key, "--per-hour", "7")["limit"]["capacity"] == 200
    assert terminal.json("key", "limit", key, "--burst", "9")["limit"]["refill_per_hour"] == 7
    assert terminal.json("key", "limit", key, "--clear", "burst")["limit"]["capacity"] == 1
    assert "7 an hour, 1 at once" in terminal.text("key", "limit", key)
    whole = terminal.json("key", "limit", key, "--per-second", "5", "--replace")
    assert whole["limit"] == {"capacity": 20, "refill_per_hour": 18_000}
    assert terminal.json("key", "limit", key, "--end")["limit"] is None
    of_org = terminal.json("key", "limit", "--org", org, "--per-second", "5")
    assert (of_org["account"], of_org["limit"]["capacity"]) == (org, 20)
    assert "5 a second" in terminal.text("key", "limit", "--org", org)
    assert terminal.json("key", "limit", "--org", org, "--end")["source"] == "default"
    wrong = [
        (),
        (key, "--org", org),
        (key, "--per-second", "5", "--per-hour", "5"),
        (key, "--burst", "5", "--replace"),
        (key, "--end", "--per-second", "5"),
        (key, "--per-second", "0"),
    ]
    for words in wrong:
        assert terminal.run("key", "limit", *words).exit_code == 2, words


def test_pages_are_followed(terminal: Terminal, client: Client, org: str) -> None:
    """A list shows one page and where it goes on; --all shows the same rows without gaps."""
    for number in range(5):
        client.issue(org, str(number + 1))
    whole = terminal.json("ledger", org)
    assert len(whole["entries"]) == 5
    first = terminal.json("ledger", org, "--limit", "2")
    second = terminal.json("ledger", org, "--limit", "2", "--cursor", first["next_cursor"])
    followed = terminal.json("ledger", org, "--limit", "2", "--all")
    assert followed["entries"] == whole["entries"]
    assert followed["entries"][:4] == first["entries"] + second["entries"]
    assert followed["next_cursor"] is None
    assert len(terminal.text("ledger", org, "--limit", "2", "--all").splitlines()) == 6
    short = terminal.run("ledger", org, "--limit", "2")
    assert "There is more" in short.stderr
    assert len(short.stdout.splitlines()) == 3


def test_a_dry_run_changes_nothing(terminal: Terminal, org: str) -> None:
    """--dry-run answers as if it were done, and says that it was not."""
    assert terminal.json("grant", "issue", org, "10", "--dry-run")["amount"] == "10"
    text = terminal.text("grant", "issue", org, "10", "--dry-run")
    assert text.startswith("Dry run: nothing was changed.")
    scripted = terminal.run("grant", "issue", org, "10", "--dry-run", "--json")
    assert scripted.stderr.startswith("Dry run: nothing was changed.")
    assert terminal.json("balance", org)["available"] == "0"


def test_a_key_makes_a_command_safe_to_repeat(terminal: Terminal, org: str, name: str) -> None:
    """The same command with the same key is done once."""
    words = ("grant", "issue", org, "10", "--idempotency-key", name)
    assert terminal.json(*words) == terminal.json(*words)
    assert terminal.json("balance", org)["available"] == "10"
    other = terminal.run("grant", "issue", org, "11", "--idempotency-key", name)
    assert other.exit_code == 1
    assert "idempotency_key_reused" in other.stderr


@pytest.mark.parametrize("words", [("grant", "list"), ("account", "tree"), ("balance",)])
def test_terminals_get_tables_without_colour_where_none_is_wanted(
    terminal: Terminal, org: str, words: tuple[str, ...]
) -> None:
    """On a terminal output has a layout; with NO_COLOR it has no colour."""
    terminal.text("grant", "issue", org, "10")
    result = terminal.run(*words, org, FORCE_COLOR="1", NO_COLOR="1", COLUMNS="150")
    assert result.exit_code == 0
    assert org in result.stdout
    assert COLOUR.search(result.stdout) is None
    assert ("──" in result.stdout) == (words == ("grant", "list"))


def test_json_is_the_answer_as_it_came(terminal: Terminal, client: Client, org: str) -> None:
    """--json adds nothing and loses nothing."""
    result = terminal.run("balance", org, "--json")
    assert set(json.loads(result.stdout)) >= {"available", "reserved", "spent", "version", "as_of"}
    assert result.stdout.count("\n") == 1


def test_usage(terminal: Terminal, client: Client, org: str) -> None:
    """What was paid for in groups, and the leases behind it."""
    assert terminal.text("usage", org).startswith("Nothing was paid for since ")
    client.issue(org, "1000")
    lease = client.reserve(org, job_id="train", gpu_type="h100", gpu_count=2)
    client.advance_clock(30)
    client.settle(lease.reservation_id, seq=1, used_ms=30_000)
    lines = terminal.text("usage", org).splitlines()
    assert lines[1].split() == ["train", "60", "1"]
    assert lines[-1].split()[:3] == [lease.reservation_id, org, "train"]
    assert terminal.text("usage", org, "--by", "gpu_type").splitlines()[1].split()[0] == "h100"
    page = terminal.json("usage", org, "--by", "account", "--since", "2h ago", "--all")
    assert [(row["name"], row["spent"]) for row in page["paid"]] == [(org, "60")]


def test_audit(terminal: Terminal, client: Client, org: str) -> None:
    """Acts are listed with what they changed, and nothing of what they left as it was."""
    client.update_account(org, metadata={"team": "vision"})
    client.suspend(org)
    client.issue(org, "5")
    lines = terminal.text("audit", org).splitlines()
    assert "credits.issue" in lines[1]
    assert "amount=5" in lines[1]
    assert lines[2].endswith("status=suspended suspended_by_scope=system")
    issued = terminal.json("audit", org, "--action", "credits.issue", "--actor", "key_0_1")["audit"]
    assert [act["resource"] for act in issued] == [org]
    assert terminal.text("audit", org, "--until", "2026-01-02").strip() == "No acts."
