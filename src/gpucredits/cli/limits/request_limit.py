"""``gpucredits key limit``: how many requests a key, or all keys of an org, may make."""

from __future__ import annotations

import click

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Command
from gpucredits.cli.terminal.session import Session, Write
from gpucredits.cli.terminal.setting import Set, sets
from gpucredits.client import Call
from gpucredits.client import calls as client_calls
from gpucredits.core.request_limit import BURST_MAX, PER_HOUR_MAX
from gpucredits.wire.request_limit import RequestLimitAnswer


@click.command("limit", cls=Command)
@click.argument("key_id", required=False)
@click.option("--org", type=values.account, help="All keys of this org together, not one key.")
@click.option("--per-second", type=click.IntRange(1, BURST_MAX), help="Requests in the long run.")
@click.option("--per-hour", type=click.IntRange(1, PER_HOUR_MAX), help="The same, by the hour.")
@click.option(
    "--burst",
    type=click.IntRange(1, BURST_MAX),
    help="Requests at once.  [at first: four seconds' worth]",
)
@click.option("--end", is_flag=True, help="Let the server's default hold again.")
@sets({"burst": "capacity"})
def limit(  # one argument for each option
    session: Session,
    key_id: str | None,
    *,
    org: str | None,
    per_second: int | None,
    per_hour: int | None,
    burst: int | None,
    end: bool,
    write: Set,
) -> None:
    """Show, change or end the request limit of a key or an org; what is not given stays."""
    if (key_id is None) == (org is None):
        raise click.UsageError("Name a key, or an org with --org.")
    speeds = [each for each in (per_second, per_hour) if each is not None]
    changes = bool(speeds or burst or write["replace"] or write["clear"])
    if len(speeds) > 1 or (end and changes) or (write["replace"] and not speeds):
        raise click.UsageError("Give --per-second or --per-hour, --burst, or both; or --end.")
    call: Call[RequestLimitAnswer]
    once = Write(key=write["key"], dry_run=write["dry_run"])
    if end and org is not None:
        call = client_calls.end_org_request_limit(org, **once)
    elif end:
        call = client_calls.end_key_limit(str(key_id), **once)
    elif not changes and org is not None:
        call = client_calls.org_request_limit(org)
    elif not changes:
        call = client_calls.key_limit(str(key_id))
    elif org is not None:
        call = client_calls.set_org_request_limit(
            org, refill_per_second=per_second, refill_per_hour=per_hour, capacity=burst, **write
        )
    else:
        call = client_calls.set_key_limit(
            str(key_id),
            refill_per_second=per_second,
            refill_per_hour=per_hour,
            capacity=burst,
            **write,
        )
    session.run(call, show_limit)


def show_limit(answer: RequestLimitAnswer) -> None:
    """The limit in force, and where it comes from."""
    limit = answer.limit
    facts: list[tuple[str, str | None]] = [(answer.holder, answer.key_id or answer.account)]
    if limit is None:
        facts.append(("requests", "not limited"))
    else:
        facts.append(("requests", f"{speed(limit.refill_per_hour)}, {limit.capacity} at once"))
        facts.append(
            (
                "set",
                "for this one, by a key of system scope"
                if answer.source == "own"
                else "as the default",
            )
        )
    output.print_facts(facts)


def speed(per_hour: int) -> str:
    """A speed as people say it."""
    per_second, rest = divmod(per_hour, 3_600)
    return f"{per_hour} an hour" if rest or not per_second else f"{per_second} a second"
