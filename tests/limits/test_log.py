"""What the log says of refusals: a line for the first of a key, then counts."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import time
from typing import Any

import httpx
import pytest

from gpucredits.api.http.log import GatheredLines, JsonLines, LoggedRequest, RequestLog
from support.engines.postgres import TestServer, temporary_directory
from support.servers.http import Caller, running_server
from support.waiting import HANGS_S, until

SCOPE = {"method": "GET", "path": "/v1/prices"}
MORE = "more requests turned away"


def refuse(log: RequestLog, actor: str, *, times: int = 1, status: int = 429) -> None:
    """Some requests of a key that were answered so."""
    for _ in range(times):
        seen = LoggedRequest()
        seen.actor, seen.reason = actor, "rate_limited"
        log.add(SCOPE, seen, status=status, request_id="req_1", started=time.perf_counter())


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, int]]:
    """(event, actor, count) of each line so far, which are then forgotten."""
    lines = []
    for record in caplog.records:
        fields: dict[str, Any] = getattr(record, "fields", {})
        if "actor" in fields:
            lines.append((record.getMessage(), fields["actor"], fields.get("count", 0)))
    caplog.clear()
    return lines


def test_a_flood_of_refusals_is_one_line_and_a_count(caplog: pytest.LogCaptureFixture) -> None:
    """Each key by itself; the count is told once it has been quiet, and again while it goes on."""
    one = ("key_1_1", 429, "rate_limited")

    async def act() -> None:
        log = RequestLog(quiet_s=3_600)  # its timers are the test's own
        refuse(log, "key_1_1", times=500)
        refuse(log, "key_1_2")
        assert told(caplog) == [("request", "key_1_1", 0), ("request", "key_1_2", 0)]
        log._speak(one)
        refuse(log, "key_1_1", times=7)
        assert told(caplog) == [(MORE, "key_1_1", 499)]
        log._speak(one)
        assert told(caplog) == [(MORE, "key_1_1", 7)]
        log._speak(one)
        assert told(caplog) == []
        refuse(log, "key_1_1")
        assert told(caplog) == [("request", "key_1_1", 0)]

    with caplog.at_level(logging.INFO):
        asyncio.run(act())


def test_the_count_is_told_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood that has ended is told without another request."""
    counts = []

    async def act() -> None:
        is_told = asyncio.Event()

        def note(_: RequestLog, __: tuple[str, int, str], count: int) -> None:
            counts.append(count)
            is_told.set()

        monkeypatch.setattr(RequestLog, "_tell", note)
        refuse(RequestLog(quiet_s=0.01), "key_1_1", times=4)
        async with asyncio.timeout(HANGS_S):
            await is_told.wait()

    logging.getLogger("gpucredits.api").setLevel(logging.INFO)
    try:
        asyncio.run(act())
    finally:
        logging.getLogger("gpucredits.api").setLevel(logging.NOTSET)
    assert counts == [3]


@pytest.mark.parametrize("status", [401, 503])
def test_callers_without_a_key_and_outages_are_counted_too(
    caplog: pytest.LogCaptureFixture, status: int
) -> None:
    """Of 500 such answers to one address one has a line."""

    async def act() -> None:
        log = RequestLog(quiet_s=3_600)
        refuse(log, "", times=500, status=status)
        log.close()

    with caplog.at_level(logging.INFO):
        asyncio.run(act())
    assert [count for *_, count in told(caplog)] == [0, 499]


def test_other_answers_keep_their_lines(caplog: pytest.LogCaptureFixture) -> None:
    """Only answers that a caller can have without end are counted instead."""

    async def act() -> None:
        refuse(RequestLog(), "key_1_1", times=5, status=403)

    with caplog.at_level(logging.INFO):
        asyncio.run(act())
    assert told(caplog) == [("request", "key_1_1", 0)] * 5


def test_memory_of_who_is_quiet_is_bounded_and_nothing_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Beyond the bound all others are one; what was counted is told at the end."""

    async def act() -> None:
        log = RequestLog(quiet_max=3)
        for number in range(50):
            refuse(log, f"key_1_{number}", times=2)
        assert len(log._untold) == 4
        assert len(told(caplog)) == 4
        log.close()

    with caplog.at_level(logging.INFO):
        asyncio.run(act())
    counts = [(actor, count) for _, actor, count in told(caplog)]
    assert counts == [("key_1_0", 1), ("key_1_1", 1), ("key_1_2", 1), ("", 93)]


def test_a_server_counts_refusals_by_key_and_tells_the_rest_at_its_end(
    postgres: TestServer,
) -> None:
    """Ten requests too many are two lines, both with the key, and add up."""
    with postgres.database() as dsn, temporary_directory() as folder:
        limit = ("--requests-per-second", "1/3600", "--request-burst", "1")
        with (
            running_server(folder, "--database-url", dsn, *limit) as running,
            httpx.Client(base_url=running.url, timeout=HANGS_S) as http,
        ):
            caller = Caller(http, running.admin_secret)
            found = [caller.get("/v1/prices").status_code for _ in range(11)]
            assert found == [200] + [429] * 10
        lines = [json.loads(line) for line in (folder / "server.log").read_text().splitlines()]
    refused = [line for line in lines if line.get("status") == 429]
    assert {line["actor"] for line in refused} == {"key_0_1"}
    assert sum(line.get("count", 1) for line in refused) == 10
    assert len(refused) <= 4  # ten seconds or more of a very slow machine


def test_lines_are_gathered_and_errors_are_written_at_once() -> None:
    """Lines wait for the event loop's next moment in their order; an error takes them along."""
    stream = io.StringIO()
    handler = GatheredLines(stream)
    handler.setFormatter(JsonLines())

    def emit(level: int, event: str) -> None:
        handler.handle(logging.LogRecord("gpucredits", level, "", 0, event, (), None))

    def events() -> list[str]:
        return [json.loads(line)["event"] for line in stream.getvalue().splitlines()]

    async def act() -> None:
        emit(logging.INFO, "first")
        emit(logging.INFO, "second")
        assert events() == []
        emit(logging.ERROR, "third")
        assert events() == ["first", "second", "third"]
        emit(logging.INFO, "fourth")
        await asyncio.to_thread(until, lambda: len(events()) == 4)

    asyncio.run(act())
    emit(logging.INFO, "fifth")  # nothing would come back to it
    assert events() == ["first", "second", "third", "fourth", "fifth"]
