"""What people are told to try after a refusal; scripts get the server's answer alone."""

from __future__ import annotations

import json

import pytest

from gpucredits.cli.terminal.advice import advice
from gpucredits.client import Client, Refused, Unavailable
from support.terminal import Terminal


@pytest.fixture
def gpu_type(name: str) -> str:
    """A type without a price and without a pool."""
    return f"gpu-{name}"


def last_line(terminal: Terminal, *words: str, **env: str | None) -> str:
    """The last line that a refused command prints."""
    result = terminal.run(*words, **env)
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    return result.stderr.splitlines()[-1].strip()


def test_a_mistyped_account_gets_near_ones(terminal: Terminal, client: Client, org: str) -> None:
    """Of the accounts that the key sees; without a near one, the command that lists them."""
    client.create_account(f"{org}/vision")
    for mistyped in (f"{org}/visoin", f"{org}x/vision"):
        said = last_line(terminal, "balance", mistyped)
        assert said.startswith(f"Did you mean {org}/vision")
    assert last_line(terminal, "balance", "zz.zz.zz.zz.zz") == (
        "The accounts that your key sees: gpucredits account list."
    )


def test_a_type_without_a_price_gets_those_with_one(
    terminal: Terminal, client: Client, org: str, gpu_type: str
) -> None:
    """List prices only: a discount of another account is none for this one."""
    client.set_price(f"0-{gpu_type}", "60")  # the first of the alphabet
    client.set_price(f"0-{gpu_type}-theirs", "60", account=org)
    said = last_line(terminal, "reserve", org, "--job", "j", "--type", gpu_type)
    assert said.startswith("Prices are in force for ")
    assert f" 0-{gpu_type}/default" in said
    assert f"{gpu_type}-theirs" not in said


def test_an_unknown_pool_gets_the_pools(terminal: Terminal, client: Client, gpu_type: str) -> None:
    """Up to eight of them, and how many more there are."""
    client.set_pool(f"{gpu_type}-pooled", capacity=1)
    said = last_line(terminal, "pool", "show", gpu_type)
    pools = len(client.pools().pools)
    more = f" and {pools - 8} more" if pools > 8 else ""
    assert said.startswith("The pools are ")
    assert said.endswith(f"{more}.")


def test_an_unknown_key_is_placed(terminal: Terminal, org: str) -> None:
    """It is said which server does not know it, and where the key came from."""
    url = terminal.server.url
    words = ("balance", org)
    from_env = last_line(terminal, *words, GPUCREDITS_API_KEY="gck_x")
    assert from_env == f"{url} does not know the key of GPUCREDITS_API_KEY."
    said = terminal.run(*words, GPUCREDITS_API_KEY="gck_x").stderr
    assert "The API key is missing, unknown or revoked." in said
    given = last_line(terminal, *words, "--key", "gck_x")
    assert given == f"{url} does not know the key of --key."


def test_scripts_get_the_answer_alone(terminal: Terminal, org: str) -> None:
    """With --json stderr stays empty, and stdout has the server's problem."""
    result = terminal.run("balance", f"{org}/nobody", "--json")
    assert (result.exit_code, result.stderr) == (1, "")
    assert json.loads(result.stdout)["reason"] == "account_unknown"


def test_a_server_that_does_not_answer_gives_no_advice(client: Client) -> None:
    """The refusal stands; nothing else goes wrong."""

    def away() -> Client:
        raise Unavailable("no server answers")

    with pytest.raises(Refused) as caught:
        client.balance("nobody")
    assert advice(caught.value, away) == ""
