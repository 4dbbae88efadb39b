"""Prices: adding versions, ending them and listing them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import msgspec

from gpucredits.core import bounds, ids
from gpucredits.core.money import format_credits
from gpucredits.core.period import instant_text
from gpucredits.core.price import Price
from gpucredits.core.reasons import Reason, Refused
from gpucredits.service.write.acts import Act, ActRefused, perform
from gpucredits.store.access.audit import AuditNote
from gpucredits.store.billing import prices
from gpucredits.store.billing.prices import Priced, PriceFilter
from gpucredits.store.clock import read_clock
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.wire.scalars import format_end, format_instant

__all__ = ["NewPrice", "PriceEnd", "PriceFilter", "add_price", "end_price"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPrice:
    """A version to be added; no start means from now, no account the list price."""

    gpu_type: str
    region: str
    credits_per_gpu_hour: int
    effective_from: int | None
    account: str = ""
    effective_to: int = bounds.NEVER_US


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceEnd:
    """The instant from which there is no price; without one, from now on."""

    gpu_type: str
    region: str
    effective_to: int | None
    account: str = ""


@dataclass(frozen=True, slots=True)
class Added:
    """A version that was added, and whether its start had passed by then.

    ``is_behind`` says that a version or an end with a later start stands in front of it.
    """

    price: Price
    is_backdated: bool
    is_behind: bool = False


async def add_price(pool: Pool, act: Act, new: NewPrice) -> tuple[Added, bool]:
    """Add a version; running reservations keep theirs. Also whether it was added before."""

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        now = await read_clock(db)
        start = now if new.effective_from is None else new.effective_from
        if new.effective_to <= max(start, now):
            raise ActRefused(ended_before(max(start, now)))
        price = await prices.insert(
            db,
            Priced(
                org_id=act.org_id,
                gpu_type=new.gpu_type,
                region=new.region,
                account=new.account,
            ),
            credits_per_gpu_hour=new.credits_per_gpu_hour,
            effective_from=start,
            effective_to=new.effective_to,
        )
        shown = {
            **asdict(new),
            "price_id": ids.format_id(ids.PRICE, 0, price.price_id),
            "credits_per_gpu_hour": format_credits(new.credits_per_gpu_hour),
            "effective_from": format_instant(start),
            "effective_to": format_end(new.effective_to),
        }
        note = act.note("price.set", resource_of(price), new=shown)
        is_behind = start < now and not await prices.is_in_force(db, price, act.org_id, now)
        added = Added(price, is_backdated=start < now, is_behind=is_behind)
        return msgspec.json.encode(added), note

    numbered = replace(act, also_locks=(0,))  # prices are numbered there
    done = await perform(pool, numbered, work)
    return msgspec.json.decode(done.answer, type=Added), done.is_replay


async def end_price(pool: Pool, act: Act, end: PriceEnd) -> tuple[Price, bool]:
    """End the price in force; the version with its end, and whether it was ended before.

    Versions that begin later still do. Running reservations keep their price.
    """

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        now = await read_clock(db)
        at = now if end.effective_to is None else end.effective_to
        if at < now:
            raise ActRefused(ended_before(now))
        what = Priced(
            org_id=act.org_id, gpu_type=end.gpu_type, region=end.region, account=end.account
        )
        price = await prices.in_force(db, what, at)
        if price is None:
            raise ActRefused(nothing_to_end(end, at))
        last = await prices.insert(db, what, credits_per_gpu_hour=0, effective_from=at, is_end=True)
        ended = replace(price, effective_to=at)
        shown = {
            **asdict(end),
            "price_id": ids.format_id(ids.PRICE, 0, last.price_id),
            "effective_to": format_instant(at),
        }
        return msgspec.json.encode(ended), act.note("price.end", resource_of(price), new=shown)

    numbered = replace(act, also_locks=(0,))  # prices are numbered there
    done = await perform(pool, numbered, work)
    return msgspec.json.decode(done.answer, type=Price), done.is_replay


def resource_of(price: Price) -> str:
    """What the audit log calls a price: the account that it is for, or its own id."""
    return price.account or ids.format_id(ids.PRICE, 0, price.price_id)


def ended_before(earliest: int) -> Refused:
    """The refusal of an end that changes nothing, or rewrites what has been."""
    return Refused(
        Reason.WINDOW_ENDED,
        f"The price would end before it begins, or in the past: effective_to must be later than "
        f"{instant_text(earliest)}.",
    )


def nothing_to_end(end: PriceEnd, at: int) -> Refused:
    """The refusal to end a price that is not there."""
    whose = f"for {end.account}" if end.account else "for everybody"
    return Refused(
        Reason.PRICE_UNKNOWN,
        f"No price {whose} is in force for {end.gpu_type} in region {end.region} at "
        f"{instant_text(at)}, so there is none to end.",
        {"gpu_type": end.gpu_type, "region": end.region},
    )


async def list_prices(
    pool: Pool, which: PriceFilter, *, before: int, limit: int
) -> list[tuple[Price, str]]:
    """Versions, the newest first, each with its state."""
    async with session(pool) as db:
        return await prices.page(db, which, before=before, limit=limit)
