"""Finding fields that a body gives twice, without a server."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gpucredits.api.http.bodies import repeated_field
from gpucredits.api.ledger.heartbeats import has_no_repeats
from gpucredits.wire.ledger.heartbeat import HeartbeatsRequest

NAMES = st.sampled_from(["reservation_id", "seq", "used_ms"])
VALUES = {"reservation_id": "rsv_1_1", "seq": 1, "used_ms": 0}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below),
    max_leaves=10,
)


@given(JSON)
def test_what_was_written_from_values_repeats_nothing(value: Any) -> None:
    """No false alarm, whatever the values are."""
    assert repeated_field(json.dumps(value).encode()) is None


@given(st.lists(st.tuples(NAMES, st.booleans(), st.booleans()), max_size=4))
def test_the_cheap_proof_for_heartbeats_never_misses_a_repeat(
    more: list[tuple[str, bool, bool]],
) -> None:
    """Two beats with further fields, plain or with an escape in their names, in either beat."""
    beats: list[list[str]] = [[_field(name) for name in VALUES] for _ in range(2)]
    for name, in_first, is_escaped in more:
        beats[0 if in_first else 1].append(_field(name, is_escaped=is_escaped))
    sent = f'{{"beats": [{{{", ".join(beats[0])}}}, {{{", ".join(beats[1])}}}]}}'.encode()
    body = msgspec.json.decode(sent, type=HeartbeatsRequest)
    assert not (has_no_repeats(sent, body) and repeated_field(sent))
    assert (repeated_field(sent) is None) is (not more)
    assert has_no_repeats(sent, body) or more


def _field(name: str, *, is_escaped: bool = False) -> str:
    written = f"\\u{ord(name[0]):04x}{name[1:]}" if is_escaped else name
    return f'"{written}": {json.dumps(VALUES[name])}'
