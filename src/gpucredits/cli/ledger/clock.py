"""``gpucredits clock``: orgs whose clock a wrong time has left ahead, and their repair."""

from __future__ import annotations

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.session import DRY_RUN, PageAt, Session, Write, pages, writes
from gpucredits.client import calls as client_calls
from gpucredits.core.duration import format_seconds
from gpucredits.wire.ledger.clock import ClockRepairAnswer, OrgClockPage


@click.group(cls=Group)
def clock() -> None:
    """Clocks of orgs, and their repair."""


@clock.command("status")
@pages
def status(session: Session, *, page: PageAt, follow: bool) -> None:
    """The database's clock, and the orgs whose own clock is ahead of it."""
    call = client_calls.org_clock_page(**page)
    session.run_pages(call, show_status, items="orgs", follow=follow)


@clock.command("repair")
@click.argument("org", type=values.account, required=False)
@click.option("--all", "every", is_flag=True, help="Repair every org whose clock is ahead.")
@click.option("--reason", required=True, help="Why, for the audit log.")
@writes
def repair(session: Session, org: str | None, *, every: bool, reason: str, write: Write) -> None:
    """Bring the clock of ORG back to the present, with everything that was stamped ahead of it."""
    if every is (org is not None):
        raise click.UsageError("Name one org, or give --all for every org that is ahead.")
    if every and write["key"] is not None:
        raise click.UsageError("--idempotency-key is for one org: --all repairs each org once.")
    if org is not None:
        session.run(client_calls.repair_clock(org, reason=reason, **write), show_repair)
        return
    repair_all(session, reason, is_dry=write["dry_run"])


def repair_all(session: Session, reason: str, *, is_dry: bool) -> None:
    """Repair every org that is ahead; for scripts the answers are one document."""
    with session.client() as client:
        replies = [
            client.fetch(client_calls.repair_clock(row.org, reason=reason, dry_run=is_dry))
            for row in client.org_clocks()
        ]
    if is_dry:
        click.echo(DRY_RUN, err=session.as_json)
    if session.as_json:
        output.print_json(b'{"repairs":[' + b",".join(each.body for each in replies) + b"]}")
        return
    for reply in replies:
        show_repair(reply.value)
    if not replies:
        output.say("No org's clock is ahead.")


def show_status(page: OrgClockPage) -> None:
    """The time, and a page of orgs."""
    output.print_facts(
        [
            ("now", output.instant(page.now)),
            ("off by", f"{page.off_seconds:g} s" if page.off_seconds else "nothing"),
            ("jumps", str(page.jumps)),
        ]
    )
    output.print_table(
        ["org", "clock", ">ahead"],
        [
            [row.org, output.instant(row.clock), format_seconds(row.ahead_seconds)]
            for row in page.orgs
        ],
        empty="No org's clock is ahead.",
    )


def show_repair(answer: ClockRepairAnswer) -> None:
    """What a repair changed, and what it could not mend."""
    if not answer.repaired:
        output.say(f"The clock of {answer.org} is not ahead: nothing was changed.")
        return
    output.print_facts(
        [
            ("org", answer.org),
            ("clock", f"{output.instant(answer.clock_before)} -> {output.instant(answer.now)}"),
            ("leases", str(answer.lease_count)),
            ("grants", str(answer.grant_count)),
            ("windows", str(len(answer.windows))),
            ("rate limits", str(len(answer.rate_limits))),
        ]
    )
    output.print_table(
        ["grant", "account", "now", ">credits"],
        [[row.grant_id, row.account, row.mend, row.amount] for row in answer.grants],
        empty="No grant was changed.",
    )
    if answer.left_count:
        output.say(f"Not mended: {answer.left_count}")
    output.print_table(
        ["what", "id", "account", "stays"],
        [[row.kind, row.id, row.account, row.detail] for row in answer.left],
        empty="Everything was mended.",
    )
