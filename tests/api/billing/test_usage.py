"""Use: whole totals, and lists that page and keep to the time asked for."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from support.servers.http import Caller, problem

JOBS = 7


@pytest.fixture
def used(admin: Caller, org: str, gpu_type: str) -> list[str]:
    """Jobs of one GPU each that ran for 1, 2, 3 and more seconds, one after the other.

    Gives the instants before the first, between them and after the last.
    """
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    instants = []
    for number in range(1, JOBS + 1):
        instants.append(admin.instant())
        admin.advance(1)  # what follows is later by any server's reckoning
        lease = {"account": f"{org}/vision", "job_id": f"j{number}", "gpu_type": gpu_type}
        held = admin.made("/v1/reservations", lease)["reservation_id"]
        admin.advance(10)
        settle = {"seq": 1, "used_ms": number * 1_000}
        admin.made(f"/v1/reservations/{held}:settle", settle)
        admin.advance(10)
    return [*instants, admin.instant()]


def spent_in(groups: list[dict[str, Any]]) -> Decimal:
    """What some groups or leases come to."""
    return sum((Decimal(each["spent"]) for each in groups), Decimal(0))


def test_totals_are_whole_whatever_the_page_shows(admin: Caller, org: str, used: list[str]) -> None:
    """A page of two groups has the total of all seven; the pages have each group and lease once."""
    path = f"/v1/accounts/{org}/usage"
    whole = admin.read(path)
    assert whole["next_cursor"] is None
    assert spent_in(whole["paid"]) == Decimal(whole["total"]["spent"]) == Decimal("0.28")
    groups, leases = [], []
    cursor: dict[str, str] = {}
    while True:
        page = admin.read(path, params={"limit": 2, "since": used[0], **cursor})
        assert page["total"] == whole["total"]
        groups += page["paid"]
        leases += page["leases"]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert groups == whole["paid"]
    assert leases == whole["leases"]
    assert whole["total"] == {"spent": "0.28", "groups": None}
    assert [each["reservations"] for each in whole["paid"]] == [1] * JOBS


def test_pages_are_of_the_time_of_the_first(
    admin: Caller, org: str, gpu_type: str, used: list[str]
) -> None:
    """What is spent while somebody turns the pages changes neither totals nor lists."""
    path = f"/v1/accounts/{org}/usage"
    first = admin.read(path, params={"limit": 4})
    lease = {"account": org, "job_id": "large", "gpu_type": gpu_type}
    held = admin.made("/v1/reservations", lease)["reservation_id"]
    admin.advance(60)
    admin.made(f"/v1/reservations/{held}:settle", {"seq": 1, "used_ms": 50_000})
    second = admin.read(path, params={"limit": 4, "cursor": first["next_cursor"]})
    assert second["total"] == first["total"]
    assert (second["since"], second["until"]) == (first["since"], first["until"])
    names = [each["name"] for each in first["paid"] + second["paid"]]
    assert names == [f"j{number}" for number in range(JOBS, 0, -1)]
    assert len(first["leases"] + second["leases"]) == JOBS
    other = admin.get(path, params={"cursor": first["next_cursor"], "since": used[1]})
    assert problem(other) == (422, "invalid_request")
    assert other.json()["field"] == "cursor"


@pytest.mark.parametrize(
    "cursor", ["1", "1.2.3", "1.2.3.-4", "x.2.3.4", "1.2.3.9999999999999999999"]
)
def test_a_cursor_that_no_page_gave_is_refused(admin: Caller, org: str, cursor: str) -> None:
    """It is the caller's mistake, not ours."""
    answer = admin.get(f"/v1/accounts/{org}/usage", params={"cursor": cursor})
    assert problem(answer) == (422, "invalid_request")
    assert answer.json()["field"] == "cursor"


def test_a_time_applies_to_everything_that_is_shown(
    admin: Caller, org: str, used: list[str]
) -> None:
    """Groups, total and leases are those of the time; a lease has what was spent on it then."""
    for path in (f"/v1/accounts/{org}/usage", f"/v1/accounts/{org}/vision/usage"):
        page = admin.read(path, params={"since": used[2], "until": used[4]})
        assert {each["job_id"] for each in page["leases"]} == {"j3", "j4"}
        assert spent_in(page["leases"]) == Decimal("0.07")
    page = admin.read(f"/v1/accounts/{org}/usage", params={"since": used[2], "until": used[4]})
    assert {each["name"] for each in page["paid"]} == {"j3", "j4"}
    assert page["total"] == {"spent": "0.07", "groups": None}
    by_type = admin.read(
        f"/v1/accounts/{org}/usage", params={"since": used[2], "until": used[4], "by": "gpu_type"}
    )
    assert by_type["total"] == {"spent": "0.07", "groups": 1}
    early = admin.read(f"/v1/accounts/{org}/usage", params={"until": used[0]})
    assert (early["paid"], early["leases"], early["total"]["spent"]) == ([], [], "0")


def test_a_lease_across_a_bound_shows_what_was_spent_inside(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """Two equal halves of a job; a refund later is in the time in which it was made."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    lease = {"account": org, "job_id": "long", "gpu_type": gpu_type}
    held = admin.made("/v1/reservations", lease)["reservation_id"]
    bounds: list[str] = []

    def pause() -> None:
        admin.advance(1)
        bounds.append(admin.instant())
        admin.advance(1)

    pause()
    for seq in (1, 2):
        admin.advance(20)
        beat = {"reservation_id": held, "seq": seq, "used_ms": seq * 10_000}
        admin.made("/v1/heartbeats", {"beats": [beat]})
        pause()
    admin.made(f"/v1/reservations/{held}:settle", {})
    pause()
    admin.made("/v1/refunds", {"reservation_id": held, "amount": "0.05"})
    pause()
    told = []
    for since, until in pairwise(bounds):
        page = admin.read(f"/v1/accounts/{org}/usage", params={"since": since, "until": until})
        told.append([(each["spent"], each["charged"]) for each in page["leases"]])
        assert page["total"]["spent"] == (page["leases"][0]["spent"] if page["leases"] else "0")
    assert told == [[("0.1", "0.15")], [("0.1", "0.15")], [], [("-0.05", "0.15")]]


@pytest.mark.parametrize(
    "path", ["/v1/accounts/{}/usage", "/v1/entries", "/v1/transfers", "/v1/audit"]
)
def test_a_time_that_ends_before_it_begins_is_refused(admin: Caller, org: str, path: str) -> None:
    """Two instants in the wrong order are a mistake, and no answer that nothing was spent."""
    about = {} if "{}" in path else {"account": org}
    times = {"since": "2026-02-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"}
    answer = admin.get(path.format(org), params={**about, **times})
    assert problem(answer) == (422, "invalid_request")
    assert answer.json()["field"] == "until"
    times["since"] = times["until"]
    assert admin.get(path.format(org), params={**about, **times}).status_code == 200
