"""Servers that share a Redis, and what ``serve`` says of options that cannot be."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import httpx
import pytest
from click.testing import CliRunner

from gpucredits.app import Config, RedisSetupError, running
from gpucredits.cli.main import main
from support.engines.postgres import TestServer, temporary_directory
from support.engines.redis_server import RedisServer
from support.servers.http import Caller, problem, running_server
from support.waiting import HANGS_S, until

TEN = ("--requests-per-second", "1/3600", "--request-burst", "10")
PATIENT = ("--redis-timeout-ms", "10000")


def tried(*words: str, program: tuple[str, ...] = ("-m", "gpucredits")) -> tuple[int, str]:
    """(exit code, what it said) of a server that is not to start."""
    done = subprocess.run(
        [sys.executable, *program, "serve", "--port", "0", *words],
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def test_two_servers_share_a_limit_and_an_outage_is_seen(
    postgres: TestServer, own_redis: RedisServer
) -> None:
    """One limit for both; without Redis each counts alone, with an alarm; then they share again."""
    with (
        postgres.database() as dsn,
        temporary_directory() as folder,
        temporary_directory() as other_folder,
    ):
        options = ("--database-url", dsn, "--redis-url", own_redis.tcp_url, *PATIENT, *TEN)
        with (
            running_server(folder, *options) as one,
            httpx.Client(base_url=one.url, timeout=HANGS_S) as http,
        ):
            (other_folder / "admin.key").touch(0o600)
            words = [sys.executable, "-m", "gpucredits", "serve", "--json", "--port", "0"]
            with subprocess.Popen(
                [*words, "--data-dir", str(other_folder), *options],
                stdout=subprocess.PIPE,
                text=True,
            ) as two:
                try:
                    assert two.stdout is not None
                    url = two.stdout.readline().split('"url": "')[1].partition('"')[0]
                    share(one.admin_secret, http, url)
                finally:
                    two.terminate()
                    two.wait(HANGS_S)
            outage(Caller(http, one.admin_secret), own_redis)
        assert own_redis.tcp_url not in (folder / "server.log").read_text()


def share(secret: str, http: httpx.Client, url: str) -> None:
    """Two servers together admit what one would."""
    with httpx.Client(base_url=url, timeout=HANGS_S) as second:
        callers = [Caller(http, secret), Caller(second, secret)] * 6
        found = [caller.get("/v1/prices") for caller in callers]
    assert [answer.status_code for answer in found] == [200] * 10 + [429] * 2
    assert problem(found[-1]) == (429, "rate_limited")


def outage(caller: Caller, redis: RedisServer) -> None:
    """Away, each key has what it had; health says so and counts, and then the limit is shared."""
    held = {"home": "redis", "state": "held", "passed_alone": 0, "let_through": 0}
    assert caller.read("/healthz")["request_limits"] == held
    redis.kill()
    assert [caller.get("/v1/prices").status_code for _ in range(5)] == [429] * 5  # none was left
    until(lambda: caller.read("/healthz")["alarms"])
    answer = caller.get("/healthz")
    assert answer.status_code == 200
    [alarm] = answer.json()["alarms"]
    assert (alarm["name"], alarm["count"]) == ("request_limits_alone", 0)
    assert answer.json()["request_limits"]["state"] == "alone"
    redis.start()
    until(lambda: caller.read("/healthz")["alarms"] == [])
    assert caller.read("/healthz")["request_limits"] == held
    assert problem(caller.get("/v1/prices")) == (429, "rate_limited")


@pytest.mark.parametrize(
    "url",
    [
        "http://:pa55word@localhost",
        "redis://:pa55word@localhost:port/0",
        "redis://:pa55word@localhost/0?socket_timeout=soon",
        ":pa55word@localhost",
    ],
)
def test_an_address_that_is_none_is_said_plainly_and_not_repeated(
    data_dir: Path, database: str, url: str
) -> None:
    """One line, without the password."""

    async def start() -> None:
        async with running(Config(data_dir=data_dir, database_url=database, redis_url=url)):
            raise AssertionError("started")

    with pytest.raises(RedisSetupError) as refused:
        asyncio.run(start())
    assert "--redis-url" in str(refused.value)
    assert "pa55word" not in str(refused.value)


def test_a_server_ends_with_what_it_cannot_use(data_dir: Path, database: str) -> None:
    """What starting refuses is the server's last word: one line, without the password."""
    url = "http://:pa55word@localhost"
    code, said = tried("--data-dir", str(data_dir), "--database-url", database, "--redis-url", url)
    assert code == 1
    assert "--redis-url" in said
    assert "pa55word" not in said


def test_without_the_client_the_message_names_what_to_install(
    data_dir: Path, database: str
) -> None:
    """The Redis client is an extra."""
    hidden = "import sys; sys.modules['redis'] = None; from gpucredits.__main__ import main; main()"
    code, said = tried(
        *("--data-dir", str(data_dir), "--database-url", database),
        *("--redis-url", "redis://localhost"),
        program=("-c", hidden),
    )
    assert code == 1
    assert "gpucredits[redis]" in said


@pytest.mark.parametrize(
    "words",
    [
        ("--requests-per-second", "0"),
        ("--requests-per-second", "1e9999"),
        ("--requests-per-second", "1/7201"),
        ("--requests-per-second", "many"),
        ("--requests-per-second", "1/0"),
        ("--org-requests-per-second", "1000001"),
        ("--request-burst", "5"),
        ("--org-request-burst", "5"),
        ("--statement-due-days", "-1"),
        ("--statement-zone", "Mars/Olympus"),
    ],
)
def test_settings_that_cannot_be_are_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Nothing is started, and the option is named."""

    def start(config: Config) -> NoReturn:
        raise AssertionError(f"started: {config}")

    monkeypatch.setattr("gpucredits.cli.server.serve.listen", start)
    result = CliRunner().invoke(main, ["serve", "--port", "0", *words])
    assert result.exit_code == 2
    assert words[0] in result.stderr
