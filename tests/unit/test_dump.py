"""The dump: round trips, determinism, older versions, and every kind of damage."""

import hashlib
import struct
from pathlib import Path
from typing import Any

import pytest

from gpucredits import CreditTracker, DumpError, TenantCredits
from oracle.version1_writer import version1

FIXTURES = Path(__file__).parent / "fixtures"
GRANTS = [(0, 100, 10, "gift"), (5, 50, 7, "pièce"), (5, 60, 3, "")]
CHARGES = [(6, 4, "job-1"), (8, 2, None), (9, 5, "job-2")]
REFUNDS = [(20, 2, "job-1"), (30, 1, "not-yet")]


def sample() -> Any:
    """A tracker with every kind of event in it."""
    tracker = CreditTracker()
    for start, expiration, amount, name in GRANTS:
        tracker.add(name, amount, start, expiration)
    for time, amount, charge_id in CHARGES:
        assert tracker.charge(amount, time, charge_id) is not None
    for time, amount, name in REFUNDS:
        tracker.refund(name, amount, time)
    return tracker


def sealed(data: bytes) -> Any:
    """A version 2 dump with its checksum made right again."""
    return data[:-32] + hashlib.sha256(data[:-32]).digest()


def test_round_trip_gives_an_equal_tracker_and_equal_bytes() -> None:
    """Loading a dump gives the same answers, the same history and the same bytes."""
    tracker = sample()
    loaded = CreditTracker.load(tracker.dump())
    assert loaded == tracker
    assert loaded.dump() == tracker.dump()
    assert [loaded.get_balance(t) for t in range(110)] == [
        tracker.get_balance(t) for t in range(110)
    ]


def test_loaded_tracker_keeps_every_rule() -> None:
    """After loading, ids stay taken, refunds stay counted and waiting refunds still wait."""
    loaded = CreditTracker.load(sample().dump())
    with pytest.raises(ValueError, match="already charged"):
        loaded.charge(1, 40, "job-1")
    with pytest.raises(ValueError, match="2 left to refund"):
        loaded.refund("job-1", 3, 40)
    assert loaded.charge(1, 25, "not-yet") is not None
    assert loaded.get_balance(30) == loaded.get_balance(25) + 1


def test_empty_tracker_round_trips() -> None:
    """A tracker without events has a dump too."""
    assert CreditTracker.load(CreditTracker().dump()) == CreditTracker()


def test_order_of_unrelated_arrivals_does_not_show() -> None:
    """The same events in another order of arrival, asked or not, give the same bytes."""
    other = CreditTracker()
    for time, amount, name in REFUNDS:
        other.refund(name, amount, time)
    for start, expiration, amount, name in reversed(GRANTS):
        other.add(name, amount, start, expiration)
        other.get_balance(70)
    for time, amount, charge_id in CHARGES:
        other.charge(amount, time, charge_id)
    assert other.dump() == sample().dump()


def test_integers_of_any_size_and_names_of_any_kind_round_trip() -> None:
    """Amounts and times beyond 64 bits, and names with newlines or lone surrogates, come back."""
    tracker = CreditTracker()
    for power in (0, 7, 8, 15, 16, 31, 32, 63, 64, 65, 300):
        tracker.add(f"line\n{power}\udc80", 1 << power, -(1 << power), (1 << power) + 1)
        tracker.charge(1, power, f"\n{power}")
    assert CreditTracker.load(tracker.dump()) == tracker


def test_written_bytes_stay_what_they_were() -> None:
    """The committed dump of version 2 is what is written today."""
    assert sample().dump() == (FIXTURES / "dump-v2.bin").read_bytes()


def test_version_1_loads() -> None:
    """The committed dump of version 1 loads into the same history."""
    data = (FIXTURES / "dump-v1.bin").read_bytes()
    assert data == version1(GRANTS, CHARGES, REFUNDS)
    assert CreditTracker.load(data) == sample()


@pytest.mark.parametrize("fixture", ["dump-v1.bin", "dump-v2.bin"])
def test_truncation_at_every_byte_is_an_error(fixture: Any) -> None:
    """No prefix of a dump loads."""
    data = (FIXTURES / fixture).read_bytes()
    for size in range(len(data)):
        with pytest.raises(DumpError):
            CreditTracker.load(data[:size])


@pytest.mark.parametrize("fixture", ["dump-v1.bin", "dump-v2.bin"])
def test_change_of_any_byte_is_an_error(fixture: Any) -> None:
    """No single changed byte goes unnoticed."""
    data = (FIXTURES / fixture).read_bytes()
    for at in range(len(data)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[at] ^= flip
            with pytest.raises(DumpError):
                CreditTracker.load(bytes(damaged))


@pytest.mark.parametrize("fixture", ["dump-v1.bin", "dump-v2.bin"])
def test_trailing_bytes_are_an_error(fixture: Any) -> None:
    """Nothing may follow a dump."""
    with pytest.raises(DumpError, match=r"trailing|checksum"):
        CreditTracker.load((FIXTURES / fixture).read_bytes() + b"\0")


def test_errors_say_what_is_wrong() -> None:
    """A newer version, an unknown one, a foreign file and a cut one are told apart."""
    data = sample().dump()
    cases = {
        "version 3 is newer": data[:8] + struct.pack("<H", 3) + data[10:],
        "version 0 is unknown": data[:8] + struct.pack("<H", 0) + data[10:],
        "not a dump": b"PK\3\4" + data,
        "truncated": data[:-1],
        "1 trailing byte": data + b"\0",
        "corrupt: the checksum": data[:-1] + bytes([data[-1] ^ 1]),
        "unknown flags": data[:10] + b"\1\0" + data[12:],
    }
    for message, damaged in cases.items():
        with pytest.raises(DumpError, match=message):
            CreditTracker.load(damaged)


@pytest.mark.parametrize("data", [b"", b"G", b"{}"])
def test_what_is_no_dump_is_an_error(data: bytes) -> None:
    """Nothing, too little and something else do not load."""
    with pytest.raises(DumpError):
        CreditTracker.load(data)


def test_rules_hold_even_under_a_right_checksum() -> None:
    """A dump that was made wrong on purpose is refused by its content."""
    cases = {
        "comes twice": version1([], [(1, 1, "a"), (2, 1, "a")], []),
        "refunds exceed": version1([], [(1, 1, "a")], [(2, 2, "a")]),
        "not in order": version1([], [(2, 1, "a"), (1, 1, "b")], []),
        "grant lengths": version1([(5, 4, 1, "g")], [], []),
        "grant amounts": version1([(5, 6, -1, "g")], [], []),
        "charge amounts": version1([], [(1, -1, "a")], []),
        "refund amounts": version1([], [(1, 1, "a")], [(2, -2, "a")]),
    }
    for message, data in cases.items():
        with pytest.raises(DumpError, match=message):
            CreditTracker.load(data)


def test_no_byte_of_version_2_crashes_the_reader() -> None:
    """Whatever a byte holds under a right checksum, the reader answers or raises DumpError."""
    data = sample().dump()
    for at in range(len(data) - 32):
        for value in (0, 1, 2, 0x20, 0x7F, 0xFF):
            damaged = bytearray(data)
            damaged[at] = value
            try:
                loaded = CreditTracker.load(sealed(bytes(damaged)))
            except DumpError:
                continue
            assert CreditTracker.load(loaded.dump()) == loaded


def test_tenants_round_trip_and_refuse_damage() -> None:
    """A dump of tenants comes back whole, and any cut or change is an error."""
    tenants = TenantCredits()
    tenants.tenant("b").add("g", 1, 0, 9)
    tenants.tenant("a")
    data = tenants.dump()
    assert TenantCredits.load(data) == tenants
    for size in range(len(data)):
        with pytest.raises(DumpError):
            TenantCredits.load(data[:size])
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 0xFF
        with pytest.raises(DumpError):
            TenantCredits.load(bytes(damaged))
