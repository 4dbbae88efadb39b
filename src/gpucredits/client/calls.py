"""Every call of the API as an operation; the clients send them.

Owns: paths and field names. Amounts are decimal strings, whole numbers or Decimals, never floats.
Must not: do I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar
from urllib.parse import quote

from gpucredits.client.operation import Operation
from gpucredits.wire import access, account, credit, entry, policy, price, reservation, system
from gpucredits.wire import usage as wire_usage

Credits = str | int | Decimal
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Beat:
    """One lease's report: its cumulative use."""

    reservation_id: str
    seq: int
    used_ms: int


def _get(path: str, answer: type[T], **query: Any) -> Operation[T]:
    return Operation(method="GET", path=path, query=query, answer=answer)


def _post(
    path: str, answer: type[T], key: str | None, body: dict[str, Any] | None = None, **query: Any
) -> Operation[T]:
    return Operation(method="POST", path=path, body=body, query=query, answer=answer, key=key)


def _account(path: str, rest: str = "") -> str:
    return f"/v1/accounts/{quote(path)}{rest}"


def _lease(reservation_id: str, verb: str = "") -> str:
    return f"/v1/reservations/{quote(reservation_id, safe='')}{verb}"


def create_account(
    path: str, *, key: str | None = None, dry_run: bool = False, **fields: Any
) -> Operation[account.AccountAnswer]:
    """Open an account; fields: model, credit_limit, metadata."""
    body = {"path": path, **fields}
    return _post("/v1/accounts", account.AccountAnswer, key, body, dry_run=dry_run)


def change_account(
    path: str, *, key: str | None = None, **fields: Any
) -> Operation[account.AccountAnswer]:
    """Change an account; fields: model, credit_limit, metadata."""
    return Operation(
        method="PATCH", path=_account(path), body=fields, answer=account.AccountAnswer, key=key
    )


def suspend(path: str, *, key: str | None = None) -> Operation[account.AccountAnswer]:
    """Admit nothing more and drain what runs."""
    return _post(_account(path, "/suspend"), account.AccountAnswer, key)


def resume(path: str, *, key: str | None = None) -> Operation[account.AccountAnswer]:
    """Admit again."""
    return _post(_account(path, "/resume"), account.AccountAnswer, key)


def get_account(path: str) -> Operation[account.AccountAnswer]:
    """An account and its terms."""
    return _get(_account(path), account.AccountAnswer)


def list_accounts(**query: Any) -> Operation[account.AccountPage]:
    """Accounts; query: under, model, status, metadata, limit, cursor."""
    return _get("/v1/accounts", account.AccountPage, **query)


def tree(path: str) -> Operation[account.TreeAnswer]:
    """An account and everything below it."""
    return _get(_account(path, "/tree"), account.TreeAnswer)


def balance(
    path: str, *, tree: bool | None = None, at: str | None = None, known_at: str | None = None
) -> Operation[account.BalanceAnswer]:
    """The balance of an account or its subtree, now or in the past."""
    query = {"tree": tree, "at": at, "known_at": known_at}
    return _get(_account(path, "/balance"), account.BalanceAnswer, **query)


def usage(path: str, **query: Any) -> Operation[wire_usage.UsagePage]:
    """What an account used and paid for; query: since, until, by, limit, cursor."""
    return _get(_account(path, "/usage"), wire_usage.UsagePage, **query)


def get_policy(path: str, kind: str) -> Operation[policy.PolicyAnswer]:
    """The limits, budgets or quotas of an account."""
    return _get(_account(path, f"/{kind}"), policy.PolicyAnswer)


def set_policy(
    path: str, kind: str, settings: dict[str, Any], *, key: str | None = None
) -> Operation[policy.PolicyAnswer]:
    """Replace the limits, budgets or quotas of an account."""
    return Operation(
        method="PUT",
        path=_account(path, f"/{kind}"),
        body={"settings": settings},
        answer=policy.PolicyAnswer,
        key=key,
    )


def issue(
    account: str, amount: Credits, *, key: str | None = None, dry_run: bool = False, **fields: Any
) -> Operation[credit.GrantAnswer]:
    """Grant credits; fields: starts_at, expires_at, priority, source, metadata."""
    body = {"account": account, "amount": amount, **fields}
    return _post("/v1/credits/issue", credit.GrantAnswer, key, body, dry_run=dry_run)


def list_grants(**query: Any) -> Operation[credit.GrantPage]:
    """Grants; query: account, tree, open, metadata, limit, cursor."""
    return _get("/v1/grants", credit.GrantPage, **query)


def top_up(
    account: str,
    amount: Credits,
    payment_reference: str,
    *,
    key: str | None = None,
    dry_run: bool = False,
    **fields: Any,
) -> Operation[credit.TopUpAnswer]:
    """Record a payment; fields: status, expires_at, priority, metadata."""
    body = {"account": account, "amount": amount, "payment_reference": payment_reference, **fields}
    return _post("/v1/topups", credit.TopUpAnswer, key, body, dry_run=dry_run)


def decide_topup(
    topup_id: str, verb: str, *, key: str | None = None
) -> Operation[credit.TopUpAnswer]:
    """Confirm, fail or reverse a payment."""
    return _post(f"/v1/topups/{quote(topup_id, safe='')}:{verb}", credit.TopUpAnswer, key)


def list_topups(**query: Any) -> Operation[credit.TopUpPage]:
    """Top-ups; query: account, status, limit, cursor."""
    return _get("/v1/topups", credit.TopUpPage, **query)


def transfer(
    source: str,
    target: str,
    amount: Credits,
    *,
    key: str | None = None,
    dry_run: bool = False,
    **fields: Any,
) -> Operation[credit.TransferAnswer]:
    """Move credits between two accounts of one org."""
    body = {"from": source, "to": target, "amount": amount, **fields}
    return _post("/v1/credits/transfer", credit.TransferAnswer, key, body, dry_run=dry_run)


def reserve(
    account: str,
    *,
    job_id: str,
    gpu_type: str,
    gpu_count: int = 1,
    key: str | None = None,
    dry_run: bool = False,
    **fields: Any,
) -> Operation[reservation.ReservationAnswer]:
    """Admit a job; fields: region, node, window_seconds, max_amount, payer, metadata and so on."""
    body = {
        "account": account,
        "job_id": job_id,
        "gpu_type": gpu_type,
        "gpu_count": gpu_count,
        **fields,
    }
    return _post("/v1/reservations", reservation.ReservationAnswer, key, body, dry_run=dry_run)


def reserve_all(
    items: Sequence[dict[str, Any]], *, atomic: bool, key: str | None = None
) -> Operation[reservation.ReserveResults]:
    """Admit many leases; atomic: all or nothing."""
    body = {"items": list(items), "atomic": atomic}
    return _post("/v1/reservations:batch", reservation.ReserveResults, key, body)


def get_reservation(reservation_id: str) -> Operation[reservation.ReservationAnswer]:
    """One reservation as it stands now."""
    return _get(_lease(reservation_id), reservation.ReservationAnswer)


def list_reservations(**query: Any) -> Operation[reservation.ReservationPage]:
    """Reservations; query: account, tree, job_id, node, state, metadata, limit, cursor."""
    return _get("/v1/reservations", reservation.ReservationPage, **query)


def extend(reservation_id: str, *, seq: int, used_ms: int) -> Operation[reservation.BeatAnswer]:
    """A heartbeat for one lease."""
    body = {"seq": seq, "used_ms": used_ms}
    return _post(_lease(reservation_id, ":extend"), reservation.BeatAnswer, None, body)


def heartbeats(
    beats: Sequence[Beat], *, node: str | None = None
) -> Operation[reservation.HeartbeatsAnswer]:
    """Heartbeats for every lease of a node."""
    body = {"beats": list(beats), "node": node}
    return _post("/v1/heartbeats", reservation.HeartbeatsAnswer, None, body)


def settle(
    reservation_id: str,
    *,
    seq: int | None = None,
    used_ms: int | None = None,
    key: str | None = None,
) -> Operation[reservation.ClosedAnswer]:
    """End a job; without used_ms the last accepted use stands."""
    body = {"seq": seq, "used_ms": used_ms}
    return _post(_lease(reservation_id, ":settle"), reservation.ClosedAnswer, key, body)


def cancel(reservation_id: str, *, key: str | None = None) -> Operation[reservation.ClosedAnswer]:
    """Release the hold of a job that never started."""
    return _post(_lease(reservation_id, ":cancel"), reservation.ClosedAnswer, key, {})


def refund(
    reservation_id: str, amount: Credits, *, note: str = "", key: str | None = None
) -> Operation[reservation.CorrectionAnswer]:
    """Give settled credits back."""
    body = {"reservation_id": reservation_id, "amount": amount, "note": note}
    return _post("/v1/refunds", reservation.CorrectionAnswer, key, body)


def adjust(
    reservation_id: str, amount: Credits, *, note: str = "", key: str | None = None
) -> Operation[reservation.CorrectionAnswer]:
    """Charge on top of what was settled."""
    body = {"reservation_id": reservation_id, "amount": amount, "note": note}
    return _post("/v1/adjustments", reservation.CorrectionAnswer, key, body)


def list_entries(**query: Any) -> Operation[entry.EntryPage]:
    """Entries; query: account, tree, job_id, reservation_id, type, since, until, limit, cursor."""
    return _get("/v1/entries", entry.EntryPage, **query)


def set_price(
    gpu_type: str, credits_per_gpu_hour: Credits, *, key: str | None = None, **fields: Any
) -> Operation[price.PriceAnswer]:
    """Add a version of a price; fields: region, effective_from, account."""
    body = {"gpu_type": gpu_type, "credits_per_gpu_hour": credits_per_gpu_hour, **fields}
    return _post("/v1/prices", price.PriceAnswer, key, body)


def list_prices(**query: Any) -> Operation[price.PricePage]:
    """Prices; query: gpu_type, region, account, effective_by, limit, cursor."""
    return _get("/v1/prices", price.PricePage, **query)


def create_key(
    role: str, *, scope: str | None = None, name: str | None = None, key: str | None = None
) -> Operation[access.NewKeyAnswer]:
    """Make an API key; its secret is in the answer."""
    body = {"role": role, "scope": scope, "name": name}
    return _post("/v1/keys", access.NewKeyAnswer, key, body)


def list_keys(**query: Any) -> Operation[access.KeyPage]:
    """Keys within the caller's scope."""
    return _get("/v1/keys", access.KeyPage, **query)


def revoke_key(key_id: str, *, key: str | None = None) -> Operation[access.KeyAnswer]:
    """End a key."""
    return _post(f"/v1/keys/{quote(key_id, safe='')}:revoke", access.KeyAnswer, key)


def list_audit(**query: Any) -> Operation[access.AuditPage]:
    """Administrative acts; query: account, actor, action, resource, since, until."""
    return _get("/v1/audit", access.AuditPage, **query)


def advance_clock(seconds: int) -> Operation[system.ClockAnswer]:
    """Move a test server's time on; not safe to repeat."""
    return Operation(
        method="POST",
        path="/v1/test/clock",
        body={"advance_seconds": seconds},
        answer=system.ClockAnswer,
        is_repeatable=False,
    )
