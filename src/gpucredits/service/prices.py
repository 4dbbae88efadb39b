"""Prices: adding versions and listing them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import msgspec

from gpucredits.core import ids
from gpucredits.core.money import format_credits
from gpucredits.core.price import Price
from gpucredits.service.acts import Act, perform
from gpucredits.store import price_list
from gpucredits.store.audit import AuditNote
from gpucredits.store.connection import Connection, Pool
from gpucredits.store.errors import driver_errors
from gpucredits.store.price_list import PriceFilter
from gpucredits.wire.scalars import format_instant

__all__ = ["NewPrice", "PriceFilter", "add_price", "list_prices"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPrice:
    """A version to be added; no start means from now, no account the list price."""

    gpu_type: str
    region: str
    credits_per_gpu_hour: int
    effective_from: int | None
    account: str = ""


async def add_price(
    pool: Pool, act: Act, new: NewPrice, *, actor: str, request_id: str
) -> tuple[Price, bool]:
    """Add a version; running reservations keep theirs. Also whether it was added before."""

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        price = await price_list.insert(db, org_id=act.org_id, **asdict(new))
        start = new.effective_from
        shown = {
            **asdict(new),
            "credits_per_gpu_hour": format_credits(new.credits_per_gpu_hour),
            "effective_from": None if start is None else format_instant(start),
        }
        resource = new.account or ids.format_id(ids.PRICE, 0, price.price_id)
        note = AuditNote(actor, "price.set", resource, request_id, new=shown)
        return msgspec.json.encode(price), note

    numbered = replace(act, also_locks=(0,))  # prices are numbered there
    done = await perform(pool, numbered, work)
    return msgspec.json.decode(done.answer, type=Price), done.is_replay


async def list_prices(
    pool: Pool, which: PriceFilter, *, before: int, limit: int
) -> list[tuple[Price, str]]:
    """Versions, the newest first, each with its state."""
    with driver_errors():
        async with pool.acquire() as db:
            return await price_list.page(db, which, before=before, limit=limit)
