"""What moved between accounts, listed for people and for scripts."""

from __future__ import annotations

from gpucredits.client import Client
from support.terminal import Terminal


def test_transfers_are_listed(terminal: Terminal, client: Client, org: str) -> None:
    """The latest first, by label and by time; both sides see a transfer."""
    client.create_account(f"{org}/lab")
    client.issue(org, "100")
    moved = client.transfer(org, f"{org}/lab", "60").transfer_id
    client.transfer(f"{org}/lab", org, "10", metadata={"why": "claw-back"})
    listed = terminal.json("transfers", f"{org}/lab")["transfers"]
    assert [(each["from"], each["amount"]) for each in listed] == [
        (f"{org}/lab", "10"),
        (org, "60"),
    ]
    labelled = terminal.text("transfers", org, "--label", "why=claw-back")
    assert "why=claw-back" in labelled
    assert moved not in labelled
    assert terminal.text("transfers", org, "--until", "2026-01-02").startswith("No transfers")
