"""Prices that end, on the command line."""

from __future__ import annotations

from support.terminal import Terminal


def test_prices_end_on_the_command_line(terminal: Terminal, name: str) -> None:
    """A price is set with an end or ended, and one that is set for the past says what it leaves."""
    terminal.json("price", "set", name, "60")
    assert terminal.json("price", "set", name, "30", "--to", "2h")["effective_to"] is not None
    text = terminal.text("price", "set", name, "45", "--from", "1h ago", "--to", "1h")
    assert "changes nothing that is already pinned" in text
    assert "to" in terminal.text("price", "end", name, "--at", "30m")
    rows = terminal.json("price", "list", "--type", name)["prices"]
    assert all(row["effective_to"] for row in rows)
    assert terminal.json("price", "end", name)["gpu_type"] == name
    states = [row["state"] for row in terminal.json("price", "list", "--type", name)["prices"]]
    assert states == ["ended", "ended", "ended"]
    assert terminal.run("price", "end", name).exit_code == 1
