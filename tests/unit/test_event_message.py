"""The id of an event: the same for every delivery, and never that of an event that was lost."""

from __future__ import annotations

from dataclasses import replace

from gpucredits.metering.event_message import message_of
from gpucredits.store.metering.events import StoredEvent

EVENT = StoredEvent(
    position=812,
    org_id=1,
    org="acme",
    event_id=87,
    recorded_at=1_772_366_400_000_000,
    type="reservation.opened",
    subject_id=4,
    payload='{"job_id": "train"}',
)


def test_every_delivery_has_the_same_id() -> None:
    """A bus and its readers drop repeats by it."""
    again = message_of(replace(EVENT))
    assert message_of(EVENT).message_id == again.message_id == "evt_1_2f_hg91vteyo0"


def test_a_number_that_is_given_out_again_makes_another_id() -> None:
    """A restored database counts from where it was: its new events are no repeats."""
    later = replace(EVENT, recorded_at=EVENT.recorded_at + 1, payload='{"job_id": "other"}')
    assert message_of(later).message_id != message_of(EVENT).message_id
