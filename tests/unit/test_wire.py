"""Amounts, instants and names on the wire, without a server."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpucredits.core.money import AMOUNT_MAX, format_credits
from gpucredits.wire.ledger.credit import IssueRequest, TransferRequest, issue_from_wire
from gpucredits.wire.ledger.reservation import format_rate
from gpucredits.wire.scalars import (
    Amount,
    Credits,
    HourPrice,
    Name,
    decoder_of,
    format_instant,
    from_wire,
    parse_instant,
    schema_of,
    to_plain,
)

ISSUE = decoder_of(IssueRequest)
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda m: timezone(timedelta(minutes=m)))


@given(st.integers(1, AMOUNT_MAX), st.booleans())
def test_every_amount_survives_the_wire(micros: int, as_number: bool) -> None:
    """To the micro-credit, as a string and as a number."""
    text = format_credits(micros)
    amount = text if as_number else f'"{text}"'
    request = ISSUE.decode(f'{{"account": "acme", "amount": {amount}}}')
    assert issue_from_wire(request).amount == micros


NEAR_BOUNDS = st.sampled_from(
    [
        *("0", "00.0", "1000000", "1000000.000001", "0001000000.0", "00001000000", "1000001"),
        *("999999999.999999", "0999999999", "00999999999", "1000000000", "1000000000.000000"),
        *("1000000000.000001", "1000000001", "01000000000", "9999999999", "10000000000", "1."),
    ]
)


@pytest.mark.parametrize("kind", [Credits, Amount, HourPrice])
@given(text=NEAR_BOUNDS | st.from_regex(r"\A[0-9]{1,12}(\.[0-9]{1,7})?\Z"))
def test_the_documented_bounds_of_amounts_are_the_rule(kind: type, text: str) -> None:
    """The OpenAPI schema takes a text, or a number, exactly where the rule takes it."""
    as_text, as_number = schema_of(kind)["anyOf"]
    try:
        from_wire(kind, text)
        is_taken = True
    except ValueError:
        is_taken = False
    assert (re.search(as_text["pattern"], text) is not None) is is_taken
    assert f"{as_number['maximum']}" in schema_of(kind)["description"]
    most = as_number["maximum"]
    from_wire(kind, most)
    with pytest.raises(ValueError, match=f"{most}"):
        from_wire(kind, most + 1)


@given(st.datetimes(datetime(1970, 1, 3), datetime(9999, 12, 29), timezones=OFFSETS))  # noqa: DTZ001  # the strategy adds the zones
def test_every_offset_is_the_same_instant(moment: datetime) -> None:
    """Written with any offset, and with its plus sign lost in a query, an instant is itself."""
    text = moment.isoformat()
    micros = parse_instant(text)
    assert micros == parse_instant(text.replace("+", " "))
    back = datetime.fromisoformat(format_instant(micros))
    assert back == moment
    assert back.tzinfo == UTC


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01",
        "2026-03-01T00:00:00",
        "2026-03-01 00:00:00Z",
        "2026-03-01T00:00:00.1234567Z",
        "2026-03-01T24:00:01Z",
        "2026-13-01T00:00:00Z",
        "2026-03-01T00:00:60Z",
        "1969-12-31T23:59:59Z",
        "2026-03-01T00:00:00+4:00",
        "2026-W09-1T00:00:00Z",
        "٢٠٢٦-03-01T00:00:00Z",
        "now",
        "",
    ],
)
def test_what_is_not_an_instant_is_refused(text: str) -> None:
    """Dates without times, times without offsets and days that never were."""
    with pytest.raises(ValueError, match="RFC 3339"):
        parse_instant(text)


def test_equal_requests_have_equal_plain_forms() -> None:
    """However its JSON was written, a request is fingerprinted the same."""
    texts = (
        '{"account": "acme", "amount": "5", "expires_at": "2026-03-01T04:00:00+04:00"}',
        '{"expires_at":"2026-03-01T00:00:00.000Z","amount":5.000,"account":"acme","priority":100}',
    )
    plain = {
        msgspec.json.encode(ISSUE.decode(text), enc_hook=to_plain, order="sorted") for text in texts
    }
    assert len(plain) == 1


def test_from_and_to_are_the_words_of_a_transfer() -> None:
    """Python's keyword does not leak into the API."""
    request = decoder_of(TransferRequest).decode('{"from": "a", "to": "b", "amount": "1"}')
    assert (request.source, request.target) == ("a", "b")


@pytest.mark.parametrize(
    ("per_hour", "text"),
    [
        (36_000_000_000, "0.01"),
        (60_000_000_000, "0.016666666666"),
        (0, "0"),
        (3_600_000_000_000, "1"),
    ],
)
def test_a_rate_per_second_is_exact_where_it_can_be(per_hour: int, text: str) -> None:
    """Cut after twelve decimals, never rounded up."""
    assert format_rate(per_hour) == text


@pytest.mark.parametrize(
    "hidden",
    "\u00ad\u034f\u115f\u1160\u17b4\u180e\u200b\u202e\u2060\u3164\uffa0\ufffb\U000e0041\U000e0100",
)
def test_two_names_that_look_alike_are_one(hidden: str) -> None:
    """A name has no character that nobody sees; those that are seen stay."""
    with pytest.raises(ValueError, match="printable"):
        from_wire(Name, f"train{hidden}7")
    assert from_wire(Name, "träin-7 日本 ❤️") == "träin-7 日本 ❤️"
