"""What a list says that is empty: where else there may be something."""

from __future__ import annotations

import pytest

from gpucredits.client import Client
from support.terminal import Terminal

LISTS = {
    "reservation list": "No reservations",
    "grant list": "No grants",
    "ledger": "No entries",
    "transfers": "No transfers",
}


@pytest.mark.parametrize("words", LISTS)
def test_an_empty_list_says_how_to_look_below(
    terminal: Terminal, client: Client, org: str, words: str
) -> None:
    """Not where that was done, nor of a user, below which there is nothing."""
    for path in (f"{org}/lab", f"{org}/lab/ann"):
        client.create_account(path)
    command = words.split()
    for account in (org, f"{org}/lab"):
        said = terminal.text(*command, account)
        assert said == f"{LISTS[words]}; --tree also looks at accounts below {account}.\n"
        assert terminal.text(*command, account, "--tree") == f"{LISTS[words]}.\n"
    assert terminal.text(*command, f"{org}/lab/ann") == f"{LISTS[words]}.\n"
