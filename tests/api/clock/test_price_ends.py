"""Prices that end over HTTP, and prices with effect in the past."""

from __future__ import annotations

from typing import Any

import pytest

from gpucredits.client import Client
from support.servers.http import Caller, RunningServer, fresh_name, problem


@pytest.fixture
def paying(admin: Caller, org: str) -> str:
    """An org that can pay."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "1000"})
    return org


def reserve(caller: Caller, account: str, gpu_type: str, **more: Any) -> Any:
    """Ask for a lease."""
    body = {"account": account, "job_id": fresh_name("job"), "gpu_type": gpu_type, **more}
    return caller.post("/v1/reservations", body)


def rate(caller: Caller, account: str, gpu_type: str) -> str:
    """What a GPU-hour costs a job that is admitted now."""
    answer = reserve(caller, account, gpu_type)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["rate_per_hour"])


def states(caller: Caller, gpu_type: str) -> list[tuple[str, str]]:
    """(price, state) of every version, the newest first."""
    rows = caller.read("/v1/prices", params={"gpu_type": gpu_type})["prices"]
    return [(row["credits_per_gpu_hour"], row["state"]) for row in rows]


def test_a_price_with_an_end_gives_way_to_the_one_before(
    admin: Caller, paying: str, gpu_type: str
) -> None:
    """While it lasts it is in force; a lease that was admitted at it keeps it after its end."""
    end = admin.instant(seconds=100)
    body = {"gpu_type": gpu_type, "credits_per_gpu_hour": "18", "effective_to": end}
    made = admin.made("/v1/prices", body)
    assert made["effective_to"] is not None
    assert made["note"] is None
    lease = reserve(admin, paying, gpu_type, window_seconds=600).json()
    assert lease["rate_per_hour"] == "18"
    assert states(admin, gpu_type) == [("18", "in_force"), ("36", "replaced")]
    admin.advance(101)
    assert rate(admin, paying, gpu_type) == "36"
    assert states(admin, gpu_type) == [("18", "ended"), ("36", "in_force")]
    beat = {"seq": 1, "used_ms": 100_000}
    extended = admin.made(f"/v1/reservations/{lease['reservation_id']}:extend", beat)
    assert extended["settled"] == "0.5"


def test_an_ended_price_is_price_unknown_and_says_when(
    admin: Caller, paying: str, gpu_type: str
) -> None:
    """Ended at once, it admits nobody; a later version does, and ending twice is refused."""
    lease = reserve(admin, paying, gpu_type).json()
    ended = admin.made("/v1/prices:end", {"gpu_type": gpu_type})
    assert (ended["credits_per_gpu_hour"], ended["price_id"]) == ("36", lease["price_id"])
    refusal = reserve(admin, paying, gpu_type)
    assert problem(refusal) == (422, "price_unknown")
    assert "the last one ended at 20" in refusal.json()["detail"]
    assert refusal.json()["numbers"]["ended_at"] == ended["effective_to"]
    assert states(admin, gpu_type) == [("36", "ended")]
    again = admin.post("/v1/prices:end", {"gpu_type": gpu_type})
    assert problem(again) == (422, "price_unknown")
    admin.made("/v1/prices", {"gpu_type": gpu_type, "credits_per_gpu_hour": "9"})
    assert rate(admin, paying, gpu_type) == "9"


def test_a_version_that_was_ended_early_ended_then(
    admin: Caller, paying: str, gpu_type: str
) -> None:
    """Refusals tell the instant of the end, and not the one that the version had before."""
    body = {"gpu_type": gpu_type, "credits_per_gpu_hour": "18"}
    admin.made("/v1/prices", {**body, "effective_to": admin.instant(seconds=600)})
    ended = admin.made("/v1/prices:end", {"gpu_type": gpu_type})
    for seconds in (0, 1_200):
        admin.advance(seconds)
        refusal = reserve(admin, paying, gpu_type).json()
        assert refusal["numbers"]["ended_at"] == ended["effective_to"]


def test_a_discount_ends_into_the_list_price(admin: Caller, paying: str, gpu_type: str) -> None:
    """A discount may have an end from the start, or be ended later."""
    discount = {"gpu_type": gpu_type, "credits_per_gpu_hour": "10", "account": paying}
    admin.made("/v1/prices", {**discount, "effective_to": admin.instant(seconds=60)})
    assert rate(admin, paying, gpu_type) == "10"
    admin.advance(61)
    assert rate(admin, paying, gpu_type) == "36"
    admin.made("/v1/prices", {**discount, "credits_per_gpu_hour": "11"})
    assert rate(admin, paying, gpu_type) == "11"
    ended = admin.made("/v1/prices:end", {"gpu_type": gpu_type, "account": paying})
    assert ended["account"] == paying
    assert rate(admin, paying, gpu_type) == "36"


def test_ends_that_make_no_sense_are_refused(admin: Caller, org: str, gpu_type: str) -> None:
    """An end before the start, or in the past, changes nothing and says so."""
    past = admin.instant(seconds=-60)
    price = {"gpu_type": gpu_type, "credits_per_gpu_hour": "1"}
    wrong = {
        **price,
        "effective_from": admin.instant(hours=2),
        "effective_to": admin.instant(hours=1),
    }
    for body in ({**price, "effective_to": past}, wrong):
        assert problem(admin.post("/v1/prices", body)) == (422, "window_ended")
    end = {"gpu_type": gpu_type, "effective_to": past}
    assert problem(admin.post("/v1/prices:end", end)) == (422, "window_ended")
    operator = admin.with_key("operator", org)
    assert problem(operator.post("/v1/prices:end", {"gpu_type": gpu_type})) == (403, "forbidden")
    assert states(admin, gpu_type) == [("36", "in_force")]


def test_a_price_with_effect_in_the_past_says_what_it_does_not_change(
    admin: Caller, server: RunningServer, paying: str, gpu_type: str
) -> None:
    """The answer says that pinned leases keep theirs; a repeat of the call says it again."""
    lease = reserve(admin, paying, gpu_type).json()
    since = admin.instant(seconds=-3_600)
    body = {"gpu_type": gpu_type, "credits_per_gpu_hour": "72", "effective_from": since}
    key = fresh_name("backdated-")
    for _ in range(2):
        made = admin.made("/v1/prices", body, key=key)
        assert "changes nothing that is already pinned" in made["note"]
        assert "is not in force now: a version or an end with a later start" in made["note"]
    assert rate(admin, paying, gpu_type) == "36"
    body |= {"effective_from": admin.instant(), "credits_per_gpu_hour": "73"}
    admin.advance(1)
    made = admin.made("/v1/prices", body)
    assert made["note"].startswith("The price is in force from ")
    assert rate(admin, paying, gpu_type) == "73"
    kept = admin.read(f"/v1/reservations/{lease['reservation_id']}")
    assert kept["rate_per_hour"] == "36"
    with Client(server.url, admin.secret) as client:
        assert client.set_price(gpu_type, "72", effective_from=since).note
        assert client.end_price(gpu_type).effective_to is not None
