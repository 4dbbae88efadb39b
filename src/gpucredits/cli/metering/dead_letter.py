"""``gpucredits dead-letter``: messages of the bus that could not be used."""

from __future__ import annotations

import json
from typing import Any, get_args

import click

from gpucredits.cli.terminal import output
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.session import PageAt, Session, Write, calls, pages, writes
from gpucredits.client import calls as client_calls
from gpucredits.wire.metering.dead_letter import DeadLetterAnswer, DeadLetterPage, LetterStateName


@click.group("dead-letter", cls=Group)
def dead_letter() -> None:
    """Messages of the bus that could not be used."""


@dead_letter.command("list")
@click.option(
    "--state",
    type=click.Choice([*get_args(LetterStateName), "any"]),
    default="waiting",
    show_default=True,
    help="Only dead letters in this state.",
)
@pages
def list_letters(session: Session, *, state: str, page: PageAt, follow: bool) -> None:
    """List dead letters, the latest first."""
    wanted: Any = None if state == "any" else state
    call = client_calls.dead_letter_page(state=wanted, **page)
    session.run_pages(call, show_letters, items="dead_letters", follow=follow)


@dead_letter.command("show")
@click.argument("letter_id")
@calls
def show(session: Session, letter_id: str) -> None:
    """Show a dead letter with its message, which can be mended and replayed."""
    session.run(client_calls.dead_letter(letter_id), show_letter)


@dead_letter.command("replay")
@click.argument("letter_id")
@click.option(
    "--body",
    type=click.File("rb"),
    help="A file with the mended message as JSON; - for standard input.",
)
@writes
def replay(session: Session, letter_id: str, *, body: Any, write: Write) -> None:
    """Use the message of a dead letter again: as it is, or as mended in a file."""
    call = client_calls.replay_dead_letter(letter_id, body=mended(body), **write)
    session.run(call, show_letter)


@dead_letter.command("drop")
@click.argument("letter_id")
@writes
def drop(session: Session, letter_id: str, *, write: Write) -> None:
    """Drop a dead letter; its message stays readable."""
    session.run(client_calls.drop_dead_letter(letter_id, **write), show_letter)


def mended(body: Any) -> dict[str, Any] | None:
    """The message in a file, if one was given."""
    if body is None:
        return None
    try:
        message = json.load(body)
    except ValueError as error:
        raise click.BadParameter(f"is no JSON: {error}", param_hint="--body") from error
    if not isinstance(message, dict):
        raise click.BadParameter("must be a JSON object", param_hint="--body")
    return message


def show_letters(page: DeadLetterPage) -> None:
    """A page of dead letters."""
    output.print_table(
        ["letter", "at", "topic", "reason", "state", "detail"],
        [
            [
                row.letter_id,
                output.instant(row.received_at),
                row.topic,
                row.reason,
                row.state,
                row.detail,
            ]
            for row in page.dead_letters
        ],
        empty="No dead letters.",
    )


def show_letter(answer: DeadLetterAnswer) -> None:
    """One dead letter and its message."""
    body = answer.body if not answer.is_json else json.dumps(answer.body, ensure_ascii=False)
    output.print_facts(
        [
            ("letter", answer.letter_id),
            ("at", output.instant(answer.received_at)),
            ("from", f"{answer.topic}, partition {answer.partition}, position {answer.position}"),
            ("reason", answer.reason),
            ("detail", answer.detail),
            ("state", answer.state),
            ("decided", output.instant(answer.decided_at)),
            ("by", answer.decided_by),
            ("message", str(body)),
        ]
    )
