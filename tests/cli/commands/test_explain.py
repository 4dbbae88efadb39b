"""``gpucredits explain`` takes the options of ``gpucredits reserve``."""

from __future__ import annotations

import json

import click
import pytest

from gpucredits.cli.ledger.explain import explain
from gpucredits.cli.ledger.reservation import reserve
from gpucredits.cli.server.temporary_server import TemporaryServer
from gpucredits.client import Client
from support.faults.faulty_proxy import faulty_proxy
from support.terminal import Terminal

GIVEN: dict[str, tuple[list[str], dict[str, object]]] = {
    "--job": (["another"], {"job_id": "another"}),
    "--type": (["h100"], {"gpu_type": "h100"}),
    "--gpus": (["2"], {"gpu_count": "2"}),
    "--region": (["eu"], {"region": "eu"}),
    "--node": (["n1"], {"node": "n1"}),
    "--window": (["1m"], {"window_seconds": 60}),
    "--escrow": (["1"], {"escrow_windows": 1}),
    "--max": (["500"], {"max_amount": "500"}),
    "--payer": (["acme"], {"payer": "acme"}),
    "--on-exhaustion": (["finish"], {"exhaustion": "finish"}),
    "--grace": (["5s"], {"grace_seconds": 5}),
    "--overdraft": (["1.5"], {"overdraft": "1.5"}),
    "--label": (["team=vision"], {"metadata": {"team": "vision"}}),
    "--partial": ([], {"allow_partial": True}),
    "--priority": (["3"], {"priority": 3}),
    "--expect": (["90s"], {"expected_seconds": 90}),
    "--cpu": (["8"], {"resources": {"cpu": 8}}),
    "--memory": (["64", "--cpu", "0"], {"resources": {"cpu": 0, "memory": 64}}),
    "--not-preemptible": ([], {"preemptible": False}),
}
ONLY_RESERVE = {"--wait", "--until", "--idempotency-key", "--dry-run"}


def options_of(command: click.Command) -> set[str]:
    """The long names of a command's options."""
    return {max(param.opts, key=len) for param in command.params if isinstance(param, click.Option)}


def test_the_options_of_reserve_are_those_of_explain() -> None:
    """But for what only a job that is to start can be told; each has a case below."""
    assert options_of(reserve) - options_of(explain) == ONLY_RESERVE
    assert options_of(explain) - options_of(reserve) == {"--account"}
    assert set(GIVEN) <= options_of(explain)


@pytest.mark.parametrize("option", GIVEN)
def test_an_option_reaches_the_server(
    terminal: Terminal, server: TemporaryServer, org: str, option: str
) -> None:
    """In the field that it stands for."""
    words, fields = GIVEN[option]
    usual = [] if option == "--type" else ["--type", "h100"]
    with faulty_proxy(server.url) as proxy:
        result = terminal.run("explain", org, *usual, option, *words, GPUCREDITS_URL=proxy.url)
    assert result.exit_code in {0, 1, 4}, result.output
    [seen] = proxy.seen
    default = {"account": org, "job_id": "explain", "gpu_type": "h100", "gpu_count": "1"}
    assert seen.target == "/v1/admissions:check"
    assert json.loads(seen.body) == {**default, **fields}


def test_with_partial_it_tells_how_many_gpus_there_would_be(
    terminal: Terminal, client: Client, org: str, name: str
) -> None:
    """As reserve --partial then gets."""
    client.issue(org, "1000")
    client.set_price(name, "1")
    client.set_pool(name, capacity=2)
    asked = [org, "--type", name, "--gpus", "4", "--partial"]
    assert terminal.json("explain", *asked)["gpu_count"] == 2
    assert terminal.json("reserve", *asked, "--job", "j")["gpu_count"] == 2


def test_what_a_job_needs_besides_gpus_is_asked_of_its_pool(
    terminal: Terminal, client: Client, org: str, name: str
) -> None:
    """By explain as by reserve; what the pool has too little of is refused."""
    client.issue(org, "1000")
    client.set_price(name, "1")
    client.set_pool(name, capacity=4, resources={"cpu": 16, "memory": 100})
    asked = [org, "--type", name, "--job", "j", "--cpu", "12", "--memory", "50"]
    assert terminal.json("explain", *asked)["admitted"]
    assert terminal.json("reserve", *asked, "--not-preemptible")["gpu_count"] == 1
    for more in (["--cpu", "5"], ["--memory", "51"]):
        words = [org, "--type", name, "--job", "k", *more]
        assert terminal.run("explain", *words).exit_code == 4
        assert "Refused (fair_share)" in terminal.run("reserve", *words).stderr


def test_an_expectation_is_whole_seconds(terminal: Terminal, org: str) -> None:
    """As a window and a grace are: nothing of it is dropped in silence."""
    result = terminal.run("explain", org, "--type", "h100", "--expect", "1500ms")
    assert result.exit_code == 2
    assert "--expect: must be whole seconds" in result.stderr
