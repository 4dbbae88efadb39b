"""``gpucredits audit``: who did what to which resource."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Command
from gpucredits.cli.terminal.session import PageAt, Session, pages
from gpucredits.client import calls as client_calls
from gpucredits.wire.access.keys import AuditPage

FOR_PROGRAMS: Final = ("fingerprint",)  # of a key: verify compares it, and --json shows it whole


@click.command(cls=Command)
@click.argument("account", type=values.account, required=False)
@click.option("--actor", help="Only acts of this key, such as key_0_1.")
@click.option("--action", help="Only acts of this kind, such as credits.issue.")
@click.option("--resource", help="Only acts on this: an account, or an id such as rsv_1_9.")
@click.option("--since", type=values.past, help="From this instant on: a date, or 7d (ago).")
@click.option("--until", type=values.past, help="Before this instant: a date, or 1d (ago).")
@pages
def audit(  # noqa: PLR0913  # one argument for each filter
    session: Session,
    account: str | None,
    *,
    actor: str | None,
    action: str | None,
    resource: str | None,
    since: datetime | None,
    until: datetime | None,
    page: PageAt,
    follow: bool,
) -> None:
    """Administrative acts on ACCOUNT or all, the latest first."""
    call = client_calls.audit_page(
        account=account,
        actor=actor,
        action=action,
        resource=resource,
        since=since,
        until=until,
        **page,
    )
    session.run_pages(call, show_acts, items="audit", follow=follow)


def show_acts(page: AuditPage) -> None:
    """A page of acts; of what an act changed only that which differs is shown."""
    output.print_table(
        [">act", "at", "actor", "action", "resource", "change"],
        [
            [
                str(row.audit_id),
                output.instant(row.at),
                row.actor,
                row.action,
                row.resource,
                change(row.old, row.new),
            ]
            for row in page.audit
        ],
        empty="No acts.",
    )


def change(old: Any, new: Any) -> str:
    """The new values on one line, without those that say nothing to people."""
    if not isinstance(new, Mapping):
        return "" if new is None else str(new)
    before = old if isinstance(old, Mapping) else {}
    return " ".join(
        f"{name}={value}"
        for name, value in new.items()
        if value not in (None, {}) and before.get(name) != value and name not in FOR_PROGRAMS
    )
