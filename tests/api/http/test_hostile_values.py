"""Values that break naive readers, at every place of the API that takes one of their kind."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any, get_args, get_origin
from urllib.parse import quote

import msgspec
import pytest

from gpucredits.api.http.call import Route
from gpucredits.api.http.paging import PageQuery
from gpucredits.api.routes import routes
from gpucredits.wire.scalars import GpuAmount, GpuCount, Instant
from support.servers.http import Caller, problem

ROUTES = {f"{route.method} {route.path}": route for route in routes(has_test_clock=True)}
NO_INSTANTS = [
    "9999-12-31T23:59:59-14:00",  # after the year 9999 in UTC
    "9999-12-31T23:59:59.999999-00:01",
    "10000-01-01T00:00:00Z",
    "1969-12-31T23:59:59Z",
    "1970-01-01T00:00:00+00:01",
    "0001-01-01T00:00:00+14:00",
    "2026-02-30T00:00:00Z",
    "2026-01-01T24:00:01Z",
    "2026-01-01T00:00:00+99:99",
    "2026-01-01T00:00:00",
    "٢٠٢٦-01-01T00:00:00Z",
    "\0",
    "",
]
NO_CURSORS = ["\0", "a\0b", "'", "-1", "٣", "9" * 200, "A/B", "../x", " ", "\ud7ff"]
NO_NUMBERS = ["1.5", "9" * 19]  # which are names of accounts
NO_GPUS = [
    *(0.0005, 1.0000001, 0.1 + 0.2, -1, -0.5, -0.001, 10**9, 10**18, 1e300, 1e-300),
    *("0.0005", "1e-3", "1E3", "1.0000001", "-0.5", "+1", "NaN", "Infinity", "0x1", "1_0"),
    *("½", "٣", ".5", "1.", " 1", "1 ", "", "\0", "9" * 400, True, [], {}),
]


def places_of(kind: Any, wanted: type, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where a shape takes values of a kind: names of fields, ``[]`` for the items of a list."""
    if kind is wanted:
        yield path
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for field in msgspec.structs.fields(kind):
            yield from places_of(field.type, wanted, (*path, field.encode_name))
    elif get_origin(kind) is list:
        yield from places_of(get_args(kind)[0], wanted, (*path, "[]"))
    elif get_origin(kind) is not types.GenericAlias:
        for each in get_args(kind):
            yield from places_of(each, wanted, path)


def body_with(path: tuple[str, ...], value: Any) -> Any:
    """A body that has nothing but a value at a place."""
    if not path:
        return value
    inner = body_with(path[1:], value)
    return [inner] if path[0] == "[]" else {path[0]: inner}


def name_of(path: tuple[str, ...]) -> str:
    """A place as problems name it."""
    return ".".join(path).replace(".[]", "[0]")


def address(route: Route, org: str) -> str:
    """The route's path with an org's name wherever a name is wanted."""
    return "/".join(
        org + part.partition("}")[2] if part.startswith("{") else part
        for part in route.path.split("/")
    )


IN_BODIES = [
    (name, place)
    for name, route in ROUTES.items()
    if route.body is not None
    for place in places_of(route.body, Instant)
]
IN_QUERIES = [
    (name, place[0]) for name, route in ROUTES.items() for place in places_of(route.query, Instant)
]
GPUS_IN_BODIES = [
    (name, place)
    for name, route in ROUTES.items()
    if route.body is not None
    for kind in (GpuCount, GpuAmount)
    for place in places_of(route.body, kind)
]
PAGES = [name for name, route in ROUTES.items() if issubclass(route.query, PageQuery)]


def test_the_walk_finds_what_is_known_to_be_there() -> None:
    """A walk that goes nowhere would prove nothing."""
    assert ("POST /v1/credits/issue", ("expires_at",)) in IN_BODIES
    assert ("POST /v1/credits/issue:batch", ("items", "[]", "starts_at")) in IN_BODIES
    assert ("POST /v1/reservations", ("deadline",)) in IN_BODIES
    assert ("GET /v1/accounts/{account}/balance", "known_at") in IN_QUERIES
    assert {"GET /v1/accounts", "GET /v1/entries", "GET /v1/queue"} <= set(PAGES)
    cursors = {name for name, route in ROUTES.items() if "cursor" in route.query.__struct_fields__}
    assert cursors == set(PAGES)


@pytest.mark.parametrize(("name", "place"), IN_BODIES)
def test_what_is_no_instant_is_refused_in_bodies(
    admin: Caller, org: str, name: str, place: tuple[str, ...]
) -> None:
    """Every instant of every body, by itself: 422 that names it."""
    route = ROUTES[name]
    for value in NO_INSTANTS:
        answer = admin.call(route.method, address(route, org), body_with(place, value))
        assert problem(answer) == (422, "invalid_request"), value
        assert answer.json()["field"] == name_of(place), value


@pytest.mark.parametrize(("name", "place"), GPUS_IN_BODIES)
def test_what_is_no_number_of_gpus_is_refused(
    admin: Caller, org: str, name: str, place: tuple[str, ...]
) -> None:
    """Finer than thousandths, negative, huge, or no number: 422 that names it, at every place."""
    route = ROUTES[name]
    for value in NO_GPUS:
        answer = admin.call(route.method, address(route, org), body_with(place, value))
        assert problem(answer) == (422, "invalid_request"), value
        assert answer.json()["field"] == name_of(place), value


@pytest.mark.parametrize(("name", "field"), IN_QUERIES)
def test_what_is_no_instant_is_refused_in_queries(
    admin: Caller, org: str, name: str, field: str
) -> None:
    """Every instant of every query: 422 that names it."""
    route = ROUTES[name]
    for value in NO_INSTANTS:
        answer = admin.get(f"{address(route, org)}?{field}={quote(value)}")
        assert problem(answer) == (422, "invalid_request"), value
        assert answer.json()["field"] == field, value


# The cursor of these lists is a path, and a number may be one.
LISTED_BY_PATH = {"GET /v1/accounts", "GET /v1/clock/orgs", "GET /v1/exposure"}
# The cursor of these lists is an org and a number, such as 1.5.
LISTED_BY_ORG = {
    *("GET /v1/requests", "GET /v1/statements", "GET /v1/anomalies", "GET /v1/keys"),
    *("GET /v1/reconciliations", "GET /v1/drift-alarms", "GET /v1/unmatched-use"),
    *("GET /v1/lost-work", "GET /v1/maintenance"),
}


@pytest.mark.parametrize("name", PAGES)
def test_what_is_no_cursor_is_refused(admin: Caller, org: str, name: str) -> None:
    """Every list: 422 that names the cursor."""
    route = ROUTES[name]
    where = f"account={org}&" if "account" in route.query.__struct_fields__ else ""
    numbers = [] if name in LISTED_BY_PATH else NO_NUMBERS[name in LISTED_BY_ORG :]
    for value in NO_CURSORS + numbers:
        answer = admin.get(f"{address(route, org)}?{where}cursor={quote(value)}")
        assert problem(answer) == (422, "invalid_request"), value
        assert answer.json()["field"] == "cursor", value


@pytest.mark.parametrize("name", [name for name in ROUTES if ROUTES[name].method == "GET"])
def test_no_value_of_a_query_is_a_defect(admin: Caller, org: str, name: str) -> None:
    """Junk for every parameter of every read, and in its path, is refused or found nowhere."""
    route = ROUTES[name]
    fields = route.query.__struct_fields__
    for value in ("\0", "a\0b", "'", "9" * 30, "-1", "\ufeff", "x" * 2_000, "9999-12-31T23:59:59Z"):
        for field in fields:
            where = f"account={org}&" if "account" in fields and field != "account" else ""
            answer = admin.get(f"{address(route, org)}?{where}{field}={quote(value)}")
            assert answer.status_code < 500, (field, value, answer.text)
        if "{" in route.path:
            answer = admin.get(address(route, quote(value)))
            assert answer.status_code < 500, (value, answer.text)


@pytest.mark.parametrize("name", [name for name, route in ROUTES.items() if route.is_write])
def test_no_name_in_the_path_of_a_write_is_a_defect(admin: Caller, name: str) -> None:
    """Junk where an account, an id or a name is wanted is refused or found nowhere."""
    route = ROUTES[name]
    for value in ("\0", "a\0b", "'", "9" * 30, "rsv_zzzzzz_zzzzzzzzzzzz", "\ufeff", "x" * 2_000):
        answer = admin.call(route.method, address(route, quote(value)), {} if route.body else None)
        assert answer.status_code < 500, (value, answer.text)


def test_the_last_instant_that_can_be_written_is_taken_and_shown(admin: Caller, org: str) -> None:
    """The end of the year 9999 in UTC, however it is written, comes back as it is."""
    last = "9999-12-31T23:59:59.999999Z"
    for written in (last, "9999-12-31T22:59:59.999999-01:00"):
        grant = {"account": org, "amount": "1", "expires_at": written}
        assert admin.made("/v1/credits/issue", grant)["expires_at"] == last
    grants = admin.read("/v1/grants", params={"account": org})["grants"]
    assert [grant["expires_at"] for grant in grants] == [last, last]


def test_a_quota_of_no_number_of_gpus_is_refused(admin: Caller, org: str) -> None:
    """Credits have six decimals and GPUs three: what fits credits only is refused too."""
    place = f"/v1/accounts/{org}/quotas"
    for value in (each for each in NO_GPUS if each != 10**9):  # a quota may be that high
        body = {"dimension": "concurrent_gpus", "limit": value}
        assert problem(admin.post(place, body)) == (422, "invalid_request"), value
    assert admin.read(place)["quotas"] == []
    made = admin.made(place, {**body, "limit": "0.001"})  # control
    assert made["limit"] == "0.001"
