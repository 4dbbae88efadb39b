"""Faults between client and server: one effect, and the outcome that is true."""

from __future__ import annotations

import asyncio
import itertools
import socket
import time
from types import SimpleNamespace

import httpx
import pytest

from gpucredits.cli.server.temporary_server import TemporaryServer
from gpucredits.client import (
    Ambiguous,
    AsyncClient,
    Client,
    Refused,
    Retry,
    Unavailable,
    attempts,
    calls,
)
from support.faults.faulty_proxy import Fault, FaultyProxy
from support.scenes.orgs import GPU_TYPE

ONE_TRY = Retry(attempts_max=1, attempt_timeout_s=0.5)
LOST = (Fault.SWALLOW_REPLY, Fault.RESET, Fault.HALF_REPLY, Fault.BAD_GATEWAY)
NOT_DONE = (Fault.BUSY, Fault.LIMITED)


@pytest.mark.parametrize("fault", [*LOST, *NOT_DONE])
def test_a_write_is_retried_with_the_same_key_and_done_once(
    fault: Fault, client: Client, proxy: FaultyProxy, direct: Client, org: str
) -> None:
    """Whatever the network does to a grant, it is issued once, under one key."""
    proxy.plan.extend([fault, fault])
    grant = client.issue(org, "100")
    assert grant.amount == "100"
    assert len(proxy.keys) == 3
    assert len(set(proxy.keys)) == 1
    assert proxy.keys[0]
    assert direct.balance(org).available == "100"


def test_every_write_gets_a_key_of_its_own(
    client: Client, proxy: FaultyProxy, direct: Client, org: str
) -> None:
    """Two equal writes without a key are two writes."""
    client.issue(org, "10")
    client.issue(org, "10")
    assert len(set(proxy.keys)) == 2
    assert direct.balance(org).available == "20"


def test_the_same_key_gives_the_same_answer(client: Client, org: str) -> None:
    """A caller that sends a key twice is given the first answer, and another body is refused."""
    first = client.issue(org, "7", key="allowance-of-march")
    assert client.issue(org, "7", key="allowance-of-march") == first
    with pytest.raises(Refused) as refused:
        client.issue(org, "8", key="allowance-of-march")
    assert refused.value.reason == "idempotency_key_reused"


def test_a_lost_answer_is_recognised_as_a_replay(
    client: Client, proxy: FaultyProxy, org: str
) -> None:
    """Where the server says that an answer was given before, the reply shows it."""
    proxy.plan.append(Fault.SWALLOW_REPLY)
    assert client.fetch(calls.set_price("a100", "60", account=org)).is_replay
    assert not client.fetch(calls.set_price("b200", "60", account=org)).is_replay


def test_a_time_out_after_sending_is_ambiguous_and_its_key_resolves_it(
    server: TemporaryServer, client: Client, proxy: FaultyProxy, direct: Client, org: str
) -> None:
    """A caller that is left in doubt is given the key that ends the doubt."""
    proxy.plan.append(Fault.HANG)
    with (
        Client(proxy.url, server.key, retry=ONE_TRY) as impatient,
        pytest.raises(Ambiguous) as doubt,
    ):
        impatient.issue(org, "50")
    key = doubt.value.key
    assert key is not None
    assert key in str(doubt.value)
    assert client.issue(org, "50", key=key).amount == "50"
    assert direct.balance(org).available == "50"


def test_doubt_outlives_a_refused_connection(
    server: TemporaryServer, client: Client, proxy: FaultyProxy, org: str
) -> None:
    """Once an answer was lost, a later attempt that was never sent does not make it certain."""
    proxy.plan.extend([Fault.SWALLOW_REPLY, Fault.BUSY, Fault.BUSY])
    retry = Retry(attempts_max=3, pause_s_first=0.01)
    with Client(proxy.url, server.key, retry=retry) as three, pytest.raises(Ambiguous):
        three.issue(org, "1")


def test_busy_is_unavailable_and_nothing_was_done(
    server: TemporaryServer, proxy: FaultyProxy, direct: Client, org: str
) -> None:
    """A server that says it is busy has begun nothing, and the caller may be told so."""
    proxy.plan.extend([Fault.BUSY] * 3)
    retry = Retry(attempts_max=3, pause_s_first=0.01)
    with Client(proxy.url, server.key, retry=retry) as three, pytest.raises(Unavailable) as gone:
        three.issue(org, "1")
    assert gone.value.key in proxy.keys
    assert len(proxy.seen) == 3
    assert direct.balance(org).available == "0"


def test_retry_after_is_honoured(client: Client, proxy: FaultyProxy, org: str) -> None:
    """A client comes back no sooner than it was asked to."""
    proxy.retry_after = "1"
    proxy.plan.append(Fault.BUSY)
    began = time.monotonic()
    client.issue(org, "1")
    assert time.monotonic() - began >= 1.0


def test_a_wait_beyond_the_deadline_is_not_begun(
    server: TemporaryServer, proxy: FaultyProxy, org: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the server asks for more patience than there is, the caller hears of it at once."""
    proxy.retry_after = "3600"
    proxy.plan.append(Fault.BUSY)
    waits: list[float] = []
    monkeypatch.setattr("gpucredits.client.transport.time.sleep", waits.append)
    with (
        Client(proxy.url, server.key, retry=Retry(deadline_s=1_000)) as patient,
        pytest.raises(Unavailable) as gone,
    ):
        patient.issue(org, "1")
    assert gone.value.retry_after_s == 3_600
    assert waits == []
    assert len(proxy.seen) == 1


@pytest.mark.parametrize("retry", [Retry(deadline_s=30), Retry(), Retry(deadline_s=300)])
def test_asking_goes_on_until_the_deadline(retry: Retry, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many attempts that takes, the last is made right before the deadline, none after."""
    now = 1_000.0
    monkeypatch.setattr(attempts, "time", SimpleNamespace(monotonic=lambda: now))
    asking = attempts.Attempts(calls.price_page(), retry)
    began = now
    asked: list[float] = []

    def ask_for_ever() -> None:
        nonlocal now
        while True:
            request = asking.request(http)
            asked.append(now - began)
            now += 0.01
            now += asking.failed(httpx.ConnectError("", request=request))

    with httpx.Client(base_url="http://127.0.0.1:1") as http, pytest.raises(Unavailable) as gone:
        ask_for_ever()
    assert retry.deadline_s - 2.5 * retry.pause_s_first <= asked[-1] < retry.deadline_s
    assert f"asked {len(asked)} times" in str(gone.value)
    assert len(asked) > 8
    gaps = [after - before for before, after in itertools.pairwise(asked)]
    assert max(gaps) <= retry.pause_s_max + 0.02


def test_patience_is_for_answers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that may wait long gives up on an absent server in time, and not on one that waits."""
    now = 1_000.0
    monkeypatch.setattr(attempts, "time", SimpleNamespace(monotonic=lambda: now))
    with httpx.Client(base_url="http://127.0.0.1:1") as http:
        call = calls.queued("que_1_1", wait_seconds=60)
        asking = attempts.Attempts(call, Retry(deadline_s=10, attempt_timeout_s=5))
        request = asking.request(http)
        assert request.extensions["timeout"]["read"] == 65
        now += 50
        now += asking.failed(httpx.ReadError("", request=request))
        request = asking.request(http)
        assert 15 < request.extensions["timeout"]["read"] <= 20
        now += 9
        now += asking.failed(httpx.ConnectError("", request=request))
        asking.request(http)
        now += 5
        with pytest.raises(Unavailable):
            asking.failed(httpx.ConnectError("", request=request))


def test_more_attempts_than_there_were_once_allowed(
    client: Client, proxy: FaultyProxy, direct: Client, org: str
) -> None:
    """A server that is busy for long is asked until it is not: only the deadline ends it."""
    proxy.plan.extend([Fault.BUSY] * 15)
    client.issue(org, "100")
    assert len(proxy.seen) == 16
    assert direct.balance(org).available == "100"


def test_a_server_that_is_not_there_is_unavailable() -> None:
    """Nobody listens: nothing can have been done."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        retry = Retry(attempts_max=3, pause_s_first=0.01)
        with Client(url, "gck_x", retry=retry) as client, pytest.raises(Unavailable) as gone:
            client.issue("acme", "1")
    assert "3 times" in str(gone.value)


def test_a_lost_read_is_never_ambiguous(
    server: TemporaryServer, proxy: FaultyProxy, org: str
) -> None:
    """Reads change nothing, so losing their answer leaves nothing in doubt."""
    proxy.plan.append(Fault.SWALLOW_REPLY)
    retry = Retry(attempts_max=1)
    with Client(proxy.url, server.key, retry=retry) as once, pytest.raises(Unavailable):
        once.balance(org)


def test_a_refusal_is_not_retried(client: Client, proxy: FaultyProxy, org: str) -> None:
    """What was decided against is not asked again, and its numbers reach the caller."""
    with pytest.raises(Refused) as refused:
        client.reserve(org, job_id="j", gpu_type=GPU_TYPE, payer=org)
    assert refused.value.reason == "insufficient_credits"
    assert refused.value.status == 402
    assert len(proxy.seen) == 1


def test_insufficient_credits_name_account_and_numbers(client: Client, org: str) -> None:
    """A refusal for want of credits says who lacks how much."""
    client.issue(org, "5")
    with pytest.raises(Refused) as refused:
        client.reserve(org, job_id="j", gpu_type=GPU_TYPE, gpu_count=2, window_seconds=60)
    problem = refused.value.problem
    assert problem.reason == "insufficient_credits"
    assert (problem.account, problem.scope) == (org, "org")
    assert (problem.available, problem.needed) == ("5", "120")


def test_a_repeated_heartbeat_charges_once(
    client: Client, proxy: FaultyProxy, direct: Client, org: str
) -> None:
    """A beat whose answer was lost is sent again with its seq, and is charged once."""
    client.issue(org, "1000")
    lease = client.reserve(org, job_id="j", gpu_type=GPU_TYPE, window_seconds=60)
    direct.advance_clock(10)
    proxy.plan.append(Fault.SWALLOW_REPLY)
    (answer,) = client.heartbeats([(lease.reservation_id, 1, 10_000)]).results
    assert answer.settled == "10"
    assert answer.duplicate
    assert direct.balance(org).spent == "10"


def test_a_clock_is_not_moved_twice(client: Client, proxy: FaultyProxy) -> None:
    """What is not safe to repeat is not repeated."""
    proxy.plan.append(Fault.SWALLOW_REPLY)
    with pytest.raises(Ambiguous):
        client.advance_clock(1)
    assert len(proxy.seen) == 1


def test_the_async_client_retries_in_the_same_way(
    server: TemporaryServer, proxy: FaultyProxy, direct: Client, org: str
) -> None:
    """Many awaited writes through a failing network: each is done once."""
    proxy.plan.extend(itertools.islice(itertools.cycle(LOST + NOT_DONE), 12))

    async def issue_all() -> None:
        retry = Retry(pause_s_first=0.01, attempts_max=20)
        async with AsyncClient(proxy.url, server.key, retry=retry) as client:
            await asyncio.gather(*(client.issue(org, "1") for _ in range(10)))

    asyncio.run(issue_all())
    assert direct.balance(org).available == "10"
    assert len(set(proxy.keys)) == 10
    assert len(proxy.keys) == 22


def test_too_fast_is_waited_for_and_then_done_once(
    client: Client, proxy: FaultyProxy, direct: Client, org: str
) -> None:
    """A 429 is asked again after what it says, with the same key, until there are tokens."""
    direct.issue(org, "1000")
    direct.set_rate_limit(org, capacity="10", refill_per_hour="3600")
    direct.reserve(org, job_id="first", gpu_type=GPU_TYPE, window_seconds=10)
    asked: list[str | None] = []
    for number in range(100):  # a credit comes each second: a slow machine may find one at once
        before = len(proxy.keys)
        lease = client.reserve(org, job_id=f"{number}", gpu_type=GPU_TYPE, window_seconds=1)
        asked = proxy.keys[before:]
        if len(asked) > 1:
            break
    assert lease.held == "1"
    assert len(set(asked)) == 1
    assert len(asked) >= 2


def test_a_wait_that_is_too_long_tells_every_gate(
    server: TemporaryServer, direct: Client, org: str
) -> None:
    """Nothing was done, and whoever gives up learns when, and what every gate said."""
    direct.issue(org, "1000")
    direct.set_rate_limit(org, capacity="10", refill_per_hour="1")
    direct.reserve(org, job_id="first", gpu_type=GPU_TYPE, window_seconds=10)
    with Client(server.url, server.key, retry=Retry(attempts_max=1)) as client:
        with pytest.raises(Unavailable) as told:
            client.reserve(org, job_id="second", gpu_type=GPU_TYPE, window_seconds=10)
        assert told.value.retry_after_s
        assert told.value.retry_after_s > 30_000
        assert told.value.problem is not None
        assert told.value.problem.gates is not None
        assert [gate.passes for gate in told.value.problem.gates] == [True, False]
        with pytest.raises(Refused) as refused:
            client.reserve(org, job_id="third", gpu_type=GPU_TYPE, window_seconds=20)
        assert refused.value.status == 429
