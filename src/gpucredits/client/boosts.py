"""Calls about boosts: limits raised for a while."""

from __future__ import annotations

from urllib.parse import quote

from gpucredits.client.call import Call, Number, When, account_path, body_of, read, write
from gpucredits.client.errors import Invalid
from gpucredits.wire.boost import BoostAnswer, BoostRequest, BoostsAnswer, TargetName
from gpucredits.wire.quota import CalendarName


def boosts(account: str) -> Call[BoostsAnswer]:
    """The boosts of an account's limits that have not ended."""
    return read(account_path(account, "/boosts"), BoostsAnswer)


def add_boost(  # noqa: PLR0913  # one argument for each field of the request
    account: str,
    amount: Number | None = None,
    *,
    ends_at: When,
    starts_at: When | None = None,
    refill_per_hour: Number | None = None,
    target_id: str | None = None,
    dimension: TargetName | None = None,
    gpu_type: str | None = None,
    calendar: CalendarName | None = None,
    zone: str | None = None,
    rolling_hours: int | None = None,
    note: str | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[BoostAnswer]:
    """Raise a quota or the rate limit until ``ends_at``; it lapses by itself.

    The limit is named by ``target_id``, or by its ``dimension`` with whatever else it was set with.
    """
    body = body_of(
        BoostRequest,
        amount=amount,
        ends_at=ends_at,
        starts_at=starts_at,
        refill_per_hour=refill_per_hour,
        target_id=target_id,
        dimension=dimension,
        gpu_type=gpu_type,
        calendar=calendar,
        zone=zone,
        rolling_hours=rolling_hours,
        note=note,
    )
    return write(account_path(account, "/boosts"), BoostAnswer, body=body, key=key, dry_run=dry_run)


def end_boost(
    account: str, boost_id: str, *, key: str | None = None, dry_run: bool = False
) -> Call[BoostAnswer]:
    """Let a boost end now, before its time."""
    if not boost_id:
        raise Invalid("must not be empty", field="boost_id")
    path = account_path(account, f"/boosts/{quote(boost_id, safe='')}")
    return write(path, BoostAnswer, key=key, dry_run=dry_run, method="DELETE")
