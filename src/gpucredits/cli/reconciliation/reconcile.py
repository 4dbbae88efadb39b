"""``gpucredits reconcile``: measured use beside the bill, alarms of drift, use without a lease."""

from __future__ import annotations

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.session import PageAt, Session, Write, calls, pages, writes
from gpucredits.cli.terminal.setting import Set, sets
from gpucredits.client import calls as client_calls
from gpucredits.core.duration import format_seconds
from gpucredits.core.money import count
from gpucredits.wire.reconciliation.comparison import (
    COMPARED_STATES,
    UNMATCHED_STATES,
    ComparedState,
    ComparisonPage,
    DriftAlarmAnswer,
    DriftAlarmPage,
    ModeName,
    ReconcilePolicyAnswer,
    ReconcilerAnswer,
    RunAnswer,
    UnmatchedAnswer,
    UnmatchedPage,
    UnmatchedState,
)


@click.group(cls=Group)
def reconcile() -> None:
    """Compare measured use with bills."""


@reconcile.command("status")
@calls
def status(session: Session) -> None:
    """Show the reconciler's progress, and what waits for people."""
    session.run(client_calls.reconciler(), show_status)


@reconcile.command("run")
@click.option("--account", type=values.account, help="Only leases of this account and below it.")
@click.option("--at-once", is_flag=True, help="Do not wait until an ended lease is quiet.")
@click.option("--again", is_flag=True, help="Also leases that differed and were not posted.")
@writes
def run(session: Session, *, account: str | None, at_once: bool, again: bool, write: Write) -> None:
    """Compare leases that are due now, and post what differs where the policy says so."""
    call = client_calls.run_reconciler(
        account=account, at_once=at_once, again=again, dry_run=write["dry_run"]
    )
    session.run(call, show_run)


@reconcile.command("leases")
@click.argument("account", type=values.account, required=False)
@click.option("--state", type=click.Choice(COMPARED_STATES), help="Only leases in this state.")
@pages
def leases(
    session: Session,
    account: str | None,
    *,
    state: ComparedState | None,
    page: PageAt,
    follow: bool,
) -> None:
    """List compared leases of ACCOUNT and all below it, or of all accounts."""
    call = client_calls.reconciliation_page(account, state=state, **page)
    session.run_pages(call, show_comparisons, items="comparisons", follow=follow)


@reconcile.command("policy")
@click.argument("account", type=values.account)
@calls
def policy(session: Session, account: str) -> None:
    """Show the policy of the reconciler for ACCOUNT."""
    session.run(client_calls.reconciliation_policy(account), show_policy)


@reconcile.command("set")
@click.argument("account", type=values.account)
@click.option(
    "--mode",
    type=click.Choice(["off", "report", "post"]),
    help="What to do about drift [at first: report].",
)
@click.option(
    "--tolerance-ms", type=int, help="Milliseconds of difference that are ignored [at first: 1000]."
)
@click.option(
    "--alarm-percent", type=int, help="An alarm needs this percentage of the bill [at first: 5]."
)
@click.option(
    "--alarm-floor", type=values.amount, help="An alarm needs this many credits [at first: 1]."
)
@click.option(
    "--quiet",
    "quiet_ms",
    type=values.duration,
    help="Compare an ended lease after this time without events [at first: 15m].",
)
@sets(
    {
        "mode": "mode",
        "tolerance-ms": "tolerance_ms",
        "alarm-percent": "alarm_percent",
        "alarm-floor": "alarm_floor",
        "quiet": "quiet_seconds",
    }
)
def set_policy(
    session: Session,
    account: str,
    *,
    mode: ModeName | None,
    tolerance_ms: int | None,
    alarm_percent: int | None,
    alarm_floor: str | None,
    quiet_ms: int | None,
    write: Set,
) -> None:
    """Change the policy for ACCOUNT; accounts below without a policy follow."""
    call = client_calls.set_reconciliation_policy(
        account,
        mode=mode,
        tolerance_ms=tolerance_ms,
        alarm_percent=alarm_percent,
        alarm_floor=alarm_floor,
        quiet_seconds=values.whole_seconds(quiet_ms, "--quiet"),
        **write,
    )
    session.run(call, show_policy)


@reconcile.command("end")
@click.argument("account", type=values.account)
@writes
def end_policy(session: Session, account: str, *, write: Write) -> None:
    """End the policy of ACCOUNT; the account inherits a policy again."""
    session.run(client_calls.end_reconciliation_policy(account, **write), show_policy)


@reconcile.command("alarms")
@click.argument("account", type=values.account, required=False)
@click.option("--acknowledged", is_flag=True, help="Also acknowledged alarms.")
@pages
def alarms(
    session: Session, account: str | None, *, acknowledged: bool, page: PageAt, follow: bool
) -> None:
    """List alarms of drift of ACCOUNT and all below it, or all alarms, the latest first."""
    call = client_calls.drift_alarm_page(account, acknowledged=acknowledged, **page)
    session.run_pages(call, show_alarms, items="drift_alarms", follow=follow)


@reconcile.command("acknowledge")
@click.argument("alarm_id")
@click.option("--note", help="What was found.")
@writes
def acknowledge(session: Session, alarm_id: str, *, note: str | None, write: Write) -> None:
    """Record that somebody has looked at an alarm."""
    call = client_calls.acknowledge_drift_alarm(alarm_id, note=note, **write)
    session.run(call, show_alarm)


@reconcile.command("list")
@click.argument("account", type=values.account, required=False)
@click.option("--state", type=click.Choice(UNMATCHED_STATES), help="[at first: open]")
@pages
def unmatched(
    session: Session,
    account: str | None,
    *,
    state: UnmatchedState | None,
    page: PageAt,
    follow: bool,
) -> None:
    """List measured use without a lease, of ACCOUNT or of all accounts, the latest first."""
    call = client_calls.unmatched_page(account, state=state, **page)
    session.run_pages(call, show_unmatched, items="unmatched_use", follow=follow)


@reconcile.command("match")
@click.argument("unmatched_id")
@click.argument("reservation_id")
@click.option("--note", help="Why.")
@writes
def match(
    session: Session, unmatched_id: str, reservation_id: str, *, note: str | None, write: Write
) -> None:
    """Assign measured use to a lease; the next pass compares the lease."""
    call = client_calls.match_use(unmatched_id, reservation_id, note=note, **write)
    session.run(call, show_decided)


@reconcile.command("dismiss")
@click.argument("unmatched_id")
@click.option("--note", required=True, help="Why.")
@writes
def dismiss(session: Session, unmatched_id: str, *, note: str, write: Write) -> None:
    """Dismiss measured use that belongs to no lease."""
    session.run(client_calls.dismiss_use(unmatched_id, note, **write), show_decided)


def show_status(answer: ReconcilerAnswer) -> None:
    """The reconciler's progress."""
    output.print_facts(
        [
            ("events seen to", output.instant(answer.seen_to) if answer.seen_to else "none"),
            ("leases waiting", f"{answer.waiting}, {answer.due} of them due"),
            ("open alarms", str(answer.open_alarms)),
            ("unmatched use", f"{answer.unmatched}, {count(answer.dropped, 'event')} dropped"),
            ("claims of lost work", str(answer.claims)),
        ]
    )


def show_run(answer: RunAnswer) -> None:
    """What a pass has done."""
    output.say(
        f"Compared {count(answer.compared, 'lease')}: {answer.agreed} agree, {answer.differed} "
        f"differ, {answer.posted} corrected ({answer.charged} charged, {answer.given_back} given "
        f"back). {count(answer.alarms, 'alarm')} raised."
    )
    if not answer.is_done:
        output.say("More leases are due: run it again.", err=True)


def show_comparisons(page: ComparisonPage) -> None:
    """A page of compared leases."""
    output.print_table(
        ["reservation", "account", "job", ">used ms", ">measured ms", ">drift", ">posted", "state"],
        [
            [
                row.reservation_id,
                row.account,
                row.job_id,
                str(row.used_ms),
                str(row.measured_ms),
                row.drift,
                row.reconciled,
                row.state,
            ]
            for row in page.comparisons
        ],
        empty="No lease has measured use.",
    )


def show_policy(answer: ReconcilePolicyAnswer) -> None:
    """The policy of an account."""
    output.print_facts(
        [
            ("account", answer.account),
            ("mode", answer.mode),
            ("tolerance", f"{answer.tolerance_ms} ms"),
            (
                "alarm from",
                f"{answer.alarm_percent}% of the bill, and {count(answer.alarm_floor, 'credit')}",
            ),
            ("quiet for", format_seconds(answer.quiet_seconds)),
            ("set for", answer.set_for or "nobody: the default"),
        ]
    )


def show_alarms(page: DriftAlarmPage) -> None:
    """A page of alarms."""
    output.print_table(
        ["alarm", "account", "job", ">drift", ">settled", "raised", "state"],
        [
            [
                row.alarm_id,
                row.account,
                row.job_id or "(the day)",
                row.drift,
                row.settled,
                output.instant(row.raised_at),
                "open" if row.is_open else "acknowledged",
            ]
            for row in page.drift_alarms
        ],
        empty="No open alarms.",
    )


def show_alarm(answer: DriftAlarmAnswer) -> None:
    """One alarm, with its three records."""
    evidence = answer.evidence
    output.say(answer.sentence)
    output.print_facts(
        [
            ("alarm", answer.alarm_id),
            ("heartbeats", f"{evidence.heartbeats.used_ms} ms"),
            ("measured", f"{evidence.measured.measured_ms} ms, {evidence.measured.cost} credits"),
            ("ledger", f"{evidence.ledger.settled} settled, {evidence.ledger.reconciled} posted"),
            ("state", "open" if answer.is_open else "acknowledged"),
        ]
    )


def show_unmatched(page: UnmatchedPage) -> None:
    """A page of unmatched use."""
    output.print_table(
        ["unmatched", "account", "job", "node", ">events", ">used ms", "last", "state"],
        [
            [
                row.unmatched_id,
                row.account or "",
                row.job_id,
                row.node,
                str(row.events),
                str(row.used_ms),
                output.instant(row.last_at),
                row.state,
            ]
            for row in page.unmatched_use
        ],
        empty="Nothing is unmatched.",
    )


def show_decided(answer: UnmatchedAnswer) -> None:
    """The decision about unmatched use."""
    what = f"to {answer.reservation_id}" if answer.reservation_id else ""
    output.say(f"{answer.unmatched_id} is {answer.state} {what}".rstrip() + ".")
