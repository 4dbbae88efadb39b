"""By which terms the lists of the ledger may be narrowed."""

from __future__ import annotations

from gpucredits.store.database.org_rows import OrgFilter
from gpucredits.store.ledger.accounts import AccountFilter
from gpucredits.store.ledger.entries import EntryFilter
from gpucredits.store.ledger.grants import GrantFilter
from gpucredits.store.ledger.reservations import ReservationFilter
from gpucredits.store.ledger.topups import TopUpFilter
from gpucredits.store.ledger.transfers import TransferFilter

__all__ = [
    "AccountFilter",
    "EntryFilter",
    "GrantFilter",
    "OrgFilter",
    "ReservationFilter",
    "TopUpFilter",
    "TransferFilter",
]
