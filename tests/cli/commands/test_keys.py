"""Keys that end by themselves, at a command line."""

from __future__ import annotations

from gpucredits.client import Client
from gpucredits.wire.scalars import parse_instant
from support.terminal import Terminal

HOUR_US = 3_600_000_000


def test_a_key_is_made_for_a_while(terminal: Terminal, client: Client, org: str, name: str) -> None:
    """Its end is given as others are, and shown by everything that shows the key."""
    made = terminal.json(
        "key", "create", "read-only", "--scope", org, "--name", name, "--expires", "2h"
    )
    lasts = parse_instant(made["expires_at"]) - parse_instant(made["created_at"])
    assert abs(lasts - 2 * HOUR_US) < HOUR_US
    day, time = made["expires_at"][:10], made["expires_at"][11:19]
    own = terminal.run("key", "whoami", GPUCREDITS_API_KEY=made["secret"])
    assert f"expires  {day} {time}Z\n" in own.stdout
    listed = terminal.text("key", "list", "--all").splitlines()
    assert listed[0].split() == [
        "KEY",
        "ROLE",
        "SCOPE",
        "NODE",
        "NAME",
        "MADE",
        "EXPIRES",
        "REVOKED",
    ]
    [row] = [line for line in listed if name in line]
    assert f"{day} {time}Z" in row
    assert "never" in listed[1]
    client.advance_clock(2 * 3_600)
    gone = terminal.run("balance", org, GPUCREDITS_API_KEY=made["secret"])
    assert gone.exit_code == 1
    assert "key_expired" in gone.stderr


def test_a_key_is_not_made_for_the_past(terminal: Terminal, org: str) -> None:
    """The message names the option."""
    for end in ("2020-01-01", "1d ago"):
        refused = terminal.run("key", "create", "agent", "--scope", org, "--expires", end)
        assert refused.exit_code == 1
        assert "--expires: must be later than now" in refused.stderr
