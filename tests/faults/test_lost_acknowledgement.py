"""Every kind of write is done, and its reply is lost on the way."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from gpucredits.api.routes import routes
from gpucredits.client import Ambiguous, Call, Client, Refused, Retry
from support.digest import digest
from support.faults.extent import Extent, Teller
from support.faults.faulty_proxy import Fault, FaultyProxy
from support.repeats import is_same_answer
from support.scenes.orgs import new_org
from support.scenes.writes import WRITES, Stage
from support.servers.http import RunningServer

pytestmark = pytest.mark.faults

ONE_TRY = Retry(attempts_max=1, attempt_timeout_s=10.0)


DOUBLED_BY_A_NEW_KEY = (
    "POST /v1/refunds",
    "POST /v1/adjustments",
    "POST /v1/credits/issue",
    "POST /v1/credits/issue:batch",
    "POST /v1/credits/transfer",
    "POST /v1/accounts/{account}/boosts",
    "POST /v1/keys",
)


def keyed(call: Call[Any]) -> Call[Any]:
    """The call with a key of its own, if it is one that takes a key."""
    return replace(call, key=f"lost-{secrets.token_hex(8)}") if call.is_keyed else call


@pytest.fixture
def impatient(server: RunningServer, proxy: FaultyProxy) -> Iterator[Client]:
    """A client behind the proxy that asks once."""
    with Client(proxy.url, server.admin_secret, retry=ONE_TRY) as client:
        yield client


Staging = Callable[[], Stage]


@pytest.fixture
def staged(direct: Client, server: RunningServer, database_of_server: str) -> Staging:
    """Make a funded org with a project."""

    def stage() -> Stage:
        org = new_org(direct)
        direct.create_account(f"{org}/a")
        direct.issue(org, "1000")
        return Stage(direct, org, lambda secret: Client(server.url, secret), database_of_server)

    return stage


def lose_the_reply(impatient: Client, proxy: FaultyProxy, call: Call[Any]) -> bytes:
    """Have a call carried out and its reply swallowed; the reply that the proxy saw."""
    proxy.plan.append(Fault.SWALLOW_REPLY)
    with pytest.raises(Ambiguous):
        impatient.fetch(call)
    return proxy.lost[-1]


def test_every_write_of_the_api_is_among_the_scenarios() -> None:
    """A write that is added to the API and not to this scenario is noticed."""
    writes = {f"{route.method} {route.path}" for route in routes() if route.is_write}
    assert WRITES.keys() == writes


def test_a_lost_reply_is_repeated_and_has_one_effect(
    impatient: Client,
    proxy: FaultyProxy,
    direct: Client,
    staged: Staging,
    database_of_server: str,
    extent: Extent,
    tell: Teller,
) -> None:
    """Each write, its reply swallowed, is sent again twice with its key: same bytes, one effect."""
    swallowed = equal = 0
    for _ in range(max(1, extent.cycles // 8)):
        for name, make in WRITES.items():
            on = staged()
            call = keyed(make(on))
            before = digest(database_of_server, on.org)
            first = lose_the_reply(impatient, proxy, call)
            done = digest(database_of_server, on.org)
            assert done != before, name
            for _ in range(2):
                again = direct.fetch(call).body
                equal += is_same_answer(call, first, again)
                assert is_same_answer(call, first, again), (name, first, again)
            assert digest(database_of_server, on.org) == done, name
            swallowed += 1
    figures = f"{len(WRITES)} kinds of write, equal answers {equal} of {2 * swallowed}, doubled 0"
    tell("lost acknowledgement", figures, replies_swallowed=swallowed)


def test_a_new_key_after_a_lost_reply_does_it_twice(
    impatient: Client,
    proxy: FaultyProxy,
    direct: Client,
    staged: Staging,
    database_of_server: str,
    tell: Teller,
) -> None:
    """Control: the same comparison sees a second effect when the retry has another key."""
    doubled = 0
    for name in DOUBLED_BY_A_NEW_KEY:
        on = staged()
        call = keyed(WRITES[name](on))
        lose_the_reply(impatient, proxy, call)
        done = digest(database_of_server, on.org)
        try:
            direct.fetch(keyed(call))
        except Refused:
            continue
        doubled += digest(database_of_server, on.org) != done
    kinds = len(DOUBLED_BY_A_NEW_KEY)
    told = ("lost acknowledgement, control: a new key", f"of {kinds} kinds")
    tell(*told, holds=doubled == kinds, doubled=doubled)
    assert doubled == kinds
