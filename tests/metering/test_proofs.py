"""Messages on the bus: what a node told is proven by a server, and nobody else can say so."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gpucredits.metering.usage_message import (
    UnreadableMessageError,
    messages_of,
    prover_of,
    rows_of,
)
from gpucredits.service.metering.dead_letters import list_letters, replay_letter
from gpucredits.service.write.acts import Act
from gpucredits.wire.metering.usage_message import UsageMessage
from support.scenes.metering import PROVER, drain, opened, pipeline_on, publish_raw, use
from support.scenes.scene import Scene, play

TIMES = {"start_ms": 0, "end_ms": 1_000}


def attested(body: bytes, prover: bytes = PROVER) -> list[bool]:
    """Of which events of a message the server believes that a node told them."""
    return [row.is_attested for row in rows_of(body, prover)]


def written(**others: Any) -> bytes:
    """A message of a server with one event that a node told."""
    [message] = messages_of(use(7, [1], is_attested=True, payload=TIMES, **others), "r", PROVER)
    return message.body


def test_a_message_of_a_server_is_believed() -> None:
    """Both kinds of events travel as they are; several of them in one message."""
    rows = [*use(7, [1], is_attested=True), *use(7, [1], is_attested=False)]
    [message] = messages_of(rows, "r", PROVER)
    assert rows_of(message.body, PROVER) == rows
    assert attested(messages_of(use(7, [1]), "r", PROVER)[0].body) == [False]


@pytest.mark.parametrize(
    "change",
    [
        {"proof": ""},
        {"proof": "0" * 64},
        {"proof": "\u00e9"},
        {"org_id": 2},
        {"node": "n2"},
        {"seq": 2},
        {"used_ms": 9},
        {"reservation_id": "rsv_1_8"},
        {"payload": {"start_ms": 0, "end_ms": 999}},
    ],
)
def test_whoever_else_writes_to_the_bus_is_not_believed(change: dict[str, Any]) -> None:
    """An event that was added, or changed in anything, is no node's word."""
    message = msgspec.json.decode(written())
    assert attested(msgspec.json.encode(message)) == [True]  # the control
    if change.keys() <= message.keys():
        message |= change
    else:
        message["events"][0] |= change
    if change == {"org_id": 2}:
        message["events"][0]["reservation_id"] = "rsv_2_7"
    assert attested(msgspec.json.encode(message)) == [False]


def test_an_event_cannot_be_slipped_into_a_message() -> None:
    """The proof is of all events of a message."""
    message = msgspec.json.decode(written(), type=UsageMessage)
    message.events.append(message.events[0])
    assert attested(msgspec.json.encode(message)) == [False, False]


def test_a_server_of_another_database_is_not_believed() -> None:
    """The proof is made with the secret that servers of one database share."""
    assert attested(written(), prover_of(b"other" * 8)) == [False]
    assert prover_of(b"s" * 32) != prover_of(b"t" * 32)


@pytest.mark.parametrize(
    "payload",
    [
        {"start_ms": 5, "end_ms": 4},
        {"start_ms": -1, "end_ms": 4},
        {"start_ms": 0},
        {"start_ms": "0", "end_ms": "4"},
        {"start_ms": 0, "end_ms": True},
        {"start_ms": 0, "end_ms": 2**62},
    ],
)
def test_an_interval_that_nobody_could_read_is_no_message(payload: dict[str, Any]) -> None:
    """It becomes a dead letter, and holds no pass of the reconciler up."""
    [message] = messages_of(use(7, [1], payload=payload), "r", PROVER)
    with pytest.raises(UnreadableMessageError, match="start_ms and end_ms"):
        rows_of(message.body, PROVER)


def test_a_forged_message_is_stored_as_nobodys_word(database: str) -> None:
    """Through the reader of a server: the true message beside it counts, the forged one does not.

    A dead letter that people mend is nobody's word either: they correct bills by hand.
    """

    async def act(stage: Scene) -> None:
        lease = await opened(stage)
        rows = use(lease, [1], is_attested=True, payload=TIMES)
        forged = messages_of(use(lease, [2], is_attested=True, payload=TIMES), "r", b"guess")
        unknown = messages_of(use(999, [3], is_attested=True, payload=TIMES), "r", PROVER)
        async with pipeline_on(stage.pool, "postgres") as pipeline:
            await pipeline.publish_use(rows)
            for each in (*forged, *unknown):
                await publish_raw(pipeline.bus, each.body)
            await drain(pipeline)
        [letter] = await list_letters(stage.pool, state=None, before=99, limit=9)
        mended = msgspec.json.decode(unknown[0].body, type=UsageMessage)
        mended.events[0].reservation_id = f"rsv_1_{lease}"
        staff = Act(org_id=0, actor="key_0_1")
        await replay_letter(stage.pool, staff, letter.letter_id, prover=PROVER, mended=mended)
        kept = await stage.pool.fetch("SELECT seq, is_attested FROM usage_events ORDER BY seq")
        assert [tuple(row) for row in kept] == [(1, True), (2, False), (3, False)]

    play(database, act)
