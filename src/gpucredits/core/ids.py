"""Ids that say what they are: a prefix, the org's number and a number within the org.

A reservation's id names its org, so that a heartbeat finds the org without a look-up. Numbers come
from the org's own counter under its lock, so ids are never random and never reused.
"""

from __future__ import annotations

import re

REQUEST = "ask"
STATEMENT = "stm"
ANOMALY = "anm"
RESERVATION = "rsv"
GRANT = "grt"
TOPUP = "top"
TRANSFER = "trf"
ENTRY = "ent"
PRICE = "prc"
KEY = "key"
QUEUE = "que"
QUOTA = "qta"
RATE_LIMIT = "rtl"
BOOST = "bst"
BUDGET = "bgt"
ACCOUNT = "acc"
EVENT = "evt"
DEAD_LETTER = "dlt"
UNMATCHED = "unm"
ALARM = "alm"

_LEASE_PREFIX = f"{RESERVATION}_"
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_ID = re.compile(r"([a-z]{3})_(0|[1-9a-z][0-9a-z]{0,11})_(0|[1-9a-z][0-9a-z]{0,11})", re.ASCII)


def format_id(prefix: str, org_id: int, number: int) -> str:
    """The text of an id, such as ``rsv_1f_2b3``."""
    return f"{prefix}_{base36(org_id)}_{base36(number)}"


def parse_id(prefix: str, text: str) -> tuple[int, int]:
    """(org, number) of an id; ValueError when it is not an id of this sort."""
    match = _ID.fullmatch(text)
    if match is None or match[1] != prefix:
        raise ValueError(f"must be an id such as {prefix}_1_2f, not {text[:40]!r}")
    return int(match[2], 36), int(match[3], 36)


def lease_number(text: str) -> tuple[int, int] | None:
    """(org, number) of a reservation's id, or None when it is not one. Each heartbeat needs it."""
    if not text.startswith(_LEASE_PREFIX) or not text.isascii():
        return None
    org, _, number = text[len(_LEASE_PREFIX) :].partition("_")
    if not org.isalnum() or not number.isalnum() or len(org) > 12 or len(number) > 12:
        return None
    return int(org, 36), int(number, 36)  # twelve digits fit in a bigint


def base36(number: int) -> str:
    """A number in digits and small letters."""
    if number < 0:
        raise ValueError(f"numbers of ids are not negative: {number}")
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
        if not number:
            return digits
