"""Corrections at the command line: what they say, and what they leave to be seen."""

from __future__ import annotations

from gpucredits.client import Client
from support.terminal import Terminal


def test_corrections_and_what_is_left(terminal: Terminal, client: Client, org: str) -> None:
    """A lease is charged more and refunded in words; a postpaid balance shows its credit."""
    terminal.json("account", "set", org, "--model", "postpaid", "--credit-limit", "500")
    lease = client.reserve(org, job_id="j", gpu_type="h100").reservation_id
    client.advance_clock(30)
    client.settle(lease, used_ms=30_000)
    assert f"Charged 2 credits for {lease}." in terminal.text("adjust", lease, "2")
    assert f"Refunded 1 credit for {lease}." in terminal.text("refund", lease, "1")
    balance = terminal.text("balance", org)
    assert "credit limit      500" in balance
    assert "left with credit  469" in balance
    header, row = terminal.text("usage", org).splitlines()[4:6]
    assert header.split()[-4:] == ["SETTLED", "ADJUSTED", "REFUNDED", "CHARGED"]
    assert row.split()[-4:] == ["30", "2", "1", "31"]
    assert "adjusted     2\nrefunded     1\n" in terminal.text("reservation", "show", lease)
    assert terminal.json("usage", org, "--by", "gpu-type")["by"] == "gpu_type"


def test_an_adjustment_beyond_the_balance_says_so(
    terminal: Terminal, client: Client, org: str
) -> None:
    """What a prepaid account cannot pay is covered by the house, and whoever adjusts is told."""
    client.issue(org, "130")
    lease = client.reserve(org, job_id="j", gpu_type="h100").reservation_id
    client.settle(lease)
    within = terminal.run("adjust", lease, "129")
    assert (within.exit_code, within.stderr) == (0, "")
    beyond = terminal.run("adjust", lease, "2")
    assert beyond.exit_code == 0
    assert beyond.stdout.splitlines()[-1].split() == ["overrun", "1"]
    assert beyond.stderr == (
        "The payer lacked 1 credit of it: the house has covered that (an overrun) and collects it "
        "from the payer's next credits.\n"
    )
    client.issue(org, "5")
    assert client.balance(org).available == "4"
