"""Amounts, instants and names on the wire, without a server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpucredits.core.money import AMOUNT_MAX, format_credits
from gpucredits.wire.credit import IssueRequest, TransferRequest, issue_from_wire
from gpucredits.wire.reservation import format_rate
from gpucredits.wire.scalars import decoder_of, format_instant, parse_instant, to_plain

ISSUE = decoder_of(IssueRequest)
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda m: timezone(timedelta(minutes=m)))


@given(st.integers(1, AMOUNT_MAX), st.booleans())
def test_every_amount_survives_the_wire(micros: int, as_number: bool) -> None:
    """To the micro-credit, as a string and as a number."""
    text = format_credits(micros)
    amount = text if as_number else f'"{text}"'
    request = ISSUE.decode(f'{{"account": "acme", "amount": {amount}}}')
    assert issue_from_wire(request).amount == micros


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
    [(36_000_000, "0.01"), (60_000_000, "0.016666666666"), (0, "0"), (3_600_000_000, "1")],
)
def test_a_rate_per_second_is_exact_where_it_can_be(per_hour: int, text: str) -> None:
    """Cut after twelve decimals, never rounded up."""
    assert format_rate(per_hour) == text
