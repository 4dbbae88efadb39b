"""``gpucredits event``: events in the order of delivery, and their readers."""

from __future__ import annotations

import click

from gpucredits.cli.terminal import output
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.session import PageAt, Session, Write, calls, pages, writes
from gpucredits.client import calls as client_calls
from gpucredits.wire.metering.event import EventConsumerAnswer, EventConsumerPage, EventPage


@click.group(cls=Group)
def event() -> None:
    """Events, and the readers for whom events are kept."""


@event.command("list")
@click.option("--type", "kind", help="Only this type or noun: reservation.opened, reservation.")
@pages
def list_events(session: Session, *, kind: str | None, page: PageAt, follow: bool) -> None:
    """List events, the oldest first; --cursor starts after a position."""
    call = client_calls.event_page(kind=kind, **page)
    session.run_pages(call, show_events, items="events", follow=follow)


@event.command("consumers")
@calls
def consumers(session: Session) -> None:
    """List the readers of events, and how far behind each one is."""
    session.run(client_calls.event_consumers(), show_consumers)


@event.command("acknowledge")
@click.argument("consumer")
@click.argument("position", type=click.IntRange(0))
@writes
def acknowledge(session: Session, consumer: str, position: int, *, write: Write) -> None:
    """Record that CONSUMER has handled all events up to POSITION; makes a new CONSUMER."""
    session.run(client_calls.acknowledge_events(consumer, position, **write), show_consumer)


@event.command("forget")
@click.argument("consumer")
@writes
def forget(session: Session, consumer: str, *, write: Write) -> None:
    """Forget CONSUMER, so that no events are kept for it."""
    session.run(client_calls.forget_event_consumer(consumer, **write), show_consumer)


def show_events(page: EventPage) -> None:
    """A page of events."""
    output.print_table(
        [">position", "at", "event", "org", "type", "subject", "data"],
        [
            [
                str(row.position),
                output.instant(row.time),
                row.id,
                row.source.rpartition("/")[2],
                row.type,
                row.subject,
                " ".join(f"{name}={value}" for name, value in row.data.items()),
            ]
            for row in page.events
        ],
        empty="No events.",
    )


def show_consumers(page: EventConsumerPage) -> None:
    """The readers of events."""
    output.print_table(
        ["consumer", "org", ">position", ">behind", "moved"],
        [
            [
                row.consumer,
                row.org or "all",
                str(row.position),
                str(row.behind),
                output.instant(row.moved_at),
            ]
            for row in page.consumers
        ],
        empty="No readers of events.",
    )


def show_consumer(answer: EventConsumerAnswer) -> None:
    """One reader of events."""
    output.print_facts(
        [
            ("consumer", answer.consumer),
            ("org", answer.org or "all"),
            ("position", str(answer.position)),
            ("behind", str(answer.behind)),
            ("moved", output.instant(answer.moved_at)),
        ]
    )
