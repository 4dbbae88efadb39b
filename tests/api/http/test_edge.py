"""What is refused at the edge: sizes, media types, shapes and hostile values."""

from __future__ import annotations

from typing import Any

import pytest

from support.servers.http import Caller, fresh_name, problem

HOSTILE = [
    "'; DROP TABLE entries; --",
    '" OR ""="',
    "%' OR 1=1 --",
    "{{7*7}} ${7*7} <script>alert(1)</script>",
    "\\'; SELECT pg_sleep(10); --",
    "$$; $1 :name %s ?",
    "名前 🚀 ünïcode",
]
ITEM = '{"account": "a", "amount": "1"}'
ESCAPED = '{"reservation_id": "rsv_1_2", "s\\u0065q": 1, "used_ms": 0}'
BEAT = '{"reservation_id": "rsv_1_1", "seq": 1, "used_ms": 0}'


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        ('"0"', "more than 0"),
        ('"-1"', "more than 0"),
        ("-1", "more than 0"),
        ("0", "more than 0"),
        ('"0.0000001"', "6 digits after"),
        ("0.0000001", "6 digits after"),
        ("1e-7", "6 digits after"),
        ("1e400", "at most 1000000000"),
        ("1e99999999", "at most 1000000000"),
        ("123456789012345678901234567890", "at most 1000000000"),
        ('"1000000001"', "at most"),
        ('"NaN"', "decimal string"),
        ('"Infinity"', "decimal string"),
        ('"1e3"', "decimal string"),
        ('" 1"', "decimal string"),
        ('"1,5"', "decimal string"),
        ('"٣"', "decimal string"),
        ('""', "decimal string"),
        ("true", "decimal string"),
        ("null", "decimal string"),
        ("[]", "decimal string"),
        ("{}", "decimal string"),
    ],
)
def test_amounts_that_are_not_exact_positive_credits_are_refused(
    admin: Caller, amount: str, said: str
) -> None:
    """Zero, negative, too fine, too large and not a number: 422 that names the field."""
    content = f'{{"account": "acme", "amount": {amount}}}'
    answer = admin.post("/v1/credits/issue", content=content)
    assert problem(answer) == (422, "invalid_request")
    assert answer.json()["field"] == "amount"
    assert said in answer.json()["detail"]


@pytest.mark.parametrize("amount", ['"12.5"', "12.5", "12.500000", "1.25e1", "12.50000000000"])
def test_a_number_is_accepted_where_it_is_exact(admin: Caller, org: str, amount: str) -> None:
    """The same amount, however it is written, is the same credits."""
    content = f'{{"account": "{org}", "amount": {amount}}}'
    answer = admin.post("/v1/credits/issue", content=content)
    assert answer.json()["amount"] == "12.5"


def test_a_number_never_passes_through_a_float(admin: Caller, org: str) -> None:
    """An amount that a float cannot hold arrives to the last micro-credit."""
    content = f'{{"account": "{org}", "amount": 999999999.999999}}'
    assert admin.post("/v1/credits/issue", content=content).json()["amount"] == "999999999.999999"


@pytest.mark.parametrize(
    ("path", "content", "field"),
    [
        ("/v1/credits/issue", '{"account": "a", "amount": "1", "amount": "2"}', "amount"),
        ("/v1/credits/issue", '{"account": "a", "amount": "1", "\\u0061mount": "1"}', "amount"),
        (
            "/v1/credits/issue",
            '{"account": "a", "amount": "1", "metadata": {"t": "x", "t": "y"}}',
            "metadata.t",
        ),
        (
            "/v1/credits/issue:batch",
            f'{{"items": [{ITEM}, {ITEM[:-1]}, "account": "b"}}]}}',
            "items[1].account",
        ),
        (
            "/v1/heartbeats",
            f'{{"beats": [{BEAT[:-1]}, "seq": 2}}]}}',
            "beats[0].seq",
        ),
        (
            "/v1/heartbeats",
            f'{{"beats": [{BEAT[:-1]}, "seq": 2}}, {ESCAPED}]}}',
            "beats[0].seq",
        ),
        ("/v1/heartbeats", '{"beats": [], "node": "a", "node": "b"}', "node"),
    ],
)
def test_a_field_that_is_given_twice_is_refused(
    admin: Caller, path: str, content: str, field: str
) -> None:
    """At any depth, however its name is written, in heartbeats too: 422 that names the field."""
    answer = admin.post(path, content=content)
    assert problem(answer) == (422, "invalid_request")
    assert answer.json()["field"] == field
    assert "twice" in answer.json()["detail"]


def test_the_same_names_in_different_objects_are_no_repeats(admin: Caller, org: str) -> None:
    """Names that are values, and names that recur in other objects, are all right."""
    item = {"account": org, "amount": "1", "metadata": {"account": "account", "amount": "1"}}
    answer = admin.made("/v1/credits/issue:batch", {"items": [item, item]})
    assert [each["status"] for each in answer["results"]] == [201, 201]
    beats = [{"reservation_id": "seq", "seq": 1, "used_ms": 0}] * 2
    answer = admin.made("/v1/heartbeats", {"beats": beats, "node": "used_ms"})
    assert len(answer["results"]) == len(beats)


@pytest.mark.parametrize(
    "content",
    ["", "{", "nonsense", '{"amount": NaN}', '{"account": "\\ud800"}', b"\xff\xfe", "[" * 5_000],
)
def test_what_is_not_json_is_400(admin: Caller, content: str | bytes) -> None:
    """Broken JSON, broken text and absurd nesting end at the edge."""
    answer = admin.post(
        "/v1/credits/issue", content=content, headers={"content-type": "application/json"}
    )
    assert problem(answer) in {(400, "malformed_request"), (422, "invalid_request")}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/accounts", {"path": "Acme"}, "path"),
        ("/v1/accounts", {"path": "a/b/c/d"}, "path"),
        ("/v1/accounts", {"path": "acme/balance"}, "path"),
        ("/v1/accounts", {"path": "acme/../x"}, "path"),
        ("/v1/accounts", {"path": "acme", "model": "free"}, "model"),
        ("/v1/accounts", {"path": "acme", "credit_limit": "-1"}, "credit_limit"),
        ("/v1/accounts", {"path": "acme", "metadata": {"k": 1}}, "metadata"),
        ("/v1/accounts", {"path": "acme", "metadata": {"k": "x" * 501}}, "metadata"),
        ("/v1/accounts", {"path": "acme", "metadata": {"k y": "x"}}, "metadata"),
        ("/v1/accounts", {"path": "acme", "metadata": {"k": "a\0b"}}, "metadata"),
        (
            "/v1/accounts",
            {"path": "acme", "metadata": {str(n): "x" for n in range(21)}},
            "metadata",
        ),
        ("/v1/credits/issue", {"account": "a", "amount": "1", "priority": -1}, "priority"),
        ("/v1/credits/issue", {"account": "a", "amount": "1", "priority": 1.5}, "priority"),
        ("/v1/credits/issue", {"account": "a", "amount": "1", "source": "air"}, "source"),
        (
            "/v1/credits/issue",
            {"account": "a", "amount": "1", "expires_at": "2026-01-01T00:00:00"},
            "expires_at",
        ),
        (
            "/v1/credits/issue",
            {"account": "a", "amount": "1", "expires_at": "2026-02-30T00:00:00Z"},
            "expires_at",
        ),
        ("/v1/credits/issue", {"account": "a", "amount": "1", "expires_at": 5}, "expires_at"),
        ("/v1/reservations", {"account": "a", "job_id": "", "gpu_type": "x"}, "job_id"),
        ("/v1/reservations", {"account": "a", "job_id": "a\nb", "gpu_type": "x"}, "job_id"),
        ("/v1/reservations", {"account": "a", "job_id": "x" * 201, "gpu_type": "x"}, "job_id"),
        (
            "/v1/reservations",
            {"account": "a", "job_id": "j", "gpu_type": "x", "gpu_count": 0},
            "gpu_count",
        ),
        (
            "/v1/reservations",
            {"account": "a", "job_id": "j", "gpu_type": "x", "window_seconds": 10**9},
            "window_seconds",
        ),
        ("/v1/prices", {"gpu_type": "x", "credits_per_gpu_hour": "-1"}, "credits_per_gpu_hour"),
        ("/v1/keys", {"role": "root"}, "role"),
    ],
)
def test_values_out_of_bounds_are_422_and_name_the_field(
    admin: Caller, path: str, body: dict[str, Any], field: str
) -> None:
    """The answer says which field is wrong and what would be right."""
    answer = admin.post(path, body)
    assert problem(answer) == (422, "invalid_request")
    assert answer.json()["field"] == field


def test_unknown_fields_are_refused(admin: Caller) -> None:
    """A misspelt field is an error, not silence."""
    answer = admin.post("/v1/credits/issue", {"account": "a", "amount": "1", "expiry": "x"})
    assert problem(answer) == (422, "invalid_request")
    assert "expiry" in answer.json()["detail"]
    answer = admin.get("/v1/prices", params={"gpu": "x"})
    assert problem(answer) == (422, "invalid_request")
    assert problem(admin.get("/v1/prices?limit=5&limit=6")) == (422, "invalid_request")
    assert problem(admin.get("/v1/prices?limit=0")) == (422, "invalid_request")
    assert problem(admin.get("/v1/prices?cursor=x'")) == (422, "invalid_request")


def test_a_body_that_is_too_large_is_413(admin: Caller) -> None:
    """The bound holds for announced and for streamed bodies."""
    large = b'{"path": "' + b"a" * (5 * 1024 * 1024) + b'"}'
    assert problem(admin.post("/v1/accounts", content=large)) == (413, "too_large")
    parts = (large[start : start + 65_536] for start in range(0, len(large), 65_536))
    assert problem(admin.post("/v1/accounts", content=parts)) == (413, "too_large")


def test_batches_are_bounded(admin: Caller) -> None:
    """A batch has a largest size, and is not empty."""
    item = {"account": "a", "amount": "1"}
    for items in ([], [item] * 1_001):
        answer = admin.post("/v1/credits/issue:batch", {"items": items})
        assert problem(answer) == (422, "invalid_request")
    beats = [{"reservation_id": "rsv_1_1", "seq": 1, "used_ms": 0}] * 5_001
    assert problem(admin.post("/v1/heartbeats", {"beats": beats})) == (422, "invalid_request")


def test_another_media_type_is_415(admin: Caller) -> None:
    """Only JSON is read."""
    answer = admin.post("/v1/accounts", content="path=acme", headers={"content-type": "text/plain"})
    assert problem(answer) == (415, "unsupported_media_type")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_kept_as_text(admin: Caller, org: str, gpu_type: str, text: str) -> None:
    """Names, metadata and filters are data wherever they go, and come back unchanged."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100", "metadata": {"note": text}})
    lease = admin.made(
        "/v1/reservations",
        {
            "account": org,
            "job_id": text,
            "node": text,
            "gpu_type": gpu_type,
            "metadata": {"label": text},
        },
    )
    assert (lease["job_id"], lease["node"]) == (text, text)
    assert lease["metadata"] == {"label": text}
    place = {"gpu_type": text, "region": text.replace("/", "")}  # types have slashes, regions none
    admin.made("/v1/prices", {**place, "credits_per_gpu_hour": "1"})
    listed = admin.read("/v1/prices", params=place)["prices"]
    assert {price["gpu_type"] for price in listed} == {text.strip().lower()}
    assert admin.read("/v1/audit", params={"actor": text})["audit"] == []
    topup = {"account": org, "amount": "1", "payment_reference": text}
    assert admin.made("/v1/topups", topup)["payment_reference"] == text


def test_filters_understand_offsets(admin: Caller) -> None:
    """An offset with a plus sign is the same instant, encoded in the query or not."""
    name = fresh_name("gpu-")
    start = "2026-03-01T04:00:00+04:00"
    price = {"gpu_type": name, "credits_per_gpu_hour": "1", "effective_from": start}
    assert admin.made("/v1/prices", price)["effective_from"] == "2026-03-01T00:00:00Z"
    for when, count in (
        ("2026-03-01T00:00:00Z", 1),
        ("2026-02-28T23:59:59.999999Z", 0),
        ("2026-03-01T04:00:00+04:00", 1),
        ("2026-03-01T04:00:00%2B04:00", 1),
        ("2026-03-01T03:59:59+04:00", 0),
        ("2026-03-01T14:00:00+14:00", 1),
        ("2026-02-28T10:00:00-14:00", 1),
    ):
        found = admin.read(f"/v1/prices?gpu_type={name}&effective_by={when}")
        assert len(found["prices"]) == count, when


def test_the_field_that_does_not_fit_is_named(admin: Caller, org: str) -> None:
    """Wrong, unknown and missing fields are named in full, in bodies, batches and queries."""
    good = {"account": org, "amount": "1"}
    for path, body, field in (
        ("/v1/credits/issue", {**good, "amount": "x"}, "amount"),
        ("/v1/credits/issue", {**good, "amuont": "1"}, "amuont"),
        ("/v1/credits/issue", {"account": org}, "amount"),
        ("/v1/credits/issue:batch", {"items": [good, {"account": org}]}, "items[1].amount"),
        ("/v1/credits/issue?when=now", good, "when"),
    ):
        answer = admin.post(path, body)
        assert problem(answer) == (422, "invalid_request")
        assert answer.json()["field"] == field
        assert answer.json()["detail"].startswith(f"{field}: ")


def test_labels_of_a_transfer_are_kept_and_found(admin: Caller, org: str) -> None:
    """A transfer's metadata is in its answer and in the audit log, which can be filtered by it."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "10"})
    move = {"from": org, "to": f"{org}/vision", "amount": "1"}
    moved = admin.made("/v1/credits/transfer", {**move, "metadata": {"why": "q4", "by": "cfo"}})
    admin.made("/v1/credits/transfer", {**move, "metadata": {"why": "q3"}})
    assert moved["metadata"] == {"why": "q4", "by": "cfo"}
    found = admin.read("/v1/audit", params={"account": org, "metadata": "why=q4"})["audit"]
    assert [(act["action"], act["new"]["transfer_id"]) for act in found] == [
        ("credits.transfer", moved["transfer_id"])
    ]


def test_an_instant_to_come_is_answered_as_of_now(admin: Caller, org: str) -> None:
    """The books do not speak of the future: the answer says as of when it is."""
    ends = admin.instant(days=30)
    admin.made("/v1/credits/issue", {"account": org, "amount": "10", "expires_at": ends})
    later = admin.instant(days=60)
    for query in ({"at": later}, {"known_at": later}, {"at": later, "known_at": later}):
        balance = admin.read(f"/v1/accounts/{org}/balance", params=query)
        assert balance["available"] == "10"
        assert balance["as_of"] < ends


def test_a_past_balance_claims_nothing_that_is_known_of_now_only(admin: Caller, org: str) -> None:
    """What has not started is told of now; of the past it is null, not nought."""
    grant = {"account": org, "amount": "10", "starts_at": admin.instant(days=9)}
    admin.made("/v1/credits/issue", grant)
    balance = f"/v1/accounts/{org}/balance"
    assert admin.read(balance)["pending"] == "10"
    past = admin.read(balance, params={"at": admin.instant()})
    assert (past["available"], past["pending"], past["overrun"]) == ("0", None, None)


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        (
            "/v1/credits/issue",
            {"account": "acme", "amount": "1", "source": "gift"},
            "source: must be one of allowance, promo.",
        ),
        (
            "/v1/credits/issue:batch",
            {"items": [{"account": "acme", "amount": "1", "source": "gift"}]},
            "items[0].source: must be one of allowance, promo.",
        ),
        ("/v1/accounts", {"path": "a", "model": 7}, "model: Expected `str`, got `int`."),
        (
            "/v1/reservations",
            {"account": "a", "job_id": "j", "gpu_type": "t", "window_seconds": 10**6},
            "window_seconds: must be at most 86400.",
        ),
    ],
)
def test_what_would_be_right_is_said(admin: Caller, path: str, body: Any, said: str) -> None:
    """A word that is none of a few is told which they are, and a number its bound."""
    answer = admin.post(path, body)
    assert problem(answer) == (422, "invalid_request")
    assert answer.json()["detail"] == said


def test_a_filter_that_is_no_word_is_told_the_words(admin: Caller) -> None:
    """Queries say it as bodies do."""
    answer = admin.get("/v1/accounts?model=gift")
    assert answer.json()["detail"] == "model: must be one of postpaid, prepaid."


def test_a_batch_with_too_many_items_is_refused_before_its_items_are_read(admin: Caller) -> None:
    """The count alone is enough: items that are no beats at all are not looked at."""
    items = ",".join(['{"nonsense": 1}'] * 5_001)
    answer = admin.post("/v1/heartbeats", content=f'{{"beats": [{items}]}}')
    assert problem(answer) == (422, "invalid_request")
    assert answer.json()["field"] == "beats"
    assert "at most 5000 items" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "most"), [("/v1/heartbeats", 2_097_152), ("/v1/credits/issue", 262_144)]
)
def test_bodies_have_a_bound_each(admin: Caller, path: str, most: int) -> None:
    """A batch may be larger than a single thing; beyond its bound it is 413 with the number."""
    answer = admin.post(path, content=" " * (most + 1))
    assert problem(answer) == (413, "too_large")
    assert str(most) in answer.json()["detail"]
