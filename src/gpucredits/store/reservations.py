"""Reading reservations whole, as listings and pages of a job show them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from gpucredits.core.reservation import Reservation, ReservationState
from gpucredits.store.book_gates import EXHAUSTIONS, WHYS
from gpucredits.store.book_rows import DECISIONS, LEASE_STATES, from_json
from gpucredits.store.connection import Connection
from gpucredits.store.where import Where

LIST = """
SELECT r.reservation_id, r.account, r.account_id, r.payer_id, r.job_id, r.gpu_type,
    r.gpu_count, r.region, r.node, r.price, r.price_id, r.window_ms, r.admitted_at, r.expires_at,
    r.escrow_windows, r.max_amount, r.held, r.settled, r.adjusted, r.refunded, r.used_ms, r.seq,
    r.state, r.decision, r.ended_at, r.paid, r.metadata::text AS metadata, r.exhaustion,
    r.grace_ms, r.overdraft, r.overdrawn, r.leaving, r.stopping_at, r.why, r.promised,
    r.cap_part, r.cap_seen, r.clears_at, r.stop_grace_ms,
    p.path AS payer,
    lease_beat_at(r.beat_at, r.expires_at, r.window_ms, r.escrow_windows) AS beat_at
FROM reservations r
JOIN accounts p ON p.org_id = r.org_id AND p.account_id = r.payer_id
WHERE [where] ORDER BY r.reservation_id DESC LIMIT [limit]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationFilter:
    """Which reservations to list, newest first, before the cursor."""

    account: str = ""
    tree: bool = False
    job_id: str = ""
    node: str = ""
    state: ReservationState | None = None
    numbers: tuple[int, ...] = ()
    metadata: dict[str, str] | None = None
    before: int = 0
    limit: int = 100


def reservation_from_row(row: Any) -> Reservation:
    """A reservation as stored."""
    paid = row["paid"]
    values = {name: row[name] for name in Reservation.__slots__}
    values |= {
        "state": LEASE_STATES[row["state"]],
        "decision": DECISIONS[row["decision"]],
        "paid": tuple(zip(paid[::2], paid[1::2], strict=True)),
        "metadata": from_json(row["metadata"]),
        "exhaustion": EXHAUSTIONS[row["exhaustion"]],
        "why": WHYS[row["why"]],
    }
    return Reservation(**values)


async def list_reservations(
    connection: Connection, org_id: int, wanted: ReservationFilter, now: int
) -> list[tuple[Reservation, str]]:
    """Reservations as stored, with the paths of their payers; a state is that of ``now``."""
    where = Where()
    where.add("r.org_id = {}", org_id)
    if wanted.before:
        where.add("r.reservation_id < {}", wanted.before)
    if wanted.numbers:
        where.add("r.reservation_id = ANY({}::bigint[])", list(wanted.numbers))
    if wanted.account:
        if wanted.tree:
            where.under("r.account", wanted.account)
        else:
            where.add("r.account = {}", wanted.account)
    if wanted.job_id:
        where.add("r.job_id = {}", wanted.job_id)
    if wanted.node:
        where.add("r.node = {}", wanted.node)
    if wanted.state is not None:
        add_state(where, wanted.state, now)
    if wanted.metadata:
        where.add("r.metadata @> {}::text::jsonb", msgspec.json.encode(wanted.metadata).decode())
    rows = await connection.fetch(where.into(LIST, limit=where.value(wanted.limit)), *where.values)
    return [(reservation_from_row(row), row["payer"]) for row in rows]


def add_state(where: Where, state: ReservationState, now: int) -> None:
    """Only those that are so at ``now``: not every lapse is written down."""
    match state:
        case ReservationState.ACTIVE:
            where.add("r.state = 0 AND r.expires_at > {}", now)
        case ReservationState.EXPIRED:
            where.add("(r.state = 3 OR r.state = 0 AND r.expires_at <= {})", now)
        case _:
            where.add("r.state = {}", int(state))
